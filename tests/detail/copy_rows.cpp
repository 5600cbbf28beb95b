// SPDX-License-Identifier: MIT
/// Rows of short runs are copied as the plain loop copies them, with all instructions, and nothing beside
/// them is touched.
#include <subfed/detail/copy_rows.hpp>

#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/scatter.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/slice.hpp>
#include <support/instructions.hpp>
#include <support/views.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

using subfed::run;
using subfed::detail::row_units;

namespace {

namespace copy_rows_tests {

support::seeded numbers(5);
std::uint64_t below(std::uint64_t n) { return numbers.next() % n; }

/// Units of a row at random, one in `sparsity`.
std::vector<run> random_runs(std::int64_t units, std::int64_t unit, std::uint64_t sparsity) {
  std::vector<run> out;
  std::int64_t position = 0;
  for (std::int64_t u = 0; u < units; ++u) {
    if (below(sparsity) != 0) continue;
    if (!out.empty() && out.back().first + out.back().length == u * unit) {
      out.back().length += unit;
    } else {
      out.push_back({position, u * unit, unit});
    }
    position += unit;
  }
  return out;
}

void check_row(std::size_t element_size, std::int64_t units, std::int64_t unit,
               std::uint64_t sparsity) {
  const std::vector<run> runs = random_runs(units, unit, sparsity);
  const row_units rows(runs, units * unit, 100, element_size);
  if (!rows.apply()) return;
  const auto bytes = static_cast<std::size_t>(units * unit) * element_size;
  std::vector<std::byte> global(bytes), expected;
  for (std::byte& b : global) b = static_cast<std::byte>(below(256));
  for (const run& r : runs) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(r.length) * element_size; ++i) {
      expected.push_back(global[static_cast<std::size_t>(r.first) * element_size + i]);
    }
  }
  // Exactly as much memory as the rows have: sanitizers see what is beyond.
  std::vector<std::byte> local(expected.size());
  rows.copy_out(global.data(), local.data());
  CHECK(local == expected);
  std::vector<std::byte> back(bytes, std::byte{0xAB}), should(bytes, std::byte{0xAB});
  for (const run& r : runs) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(r.length) * element_size; ++i) {
      const std::size_t at = static_cast<std::size_t>(r.first) * element_size + i;
      should[at] = global[at];
    }
  }
  rows.copy_in(local.data(), back.data());
  CHECK(back == should);
}

}  // namespace copy_rows_tests

}  // namespace

TEST_CASE("rows of short runs are copied out and in, whatever their units") {
  support::with_all_instructions([] {
    for (const std::size_t element_size : {1u, 2u, 4u, 8u}) {
      for (const std::int64_t unit : {1, 2, 3, 5, 7, 9, 16, 25}) {
        for (const std::uint64_t sparsity : {2u, 3u, 10u}) {
          for (std::int64_t units = 5; units < 90; units += 4) {
            CAPTURE(element_size);
            CAPTURE(unit);
            CAPTURE(sparsity);
            CAPTURE(units);
            copy_rows_tests::check_row(element_size, units, unit, sparsity);
          }
        }
      }
    }
  });
}

TEST_CASE("they apply to many short runs in order alone") {
  const std::vector<run> runs = {{0, 1, 1}, {1, 4, 1}, {2, 6, 2}};
  CHECK(row_units(runs, 9, 100, 4).apply());
  CHECK_FALSE(row_units(runs, 9, 1, 4).apply());  // few rows
  CHECK_FALSE(row_units(std::vector<run>{{0, 0, 4}, {4, 6, 2}}, 9, 100, 4).apply());
  CHECK_FALSE(row_units(std::vector<run>{{1, 1, 1}, {0, 4, 1}, {2, 6, 2}}, 9, 100, 4).apply());
  CHECK_FALSE(
      row_units(std::vector<run>{{0, 0, 90}, {90, 100, 90}, {180, 200, 90}}, 300, 100, 4).apply());
}

TEST_CASE("slice and scatter of random sets with all instructions") {
  subfed::model net;
  const auto in = net.group("in", 203);
  const auto out = net.group("out", 37);
  net.tensor("linear", {out, in});
  net.tensor("kernels", {out, in, 3, 3});
  support::with_all_instructions([&] {
    for (const double capacity : {0.9, 0.5, 0.1}) {
      const auto sub =
          subfed::draw(net, subfed::random_subset{}, {.seed = 3, .capacity = capacity});
      for (const std::size_t t : {0u, 1u}) {
        const subfed::selection chosen = sub[subfed::tensor_id(t)];
        const auto& extents = net.tensors()[t].extents;
        std::int64_t size = 1;
        for (const std::int64_t e : extents) size *= e;
        std::vector<float> global(static_cast<std::size_t>(size));
        for (std::size_t i = 0; i < global.size(); ++i) global[i] = static_cast<float>(i);
        const subfed::tensor_view<float> from(global.data(), extents);
        std::vector<float> local;
        std::int64_t count = 1;
        for (const std::int64_t e : chosen.local_extents()) count *= e;
        local.resize(static_cast<std::size_t>(count));
        const subfed::tensor_view<float> to(local.data(), chosen.local_extents());
        subfed::slice(from, chosen, to);
        // The kernels are 9 in a row.
        const std::int64_t unit = extents.size() == 2 ? 1 : 9;
        std::size_t at = 0;
        bool all = true;
        for (const std::int64_t o : sub[out]) {
          for (const std::int64_t i : sub[in]) {
            for (std::int64_t k = 0; k < unit; ++k) {
              all = all && local[at++] == static_cast<float>((o * 203 + i) * unit + k);
            }
          }
        }
        CHECK(all);
        std::vector<float> other(global.size(), -1);
        subfed::scatter(to, chosen, subfed::tensor_view<float>(other.data(), extents));
        std::size_t written = 0;
        for (std::size_t i = 0; i < other.size(); ++i) {
          if (other[i] == -1) continue;
          all = all && other[i] == global[i];
          ++written;
        }
        CHECK(all);
        CHECK(written == local.size());
      }
    }
  });
}
