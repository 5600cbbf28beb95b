// SPDX-License-Identifier: MIT
/// The command line.
#pragma once

#include <common/text.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <subfed/capacity.hpp>
#include <vector>

#include "method.hpp"

namespace trainer {

struct share {
  std::string text;  // as it was given, "1/16"
  subfed::capacity capacity;
};

struct options {
  std::string device = "cpu";
  std::string data = "/usr/share/datasets/fashion-mnist";
  std::string out = "out";
  std::uint64_t seed = 1;
  std::int64_t threads = 2;
  std::vector<method> methods;

  std::int64_t rounds = 192;
  std::int64_t clients = 100;
  double participation = 0.1;
  std::int64_t labels = 2;
  std::int64_t samples = 64;
  std::vector<share> capacities;

  std::int64_t local_epochs = 1;
  std::int64_t batch = 16;
  double lr = 0.05;
  double momentum = 0.9;
  double weight_decay = 5e-4;
  std::vector<double> decay_at = {0.5, 0.75};

  std::int64_t eval_every = 16;

  std::vector<subfed::capacity> capacity_values() const;
};

using common::parse_capacity;

/// Reads the command line; empty when it asked for help, which has been printed then.
///
/// Throws  failure for what cannot be meant.
std::optional<options> parse_options(int argc, const char* const* argv);

}  // namespace trainer
