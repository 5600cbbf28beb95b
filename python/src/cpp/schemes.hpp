// SPDX-License-Identifier: MIT
/// Python's capacities, nodes and schemes as those of the library.
#pragma once

#include <subfed/capacity.hpp>
#include <subfed/index_set.hpp>

#include "common.hpp"

namespace subfed_python {

/// A Capacity, a fraction, or a number; of numpy's float32 it knows that it is no more exact.
subfed::capacity to_capacity(const py::handle& object);

/// An IndexSet, or nodes of a group in their order: a list, a range, an array of integers.
subfed::index_set to_index_set(std::int64_t extent, const py::handle& nodes);

subfed::rounding to_rounding(std::string_view word);
std::string rounding_word(subfed::rounding mode);

}  // namespace subfed_python
