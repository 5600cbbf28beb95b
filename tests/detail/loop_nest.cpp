// SPDX-License-Identifier: MIT
// What slice and scatter do not show: how long the runs are.
#include <doctest/doctest.h>
#include <subfed/detail/loop_nest.hpp>
#include <support/checks.hpp>
#include <support/shapes.hpp>
#include <support/views.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

using subfed::index_set;
using subfed::selected_dimension;
using subfed::selection;
using subfed::tensor_view;
using subfed::detail::loop_nest;
using support::extents_type;

namespace {

/// Lengths of the runs of a selection of two tensors.
std::vector<std::int64_t> runs(const selection& chosen, const support::layout& global,
                               const support::layout& local) {
  float element = 0;
  const loop_nest walk(chosen, tensor_view<float>(&element, global.extents, global.strides),
                       tensor_view<float>(&element, local.extents, local.strides));
  std::vector<std::int64_t> out;
  walk.for_each([&](std::int64_t, std::int64_t, std::int64_t length) { out.push_back(length); });
  return out;
}

std::vector<std::int64_t> row_major_runs(const selection& chosen) {
  return runs(chosen, support::row_major(chosen.global_extents()),
              support::row_major(chosen.local_extents()));
}

using lengths = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("whole dimensions after a selected one make one run of elements a run of nodes") {
  const index_set whole3 = index_set::full(3);
  CHECK(row_major_runs({index_set::full(4), index_set::full(5), whole3}) == lengths{60});
  CHECK(row_major_runs({index_set::prefix(8, 2), index_set::full(5), whole3, whole3}) ==
        lengths{90});
  CHECK(row_major_runs({index_set::window(8, 6, 4), index_set::full(5)}) == lengths{10, 10});
  CHECK(row_major_runs({index_set::full(2), index_set::window(4, 3, 2), whole3}) ==
        lengths{3, 3, 3, 3});
  CHECK(row_major_runs({index_set::prefix(4, 2), index_set::prefix(4, 2), whole3, whole3}) ==
        lengths{18, 18});
  CHECK(row_major_runs({index_set(5, {4, 2, 3})}) == lengths{1, 2});
}

TEST_CASE("a column-major tensor is walked along its columns") {
  const selection chosen{index_set::prefix(6, 4), index_set::full(5)};
  CHECK(runs(chosen, support::column_major({6, 5}), support::column_major({4, 5})) ==
        lengths{4, 4, 4, 4, 4});
  const selection columns{index_set::full(6), index_set::prefix(5, 3)};
  CHECK(runs(columns, support::column_major({6, 5}), support::column_major({6, 3})) == lengths{18});
}

TEST_CASE("gaps in either tensor end a run") {
  const selection all{index_set::full(3), index_set::full(4)};
  const support::layout packed = support::row_major({3, 4});
  const support::layout gaps = support::make_layout({3, 4}, {0, 1}, {2, 1}, {1, 1});
  CHECK(runs(all, packed, packed) == lengths{12});
  CHECK(runs(all, packed, gaps) == lengths{4, 4, 4});
  CHECK(runs(all, gaps, packed) == lengths{4, 4, 4});
  CHECK(runs(all, gaps, gaps) == lengths{4, 4, 4});
}

TEST_CASE("dimensions of one node need no loop, an empty selection no call") {
  CHECK(row_major_runs({}) == lengths{1});
  CHECK(row_major_runs({index_set(5, {3}), index_set(4, {1}), index_set::full(3)}) == lengths{3});
  CHECK(row_major_runs({index_set(5, {3}), index_set(4, {1})}) == lengths{1});
  CHECK(row_major_runs({index_set(5, {}), index_set::full(4)}) == lengths{});
  CHECK(row_major_runs({index_set::full(5), index_set()}) == lengths{});
}

TEST_CASE("every pair is visited once, by tensors and by the shape of a packed global tensor") {
  support::for_all("loop_nest", [] {
    const auto extents = *support::gen_extents(4);
    std::vector<selected_dimension> dimensions;
    std::vector<std::vector<std::int64_t>> nodes;
    extents_type local_extents;
    for (const std::int64_t extent : extents) {
      nodes.push_back(*support::gen_nodes(extent));
      dimensions.emplace_back(index_set(extent, nodes.back()));
      local_extents.push_back(static_cast<std::int64_t>(nodes.back().size()));
    }
    const selection chosen(dimensions);
    const support::layout local = *support::gen_layout(local_extents);
    float element = 0;
    const tensor_view<float> local_view(&element, local_extents, local.strides);

    const auto visited_by = [](const loop_nest& walk) {
      std::multimap<std::int64_t, std::int64_t> out;  // local offset -> global offset
      walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i) {
          out.emplace(l + i * walk.local_stride(), g + i * walk.global_stride());
        }
      });
      return out;
    };
    const auto expected_for = [&](const support::layout& global) {
      std::multimap<std::int64_t, std::int64_t> out;
      for (const auto& index : support::all_indices(local_extents)) {
        support::index_type at;
        for (std::size_t r = 0; r < index.size(); ++r) {
          at.push_back(nodes[r][static_cast<std::size_t>(index[r])]);
        }
        out.emplace(local.offset(index) - local.origin, global.offset(at) - global.origin);
      }
      return out;
    };
    const support::layout global = *support::gen_source_layout(extents);
    const tensor_view<float> global_view(&element, extents, global.strides);
    RC_ASSERT(visited_by(loop_nest(chosen, global_view, local_view)) == expected_for(global));
    RC_ASSERT(visited_by(loop_nest(chosen, extents, local_view)) ==
              expected_for(support::row_major(extents)));
  });
}

TEST_CASE("strides of an empty tensor are never multiplied, those of bytes not beyond 64 bits") {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const selection empty{index_set(std::int64_t{1} << 40, {(std::int64_t{1} << 40) - 1}),
                        index_set(5, {}), index_set::full(3)};
  for (const std::int64_t stride : {most, least, std::int64_t{-1}}) {
    const std::int64_t strides[] = {stride, stride, stride};
    const loop_nest walk(empty, strides, strides);
    CHECK(walk.outer_steps() == 0);
  }
  // Whole rows of bytes that are 2^62 apart: 2 * 2^62 elements a row would be 2^63.
  const std::int64_t far = std::int64_t{1} << 62;
  const std::int64_t apart[] = {1, far};
  const std::int64_t packed[] = {1, 2};
  const loop_nest walk({index_set::full(2), index_set::full(2)}, apart, packed);
  std::int64_t pairs = 0;
  walk.for_each(0, 1, [&](std::int64_t, std::int64_t, std::int64_t length) { pairs += length; });
  CHECK(pairs == 2);
}
