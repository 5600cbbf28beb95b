// SPDX-License-Identifier: MIT
/// Short runs of an update as dense rows, and the masks that they are spread by.
#include <subfed/average/detail/dense_row.hpp>
#include <subfed/scalar.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>
#include <support/instructions.hpp>
#include <support/views.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace dense_row_tests {

using subfed::detail::dense_row;
using subfed::detail::loop_nest;
using subfed::detail::row_spread;

/// A matrix of which all rows are selected, and runs of each row.
subfed::selection of_rows(std::int64_t rows, std::int64_t extent,
                          const std::vector<subfed::run>& runs) {
  std::int64_t selected = 0;
  for (const subfed::run& r : runs) selected += r.length;
  return subfed::selection({{rows, rows, {{0, 0, rows}}}, {extent, selected, runs}});
}

/// Random runs, in ascending order.
std::vector<subfed::run> random_runs(support::seeded& random, std::int64_t extent,
                                     std::int64_t longest) {
  std::vector<subfed::run> out;
  std::int64_t position = 0;
  for (std::int64_t at = random.between(0, 3); at < extent;) {
    const std::int64_t length = (std::min)(random.between(1, longest), extent - at);
    out.push_back({position, at, length});
    position += length;
    at += length + random.between(1, longest);
  }
  return out;
}

}  // namespace dense_row_tests

TEST_CASE("masks say which elements of a row are there, and how many come before") {
  const std::vector<subfed::run> runs{{0, 1, 2}, {2, 5, 4}};
  const auto masks = subfed::detail::masks_of(runs, 9, 3);
  CHECK(masks.size == 18);
  REQUIRE(masks.masks.size() == 2);
  CHECK(masks.masks[0] == 0b1000'0001'1111'1000);
  CHECK(masks.masks[1] == 0b0000'0111'1111'1111);
  CHECK(masks.starts == std::vector<std::int32_t>{0, 7});
  // What is not in ascending order has none, and neither has what is too long.
  CHECK(subfed::detail::masks_of(std::vector<subfed::run>{{4, 1, 2}, {0, 5, 4}}, 9, 3).empty());
  CHECK(subfed::detail::masks_of(std::vector<subfed::run>{{0, 5, 4}, {4, 1, 2}}, 9, 3).empty());
  CHECK(subfed::detail::masks_of(runs, std::int64_t{1} << 29, 3).empty());
}

TEST_CASE_TEMPLATE("a dense row has each element where it belongs, and -0 elsewhere", T, float,
                   double, subfed::half, subfed::bfloat16) {
  namespace d = dense_row_tests;
  using traits = subfed::scalar_traits<T>;
  support::with_all_instructions([] {
    support::seeded random(11);
    int applied = 0;
    for (int repeat = 0; repeat < 40; ++repeat) {
      const std::int64_t rows = random.between(4, 6);
      const std::int64_t extent = random.between(3, 90);
      const std::vector<subfed::run> runs = d::random_runs(random, extent, random.between(1, 4));
      const subfed::selection chosen = d::of_rows(rows, extent, runs);
      const auto width = static_cast<std::size_t>(chosen.dimension(1).local_extent);
      std::vector<T> data;
      for (std::size_t i = 0; i < width * static_cast<std::size_t>(rows); ++i) {
        data.push_back(traits::store(static_cast<double>(i % 251) + 1));
      }
      const subfed::tensor_view<const T> local(data.data(),
                                               {rows, static_cast<std::int64_t>(width)});
      const std::vector<std::int64_t> extents{rows, extent};
      const d::loop_nest walk(chosen, extents, local);
      const auto by = d::row_spread::of<T>(walk);
      if (!by.applies()) continue;
      ++applied;
      d::dense_row<T> dense(by);
      const bool whole =
          random.one_in(2);  // what may be read ends with the tensor, or with the row
      walk.for_each_row_between(0, rows * extent, [&](std::int64_t g, std::int64_t l) {
        const T* const from = data.data() + l;
        dense(from, whole ? data.data() + data.size() : from + width,
              [&](const auto* row, std::int64_t length) {
                CHECK(g % extent == 0);
                REQUIRE(length == extent);
                using element = std::remove_cvref_t<decltype(*row)>;
                std::vector<double> expected(static_cast<std::size_t>(extent), -0.0);
                for (const subfed::run& r : runs) {
                  for (std::int64_t i = 0; i < r.length; ++i) {
                    expected[static_cast<std::size_t>(r.first + i)] =
                        traits::load(from[r.position + i]);
                  }
                }
                bool all = true;
                for (std::int64_t i = 0; i < extent; ++i) {
                  const double found = subfed::scalar_traits<element>::load(row[i]);
                  const double want = expected[static_cast<std::size_t>(i)];
                  all = all && found == want && std::signbit(found) == std::signbit(want);
                }
                CHECK(all);
              });
      });
    }
    CHECK((applied > 10 || sizeof(T) == 2));
  });
}

TEST_CASE("rows of long runs, of few runs and of gaps are added run after run") {
  namespace d = dense_row_tests;
  const auto applies = [](std::int64_t extent, const std::vector<subfed::run>& runs,
                          std::int64_t local_stride) {
    const subfed::selection chosen = d::of_rows(8, extent, runs);
    const std::int64_t width = chosen.dimension(1).local_extent;
    std::vector<float> data(static_cast<std::size_t>(8 * width * local_stride));
    const subfed::tensor_view<const float> local(data.data(), {8, width},
                                                 {width * local_stride, local_stride});
    const std::vector<std::int64_t> extents{8, extent};
    return d::row_spread::of<float>(d::loop_nest(chosen, extents, local)).applies();
  };
  const std::vector<subfed::run> three{{0, 1, 2}, {2, 5, 4}, {6, 10, 1}};
  CHECK(applies(12, three, 1));
  CHECK_FALSE(applies(12, three, 2));
  CHECK_FALSE(applies(12, {{0, 1, 2}, {2, 5, 4}}, 1));
  CHECK_FALSE(applies(300, three, 1));
}
