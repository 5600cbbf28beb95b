// SPDX-License-Identifier: MIT
/// Whether mpirun has started this process, which only then needs MPI.
#pragma once

#include <cstdlib>

#include "failure.hpp"

namespace common {

inline bool was_started_by_mpirun() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"}) {
    if (std::getenv(name) != nullptr) return true;
  }
  return false;
}

/// For programs that were built without MPI.
///
/// Throws  failure where mpirun has started several of them.
inline void refuse_several_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);
    if (size == nullptr || std::atoi(size) < 2) continue;
    throw failure(
        "This program was built without MPI, so each of the processes that mpirun has started "
        "would "
        "make the whole run. Install MPI (Debian: libopenmpi-dev and openmpi-bin) and build it "
        "again, "
        "or start it without mpirun.");
  }
}

}  // namespace common
