// SPDX-License-Identifier: MIT
#include <subfed/proof/permuted.hpp>

#include <subfed/model_slice.hpp>
#include <subfed/tensors.hpp>
#include <support/checks.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

using subfed::index_set;
using subfed::permuted;
using subfed::shuffled;

TEST_CASE("shuffled nodes are all there, none in its place, and no rotation from four nodes on") {
  for (std::int64_t extent = 0; extent < 40; ++extent) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const index_set s = shuffled(extent, "g", seed);
      CHECK(s.extent() == extent);
      CHECK(s.size() == extent);  // distinct, as of every index set
      bool moved = true, rotation = true;
      for (std::int64_t p = 0; p < extent; ++p) {
        moved = moved && (s[p] != p || extent == 1);
        rotation = rotation && s[p] == (s[0] + p) % extent;
      }
      CHECK(moved);
      CHECK((extent < 4 || !rotation));
    }
  }
}

TEST_CASE("shuffled is a pure function of the group's name and the seed") {
  CHECK(shuffled(30, "a", 1) == shuffled(30, "a", 1));
  CHECK(!(shuffled(30, "a", 1) == shuffled(30, "b", 1)));
  CHECK(!(shuffled(30, "a", 1) == shuffled(30, "a", 2)));
}

TEST_CASE("each of the orders of four nodes that are one cycle and no rotation is drawn") {
  std::set<std::vector<std::int64_t>> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const index_set s = shuffled(4, "g", seed);
    seen.insert(std::vector<std::int64_t>(s.begin(), s.end()));
  }
  CHECK(seen.size() == 4);  // of 6 cycles, two are rotations
}

TEST_CASE("permuted keeps groups that are never cut, and permutes one group alone") {
  subfed::model net;
  const auto a = net.group("a", 9);
  const auto classes = net.group("classes", 9, subfed::cut::never);
  const auto b = net.group("b", 9);
  const auto all = permuted(net, 3);
  CHECK(!all[a].is_full());
  CHECK(all[classes].is_full());
  CHECK(!(all[a] == all[b]));
  CHECK(all.size() == net.size());
  const auto one = permuted(net, b, 3);
  CHECK(one[a].is_full());
  CHECK(one[b] == all[b]);
  CHECK(!permuted(net, classes, 3)[classes].is_full());
}

TEST_CASE("copies and blocks of a group move as the group says") {
  subfed::model net;
  const auto g = net.group("g", 3);
  const auto w = net.tensor("w", {g.repeat(2).block(2)});
  const auto sub = permuted(net, 1);
  subfed::tensors<int> from(net), to(net);
  std::iota(from.elements().begin(), from.elements().end(), 0);
  subfed::slice<int>(from, sub, to);
  for (int copy = 0; copy < 2; ++copy) {
    for (int node = 0; node < 3; ++node) {
      for (int inner = 0; inner < 2; ++inner) {
        const auto old = static_cast<int>(sub[g][node]);
        CHECK(to[w](copy * 6 + node * 2 + inner) == copy * 6 + old * 2 + inner);
      }
    }
  }
}
