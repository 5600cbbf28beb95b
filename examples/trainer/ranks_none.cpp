// SPDX-License-Identifier: MIT
/// Without MPI.
#include <common/mpirun.hpp>
#include <cstdio>
#include <cstdlib>

#include "ranks.hpp"

namespace trainer::ranks {

void start(int&, char**&) { common::refuse_several_ranks(); }
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
