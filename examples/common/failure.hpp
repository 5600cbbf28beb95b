// SPDX-License-Identifier: MIT
/// What a program throws when it cannot continue: one sentence for the person at the terminal.
#pragma once

#include <stdexcept>

namespace common {

class failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace common
