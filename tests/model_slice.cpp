// SPDX-License-Identifier: MIT
// The errors of these calls and their examples are in tests/submodel.cpp; here are plans and executors.
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/scalar.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/submodel.hpp>

#include <doctest/doctest.h>

#include <support/checks.hpp>
#include <support/executors.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

using subfed::submodel;
using subfed::tensor_view;

namespace {

/// Two tied convolutions, a table with whole rows in its middle, a single number.
struct network {
  subfed::model net;
  subfed::group_id a = net.group("a", 700);
  subfed::group_id b = net.group("b", 12);
  network() {
    net.tensor("first", {a, b, 3, 3});
    net.tensor("second", {b, a, 5});
    net.tensor("table", {3, a, 2});
    net.tensor("large", {a, 900});
    net.tensor("number", std::initializer_list<subfed::dimension>{});
  }
};

/// Memory of all tensors, row-major; gap: elements that are left between one row and the next.
struct memory {
  std::vector<std::vector<float>> data;
  std::vector<tensor_view<float>> views;

  memory(const std::vector<std::vector<std::int64_t>>& shapes, float first, std::int64_t gap) {
    for (const auto& shape : shapes) {
      std::vector<std::int64_t> strides(shape.size(), 1);
      std::int64_t elements = 1;
      for (std::size_t r = shape.size(); r-- > 0;) {
        strides[r] = elements;
        elements *= shape[r] + (r + 1 == shape.size() ? gap : 0);
      }
      data.emplace_back(static_cast<std::size_t>(elements));
      std::iota(data.back().begin(), data.back().end(), first);
      views.emplace_back(data.back().data(), std::span<const std::int64_t>(shape),
                         std::span<const std::int64_t>(strides));
    }
  }
};

memory globals_of(const subfed::model& net, float first, std::int64_t gap = 0) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (const auto& t : net.tensors()) shapes.push_back(t.extents);
  return {shapes, first, gap};
}
memory locals_of(const submodel& sub, float first, std::int64_t gap = 0) {
  std::vector<std::vector<std::int64_t>> shapes;
  for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
    shapes.push_back(sub.extents(subfed::tensor_id(t)));
  }
  return {shapes, first, gap};
}

std::vector<submodel> examples(const network& n) {
  std::vector<submodel> out;
  for (const double capacity : {1.0, 0.4, 0.01}) {
    const subfed::draw_key key{3, 650, 1, capacity};
    out.push_back(draw(n.net, subfed::rolling{}, key));
    out.push_back(draw(n.net, subfed::random_subset{}, key));
    out.push_back(out.back().restricted(n.a, subfed::index_set(700, {3, 4, 699, 10})));
  }
  return out;
}

/// A thread a part.
struct many_threads {
  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    std::vector<std::thread> threads;
    for (std::int64_t i = 0; i < n; ++i) threads.emplace_back([&f, i] { f(i); });
    for (std::thread& t : threads) t.join();
  }
};

/// Counts the parts that it runs.
struct counting {
  std::int64_t& parts;
  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    parts = n;
    for (std::int64_t i = 0; i < n; ++i) f(i);
  }
};

/// Cuts, changes, puts back and adds with the given submodel; returns all memory that was touched.
template <class Executor>
std::vector<std::vector<float>> walked(const submodel& sub, std::int64_t gap, Executor&& run_by) {
  memory globals = globals_of(sub.parent(), 1, gap);
  memory locals = locals_of(sub, -5, gap);
  subfed::slice<float>(globals.views, sub, locals.views, run_by);
  std::vector<std::vector<float>> out = locals.data;
  for (auto& tensor : locals.data) {
    for (float& x : tensor) x = 2 * x + 1;
  }
  subfed::scatter<float>(locals.views, sub, globals.views, run_by);
  out.insert(out.end(), globals.data.begin(), globals.data.end());
  subfed::scatter_add<float>(locals.views, sub, globals.views, run_by);
  out.insert(out.end(), globals.data.begin(), globals.data.end());
  return out;
}

/// The same tensor by tensor, without plans or parts.
std::vector<std::vector<float>> walked_one_by_one(const submodel& sub, std::int64_t gap) {
  memory globals = globals_of(sub.parent(), 1, gap);
  memory locals = locals_of(sub, -5, gap);
  const auto tensors = sub.parent().tensors().size();
  for (std::size_t t = 0; t < tensors; ++t) {
    subfed::slice<float>(globals.views[t], sub[subfed::tensor_id(t)], locals.views[t]);
  }
  std::vector<std::vector<float>> out = locals.data;
  for (auto& tensor : locals.data) {
    for (float& x : tensor) x = 2 * x + 1;
  }
  for (std::size_t t = 0; t < tensors; ++t) {
    subfed::scatter<float>(locals.views[t], sub[subfed::tensor_id(t)], globals.views[t]);
  }
  out.insert(out.end(), globals.data.begin(), globals.data.end());
  for (std::size_t t = 0; t < tensors; ++t) {
    subfed::scatter_add<float>(locals.views[t], sub[subfed::tensor_id(t)], globals.views[t]);
  }
  out.insert(out.end(), globals.data.begin(), globals.data.end());
  return out;
}

}  // namespace

TEST_CASE("a whole model is walked as its tensors one by one, with and without a plan") {
  const network n;
  for (const submodel& sub : examples(n)) {
    for (const std::int64_t gap : {0, 2}) {
      const auto expected = walked_one_by_one(sub, gap);
      CHECK(walked(sub, gap, subfed::serial{}) == expected);
      CHECK(walked(sub.planned(), gap, subfed::serial{}) == expected);
    }
  }
}

TEST_CASE("parts may run in any order and on any threads") {
  const network n;
  for (const submodel& sub : examples(n)) {
    const auto expected = walked_one_by_one(sub, 0);
    CHECK(walked(sub.planned(), 0, support::backwards{}) == expected);
    CHECK(walked(sub, 0, many_threads{}) == expected);
  }
}

TEST_CASE("a large tensor is cut into several parts") {
  const network n;
  const submodel sub = submodel::full(n.net);
  memory globals = globals_of(n.net, 0);
  memory locals = locals_of(sub, 0);
  std::int64_t parts = 0;
  subfed::slice<float>(globals.views, sub, locals.views, counting{parts});
  CHECK(parts > static_cast<std::int64_t>(n.net.tensors().size()));
}

TEST_CASE("a plan is part of copies and goes when the nodes change") {
  const auto plans = [](const submodel& s) { return subfed::detail::internals::plans(s); };
  const network n;
  const submodel sub = draw(n.net, subfed::random_subset{}, {.capacity = 0.3});
  CHECK(plans(sub).empty());
  const submodel planned = sub.planned();
  CHECK(plans(planned).size() == n.net.tensors().size());
  const submodel copy = planned;
  CHECK(plans(copy).data() == plans(planned).data());
  CHECK(plans(planned.planned()).data() == plans(planned).data());
  CHECK(planned.same_nodes(sub));
  CHECK(sub.same_nodes(planned));
  CHECK(planned.size() == sub.size());
  CHECK(planned.origin() == sub.origin());

  const submodel other = planned.with(n.b, subfed::index_set::full(12));
  CHECK(plans(other).empty());
  CHECK(other.extents(subfed::tensor_id(0))[1] == 12);
  CHECK(plans(planned.restricted(n.b, subfed::index_set(12, {}))).empty());
}

TEST_CASE("a planned submodel refuses what an unplanned one refuses") {
  const network n;
  const submodel sub = draw(n.net, subfed::rolling{}, {.capacity = 0.5}).planned();
  memory globals = globals_of(n.net, 0);
  memory locals = locals_of(sub, 0);
  const auto before = globals.data;
  auto views = locals.views;
  views[1] = tensor_view<float>(locals.data[1].data(), {6, 350, 4});
  CHECK(support::message_of([&] { subfed::scatter<float>(views, sub, globals.views); }) ==
        "subfed: scatter: the local tensor 'second' has shape (6, 350, 4), expected (6, 350, 5)");
  views = globals.views;
  views[0] = tensor_view<float>(globals.data[0].data(), {700, 12, 3, 3}, {108, 9, 0, 1});
  CHECK(support::message_of([&] {
          subfed::scatter<float>(locals.views, sub, views);
        }).find("several indices for one element") != std::string::npos);
  CHECK(globals.data == before);
}

namespace {

template <class E>
E element_of(std::int64_t i) {
  if constexpr (std::is_same_v<E, bool>) {
    return i % 3 == 0;
  } else if constexpr (std::is_integral_v<E>) {
    return static_cast<E>(i % 50);
  } else {
    return subfed::scalar_traits<E>::store(static_cast<double>(i % 50));
  }
}

/// Slices and scatters one tensor of elements G as locals of elements L, as mixed tensors, and compares
/// with the plain loop. Numbers are small and whole, which all types hold.
template <class G, class L>
void check_pair() {
  subfed::model net;
  const auto a = net.group("a", 4);
  const auto b = net.group("b", 5);
  net.tensor("t", {a, b});
  const submodel sub(net, {subfed::index_set(4, {2, 0, 3}), subfed::index_set(5, {1, 2, 4})});
  const auto nodes = [&](subfed::group_id g, std::int64_t i) { return sub[g][i]; };
  for (const std::int64_t gap :
       {1, 2}) {  // elements of the local tensor lie side by side, or apart
    const auto global = std::make_unique<G[]>(20);
    const auto local = std::make_unique<L[]>(18);
    for (std::int64_t i = 0; i < 20; ++i) global[static_cast<std::size_t>(i)] = element_of<G>(i);
    const tensor_view<G> to(global.get(), {4, 5});
    const tensor_view<L> part(local.get(), {3, 3}, {3 * gap, gap});
    subfed::slice<void>({to}, sub, {part});
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        CHECK(part(i, j) == element_of<L>(nodes(a, i) * 5 + nodes(b, j)));
        part(i, j) = element_of<L>(20 + 3 * i + j);
      }
    }
    subfed::scatter<void>({part}, sub, {to});
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t j = 0; j < 3; ++j) {
        CHECK(to(nodes(a, i), nodes(b, j)) == element_of<G>(20 + 3 * i + j));
      }
    }
    CHECK(to(1, 1) == element_of<G>(6));
    CHECK(to(2, 0) == element_of<G>(10));
    if constexpr (!std::is_same_v<G, bool>) {
      subfed::scatter_add<void>({part}, sub, {to});
      CHECK(to(2, 1) == element_of<G>(40));
      CHECK(to(0, 2) == element_of<G>(48));
      CHECK(to(3, 4) == static_cast<G>(56));
      CHECK(to(1, 1) == element_of<G>(6));
    }
  }
}
template <class G, class... L>
void check_pairs() {
  (check_pair<G, L>(), ...);
}
template <class... E>
void check_same() {
  (check_pair<E, E>(), ...);
}

}  // namespace

TEST_CASE(
    "mixed tensors of every type, and every pair of floating-point types, are copied and added") {
  using subfed::bfloat16;
  using subfed::half;
  check_pairs<float, float, double, half, bfloat16>();
  check_pairs<double, float, double, half, bfloat16>();
  check_pairs<half, float, double, half, bfloat16>();
  check_pairs<bfloat16, float, double, half, bfloat16>();
  check_same<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t,
             std::uint32_t, std::uint64_t, bool>();
}
