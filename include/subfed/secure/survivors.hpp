// SPDX-License-Identifier: MIT
/// Who survived a round, and a client's check before it helps to open the sum.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/error.hpp>
#include <subfed/secure/detail/round_plan.hpp>
#include <subfed/secure/secure_round.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// Every participant in one of two lists, fixed once: whose update is in the sum, and whose is not. Of a
/// survivor the self mask is opened, of one who dropped out the pairwise masks, never both of one.
struct survivor_list {
  std::vector<std::uint64_t> survivors = {};
  std::vector<std::uint64_t> dropped = {};

  friend bool operator==(const survivor_list&, const survivor_list&) = default;
};

namespace detail {

/// Throws  error for a tensor of which few survivors would be in the sum, at the first such element.
inline void check_holders(const round_plan& plan, std::span<const std::size_t> survivors) {
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    if (!plan.tensors[t].sent) continue;
    const std::vector<std::uint32_t> holders = plan.holders(t, survivors);
    const std::span<const std::uint64_t> released = plan.released.words(tensor_id(t));
    for (std::size_t i = 0; i < holders.size(); ++i) {
      if (holders[i] == 0 || holders[i] >= plan.options.least_holders) continue;
      if ((released[i / 64] >> (i % 64) & 1) == 0) continue;
      const auto& info = plan.net.tensors()[t];
      fail("subfed: secure: tensor '" + info.name + "' has " + std::to_string(holders[i]) +
               " surviving holders at global element " +
               index_text(static_cast<std::int64_t>(i), info.extents) + ", expected " +
               std::to_string(plan.options.least_holders) + " or none",
           {.tensor = info.name});
    }
  }
  if (plan.options.private_rows.empty()) return;
  std::vector<std::int64_t> of_class(plan.class_size.size(), 0);
  for (const std::size_t p : survivors) ++of_class[plan.class_of[p]];
  for (const std::size_t p : survivors) {
    const std::int64_t count = of_class[plan.class_of[p]];
    if (!plan.sends_rows(p) || count >= plan.options.least_holders) continue;
    fail("subfed: secure: private rows have " + std::to_string(count) +
             " survivors with the columns of client " + std::to_string(plan.client(p)) +
             ", expected " + std::to_string(plan.options.least_holders) + " or none",
         {.client = plan.client(p)});
  }
}

/// Numbers of the survivors, ascending.
inline std::vector<std::size_t> check_survivors(const round_plan& plan, const survivor_list& list) {
  std::vector<char> seen(plan.participants.size(), 0);
  std::vector<std::size_t> out;
  for (const std::vector<std::uint64_t>* some : {&list.survivors, &list.dropped}) {
    const bool survive = some == &list.survivors;
    for (const std::uint64_t client : *some) {
      const std::size_t p = plan.number_of(client);
      if (seen[p] != 0) {
        fail("subfed: secure: client " + std::to_string(client) + " is " +
                 (!survive && seen[p] == 1 ? "a survivor and dropped out" : "listed twice"),
             {.client = client});
      }
      seen[p] = survive ? 1 : 2;
      if (survive) out.push_back(p);
    }
  }
  const auto missing = std::find(seen.begin(), seen.end(), 0);
  if (missing != seen.end()) {
    const std::uint64_t client = plan.client(static_cast<std::size_t>(missing - seen.begin()));
    fail("subfed: secure: client " + std::to_string(client) +
             " is neither a survivor nor dropped out",
         {.client = client});
  }
  if (static_cast<std::int64_t>(out.size()) < plan.options.threshold) {
    fail("subfed: secure: " + std::to_string(out.size()) + " clients survive, expected at least " +
         std::to_string(plan.options.threshold));
  }
  std::sort(out.begin(), out.end());
  check_holders(plan, out);
  return out;
}

}  // namespace detail

/// On a client: decides whether it helps to open the round, and does so once.
///
///   unmasking_guard guard(round, my_number);
///   guard.admit(list);  // or an error: send nothing
///   for (const auto client : list.survivors) send(my share of the seed of client's self mask);
///   for (const auto client : list.dropped) send(my share of client's key for pairs);
///
/// Where the server may lie, clients first sign the list for one another (docs/secure_aggregation.md).
class unmasking_guard {
 public:
  /// Throws  error for a client that does not take part.
  unmasking_guard(secure_round round, std::uint64_t client)
      : round_(std::move(round)), client_(client) {
    static_cast<void>(detail::internals::plan(round_).number_of(client));
  }
  unmasking_guard(const unmasking_guard&) = delete;
  unmasking_guard& operator=(const unmasking_guard&) = delete;

  /// Throws  error when it has been asked before, whatever the list; for a client in both lists, twice in
  ///         one or in none; for fewer survivors than the threshold; for a released parameter of
  ///         which fewer than least_holders survive, but not none; and when this client has not
  ///         survived.
  /// Cost    Counts the surviving holders of every parameter.
  void admit(const survivor_list& list) {
    if (asked_) {
      detail::fail("subfed: secure: client " + std::to_string(client_) +
                       " is asked to open the round a second time",
                   {.client = client_});
    }
    detail::check_survivors(detail::internals::plan(round_), list);
    if (std::find(list.survivors.begin(), list.survivors.end(), client_) == list.survivors.end()) {
      detail::fail("subfed: secure: client " + std::to_string(client_) +
                       " is asked to open a round of which it is said to have dropped out",
                   {.client = client_});
    }
    asked_ = true;
  }

 private:
  secure_round round_;
  std::uint64_t client_;
  bool asked_ = false;
};

}  // namespace subfed::inline v0
