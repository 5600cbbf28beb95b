// SPDX-License-Identifier: MIT
/// FedProx's proximal term on what a client holds. [FedProx]
#pragma once

#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/detail/written_tensors.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/systems/detail/zip_elements.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace subfed::inline v0 {

namespace detail {

inline void check_proximal(double mu) {
  if (is_finite_double(mu) && mu >= 0) return;
  fail("subfed: proximal: mu is " + text(mu) + ", expected a finite number that is not negative");
}

}  // namespace detail

/// mu / 2 ||w - w_start||^2: what FedProx adds to a client's loss. [FedProx] w_start is the
/// submodel as the server sent it, so parameters that the client lacks do not count. Tensors that
/// are not parameters of `net` do not count either, and are not read.
///
/// Shapes    both lists have the tensors of net, parameters with equal shapes; any strides.
/// Throws    error for a mu that is negative or not finite, or shapes that differ.
/// Numerics  Sum in double, tensor by tensor in row-major order, as if doubles had no largest number and
///           no denormal ones: infinite only where the term itself is beyond the largest double.
template <averageable T>
double proximal_term(const model& net, double mu,
                     const tensor_views<std::type_identity_t<const T>>& weights,
                     const tensor_views<std::type_identity_t<const T>>& start) {
  const detail::float_mode mode;
  detail::check_proximal(mu);
  detail::check_count("proximal", "weight", net, weights.size());
  detail::check_same_parameters("proximal", "start", net, weights, start);
  const auto for_each_pair = [&](auto&& f) {
    for (std::size_t t = 0; t < weights.size(); ++t) {
      if (!net.tensors()[t].is_parameter()) continue;
      detail::for_each_together(
          [&](const auto& at) {
            f(scalar_traits<T>::load(weights[t].data_handle()[at[0]]),
              scalar_traits<T>::load(start[t].data_handle()[at[1]]));
          },
          weights[t], start[t]);
    }
  };
  double sum = 0;
  std::uint64_t largest = 0;  // difference: its bits without the sign, which order like the numbers
  for_each_pair([&](double w, double s) {
    const double apart = w - s;
    largest = (std::max)(largest, std::bit_cast<std::uint64_t>(apart) << 1);
    sum += detail::rounded_product(apart, apart);
  });
  const double size = std::bit_cast<double>(largest >> 1);
  const bool is_usual = detail::is_finite_double(size) && size >= 0x1p-450 && size < 0x1p450;
  if (largest == 0 || is_usual) return mu * (sum / 2);

  detail::wide_number wide_sum;
  bool is_finite = true;
  for_each_pair([&](double w, double s) {
    is_finite = is_finite && detail::is_finite_double(w) && detail::is_finite_double(s);
    if (!is_finite) return;
    const detail::wide_number apart = detail::wide_number(w) - detail::wide_number(s);
    wide_sum = wide_sum + apart * apart;
  });
  if (!is_finite) return mu * (sum / 2);
  return (detail::wide_number(mu) * detail::wide_number(0.5) * wide_sum).value();
}

/// gradient += mu (w - w_start): the term's share of the gradient, of parameters.
///
///   add_proximal<float>(net, mu, weights, start, gradients);
///
/// Shapes    the three lists have the tensors of net, parameters with equal shapes; any strides.
/// Post      Tensors that are not parameters of net keep their gradients.
/// Throws    as proximal_term; error for gradients with several indices for one element, or with memory
///           that other tensors have too. Nothing has been written then.
/// Numerics  One rounding to T. A gradient that is too large for T becomes infinite, as in the client's
///           own sums, where loss scaling looks for it.
template <averageable T>
void add_proximal(const model& net, double mu,
                  const tensor_views<std::type_identity_t<const T>>& weights,
                  const tensor_views<std::type_identity_t<const T>>& start,
                  const tensor_views<std::type_identity_t<T>>& gradients) {
  const detail::float_mode mode;
  detail::check_proximal(mu);
  detail::check_count("proximal", "weight", net, weights.size());
  detail::check_same_parameters("proximal", "start", net, weights, start);
  detail::check_same_parameters("proximal", "gradient", net, weights, gradients);
  detail::written_tensors memory("proximal");
  memory.writes_parameters("gradient", net, gradients);
  memory.reads_parameters("weight", net, weights);
  memory.reads_parameters("start", net, start);
  memory.check_apart();
  using traits = scalar_traits<T>;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    if (!net.tensors()[t].is_parameter()) continue;
    detail::for_each_together(
        [&](const auto& at) {
          const double w = traits::load(weights[t].data_handle()[at[0]]);
          const double s = traits::load(start[t].data_handle()[at[1]]);
          T& gradient = gradients[t].data_handle()[at[2]];
          const double old = traits::load(gradient);
          const double sum = old + detail::rounded_product(mu, w - s);
          gradient = traits::store(detail::within_range(sum, {old, w, s}, [&] {
            using wide = detail::wide_number;
            return wide(old) + wide(mu) * (wide(w) - wide(s));
          }));
        },
        weights[t], start[t], gradients[t]);
  }
}

}  // namespace subfed::inline v0
