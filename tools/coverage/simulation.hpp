// SPDX-License-Identifier: MIT
/// Runs of schemes: who held what, counted. Results depend on all options except threads.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <subfed/coverage/nodes.hpp>
#include <vector>

#include "options.hpp"

namespace coverage_tool {

/// What one class of clients held of the nodes that are cut.
struct class_result {
  std::int64_t clients = 0;
  subfed::coverage_summary nodes;
};

/// Numbers of one run.
struct repetition {
  subfed::coverage_summary widest;           // nodes of the widest group
  std::optional<std::int64_t> widest_cover;  // rounds until all were held `times` times
  subfed::holder_summary holders;            // of the widest group
  subfed::coverage_summary nodes;            // of all groups that are cut
  std::optional<std::int64_t> node_cover;
  std::vector<class_result> classes;
  std::optional<subfed::evenness> parameters;  // where they are counted
  std::optional<std::int64_t> parameter_cover;
};

/// Evenness of all nodes after some rounds, mean over the runs.
struct history_entry {
  std::int64_t round = 0;
  double gini = 0;
  double unseen_share = 0;
};

/// Nodes of a group that were never held, in one run.
struct starved_nodes {
  std::string group;
  std::int64_t first = 0, last = 0;
};

struct scheme_result {
  std::string name;
  std::vector<repetition> runs;
  std::vector<history_entry> history;
  // Of the first run:
  std::vector<std::int64_t> counts;             // of the widest group's nodes
  std::vector<std::vector<std::int64_t>> heat;  // one a history entry: counts in the rounds since
  std::vector<starved_nodes> starved;           // over all groups, in every run
};

/// What the person at the terminal sees now and then; may be called from any thread, one at a time.
struct news {
  std::size_t scheme = 0;
  bool parameters = false;
  double done = 0;  // share of all work
};

/// Calls report(news) after each part of the work.
std::vector<scheme_result> simulate(const options& settings,
                                    const std::function<void(const news&)>& report);

}  // namespace coverage_tool
