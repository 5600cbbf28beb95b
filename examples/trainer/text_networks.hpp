// SPDX-License-Identifier: MIT
/// The networks for texts: sequences (N, steps) of numbers to logits (N steps, classes) of what comes
/// next at each step. Described in architecture.hpp, like the others.
#pragma once

#include <memory>

#include "network.hpp"

namespace trainer {

/// The character LSTM of [FedDrop, Table 9], or the Transformer of [Rolex, Sec. 4].
///
/// forward_pass::scale multiplies, in the LSTM, the sums over its hidden nodes: of each gate, and what
/// the decoder reads. In the Transformer, the result of each linear layer but the last.
std::shared_ptr<network> make_text_network(const channel_counts& channels);

}  // namespace trainer
