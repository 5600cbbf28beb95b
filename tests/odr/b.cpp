// SPDX-License-Identifier: MIT
/// The other one, so that each function of the library is defined in both objects.
#include "use.hpp"

float odr_b();

float odr_b() { return use_every_floor(); }
