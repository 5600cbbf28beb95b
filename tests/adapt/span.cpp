// SPDX-License-Identifier: MIT
#include <subfed/adapt/span.hpp>

#include <doctest/doctest.h>
#include <adapt/conformance.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/scalar.hpp>
#include <support/checks.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace {

using conformance::layout;
using conformance::strided;
using support::message_of;

/// Views that are made by hand, of everything that a view can be.
template <class T>
struct by_hand {
  using element = T;
  static constexpr bool writable = true;
  static constexpr int least = 19;
  static bool fits(const layout&) { return true; }
  template <class F>
  static void with(strided<T>& memory, F&& f) {
    subfed::tensor_view<T> view = memory.view();
    f(view);
  }
};

/// The same from extents and strides of narrow integers.
struct narrow_integers {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 19;
  static bool fits(const layout&) { return true; }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const std::vector<std::uint32_t> extents(memory.extents().begin(), memory.extents().end());
    const std::vector<std::int16_t> strides(memory.where().strides.begin(),
                                            memory.where().strides.end());
    subfed::tensor_view<float> view(memory.view().data_handle(), extents, strides);
    f(view);
  }
};

bool is_flat(const layout& l) { return l.extents.size() == 1 && l.strides[0] == 1; }

struct spans {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 2;
  static bool fits(const layout& l) { return is_flat(l); }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const std::span<float> span(memory.view().data_handle(),
                                static_cast<std::size_t>(memory.extents()[0]));
    f(span);
  }
};

template <class T>
struct vectors {
  using element = T;
  static constexpr bool writable = true;
  static constexpr int least = 2;
  static bool fits(const layout& l) { return is_flat(l); }
  template <class F>
  static void with(strided<T>& memory, F&& f) {
    std::vector<T> vector = memory.elements();
    f(vector);
    memory.fill([&](std::int64_t n) { return vector[static_cast<std::size_t>(n)]; });
  }
};

/// std::array or a C array of five elements.
template <class Array>
struct arrays {
  using element = float;
  static constexpr bool writable = true;
  static constexpr int least = 1;
  static bool fits(const layout& l) { return is_flat(l) && l.extents[0] == 5; }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    Array array{};
    const std::vector<float> elements = memory.elements();
    std::copy(elements.begin(), elements.end(), std::begin(array));
    f(array);
    memory.fill([&](std::int64_t n) { return array[static_cast<std::size_t>(n)]; });
  }
};

}  // namespace

TEST_CASE("views made by hand conform") {
  CHECK(conformance::failures<by_hand<float>>() == "");
  CHECK(conformance::failures<by_hand<subfed::half>>() == "");
  CHECK(conformance::failures<by_hand<std::uint8_t>>() == "");
  CHECK(conformance::failures<narrow_integers>() == "");
}

TEST_CASE("spans, vectors and arrays conform") {
  CHECK(conformance::failures<spans>() == "");
  CHECK(conformance::failures<vectors<float>>() == "");
  CHECK(conformance::failures<vectors<std::uint8_t>>() == "");
  CHECK(conformance::failures<arrays<std::array<float, 5>>>() == "");
  CHECK(conformance::failures<arrays<float[5]>>() == "");
}

TEST_CASE("extents and strides may be of any integer type") {
  float data[24] = {};
  const std::vector<int> extents{2, 3, 4};
  const std::array<unsigned long long, 3> strides{12, 4, 1};
  const std::int8_t reversed[] = {-12, 4, 1};

  CHECK(subfed::tensor_view<float>(data, extents).stride(0) == 12);
  CHECK(subfed::tensor_view<float>(data, extents, strides).is_row_major());
  CHECK(subfed::tensor_view<const float>(data + 12, strides, reversed).extent(0) == 12);
  CHECK(subfed::tensor_view<float>(data + 12, extents, reversed).stride(0) == -12);
  CHECK(subfed::tensor_view<float>(data, std::span<const unsigned>()).size() == 1);

  const std::array<std::uint64_t, 1> large{std::uint64_t{1} << 63};
  CHECK(message_of([&] { subfed::tensor_view<float>(data, large); }) ==
        "subfed: tensor_view: 9223372036854775808 is given as an extent or a stride, which is over "
        "2^63 - 1");
  CHECK(message_of([&] {
          subfed::tensor_view<float>(data, extents, std::array{1u, 2u});
        }) == "subfed: tensor_view: 2 strides are given for shape (2, 3, 4)");
}

TEST_CASE("strides that reach over 2^63 - 1 bytes are refused") {
  float data[2] = {};
  constexpr std::int64_t far = std::int64_t{1} << 61;
  CHECK(message_of([&] { subfed::tensor_view<float>(data, {2}, {far}); }) ==
        "subfed: tensor_view: the strides (2305843009213693952,) of shape (2,) reach further than "
        "2^63 - 1 bytes");
  CHECK(message_of([&] {
          subfed::tensor_view<float>(data, {2, 2}, {far / 2, -far / 2});
        }).find("reach further") != std::string::npos);
  CHECK(subfed::tensor_view<float>(data, {1, 2}, {far, 1}).size() == 2);
  CHECK(subfed::tensor_view<float>(data, {2, 0}, {far, far}).size() == 0);
  CHECK(subfed::tensor_view<float>(nullptr, {far, far, 0, far}).size() == 0);
}

TEST_CASE("a range of vectors is a range of tensors, not one tensor") {
  static_assert(subfed::viewable<std::vector<float>>);
  static_assert(!subfed::viewable<std::vector<std::vector<float>>>);
  static_assert(!subfed::viewable<std::vector<subfed::tensor_view<float>>>);
  static_assert(!subfed::viewable<std::vector<bool>>);
  static_assert(subfed::viewable_as<const std::vector<float>, const float>);
  static_assert(!subfed::viewable_as<const std::vector<float>, float>);
  static_assert(!subfed::viewable_as<std::vector<float>, double>);
  static_assert(subfed::borrowed<std::span<float>> && !subfed::borrowed<std::vector<float>>);

  std::vector<std::vector<float>> biases{{1, 2}, {3}};
  const subfed::tensor_views<float> views(biases);
  CHECK(views.size() == 2);
  CHECK(views[1](0) == 3);
  const std::vector<subfed::tensor_view<float>> listed{views[0]};
  CHECK(subfed::tensor_views<float>(listed).size() == 1);
}

TEST_CASE("a streamed average takes vectors for what they are") {
  subfed::model net;
  const auto hidden = net.group("hidden", 3);
  net.tensor("bias", {hidden});
  std::vector<float> global{9, 9, 9};
  subfed::selective_average<float> mean(net);
  const std::vector<float> first{1, 3};
  const std::array<float, 2> second{5, 7};
  mean.add(subfed::submodel(net, {subfed::index_set(3, {0, 1})}), {first});
  mean.add(subfed::submodel(net, {subfed::index_set(3, {1, 0})}), {second}, 3);
  mean.finish({global});
  CHECK(global == std::vector<float>{5.5f, 4.5f, 9});
}
