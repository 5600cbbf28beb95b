// SPDX-License-Identifier: MIT
/// The sentence with which a call fails.
#pragma once

#include <string>

#include <common/failure.hpp>

template <class F>
std::string message_of(F&& call) {
  try {
    call();
  } catch (const common::failure& error) {
    return error.what();
  }
  return "(no failure)";
}
