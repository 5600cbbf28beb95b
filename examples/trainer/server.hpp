// SPDX-License-Identifier: MIT
/// The server of one method: its model, and what is done with it round after round.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <subfed/coverage/cohort_model.hpp>
#include <subfed/systems/averaging_weights.hpp>
#include <vector>

#include "checkpoint.hpp"
#include "device_cuda.hpp"
#include "method.hpp"
#include "pool.hpp"
#include "server_step.hpp"

namespace trainer {

class server {
 public:
  /// Keeps references to settings and pool.
  ///
  /// Throws  failure or subfed::error for settings that the method cannot do.
  server(const named_method& which, const options& settings, at::Device device, pool& workers);
  server(const server&) = delete;  // the method refers to what is described
  server& operator=(const server&) = delete;

  const architecture& described() const { return described_; }

  /// Throws  subfed::error when the method cannot draw for one of the capacities.
  void check_draws() const;

  /// Copies every client's part out of the model. The trainings are in the order of the cohort, and
  /// dealt out to the ranks by their multiply-adds; those of other ranks may have no network.
  std::vector<local_training> cut(std::span<const subfed::cohort_member> cohort,
                                  const std::vector<client>& clients, std::uint64_t round);

  /// Has the losses of all ranks, and their networks where they are needed here.
  void exchange(std::span<local_training> cohort);

  /// Averages every parameter over the clients that hold it; of the output layer a client counts
  /// for the rows of its labels only. Then the server's optimiser, and what else the method does.
  void average(std::span<local_training> cohort);

  /// Networks whose outputs are averaged when the server's model is evaluated.
  std::vector<std::shared_ptr<network>> evaluated_networks() const;

  /// The statistics of its batch norm layers; empty: they are measured.
  network_moments evaluated_moments() const;

  /// A network that a client has, and the factor of each hidden layer's result in it.
  struct part_network {
    std::shared_ptr<trainer::network> network;
    double scale = 1;
    std::int64_t parameters = 0;
    network_moments moments;  // of its batch norm layers; empty: they are measured
  };
  /// The one that a client of that capacity would be sent in that round; empty where it is the
  /// server's model, and for methods whose clients all have the same.
  std::optional<part_network> network_of(std::uint64_t client, std::uint64_t round,
                                         const subfed::capacity& own) const;
  /// How many keep probabilities of clients there are in each of keep_bins bins; empty for methods
  /// that have none.
  std::vector<std::int64_t> keep_counts() const { return method_->keep_counts(); }

  /// What a checkpoint needs. Tensors of a CPU are not copied: save it before the next round.
  void keep(checkpoint& in) const;
  /// That many rounds are finished.
  ///
  /// Throws  an exception whose what() is the reason when no run of these options writes it.
  void restore(const checkpoint& from, std::int64_t rounds);

 private:
  subfed::held_elements average_where_it_lies(std::span<const subfed::submodel> parts,
                                              std::span<local_training> cohort);
  subfed::held_elements average_over_ranks(std::span<const subfed::submodel> parts,
                                           std::span<local_training> cohort);
  subfed::held_elements average_by_element(std::span<const subfed::submodel> parts,
                                           std::span<local_training> cohort);
  subfed::held_elements robust_average(std::span<const subfed::submodel> parts,
                                       std::span<local_training> cohort);
  double weight_of(const local_training& own);
  subfed::average_options options_of_average(std::span<local_training> cohort);
  /// Whether every rank has all networks of a cohort, once they are trained.
  bool has_whole_cohort() const { return !settings_.fixed_sums || method_->reads_cohort(); }
  void check_all_is_used(const checkpoint& from) const;
  subfed::draw_key key_of(std::uint64_t client, std::uint64_t round,
                          const subfed::capacity& own) const;
  auto scheme() const {
    return [this](const subfed::draw_request& where) { return method_->nodes(where); };
  }

  const options& settings_;
  pool& workers_;
  at::Device device_;
  bool homogeneous_;
  architecture described_;
  std::unique_ptr<method> method_;
  std::shared_ptr<network> network_;
  std::unique_ptr<server_step> step_;
  std::optional<cuda_server> cuda_;                         // where the device is one
  std::map<std::uint64_t, std::int64_t> rounds_;            // in which each client has taken part
  std::map<std::uint64_t, subfed::update_counts> updates_;  // the same by element
};

}  // namespace trainer
