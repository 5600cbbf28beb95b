// SPDX-License-Identifier: MIT
/// Without MPI.
#include <cstdio>
#include <cstdlib>

#include "ranks.hpp"

namespace trainer::ranks {

void start(int&, char**&) {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);
    if (size == nullptr || std::atoi(size) < 2) continue;
    throw failure(
        "This program was built without MPI, so each of the processes that mpirun has started "
        "would "
        "make the whole run. Install MPI (Debian: libopenmpi-dev, openmpi-bin) and build it again, "
        "or "
        "start it without mpirun.");
  }
}
void finish() noexcept {}
void abandon(const std::string& why) noexcept {
  std::fprintf(stderr, "subfed_trainer: %s\n", why.c_str());
  std::_Exit(1);
}
int count() noexcept { return 1; }
int number() noexcept { return 0; }
int count_on_this_machine() noexcept { return 1; }
void all_reduce(subfed::selective_average<float>&) {}
void broadcast(std::span<std::byte>, int) {}
void remember(const interruption&, const std::string&) {}

}  // namespace trainer::ranks
