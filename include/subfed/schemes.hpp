// SPDX-License-Identifier: MIT
/// All of subfed/schemes/: which nodes a client holds.
#pragma once

#include <subfed/schemes/node_scores.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/schemes/simple_ensemble.hpp>
#include <subfed/schemes/top_k.hpp>
