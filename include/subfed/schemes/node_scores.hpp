// SPDX-License-Identifier: MIT
/// How important each node of each group is: norms of what is cut with it, or numbers of one's own.
#pragma once

#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// A number for each node of each group of a model, zero at first. top_k keeps the nodes with the largest.
class node_scores {
 public:
  explicit node_scores(model net) : net_(std::move(net)) {
    for (const auto& group : net_.groups()) {
      scores_.emplace_back(detail::memory_size<double>(group.extent), 0.0);
    }
  }

  const model& parent() const noexcept { return net_; }
  /// Throws  error for a group that the model does not have.
  std::span<double> operator[](group_id group) {
    static_cast<void>(net_[group]);
    return scores_[group.number()];
  }
  std::span<const double> operator[](group_id group) const {
    static_cast<void>(net_[group]);
    return scores_[group.number()];
  }

 private:
  model net_;
  std::vector<std::vector<double>> scores_;
};

/// Sum of magnitudes, root of the sum of squares, largest magnitude.
enum class norm_order { one, two, infinity };

namespace detail {

/// A dimension of which some indices are nodes of a group: the node at each index, or -1.
struct scored_axis {
  int dimension;
  std::size_t group;
  std::vector<std::int64_t> nodes;
};

inline std::vector<scored_axis> scored_axes(const model& net, const model::tensor_info& info) {
  std::vector<scored_axis> out;
  for (std::size_t r = 0; r < info.dimensions.size(); ++r) {
    const std::size_t first = out.size();
    std::size_t begin = 0;
    for (const dimension::part& p : info.dimensions[r].parts()) {
      const bool bound = p.group != dimension::no_group;
      const std::int64_t nodes = bound ? net.groups()[p.group].extent : p.whole;
      const auto elements = static_cast<std::size_t>(p.repeat * nodes * p.block);
      if (bound) {
        auto axis = std::find_if(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(),
                                 [&](const scored_axis& a) { return a.group == p.group; });
        if (axis == out.end()) {
          const std::size_t extent = memory_size<std::int64_t>(info.extents[r]);
          out.push_back({static_cast<int>(r), p.group, std::vector<std::int64_t>(extent, -1)});
          axis = out.end() - 1;
        }
        for (std::size_t i = 0; i < elements; ++i) {
          axis->nodes[begin + i] = static_cast<std::int64_t>(i) / p.block % nodes;
        }
      }
      begin += elements;
    }
  }
  return out;
}

/// Adds the powers of a parameter's elements to the scores of their nodes, or raises these to the largest.
template <class E>
void add_norms(node_scores& out, const model::tensor_info& info, const tensor_view<const E>& view,
               norm_order p) {
  if (view.size() == 0) return;
  const std::vector<scored_axis> axes = scored_axes(out.parent(), info);
  std::int64_t index[max_rank]{};
  for_each_offset(view, [&](std::int64_t offset) {
    const double x =
        std::abs(static_cast<double>(scalar_traits<E>::load(view.data_handle()[offset])));
    if (!is_finite_double(x)) {
      fail("subfed: node_norms: tensor '" + info.name + "' has an element that is " + text(x),
           {.tensor = info.name});
    }
    for (std::size_t a = 0; a < axes.size(); ++a) {
      const auto node_of = [&](const scored_axis& axis) {
        return axis.nodes[static_cast<std::size_t>(index[axis.dimension])];
      };
      const std::int64_t node = node_of(axes[a]);
      bool counted = node < 0;
      for (std::size_t b = 0; b < a && !counted; ++b) {
        counted = axes[b].group == axes[a].group && node_of(axes[b]) == node;
      }
      if (counted) continue;
      double& score = out[group_id(axes[a].group)][static_cast<std::size_t>(node)];
      if (p == norm_order::infinity) {
        score = (std::max)(score, x);
      } else {
        score += p == norm_order::one ? x : rounded_product(x, x);
      }
    }
    for (int r = view.rank() - 1; r >= 0 && ++index[r] == view.extent(r); --r) index[r] = 0;
  });
}

}  // namespace detail

/// The norm of all that is cut with a node: the elements of all parameters that belong to it, through
/// repeat, block and concatenation, in every dimension that its group is bound to; an element that belongs
/// to a node twice, on the diagonal of a recurrent matrix, counts once.
///
///   score[n] = (sum over elements x of node n of |x|^p)^(1/p)
///
/// Statistics, counters and local tensors have no part in it. T void: tensors of mixed types.
///
/// Throws    error for a wrong number or shape of tensors, a parameter of integers, or an element that is
///           not finite; it names the tensor.
/// Numerics  Sums in double, tensor by tensor, in row-major order: the same bits everywhere.
/// Cost      One pass over the parameters; 8 bytes an index of a bound dimension while it runs.
template <class T>
requires(averageable<T> || std::is_void_v<T>) node_scores
    node_norms(const model& net, const tensor_views<std::type_identity_t<const T>>& globals,
               norm_order p = norm_order::two) {
  detail::check_all_globals("node_norms", "global", net, globals);
  const detail::float_mode mode;
  node_scores out(net);
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& info = net.tensors()[t];
    if (!info.is_parameter()) continue;
    detail::with_type(globals[t], [&]<class E>(const tensor_view<const E>& view) {
      if constexpr (averageable<E>) {
        detail::add_norms(out, info, view, p);
      } else {
        detail::fail("subfed: node_norms: tensor '" + info.name + "' is a parameter of integers",
                     {.tensor = info.name});
      }
    });
  }
  if (p != norm_order::two) return out;
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    for (double& score : out[group_id(g)]) score = std::sqrt(score);
  }
  return out;
}

}  // namespace subfed::inline v0
