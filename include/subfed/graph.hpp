// SPDX-License-Identifier: MIT
/// Derives the description of a network from its graph.
#pragma once

#include <subfed/graph/derive_model.hpp>
#include <subfed/graph/network_graph.hpp>
