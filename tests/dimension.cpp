// SPDX-License-Identifier: MIT
#include <subfed/dimension.hpp>
#include <subfed/model.hpp>

#include <support/checks.hpp>

#include <cstdint>
#include <string>
#include <vector>

using subfed::concat;
using subfed::dimension;
using subfed::model;
using support::message_of;

TEST_CASE("repeat and block multiply; of a concatenation repeat lists all parts again") {
  model net;
  const auto g = net.group("g", 5);
  const auto h = net.group("h", 3);
  CHECK(g.repeat(2).repeat(3) == g.repeat(6));
  CHECK(g.block(2).block(3) == g.block(6));
  CHECK(g.repeat(2).block(3) == g.block(3).repeat(2));
  CHECK(g.repeat(1) == dimension(g));
  CHECK(concat({g, h}).repeat(2) == concat({g, h, g, h}));
  CHECK(concat({g, h}).block(4) == concat({g.block(4), h.block(4)}));
  CHECK(concat({concat({g, h}), g}) == concat({g, h, g}));
  const std::vector<subfed::dimension> list{g, h, 3};
  CHECK(concat(list) == concat({g, h, 3}));
  CHECK(concat(std::vector<subfed::dimension>{}) == concat({}));
  CHECK_FALSE(concat({g, h}) == concat({h, g}));
}

TEST_CASE("a concatenation has at most 2^20 parts") {
  model net;
  const dimension three = concat({net.group("a", 1), 2, net.group("b", 1)});
  CHECK(three.repeat(349525).parts().size() == 1048575);
  CHECK(message_of([&] { three.repeat(std::int64_t{1} << 33); }) ==
        "subfed: model: a dimension of 25769803776 parts, expected at most 2^20; repeat a group, "
        "not a concatenation");
  CHECK(message_of([&] { three.repeat(std::int64_t{1} << 62); }).find("parts, expected at most") !=
        std::string::npos);
  const dimension many = three.repeat(349525);
  CHECK(message_of([&] {
          concat({many, three});
        }) ==
        "subfed: model: a dimension of 1048578 parts, expected at most 2^20; repeat a group, not "
        "a concatenation");
  CHECK(concat({}).repeat(std::int64_t{1} << 40).parts().empty());
}
