// SPDX-License-Identifier: MIT
/// The main function of the test program of what the examples share.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
