// SPDX-License-Identifier: MIT
/// What a method is: which nodes a client is sent, what the client does, how much its update
/// counts, and what the server does besides the average. Each method is a class in methods/; to add
/// one, write a class there and a line in methods/all.cpp. Nothing else in the trainer knows a
/// method by name.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <subfed/capacity.hpp>
#include <subfed/index_set.hpp>
#include <subfed/scheme.hpp>
#include <subfed/submodel.hpp>
#include <vector>

#include "architecture.hpp"
#include "local_training.hpp"
#include "options.hpp"

namespace trainer {

using tensor_list = std::vector<at::Tensor>;           // in the model's order
using tensor_map = std::map<std::string, at::Tensor>;  // what a checkpoint keeps

class method {
 public:
  /// Keeps references to both.
  method(const options& settings, const architecture& described)
      : settings_(settings), described_(described) {}
  virtual ~method() = default;
  method(const method&) = delete;
  method& operator=(const method&) = delete;

  /// The scheme: nodes of one group that a client is sent.
  virtual subfed::index_set nodes(const subfed::draw_request& where) const = 0;

  /// By what each hidden layer's result is multiplied in the part of a client that holds a share of
  /// the model: 1 / share, so that activations are as large as in the whole model [HeteroFL], unless
  /// --scaler says otherwise.
  virtual double scale(double share) const { return settings_.scaler ? 1 / share : 1; }

  /// The client's side of a local training; called on several threads at once. By default masked
  /// cross entropy.
  virtual std::unique_ptr<client_side> client(const local_training& own) const {
    return std::make_unique<masked_client>(settings_.absent, scale(own.key.capacity.value()));
  }

  /// What an update counts for, unless --weighting says otherwise.
  virtual weight_rule weights() const { return weight_rule::none; }
  /// Whether a client counts for the rows of the output layer whose labels it has alone.
  virtual bool by_label_rows() const { return true; }
  /// What an average divides by, unless --average says otherwise.
  virtual subfed::divisor divide_by() const { return subfed::divisor::holders; }

  /// Initial values: the weights' variance times inputs; and anything else to do with them.
  virtual double start_variance() const { return 2; }
  virtual void start(const tensor_list& globals) const { static_cast<void>(globals); }

  /// Besides the average, which has been computed. `before`: the server's values when the round
  /// began, on the CPU; the networks of the cohort are where they were trained.
  /// With several ranks of MPI it is called on all of them.
  virtual void end_round(std::span<const local_training> cohort, const tensor_list& before) {
    static_cast<void>(cohort), static_cast<void>(before);
  }

  /// Whether end_round() reads the networks of the cohort.
  virtual bool reads_cohort() const { return false; }

  /// How many keep probabilities of all clients there are in each of keep_bins bins.
  virtual std::vector<std::int64_t> keep_counts() const { return {}; }

  /// The statistics of the batch norm layers with which a part of the server's model is evaluated;
  /// empty: they are measured.
  virtual network_moments moments_of(const subfed::submodel& part) const {
    static_cast<void>(part);
    return {};
  }

  /// The models whose outputs are averaged when the server's is evaluated.
  virtual std::vector<subfed::submodel> evaluated_submodels() const {
    return {subfed::submodel::full(described_.net)};
  }

  /// The state from round to round, for a checkpoint, and back.
  virtual tensor_map state() const { return {}; }
  virtual void restore(const tensor_map& kept) { static_cast<void>(kept); }
  /// The clients of which it keeps something: all that were ever asked. Empty where it does not.
  virtual std::optional<std::set<std::uint64_t>> remembered() const { return std::nullopt; }

 protected:
  const options& settings() const { return settings_; }
  const architecture& described() const { return described_; }

 private:
  const options& settings_;
  const architecture& described_;
};

struct named_method {
  method_name name;
  std::unique_ptr<method> (*make)(const options&, const architecture&);
  /// Empty: the server has the whole network and each client its own share. Otherwise the share of
  /// the network that the server and every client have.
  std::optional<subfed::capacity> (*common_share)(const options&);
};

std::span<const named_method> all_methods();
std::vector<method_name> method_names();

/// Throws  failure when there is none of that name.
const named_method& find_method(std::string_view name);

/// The largest and the smallest capacity of the clients.
subfed::capacity largest_capacity(const options& settings);
subfed::capacity smallest_capacity(const options& settings);

}  // namespace trainer
