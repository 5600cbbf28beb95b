// SPDX-License-Identifier: MIT
/// What becomes of updates that are streamed, decided before anything changes.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/model_average.hpp>
#include <subfed/average/detail/tensor_sums.hpp>
#include <subfed/average/detail/update_products.hpp>
#include <subfed/average/detail/weight_scale.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/untyped_view.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

using round_and_client = std::pair<std::uint64_t, std::uint64_t>;

inline round_and_client key_of(const submodel& sub) {
  return {sub.origin().round, sub.origin().client};
}

/// The type of an untyped view. Nothing for a typed view of numbers that are averaged: they are
/// compatible with all others.
template <class V>
std::optional<element_format> named_format(const tensor_view<V>& view) {
  if constexpr (std::is_void_v<V>) {
    return view.format();
  } else {
    return {};
  }
}

/// Checks that elements of type `found` can be averaged with those of type `known`, where there are some.
/// T: of the average; only void takes integers.
template <class T>
void check_format(const std::string& name, std::optional<element_format> found,
                  const std::optional<element_format>& known, content what) {
  const auto refuse = [&](const std::string& expected) {
    fail("subfed: average: tensor '" + name + "' has elements of type " + format_text(*found) +
             ", expected " + expected,
         {.tensor = name});
  };
  if (!found) return;
  if constexpr (!std::is_void_v<T>) {
    if (!is_floating(*found)) refuse("floating-point numbers");
  }
  if (!known || *found == *known) return;
  if (is_floating(*found) && is_floating(*known)) return;
  if (are_deltas_of_integers(what, *found, *known)) return;
  refuse(format_text(*known) + " as in earlier updates");
}

/// An update that has passed all checks, or why not.
template <class U>
struct admitted_update {
  const member<U>* update;
  update_outcome outcome;
  std::vector<product_range> ranges;  ///< of the tensors' sums, with it
  std::vector<std::int64_t> skipped;  ///< elements of each tensor that are left out
};

/// The checks of a streaming average of T, of one update after the other: each continues from the state as
/// it will be when those before it have been added.
template <class T>
class admission {
 public:
  admission(const model& net, const average_options& options, std::span<const tensor_sums> state,
            const std::set<round_and_client>& seen, double cohort_weight)
      : net_(net), options_(options), seen_(seen), cohort_weight_(cohort_weight) {
    for (const tensor_sums& own : state) {
      formats_.push_back(own.format);
      ranges_.push_back(own.range);
    }
  }

  /// refused_clients counts one that is refused for its round.
  ///
  /// Throws  error for an update that is refused.
  template <class U>
  std::vector<admitted_update<U>> admit(std::span<const member<U>> updates,
                                        std::int64_t& refused_clients) {
    // Values are checked while they are added. That is too late where it decides whether another update is
    // the second one of its client.
    const bool checks_bound = options_.sums && updates.size() > 1 &&
                              options_.sums->on_out_of_bound == out_of_bound::skip_client;
    std::vector<admitted_update<U>> out;
    for (const member<U>& u : updates) {
      admitted_update<U>& own = out.emplace_back();
      own.update = &u;
      own.outcome = outcome_of(u, refused_clients);
      if (!own.outcome) continue;
      own.ranges = ranges_with(u, own.outcome.weight);
      const bool is_held = own.outcome.weight > 0;
      if (checks_bound && is_held &&
          !admits("average", *u.sub, find_beyond(*u.sub, *u.tensors, options_), options_,
                  own.outcome)) {
        continue;
      }
      cohort_weight_ += own.outcome.weight;
      if (options_.round) seen_here_.insert(key_of(*u.sub));
      if (!is_held) continue;
      ranges_ = own.ranges;
      own.skipped = skipped_elements(u);
      for (std::size_t t = 0; t < formats_.size(); ++t) {
        if (net_.tensors()[t].is_local() || formats_[t]) continue;
        formats_[t] = named_format((*u.tensors)[t]);
      }
    }
    return out;
  }

 private:
  template <class U>
  update_outcome outcome_of(const member<U>& u, std::int64_t& refused_clients) const {
    check_update<U>("average", net_, *u.sub, *u.tensors, u.weight);
    for (std::size_t t = 0; t < formats_.size(); ++t) {
      if (net_.tensors()[t].is_local()) continue;
      check_format<T>(net_.tensors()[t].name, named_format((*u.tensors)[t]), formats_[t],
                      options_.content);
    }
    update_outcome outcome = outcome_by_round(*u.sub, u.weight, options_);
    const round_and_client key = key_of(*u.sub);
    if (outcome && options_.round && (seen_.count(key) != 0 || seen_here_.count(key) != 0)) {
      outcome.fate = fate::repeated;
      outcome.weight = 0;
    }
    if (!outcome) {
      if (is_refused(outcome.fate, options_)) {
        ++refused_clients;
        refuse_round(*u.sub, outcome.fate, options_);
      }
      return outcome;
    }
    // One that is left out is not marked as seen: the client may send a better one.
    if (!admits(*u.sub, *u.tensors, options_, outcome)) return outcome;
    check_total_weight("average", cohort_weight_ + outcome.weight, options_);
    return outcome;
  }

  /// The ranges of the products in the tensors' sums, with an update included.
  ///
  /// Throws  error when a double cannot hold their sum.
  template <class U>
  std::vector<product_range> ranges_with(const member<U>& u, double weight) const {
    std::vector<product_range> out = ranges_;
    if (options_.sums || !(weight > 0)) return out;
    for_each_number(u, [&]<class E>(std::size_t t, const tensor_view<const E>& tensor) {
      if constexpr (averageable<E>) include_products(out[t], *u.sub, t, tensor, weight);
    });
    return out;
  }

  /// How many elements of each tensor are left out as not finite; of counters, see counter_merge.
  template <class U>
  std::vector<std::int64_t> skipped_elements(const member<U>& u) const {
    std::vector<std::int64_t> out(formats_.size(), 0);
    if (options_.on_non_finite != non_finite::skip_element) return out;
    for_each_number(u, [&](std::size_t t, const auto& tensor) {
      out[t] = count_non_finite(*u.sub, t, tensor);
    });
    return out;
  }

  /// Calls f(number of a tensor that may have sums, its view with its type).
  template <class U, class F>
  void for_each_number(const member<U>& u, F&& f) const {
    for (std::size_t t = 0; t < formats_.size(); ++t) {
      const auto& info = net_.tensors()[t];
      if (info.is_local() || info.role == role::counter) continue;
      with_type((*u.tensors)[t], [&](const auto& tensor) { f(t, tensor); });
    }
  }

  const model& net_;
  const average_options& options_;
  const std::set<round_and_client>& seen_;
  double cohort_weight_;
  std::vector<std::optional<element_format>> formats_;
  std::vector<product_range> ranges_;
  std::set<round_and_client> seen_here_;
};

}  // namespace subfed::inline v0::detail
