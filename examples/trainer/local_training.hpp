// SPDX-License-Identifier: MIT
/// One client's local training in a round, and its side of a method.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <subfed/capacity.hpp>
#include <subfed/draw.hpp>
#include <subfed/submodel.hpp>
#include <vector>

#include "network.hpp"
#include "options.hpp"
#include "partition.hpp"

namespace trainer {

struct local_training;

/// A mini-batch.
struct batch {
  at::Tensor inputs;
  at::Tensor targets;
  at::Tensor absent;       // (classes): true for those whose logits do not count; undefined: none
  std::uint64_t step = 0;  // of the client's steps in this round
};

/// What a client does in its local training besides SGD. Created for one local training; called on
/// one worker thread.
class client_side {
 public:
  virtual ~client_side() = default;

  /// Before the first step: the network is as it was sent.
  virtual void begin(const local_training&) {}
  /// Adds the gradient of a batch's loss to the gradients of the network, which are 0, and
  /// returns the loss.
  virtual at::Tensor gradient(const local_training&, const batch&) = 0;
  /// After the last step. `distance` is how far SGD goes in as many steps when the gradient is 1
  /// throughout: learning rate times steps, more with momentum.
  virtual void end(const local_training&, double distance) { static_cast<void>(distance); }

  /// What a method's end_round() reads of it, for other ranks of MPI, which write it into their own.
  virtual std::vector<at::Tensor> results() { return {}; }

  /// Multiply-adds of the forward passes that the last gradient() made, of a sample; empty where it
  /// was one pass of all that the client was sent.
  std::optional<std::int64_t> flops() const { return flops_; }

 protected:
  void made(std::int64_t flops_of_sample) { flops_ = flops_of_sample; }

 private:
  std::optional<std::int64_t> flops_;
};

struct local_training {
  const client* who;
  subfed::draw_key key;  // seed, round, client, share of the server's model
  subfed::submodel part;
  std::shared_ptr<trainer::network> network = {};  // as it was sent, then as it was trained
  std::unique_ptr<client_side> side = {};
  int rank = 0;  // of MPI, on which it is trained; elsewhere the network may be missing
  double loss = 0;
  std::int64_t flops_of_part = 0;  // multiply-adds of a sample's forward pass through all of it
  std::int64_t flops = 0;      // of those that were made, of a sample: the mean over all samples
  std::int64_t all_flops = 0;  // of those that were made, of all samples
};

/// The logits as the loss sees them: those of absent classes 0, minus infinity, or unchanged.
at::Tensor masked_logits(const at::Tensor& logits, const batch& samples, absent_classes rule);

/// Cross entropy with the logits of absent classes set to 0 or left out. [HeteroFL]
at::Tensor masked_loss(const at::Tensor& logits, const batch& samples, absent_classes rule);

/// The plain client: masked cross entropy, each hidden layer's result times `scale`.
class masked_client : public client_side {
 public:
  masked_client(absent_classes rule, double scale) : rule_(rule), scale_(scale) {}
  at::Tensor gradient(const local_training& own, const batch& samples) override;

 private:
  absent_classes rule_;
  double scale_;
};

struct training_plan {
  std::int64_t epochs = 1;
  std::int64_t batch = 16;
  double lr = 0.05;  // in this round
  double momentum = 0.9;
  double weight_decay = 5e-4;
};

class device_data;

/// Trains the client's network in place with SGD and notes the mean loss over the batches.
///
/// Numerics  The order of samples follows from the key, whichever thread this runs on.
void train(local_training& own, const device_data& data, const training_plan& plan);

}  // namespace trainer
