// SPDX-License-Identifier: MIT
/// A part of a client's network as a network of its own, for one step.
#pragma once

#include <subfed/adapt/torch.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/submodel.hpp>
#include <utility>

#include "../architecture.hpp"
#include "../host_copy.hpp"
#include "../network.hpp"

namespace trainer::methods {

class narrowed_network {
 public:
  /// `part` of what the client holds: see subfed::within().
  narrowed_network(const trainer::network& own, const architecture& described,
                   subfed::submodel part)
      : own_(own),
        part_(std::move(part)),
        network_(make_network(described.channels(part_), described.norm)) {
    const host_copy whole(own.tensors());
    subfed::slice<float>(whole.tensors(), part_, network_->tensors());
    network_->to(own.tensors().front().device());
  }

  const trainer::network& network() const { return *network_; }

  /// Adds this network's gradients to those of the network that it was cut from.
  void hand_gradients_over() const {
    const host_copy narrow(network_->gradients()), whole(own_.gradients());
    subfed::scatter_add<float>(narrow.tensors(), part_, whole.tensors());
    whole.put_back();
  }

 private:
  const trainer::network& own_;
  subfed::submodel part_;
  std::shared_ptr<trainer::network> network_;
};

}  // namespace trainer::methods
