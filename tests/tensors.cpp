// SPDX-License-Identifier: MIT
#include <subfed/tensors.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/schemes/rolling.hpp>
#include <support/checks.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

using subfed::tensors;
using support::message_of;

namespace {

struct owned_layers {
  subfed::model net;
  subfed::group_id hidden = net.group("hidden", 4);
  subfed::tensor_id w1 = net.tensor("fc1.weight", {hidden, 3});
  subfed::tensor_id steps = net.tensor("steps", {}, subfed::role::counter);
  subfed::tensor_id w2 = net.tensor("fc2.weight", {2, hidden});
  subfed::submodel half =
      draw(net, subfed::rolling{}, {.round = 3, .capacity = subfed::capacity::ratio(1, 2)});
};

}  // namespace

TEST_CASE("tensors of a model and of a submodel are zeros of their shapes, in the model's order") {
  const owned_layers of;
  tensors<float> globals(of.net), locals(of.half);
  CHECK(globals.size() == 3);
  CHECK(globals.elements().size() == 12 + 1 + 8);
  CHECK(locals.elements().size() == 6 + 1 + 4);
  CHECK(
      std::all_of(globals.begin(), globals.end(), [](const auto& v) { return v.is_row_major(); }));
  CHECK(locals[of.w2].extent(0) == 2);
  CHECK(locals[of.w2].extent(1) == 2);
  CHECK(globals[of.steps].rank() == 0);
  const auto given = globals.elements();
  CHECK(std::all_of(given.begin(), given.end(), [](float x) { return x == 0; }));
  CHECK(globals[of.w2].data_handle() == given.data() + 13);
}

TEST_CASE("tensors go where views of all tensors do") {
  const owned_layers of;
  tensors<float> globals(of.net), locals(of.half);
  std::iota(globals.elements().begin(), globals.elements().end(), 1.0f);
  const tensors<float>& read = globals;
  subfed::slice<float>(read, of.half, locals);
  CHECK(locals[of.w1](0, 0) == 10);  // nodes 3, 0
  CHECK(locals[of.w1](1, 0) == 1);
  subfed::slice<void>(read, of.half, locals);
  for (float& x : locals.elements()) x = -x;
  subfed::scatter<float>(locals, of.half, globals);
  CHECK(globals[of.w2](0, 3) == -17);
  CHECK(globals[of.w2](0, 1) == 15);
  const subfed::update<float> all[] = {{of.half, locals, 1.0}};
  subfed::average_cohort<float>(of.net, all, globals);
}

TEST_CASE("a copy of tensors has elements of its own; a move keeps the views") {
  const owned_layers of;
  tensors<double> first(of.net);
  first[of.w1](1, 1) = 5;
  tensors<double> second = first;
  second[of.w1](1, 1) = 6;
  CHECK(first[of.w1](1, 1) == 5);
  CHECK(std::as_const(second)[of.w1](1, 1) == 6);
  const double* at = second.elements().data();
  tensors<double> third = std::move(second);
  CHECK(third.elements().data() == at);
  CHECK(third[of.w1].data_handle() == at);
  first = third;
  CHECK(first[of.w1](1, 1) == 6);
  CHECK(first.elements().data() != at);
}

TEST_CASE("constant tensors are only read") {
  static_assert(
      std::is_same_v<decltype(std::declval<const tensors<float>&>()[subfed::tensor_id(0)]),
                     const subfed::tensor_view<const float>&>);
  static_assert(!std::is_convertible_v<const tensors<float>&, subfed::tensor_views<float>>);
  static_assert(std::is_convertible_v<const tensors<float>&, subfed::tensor_views<const float>>);
  static_assert(std::is_convertible_v<tensors<bool>&, subfed::tensor_views<bool>>);
}

TEST_CASE("tensors of empty groups and of no model's tensors") {
  subfed::model net;
  tensors<float> none(net);
  CHECK(none.size() == 0);
  const auto empty = net.group("empty", 0);
  const auto w = net.tensor("w", {3, empty});
  const auto b = net.tensor("b", {2});
  tensors<float> some(net);
  CHECK(some[w].size() == 0);
  CHECK(some[b].data_handle() == some.elements().data());
  CHECK(message_of([&] { some[subfed::tensor_id(2)]; }) ==
        "subfed: tensors: tensor number 2 is asked of 2");
}

TEST_CASE("tensors that cannot be addressed are refused") {
  subfed::model net;
  net.tensor("huge", {std::int64_t{1} << 40, std::int64_t{1} << 22});
  CHECK(message_of([&] { tensors<double>{net}; }) ==
        "subfed: 4611686018427387904 values of 8 bytes are more than this machine can address");
}
