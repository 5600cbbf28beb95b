// SPDX-License-Identifier: MIT
/// With MPI.
#include <common/mpirun.hpp>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <subfed/adapt/mpi.hpp>

#include "ranks.hpp"

namespace coverage_tool::ranks {
namespace {

std::optional<subfed::mpi::communicator> joined;

}  // namespace

void start() {
  if (!common::was_started_by_mpirun()) return;
  int provided = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  joined.emplace(MPI_COMM_WORLD);
  if (number() == 0) return;
  for (std::FILE* const output : {stdout, stderr}) {
    if (std::freopen("/dev/null", "w", output) == nullptr) return;
  }
}
void finish() noexcept {
  if (!joined) return;
  joined.reset();
  MPI_Finalize();
}
void abandon() noexcept {
  std::fflush(nullptr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::_Exit(1);
}

int count() noexcept { return joined ? joined->size() : 1; }
int number() noexcept { return joined ? joined->rank() : 0; }
void merge(subfed::coverage_by_class& seen) {
  if (count() > 1) subfed::mpi::merge(seen, *joined);
}
void broadcast(std::span<std::byte> bytes, int from) {
  if (count() > 1) subfed::mpi::broadcast(bytes, from, *joined);
}

}  // namespace coverage_tool::ranks
