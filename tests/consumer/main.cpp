// SPDX-License-Identifier: MIT
/// What every consumer project compiles: the umbrella header, one call, and the version.
#include <subfed/index_set.hpp>
#include <subfed/version.hpp>

#include <cstdio>

int main() {
  static_assert(SUBFED_VERSION ==
                SUBFED_VERSION_MAJOR * 10000 + SUBFED_VERSION_MINOR * 100 + SUBFED_VERSION_PATCH);
  const auto window = subfed::index_set::window(8, 6, 3);
  std::printf("subfed %d.%d.%d: {", SUBFED_VERSION_MAJOR, SUBFED_VERSION_MINOR,
              SUBFED_VERSION_PATCH);
  for (const auto node : window) std::printf(" %lld", static_cast<long long>(node));
  std::printf(" }\n");
  return window[2] == 0 ? 0 : 1;
}
