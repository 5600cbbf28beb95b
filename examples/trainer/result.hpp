// SPDX-License-Identifier: MIT
/// What a run of one method gives. Plain numbers: reporting needs neither LibTorch nor the model.
#pragma once

#include <cstdint>
#include <string>
#include <subfed/coverage/nodes.hpp>
#include <vector>

namespace trainer {

struct evaluation {
  double accuracy = 0;        // over the test set, all classes to choose from
  double loss = 0;            // cross entropy over the test set
  double local_accuracy = 0;  // mean over clients: test images of a client's labels, its labels to
                              // choose from; or the client's own test sequences
};

struct history_entry {
  std::int64_t round = 0;  // rounds of training so far
  evaluation on_test;
  double train_loss = 0;        // mean over the cohorts since the previous entry
  std::int64_t parameters = 0;  // sent to clients so far
  std::int64_t flops = 0;       // multiply-adds of all forward passes that clients made so far
  std::vector<std::int64_t> keep = {};  // how many keep probabilities each bin has; mostly none
};

/// Keep probabilities of all clients are counted in so many bins of (0, 1] of equal width.
inline constexpr std::size_t keep_bins = 20;

/// One client after the last round. Local accuracies are as above; NaN where a client has no test image.
struct client_result {
  std::uint64_t number = 0;
  double capacity = 1;        // in the next round
  double local_accuracy = 0;  // of the server's model
  double own_accuracy = 0;    // of the model of the client's capacity, below
};

/// The model that clients of a capacity have after the last round: what the first of them would be
/// sent in the next round.
struct capacity_result {
  double capacity = 1;
  std::int64_t clients = 0;     // of that capacity
  std::int64_t parameters = 0;  // of the model
  evaluation on_test;           // local: the mean over these clients
};

/// How often nodes were held by the clients that are counted.
struct holdings {
  bool any_client = false;           // false: there is no client to count
  subfed::coverage_summary summary;  // over all groups that are cut
  std::vector<std::int64_t> nodes;   // of the group that is drawn
};

struct seconds_spent {
  double cutting = 0, training = 0, averaging = 0, evaluating = 0;

  double sum() const { return cutting + training + averaging + evaluating; }
};

/// Of one client in one round: the mean over all trainings.
struct client_costs {
  double parameters = 0;
  double bytes = 0;  // down and up
  double flops = 0;  // multiply-adds of the forward passes made for a sample
};

struct method_result {
  std::string method;
  std::string sample = "image";  // what there is for training and testing: or "sequence"
  bool is_bound = false;         // all clients equal: nothing is cut
  std::vector<history_entry> history;
  std::int64_t server_parameters = 0;
  client_costs each;
  double megabytes_per_round = 0;  // of the whole cohort, mean over rounds, 10^6 bytes
  holdings by_all;
  holdings by_partial;      // by clients that hold less than all of the model
  std::string drawn_group;  // whose nodes are listed
  std::int64_t rounds = 0;
  seconds_spent seconds;  // of the rounds trained here and before an interruption
  std::vector<client_result> clients;
  std::vector<capacity_result> capacities;  // in the order of the mix; those that clients have

  const history_entry& last_entry() const { return history.back(); }
  const evaluation& last() const { return history.back().on_test; }
};

}  // namespace trainer
