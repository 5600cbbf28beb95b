// SPDX-License-Identifier: MIT
#include <subfed/proof/forward.hpp>

#include <support/checks.hpp>

#include <array>
#include <limits>
#include <span>
#include <vector>

namespace {

using float_views = subfed::tensor_views<const float>;

constexpr auto gives = []<class R>(R (*)()) {
  return subfed::forward_function<R (*)(const float_views&), float>;
};

}  // namespace

TEST_CASE("a forward function gives a range of numbers for views, with or without the submodel") {
  static_assert(gives(static_cast<std::vector<double> (*)()>(nullptr)));
  static_assert(gives(static_cast<std::array<float, 3> (*)()>(nullptr)));
  static_assert(gives(static_cast<std::span<const int> (*)()>(nullptr)));
  static_assert(!gives(static_cast<void (*)()>(nullptr)));
  static_assert(!gives(static_cast<double (*)()>(nullptr)));
  using with_submodel = std::vector<float> (*)(const subfed::submodel&, const float_views&);
  static_assert(subfed::forward_function<with_submodel, float>);
  static_assert(!subfed::forward_function<with_submodel, double>);
  static_assert(!subfed::forward_function<std::vector<float> (*)(int), float>);
}

TEST_CASE("outputs are compared by their largest difference; what is not finite is far") {
  using subfed::detail::largest_difference;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  CHECK(largest_difference("f", {1, 2, 3}, {1, 2.5, 2.75}) == 0.5);
  CHECK(largest_difference("f", {}, {}) == 0);
  CHECK(largest_difference("f", {1, 2}, {1, -infinity}) == infinity);
  CHECK(largest_difference("f", {1, 2}, {std::numeric_limits<double>::quiet_NaN(), 2}) == infinity);
  CHECK(subfed::detail::checked_scale("f", {1, -4, 3}) == 4);
}
