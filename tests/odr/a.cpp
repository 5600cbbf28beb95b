// SPDX-License-Identifier: MIT
/// One of two translation units that include every public header and use every floor.
#include "use.hpp"

float odr_b();

int main() { return use_every_floor() == odr_b() ? 0 : 1; }
