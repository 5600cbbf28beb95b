// SPDX-License-Identifier: MIT
/// The server's program.
#pragma once

#include "protocol.hpp"
#include "task.hpp"
#include "wire.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace secure_aggregation {

struct stage {
  std::string name;
  std::size_t clients = 0;         ///< that have answered
  std::uint64_t up = 0, down = 0;  ///< bytes of all clients together
  double seconds = 0;
};

struct outcome {
  std::vector<stage> stages;
  std::vector<std::uint64_t> survivors;  ///< whose updates are in the result
  std::int64_t released = 0;             ///< parameters that were summed
  std::string late;                      ///< how a late upload was refused, or ""
};

/// One round with so many clients, of which any may leave at any time. late: so many uploads arrive after
/// the survivors are fixed. Writes the average into the global tensors.
///
/// Throws  failure or subfed::error when there is no result; the tensors are then as before.
outcome run_server(const task& about, const registry& known, std::uint64_t round, listener& door,
                   std::size_t clients, std::size_t late, subfed::tensors<float>& globals);

/// The same without masks: each client sends its update as it is.
outcome run_plain_server(const task& about, std::uint64_t round, listener& door,
                         std::size_t clients, subfed::tensors<float>& globals);

}  // namespace secure_aggregation
