// SPDX-License-Identifier: MIT
/// A simulation on several ranks of MPI: each draws a part of every cohort. Without mpirun there is one
/// rank, and nothing here does anything.
#pragma once

#include <cstddef>
#include <span>
#include <subfed/coverage/by_class.hpp>

namespace coverage_tool::ranks {

/// Joins the ranks that mpirun has started. The first one alone writes and prints; the others' output
/// is discarded.
///
/// Throws  failure where mpirun has started several of a program that was built without MPI.
void start();
/// Leaves the others: they must all do so.
void finish() noexcept;
/// Ends all ranks.
[[noreturn]] void abandon() noexcept;

int count() noexcept;
int number() noexcept;

/// Adds the clients that the other ranks have recorded in the current round.
void merge(subfed::coverage_by_class& seen);
/// The bytes of one rank, on all.
void broadcast(std::span<std::byte> bytes, int from);

}  // namespace coverage_tool::ranks
