// SPDX-License-Identifier: MIT
/// One method from the first round to the last: draw, slice, train, average, evaluate.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "method.hpp"
#include "partition.hpp"
#include "pool.hpp"
#include "result.hpp"
#include "torch_runtime.hpp"

namespace trainer {

/// What all methods share.
struct federation {
  at::Device device;
  device_data train;
  device_data test;
  std::vector<client> clients;
  std::string data_checksum = {};  // of the data: a checkpoint is for these alone
};

struct round_report {
  std::int64_t round = 0;  // rounds of training so far
  double train_loss = 0;
  std::optional<evaluation> on_test;  // in rounds that end with one
  bool resumed = false;               // read from a checkpoint, not trained
  seconds_spent before = {};          // resumed: what the rounds so far have taken
};

/// Tries what a run of the method begins with: its server, a draw for each capacity, and with
/// --resume its checkpoint. A program can do so before it writes anything.
///
/// Throws  failure or subfed::error for settings that the method cannot do, and for a checkpoint that
///         is damaged or of another run; it names the option that differs.
void check(const named_method& which, const options& settings, const federation& all,
           pool& workers);

/// Runs a method. Where settings ask for it, the state after some rounds is written to
/// <out>/<method>.safetensors, and a run continues from there: with the same results, to the bit,
/// as one that was never interrupted. It may then have more rounds, or fewer, where the learning
/// rates of the finished rounds stay the same, and other evaluations.
///
/// Throws  as check does, and interruption when the process is asked to stop; the rounds until then
///         are in the checkpoint where there is one.
method_result run(const named_method& which, const options& settings, const federation& all,
                  pool& workers, const std::function<void(const round_report&)>& report);

/// The learning rate of a round (from 0) under the schedule.
double learning_rate(const options& settings, std::int64_t round);

}  // namespace trainer
