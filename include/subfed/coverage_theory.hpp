// SPDX-License-Identifier: MIT
/// How evenly schemes train the nodes, by theory: what coverage.hpp counts, without a draw.
#pragma once

#include <subfed/theory/chosen_indices.hpp>
#include <subfed/theory/cover_bounds.hpp>
#include <subfed/theory/parameters.hpp>
#include <subfed/theory/random_counts.hpp>
#include <subfed/theory/random_cover.hpp>
#include <subfed/theory/random_round.hpp>
#include <subfed/theory/round_distribution.hpp>
#include <subfed/theory/windows.hpp>
