// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/scalar.hpp>
#include <subfed/scatter.hpp>
#include <subfed/slice.hpp>
#include <support/checks.hpp>
#include <support/far_memory.hpp>
#include <support/shapes.hpp>
#include <support/views.hpp>

#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

using subfed::index_set;
using subfed::scatter;
using subfed::scatter_add;
using subfed::selected_dimension;
using subfed::selection;
using subfed::slice;
using subfed::tensor_view;
using support::extents_type;
using support::message_of;
using support::strided;

namespace {

/// A selection of some nodes in each dimension, and the same as lists.
struct random_choice {
  extents_type global_extents;
  extents_type local_extents;
  std::vector<std::vector<std::int64_t>> nodes;
  selection chosen;

  /// Where a local element is in the global tensor.
  support::index_type global_index(const support::index_type& index) const {
    support::index_type out;
    for (std::size_t r = 0; r < index.size(); ++r) {
      out.push_back(nodes[r][static_cast<std::size_t>(index[r])]);
    }
    return out;
  }
};

random_choice choose(int most_rank) {
  random_choice out;
  out.global_extents = *support::gen_extents(most_rank);
  std::vector<selected_dimension> dimensions;
  for (const std::int64_t extent : out.global_extents) {
    out.nodes.push_back(*support::gen_nodes(extent));
    dimensions.emplace_back(index_set(extent, out.nodes.back()));
    out.local_extents.push_back(static_cast<std::int64_t>(out.nodes.back().size()));
  }
  out.chosen = selection(dimensions);
  return out;
}

double small_number(support::seeded& random) {
  return static_cast<double>(random.between(-50, 50));
}

/// Sum of products of all elements; exact for small whole numbers.
double inner_product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

TEST_CASE("rows and columns go back to where they were cut out") {
  std::vector<int> global(6, 0);
  const std::vector<int> local{7, 8};
  scatter(tensor_view<const int>(local.data(), {1, 2}), {index_set(2, {1}), index_set(3, {2, 0})},
          tensor_view<int>(global.data(), {2, 3}));
  CHECK(global == std::vector<int>{0, 0, 0, 8, 0, 7});
  scatter_add(tensor_view<const int>(local.data(), {1, 2}),
              {index_set(2, {1}), index_set(3, {2, 0})}, tensor_view<int>(global.data(), {2, 3}));
  CHECK(global == std::vector<int>{0, 0, 0, 16, 0, 14});
}

TEST_CASE("a reversed destination is written backwards") {
  std::vector<int> buffer{1, 2, 3, 4};
  const std::vector<int> local{9, 8};
  scatter(tensor_view<const int>(local.data(), {2}), {index_set(4, {0, 2})},
          tensor_view<int>(buffer.data() + 3, {4}, {-1}));
  CHECK(buffer == std::vector<int>{1, 8, 3, 9});
}

TEST_CASE("adding node 1 twice sums both, where one set may not name it twice") {
  std::vector<int> global(3, 0);
  CHECK(message_of([] {
          selection{index_set(3, {1, 1})};
        }) == "subfed: index_set: node 1 is repeated, at positions 0 and 1");
  for (const int value : {5, 7}) {
    scatter_add(tensor_view<const int>(&value, {1}), {index_set(3, {1})},
                tensor_view<int>(global.data(), {3}));
  }
  CHECK(global == std::vector<int>{0, 12, 0});
}

TEST_CASE("rank 0 is written to, and scattering nothing leaves everything as it is") {
  const std::int64_t seven = 7;
  std::int64_t target = 1;
  scatter(tensor_view<const std::int64_t>(&seven, extents_type{}), selection(),
          tensor_view<std::int64_t>(&target, extents_type{}));
  CHECK(target == 7);
  scatter_add(tensor_view<const std::int64_t>(&seven, extents_type{}), selection(),
              tensor_view<std::int64_t>(&target, extents_type{}));
  CHECK(target == 14);
  std::vector<int> global{1, 2, 3, 4, 5, 6};
  scatter(tensor_view<const int>(nullptr, {0, 2}), {index_set(3, {}), index_set::full(2)},
          tensor_view<int>(global.data(), {3, 2}));
  scatter_add(tensor_view<const int>(nullptr, {0, 2}), {index_set(3, {}), index_set::full(2)},
              tensor_view<int>(global.data(), {3, 2}));
  CHECK(global == std::vector<int>{1, 2, 3, 4, 5, 6});
  scatter(tensor_view<const int>(nullptr, {0}), {index_set()}, tensor_view<int>(nullptr, {0}));
}

TEST_CASE("scatter touches exactly the selected elements, and slice then gives them back") {
  support::for_all("scatter", [] {
    const random_choice what = choose(5);
    strided<float> local(*support::gen_source_layout(what.local_extents));
    local.fill([](std::int64_t n) { return static_cast<float>(-n - 1); });
    strided<float> global(*support::gen_layout(what.global_extents));
    global.fill([](std::int64_t n) { return static_cast<float>(n + 1); });
    std::map<support::index_type, float> expected;
    for (const auto& index : support::all_indices(what.global_extents)) {
      expected[index] = global(index);
    }
    for (const auto& index : support::all_indices(what.local_extents)) {
      expected[what.global_index(index)] = local(index);
    }
    const std::vector<float> local_before = local.buffer();

    scatter(local.view(), what.chosen, global.view());

    for (const auto& [index, value] : expected) RC_ASSERT(global(index) == value);
    RC_ASSERT(global.rest_untouched());
    RC_ASSERT(support::same_bits(local.buffer(), local_before));

    strided<float> back(*support::gen_layout(what.local_extents));
    slice(global.view(), what.chosen, back.view());
    RC_ASSERT(back.elements() == local.elements());
    RC_ASSERT(back.rest_untouched());
  });
}

TEST_CASE("putting back what was cut out changes nothing") {
  support::for_all("scatter after slice", [] {
    const random_choice what = choose(4);
    strided<float> global(*support::gen_layout(what.global_extents));
    global.fill([](std::int64_t n) { return static_cast<float>(n + 1); });
    const std::vector<float> before = global.buffer();
    strided<float> local(*support::gen_layout(what.local_extents));
    slice(global.view(), what.chosen, local.view());
    scatter(local.view(), what.chosen, global.view());
    RC_ASSERT(support::same_bits(global.buffer(), before));
  });
}

TEST_CASE("scatter_add adds to exactly the selected elements") {
  support::for_all("scatter_add", [] {
    const random_choice what = choose(5);
    support::seeded random(*rc::gen::arbitrary<std::uint64_t>());
    strided<float> local(*support::gen_source_layout(what.local_extents));
    local.fill([&](std::int64_t) { return static_cast<float>(random.unit()); });
    strided<float> global(*support::gen_layout(what.global_extents));
    global.fill([&](std::int64_t) { return static_cast<float>(random.unit()); });
    std::map<support::index_type, float> expected;
    for (const auto& index : support::all_indices(what.global_extents)) {
      expected[index] = global(index);
    }
    for (const auto& index : support::all_indices(what.local_extents)) {
      float& sum = expected[what.global_index(index)];
      sum = sum + local(index);
    }
    scatter_add(local.view(), what.chosen, global.view());
    for (const auto& [index, value] : expected) RC_ASSERT(global(index) == value);
    RC_ASSERT(global.rest_untouched());
  });
}

TEST_CASE("scatter_add is the adjoint of slice: <slice(x), y> = <x, scatter_add(y) onto 0>") {
  support::for_all("adjoint", [] {
    const random_choice what = choose(4);
    support::seeded random(*rc::gen::arbitrary<std::uint64_t>());
    strided<double> x(*support::gen_source_layout(what.global_extents));
    x.fill([&](std::int64_t) { return small_number(random); });
    strided<double> y(*support::gen_source_layout(what.local_extents));
    y.fill([&](std::int64_t) { return small_number(random); });
    strided<double> cut(*support::gen_layout(what.local_extents));
    strided<double> put(*support::gen_layout(what.global_extents));
    put.fill([](std::int64_t) { return 0.0; });
    slice(x.view(), what.chosen, cut.view());
    scatter_add(y.view(), what.chosen, put.view());
    RC_ASSERT(inner_product(cut.elements(), y.elements()) ==
              inner_product(x.elements(), put.elements()));
  });
}

TEST_CASE("a prefix of a convolution changes its own elements and no other") {
  // 512 x 512 x 3 x 3, a quarter of it: 256 * 256 * 9 elements.
  const extents_type extents{512, 512, 3, 3};
  std::vector<std::uint8_t> global(static_cast<std::size_t>(support::elements_of(extents)), 0);
  const std::vector<std::uint8_t> ones(256 * 256 * 9, 1);
  const selection chosen{index_set::prefix(512, 256), index_set::prefix(512, 256),
                         index_set::full(3), index_set::full(3)};
  scatter_add(tensor_view<const std::uint8_t>(ones.data(), {256, 256, 3, 3}), chosen,
              tensor_view<std::uint8_t>(global.data(), extents));
  std::int64_t changed = 0;
  for (const std::uint8_t x : global) changed += x;
  CHECK(changed == 589824);
  CHECK(global[0] == 1);
  CHECK(global[256 * 9 - 1] == 1);
  CHECK(global[256 * 9] == 0);
}

TEST_CASE("results beyond the cache leave the elements around them alone") {
  const std::int64_t rows = 300;
  const std::int64_t columns = 1200;
  const std::int64_t kept = 1100;
  std::vector<float> global(static_cast<std::size_t>(rows * columns), -1);
  std::vector<float> local(static_cast<std::size_t>(rows * kept));
  for (std::size_t i = 0; i < local.size(); ++i) local[i] = static_cast<float>(i);
  const selection chosen{index_set::window(rows, 7, rows), index_set::window(columns, 3, kept)};
  scatter(tensor_view<const float>(local.data(), {rows, kept}), chosen,
          tensor_view<float>(global.data(), {rows, columns}));
  bool right = true;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < columns; ++k) {
      const std::int64_t p = (i + rows - 7) % rows;
      const bool held = k >= 3 && k < 3 + kept;
      right = right && global[static_cast<std::size_t>(i * columns + k)] ==
                           (held ? static_cast<float>(p * kept + k - 3) : -1.0f);
    }
  }
  CHECK(right);
}

TEST_CASE("positions that take part in nothing are not read") {
  std::vector<int> global(6, 0);
  const std::vector<int> local{1, 2, 3, 4};
  const selection chosen(std::vector<selected_dimension>{{6, 4, {{1, 5, 1}, {2, 0, 2}}}});
  scatter(tensor_view<const int>(local.data(), {4}), chosen, tensor_view<int>(global.data(), {6}));
  CHECK(global == std::vector<int>{3, 4, 0, 0, 0, 2});
}

TEST_CASE_TEMPLATE("16-bit numbers are added with one rounding", T, subfed::half,
                   subfed::bfloat16) {
  support::seeded random(3);
  std::vector<T> global;
  std::vector<T> local;
  for (int i = 0; i < 500; ++i) {
    global.push_back(T(random.unit() * 10 - 5));
    local.push_back(T(random.unit() * 10 - 5));
  }
  const std::vector<T> before = global;
  scatter_add(tensor_view<const T>(local.data(), {500}), {index_set::window(500, 100, 500)},
              tensor_view<T>(global.data(), {500}));
  bool right = true;
  for (std::size_t i = 0; i < 500; ++i) {
    const T sum(static_cast<double>(before[(i + 100) % 500]) + static_cast<double>(local[i]));
    right = right && global[(i + 100) % 500] == sum;
  }
  CHECK(right);
}

TEST_CASE_TEMPLATE("other element types are added in their own arithmetic", T, std::int8_t,
                   std::uint16_t, std::int64_t, float, double, std::complex<double>) {
  std::vector<T> global{T(1), T(2), T(3)};
  const std::vector<T> local{T(10), T(20)};
  scatter_add(tensor_view<const T>(local.data(), {2}), {index_set(3, {2, 0})},
              tensor_view<T>(global.data(), {3}));
  CHECK((global == std::vector<T>{T(21), T(2), T(13)}));
}

TEST_CASE("64-bit integers are added exactly") {
  std::int64_t global = 9007199254740993;
  const std::int64_t two = 2;
  scatter_add(tensor_view<const std::int64_t>(&two, {1}), {index_set::full(1)},
              tensor_view<std::int64_t>(&global, {1}));
  CHECK(global == 9007199254740995);
}

TEST_CASE("a shape that is not the selection's is refused with both shapes, and nothing written") {
  std::vector<float> global(12, -1);
  const std::vector<float> local(4, 1);
  const auto ask = [&](const extents_type& local_extents, const extents_type& global_extents,
                       const char* name, bool add) {
    const selection chosen(
        std::vector<selected_dimension>{index_set::prefix(4, 2), index_set::prefix(3, 2)}, name);
    return message_of([&] {
      const tensor_view<const float> from(local.data(), local_extents);
      const tensor_view<float> to(global.data(), global_extents);
      add ? scatter_add(from, chosen, to) : scatter(from, chosen, to);
    });
  };
  CHECK(ask({2, 2}, {3, 4}, "", false) ==
        "subfed: scatter: the global tensor has shape (3, 4), expected (4, 3)");
  CHECK(ask({1, 2}, {4, 3}, "", false) ==
        "subfed: scatter: the local tensor has shape (1, 2), expected (2, 2)");
  CHECK(ask({2, 2}, {12}, "fc1.weight", true) ==
        "subfed: scatter_add: the global tensor 'fc1.weight' has shape (12,), expected (4, 3)");
  CHECK(ask({2}, {4, 3}, "fc1.weight", true) ==
        "subfed: scatter_add: the local tensor 'fc1.weight' has shape (2,), expected (2, 2)");
  CHECK(global == std::vector<float>(12, -1));
}

TEST_CASE("a broadcast destination is refused, a broadcast source is not") {
  int base = 1;
  const std::vector<int> three{1, 2, 3};
  for (const bool add : {false, true}) {
    CHECK(message_of([&] {
            const tensor_view<const int> from(three.data(), {3});
            const tensor_view<int> to(&base, {3}, {0});
            const selection all{index_set::full(3)};
            add ? scatter_add(from, all, to) : scatter(from, all, to);
          }) == std::string("subfed: ") + (add ? "scatter_add" : "scatter") +
                    ": the global tensor of shape (3,) and strides (0,) is written to, but has "
                    "several indices for one element");
  }
  CHECK(base == 1);
  std::vector<int> global(3, 0);
  scatter(tensor_view<const int>(&base, {2}, {0}), {index_set(3, {2, 0})},
          tensor_view<int>(global.data(), {3}));
  CHECK(global == std::vector<int>{1, 0, 1});
  scatter(tensor_view<const int>(&base, {1}, {0}), {index_set::full(1)},
          tensor_view<int>(global.data() + 1, {1}, {0}));
  CHECK(global == std::vector<int>{1, 1, 1});
  // Strides that meet without being 0.
  std::vector<int> buffer(4, 0);
  CHECK(message_of([&] {
          scatter(tensor_view<const int>(three.data(), {1, 3}),
                  {index_set::prefix(2, 1), index_set::full(3)},
                  tensor_view<int>(buffer.data(), {2, 3}, {1, 1}));
        }) ==
        "subfed: scatter: the global tensor of shape (2, 3) and strides (1, 1) is written to, but "
        "has several indices for one element");
  CHECK(buffer == std::vector<int>(4, 0));
}

TEST_CASE("scattering a tensor into itself is refused, and changes nothing") {
  std::vector<int> x{10, 20, 30, 40};
  const tensor_view<int> all(x.data(), {4});
  CHECK(message_of([&] {
          scatter(all, {index_set(4, {1, 2, 3, 0})}, all);
        }) == "subfed: scatter: the global and the local tensor overlap in memory");
  CHECK(message_of([&] {
          scatter_add(tensor_view<int>(x.data() + 1, {2}), {index_set::prefix(4, 2)}, all);
        }) == "subfed: scatter_add: the global and the local tensor overlap in memory");
  CHECK(x == std::vector<int>{10, 20, 30, 40});
}

TEST_CASE("offsets beyond 2^32 elements are right") {
  const std::int64_t extent = (std::int64_t{1} << 33) + 7;
  const support::far_memory memory(static_cast<std::uint64_t>(extent));
  if (!memory.data()) return;
  std::uint8_t* p = memory.data();
  const std::int64_t far = (std::int64_t{1} << 32) + 3;
  const std::vector<std::uint8_t> local{1, 2, 3};
  scatter(tensor_view<const std::uint8_t>(local.data(), {3}),
          {index_set(extent, {extent - 1, 0, far})}, tensor_view<std::uint8_t>(p, {extent}));
  CHECK(p[extent - 1] == 1);
  CHECK(p[0] == 2);
  CHECK(p[far] == 3);
  CHECK(p[3] == 0);  // where a 32-bit offset would have written the third
  CHECK(p[6] == 0);
  scatter_add(tensor_view<const std::uint8_t>(local.data(), {3, 1}),
              {index_set(extent, {0, extent - 1, extent - 1 - far}), index_set::full(1)},
              tensor_view<std::uint8_t>(p + extent - 1, {extent, 1}, {-1, 1}));
  CHECK(p[extent - 1] == 2);
  CHECK(p[0] == 4);
  CHECK(p[far] == 6);
}
