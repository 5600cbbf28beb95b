// SPDX-License-Identifier: MIT
/// SCAFFOLD's control variates, sliced and averaged like parameters. [SCAFFOLD]
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
#include <subfed/systems/proximal.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace subfed::inline v0 {

/// gradient += c - c_i: a local step is y -= lr (g - c_i + c). [SCAFFOLD, Alg. 1]
///
/// Both controls are slices by the client's submodel, of tensors of the whole model that the server
/// (c) and the client (c_i) keep; what a client has never held has the control 0. Only parameters
/// of `net` have controls: those of other tensors are not read.
///
///   correct_gradients<float>(net, own_control, server_control, gradients);
///
/// Shapes  the three lists have the tensors of net, parameters with equal shapes; any strides.
/// Post    Tensors that are not parameters of net keep their gradients.
/// Throws  error for shapes that differ, gradients with several indices for one element, or with memory
///         that other tensors have too; nothing has been written then.
template <averageable T>
void correct_gradients(const model& net,
                       const tensor_views<std::type_identity_t<const T>>& own_control,
                       const tensor_views<std::type_identity_t<const T>>& server_control,
                       const tensor_views<std::type_identity_t<T>>& gradients) {
  const detail::float_mode mode;
  detail::check_count("correct_gradients", "gradient", net, gradients.size());
  detail::check_same_parameters("correct_gradients", "own control", net, gradients, own_control);
  detail::check_same_parameters("correct_gradients", "server control", net, gradients,
                                server_control);
  detail::written_tensors memory("correct_gradients");
  memory.writes_parameters("gradient", net, gradients);
  memory.reads_parameters("own control", net, own_control);
  memory.reads_parameters("server control", net, server_control);
  memory.check_apart();
  using traits = scalar_traits<T>;
  for (std::size_t t = 0; t < gradients.size(); ++t) {
    if (!net.tensors()[t].is_parameter()) continue;
    detail::for_each_together(
        [&](const auto& at) {
          T& gradient = gradients[t].data_handle()[at[0]];
          const double g = traits::load(gradient);
          const double own = traits::load(own_control[t].data_handle()[at[1]]);
          const double server = traits::load(server_control[t].data_handle()[at[2]]);
          gradient = traits::store(detail::within_range(g - own + server, {g, own, server}, [&] {
            using wide = detail::wide_number;
            return wide(g) - wide(own) + wide(server);
          }));
        },
        gradients[t], own_control[t], server_control[t]);
  }
}

/// What a client did in a round.
struct local_steps {
  std::int64_t steps = 1;  ///< K
  double lr = 0.01;
};

/// The change of a client's control after K steps from x to y with learning rate lr:
///
///   delta = c_i+ - c_i = (x - y) / (K lr) - c        [SCAFFOLD, Alg. 1, option II]
///
/// The client adds it to its own control; the server averages the deltas of the cohort with
/// control_options(). Tensors that are not parameters of `net` have the change 0: statistics,
/// counters and local tensors never get a control.
///
///   control_change<float>(net, start, trained, server_control, {.steps = K, .lr = lr}, delta);
///
/// Shapes    all lists have the tensors of net, parameters with equal shapes; any strides. Of
///           tensors that are not parameters only delta is used.
/// Throws    error for no step, a learning rate that is not positive and finite, shapes that differ,
///           or deltas with memory that other tensors have too; nothing has been written then.
/// Numerics  In double, one rounding to T. A change that is too large for T becomes infinite, which
///           averages refuse.
template <averageable T>
void control_change(const model& net, const tensor_views<std::type_identity_t<const T>>& start,
                    const tensor_views<std::type_identity_t<const T>>& trained,
                    const tensor_views<std::type_identity_t<const T>>& server_control,
                    const local_steps& local, const tensor_views<std::type_identity_t<T>>& delta) {
  const detail::float_mode mode;
  if (local.steps < 1 || !(local.lr > 0) || !detail::is_finite_double(local.lr)) {
    detail::fail("subfed: control_change: " + std::to_string(local.steps) +
                 " steps with the learning rate " + detail::text(local.lr) +
                 ", expected at least 1 and a positive number");
  }
  detail::check_count("control_change", "delta", net, delta.size());
  detail::check_same_parameters("control_change", "start", net, delta, start);
  detail::check_same_parameters("control_change", "trained", net, delta, trained);
  detail::check_same_parameters("control_change", "server control", net, delta, server_control);
  detail::written_tensors memory("control_change");
  memory.writes("delta", net, delta);
  memory.reads_parameters("start", net, start);
  memory.reads_parameters("trained", net, trained);
  memory.reads_parameters("server control", net, server_control);
  memory.check_apart();
  using traits = scalar_traits<T>;
  const double length = static_cast<double>(local.steps) * local.lr;
  for (std::size_t t = 0; t < delta.size(); ++t) {
    if (!net.tensors()[t].is_parameter()) {
      detail::for_each_offset(
          delta[t], [&](std::int64_t o) { delta[t].data_handle()[o] = traits::store(0); });
      continue;
    }
    detail::for_each_together(
        [&](const auto& at) {
          const double x = traits::load(start[t].data_handle()[at[1]]);
          const double y = traits::load(trained[t].data_handle()[at[2]]);
          const double server = traits::load(server_control[t].data_handle()[at[3]]);
          const double change = (x - y) / length - server;
          delta[t].data_handle()[at[0]] =
              traits::store(detail::within_range(change, {x, y, server}, [&] {
                using wide = detail::wide_number;
                const wide all_steps = wide(static_cast<double>(local.steps)) * wide(local.lr);
                return (wide(x) - wide(y)) / all_steps - wide(server);
              }));
        },
        delta[t], start[t], trained[t], server_control[t]);
  }
}

/// The options with which any average of the library adds the deltas of a cohort of |S| clients out
/// of N:
///
///   c += (1 / N) sum over the cohort of the scattered deltas        [SCAFFOLD, Alg. 1]
///
/// so that c stays the mean of all clients' controls, with 0 for what a client has never held:
/// average_cohort<float>(net, control_updates, server_control, control_options(S, N)), all with
/// weight 1.
///
/// Throws  error unless 1 <= |S| <= N.
inline average_options control_options(std::int64_t cohort, std::int64_t clients) {
  if (cohort < 1 || clients < cohort) {
    detail::fail("subfed: control_options: a cohort of " + std::to_string(cohort) + " out of " +
                 std::to_string(clients) + " clients");
  }
  return {.divide_by = divisor::cohort,
          .content = content::deltas,
          .step = static_cast<double>(cohort) / static_cast<double>(clients)};
}

}  // namespace subfed::inline v0
