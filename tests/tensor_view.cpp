// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/detail/call_elements.hpp>
#include <subfed/detail/view_overlap.hpp>
#include <subfed/tensor_view.hpp>
#include <support/checks.hpp>
#include <support/far_memory.hpp>
#include <support/shapes.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

using subfed::borrowed;
using subfed::tensor_view;
using subfed::viewable;
using subfed::viewable_as;
using support::extents_type;
using support::message_of;

namespace {

/// A tensor of a user's own, which owns its elements.
struct owner {
  std::vector<float> elements;
};
/// One that only points at them.
struct pointer {
  float* elements;
  std::int64_t count;
};
struct unknown {};

owner make_owner() { return {{1, 2}}; }

template <class T>
std::vector<std::remove_const_t<T>> read(const tensor_view<T>& view) {
  std::vector<std::remove_const_t<T>> out;
  const extents_type extents(view.extents().begin(), view.extents().end());
  for (const auto& index : support::all_indices(extents)) {
    std::int64_t offset = 0;
    for (std::size_t r = 0; r < index.size(); ++r) {
      offset += index[r] * view.strides()[r];
    }
    out.push_back(view.data_handle()[offset]);
  }
  return out;
}

/// By looking at all pairs of indices.
bool dumb_is_unique(const support::layout& where) {
  std::vector<std::int64_t> offsets;
  for (const auto& index : support::all_indices(where.extents)) {
    offsets.push_back(where.offset(index));
  }
  return std::set<std::int64_t>(offsets.begin(), offsets.end()).size() == offsets.size();
}

/// By walking: consecutive elements in row-major order are neighbours.
bool dumb_is_exhaustive(const support::layout& where) {
  std::int64_t expected = where.origin;
  for (const auto& index : support::all_indices(where.extents)) {
    if (where.offset(index) != expected++) return false;
  }
  return true;
}

}  // namespace

template <>
struct subfed::view_traits<owner> {
  using element_type = float;
  static constexpr bool owns = true;
  template <class T>
  requires std::is_same_v<T, float> || std::is_same_v<T, const float>
  static tensor_view<T> view(owner& v) {
    return {v.elements.data(), {static_cast<std::int64_t>(v.elements.size())}};
  }
  template <class T>
  requires std::is_same_v<T, const float>
  static tensor_view<T> view(const owner& v) {
    return {v.elements.data(), {static_cast<std::int64_t>(v.elements.size())}};
  }
};
template <>
struct subfed::view_traits<pointer> {
  using element_type = float;
  static constexpr bool owns = false;
  template <class T>
  requires std::is_same_v<T, float> || std::is_same_v<T, const float>
  static tensor_view<T> view(const pointer& v) { return {v.elements, {v.count}}; }
};

TEST_CASE("what can be seen as a tensor, and what cannot") {
  static_assert(viewable<tensor_view<float>> && viewable<tensor_view<const float>>);
  static_assert(viewable<owner> && viewable<owner&> && viewable<const owner&>);
  static_assert(viewable<pointer>);
  static_assert(!viewable<unknown> && !viewable<float> && !viewable<float*> &&
                !viewable<std::vector<int>*>);

  static_assert(viewable_as<owner, float> && viewable_as<owner, const float>);
  static_assert(viewable_as<const owner, const float> && !viewable_as<const owner, float>);
  static_assert(!viewable_as<owner, double> && !viewable_as<unknown, float>);
  static_assert(viewable_as<tensor_view<float>, const float> &&
                viewable_as<tensor_view<float>, float>);
  static_assert(!viewable_as<tensor_view<const float>, float> &&
                !viewable_as<tensor_view<float>, double>);
}

TEST_CASE("a temporary that owns its elements is refused, one that borrows them is not") {
  static_assert(borrowed<owner&> && borrowed<const owner&> && !borrowed<owner> &&
                !borrowed<const owner>);
  static_assert(borrowed<pointer> && borrowed<pointer&> && borrowed<tensor_view<float>>);
  static_assert(!std::is_constructible_v<tensor_view<float>, owner>);
  static_assert(!std::is_constructible_v<tensor_view<const float>, owner> &&
                !std::is_constructible_v<tensor_view<const float>, decltype(make_owner())>);
  static_assert(std::is_convertible_v<owner&, tensor_view<float>> &&
                std::is_convertible_v<owner&, tensor_view<const float>> &&
                std::is_convertible_v<const owner&, tensor_view<const float>>);
  static_assert(!std::is_constructible_v<tensor_view<float>, const owner&>);
  static_assert(std::is_convertible_v<pointer, tensor_view<float>>);
  static_assert(std::is_convertible_v<tensor_view<float>, tensor_view<const float>>);
  static_assert(!std::is_constructible_v<tensor_view<float>, tensor_view<const float>>);
  static_assert(!std::is_constructible_v<tensor_view<double>, tensor_view<float>>);
  static_assert(!std::is_constructible_v<tensor_view<float>, unknown&>);
  static_assert(std::is_trivially_copyable_v<tensor_view<float>>);

  owner two = make_owner();
  const tensor_view<float> view = two;
  view(1) = 5;
  CHECK(two.elements == std::vector<float>{1, 5});
  const tensor_view<const float> reads = view;
  CHECK(reads(1) == 5);
  CHECK(reads.data_handle() == two.elements.data());
  const tensor_view<float> borrowed_view = pointer{two.elements.data(), 2};
  CHECK(borrowed_view(0) == 1);
}

TEST_CASE("rows 1 to 2 and columns 2 to 3 of a 3 x 4 matrix") {
  std::vector<int> m(12);
  for (int i = 0; i < 12; ++i) m[static_cast<std::size_t>(i)] = i;
  const tensor_view<int> part(m.data() + 1 * 4 + 2, {2, 2}, {4, 1});
  CHECK(read(part) == std::vector<int>{6, 7, 10, 11});
  CHECK(part(1, 0) == 10);
  CHECK(!part.is_row_major());
  CHECK(part.is_unique());
  const auto [low, high] = subfed::detail::offset_range(part);
  CHECK(low == 0);
  CHECK(high + 1 == 6);  // 1 + 1 * 4 + 1 * 1, not the 8 of extent times stride
}

TEST_CASE("a column of a 2 x 2 matrix, and a corner of a 3 x 3 one, are not packed") {
  int small[] = {0, 1, 2, 3};
  CHECK(read(tensor_view<int>(small, {2}, {2})) == std::vector<int>{0, 2});
  int large[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};
  CHECK(read(tensor_view<int>(large + 4, {2, 2}, {3, 1})) == std::vector<int>{4, 5, 7, 8});
}

TEST_CASE("a negative stride reads backwards") {
  int buffer[] = {1, 2, 3, 4};
  const tensor_view<int> reversed(buffer + 3, {4}, {-1});
  CHECK(read(reversed) == std::vector<int>{4, 3, 2, 1});
  CHECK(reversed(0) == 4);
  CHECK(reversed(3) == 1);
  CHECK(!reversed.is_row_major());
  CHECK(reversed.is_unique());
}

TEST_CASE("rank 0 has one element, shape (0,) none") {
  std::int64_t seven = 7;
  const tensor_view<std::int64_t> scalar(&seven, extents_type{});
  CHECK(scalar.rank() == 0);
  CHECK(scalar.size() == 1);
  CHECK(scalar() == 7);
  CHECK(scalar.is_row_major());
  CHECK(scalar.is_unique());
  const tensor_view<std::int64_t> none(nullptr, {0});
  CHECK(none.rank() == 1);
  CHECK(none.size() == 0);
  CHECK(none.is_row_major());
  CHECK(none.is_unique());
  CHECK(tensor_view<int>(nullptr, {3, 0}).size() == 0);
}

TEST_CASE("strides of dimensions with one element, or of an empty tensor, do not count") {
  float buffer[100] = {};
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  CHECK(tensor_view<float>(buffer, {1, 77}, {1, 1}).is_row_major());
  CHECK(tensor_view<float>(buffer, {1, 8, 0, 128}, {5, -3, 0, 99}).is_row_major());
  CHECK(tensor_view<float>(buffer, {1, 8, 0, 128}, {5, -3, 0, 99}).size() == 0);
  CHECK(tensor_view<float>(buffer, {2, 1, 3}, {3, 99, 1}).is_row_major());
  CHECK(!tensor_view<float>(buffer, {2, 1, 3}, {4, 99, 1}).is_row_major());
  for (const std::int64_t stray : {std::int64_t{0}, most, least}) {
    const tensor_view<float> view(buffer, {2, 1, 3}, {3, stray, 1});
    CHECK(view.is_row_major());
    CHECK(view.is_unique());
    CHECK(!subfed::detail::overlap_in_memory(view, tensor_view<float>(buffer + 6, {1}, {stray})));
    CHECK(subfed::detail::overlap_in_memory(
        view, tensor_view<float>(buffer + 5, {1, 1}, {stray, stray})));
    // Strides that do not nest, so that all offsets are looked at.
    const tensor_view<float> woven(buffer, {3, 2, 1}, {2, 3, stray});
    CHECK(woven.is_unique());
    std::vector<std::int64_t> offsets;
    subfed::detail::for_each_offset(view, [&](std::int64_t o) { offsets.push_back(o); });
    CHECK(offsets == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
  }
}

TEST_CASE("a stride of 0 over more than one element is not unique") {
  float one[1] = {1};
  CHECK(!tensor_view<float>(one, {3}, {0}).is_unique());
  CHECK(!tensor_view<float>(one, {3}, {0}).is_row_major());
  CHECK(tensor_view<float>(one, {1}, {0}).is_unique());
  CHECK(read(tensor_view<float>(one, {3}, {0})) == std::vector<float>{1, 1, 1});
}

TEST_CASE("strides that do not nest may still be unique") {
  float buffer[32] = {};
  CHECK(tensor_view<float>(buffer, {3, 2}, {2, 3}).is_unique());   // 0 3 2 5 4 7
  CHECK(!tensor_view<float>(buffer, {4, 2}, {2, 6}).is_unique());  // 6 twice
  CHECK(!tensor_view<float>(buffer, {2, 2}, {1, 1}).is_unique());
  CHECK(!tensor_view<float>(buffer + 1, {2, 2}, {1, -1}).is_unique());
}

TEST_CASE("size, rank, element and the questions about layout, over many layouts") {
  support::for_all("tensor_view", [] {
    const auto extents = *support::gen_extents(4);
    const auto where = *support::gen_source_layout(extents);
    support::strided<int> tensor(where);
    for (const auto& index : support::all_indices(extents)) {
      tensor(index) = static_cast<int>(where.offset(index));
    }
    const tensor_view<int> view = tensor.view();
    RC_ASSERT(view.rank() == static_cast<int>(extents.size()));
    RC_ASSERT(view.size() == support::elements_of(extents));
    for (int r = 0; r < view.rank(); ++r) {
      RC_ASSERT(view.extent(r) == extents[static_cast<std::size_t>(r)]);
      RC_ASSERT(view.stride(r) == where.strides[static_cast<std::size_t>(r)]);
    }
    RC_ASSERT(read(view) == tensor.elements());
    RC_ASSERT(view.is_unique() == dumb_is_unique(where));
    RC_ASSERT(view.is_row_major() == dumb_is_exhaustive(where));

    std::vector<int> walked;
    subfed::detail::for_each_offset(
        view, [&](std::int64_t offset) { walked.push_back(view.data_handle()[offset]); });
    RC_ASSERT(walked == tensor.elements());
    if (!walked.empty()) {
      const auto [low, high] = subfed::detail::offset_range(view);
      const auto [least, most] = std::minmax_element(walked.begin(), walked.end());
      RC_ASSERT(low + where.origin == *least);
      RC_ASSERT(high + where.origin == *most);
    }
  });
}

TEST_CASE("whether strides are unique, over strides of any kind") {
  support::for_all("is_unique()", [] {
    const auto extents = *support::gen_extents(3);
    support::layout where{extents, {}, 100, 200};
    for (std::size_t r = 0; r < extents.size(); ++r) {
      where.strides.push_back(*rc::gen::inRange<std::int64_t>(-7, 8));
    }
    float element = 0;
    RC_ASSERT(tensor_view<float>(&element, extents, where.strides).is_unique() ==
              dumb_is_unique(where));
  });
}

TEST_CASE("row-major strides are set where none are given") {
  support::for_all("tensor_view(data, extents)", [] {
    const auto extents = *support::gen_extents(5);
    std::vector<float> elements(static_cast<std::size_t>(support::elements_of(extents)) + 1);
    const tensor_view<float> view(elements.data(), extents);
    RC_ASSERT(view.is_row_major());
    const auto indices = support::all_indices(extents);
    for (std::size_t n = 0; n < indices.size(); ++n) {
      std::int64_t offset = 0;
      for (std::size_t r = 0; r < extents.size(); ++r) {
        offset += indices[n][r] * view.strides()[r];
      }
      RC_ASSERT(offset == static_cast<std::int64_t>(n));
    }
  });
}

TEST_CASE("elements by index, for each rank up to 8") {
  std::vector<int> elements(256);
  for (std::size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<int>(i);
  int* p = elements.data();
  CHECK(tensor_view<int>(p, {7})(5) == 5);
  CHECK(tensor_view<int>(p, {2, 7})(1, 5) == 12);
  CHECK(tensor_view<int>(p, {2, 2, 7})(1, 0, 5) == 19);
  CHECK(tensor_view<int>(p, {2, 2, 2, 2, 2, 2, 2, 2})(1, 0, 1, 0, 1, 0, 1, 1) == 0b10101011);
  CHECK(tensor_view<int>(p + 255, {2, 2, 2, 2, 2, 2, 2, 2}, {-128, -64, -32, -16, -8, -4, -2, -1})(
            1, 0, 1, 0, 1, 0, 1, 1) == 255 - 0b10101011);
  CHECK(tensor_view<int>(p, {2, 7})(std::uint8_t{1}, std::int64_t{5}) == 12);
}

TEST_CASE("an empty tensor may have extents whose product without the 0 is beyond 64 bits") {
  const std::int64_t huge = std::int64_t{1} << 40;
  const tensor_view<float> view(nullptr, {huge, huge, 0});
  CHECK(view.size() == 0);
  CHECK(view.is_row_major());
  CHECK(view.is_unique());
  const tensor_view<float> other(nullptr, {0, huge, huge}, {1, 1, 1});
  CHECK(other.size() == 0);
  CHECK(!subfed::detail::overlap_in_memory(view, other));
}

TEST_CASE("shapes that no tensor can have are refused") {
  float x = 0;
  CHECK(message_of([&] {
          tensor_view<float>(&x, {1, 1, 1, 1, 1, 1, 1, 1, 1});
        }) == "subfed: tensor_view: the rank 9 is over 8, in shape (1, 1, 1, 1, 1, 1, 1, 1, 1)");
  CHECK(message_of([&] {
          tensor_view<float>(&x, {2, -1});
        }) == "subfed: tensor_view: a negative extent in shape (2, -1)");
  CHECK(message_of([&] {
          tensor_view<float>(&x, {0, -1});
        }) == "subfed: tensor_view: a negative extent in shape (0, -1)");
  CHECK(message_of([&] {
          tensor_view<float>(&x, {2, 3}, {1});
        }) == "subfed: tensor_view: 1 strides are given for shape (2, 3)");
  CHECK(message_of([] { tensor_view<float>(nullptr, {2}); }) ==
        "subfed: tensor_view: null data for shape (2,)");
  CHECK(message_of([] { tensor_view<float>(nullptr, extents_type{}); }) ==
        "subfed: tensor_view: null data for shape ()");
  const std::int64_t huge = std::int64_t{1} << 32;
  CHECK(message_of([&] {
          tensor_view<float>(&x, {huge, huge});
        }) ==
        "subfed: tensor_view: shape (4294967296, 4294967296) has more than 2^63 - 1 elements");
  CHECK(message_of([&] {
          tensor_view<float>(&x, {huge, huge / 2});
        }) ==
        "subfed: tensor_view: shape (4294967296, 2147483648) has more than 2^63 - 1 elements");
  // Elements can be counted, but not their bytes.
  CHECK(message_of([&] {
          tensor_view<float>(&x, {huge, huge / 2 - 1});
        }) == "subfed: tensor_view: shape (4294967296, 2147483647) has more than 2^63 - 1 bytes");
  double y = 0;
  CHECK(message_of([&] {
          tensor_view<double>(&y, {2, std::int64_t{1} << 60});
        }) == "subfed: tensor_view: shape (2, 1152921504606846976) has more than 2^63 - 1 bytes");
  CHECK(message_of([&] {
          tensor_view<double>(&y, {2, std::int64_t{1} << 60}, {0, 0});
        }) == "subfed: tensor_view: shape (2, 1152921504606846976) has more than 2^63 - 1 bytes");
}

TEST_CASE("shapes as large as 2^63 - 1 bytes are taken" *
          doctest::skip(!support::has_far_addresses)) {
  constexpr std::int64_t huge = std::int64_t{1} << 32;
  float x = 0;
  CHECK(tensor_view<float>(&x, {huge / 2 - 1, huge / 4}).size() == (huge / 2 - 1) * (huge / 4));
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(tensor_view<float>(&x, {most / 4}).is_row_major());
  CHECK(tensor_view<const std::byte>(reinterpret_cast<std::byte*>(&x), {most}).size() == most);
}

TEST_CASE("of more elements than there are places between the first and the last, two are one") {
  float x = 0;
  const std::int64_t many = std::int64_t{1} << 28;
  CHECK_FALSE(tensor_view<float>(&x, {many, many}, {1, 1}).is_unique());
  CHECK_FALSE(tensor_view<float>(&x, {3, 3}, {1, -2}).is_unique());  // 9 elements in 7 places
  CHECK(tensor_view<float>(&x, {2, 2}, {2, -3}).is_unique());
  CHECK(tensor_view<float>(&x, {2, 3}, {1, 2}).is_unique());  // as many places as elements
}

TEST_CASE("strides that reach further than any memory does are refused") {
  float x = 0;
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t far : {most, least, most / 4 + 1, -(most / 4) - 1}) {
    CHECK(message_of([&] {
            tensor_view<float>(&x, {3, 2}, {1, far});
          }) == "subfed: tensor_view: the strides (1, " + std::to_string(far) +
                    ") of shape (3, 2) reach further than 2^63 - 1 bytes");
  }
  // Half of all addresses are on either side.
  auto* const middle = reinterpret_cast<float*>(UINTPTR_MAX / 4 + 1);
  constexpr std::int64_t reach = INTPTR_MAX / 8;
  const tensor_view<float> view(middle, {2, 2}, {reach, -reach});
  const auto [low, high] = subfed::detail::offset_range(view);
  CHECK(low == -reach);
  CHECK(high == reach);
  CHECK(message_of([&] {
          tensor_view<float>(reinterpret_cast<float*>(std::uintptr_t{1} << 20), {2, 2},
                             {5, -(std::int64_t{1} << 18) - 1});
        }) ==
        "subfed: tensor_view: the strides (5, -262145) of shape (2, 2) reach elements that have no "
        "address, from the address 1048576 on");
  CHECK_NOTHROW(tensor_view<float>(reinterpret_cast<float*>(std::uintptr_t{1} << 20), {2, 2},
                                   {5, -(std::int64_t{1} << 18)}));
  auto* const last = reinterpret_cast<float*>(UINTPTR_MAX - 7);
  CHECK_NOTHROW(tensor_view<float>(last, {1}));
  CHECK(message_of([&] { tensor_view<float>(last, {3}); }) ==
        "subfed: tensor_view: the strides (1,) of shape (3,) reach elements that have no address, "
        "from the address " +
            std::to_string(UINTPTR_MAX - 7) + " on");
}

TEST_CASE("extents and strides of any integer type are taken") {
  std::vector<int> elements{0, 1, 2, 3, 4, 5};
  const std::vector<int> extents{2, 3};
  const std::array<std::uint64_t, 2> unsigned_extents{2, 3};
  const std::int16_t strides[] = {-3, 1};
  CHECK(read(tensor_view<int>(elements.data(), extents)) == elements);
  CHECK(read(tensor_view<int>(elements.data(), unsigned_extents)) == elements);
  CHECK(read(tensor_view<int>(elements.data() + 3, extents, strides)) ==
        std::vector<int>{3, 4, 5, 0, 1, 2});
  CHECK(read(tensor_view<int>(elements.data() + 3, std::vector<std::int64_t>{2, 3}, strides)) ==
        std::vector<int>{3, 4, 5, 0, 1, 2});
  const std::vector<std::uint64_t> wrapped{std::uint64_t{1} << 63};
  CHECK(message_of([&] { tensor_view<int>(elements.data(), wrapped); }) ==
        "subfed: tensor_view: 9223372036854775808 is given as an extent or a stride, which is over "
        "2^63 - 1");
  static_assert(!std::is_constructible_v<tensor_view<int>, int*, std::vector<double>> &&
                !std::is_constructible_v<tensor_view<int>, int*, std::vector<bool>>);
}

TEST_CASE("two views overlap where they share an element, and only there") {
  float m[16] = {};
  const tensor_view<float> left(m, {4, 2}, {4, 1});
  const tensor_view<float> right(m + 2, {4, 2}, {4, 1});
  const tensor_view<float> middle(m + 1, {4, 2}, {4, 1});
  CHECK(!subfed::detail::overlap_in_memory(left, right));
  CHECK(subfed::detail::overlap_in_memory(left, middle));
  CHECK(subfed::detail::overlap_in_memory(middle, right));
  CHECK(subfed::detail::overlap_in_memory(left, left));
  CHECK(!subfed::detail::overlap_in_memory(tensor_view<float>(m, {8}),
                                           tensor_view<float>(m + 8, {8})));
  CHECK(!subfed::detail::overlap_in_memory(tensor_view<float>(m + 8, {8}),
                                           tensor_view<float>(m, {8})));
  CHECK(subfed::detail::overlap_in_memory(tensor_view<float>(m + 7, {8}, {-1}),
                                          tensor_view<float>(m, {1})));
  CHECK(!subfed::detail::overlap_in_memory(tensor_view<float>(m, {0}), left));
  // Elements of other sizes: bytes count.
  const auto* bytes = reinterpret_cast<const unsigned char*>(m);
  CHECK(subfed::detail::overlap_in_memory(tensor_view<float>(m, {1}),
                                          tensor_view<const unsigned char>(bytes + 3, {1})));
  CHECK(!subfed::detail::overlap_in_memory(tensor_view<float>(m, {1}),
                                           tensor_view<const unsigned char>(bytes + 4, {1})));
  CHECK(subfed::detail::overlap_in_memory(tensor_view<const unsigned char>(bytes + 3, {1}),
                                          tensor_view<float>(m, {1})));
}

TEST_CASE("overlap agrees with comparing all pairs of elements") {
  support::for_all("overlap_in_memory()", [] {
    const auto some_view = [] {
      const auto extents = *support::gen_extents(3);
      support::layout where{extents, {}, 0, 0};
      for (std::size_t r = 0; r < extents.size(); ++r) {
        where.strides.push_back(*rc::gen::inRange<std::int64_t>(-4, 5));
      }
      where.origin = *rc::gen::inRange<std::int64_t>(90, 120);
      return where;
    };
    const support::layout a = some_view();
    const support::layout b = some_view();
    std::set<std::int64_t> of_a;
    for (const auto& index : support::all_indices(a.extents)) of_a.insert(a.offset(index));
    bool met = false;
    for (const auto& index : support::all_indices(b.extents)) {
      met = met || of_a.count(b.offset(index)) != 0;
    }
    std::vector<int> buffer(220);
    const tensor_view<int> in_a(buffer.data() + a.origin, a.extents, a.strides);
    const tensor_view<const int> in_b(buffer.data() + b.origin, b.extents, b.strides);
    RC_ASSERT(subfed::detail::overlap_in_memory(in_a, in_b) == met);
    RC_ASSERT(subfed::detail::overlap_in_memory(in_b, in_a) == met);
  });
}

TEST_CASE("element types have short names in messages") {
  using subfed::detail::type_name;
  CHECK(type_name<float>() == "float");
  CHECK(type_name<double>() == "double");
  CHECK(type_name<std::int8_t>() == "int8");
  CHECK(type_name<std::uint16_t>() == "uint16");
  CHECK(type_name<std::int32_t>() == "int32");
  CHECK(type_name<std::int64_t>() == "int64");
  CHECK(type_name<std::uint64_t>() == "uint64");
  CHECK(type_name<long long>() == "int64");
}

TEST_CASE("extents and strides in braces may be sizes") {
  std::vector<float> v(12);
  const subfed::tensor_view line(v.data(), {v.size()});
  CHECK(line.extent(0) == 12);
  const std::size_t rows = 3;
  const std::size_t columns = 4;
  const subfed::tensor_view<const float> matrix(v.data(), {rows, columns});
  CHECK(matrix.stride(0) == 4);
  const subfed::tensor_view turned(v.data(), {rows, rows}, {1, -1});
  CHECK(turned.stride(1) == -1);
  const std::int64_t n = 2;
  CHECK(subfed::tensor_view(v.data(), {n, 3}).extent(1) == 3);
  CHECK(subfed::tensor_view(v.data(), {n, n}, {1, 2}).stride(1) == 2);
  CHECK(subfed::tensor_view(v.data(), {}).rank() == 0);
  CHECK(
      support::message_of([&] { subfed::tensor_view(v.data(), {~std::uint64_t{0}}); }) ==
      "subfed: tensor_view: 18446744073709551615 is given as an extent or a stride, which is over "
      "2^63 - 1");
}
