// SPDX-License-Identifier: MIT
/// Rows that are collected before they are written arrive as the plain loop copies them, and nothing beside
/// them is touched.
#include <subfed/detail/staged_rows.hpp>

#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/slice.hpp>
#include <support/instructions.hpp>
#include <support/views.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

using subfed::index_set;
using subfed::selected_dimension;
using subfed::selection;
using subfed::tensor_view;
using subfed::detail::copy_staged_rows;
using subfed::detail::loop_nest;
using subfed::detail::placement;
using subfed::detail::staged_writes;

namespace {

namespace staged_rows_tests {

support::seeded numbers(9);
std::uint64_t below(std::uint64_t n) { return numbers.next() % n; }

/// Elements of N bytes.
template <std::size_t N>
struct bytes {
  std::byte of[N];
  bool operator==(const bytes&) const = default;
};

/// Nodes of one dimension: all, a window that may wrap around, some at random, or these in any order.
index_set nodes(std::int64_t extent, int kind) {
  const auto all = static_cast<std::uint64_t>(extent);
  if (kind == 0) return index_set::full(extent);
  if (kind == 1) {
    return index_set::window(extent, static_cast<std::int64_t>(below(all)),
                             static_cast<std::int64_t>(1 + below(all)));
  }
  std::vector<std::int64_t> list;
  for (std::int64_t i = 0; i < extent; ++i) {
    if (below(3) == 0 || (i + 1 == extent && list.empty())) list.push_back(i);
  }
  if (kind == 3) {
    for (std::size_t i = list.size(); i > 1; --i) std::swap(list[i - 1], list[below(i)]);
  }
  return index_set(extent, list);
}

/// gap: elements between rows of the result.
template <class E>
bool check_copy(const index_set& rows, const index_set& columns, std::int64_t unit,
                std::int64_t gap) {
  const selection chosen{{selected_dimension(rows), selected_dimension(columns),
                          selected_dimension(index_set::full(unit))}};
  const std::int64_t row = columns.size() * unit;
  std::vector<E> global(static_cast<std::size_t>(rows.extent() * columns.extent() * unit));
  for (E& x : global) {
    for (std::byte& b : x.of) b = static_cast<std::byte>(below(256));
  }
  const E nothing{};
  const std::size_t shift = below(70);  // the result begins anywhere
  std::vector<E> local(shift + static_cast<std::size_t>(rows.size() * (row + gap)) + 3, nothing);
  std::vector<E> expected = local;
  for (std::int64_t p = 0; p < rows.size(); ++p) {
    for (std::int64_t q = 0; q < columns.size(); ++q) {
      for (std::int64_t k = 0; k < unit; ++k) {
        const std::int64_t from = (rows[p] * columns.extent() + columns[q]) * unit + k;
        expected[shift + static_cast<std::size_t>(p * (row + gap) + q * unit + k)] =
            global[static_cast<std::size_t>(from)];
      }
    }
  }
  const std::vector<std::int64_t> local_strides{row + gap, unit, 1};
  const std::vector<std::int64_t> global_strides{columns.extent() * unit, unit, 1};
  const loop_nest walk(chosen, global_strides.data(), local_strides.data());
  const std::int64_t steps = walk.outer_steps();
  const auto middle = static_cast<std::int64_t>(below(static_cast<std::uint64_t>(steps) + 1));
  bool all = true;
  for (const auto& [begin, end] : {std::pair{std::int64_t{0}, middle}, std::pair{middle, steps}}) {
    all = copy_staged_rows(walk, begin, end, global.data(), local.data() + shift,
                           placement::memory) &&
          all;
  }
  if (all) CHECK(local == expected);
  return all;
}

}  // namespace staged_rows_tests

}  // namespace

TEST_CASE("bytes arrive where they belong, in any pieces") {
  std::vector<std::byte> to(100000, std::byte{0}), expected = to;
  {
    staged_writes writes;
    std::size_t at = 5;
    for (std::size_t i = 0; at + 3000 < to.size(); ++i) {
      const std::size_t size =
          i % 7 == 0 ? 0 : 1 + staged_rows_tests::below(i % 5 == 0 ? 3000 : 40);
      std::byte* const here = writes.place(to.data() + at, size);
      for (std::size_t k = 0; k < size; ++k) {
        here[k] = expected[at + k] = static_cast<std::byte>(1 + staged_rows_tests::below(255));
      }
      at += size;
      if (i % 11 == 0) at += staged_rows_tests::below(200);  // a gap
    }
    std::byte* const back = writes.place(to.data(), 5);  // and back to the start
    for (std::size_t k = 0; k < 5; ++k) back[k] = expected[k] = std::byte{7};
  }
  CHECK(to == expected);
  // The largest piece, twice.
  std::vector<std::byte> large(2 * staged_writes::most + 1, std::byte{0});
  {
    staged_writes writes;
    for (const std::size_t first : {std::size_t{1}, staged_writes::most + 1}) {
      std::memset(writes.place(large.data() + first, staged_writes::most), 9, staged_writes::most);
    }
  }
  CHECK(large[0] == std::byte{0});
  CHECK(std::vector<std::byte>(large.begin() + 1, large.end()) ==
        std::vector<std::byte>(2 * staged_writes::most, std::byte{9}));
}

TEST_CASE("rows of windows and of sets in any order are copied as the plain loop does") {
  if (!subfed::detail::bypasses_cache) return;
  support::with_all_instructions([] {
    int copied = 0;
    for (int i = 0; i < 150; ++i) {
      CAPTURE(i);
      const index_set rows = staged_rows_tests::nodes(60, i % 4);
      const index_set columns = staged_rows_tests::nodes(
          static_cast<std::int64_t>(2 + staged_rows_tests::below(150)), i / 4 % 4);
      const std::int64_t unit = i % 3 == 0 ? 9 : 1;
      const std::int64_t gap = i % 5 == 0 ? 2 : 0;
      copied +=
          staged_rows_tests::check_copy<staged_rows_tests::bytes<1>>(rows, columns, unit, gap);
      copied +=
          staged_rows_tests::check_copy<staged_rows_tests::bytes<2>>(rows, columns, unit, gap);
      copied +=
          staged_rows_tests::check_copy<staged_rows_tests::bytes<4>>(rows, columns, unit, gap);
      copied +=
          staged_rows_tests::check_copy<staged_rows_tests::bytes<8>>(rows, columns, unit, gap);
    }
    CHECK(copied > 300);
  });
}

TEST_CASE("long runs, long rows and small results are left to others") {
  std::vector<float> memory(1 << 16);
  const auto applies = [&](std::int64_t columns, std::int64_t held, placement where) {
    const selection chosen{{selected_dimension(index_set::full(4)),
                            selected_dimension(index_set::window(columns, 1, held))}};
    const std::vector<std::int64_t> global_strides{columns, 1}, local_strides{held, 1};
    const loop_nest walk(chosen, global_strides.data(), local_strides.data());
    return copy_staged_rows(walk, 0, 4, memory.data(), memory.data() + (1 << 15), where);
  };
  CHECK(applies(300, 255, placement::memory) == subfed::detail::bypasses_cache);
  CHECK_FALSE(applies(300, 256, placement::memory));
  CHECK_FALSE(applies(300, 255, placement::cached));
}

TEST_CASE("slices of large embeddings equal the plain loop, in both forms") {
  subfed::model net;
  const subfed::group_id width = net.group("width", 70);
  constexpr std::int64_t rows[] = {49990, 1000};  // a large one, and one that is not small
  std::vector<subfed::tensor_id> tables;
  std::vector<std::vector<float>> globals;
  for (const std::int64_t n : rows) {
    tables.push_back(net.tensor("table" + std::to_string(n), {n, width}));
    globals.emplace_back(static_cast<std::size_t>(n * 70));
    for (std::size_t i = 0; i < globals.back().size(); ++i) {
      globals.back()[i] = static_cast<float>(i);
    }
  }
  const auto check = [&](const subfed::submodel& sub) {
    std::vector<std::vector<float>> one(2), all(2), expected(2);
    std::vector<tensor_view<const float>> from;
    std::vector<tensor_view<float>> to;
    std::vector<std::vector<std::int64_t>> extents, local_extents;
    for (std::size_t t = 0; t < 2; ++t) {
      extents.push_back({rows[t], 70});
      local_extents.push_back(sub.extents(tables[t]));
    }
    for (std::size_t t = 0; t < 2; ++t) {
      for (std::int64_t r = 0; r < rows[t]; ++r) {
        for (const std::int64_t c : sub[width]) {
          expected[t].push_back(globals[t][static_cast<std::size_t>(r * 70 + c)]);
        }
      }
      expected[t].push_back(-1);
      one[t].assign(expected[t].size(), -1);
      all[t] = one[t];
      from.emplace_back(globals[t].data(), extents[t]);
      to.emplace_back(all[t].data(), local_extents[t]);
      subfed::slice(from[t], sub[tables[t]], tensor_view<float>(one[t].data(), local_extents[t]));
    }
    CHECK(expected[0].size() * sizeof(float) >= subfed::detail::past_cache_bytes);
    CHECK(expected[1].size() * sizeof(float) >= subfed::detail::small_tensor_bytes);
    subfed::slice<float>(from, sub, to);
    CHECK(one == expected);
    CHECK(all == expected);
  };
  check(subfed::draw(net, subfed::rolling{}, {.round = 50, .capacity = 0.6}));  // wraps
  check(subfed::draw(net, subfed::random_subset{}, {.round = 50, .capacity = 0.6}));
}
