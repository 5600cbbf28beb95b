// SPDX-License-Identifier: MIT
/// The main function of the coverage tool's test program.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
