// SPDX-License-Identifier: MIT
/// What every consumer project compiles: the umbrella header, a few calls, and the version.
#include <subfed/subfed.hpp>

#include <cstdio>

int main() {
  static_assert(SUBFED_VERSION ==
                SUBFED_VERSION_MAJOR * 10000 + SUBFED_VERSION_MINOR * 100 + SUBFED_VERSION_PATCH);
  subfed::model net;
  const auto hidden = net.group("hidden", 8);
  const auto sub = subfed::draw(net, subfed::rolling{}, {.round = 6, .capacity = 0.5});
  std::printf("subfed %d.%d.%d, round 6: {", SUBFED_VERSION_MAJOR, SUBFED_VERSION_MINOR,
              SUBFED_VERSION_PATCH);
  for (const auto node : sub[hidden]) std::printf(" %lld", static_cast<long long>(node));
  std::printf(" }\n");
  return sub[hidden] == subfed::index_set(8, {6, 7, 0, 1}) ? 0 : 1;
}
