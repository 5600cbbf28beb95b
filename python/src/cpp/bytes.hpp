// SPDX-License-Identifier: MIT
/// Models, index sets and submodels as what pickle knows.
#pragma once

#include <subfed/capacity.hpp>
#include <subfed/index_set.hpp>
#include <subfed/submodel.hpp>

#include "common.hpp"

namespace subfed_python {

/// (extent, ((first node, length), ..)).
py::tuple set_state(const subfed::index_set& set);
/// Throws  error for what set_state would not have given.
subfed::index_set set_from(const py::tuple& state);

/// (value, relative error, numerator, denominator).
py::tuple capacity_state(const subfed::capacity& share);
/// Throws  error for what capacity_state would not have given.
subfed::capacity capacity_from(const py::handle& state);

/// The model, the sets, where they come from, and the nodes that take part of restricted groups.
py::tuple submodel_state(const subfed::submodel& sub);
/// Throws  error for what submodel_state would not have given.
subfed::submodel submodel_from(const py::tuple& state);

}  // namespace subfed_python
