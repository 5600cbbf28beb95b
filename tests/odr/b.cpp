// SPDX-License-Identifier: MIT
/// The other one: the same uses, so that each inline function is defined in both objects.
#include <every_header.hpp>

long long odr_b();

long long odr_b() {
  const auto set = subfed::index_set::window(8, 6, 3);
  return static_cast<long long>(set.size()) + subfed::capacity(0.5).of(8);
}
