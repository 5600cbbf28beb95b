// SPDX-License-Identifier: MIT
/// A run on several ranks of MPI: each trains a part of every cohort. Without MPI, and without mpirun,
/// there is one rank, and nothing here does anything.
///
/// Every rank has the server's whole state and computes the same; the first rank alone writes files,
/// prints and evaluates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <subfed/average/selective.hpp>
#include <vector>

#include "failure.hpp"
#include "interruption.hpp"

namespace trainer::ranks {

/// Joins the ranks that mpirun has started; later ranks print nothing. In main(), before anything
/// else.
///
/// Throws  failure where mpirun has started several of a program that was built without MPI.
void start(int& argc, char**& argv);
/// Waits for the others and leaves them.
void finish() noexcept;
/// Ends all ranks, with a sentence: for what only this rank knows.
[[noreturn]] void abandon(const std::string& why) noexcept;

int count() noexcept;   // of ranks
int number() noexcept;  // of this one
int count_on_this_machine() noexcept;
inline bool is_first() noexcept { return number() == 0; }

/// A failure of which all ranks know.
struct common_failure : failure {
  using failure::failure;
};

/// Calls a function on every rank.
///
/// Throws  common_failure on all of them when it throws on one, with the text of the first.
void together(const std::function<void()>& f);
/// Calls it on the first rank alone.
///
/// Throws  common_failure on all of them when it throws.
void on_first(const std::function<void()>& f);

/// Which rank has each task: the most expensive first, each to the rank that has least to do.
std::vector<int> deal(std::span<const double> costs, int ranks);

/// Adds what the ranks have added.
void all_reduce(subfed::selective_average<float>& mean);
/// The bytes of one rank, on all.
void broadcast(std::span<std::byte> bytes, int from);
template <class T>
void broadcast(T& value, int from) {
  broadcast(std::as_writable_bytes(std::span<T>(&value, 1)), from);
}

/// Where a run is, for the sentence that is printed when it ends because a rank has ended: by
/// mpirun, which then ends the others within a second.
void remember(const interruption& now, const std::string& folder);

}  // namespace trainer::ranks
