// SPDX-License-Identifier: MIT
/// Updates that are too far from what was sent, brought nearer: clipping by the L2 norm.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/held_walk.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// What clipping did to an update.
struct clipped_update {
  double norm = 0;    ///< of the difference, before
  double factor = 1;  ///< by which the difference was multiplied; 1: it was within the bound

  friend bool operator==(const clipped_update&, const clipped_update&) = default;
};

namespace detail {

/// f(t, elements of tensor t in row-major order) for each tensor of parameters.
template <class T, class F>
void for_each_parameter(const submodel& sub, const tensor_views<T>& tensors, F&& f) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!sub.parent().tensors()[t].is_parameter()) continue;
    std::vector<T*> elements;
    for_each_offset(tensors[t],
                    [&](std::int64_t o) { elements.push_back(tensors[t].data_handle() + o); });
    f(t, elements);
  }
}

/// The L2 norm of differences, packed tensor by tensor. Finite unless one of them is not, or the norm
/// is too large for a double.
inline double norm_of(const std::vector<double>& differences) noexcept {
  double largest = 0;
  for (const double d : differences) largest = (std::max)(largest, std::fabs(d));
  if (largest == 0) return 0;
  const std::int64_t exponent = exponent_of(largest);  // squares neither overflow nor vanish
  double sum = 0;
  for (const double d : differences) {
    const double x = exponent_of(d == 0 ? 1 : d) < exponent - 300 ? 0 : scaled(d, -exponent);
    sum += rounded_product(x, x);
  }
  return wide_number(std::sqrt(sum), exponent).value();
}

}  // namespace detail

/// Multiplies the difference of an update to what was sent by min(1, bound / its L2 norm) [over the
/// parameters that the client holds and that take part, all tensors together], in place:
///
///   u <- sent + (u - sent) min(1, bound / |u - sent|)
///
///   const auto did = clip_update(sub, sent, 2.0, update);
///   if (did.factor < 1) log(sub.origin().client, did.norm);
///
/// Statistics, counters and tensors that stay with the client are neither counted nor changed.
///
/// Shapes    tensor t of both is sub.extents(tensor_id(t)); any strides.
/// Post      An update within the bound keeps its bits.
/// Throws    error for wrong shapes, a bound that is not finite and over 0, and a difference that is
///           not finite; nothing has been written then.
/// Numerics  Differences and their squares in double, added tensor by tensor in row-major order: the
///           same bits for any strides. Each element is rounded to T once.
/// Cost      8 bytes for each parameter of the client.
template <averageable T>
clipped_update clip_update(const submodel& sub, const tensor_views<const T>& sent, double bound,
                           const tensor_views<T>& update) {
  using traits = scalar_traits<T>;
  const detail::float_mode mode;
  const model& net = sub.parent();
  const std::uint64_t client = sub.origin().client;
  if (!detail::is_finite_double(bound) || !(bound > 0)) {
    detail::fail("subfed: clip_update: the bound is " + detail::text(bound) +
                     ", expected a finite number over 0",
                 {.client = client});
  }
  std::vector<tensor_view<const T>> read;
  for (const auto& view : update) {
    read.emplace_back(view.data_handle(), view.extents(), view.strides());
  }
  const tensor_views<const T> before(read);
  detail::check_update<T>(net, sub, before, 1);
  detail::check_update<T>(net, sub, sent, 1);
  for (std::size_t t = 0; t < update.size(); ++t) {
    if (net.tensors()[t].is_local()) continue;
    detail::check_unique("clip_update", "update", net.tensors()[t].name, update[t]);
  }
  std::vector<double> differences;
  std::vector<std::vector<T*>> to(update.size());
  std::vector<std::vector<const T*>> from(update.size());
  detail::for_each_parameter(sub, update,
                             [&](std::size_t t, auto& all) { to[t] = std::move(all); });
  detail::for_each_parameter(sub, sent,
                             [&](std::size_t t, auto& all) { from[t] = std::move(all); });
  for (std::size_t t = 0; t < update.size(); ++t) {
    if (!net.tensors()[t].is_parameter()) continue;
    detail::for_each_held(sub, t, [&](std::int64_t g, std::int64_t l) {
      const auto at = static_cast<std::size_t>(l);
      const double d = traits::load(*to[t][at]) - traits::load(*from[t][at]);
      if (!detail::is_finite_double(d)) {
        const auto& info = net.tensors()[t];
        detail::fail("subfed: clip_update: " + detail::client_text(sub) +
                         " has a difference that is not finite in tensor '" + info.name +
                         "', at global element " + detail::index_text(g, info.extents),
                     {.client = client, .tensor = info.name});
      }
      differences.push_back(d);
    });
  }
  clipped_update out{detail::norm_of(differences), 1};
  if (out.norm <= bound) return out;
  out.factor = bound / out.norm;
  std::size_t next = 0;
  for (std::size_t t = 0; t < update.size(); ++t) {
    if (!net.tensors()[t].is_parameter()) continue;
    detail::for_each_held(sub, t, [&](std::int64_t, std::int64_t l) {
      const auto at = static_cast<std::size_t>(l);
      const double moved = detail::rounded_product(out.factor, differences[next++]);
      *to[t][at] = traits::store(traits::load(*from[t][at]) + moved);
    });
  }
  return out;
}

}  // namespace subfed::inline v0
