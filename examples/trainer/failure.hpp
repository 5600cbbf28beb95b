// SPDX-License-Identifier: MIT
/// What the trainer throws when it cannot go on: one sentence for the person at the terminal.
#pragma once

#include <stdexcept>

namespace trainer {

class failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace trainer
