// SPDX-License-Identifier: MIT
/// The averaging weights of FedRolex's ablation, for a client or for each of its elements, and the
/// average that takes weights for each element.
#pragma once

#include <subfed/average_options.hpp>
#include <subfed/detail/average_checks.hpp>
#include <subfed/detail/average_kernels.hpp>
#include <subfed/detail/together.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/untyped_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// What a client's weight is proportional to. [Rolex, A.3]
enum class weighting {
  none,       ///< nothing: all clients weigh the same
  kept_size,  ///< the kernels that it holds
  updates,    ///< how often it has updated the model, or the element
  both        ///< the product of the two
};

/// Kernels that a client holds: input channels times output channels of each parameter of rank 2 or
/// more (a matrix element counts as one), of what takes part or not.
inline std::int64_t kept_kernels(const submodel& sub) {
  std::int64_t n = 0;
  for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
    if (!sub.parent().tensors()[t].is_parameter()) continue;
    const std::vector<std::int64_t> extents = sub.extents(tensor_id(t));
    if (extents.size() >= 2) n += extents[0] * extents[1];
  }
  return n;
}

/// p_m of a client in Eq. 10, for any average that takes one weight a client; `updates` counts the
/// rounds in which it took part, this one included.
///
/// Throws  error for a negative number of updates.
inline double client_weight(weighting by, const submodel& sub, std::int64_t updates) {
  if (updates < 0) {
    detail::fail("subfed: client_weight: " + std::to_string(updates) + " updates");
  }
  double weight = 1;
  if (by == weighting::kept_size || by == weighting::both) {
    weight *= static_cast<double>(kept_kernels(sub));
  }
  if (by == weighting::updates || by == weighting::both) weight *= static_cast<double>(updates);
  return weight;
}

/// How often one client has updated each element of the model: one object a client.
///
/// Cost  4 bytes a parameter.
class update_counts {
 public:
  explicit update_counts(model net) : net_(std::move(net)) {
    for (const auto& tensor : net_.tensors()) {
      std::size_t elements = 1;
      for (const std::int64_t e : tensor.extents) elements *= static_cast<std::size_t>(e);
      counts_.emplace_back(elements, 0u);
    }
  }

  /// Counts a round in which the client updates what it holds (of a restricted submodel, what takes
  /// part).
  ///
  /// Throws  error for a submodel of another model.
  void record(const submodel& sub) {
    detail::check_parents("update_counts", net_, {&sub, 1});
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      detail::for_each_held(
          sub, t, [&](std::int64_t g, std::int64_t) { ++counts_[t][static_cast<std::size_t>(g)]; });
    }
  }

  /// Of a tensor, row-major.
  const std::vector<std::uint32_t>& of(tensor_id tensor) const {
    static_cast<void>(net_[tensor]);  // refuses a foreign tensor
    return counts_[tensor.number()];
  }
  /// What a checkpoint has to keep, and to put back.
  std::span<std::uint32_t> counts(tensor_id tensor) {
    static_cast<void>(net_[tensor]);
    return counts_[tensor.number()];
  }
  const model& parent() const noexcept { return net_; }

 private:
  model net_;
  std::vector<std::vector<std::uint32_t>> counts_;
};

/// The weight of each element of a client's tensors, row-major, tensor by tensor; 0 where an
/// element does not take part. Record the round that is to be averaged first: a client's first
/// update of an element would weigh nothing otherwise.
///
/// Throws  error when counts and submodel are of different models.
inline std::vector<std::vector<double>> element_weights(weighting by, const submodel& sub,
                                                        const update_counts& counts) {
  detail::check_parents("element_weights", counts.parent(), {&sub, 1});
  const double size = client_weight(by == weighting::both      ? weighting::kept_size
                                    : by == weighting::updates ? weighting::none
                                                               : by,
                                    sub, 1);
  const bool counted = by == weighting::updates || by == weighting::both;
  std::vector<std::vector<double>> out;
  for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
    std::size_t elements = 1;
    for (const std::int64_t e : sub.extents(tensor_id(t))) elements *= static_cast<std::size_t>(e);
    out.emplace_back(elements, 0.0);
    if (sub.parent().tensors()[t].is_local()) continue;
    detail::for_each_held(sub, t, [&](std::int64_t g, std::int64_t l) {
      const std::uint32_t n = counts.of(tensor_id(t))[static_cast<std::size_t>(g)];
      out.back()[static_cast<std::size_t>(l)] = counted ? size * n : size;
    });
  }
  return out;
}

/// The selective average with a weight for every client and element:
///
///   theta[k] = sum over the clients m that hold k of p_m[k] theta_m[k]  /  sum of their p_m[k]
///
/// Numerics  Sums in double in the order of the calls, one rounding to T.
/// Cost      16 bytes a parameter.
template <averageable T>
class element_weighted_average {
 public:
  explicit element_weighted_average(model net) : net_(std::move(net)) {
    for (const auto& tensor : net_.tensors()) {
      std::size_t elements = 1;
      for (const std::int64_t e : tensor.extents) elements *= static_cast<std::size_t>(e);
      sums_.emplace_back(elements, 0.0);
      weights_.emplace_back(elements, 0.0);
    }
  }

  /// Shapes  Tensor t and its weights are sub.extents(tensor_id(t)); any strides. Of a local tensor
  ///         neither is read.
  /// Throws  error for another model, wrong shapes, or a weight that is negative or not finite; the
  ///         state is then as it was.
  void add(const submodel& sub, const tensor_views<const T>& tensors,
           const tensor_views<const double>& weights) {
    detail::check_update<T>(net_, sub, tensors, 1);
    detail::check_same_shapes("element_weighted_average", "weight", tensors, weights);
    for (std::size_t t = 0; t < weights.size(); ++t) {
      detail::for_each_offset(weights[t], [&](std::int64_t o) {
        const double w = weights[t].data_handle()[o];
        if (detail::is_finite_double(w) && w >= 0) return;
        detail::fail("subfed: element_weighted_average: a weight of tensor '" +
                     net_.tensors()[t].name + "' is " + detail::text(w) +
                     ", expected a finite number that is not negative");
      });
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (net_.tensors()[t].is_local()) continue;
      const std::vector<T> values = packed(tensors[t]);
      const std::vector<double> own = packed(weights[t]);
      detail::for_each_held(sub, t, [&](std::int64_t g, std::int64_t l) {
        const auto to = static_cast<std::size_t>(g), from = static_cast<std::size_t>(l);
        if (!(own[from] > 0)) return;
        sums_[t][to] += detail::rounded_product(own[from], scalar_traits<T>::load(values[from]));
        weights_[t][to] += own[from];
      });
    }
    ++clients_;
  }

  /// Post    Elements that nobody holds with a positive weight keep their bits, and so do local
  ///         tensors, which are reported as kept.
  /// Throws  error for a wrong number or shape of tensors; nothing has been written then.
  average_report finish(const tensor_views<T>& globals) const {
    detail::check_globals(net_, globals);
    average_report report;
    report.clients = clients_;
    for (std::size_t t = 0; t < globals.size(); ++t) {
      if (net_.tensors()[t].is_local()) {
        report.kept += globals[t].size();
        continue;
      }
      std::size_t i = 0;
      detail::for_each_offset(globals[t], [&](std::int64_t o) {
        const double weight = weights_[t][i];
        if (weight > 0) {
          globals[t].data_handle()[o] = scalar_traits<T>::store(sums_[t][i] / weight);
          ++report.held;
        } else {
          ++report.unheld;
        }
        ++i;
      });
    }
    return report;
  }

 private:
  template <class E>
  static std::vector<E> packed(const tensor_view<const E>& view) {
    std::vector<E> out;
    detail::for_each_offset(view, [&](std::int64_t o) { out.push_back(view.data_handle()[o]); });
    return out;
  }

  model net_;
  std::vector<std::vector<double>> sums_, weights_;
  std::int64_t clients_ = 0;
};

}  // namespace subfed::inline v0
