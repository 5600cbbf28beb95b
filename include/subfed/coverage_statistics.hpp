// SPDX-License-Identifier: MIT
/// Everything about coverage beyond coverage.hpp: parameters, client classes, overlap, text, a
/// population to simulate, and the theory.
#pragma once

#include <subfed/cohort_model.hpp>
#include <subfed/coverage_by_class.hpp>
#include <subfed/coverage_text.hpp>
#include <subfed/coverage_theory.hpp>
#include <subfed/overlap.hpp>
#include <subfed/parameter_coverage.hpp>
