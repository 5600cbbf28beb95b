// SPDX-License-Identifier: MIT
/// A network as a function of its tensors, and how far apart two of its outputs are.
#pragma once

#include <subfed/detail/arithmetic.hpp>
#include <subfed/error.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

template <class R>
concept number_range = requires(const R& range) {
  requires std::is_arithmetic_v<std::remove_cvref_t<decltype(*std::begin(range))>>;
  std::end(range);
};

template <class F, class T>
concept forward_of_views = requires(F& f, const tensor_views<const T>& views) {
  { f(views) } -> number_range;
};
template <class F, class T>
concept forward_of_submodel = requires(F& f, const submodel& sub,
                                       const tensor_views<const T>& views) {
  { f(sub, views) } -> number_range;
};

}  // namespace detail

/// The caller's network: the views of all tensors in the model's order in, the outputs for inputs of its
/// own choice out, in any range of numbers. It is a pure function: no dropout, running statistics
/// used and not updated. One that needs to know which nodes it has, and in which order (the frequencies
/// of rotary positions), takes the submodel in front of the views.
template <class F, class T>
concept forward_function = detail::forward_of_views<F, T> || detail::forward_of_submodel<F, T>;

namespace detail {

template <class T, class Forward>
std::vector<double> outputs_of(Forward& forward, const submodel& sub,
                               const tensor_views<const T>& views) {
  const auto numbers = [](const auto& range) {
    std::vector<double> out;
    for (const auto& x : range) out.push_back(static_cast<double>(x));
    return out;
  };
  if constexpr (forward_of_submodel<Forward, T>) {
    return numbers(forward(sub, views));
  } else {
    return numbers(forward(views));
  }
}

/// The largest magnitude.
///
/// Throws  error when there is none, all are zero or one is not finite: nothing can be compared then.
inline double checked_scale(const std::string& verb, const std::vector<double>& outputs) {
  double scale = 0;
  for (const double y : outputs) {
    if (!is_finite_double(y)) fail("subfed: " + verb + ": the forward function gave " + text(y));
    scale = (std::max)(scale, std::abs(y));
  }
  if (scale > 0) return scale;
  fail("subfed: " + verb + ": the forward function gave " +
       (outputs.empty() ? "no outputs" : std::to_string(outputs.size()) + " outputs, all zero") +
       ", which can show nothing");
}

/// The largest difference; infinite when an output is not finite.
inline double largest_difference(const std::string& verb, const std::vector<double>& expected,
                                 const std::vector<double>& found) {
  if (expected.size() != found.size()) {
    fail("subfed: " + verb + ": the forward function gave " + std::to_string(found.size()) +
         " outputs, and " + std::to_string(expected.size()) + " before");
  }
  double most = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double apart = std::abs(expected[i] - found[i]);
    if (!is_finite_double(apart)) return std::numeric_limits<double>::infinity();
    most = (std::max)(most, apart);
  }
  return most;
}

/// What is rounding, and what is another function, relative to the largest output.
template <class T>
constexpr double default_tolerance() {
  return std::is_same_v<T, float> ? 1e-4 : 1e-9;
}

}  // namespace detail

}  // namespace subfed::inline v0
