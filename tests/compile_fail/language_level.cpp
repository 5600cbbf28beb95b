// SPDX-License-Identifier: MIT
/// A compiler that is told an older language level stops with our sentence.
// bad 1: subfed: needs C\+\+20
// flags: -std=c++17
#include <subfed/config.hpp>
