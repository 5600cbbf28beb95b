// SPDX-License-Identifier: MIT
/// Who takes part in the average of a cohort, on the host and on devices: checked before anything is
/// written.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/cohort_order.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/update.hpp>
#include <subfed/detail/memory_overlap.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0::detail {

/// The clients with positive weights, in the order in which they are added.
template <class U>
struct cohort_request {
  std::vector<member<U>> members;
  double cohort_weight = 0;
  average_report report;  ///< without what the average counts
};

/// Applies the policies to a cohort in its order. admit(update, outcome) checks an update's values.
///
/// Throws  error for what is refused.
template <class U, class Admit>
cohort_request<U> admit_cohort(const std::vector<const update<U>*>& cohort,
                               const average_options& options, Admit&& admit) {
  cohort_request<U> out;
  const draw_key* last = nullptr;  // of the last one that was taken
  for (const update<U>* u : cohort) {
    const draw_key& key = u->sub.origin();
    update_outcome outcome = outcome_by_round(u->sub, u->weight, options);
    if (outcome && options.round && last != nullptr && last->client == key.client &&
        last->round == key.round) {
      outcome.fate = fate::repeated;
    }
    if (!outcome) {
      if (is_refused(outcome.fate, options)) refuse_round(u->sub, outcome.fate, options);
      outcome.weight = 0;
      leave_out(out.report, outcome);
      continue;
    }
    if (!admit(*u, outcome)) {
      leave_out(out.report, outcome);
      continue;
    }
    last = &key;
    ++out.report.clients;
    out.report.clipped_elements += outcome.clipped_elements;
    out.cohort_weight += outcome.weight;
    if (outcome.weight > 0) out.members.push_back({&u->sub, outcome.weight, &u->tensors});
  }
  check_total_weight("average", out.cohort_weight, options);
  return out;
}

/// Checks the arguments of an average and admits its updates. has_part(tensor): whether updates have
/// a part in a tensor; it is compared with the memory of others then.
///
/// Pre     The options have been checked.
/// Throws  as average_cohort.
template <content_ties Ties, class T, class U, class Admit, class HasPart>
cohort_request<U> request_cohort(const model& net, std::span<const update<U>> updates,
                                 const tensor_views<T>& globals, const average_options& options,
                                 Admit&& admit, HasPart&& has_part) {
  check_globals("average", net, globals);
  for (const update<U>& u : updates) {
    check_update<U>("average", net, u.sub, u.tensors, u.weight);
    check_convertible("average", net, globals, u.tensors, options.content);
  }
  cohort_request<U> out = admit_cohort<U>(in_order<Ties>(updates), options, admit);
  placed_tensors places;
  places.reserve(globals.size() * (out.members.size() + 1));
  for (std::size_t t = 0; t < globals.size(); ++t) {
    const model::tensor_info& info = net.tensors()[t];
    places.add(globals[t], info.name, access::writes);
    if (!has_part(info)) continue;
    for (const auto& m : out.members) places.add((*m.tensors)[t], info.name, access::reads);
  }
  places.check_apart("average");
  return out;
}

}  // namespace subfed::inline v0::detail
