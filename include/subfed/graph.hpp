// SPDX-License-Identifier: MIT
/// Derives the description of a network from its graph, and checks one with it.
#pragma once

#include <subfed/graph/check_description.hpp>
#include <subfed/graph/derive_model.hpp>
#include <subfed/graph/derive_widths.hpp>
#include <subfed/graph/model_code.hpp>
#include <subfed/graph/network_graph.hpp>
