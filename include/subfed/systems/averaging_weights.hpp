// SPDX-License-Identifier: MIT
/// The averaging weights of FedRolex's ablation, per client or per element, and the average that
/// takes weights per element.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/held_walk.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/memory_overlap.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
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
  none,       ///< nothing: all clients have the same weight
  kept_size,  ///< the kernels that it holds
  updates,    ///< how often it has updated the model, or the element
  both        ///< the product of the two
};

/// Number of kernels that a client holds: input channels times output channels of each parameter of
/// rank 2 or more (a matrix element counts as one), whether they take part or not.
inline std::int64_t kept_kernels(const submodel& sub) {
  std::int64_t n = 0;
  for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
    if (!sub.parent().tensors()[t].is_parameter()) continue;
    const std::vector<std::int64_t> extents = sub.extents(tensor_id(t));
    if (extents.size() >= 2) n += extents[0] * extents[1];
  }
  return n;
}

/// p_m of a client in Eq. 10, for any average that takes one weight per client; `updates` counts
/// the rounds in which it took part, this one included.
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

/// How often one client has updated each element of the model: one object per client.
///
/// Cost  4 bytes per parameter.
class update_counts {
 public:
  explicit update_counts(model net) : net_(std::move(net)) {
    for (const auto& tensor : net_.tensors()) {
      counts_.emplace_back(detail::memory_size<std::uint32_t>(tensor.extents), 0u);
    }
  }

  /// Counts a round in which the client updates what it holds (of a restricted submodel, what takes
  /// part). Only for updates that the average takes, not for those that are left out.
  ///
  /// Throws  error for a submodel of another model.
  void record(const submodel& sub) {
    detail::check_parents("update_counts", net_, {&sub, 1});
    std::vector<detail::loop_nest> walks;  // all before the first count: memory may run out
    for (std::size_t t = 0; t < counts_.size(); ++t) walks.push_back(detail::held_walk(sub, t));
    for (std::size_t t = 0; t < counts_.size(); ++t) {
      detail::for_each_held(walks[t], [&](std::int64_t g, std::int64_t) {
        ++counts_[t][static_cast<std::size_t>(g)];
      });
    }
  }

  /// Of a tensor, row-major.
  const std::vector<std::uint32_t>& of(tensor_id tensor) const {
    static_cast<void>(net_[tensor]);  // refuses a foreign tensor
    return counts_[tensor.number()];
  }
  /// For checkpoints: what has to be saved and restored.
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
/// element does not take part. Record the round before averaging it: otherwise a client's first
/// update of an element would have the weight 0.
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

}  // namespace subfed::inline v0
