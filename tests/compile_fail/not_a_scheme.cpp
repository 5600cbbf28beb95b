// SPDX-License-Identifier: MIT
/// What is not a function from a draw request to an index_set is not taken for a scheme.
// bad 1: (no matching function|constraints not satisfied)
// bad 2: (no matching function|constraints not satisfied)
#include <subfed/draw.hpp>

void use(const subfed::model& net) {
#if SUBFED_BAD == 1
  const auto scheme = [](const subfed::draw_request& where) { return where.kept(); };
#elif SUBFED_BAD == 2
  const auto scheme = [](subfed::draw_request& where) {
    return subfed::index_set::full(where.extent);
  };
#else
  const auto scheme = [](const subfed::draw_request& where) {
    return subfed::index_set::prefix(where.extent, where.kept());
  };
#endif
  const auto sub = subfed::draw(net, scheme, {.seed = 7, .round = 3, .client = 1, .capacity = 0.5});
}
