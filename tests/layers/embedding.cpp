// SPDX-License-Identifier: MIT
#include <subfed/layers/embedding.hpp>

#include <support/checks.hpp>
#include <support/layouts.hpp>

using subfed::index_set;
using subfed::model;
using subfed::submodel;
using extents_type = std::vector<std::int64_t>;

TEST_CASE("an embedding has a row a word, positional tables a row a position") {
  model net;
  const auto width = net.group("width", 4);
  embedding(net, "embedding", {.count = 10, .width = width});
  positions(net, "positions", {.positions = 6, .width = width});
  const auto vision = positions(net, "pos_embedding", {6, width, subfed::batch_dimension::leading});
  CHECK(support::layout_of(net) == support::tensor_lines{"embedding.weight (10, 4)",
                                                         "positions (6, 4)",
                                                         "pos_embedding (1, 6, 4)"});
  const submodel part(net, {index_set(4, {3, 1})});
  CHECK(part.extents(vision) == extents_type{1, 6, 2});
}

TEST_CASE("a client may hold some words only") {
  model net;
  const auto words = net.group("words", 10);
  const auto table = embedding(net, "embedding", {words, 4});
  CHECK(submodel(net, {index_set(10, {9, 2, 5})}).extents(table) == extents_type{3, 4});
}
