// SPDX-License-Identifier: MIT
/// FjORD's ordered dropout: widths drawn from a discrete distribution, up to what a client can
/// hold.
#pragma once

#include <subfed/average/detail/wide_number.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/layers/normalization.hpp>
#include <subfed/philox.hpp>
#include <subfed/scheme.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// D_P: candidate widths 0 < s_1 < .. < s_k <= 1 with positive probabilities. [FjORD, 3.1]
class width_distribution {
 public:
  /// U_k: the widths 1/k, 2/k, .. 1, all equally likely. [FjORD, 3.1]
  ///
  /// Throws  error when k < 1.
  static width_distribution uniform(std::int64_t k) {
    if (k < 1) {
      detail::fail("subfed: width_distribution: " + std::to_string(k) +
                   " widths, expected at least 1");
    }
    std::vector<capacity> widths;
    for (std::int64_t i = 1; i <= k; ++i) widths.push_back(capacity::ratio(i, k));
    return width_distribution(std::move(widths));
  }

  /// Widths with weights in the same order; without weights all are equally likely.
  ///
  /// Throws  error without a width, for widths that are not ascending, another number of weights,
  ///         or a weight that is not positive and finite.
  explicit width_distribution(std::vector<capacity> widths, std::vector<double> weights = {})
      : widths_(std::move(widths)), weights_(std::move(weights)) {
    if (widths_.empty()) detail::fail("subfed: width_distribution: no width is given");
    for (std::size_t i = 1; i < widths_.size(); ++i) {
      if (widths_[i - 1].value() < widths_[i].value()) continue;
      detail::fail("subfed: width_distribution: the widths must ascend, but " +
                   detail::text(widths_[i].value()) + " follows " +
                   detail::text(widths_[i - 1].value()));
    }
    if (weights_.empty()) weights_.assign(widths_.size(), 1.0);
    if (weights_.size() != widths_.size()) {
      detail::fail("subfed: width_distribution: " + std::to_string(weights_.size()) +
                   " weights are given for " + std::to_string(widths_.size()) + " widths");
    }
    double total = 0;
    for (const double w : weights_) {
      total += w;
      if (w > 0 && detail::is_finite_double(total)) continue;
      detail::fail("subfed: width_distribution: the weight " + detail::text(w) +
                   " is not positive and finite, or the sum is not");
    }
  }

  std::span<const capacity> widths() const noexcept { return widths_; }

  /// Widths that a client can hold: the first n. A width that equals p_max up to a float's rounding
  /// counts.
  ///
  /// Throws  error when there is none.
  std::size_t allowed(const capacity& p_max) const {
    std::size_t n = 0;
    while (n < widths_.size() && widths_[n].value() <= p_max.value() * (1 + 0x1p-22)) ++n;
    if (n == 0) {
      detail::fail("subfed: width_distribution: a client of capacity " +
                   detail::text(p_max.value()) + " can hold none of the widths, the smallest is " +
                   detail::text(widths_[0].value()));
    }
    return n;
  }
  /// The largest width that a client can hold: what the server sends it, and the teacher of its
  /// distillation.
  const capacity& largest(const capacity& p_max) const { return widths_[allowed(p_max) - 1]; }

  /// P(p = width number i, given p <= p_max).
  double probability(std::size_t i, const capacity& p_max = 1) const {
    const std::size_t n = allowed(p_max);
    return i < n ? weights_[i] / total(n) : 0;
  }

  /// The number of the width that u in [0, 1) picks among those up to p_max.
  std::size_t pick(double u, const capacity& p_max) const {
    const std::size_t n = allowed(p_max);
    const double all = total(n);
    // Shares of denormal weights would be rounded to few digits.
    const std::int64_t more = all < 0x1p-900 ? 400 : 0;
    double left = detail::rounded_product(u, detail::scaled(all, more));
    std::size_t i = 0;
    while (i + 1 < n && left >= detail::scaled(weights_[i], more)) {
      left -= detail::scaled(weights_[i++], more);
    }
    return i;
  }

 private:
  double total(std::size_t n) const {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += weights_[i];
    return sum;
  }

  std::vector<capacity> widths_;
  std::vector<double> weights_;
};

/// Whether all groups of a submodel have one width, or each its own. [FjORD, 3.1]
enum class width_for { submodel, group };

/// S = {0 .. ceil(p K) - 1}, p ~ D_P with p <= the request's capacity p_max. [FjORD, 3.1]
///
/// A client is sent draw(net, prefix::ordered(), {.capacity = widths.largest(p_max)}); in each
/// local step it trains draw(net, ordered_dropout{widths, .step = i}, key) of that (see within()).
/// The submodels are nested: p_1 < p_2 holds a subset. The server averages over what the client was
/// sent, with its number of examples as weight: that is FjORD's average of rings.
///
/// Numerics  p follows from seed, round, client, step and (width_for::group) the group's name, the
///           same on every platform.
struct ordered_dropout {
  width_distribution widths;
  width_for drawn_for = width_for::submodel;
  std::uint64_t step = 0;  ///< of the client's local steps
  /// Minimum number of nodes kept.
  std::int64_t minimum = 1;

  /// p of a group.
  ///
  /// Throws  error when all widths are above the request's capacity.
  const capacity& width(const draw_request& where) const {
    const std::uint64_t group =
        drawn_for == width_for::group ? name_hash(where.group) : std::uint64_t{0};
    const random_stream stream(where.seed, where.round, where.client,
                               group ^ name_hash("subfed ordered_dropout"));
    const double u = static_cast<double>(stream.bits(step) >> 11) * 0x1.0p-53;
    return widths.widths()[widths.pick(u, where.capacity)];
  }
  index_set operator()(const draw_request& where) const {
    return index_set::prefix(where.extent, width(where).of(where.extent, rounding::ceil, minimum));
  }
};

/// Batch norms of one layer, one for each width: [FjORD] keeps separate statistics, since the
/// inputs of a narrow model have different moments.
struct width_norms {
  std::vector<group_id> groups;           ///< of ceil(s_i K) nodes, never cut by a scheme
  std::vector<batch_norm_tensors> norms;  ///< "name.width1.running_mean", ..
};

/// Describes a batch norm of `channels` nodes for each width.
inline width_norms batch_norm_per_width(model& net, const std::string& name, group_id channels,
                                        const width_distribution& widths,
                                        affine learned = affine::none) {
  return detail::describe_all_or_nothing(net, [&](model& described) {
    width_norms made;
    const std::int64_t all = described[channels].extent;
    for (std::size_t i = 0; i < widths.widths().size(); ++i) {
      const std::string own = name + ".width" + std::to_string(i + 1);
      made.groups.push_back(
          described.group(own, widths.widths()[i].of(all, rounding::ceil), cut::never));
      made.norms.push_back(batch_norm(described, own,
                                      {.channels = made.groups.back(),
                                       .affine = learned,
                                       .statistics = running_statistics::kept}));
    }
    return made;
  });
}

/// The submodel with the statistics of the widths up to p_max, without the others: a client counts
/// only for the widths that it trains.
inline submodel with_widths_up_to(submodel held, const width_norms& norms,
                                  const width_distribution& widths, const capacity& p_max) {
  const std::size_t n = widths.allowed(p_max);
  for (std::size_t i = 0; i < norms.groups.size(); ++i) {
    const std::int64_t all = held.parent()[norms.groups[i]].extent;
    held = held.with(norms.groups[i], index_set::prefix(all, i < n ? all : 0));
  }
  return held;
}

}  // namespace subfed::inline v0
