// SPDX-License-Identifier: MIT
/// What both forms of the selective average check before they change anything.
#pragma once

#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/detail/kernels.hpp>
#include <subfed/average/detail/wide_number.hpp>
#include <subfed/average/options.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/model_checks.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/scalar.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// "client 3 of round 7": the name of an update in messages.
inline std::string client_text(const submodel& sub) {
  return "client " + std::to_string(sub.origin().client) + " of round " +
         std::to_string(sub.origin().round);
}

/// Checks that an update has a valid weight, the right model, as many tensors as the model, and
/// their shapes; any view is accepted for tensors that stay with the client.
template <class T>
void check_update(const char* verb, const model& net, const submodel& sub,
                  const tensor_views<const T>& tensors, double weight) {
  check_weight(verb, weight, client_text(sub), {.client = sub.origin().client});
  if (!(sub.parent() == net)) {
    fail(std::string("subfed: ") + verb + ": the submodel of " + client_text(sub) +
             " is of another model",
         {.client = sub.origin().client});
  }
  check_count(verb, "client", net, tensors.size(), {.client = sub.origin().client});
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (net.tensors()[t].is_local()) continue;
    if (internals::has_shape(sub, tensor_id(t), tensors[t].extents())) continue;
    check_shape(verb, "client", net.tensors()[t].name, tensors[t].extents(),
                sub.extents(tensor_id(t)), sub.origin().client);
  }
}

/// Whether both types are integers (or booleans) and may differ: deltas may be signed where the
/// values that they change are not.
inline bool are_deltas_of_integers(content what, element_format a, element_format b) noexcept {
  return what == content::deltas && is_integer(a) && is_integer(b);
}

template <class T, class U>
void check_convertible(const char* verb, const model& net, const tensor_views<T>& globals,
                       const tensor_views<const U>& tensors, content what) {
  for (std::size_t t = 0; t < globals.size(); ++t) {
    if (net.tensors()[t].is_local()) continue;
    if (are_deltas_of_integers(what, format_of_view(globals[t]), format_of_view(tensors[t]))) {
      continue;
    }
    check_convertible(verb, net.tensors()[t].name, globals[t], tensors[t]);
  }
}

template <class T>
void check_globals(const char* verb, const model& net, const tensor_views<T>& globals) {
  check_count(verb, "global", net, globals.size());
  for (std::size_t t = 0; t < globals.size(); ++t) {
    const auto& info = net.tensors()[t];
    check_shape(verb, "global", info.name, globals[t].extents(), info.extents);
    with_type(globals[t],
              [&](const auto& global) { check_unique(verb, "global", info.name, global); });
  }
}

/// A weight as it goes into the sums: rounded where they are in fixed point.
///
/// Throws  error when fixed-point sums cannot hold it.
inline double weight_in_sums(const char* verb, const submodel& sub, double weight,
                             const average_options& options) {
  if (!options.sums || !(weight > 0)) return weight;
  const bool is_large = weight > options.sums->most();
  const double rounded = is_large ? 0 : fixed_weight(weight, *options.sums);
  if (rounded > 0) return rounded;
  fail(std::string("subfed: ") + verb + ": the weight of " + client_text(sub) + " is " +
           text(weight) + (is_large ? ", more than" : ", too small for") +
           " the total_weight of the fixed-point sums, " + text(options.sums->total()),
       {.client = sub.origin().client});
}

/// What happens to an update because of its round, and the weight that it then has.
///
/// Throws  error when a late_weight is not finite or is negative, or a double or fixed-point sums cannot
///         hold the weight.
inline update_outcome outcome_by_round(const submodel& sub, double weight,
                                       const average_options& options) {
  update_outcome out{fate::taken, sub.origin().client, sub.origin().round, weight};
  if (!options.round || out.round == *options.round) {
    out.weight = weight_in_sums("average", sub, weight, options);
    return out;
  }
  out.fate = out.round < *options.round ? fate::late : fate::early;
  if (out.fate == fate::late && options.on_late == late_update::weigh) {
    const std::uint64_t passed = *options.round - out.round;
    const double factor = options.late_weight(passed);
    const auto refuse = [&](const std::string& why) {
      fail("subfed: average: the weight of " + client_text(sub) + ", " + text(weight) + ", times " +
               text(factor) + " for " + std::to_string(passed) + " rounds passed is " + why,
           {.client = out.client});
    };
    const double late = rounded_product(weight, factor);
    if (!is_finite_double(factor) || factor < 0 || !is_finite_double(late)) {
      refuse("not a finite number that is not negative");
    }
    // Rounded to a denormal number, or to 0, it would have another share of the average.
    const bool is_cut_short =
        late < power_of_two(-1022) &&
        !(wide_number(weight) * wide_number(factor) - wide_number(late)).is_zero();
    if (is_cut_short) refuse("too small for a double; 0 leaves its values out");
    out.fate = fate::taken;
    out.weight = weight_in_sums("average", sub, late, options);
    return out;
  }
  out.weight = 0;
  return out;
}

/// Whether updates of this fate are refused with an error. Pre: the fate concerns rounds.
inline bool is_refused(fate what, const average_options& options) noexcept {
  if (what == fate::repeated) return options.on_repeated == repeated_update::refuse;
  return options.on_late == late_update::refuse;
}

[[noreturn]] inline void refuse_round(const submodel& sub, fate what,
                                      const average_options& options) {
  fail("subfed: average: the update of " + client_text(sub) +
           (what == fate::repeated ? std::string(" is the second one of that client")
                                   : " is not of round " + std::to_string(*options.round)),
       {.client = sub.origin().client});
}

/// Of one tensor: the row-major global offset, or -1.
template <class E>
std::int64_t find_non_finite(const submodel& sub, std::size_t t,
                             const tensor_view<const E>& tensor) {
  std::int64_t first = -1;
  if constexpr (averageable<E>) {
    const E* const data = tensor.data_handle();
    const loop_nest walk(sub[tensor_id(t)], sub.parent().tensors()[t].extents, tensor);
    walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        if (scalar_traits<E>::is_finite(data[l + i * walk.local_stride()])) continue;
        const std::int64_t at = g + i * walk.global_stride();
        if (first < 0 || at < first) first = at;
      }
    });
  }
  return first;
}

/// Of one tensor: how many.
template <class E>
std::int64_t count_non_finite(const submodel& sub, std::size_t t,
                              const tensor_view<const E>& tensor) {
  std::int64_t count = 0;
  if constexpr (averageable<E>) {
    const E* const data = tensor.data_handle();
    const loop_nest walk(sub[tensor_id(t)], sub.parent().tensors()[t].extents, tensor);
    walk.for_each([&](std::int64_t, std::int64_t l, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) {
        count += scalar_traits<E>::is_finite(data[l + i * walk.local_stride()]) ? 0 : 1;
      }
    });
  }
  return count;
}

/// The first NaN or infinity among the elements of an update that take part: which tensor, and where
/// in the global tensor, row-major. Tensor number tensors.size() when there is none.
template <class T>
std::pair<std::size_t, std::int64_t> find_non_finite(const submodel& sub,
                                                     const tensor_views<const T>& tensors,
                                                     integer_rule counters) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const role is = sub.parent().tensors()[t].role;
    if (is == role::local || (is == role::counter && counters == integer_rule::keep)) continue;
    const std::int64_t first =
        with_type(tensors[t], [&](const auto& tensor) { return find_non_finite(sub, t, tensor); });
    if (first >= 0) return {t, first};
  }
  return {tensors.size(), 0};
}

/// "(3, 0, 1)": the index of a row-major offset.
inline std::string index_text(std::int64_t offset, const std::vector<std::int64_t>& extents) {
  std::vector<std::int64_t> index(extents.size());
  for (std::size_t r = extents.size(); r-- > 0;) {
    index[r] = offset % extents[r];
    offset /= extents[r];
  }
  return shape_text(index);
}

[[noreturn]] inline void fail_non_finite(const char* verb, const submodel& sub, std::size_t tensor,
                                         std::int64_t offset) {
  const auto& info = sub.parent().tensors()[tensor];
  fail(std::string("subfed: ") + verb + ": " + client_text(sub) +
           " has a value that is not finite in tensor '" + info.name + "', at global element " +
           index_text(offset, info.extents),
       {.client = sub.origin().client, .tensor = info.name});
}

/// Applies the policies that examine a whole update before it takes part. False: leave it out; the
/// outcome then says why.
template <class T>
bool admits(const submodel& sub, const tensor_views<const T>& tensors,
            const average_options& options, update_outcome& outcome) {
  const non_finite policy = options.on_non_finite;
  if (policy == non_finite::propagate || policy == non_finite::skip_element) return true;
  const auto [tensor, offset] = find_non_finite(sub, tensors, options.integers);
  if (tensor == tensors.size()) return true;
  if (policy == non_finite::refuse) fail_non_finite("average", sub, tensor, offset);
  outcome.fate = fate::non_finite;
  outcome.weight = 0;
  outcome.tensor = sub.parent().tensors()[tensor].name;
  outcome.element = offset;
  return false;
}

/// The values of an update that are beyond the bound of fixed-point sums.
struct values_beyond {
  std::int64_t count = 0;
  bool finite = true;  ///< all of them
  std::size_t tensor = 0;
  std::int64_t element = -1;  ///< of that tensor, row-major: the first; of those that clip refuses
  double value = 0;
};

/// Values that non_finite::skip_element leaves out do not count.
///
/// Pre  options.sums.
template <class T>
values_beyond find_beyond(const submodel& sub, const tensor_views<const T>& tensors,
                          const average_options& options) {
  const term_rule rule(*options.sums, 1);
  const bool skips = options.on_non_finite == non_finite::skip_element;
  const bool clips = options.sums->on_out_of_bound == out_of_bound::clip;
  values_beyond out;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const auto& info = sub.parent().tensors()[t];
    if (info.is_local() || info.role == role::counter) continue;
    with_type(tensors[t], [&]<class E>(const tensor_view<const E>& tensor) {
      if constexpr (averageable<E>) {
        if (tensor.is_row_major() && !any_beyond(tensor.data_handle(), 1, tensor.size(), rule)) {
          return;  // the usual case, in one loop
        }
        const loop_nest walk(sub[tensor_id(t)], info.extents, tensor);
        walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
          const E* const first = tensor.data_handle() + l;
          if (!any_beyond(first, walk.local_stride(), length, rule)) return;
          for (std::int64_t i = 0; i < length; ++i) {
            const double x =
                scalar_traits<E>::load(tensor.data_handle()[l + i * walk.local_stride()]);
            if (!rule.is_beyond(x) || (skips && !is_finite_double(x))) continue;
            const std::int64_t at = g + i * walk.global_stride();
            const bool is_worse = clips && out.finite && !is_finite_double(x);
            const bool worth = !clips || out.finite || !is_finite_double(x);
            out.finite = out.finite && is_finite_double(x);
            if (out.count++ == 0 || is_worse || (worth && out.tensor == t && at < out.element)) {
              out.tensor = t;
              out.element = at;
              out.value = x;
            }
          }
        });
      }
    });
  }
  return out;
}

/// Applies the policy for values beyond the bound. False: leave the update out; the outcome then says
/// why. Pre: options.sums.
inline bool admits(const char* verb, const submodel& sub, const values_beyond& found,
                   const average_options& options, update_outcome& outcome) {
  if (found.count == 0) return true;
  const auto& info = sub.parent().tensors()[found.tensor];
  const out_of_bound policy = options.sums->on_out_of_bound;
  if (policy == out_of_bound::clip && found.finite) {
    outcome.clipped_elements = found.count;
    return true;
  }
  if (policy == out_of_bound::skip_client) {
    outcome.fate = fate::out_of_bound;
    outcome.weight = 0;
    outcome.tensor = info.name;
    outcome.element = found.element;
    return false;
  }
  fail(std::string("subfed: ") + verb + ": " + client_text(sub) + " has " + text(found.value) +
           " in tensor '" + info.name + "', at global element " +
           index_text(found.element, info.extents) +
           ", beyond the bound of the fixed-point sums, " + text(options.sums->bound),
       {.client = sub.origin().client, .tensor = info.name});
}

/// Adds the counts of another part of the cohort.
inline void add_counts(average_report& to, const average_report& from) {
  to.clients += from.clients;
  to.refused_clients += from.refused_clients;
  to.skipped_clients += from.skipped_clients;
  to.late_clients += from.late_clients;
  to.repeated_clients += from.repeated_clients;
  to.skipped_elements += from.skipped_elements;
  to.clipped_elements += from.clipped_elements;
  for (const update_outcome& outcome : from.left_out) {
    if (to.left_out.size() == average_report::most_listed) return;
    to.left_out.push_back(outcome);
  }
}

}  // namespace subfed::inline v0::detail
