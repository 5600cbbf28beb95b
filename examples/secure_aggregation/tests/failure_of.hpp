// SPDX-License-Identifier: MIT
/// The sentence with which a call fails.
#pragma once

#include "bytes.hpp"

#include <string>
#include <utility>

template <class F>
std::string failure_of(F&& call) {
  try {
    std::forward<F>(call)();
  } catch (const secure_aggregation::failure& e) {
    return e.what();
  }
  return "nothing failed";
}
