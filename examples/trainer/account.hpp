// SPDX-License-Identifier: MIT
/// What a run has counted so far, and the same as text for a checkpoint.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <subfed/coverage/nodes.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <vector>

#include "result.hpp"

namespace trainer {

/// Losses that are in no entry of the history yet.
struct open_losses {
  double sum = 0;
  std::int64_t rounds = 0;

  double mean() const { return sum / static_cast<double>(rounds); }
};

struct account {
  explicit account(const subfed::model& net) : by_all(net), by_partial(net) {}

  std::int64_t rounds = 0;
  double last_loss = 0;  // of the last round
  std::vector<history_entry> history;
  open_losses since;  // the last entry
  /// Where the last entry is there only because the run was to end with its round: `since` without
  /// that entry.
  std::optional<open_losses> since_without_last;
  std::int64_t trainings = 0, trainings_of_parts = 0, parameters = 0;
  std::int64_t flops = 0;      // of an image: the sum over the trainings
  std::int64_t all_flops = 0;  // of all images
  subfed::coverage by_all, by_partial;
  seconds_spent seconds;

  /// A local training of the current round.
  void count(const subfed::submodel& part, std::int64_t flops_of_image,
             std::int64_t flops_of_images);
  void end_round(double loss);
  /// An entry of the history. `every`: after how many rounds there is one. `keep`: counts of keep
  /// probabilities, where the method has any.
  void add(const evaluation& on_test, std::int64_t every, std::vector<std::int64_t> keep = {});
  /// The run continues: removes an entry that it has only because of its earlier end.
  void go_on(std::int64_t every);
};

std::string text_of(const account& a);

/// Throws  failure or another exception for a text that text_of() cannot have made for a run of the
///         model with that many clients per round; what() is the reason.
account read_account(const subfed::model& net, std::int64_t clients_each, const std::string& text);

}  // namespace trainer
