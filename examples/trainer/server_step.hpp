// SPDX-License-Identifier: MIT
/// --server-optimizer: the server's step from the old values through the average to the new ones.
#pragma once

#include <memory>
#include <subfed/average/held_elements.hpp>

#include "method.hpp"

namespace trainer {

class server_step {
 public:
  virtual ~server_step() = default;
  /// Before the average and after it; `held` is what the average took. All on the CPU.
  virtual void begin(const tensor_list& globals) = 0;
  virtual void finish(const subfed::held_elements& held, const tensor_list& globals) = 0;
  /// Moments, for a checkpoint, and back.
  virtual tensor_map state() = 0;
  virtual void restore(const tensor_map& kept) = 0;
};

/// Null for server_rule::none.
///
/// Throws  subfed::error for constants out of range.
std::unique_ptr<server_step> make_server_step(const options& settings, const subfed::model& net);

}  // namespace trainer
