// SPDX-License-Identifier: MIT
/// A round of secure aggregation: who takes part with which submodel, and which parameters are summed.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/error.hpp>
#include <subfed/messages/detail/fields.hpp>
#include <subfed/messages/fingerprint.hpp>
#include <subfed/messages/partial_average.hpp>
#include <subfed/model.hpp>
#include <subfed/secure/detail/round_plan.hpp>
#include <subfed/secure/secure_options.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// The plan of one round, the same on the server and on every client, because it follows from what all of
/// them know. Who holds what does too, so clients mask what they have in common, and count holders:
/// a parameter of enough participants is *released*, the others are not sent by anybody.
///
///   const secure_round round(participants, {.average = {.sums = sums}, .threshold = 7});
///
/// Private rows: a client's labels stay with the client. It sends all rows of its submodel, zeros for
/// those without data, and a masked weight for every row. Weights are added over the clients with the
/// same columns, a class. (Sums over clients of different columns would tell, by their differences,
/// what a few clients have.) Clients of a class of too few do not send tensors with such rows.
///
/// A cheap handle: copies share the plan.
class secure_round {
 public:
  /// Participants in any order.
  ///
  /// Throws  error for a client that is listed twice, another model or round, a weight that is not
  ///         over 0, weights that are too large for the sums, and options that are not for secure
  ///         sums.
  /// Cost    Counts the holders of every parameter: reads and writes 4 bytes for each that a submodel
  ///         holds. Keeps a bit a parameter.
  secure_round(std::vector<secure_participant> participants, secure_options options) {
    detail::check_secure_options(options, participants.size());
    std::sort(participants.begin(), participants.end(), [](const auto& a, const auto& b) {
      return a.sub.origin().client < b.sub.origin().client;
    });
    check(participants, options.average);
    auto plan = std::make_shared<detail::round_plan>();
    plan->net = participants.front().sub.parent();
    plan->options = std::move(options);
    plan->participants = std::move(participants);
    for (secure_participant& p : plan->participants) {
      p.weight = detail::weight_in_sums("secure", p.sub, p.weight, plan->options.average);
    }
    detail::plan_tensors(*plan);
    detail::plan_classes(*plan);
    detail::plan_released(*plan);
    plan_ = std::move(plan);
  }

  const model& parent() const noexcept { return plan_->net; }
  const secure_options& options() const noexcept { return plan_->options; }
  /// Ascending by client. Weights are rounded as in fixed-point sums.
  std::span<const secure_participant> participants() const noexcept { return plan_->participants; }
  /// The elements that are summed: at least least_holders + expected_dropouts participants have them.
  const held_elements& released() const noexcept { return plan_->released; }

  /// All of the plan as bytes: options, model, and the key, the weight and the nodes of each participant.
  /// Every client hashes them with a cryptographic hash and derives its masks from the hash. Who was
  /// told another round, another capacity of one client, say, has other masks then, and the sum
  /// opens nothing. The bytes do not travel.
  ///
  /// Cost  24 bytes a run and participant.
  std::vector<std::byte> bytes() const {
    detail::field_writer out;
    out.text("subfed secure round 1");
    out.pad_to(8);
    out.u64(fingerprint(parent()));
    detail::append_options(out, options().average);
    out.i64(options().threshold);
    out.i64(options().least_holders);
    out.i64(options().expected_dropouts);
    out.u64(options().private_rows.size());
    for (const group_id group : options().private_rows) out.u64(group.number());
    out.u64(participants().size());
    for (const secure_participant& p : participants()) {
      const draw_key& key = p.sub.origin();
      const capacity::parts share = key.capacity.to_parts();
      for (const std::uint64_t x : {key.seed, key.round, key.client}) out.u64(x);
      out.f64(share.value);
      out.f64(share.relative_error);
      out.u64(static_cast<std::uint64_t>(share.numerator));
      out.u64(static_cast<std::uint64_t>(share.denominator));
      out.f64(p.weight);
      for (std::size_t g = 0; g < parent().groups().size(); ++g) {
        out.i64(p.sub.extent(group_id(g)));
        out.u64(p.sub.runs(group_id(g)).size());
        for (const run& r : p.sub.runs(group_id(g))) {
          for (const std::int64_t x : {r.position, r.first, r.length}) out.i64(x);
        }
      }
    }
    return std::move(out.all());
  }

 private:
  friend struct detail::internals;

  static void check(const std::vector<secure_participant>& all, const average_options& options) {
    double total = 0;
    for (std::size_t p = 0; p < all.size(); ++p) {
      const submodel& sub = all[p].sub;
      const std::uint64_t client = sub.origin().client;
      const auto refuse = [client](const std::string& what) {
        detail::fail("subfed: secure: client " + std::to_string(client) + " " + what,
                     {.client = client});
      };
      if (p != 0 && all[p - 1].sub.origin().client == client) refuse("is listed twice");
      if (!(sub.parent() == all[0].sub.parent())) refuse("has a submodel of another model");
      if (sub.origin().round != options.round.value_or(all[0].sub.origin().round)) {
        refuse("has a submodel of round " + std::to_string(sub.origin().round));
      }
      detail::check_weight("secure", all[p].weight, detail::client_text(sub), {.client = client});
      if (!(all[p].weight > 0)) refuse("has the weight 0");
      total += detail::weight_in_sums("secure", sub, all[p].weight, options);
    }
    detail::check_total_weight("secure", total, options);
  }

  std::shared_ptr<const detail::round_plan> plan_;
};

}  // namespace subfed::inline v0
