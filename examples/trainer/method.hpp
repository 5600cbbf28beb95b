// SPDX-License-Identifier: MIT
/// The methods that are compared. To add one, add an entry to the list in method.cpp: nothing else
/// in the trainer knows a method by name.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <subfed/capacity.hpp>
#include <subfed/index_set.hpp>
#include <subfed/schemes/site.hpp>

namespace trainer {

struct method {
  std::string name;   // on the command line, in the table and in file names
  std::string about;  // one sentence for --help

  /// Which nodes a client gets.
  std::function<subfed::index_set(const subfed::site&)> scheme;

  /// Empty: the server has the whole network and each client its own share of it. Otherwise one
  /// share for the server and all clients, chosen among the clients' capacities; every client then
  /// holds all that the server has.
  std::function<subfed::capacity(std::span<const subfed::capacity>)> common_share = {};
};

const std::vector<method>& all_methods();

/// Throws  failure that lists the methods when there is none of that name.
const method& find_method(std::string_view name);

}  // namespace trainer
