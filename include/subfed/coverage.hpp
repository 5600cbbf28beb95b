// SPDX-License-Identifier: MIT
/// All of subfed/coverage/: how often every node and parameter is held, measured, simulated and expected.
#pragma once

#include <subfed/coverage/by_class.hpp>
#include <subfed/coverage/cohort_model.hpp>
#include <subfed/coverage/evenness.hpp>
#include <subfed/coverage/nodes.hpp>
#include <subfed/coverage/parameters.hpp>
#include <subfed/coverage/shared.hpp>
#include <subfed/coverage/text.hpp>
#include <subfed/coverage/theory.hpp>
