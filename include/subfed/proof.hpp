// SPDX-License-Identifier: MIT
/// Proof that a description is that of a network: by values where the network is at hand, by what looks
/// wrong where it is not.
#pragma once

#include <subfed/proof/bindings.hpp>
#include <subfed/proof/coarse_ties.hpp>
#include <subfed/proof/cutting.hpp>
#include <subfed/proof/description.hpp>
#include <subfed/proof/doubts.hpp>
#include <subfed/proof/forward.hpp>
#include <subfed/proof/permuted.hpp>
#include <subfed/proof/random_values.hpp>
