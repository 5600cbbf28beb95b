// SPDX-License-Identifier: MIT
/// All of subfed/cost/: what a client's submodel costs.
#pragma once

#include <subfed/cost/parameters.hpp>
#include <subfed/cost/traffic.hpp>
#include <subfed/cost/workload.hpp>
