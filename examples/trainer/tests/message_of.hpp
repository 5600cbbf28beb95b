// SPDX-License-Identifier: MIT
/// The sentence with which a call fails.
#pragma once

#include <string>

#include "failure.hpp"

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const trainer::failure& error) {
    return error.what();
  }
  return "(no failure)";
}
