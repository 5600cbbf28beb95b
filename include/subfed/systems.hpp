// SPDX-License-Identifier: MIT
/// All of subfed/systems/: what FjORD, FedDrop, ensembles, server optimisers and baselines need
/// beyond the primitives of subfed.hpp.
#pragma once

#include <subfed/systems/averaging_weights.hpp>
#include <subfed/systems/channel_moments.hpp>
#include <subfed/systems/distillation.hpp>
#include <subfed/systems/ensemble.hpp>
#include <subfed/systems/feddrop.hpp>
#include <subfed/systems/feddrop_budget.hpp>
#include <subfed/systems/feddrop_optimizer.hpp>
#include <subfed/systems/masked_cross_entropy.hpp>
#include <subfed/systems/nested.hpp>
#include <subfed/systems/ordered_dropout.hpp>
#include <subfed/systems/proximal.hpp>
#include <subfed/systems/scaffold.hpp>
#include <subfed/systems/server_optimizer.hpp>
#include <subfed/systems/server_rules.hpp>
#include <subfed/systems/trajectory_similarity.hpp>
