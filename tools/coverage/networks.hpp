// SPDX-License-Identifier: MIT
/// The networks whose nodes are counted.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <subfed/model.hpp>

namespace coverage_tool {

struct network {
  std::string name;
  subfed::model net;
  subfed::group_id widest{0};  // of those that schemes cut
};

/// One of examples/models.
///
/// Throws  failure that lists them when there is none of that name.
network find_network(const std::string& name);

/// A perceptron of hidden layers of the given widths, with 32 inputs and 10 outputs.
///
/// Throws  failure when a width is not 1 to 10^6.
network perceptron(std::span<const std::int64_t> widths);

/// The names that find_network knows, separated by commas.
std::string network_names();

}  // namespace coverage_tool
