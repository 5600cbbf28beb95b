// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/scalar.hpp>
#include <subfed/slice.hpp>
#include <support/checks.hpp>
#include <support/far_memory.hpp>
#include <support/shapes.hpp>
#include <support/views.hpp>

#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

using subfed::index_set;
using subfed::selected_dimension;
using subfed::selection;
using subfed::slice;
using subfed::tensor_view;
using support::extents_type;
using support::message_of;
using support::strided;

namespace {

template <class T>
std::vector<T> counting(std::size_t n) {
  std::vector<T> out(n);
  for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<T>(i);
  return out;
}

/// Slices an array of counting numbers of a shape into a packed vector.
std::vector<int> sliced(const extents_type& extents, const selection& chosen) {
  const auto global = counting<int>(static_cast<std::size_t>(support::elements_of(extents)));
  const extents_type local_extents = chosen.local_extents();
  std::vector<int> local(static_cast<std::size_t>(support::elements_of(local_extents)), -1);
  slice(tensor_view<const int>(global.data(), extents), chosen,
        tensor_view<int>(local.data(), local_extents));
  return local;
}

}  // namespace

TEST_CASE("the top left corner of a 4 x 3 matrix") {
  CHECK(sliced({4, 3}, {index_set::prefix(4, 2), index_set::prefix(3, 2)}) ==
        std::vector<int>{0, 1, 3, 4});
}

TEST_CASE("rows and columns come in the order of their sets") {
  CHECK(sliced({3}, {index_set(3, {2, 0})}) == std::vector<int>{2, 0});
  CHECK(sliced({2, 3}, {index_set(2, {1}), index_set(3, {2, 0})}) == std::vector<int>{5, 3});
  CHECK(sliced({3, 4}, {index_set(3, {1, 2}), index_set(4, {2, 3})}) ==
        std::vector<int>{6, 7, 10, 11});
  CHECK(sliced({3, 2}, {index_set::window(3, 2, 2), index_set(2, {1, 0})}) ==
        std::vector<int>{5, 4, 1, 0});
}

TEST_CASE("a channel before a flatten takes its pixels along, channels first or last") {
  // C = 4, H W = 4, kept channels {3, 0}, of the row 0 .. 15.
  const index_set kept(4, {3, 0});
  CHECK(sliced({4, 4}, {kept, index_set::full(4)}) == std::vector<int>{12, 13, 14, 15, 0, 1, 2, 3});
  CHECK(sliced({4, 4}, {index_set::full(4), kept}) == std::vector<int>{3, 0, 7, 4, 11, 8, 15, 12});
  CHECK(sliced({4, 1}, {kept, index_set::full(1)}) == std::vector<int>{3, 0});
}

TEST_CASE("rank 0 and empty shapes go through") {
  const std::int64_t seven = 7;
  std::int64_t copy = 0;
  slice(tensor_view<const std::int64_t>(&seven, extents_type{}), selection(),
        tensor_view<std::int64_t>(&copy, extents_type{}));
  CHECK(copy == 7);
  CHECK(sliced({0}, {index_set()}).empty());
  CHECK(sliced({3, 2}, {index_set(3, {}), index_set::full(2)}).empty());
  CHECK(sliced({0, 2}, {index_set(), index_set::prefix(2, 1)}).empty());
  CHECK(sliced({1, 1, 1}, {index_set::full(1), index_set::full(1), index_set::full(1)}) ==
        std::vector<int>{0});
}

TEST_CASE("a source may be reversed or broadcast") {
  int buffer[] = {1, 2, 3, 4};
  int two[2] = {};
  const selection first_and_third{index_set(4, {0, 2})};
  slice(tensor_view<int>(buffer + 3, {4}, {-1}), first_and_third, tensor_view<int>(two, {2}));
  CHECK(two[0] == 4);
  CHECK(two[1] == 2);
  int base = 1;
  slice(tensor_view<int>(&base, {3}, {0}), {index_set(3, {0, 2})}, tensor_view<int>(two, {2}));
  CHECK(two[0] == 1);
  CHECK(two[1] == 1);
}

TEST_CASE("every element is the one that the definition says, and no other place is written to") {
  support::for_all("slice", [] {
    const auto extents = *support::gen_extents(5);
    std::vector<std::vector<std::int64_t>> nodes;
    std::vector<selected_dimension> dimensions;
    extents_type local_extents;
    for (const std::int64_t extent : extents) {
      nodes.push_back(*support::gen_nodes(extent));
      dimensions.emplace_back(index_set(extent, nodes.back()));
      local_extents.push_back(static_cast<std::int64_t>(nodes.back().size()));
    }
    const selection chosen(dimensions);
    strided<float> global(*support::gen_source_layout(extents));
    global.fill([](std::int64_t n) { return static_cast<float>(n + 1); });
    const std::vector<float> before = global.buffer();
    strided<float> local(*support::gen_layout(local_extents));

    slice(global.view(), chosen, local.view());

    for (const auto& index : support::all_indices(local_extents)) {
      support::index_type at;
      for (std::size_t r = 0; r < index.size(); ++r) {
        at.push_back(nodes[r][static_cast<std::size_t>(index[r])]);
      }
      RC_ASSERT(local(index) == global(at));
    }
    RC_ASSERT(local.rest_untouched());
    RC_ASSERT(support::same_bits(global.buffer(), before));
  });
}

TEST_CASE("positions that take part in nothing are left alone") {
  const auto global = counting<int>(6);
  std::vector<int> local(4, -1);
  const selection chosen(std::vector<selected_dimension>{{6, 4, {{1, 5, 1}, {2, 0, 2}}}});
  slice(tensor_view<const int>(global.data(), {6}), chosen, tensor_view<int>(local.data(), {4}));
  CHECK(local == std::vector<int>{-1, 5, 0, 1});
}

TEST_CASE_TEMPLATE("any trivial element type can be sliced", T, std::int8_t, std::uint8_t,
                   std::int64_t, double, subfed::half, subfed::bfloat16, std::complex<float>) {
  support::seeded random(5);
  strided<T> global(support::random_source_layout(random, {7, 5}));
  global.fill([](std::int64_t n) { return T(static_cast<float>(n)); });
  strided<T> local(support::random_layout(random, {3, 4}));
  const std::vector<std::int64_t> rows{6, 0, 1};
  const std::vector<std::int64_t> columns{1, 2, 3, 4};
  slice(global.view(), {index_set(7, rows), index_set(5, columns)}, local.view());
  for (std::int64_t p = 0; p < 3; ++p) {
    for (std::int64_t q = 0; q < 4; ++q) {
      CHECK(local({p, q}) == global({rows[static_cast<std::size_t>(p)], q + 1}));
    }
  }
  CHECK(local.rest_untouched());
}

TEST_CASE("bits are copied: the payload of a NaN and the sign of a zero stay") {
  std::vector<std::uint32_t> bits{0x7F800001, 0xFFC12345, 0x80000000, 0x00000001};
  for (const std::int64_t stride : {std::int64_t{1}, std::int64_t{-1}}) {
    std::vector<float> global(100);
    std::vector<float> local(100);
    for (std::size_t i = 0; i < 100; ++i) std::memcpy(&global[i], &bits[i % 4], 4);
    const std::int64_t start = stride > 0 ? 0 : 99;
    slice(tensor_view<float>(global.data() + start, {100}, {stride}), {index_set::full(100)},
          tensor_view<float>(local.data() + start, {100}, {stride}));
    CHECK(support::same_bits(local, global));
  }
}

TEST_CASE("results beyond the cache, at any alignment, are the same") {
  // Above 1 MiB long runs are stored past the cache.
  const std::int64_t rows = 300;
  const std::int64_t columns = 1200;
  const auto global = counting<float>(static_cast<std::size_t>(rows * columns));
  for (const std::size_t shift : {0u, 1u, 5u}) {
    for (const std::int64_t kept : {1200, 1100, 255}) {
      const std::int64_t local_rows = kept == 255 ? 299 : 260;
      std::vector<float> buffer(static_cast<std::size_t>(local_rows * kept) + 32, -1);
      const selection chosen{index_set::window(rows, 1, local_rows),
                             index_set::window(columns, columns - kept, kept)};
      slice(tensor_view<const float>(global.data(), {rows, columns}), chosen,
            tensor_view<float>(buffer.data() + 8 + shift, {local_rows, kept}));
      bool right = true;
      for (std::int64_t i = 0; i < local_rows; ++i) {
        for (std::int64_t k = 0; k < kept; ++k) {
          right = right && buffer[8 + shift + static_cast<std::size_t>(i * kept + k)] ==
                               static_cast<float>((i + 1) * columns + columns - kept + k);
        }
      }
      for (std::size_t i = 0; i < 8 + shift; ++i) right = right && buffer[i] == -1;
      for (std::size_t i = 8 + shift + static_cast<std::size_t>(local_rows * kept);
           i < buffer.size(); ++i) {
        right = right && buffer[i] == -1;
      }
      CHECK(right);
    }
  }
}

TEST_CASE("foreign pointers need no more alignment than their element") {
  alignas(32) float buffer[40] = {};
  alignas(32) double doubles[40] = {};
  for (std::size_t i = 0; i < 40; ++i) {
    buffer[i] = static_cast<float>(i);
    doubles[i] = static_cast<double>(i);
  }
  float out[36] = {};
  double double_out[36] = {};
  slice(tensor_view<float>(buffer + 1, {37}), {index_set::window(37, 2, 34)},
        tensor_view<float>(out + 1, {34}));
  slice(tensor_view<double>(doubles + 1, {37}), {index_set::window(37, 2, 34)},
        tensor_view<double>(double_out + 1, {34}));
  for (std::size_t i = 0; i < 34; ++i) {
    CHECK(out[1 + i] == static_cast<float>(i + 3));
    CHECK(double_out[1 + i] == static_cast<double>(i + 3));
  }
}

TEST_CASE("a shape that is not the selection's is refused with both shapes, and nothing written") {
  const auto global = counting<float>(12);
  std::vector<float> local(4, -1);
  const selection chosen{index_set::prefix(4, 2), index_set::prefix(3, 2)};
  const auto ask = [&](const extents_type& global_extents, const extents_type& local_extents,
                       const selection& which) {
    return message_of([&] {
      slice(tensor_view<const float>(global.data(), global_extents), which,
            tensor_view<float>(local.data(), local_extents));
    });
  };
  CHECK(ask({3, 4}, {2, 2}, chosen) ==
        "subfed: slice: the global tensor has shape (3, 4), expected (4, 3)");
  CHECK(ask({12}, {2, 2}, chosen) ==
        "subfed: slice: the global tensor has shape (12,), expected (4, 3)");
  CHECK(ask({4, 3}, {2, 1}, chosen) ==
        "subfed: slice: the local tensor has shape (2, 1), expected (2, 2)");
  CHECK(ask({4, 3}, {4}, chosen) ==
        "subfed: slice: the local tensor has shape (4,), expected (2, 2)");
  CHECK(ask({4, 3}, {}, chosen) == "subfed: slice: the local tensor has shape (), expected (2, 2)");
  const selection named(
      std::vector<selected_dimension>{index_set::prefix(4, 2), index_set::prefix(3, 2)},
      "fc1.weight");
  CHECK(ask({4, 3}, {2, 1}, named) ==
        "subfed: slice: the local tensor 'fc1.weight' has shape (2, 1), expected (2, 2)");
  CHECK(local == std::vector<float>(4, -1));
}

TEST_CASE("a destination that has several indices for one element is refused") {
  const auto global = counting<int>(3);
  int base = -1;
  CHECK(message_of([&] {
          slice(tensor_view<const int>(global.data(), {3}), {index_set::full(3)},
                tensor_view<int>(&base, {3}, {0}));
        }) ==
        "subfed: slice: the local tensor of shape (3,) and strides (0,) is written to, but has "
        "several indices for one element");
  CHECK(base == -1);
  // One element with stride 0 is legal.
  slice(tensor_view<const int>(global.data(), {3}), {index_set(3, {2})},
        tensor_view<int>(&base, {1}, {0}));
  CHECK(base == 2);
}

TEST_CASE("reordering rows into the matrix itself is refused, and changes nothing") {
  std::vector<int> x{10, 20, 30, 40};
  const tensor_view<int> all(x.data(), {4});
  CHECK(message_of([&] {
          slice(all, {index_set(4, {1, 2, 3, 0})}, all);
        }) == "subfed: slice: the global and the local tensor overlap in memory");
  CHECK(message_of([&] {
          slice(all, {index_set::prefix(4, 2)}, tensor_view<int>(x.data() + 3, {2}, {-1}));
        }) == "subfed: slice: the global and the local tensor overlap in memory");
  CHECK(x == std::vector<int>{10, 20, 30, 40});
  // Interleaved without a shared element: the even columns into the odd ones.
  std::vector<int> m = counting<int>(8);
  slice(tensor_view<int>(m.data(), {2, 2}, {4, 2}), {index_set(2, {1, 0}), index_set::full(2)},
        tensor_view<int>(m.data() + 1, {2, 2}, {4, 2}));
  CHECK(m == std::vector<int>{0, 4, 2, 6, 4, 0, 6, 2});
}

TEST_CASE("offsets beyond 2^32 elements are right, in both directions") {
  const std::int64_t extent = (std::int64_t{1} << 33) + 7;
  const support::far_memory memory(static_cast<std::uint64_t>(extent));
  if (!memory.data()) return;
  std::uint8_t* p = memory.data();
  p[0] = 1;
  p[(std::int64_t{1} << 32) + 3] = 2;
  p[extent - 1] = 3;
  const index_set three(extent, {extent - 1, 0, (std::int64_t{1} << 32) + 3});
  std::vector<std::uint8_t> local(3);
  slice(tensor_view<const std::uint8_t>(p, {extent}), {three},
        tensor_view<std::uint8_t>(local.data(), {3}));
  CHECK(local == std::vector<std::uint8_t>{3, 1, 2});
  // The same memory backwards.
  const index_set mirrored(extent, {0, extent - 1, extent - 1 - (std::int64_t{1} << 32) - 3});
  slice(tensor_view<const std::uint8_t>(p + extent - 1, {extent}, {-1}), {mirrored},
        tensor_view<std::uint8_t>(local.data(), {3}));
  CHECK(local == std::vector<std::uint8_t>{3, 1, 2});
  // A few rows that lie far apart, and a dimension of 2^33 elements that merges with another.
  const std::int64_t row = (std::int64_t{1} << 32) + 3;
  slice(tensor_view<const std::uint8_t>(p + row, {2, 1}, {-row, 1}),
        {index_set::full(2), index_set::full(1)}, tensor_view<std::uint8_t>(local.data(), {2, 1}));
  CHECK(local == std::vector<std::uint8_t>{2, 1, 2});
  const std::int64_t half = std::int64_t{1} << 32;
  p[half + 1] = 9;
  local.assign(6, 0);
  slice(tensor_view<const std::uint8_t>(p, {2, half, 1}),
        {index_set(2, {1, 0}), index_set(half, {3, 1, 0}), index_set::full(1)},
        tensor_view<std::uint8_t>(local.data(), {2, 3, 1}));
  CHECK(local == std::vector<std::uint8_t>{2, 9, 0, 0, 0, 1});
}
