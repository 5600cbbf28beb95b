// SPDX-License-Identifier: MIT
/// All of subfed/average/: the mean of every parameter over the clients that hold it.
#pragma once

#include <subfed/average/by_element.hpp>
#include <subfed/average/clip_update.hpp>
#include <subfed/average/cohort.hpp>
#include <subfed/average/fixed_point.hpp>
#include <subfed/average/held_elements.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/robust.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/average/update.hpp>
