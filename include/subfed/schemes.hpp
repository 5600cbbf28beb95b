// SPDX-License-Identifier: MIT
/// All of subfed/schemes/: which nodes a client holds.
#pragma once

#include <subfed/schemes/block.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random.hpp>
#include <subfed/schemes/rolling.hpp>
