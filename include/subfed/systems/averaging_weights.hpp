// SPDX-License-Identifier: MIT
/// The averaging weights of FedRolex's ablation, for a client or for each of its elements, and the
/// average that takes weights for each element.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/memory_overlap.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/systems/detail/together.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
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
      counts_.emplace_back(detail::memory_size<std::uint32_t>(tensor.extents), 0u);
    }
  }

  /// Counts a round in which the client updates what it holds (of a restricted submodel, what takes
  /// part). Only for an update that the average is to take: not for one that is left out.
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
    const std::size_t elements = detail::memory_size<double>(sub.extents(tensor_id(t)));
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
/// Numerics  Sums in double in the order of the calls, one rounding to T. Sums and weights are
///           multiplied by a power of two where they are very large or small, so that finite values
///           have a finite mean.
/// Cost      16 bytes a parameter.
template <averageable T>
class element_weighted_average {
 public:
  explicit element_weighted_average(model net) : net_(std::move(net)) {
    for (const auto& tensor : net_.tensors()) {
      const std::size_t elements = detail::memory_size<double>(tensor.extents);
      sums_.emplace_back(elements, -0.0);
      weights_.emplace_back(elements, 0.0);
      ranges_.emplace_back();
    }
  }

  /// Shapes  Tensor t and its weights are sub.extents(tensor_id(t)); any strides. Of a local tensor
  ///         neither is read.
  /// Throws  error for another model, wrong shapes, a weight that is negative or not finite, or one
  ///         that lies too far from the others to be added up with them; the state is then as it was.
  void add(const submodel& sub, const tensor_views<const T>& tensors,
           const tensor_views<const double>& weights) {
    const detail::float_mode mode;
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
    std::vector<std::vector<T>> values;
    std::vector<std::vector<double>> own;
    std::vector<detail::product_range> ranges = ranges_;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      values.emplace_back();
      own.emplace_back();
      if (net_.tensors()[t].is_local()) continue;
      values.back() = packed(tensors[t]);
      own.back() = packed(weights[t]);
      detail::for_each_held(sub, t, [&](std::int64_t g, std::int64_t l) {
        const auto at = static_cast<std::size_t>(l);
        include(ranges[t], sub, t, g, own[t][at], scalar_traits<T>::load(values[t][at]));
      });
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (net_.tensors()[t].is_local()) continue;
      move_to(t, ranges[t]);
      const std::int64_t exponent = ranges[t].exponent;
      detail::for_each_held(sub, t, [&](std::int64_t g, std::int64_t l) {
        const auto to = static_cast<std::size_t>(g), from = static_cast<std::size_t>(l);
        if (!(own[t][from] > 0)) return;
        const double weight = detail::scaled(own[t][from], exponent);
        sums_[t][to] += detail::rounded_product(weight, scalar_traits<T>::load(values[t][from]));
        weights_[t][to] += weight;
      });
    }
    ++clients_;
  }

  /// Post    Elements that nobody holds with a positive weight keep their bits, and so do local
  ///         tensors, which are reported as kept.
  /// Throws  error for a wrong number or shape of tensors, or ones that overlap in memory; nothing
  ///         has been written then.
  average_report finish(const tensor_views<T>& globals) const {
    const detail::float_mode mode;
    detail::check_globals(net_, globals);
    detail::placed_tensors places;
    for (std::size_t t = 0; t < globals.size(); ++t) {
      places.add(globals[t], net_.tensors()[t].name, detail::access::writes);
    }
    places.check_apart("element_weighted_average");
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
          double value = sums_[t][i] / weight;
          if (!detail::is_finite_double(value) && detail::is_finite_double(sums_[t][i])) {
            constexpr double largest = (std::numeric_limits<double>::max)();  // rounded up to more
            value = sums_[t][i] < 0 ? -largest : largest;
          }
          globals[t].data_handle()[o] = scalar_traits<T>::store(value);
          ++report.held;
        } else {
          ++report.unheld;
        }
        ++i;
      });
    }
    return report;
  }

  /// Elements that somebody held with a positive weight: those that finish() writes.
  held_elements held() const {
    held_elements out(net_);
    for (std::size_t t = 0; t < weights_.size(); ++t) {
      for (std::size_t i = 0; i < weights_[t].size(); ++i) {
        if (weights_[t][i] > 0) out.add(t, static_cast<std::int64_t>(i), 1, 1);
      }
    }
    return out;
  }

 private:
  /// Takes the product of a weight and a value into the range of a tensor's products.
  void include(detail::product_range& range, const submodel& sub, std::size_t t, std::int64_t at,
               double weight, double x) const {
    if (!(weight > 0)) return;
    const std::int64_t own = detail::exponent_of(weight);
    std::int64_t low = own;
    std::int64_t high = own;
    if (x != 0 && detail::is_finite_double(x)) {
      low += (std::min)(detail::exponent_of(x), std::int64_t{0});
      high += (std::max)(detail::exponent_of(x) + 1, std::int64_t{0});
    }
    if (!range.empty() && low >= range.low && high <= range.high) return;
    range.include(low, high);
    if (range.choose()) return;
    const auto& info = net_.tensors()[t];
    detail::fail("subfed: element_weighted_average: " + detail::client_text(sub) + " has " +
                     detail::text(x) + " with weight " + detail::text(weight) + " in tensor '" +
                     info.name + "', at global element " + detail::index_text(at, info.extents) +
                     ", too far from the other products to be added to them",
                 {.client = sub.origin().client, .tensor = info.name});
  }

  /// Multiplies sums and weights by another power of two. Nothing is rounded.
  void move_to(std::size_t t, const detail::product_range& range) {
    const std::int64_t step = range.exponent - ranges_[t].exponent;
    ranges_[t] = range;
    if (step == 0) return;
    for (double& x : sums_[t]) x = detail::scaled(x, step);
    for (double& x : weights_[t]) x = detail::scaled(x, step);
  }

  template <class E>
  static std::vector<E> packed(const tensor_view<const E>& view) {
    std::vector<E> out;
    detail::for_each_offset(view, [&](std::int64_t o) { out.push_back(view.data_handle()[o]); });
    return out;
  }

  model net_;
  std::vector<std::vector<double>> sums_, weights_;
  std::vector<detail::product_range> ranges_;
  std::int64_t clients_ = 0;
};

}  // namespace subfed::inline v0
