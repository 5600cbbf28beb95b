// SPDX-License-Identifier: MIT
/// How evenly schemes train the nodes, by theory: what coverage.hpp counts, without drawing sets.
#pragma once

#include <subfed/coverage/theory/chosen_indices.hpp>
#include <subfed/coverage/theory/cover_bounds.hpp>
#include <subfed/coverage/theory/parameters.hpp>
#include <subfed/coverage/theory/random_counts.hpp>
#include <subfed/coverage/theory/random_cover.hpp>
#include <subfed/coverage/theory/random_round.hpp>
#include <subfed/coverage/theory/round_distribution.hpp>
#include <subfed/coverage/theory/windows.hpp>
