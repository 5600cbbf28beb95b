// SPDX-License-Identifier: MIT
#include <subfed/proof/bindings.hpp>

#include <support/checks.hpp>

#include <vector>

using subfed::binding;

TEST_CASE("the bindings of a group are its parts of dimensions, in the model's order") {
  subfed::model net;
  const auto a = net.group("a", 2);
  const auto b = net.group("b", 3);
  const auto w = net.tensor("w", {a, 5});
  const auto v = net.tensor("v", {b, subfed::concat({b, a.repeat(2), 7, a})});
  CHECK(bindings_of(net, a) == std::vector<binding>{{w, 0, 0}, {v, 1, 1}, {v, 1, 3}});
  CHECK(bindings_of(net, b) == std::vector<binding>{{v, 0, 0}, {v, 1, 0}});
  CHECK(bindings_of(net, net.group("unused", 1)).empty());
  CHECK(binding_text(net, {v, 1, 3}) == "dimension 1 of v ([b | 2 x a | 7 | a])");
  CHECK(support::message_of([&] { static_cast<void>(bindings_of(net, subfed::group_id(9))); }) ==
        "subfed: model: group number 9 is not of this model, which has 3");
}
