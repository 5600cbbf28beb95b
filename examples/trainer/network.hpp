// SPDX-License-Identifier: MIT
/// The network as a torch module, for the whole model and for any client's part of it. What is cut is
/// described in architecture.hpp; check_match() holds the two against each other.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "architecture.hpp"

namespace trainer {

/// Mean and variance of each channel of one batch norm layer.
struct moments {
  at::Tensor mean;
  at::Tensor variance;
};
using network_moments = std::vector<moments>;  // one a batch norm layer, in order of use

/// Static batch norm, as HeteroFL has it: while clients train, each batch is normalised by its own
/// moments and nothing is remembered; the server measures the moments of the whole network when it
/// wants to evaluate it.
enum class norm_mode {
  batch,    // by the batch's own moments
  measure,  // by the batch's own moments, which are written down
  track,    // by the batch's own moments, towards which running ones move as in PyTorch
  given     // by moments measured before
};

/// A factor for each channel of each group of an architecture, (C, 1, 1): FedDrop's 1 / p.
struct channel_factors {
  std::vector<at::Tensor> stream;
  std::vector<at::Tensor> inner;
};

struct forward_pass {
  norm_mode mode = norm_mode::batch;
  network_moments* moments = nullptr;  // written in mode measure, read in mode given, both in track
  double scale = 1;                    // of each hidden layer's result: 1 / capacity in training
  const channel_factors* factors = nullptr;  // of what the relus let through
};

/// A network for 28 x 28 grey images or for texts. What is trained is left uninitialised: start() or a
/// slice fills it.
class network : public torch::nn::Module {
 public:
  /// Inputs, such as images (N, 1, 28, 28), to logits, a row for each target. The module itself is only
  /// read, so threads may share one.
  virtual at::Tensor forward(const at::Tensor& inputs, const forward_pass& pass) const = 0;
  virtual bool has_batch_norm() const { return false; }
  virtual std::int64_t classes() const = 0;

  /// The parameters in the order described, detached: same memory, no autograd.
  std::vector<at::Tensor> tensors() const;
  /// Their gradients, in the same order; set to 0 where there is none yet.
  std::vector<at::Tensor> gradients() const;
};

/// The network of an architecture, or of a client's part of it, which has these channels.
std::shared_ptr<network> make_network(const channel_counts& channels, norm_kind norm);

/// A weight and perhaps a bias under the names that PyTorch gives them. torch::nn's own layers would
/// do, but each would draw first values that are overwritten at once.
struct layer;

/// Pre-activation ResNet: a stem, then blocks by stages,
///
///   a = relu(n1(x));  skip = shortcut(a) where channels or resolution change, else x
///   out = conv2(relu(n2(conv1(a)))) + skip
///
/// and the head linear(mean(relu(n4(x)))). Convolutions have no bias. Without batch norm the n are
/// left out, and convolutions have one. The small one has a 5 x 5 stem of stride 4 and a block a
/// stage; PreResNet18 a 3 x 3 stem and two blocks a stage.
class pre_resnet : public network {
 public:
  explicit pre_resnet(const channel_counts& channels, norm_kind norm = norm_kind::batch);

  at::Tensor forward(const at::Tensor& images, const forward_pass& pass) const override;
  bool has_batch_norm() const override { return last_norm_ != nullptr; }
  std::int64_t classes() const override;

 private:
  struct block;

  std::int64_t stem_stride_;
  std::size_t blocks_each_;  // in a stage
  std::shared_ptr<layer> stem_;
  std::vector<std::shared_ptr<block>> blocks_;
  std::shared_ptr<layer> last_norm_;
  std::shared_ptr<layer> linear_;
};

/// The LeNet of [FedDrop, Table 6]: three convolutions, each followed by a pooling, and a hidden
/// layer.
class le_net : public network {
 public:
  explicit le_net(const channel_counts& channels);

  at::Tensor forward(const at::Tensor& images, const forward_pass& pass) const override;
  std::int64_t classes() const override;

 private:
  std::shared_ptr<layer> conv1_, conv2_, conv3_, fc1_, fc2_;
};

/// The network of [18] in [Cheng, Sec. 4]: two 5 x 5 convolutions that keep the resolution, each followed
/// by a 2 x 2 max pooling, and a hidden layer.
class two_convolutions : public network {
 public:
  explicit two_convolutions(const channel_counts& channels);

  at::Tensor forward(const at::Tensor& images, const forward_pass& pass) const override;
  std::int64_t classes() const override;

 private:
  std::shared_ptr<layer> conv1_, conv2_, fc1_, fc2_;
};

/// First values: weights uniform with the variance `variance` / inputs, from a random stream of the
/// seed and the tensor's name; norms' weights 1; every bias 0. The same bits on every platform.
///
/// Pre  The network is on the CPU.
void start(network& network, std::uint64_t seed, double variance = 2);

/// Throws  failure when module and description differ in number, name, order or shape of tensors.
void check_match(const network& network, const architecture& described);

}  // namespace trainer
