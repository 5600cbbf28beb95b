// SPDX-License-Identifier: MIT
/// One of two translation units that include every public header and use some of each floor.
#include <every_header.hpp>

long long odr_b();

static long long odr_a() {
  const auto set = subfed::index_set::window(8, 6, 3);
  return static_cast<long long>(set.size()) + subfed::capacity(0.5).of(8);
}

int main() { return odr_a() == odr_b() ? 0 : 1; }
