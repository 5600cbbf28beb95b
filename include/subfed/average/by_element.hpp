// SPDX-License-Identifier: MIT
/// The selective average with a weight for every client and element.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/held_walk.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/memory_overlap.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// The selective average with a weight for every client and element:
///
///   theta[k] = sum over the clients m that hold k of p_m[k] theta_m[k]  /  sum of their p_m[k]
///
/// Local tensors and counters keep the server's values, and neither values nor weights of them are read.
///
/// Numerics  Sums in double in the order of the calls, one rounding to T. Sums and weights are
///           multiplied by a power of two where they are very large or small, so that finite values
///           have a finite mean.
/// Cost      16 bytes per parameter.
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
  ///         any view is accepted of both, of a counter any view of the weights.
  /// Throws  error for another model, wrong shapes, a weight that is negative or not finite, or one
  ///         that is too far from the others to be added to them; the state is then unchanged.
  void add(const submodel& sub, const tensor_views<const T>& tensors,
           const tensor_views<const double>& weights) {
    const detail::float_mode mode;
    detail::check_update<T>("element_weighted_average", net_, sub, tensors, 1);
    detail::check_count("element_weighted_average", "weight", net_, weights.size(),
                        {.client = sub.origin().client});
    for (std::size_t t = 0; t < weights.size(); ++t) {
      if (!is_averaged(t)) continue;
      detail::check_shape("element_weighted_average", "weight", net_.tensors()[t].name,
                          weights[t].extents(), sub.extents(tensor_id(t)));
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
    std::vector<detail::loop_nest> walks;
    std::vector<detail::product_range> ranges = ranges_;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      values.emplace_back();
      own.emplace_back();
      walks.push_back(detail::held_walk(sub, t));
      if (!is_averaged(t)) continue;
      values.back() = packed(tensors[t]);
      own.back() = packed(weights[t]);
      detail::for_each_held(walks[t], [&](std::int64_t g, std::int64_t l) {
        const auto at = static_cast<std::size_t>(l);
        include(ranges[t], sub, t, g, own[t][at], scalar_traits<T>::load(values[t][at]));
      });
    }
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      if (!is_averaged(t)) continue;
      move_to(t, ranges[t]);
      const std::int64_t exponent = ranges[t].exponent;
      detail::for_each_held(walks[t], [&](std::int64_t g, std::int64_t l) {
        const auto to = static_cast<std::size_t>(g), from = static_cast<std::size_t>(l);
        if (!(own[t][from] > 0)) return;
        const double weight = detail::scaled(own[t][from], exponent);
        sums_[t][to] += detail::rounded_product(weight, scalar_traits<T>::load(values[t][from]));
        weights_[t][to] += weight;
      });
    }
    ++clients_;
  }

  /// Post    Elements that nobody holds with a positive weight keep their bits, and so do local tensors
  ///         and counters, which are reported as kept.
  /// Throws  error for a wrong number or shape of tensors, or ones that overlap in memory; nothing
  ///         has been written then.
  average_report finish(const tensor_views<T>& globals) const {
    const detail::float_mode mode;
    detail::check_globals("element_weighted_average", net_, globals);
    detail::placed_tensors places;
    for (std::size_t t = 0; t < globals.size(); ++t) {
      places.add(globals[t], net_.tensors()[t].name, detail::access::writes);
    }
    places.check_apart("element_weighted_average");
    average_report report;
    report.clients = clients_;
    for (std::size_t t = 0; t < globals.size(); ++t) {
      if (!is_averaged(t)) {
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
        if (weights_[t][i] > 0) detail::internals::add(out, t, static_cast<std::int64_t>(i), 1, 1);
      }
    }
    return out;
  }

 private:
  bool is_averaged(std::size_t t) const {
    const auto& info = net_.tensors()[t];
    return !info.is_local() && info.role != role::counter;
  }

  /// Extends the range of a tensor's products by the product of a weight and a value.
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
