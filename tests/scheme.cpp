// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/scheme.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/schemes/simple_ensemble.hpp>

#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

using subfed::draw_request;
using subfed::index_set;
using subfed::rounding;
using subfed::scheme;

namespace {

/// The least that a scheme can be.
struct smallest_scheme {
  index_set operator()(const draw_request& where) const { return index_set::full(where.extent); }
};

index_set free_function(const draw_request& where) {
  return index_set::prefix(where.extent, where.kept());
}

struct changes_itself {
  index_set operator()(const draw_request& where) { return index_set::full(where.extent); }
};
struct changes_the_site {
  index_set operator()(draw_request& where) const { return index_set::full(where.extent); }
};
struct gives_a_list {
  std::vector<std::int64_t> operator()(const draw_request&) const { return {0}; }
};
struct cannot_be_copied {
  std::unique_ptr<int> state;
  index_set operator()(const draw_request& where) const { return index_set::full(where.extent); }
};

template <scheme Scheme>
index_set asked(const Scheme& which, const draw_request& where) {
  return which(where);
}

}  // namespace

TEST_CASE("the library's schemes, a lambda, a function and a struct are schemes") {
  static_assert(scheme<subfed::rolling> && scheme<subfed::random_subset> &&
                scheme<subfed::prefix> && scheme<subfed::simple_ensemble>);
  static_assert(scheme<smallest_scheme> && scheme<decltype(&free_function)>);
  static_assert(scheme<std::function<index_set(const draw_request&)>>);
  const auto last = [](const draw_request& where) {
    return index_set::window(where.extent, where.extent - where.kept(), where.kept());
  };
  static_assert(scheme<decltype(last)>);
  // A lambda that captures can be copied, but not assigned to.
  const std::vector<std::int64_t> widths{2, 4};
  const auto captures = [widths](const draw_request& where) {
    return index_set::window(where.extent, widths[where.client], where.kept());
  };
  static_assert(scheme<std::remove_const_t<decltype(captures)>>);
  CHECK(asked(captures, {.client = 0, .extent = 6, .capacity = 0.5}) == index_set(6, {2, 3, 4}));
  CHECK(asked(last, {.extent = 6, .capacity = 0.5}) == index_set(6, {3, 4, 5}));
  CHECK(asked(&free_function, {.extent = 6, .capacity = 0.5}) == index_set(6, {0, 1, 2}));
  CHECK(asked(smallest_scheme{}, {.extent = 6}) == index_set::full(6));
}

TEST_CASE("what changes itself, the request, or gives no index set is no scheme") {
  static_assert(!scheme<changes_itself> && !scheme<changes_the_site>);
  static_assert(!scheme<gives_a_list> && !scheme<cannot_be_copied>);
  static_assert(!scheme<int> && !scheme<void> && !scheme<index_set>);
}

TEST_CASE("a draw request by default is the whole of an empty group in round 0") {
  const draw_request where;
  CHECK(where.seed == 0);
  CHECK(where.round == 0);
  CHECK(where.client == 0);
  CHECK(where.group.empty());
  CHECK(where.extent == 0);
  CHECK(where.capacity == subfed::capacity(1.0));
  CHECK(where.kept() == 0);
}

TEST_CASE("a draw request keeps as many nodes as its capacity says") {
  const draw_request where{.extent = 10, .capacity = 0.25};
  CHECK(where.kept() == 2);
  CHECK(where.kept(rounding::ceil) == 3);
  CHECK(where.kept(rounding::nearest) == 3);
  CHECK(where.kept(rounding::floor, 4) == 4);
  CHECK(draw_request{.extent = 3, .capacity = 1.0 / 16}.kept() == 1);
  CHECK(draw_request{.extent = 3, .capacity = 1.0 / 16}.kept(rounding::floor, 0) == 0);
}
