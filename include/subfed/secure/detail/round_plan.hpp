// SPDX-License-Identifier: MIT
/// What follows from the participants of a round: who sends which tensor, where its words are in the
/// streams, which elements are released.
#pragma once

#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/detail/node_ranges.hpp>
#include <subfed/dimension.hpp>
#include <subfed/error.hpp>
#include <subfed/index_set.hpp>
#include <subfed/model.hpp>
#include <subfed/secure/secure_options.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

struct planned_tensor {
  bool sent = false;        ///< local tensors and counters are not
  bool has_rows = false;    ///< private ones
  std::size_t rows_of = 0;  ///< of which of options.private_rows
  std::uint64_t first = 0;  ///< its first word in the streams
  std::int64_t elements = 0;
  std::int64_t withheld = 0;  ///< elements that are held, but not released
};

struct round_plan {
  model net;
  secure_options options;
  std::vector<secure_participant> participants;  ///< ascending by client
  std::vector<planned_tensor> tensors;
  std::vector<std::size_t> class_of;     ///< of each participant: those with the same columns
  std::vector<std::int64_t> class_size;  ///< participants
  std::vector<std::uint64_t> rows;       ///< of each private group: its first word, of class 0
  std::uint64_t words = 0;               ///< all of them
  held_elements released;

  std::int64_t needed() const noexcept { return options.least_holders + options.expected_dropouts; }
  bool sends_rows(std::size_t p) const noexcept { return class_size[class_of[p]] >= needed(); }
  bool sends(std::size_t p, std::size_t t) const noexcept {
    return tensors[t].sent && (!tensors[t].has_rows || sends_rows(p));
  }
  /// The word of the first row of a private group, for a participant's class.
  std::uint64_t first_row(std::size_t p, std::size_t group) const {
    const auto extent = static_cast<std::uint64_t>(net[options.private_rows[group]].extent);
    return rows[group] + extent * class_of[p];
  }

  /// Throws  error for a client that does not take part.
  std::size_t number_of(std::uint64_t client) const {
    const auto less = [](const secure_participant& p, std::uint64_t c) {
      return p.sub.origin().client < c;
    };
    const auto at = std::lower_bound(participants.begin(), participants.end(), client, less);
    if (at != participants.end() && at->sub.origin().client == client) {
      return static_cast<std::size_t>(at - participants.begin());
    }
    fail("subfed: secure: client " + std::to_string(client) + " does not take part in the round",
         {.client = client});
  }
  std::uint64_t client(std::size_t p) const { return participants[p].sub.origin().client; }

  /// How many of some participants send each element of a tensor.
  std::vector<std::uint32_t> holders(std::size_t t, std::span<const std::size_t> some) const {
    holder_list distinct;  // equal submodels are walked once
    for (const std::size_t p : some) {
      if (sends(p, t)) distinct.add(participants[p].sub, 1);
    }
    std::vector<std::uint32_t> out(static_cast<std::size_t>(tensors[t].elements), 0);
    for (const auto& e : distinct.entries()) {
      const auto more = static_cast<std::uint32_t>(e.weight);
      const loop_nest walk(e.sub[tensor_id(t)]);
      const std::int64_t stride = walk.global_stride();
      walk.for_each([&](std::int64_t g, std::int64_t, std::int64_t length) {
        std::uint32_t* const at = out.data() + g;
        if (stride == 1) {
          for (std::int64_t i = 0; i < length; ++i) at[i] += more;
        } else {
          for (std::int64_t i = 0; i < length; ++i) at[i * stride] += more;
        }
      });
    }
    return out;
  }
};

/// Where the tensors are in the streams, and which of them have private rows.
///
/// Throws  error for a tensor with private rows in two dimensions, or a private group that is named twice.
inline void plan_tensors(round_plan& plan) {
  const auto& groups = plan.options.private_rows;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const std::string& name = plan.net[groups[g]].name;
    for (std::size_t h = 0; h < g; ++h) {
      if (groups[h].number() != groups[g].number()) continue;
      fail("subfed: secure: private_rows name group '" + name + "' twice", {.group = name});
    }
  }
  for (const model::tensor_info& info : plan.net.tensors()) {
    planned_tensor out;
    out.sent = !info.is_local() && info.role != role::counter;
    out.first = plan.words;
    if (out.sent) {
      out.elements = static_cast<std::int64_t>(memory_size<std::uint64_t>(info.extents));
      plan.words += static_cast<std::uint64_t>(out.elements);
    }
    for (const dimension& d : info.dimensions) {
      for (const dimension::part& part : d.parts()) {
        for (std::size_t g = 0; g < groups.size(); ++g) {
          if (part.group == dimension::no_group || part.group != groups[g].number()) continue;
          if (out.has_rows) {
            fail("subfed: secure: tensor '" + info.name + "' has private rows in two places",
                 {.tensor = info.name});
          }
          out.has_rows = true;
          out.rows_of = g;
        }
      }
    }
    plan.tensors.push_back(out);
  }
}

/// Participants with the same nodes, whatever their order, of all groups that are beside private rows.
inline void plan_classes(round_plan& plan) {
  std::vector<bool> beside(plan.net.groups().size(), false);
  for (const group_id group : plan.options.private_rows) beside[group.number()] = true;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    if (!plan.tensors[t].has_rows) continue;
    for (const dimension& d : plan.net.tensors()[t].dimensions) {
      for (const dimension::part& part : d.parts()) {
        if (part.group != dimension::no_group) beside[part.group] = true;
      }
    }
  }
  std::map<std::vector<node_ranges>, std::size_t> known;
  for (const secure_participant& p : plan.participants) {
    std::vector<node_ranges> nodes;
    for (std::size_t g = 0; g < beside.size(); ++g) {
      if (beside[g]) nodes.push_back(ranges_of(p.sub.runs(group_id(g))));
    }
    const std::size_t number = known.try_emplace(std::move(nodes), known.size()).first->second;
    plan.class_of.push_back(number);
    plan.class_size.resize(known.size(), 0);
    ++plan.class_size[number];
  }
  for (const group_id group : plan.options.private_rows) {
    plan.rows.push_back(plan.words);
    plan.words += static_cast<std::uint64_t>(plan.net[group].extent) * known.size();
  }
}

inline void plan_released(round_plan& plan) {
  plan.released = held_elements(plan.net);
  std::vector<std::size_t> all(plan.participants.size());
  for (std::size_t p = 0; p < all.size(); ++p) all[p] = p;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    if (!plan.tensors[t].sent) continue;
    const std::vector<std::uint32_t> holders = plan.holders(t, all);
    const auto is_released = [&](std::size_t i) { return holders[i] >= plan.needed(); };
    for (std::size_t i = 0; i < holders.size();) {
      std::size_t end = i;
      while (end < holders.size() && is_released(end)) ++end;
      if (end > i) {
        internals::add(plan.released, t, static_cast<std::int64_t>(i), 1,
                       static_cast<std::int64_t>(end - i));
      }
      for (i = end; i < holders.size() && !is_released(i); ++i) {
        if (holders[i] != 0) ++plan.tensors[t].withheld;
      }
    }
  }
}

}  // namespace subfed::inline v0::detail
