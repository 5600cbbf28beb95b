// SPDX-License-Identifier: MIT
/// FedProx's proximal term on what a client holds. [FedProx]
#pragma once

#include <subfed/average/detail/kernels.hpp>
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
/// Numerics  Sum in double, tensor by tensor in row-major order.
template <averageable T>
double proximal_term(const model& net, double mu,
                     const tensor_views<std::type_identity_t<const T>>& weights,
                     const tensor_views<std::type_identity_t<const T>>& start) {
  const detail::float_mode mode;
  detail::check_proximal(mu);
  detail::check_count("proximal", "weight", net, weights.size());
  detail::check_same_parameters("proximal", "start", net, weights, start);
  double sum = 0;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    if (!net.tensors()[t].is_parameter()) continue;
    detail::for_each_together(
        [&](const auto& at) {
          const double apart = scalar_traits<T>::load(weights[t].data_handle()[at[0]]) -
                               scalar_traits<T>::load(start[t].data_handle()[at[1]]);
          sum += detail::rounded_product(apart, apart);
        },
        weights[t], start[t]);
  }
  return mu / 2 * sum;
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
          const double apart = traits::load(weights[t].data_handle()[at[0]]) -
                               traits::load(start[t].data_handle()[at[1]]);
          T& gradient = gradients[t].data_handle()[at[2]];
          gradient = traits::store(traits::load(gradient) + detail::rounded_product(mu, apart));
        },
        weights[t], start[t], gradients[t]);
  }
}

}  // namespace subfed::inline v0
