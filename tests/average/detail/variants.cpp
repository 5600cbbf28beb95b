// SPDX-License-Identifier: MIT
/// Every variant of the inner loops has the bits of the plain loop.
#include <subfed/average/detail/variants.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/draw.hpp>
#include <subfed/schemes.hpp>
#include <support/average_properties.hpp>
#include <support/instructions.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

using subfed::bfloat16;
using subfed::half;
using subfed::detail::divider;
using subfed::detail::division;
using subfed::detail::stream;

namespace {

namespace variant_tests {

/// SplitMix64.
struct numbers {
  std::uint64_t state;

  std::uint64_t bits() {
    std::uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) { return bits() % n; }
};

/// What an element may be.
enum class content {
  ordinary,  ///< below 1/2: sums of halves are often too large for floats
  small,     ///< below 1/16, of many sizes
  any_finite,
  any_bits
};

template <class T>
T element(numbers& random, content what) {
  using traits = subfed::scalar_traits<T>;
  if (what == content::ordinary) {
    return traits::store(static_cast<double>(random.bits() >> 11) * 0x1p-53 - 0.5);
  }
  if (what == content::small) {
    const double x = static_cast<double>(random.bits() >> 11) * 0x1p-53 - 0.5;
    return traits::store(std::ldexp(x, -3 - static_cast<int>(random.below(20))));
  }
  // Random bits are hardly ever an infinity of these.
  if constexpr (std::is_floating_point_v<T>) {
    if (what == content::any_bits && random.below(32) == 0) {
      return std::numeric_limits<T>::infinity();
    }
  }
  for (;;) {
    T out;
    std::uint64_t bits = random.bits();
    if (random.below(8) == 0) bits &= 0x8000800080008001u;  // zeros and denormal numbers
    std::memcpy(static_cast<void*>(&out), &bits, sizeof(T));
    if (what == content::any_bits || traits::is_finite(out)) return out;
  }
}

template <class T>
bool same(T a, T b) {
  const double x = subfed::scalar_traits<T>::load(a);
  const double y = subfed::scalar_traits<T>::load(b);
  if (std::isnan(x) && std::isnan(y)) return true;  // its bits depend on the order of the operands
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

/// Streams of one length, at addresses that are aligned for their elements alone.
template <class T>
struct streams {
  std::vector<std::vector<T>> data;
  std::vector<stream<T>> each;

  streams(numbers& random, std::size_t count, std::int64_t length, bool ones, content what) {
    for (std::size_t h = 0; h < count; ++h) {
      const std::size_t shift = random.below(9);
      auto& own = data.emplace_back();
      for (std::size_t i = 0; i < shift + static_cast<std::size_t>(length); ++i) {
        own.push_back(element<T>(random, what));
      }
      const double weight = ones ? 1 : static_cast<double>(1 + random.below(1000)) / 7;
      each.push_back({own.data() + shift, weight});
    }
  }
  double sum(double before, std::int64_t i) const {
    for (const stream<T>& s : each) {
      volatile double product = s.weight * subfed::scalar_traits<T>::load(s.data[i]);
      volatile double sum = before + product;
      before = sum;
    }
    return before;
  }
};

template <class F>
void for_each_case(F&& f) {
  numbers random{7};
  for (std::int64_t length = 0; length < 150; length += length < 40 ? 1 : 7) {
    for (const std::size_t count : {0u, 1u, 2u, 3u, 5u, 8u, 9u, 17u}) {
      for (const content what :
           {content::ordinary, content::small, content::any_finite, content::any_bits}) {
        const bool ones = random.below(2) == 0;
        CAPTURE(length);
        CAPTURE(count);
        CAPTURE(static_cast<int>(what));
        CAPTURE(ones);
        f(random, length, count, what, ones);
      }
    }
  }
}

}  // namespace variant_tests

}  // namespace

#if SUBFED_VARIANTS

TEST_CASE_TEMPLATE("streams are added up with the bits of the plain loop", T, float, double, half,
                   bfloat16) {
  namespace v = variant_tests;
  support::with_all_instructions([] {
    if (!subfed::detail::in_lanes<T>()) return;
    v::for_each_case([](v::numbers& random, std::int64_t length, std::size_t count, v::content what,
                        bool ones) {
      const v::streams<T> made(random, count, length, ones, what);
      const auto n = static_cast<std::size_t>(length);
      std::vector<double> before;
      const bool are_sums = std::is_same_v<T, half> && ones && count > 1;
      for (std::size_t i = 0; i < n; ++i) {
        before.push_back(are_sums ? subfed::scalar_traits<T>::load(v::element<T>(random, what))
                                  : v::element<double>(random, what));
      }
      const bool begins = random.below(2) == 0;
      std::vector<double> sums = before;
      sums.push_back(77);  // must stay
      subfed::detail::add_streams(made.each.data(), count, ones, begins ? nullptr : sums.data(),
                                  sums.data(), length);
      bool all = true;
      for (std::size_t i = 0; i < n; ++i) {
        const double expected = made.sum(begins ? -0.0 : before[i], static_cast<std::int64_t>(i));
        all = all && v::same(sums[i], expected);
      }
      CHECK(all);
      CHECK(sums[n] == 77);
    });
  });
}

TEST_CASE_TEMPLATE("means of streams have the bits of the plain loop", T, float, double, half,
                   bfloat16) {
  namespace v = variant_tests;
  using traits = subfed::scalar_traits<T>;
  support::with_all_instructions([] {
    if (!subfed::detail::in_lanes<T>()) return;
    v::for_each_case([](v::numbers& random, std::int64_t length, std::size_t count, v::content what,
                        bool ones) {
      const v::streams<T> made(random, count, length, ones, what);
      const auto n = static_cast<std::size_t>(length);
      std::vector<double> before;
      for (std::size_t i = 0; i < n; ++i) {
        before.push_back(traits::load(v::element<T>(random, what)));
      }
      const bool begins = count != 0 && random.below(2) == 0;
      const double weights[] = {1, 3, 4, 7, 10, 0.3, 1e30, 12345.678};
      const bool of_count = count != 0 && random.below(2) == 0;
      const divider by(of_count ? static_cast<double>(count) : weights[random.below(8)]);
      const division how = sizeof(T) <= 4 && random.below(2) == 0 ? division::by_reciprocal
                                                                  : division::by_instruction;
      std::vector<T> out(n + 1, traits::store(77));
      subfed::detail::mean_streams(made.each.data(), count, ones, begins ? nullptr : before.data(),
                                   by, how, out.data(), length);
      bool all = true;
      for (std::size_t i = 0; i < n; ++i) {
        const double sum = made.sum(begins ? -0.0 : before[i], static_cast<std::int64_t>(i));
        volatile double mean = sum / by.weight;
        all = all && v::same(out[i], traits::store(mean));
      }
      CHECK(all);
      CHECK(v::same(out[n], traits::store(77)));
    });
  });
}

TEST_CASE("means of halves next to the middle of two halves are rounded once") {
  // n halves whose sum is n t and one digit more or less, t between two halves: as a float, the mean is t.
  for (const int n : {5, 6, 7}) {
    std::vector<std::vector<half>> data(static_cast<std::size_t>(n));
    const auto put = [](std::vector<half>& own, double x) {
      own.push_back(half(static_cast<float>(x)));
      REQUIRE(static_cast<double>(own.back()) == x);
    };
    for (int k = 0x801; n * k < 0x3F00; k += 2) {  // t = k 2^-14
      const int equal = n * k / (n - 2) & ~3;      // of all but two
      const int rest = n * k - (n - 2) * equal;
      for (const double sign : {1.0, -1.0}) {
        for (const double digit : {0x1p-24, -0x1p-24}) {
          for (int h = 0; h < n - 2; ++h) {
            put(data[static_cast<std::size_t>(h)], sign * equal * 0x1p-14);
          }
          put(data[static_cast<std::size_t>(n - 2)], sign * rest * 0x1p-14);
          put(data[static_cast<std::size_t>(n - 1)], digit);
        }
      }
    }
    std::vector<stream<half>> streams;
    for (const auto& own : data) streams.push_back({own.data(), 1});
    const std::size_t size = data[0].size();
    REQUIRE(size > 500);
    support::with_all_instructions([&] {
      if (!subfed::detail::in_lanes<half>()) return;
      std::vector<half> out(size);
      subfed::detail::mean_streams(streams.data(), streams.size(), true, nullptr, divider(n),
                                   division::by_reciprocal, out.data(),
                                   static_cast<std::int64_t>(size));
      bool all = true;
      for (std::size_t i = 0; i < size; ++i) {
        double sum = 0;
        for (const auto& own : data) sum += static_cast<double>(own[i]);
        all = all && out[i].bits == subfed::scalar_traits<half>::store(sum / n).bits;
      }
      CHECK(all);
    });
  }
}

TEST_CASE("sums of more halves than double holds exactly are formed in the order of the clients") {
  // The mean lies in the middle of two halves, but for the last clients' 2^-24, which are lost one by one.
  constexpr int size = 260;  // so long that 16 clients are added up at a time
  subfed::model net;
  net.tensor("w", {net.group("h", size)});
  std::vector<std::vector<half>> data;
  std::vector<std::vector<subfed::tensor_view<const half>>> views;
  for (const float x : {65504.0f, 65472.0f, 0x1p-24f}) data.emplace_back(size, half(x));
  for (const auto& own : data) views.push_back({{own.data(), {size}}});
  std::vector<subfed::update<half>> updates;
  for (std::size_t c = 0; c < 40008; ++c) {
    const std::size_t which = c < 36372 ? 0 : c < 40000 ? 1 : 2;
    updates.push_back({draw(net, subfed::prefix{}, {.client = c}),
                       subfed::tensor_views<const half>(views[which]), 1});
  }
  support::with_all_instructions([&] {
    std::vector<half> global(size);
    const std::vector<subfed::tensor_view<half>> out{{global.data(), {size}}};
    subfed::average_cohort<half>(net, updates, out);
    CHECK(support::same_bits(global, data[1]));
  });
}

TEST_CASE("the mean of two floats whose sum is too large for a float") {
  const std::vector<float> large(70, 3e38f);
  const stream<float> two[] = {{large.data(), 1}, {large.data(), 1}};
  support::with_all_instructions([&] {
    if (!subfed::detail::in_lanes<float>()) return;
    std::vector<float> out(large.size());
    subfed::detail::mean_streams(two, 2, true, nullptr, divider(2), division::by_reciprocal,
                                 out.data(), static_cast<std::int64_t>(out.size()));
    CHECK(out == large);
  });
}

TEST_CASE_TEMPLATE("sums over weights of their own have the bits of the plain loop", T, float,
                   double, half, bfloat16) {
  namespace v = variant_tests;
  using traits = subfed::scalar_traits<T>;
  support::with_all_instructions([] {
    if (!subfed::detail::in_lanes<T>()) return;
    v::for_each_case(
        [](v::numbers& random, std::int64_t length, std::size_t count, v::content what, bool) {
          const auto n = static_cast<std::size_t>(length);
          std::vector<double> sums, weights;
          std::int64_t expected_held = 0;
          for (std::size_t i = 0; i < n; ++i) {
            sums.push_back(v::element<double>(random, what));
            const bool held = count % 2 == 0 || random.below(3) != 0;
            weights.push_back(held ? 0.25 * static_cast<double>(1 + random.below(40)) : 0);
            expected_held += held ? 1 : 0;
          }
          std::vector<T> out(n + 1, traits::store(77));
          CHECK(subfed::detail::divide_each(sums.data(), weights.data(), out.data(), length) ==
                expected_held);
          bool all = true;
          for (std::size_t i = 0; i < n; ++i) {
            volatile double mean = weights[i] > 0 ? sums[i] / weights[i] : 77;
            all = all && v::same(out[i], traits::store(mean));
          }
          CHECK(all);
          CHECK(v::same(out[n], traits::store(77)));
        });
  });
}

TEST_CASE_TEMPLATE("means of masked rows have the bits of the plain loop", T, float, half,
                   bfloat16) {
  namespace v = variant_tests;
  using traits = subfed::scalar_traits<T>;
  support::with_all_instructions([] {
    if (!subfed::detail::in_lanes<T>()) return;
    const auto one_case = [](v::numbers& random, std::int64_t size, std::size_t count,
                             v::content what, bool ones) {
      const auto n = static_cast<std::size_t>(size);
      const auto blocks = (n + 15) / 16;
      // What each holder has, with density 1, 1/2, 1/4, ..
      std::vector<std::vector<T>> data(count);
      std::vector<std::vector<std::uint16_t>> masks(count);
      std::vector<std::vector<std::int32_t>> starts(count);
      std::vector<double> sums(n, -0.0), weights(n, 0.0);
      std::vector<int> holders(n, 0);
      for (std::size_t h = 0; h < count; ++h) {
        const double weight = ones ? 1 : static_cast<double>(h + 1) / 3;
        masks[h].assign(blocks, 0);
        for (std::size_t i = 0; i < n; ++i) {
          if (i % 16 == 0) starts[h].push_back(static_cast<std::int32_t>(data[h].size()));
          if (random.below(std::uint64_t{1} << (h % 4)) != 0) continue;
          masks[h][i / 16] = static_cast<std::uint16_t>(masks[h][i / 16] | 1u << (i % 16));
          data[h].push_back(v::element<T>(random, what));
          volatile double product = weight * traits::load(data[h].back());
          volatile double sum = sums[i] + product;
          sums[i] = sum;
          weights[i] += weight;
          ++holders[i];
        }
      }
      std::vector<subfed::detail::masked_holder<T>> rows;
      std::size_t full = 0;
      for (std::size_t h = 0; h < count; ++h) {
        rows.push_back({data[h].data(), masks[h].data(), starts[h].data(),
                        static_cast<std::int64_t>(data[h].size()),
                        ones ? 1 : static_cast<double>(h + 1) / 3, data[h].size() == n});
        full += rows.back().has_all ? 1u : 0u;
      }
      double reciprocals[16] = {1};
      for (int k = 1; k < 16; ++k) reciprocals[k] = 1.0 / k;
      std::vector<T> out, before;
      for (std::size_t i = 0; i <= n; ++i) {
        before.push_back(v::element<T>(random, v::content::any_bits));
      }
      out = before;
      const bool looked_up = count < 16 && random.below(2) == 0;
      const std::int64_t held = subfed::detail::masked_mean(
          subfed::detail::masked_row<T>{rows.data(), rows.size(), full, ones,
                                        looked_up ? reciprocals : nullptr, out.data(), size});
      bool all = true;
      std::int64_t expected_held = 0;
      for (std::size_t i = 0; i < n; ++i) {
        if (holders[i] == 0) {
          all = all && std::memcmp(&out[i], &before[i], sizeof(T)) == 0;
          continue;
        }
        ++expected_held;
        volatile double mean = sums[i] / weights[i];
        all = all && v::same(out[i], traits::store(mean));
      }
      CHECK(all);
      CHECK(held == expected_held);
      CHECK(std::memcmp(&out[n], &before[n], sizeof(T)) == 0);

      // From the sums, without data.
      const std::vector<T> averaged = out;
      out = before;
      std::vector<subfed::detail::masked_holder<T>> without_data = rows;
      for (auto& own : without_data) own.data = nullptr;
      CHECK(subfed::detail::divide_masked(
                subfed::detail::masked_row<T>{without_data.data(), rows.size(), full, ones, nullptr,
                                              out.data(), size},
                sums.data()) == expected_held);
      all = true;
      for (std::size_t i = 0; i <= n; ++i) all = all && v::same(out[i], averaged[i]);
      CHECK(all);

      // One holder's elements as a dense row.
      all = true;
      for (std::size_t h = 0; h < count; ++h) {
        std::vector<float> dense(16 * blocks, 77.0f);
        subfed::detail::spread_masked(rows[h], size, dense.data());
        std::size_t next = 0;
        for (std::size_t i = 0; i < n; ++i) {
          const bool has = (masks[h][i / 16] >> (i % 16) & 1) != 0;
          all = all &&
                v::same(dense[i], has ? static_cast<float>(traits::load(data[h][next++])) : -0.0f);
        }
      }
      CHECK(all);
    };
    v::for_each_case(one_case);
    v::numbers random{8};
    for (const std::int64_t size : {9, 256, 300, 521}) {
      for (const std::size_t count : {64u, 65u, 150u}) {  // more than are added at a time
        CAPTURE(size);
        CAPTURE(count);
        for (const v::content what :
             {v::content::ordinary, v::content::small, v::content::any_bits}) {
          for (const bool ones : {false, true}) one_case(random, size, count, what, ones);
        }
      }
    }
  });
}

TEST_CASE_TEMPLATE("means of rows with one pattern have the bits of the plain loop", T, float, half,
                   bfloat16) {
  namespace v = variant_tests;
  using traits = subfed::scalar_traits<T>;
  support::with_all_instructions([] {
    if (!subfed::detail::in_lanes<T>()) return;
    v::for_each_case([](v::numbers& random, std::int64_t size, std::size_t count, v::content what,
                        bool ones) {
      const std::int64_t rows = random.below(2) == 0 ? 6 : 21;
      const auto n = static_cast<std::size_t>(size);
      const auto n_rows = static_cast<std::size_t>(rows);
      const auto blocks = (n + 15) / 16;
      std::vector<std::uint16_t> columns;
      std::vector<std::size_t> begins{0};
      std::vector<std::vector<subfed::detail::masked_part>> parts(blocks);
      std::vector<std::uint16_t> held(blocks, 0);
      std::vector<double> sums(n * n_rows, -0.0), weights(16 * blocks, 0.0), own_weights;
      std::vector<std::vector<T>> data(count);
      std::vector<std::int64_t> strides, end_strides;
      for (std::size_t h = 0; h < count; ++h) {
        own_weights.push_back(ones ? 1 : static_cast<double>(h + 1) / 3);
        // The holder's second half comes first in its data, so that blocks may have two parts of it.
        std::vector<std::int64_t> position(n, -1);
        std::int64_t next = 0;
        const std::size_t half_way = h % 3 == 1 ? random.below(n + 1) : 0;
        for (std::size_t k = 0; k < n; ++k) {
          const std::size_t i = (k + half_way) % n;
          if (random.below(std::uint64_t{1} << (h % 4)) == 0) position[i] = next++;
        }
        for (std::size_t i = 0; i < n; ++i) {
          if (position[i] < 0) continue;
          auto& of_block = parts[i / 16];
          const auto bit = static_cast<std::uint16_t>(1u << (i % 16));
          const auto number = static_cast<std::int32_t>(h);
          if (of_block.empty() || of_block.back().holder != number ||
              of_block.back().start + std::popcount(of_block.back().mask) != position[i]) {
            of_block.push_back({number, static_cast<std::int32_t>(position[i]), 0});
          }
          auto& mask = of_block.back().mask;
          mask = static_cast<std::uint16_t>(mask | bit);
          held[i / 16] = static_cast<std::uint16_t>(held[i / 16] | bit);
          weights[i] += own_weights[h];
        }
        columns.resize(begins.back() + static_cast<std::size_t>(next));
        for (std::size_t i = 0; i < n; ++i) {
          if (position[i] < 0) continue;
          columns[begins.back() + static_cast<std::size_t>(position[i])] =
              static_cast<std::uint16_t>(i);
        }
        begins.push_back(columns.size());
        const bool has_gaps = random.below(2) == 0;
        const std::int64_t stride = next + (has_gaps ? 3 : 0);
        for (std::int64_t k = 0; k < stride * (rows - 1) + next; ++k) {
          data[h].push_back(v::element<T>(random, what));
        }
        for (std::size_t i = 0; i < n * n_rows; ++i) {
          const std::int64_t at = position[i % n];
          if (at < 0) continue;
          const auto row = static_cast<std::int64_t>(i / n);
          volatile double product =
              own_weights[h] * traits::load(data[h][static_cast<std::size_t>(row * stride + at)]);
          volatile double sum = sums[i] + product;
          sums[i] = sum;
        }
        strides.push_back(stride);
        end_strides.push_back(has_gaps ? stride : 0);
      }
      std::vector<subfed::detail::masked_part> all_parts;
      std::vector<std::int32_t> block_parts;
      for (const auto& each : parts) {
        all_parts.insert(all_parts.end(), each.begin(), each.end());
        block_parts.push_back(static_cast<std::int32_t>(each.size()));
      }
      const std::vector<double> column_weights = weights;
      std::vector<double> reciprocals;
      for (double& weight : weights) {
        if (!(weight > 0)) weight = 1;
        reciprocals.push_back(1 / weight);
      }
      std::vector<const T*> starts, ends;
      for (std::size_t h = 0; h < count; ++h) {
        starts.push_back(data[h].data());
        const std::int64_t row_end =
            static_cast<std::int64_t>(data[h].size()) - strides[h] * (rows - 1);
        ends.push_back(data[h].data() +
                       (end_strides[h] != 0 ? row_end : static_cast<std::int64_t>(data[h].size())));
      }
      std::vector<T> before;
      for (std::size_t i = 0; i < (n + 2) * n_rows; ++i) {
        before.push_back(v::element<T>(random, v::content::any_bits));
      }
      const division how =
          random.below(2) == 0 ? division::by_reciprocal : division::by_instruction;
      const auto check_means = [&](auto&& means_of) {
        std::vector<T> out = before;
        std::vector<const T*> row_starts = starts, row_ends = ends;
        means_of(subfed::detail::pattern_holders<T>{count, row_starts.data(), strides.data(),
                                                    row_ends.data(), end_strides.data(),
                                                    own_weights.data()},
                 subfed::detail::pattern_rows<T>{out.data(), size + 2, rows});
        bool all = true;
        for (std::size_t i = 0; i < (n + 2) * n_rows; ++i) {
          const std::size_t row = i / (n + 2), column = i % (n + 2);
          if (column >= n || (held[column / 16] >> (column % 16) & 1) == 0) {
            all = all && std::memcmp(&out[i], &before[i], sizeof(T)) == 0;
            continue;
          }
          volatile double mean = sums[row * n + column] / weights[column];
          all = all && v::same(out[i], traits::store(mean));
        }
        CHECK(all);
      };
      check_means([&](const auto& holders, const auto& out) {
        subfed::detail::pattern_mean(
            subfed::detail::masked_pattern{all_parts.data(), block_parts.data(), held.data(),
                                           weights.data(), reciprocals.data(), blocks, ones, how},
            holders, out);
      });
      for (const std::int64_t tile_rows : {8, 16}) {
        std::vector<double> tile(n * static_cast<std::size_t>(tile_rows));
        check_means([&](const auto& holders, const auto& out) {
          subfed::detail::columns_mean(
              subfed::detail::column_pattern{columns.data(), begins.data(), column_weights.data(),
                                             size, tile.data(), tile_rows, ones, how},
              holders, out);
        });
      }
    });
  });
}

TEST_CASE_TEMPLATE("16-bit numbers are converted as format16 does, all of them", T, half,
                   bfloat16) {
  using traits = subfed::scalar_traits<T>;
  std::vector<T> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i) all[i].bits = static_cast<std::uint16_t>(i);
  const stream<T> one{all.data(), 1};
  support::with_all_instructions([&] {
    if (!subfed::detail::in_lanes<T>()) return;
    std::vector<double> sums(all.size());
    subfed::detail::add_streams(&one, 1, true, nullptr, sums.data(), 1 << 16);
    bool loads = true;
    for (std::size_t i = 0; i < all.size(); ++i) {
      loads = loads && variant_tests::same(sums[i], -0.0 + traits::load(all[i]));
    }
    CHECK(loads);
    // Every number, what lies between it and the next, and their neighbours.
    std::vector<double> values;
    for (std::size_t i = 0; i + 1 < all.size(); ++i) {
      const double x = traits::load(all[i]);
      const double middle = x + (traits::load(all[i + 1]) - x) / 2;
      for (const double y : {x, middle}) {
        for (const double z : {y, std::nextafter(y, 1e300), std::nextafter(y, -1e300)}) {
          values.push_back(z);
        }
      }
    }
    for (const double x :
         {1e300, -1e300, 5e-324, -5e-324, 3.5e38, 1e-46, -1e-40, 65519.999, 65520.0}) {
      values.push_back(x);
    }
    std::vector<T> out(values.size());
    subfed::detail::mean_streams<T>(nullptr, 0, true, values.data(), divider(1),
                                    division::by_instruction, out.data(),
                                    static_cast<std::int64_t>(values.size()));
    bool stores = true;
    for (std::size_t i = 0; i < values.size(); ++i) {
      stores = stores && out[i] == traits::store(values[i]);
    }
    CHECK(stores);
  });
}

TEST_CASE("a quotient by the reciprocal is the nearest double") {
  variant_tests::numbers random{3};
  support::with_all_instructions([&] {
    if (!subfed::detail::in_lanes<float>()) return;
    for (int n = 1; n < 2000; ++n) {
      const double weight = n < 1000 ? n : static_cast<double>(random.bits()) * 0x1p-60;
      std::vector<double> sums;
      for (int i = 0; i < 64; ++i) {
        const auto digits = static_cast<double>(random.bits() >> 11);
        sums.push_back(std::ldexp(digits, static_cast<int>(random.below(200)) - 150));
        if (i % 8 == 0) sums.back() = 0;
        if (i % 3 == 0) sums.back() = -sums.back();
      }
      // As doubles, before they are rounded to float.
      std::vector<double> out(sums.size());
      subfed::detail::mean_streams<double>(nullptr, 0, true, sums.data(), divider(weight),
                                           division::by_reciprocal, out.data(), 64);
      bool all = true;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        volatile double mean = sums[i] / weight;
        all = all && variant_tests::same(out[i], double{mean});
      }
      CHECK(all);
    }
  });
}

#endif

TEST_CASE_TEMPLATE("one pass equals the dense loop with all instructions", T, float, double, half,
                   bfloat16) {
  const auto at_once = [](const auto& net, const auto& updates, const auto& globals,
                          const subfed::average_options& options) {
    return support::at_once(net, updates, globals, options);
  };
  support::with_all_instructions([&] {
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      support::check_against_oracle<T>(700 + seed, {}, at_once);
      support::check_against_oracle<T>(800 + seed, {}, at_once, {support::large_network, 13});
    }
  });
}

TEST_CASE_TEMPLATE("rows of windows and of random sets have the bits of the baseline", T, float,
                   half, bfloat16) {
  using namespace subfed;
  model net;
  const group_id words = net.group("words", 37, cut::never);
  const group_id width = net.group("width", 101);
  const group_id hidden = net.group("hidden", 40);
  net.tensor("embedding", {words, width});
  net.tensor("layer", {hidden, width});
  variant_tests::numbers random{11};
  const auto check = [&](bool all_random, std::uint64_t clients) {
    std::vector<std::vector<T>> data;
    std::vector<update<T>> updates;
    for (std::uint64_t c = 0; c < clients; ++c) {
      const draw_key key{3, 90, c, 1.0 / static_cast<double>(1 << (c % 4))};  // windows wrap
      const submodel sub =
          all_random || c % 3 == 0 ? draw(net, random_subset{}, key) : draw(net, rolling{}, key);
      const double weight = all_random ? 1 : static_cast<double>(1 + random.below(9));
      auto& own = data.emplace_back();
      for (std::int64_t i = 0; i < sub.size(); ++i) {
        own.push_back(variant_tests::element<T>(random, variant_tests::content::ordinary));
      }
      const auto first = sub.extents(tensor_id(0)), second = sub.extents(tensor_id(1));
      const T* const layer = own.data() + first[0] * first[1];
      updates.push_back(
          {sub,
           {tensor_view<const T>(own.data(), first), tensor_view<const T>(layer, second)},
           weight});
    }
    std::vector<std::vector<T>> results;
    support::with_all_instructions([&] {
      std::vector<T> global((37 + 40) * 101, scalar_traits<T>::store(7));
      const std::vector<std::int64_t> first{37, 101}, second{40, 101};
      average_cohort<T>(
          net, updates,
          {tensor_view<T>(global.data(), first), tensor_view<T>(global.data() + 37 * 101, second)});
      results.push_back(global);
    });
    for (const auto& each : results) {
      CHECK(std::memcmp(each.data(), results[0].data(), each.size() * sizeof(T)) == 0);
    }
  };
  for (const bool all_random : {false, true}) {  // some have all, with weights of 1
    check(all_random, 12);
    check(all_random, 170);  // more than are summed by masks
  }
}
