// SPDX-License-Identifier: MIT
/// Any dense tensor as pointer, extents and signed strides: what the operators work on.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/error.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// The largest rank of a tensor.
inline constexpr int max_rank = 8;

template <class T>
class tensor_view;

/// How a foreign tensor type is seen; the headers in adapt/ specialise it, and so may you:
///
///   using element_type   the element type, or void where it is known at run time only
///   owns                 true when the object owns its elements: a temporary is then refused
///   view<T>(v)           tensor_view<T> of v (an lvalue, const or not)
///
/// Views can also be made by hand, without a specialisation: tensor_view(data, extents, strides).
template <class V>
struct view_traits;

template <class T>
struct view_traits<tensor_view<T>> {
  using element_type = std::remove_const_t<T>;
  static constexpr bool owns = false;
  template <class U>
  requires std::convertible_to<T*, U*>
  static tensor_view<U> view(const tensor_view<T>& v) { return v; }
};

/// V (a possibly const object, given as an lvalue) can be seen as tensor_view<T>.
template <class V, class T>
concept viewable_as = requires(V& v) {
  { view_traits<std::remove_const_t<V>>::template view<T>(v) } -> std::same_as<tensor_view<T>>;
};

/// A type that view_traits knows.
template <class V>
concept viewable = requires {
  typename view_traits<std::remove_cvref_t<V>>::element_type;
  { view_traits<std::remove_cvref_t<V>>::owns } -> std::convertible_to<bool>;
};

/// Extents or strides as other libraries hand them out: an array, vector or span of any integer
/// type.
template <class R>
concept integer_range = requires(const R& range) {
  { std::size(range) } -> std::convertible_to<std::size_t>;
  requires std::integral<std::remove_cvref_t<decltype(*std::data(range))>>;
  requires !std::same_as<std::remove_cvref_t<decltype(*std::data(range))>, bool>;
};

/// A view of type V (as deduced from V&&) stays valid after the full expression: an lvalue, or a
/// temporary that does not own its elements.
template <class V>
concept borrowed = std::is_lvalue_reference_v<V> || !view_traits<std::remove_cvref_t<V>>::owns;

namespace detail {
/// An extent or a stride of another library, in any integer type.
///
/// Throws  error for an integer over 2^63 - 1.
template <std::integral Integer>
std::int64_t as_size(Integer value) {
  if (!std::in_range<std::int64_t>(value)) {
    fail("subfed: tensor_view: " + std::to_string(value) +
         " is given as an extent or a stride, which is over 2^63 - 1");
  }
  return static_cast<std::int64_t>(value);
}

template <class V>
inline constexpr bool is_tensor_view = false;
template <class T>
inline constexpr bool is_tensor_view<tensor_view<T>> = true;
}  // namespace detail

/// A rank up to 8, extents in elements, signed strides in elements; element (i, j, ..) is
/// data[i stride(0) + j stride(1) + ..]. Rank 0 has exactly one element. The view owns nothing.
///
/// T const: a tensor that is only read. T* converts to const T*.
template <class T>
class tensor_view {
 public:
  using element_type = T;
  using value_type = std::remove_const_t<T>;

  /// A row-major tensor without gaps: the last stride is 1.
  ///
  /// Throws  error for a rank over 8, a negative extent, more than 2^63 - 1 bytes, or null data of a
  ///         tensor that has elements.
  tensor_view(T* data, std::span<const std::int64_t> extents) : data_(data) {
    set_extents(extents);
    std::int64_t stride = 1;
    for (int r = rank_ - 1; r >= 0; --r) {
      strides_[r] = stride;
      // More than 2^63 - 1 only in an empty tensor.
      static_cast<void>(detail::multiply(stride, (std::max)(extents_[r], std::int64_t{1})));
    }
    check_reach();
  }
  tensor_view(T* data, std::initializer_list<std::int64_t> extents)
      : tensor_view(data, as_span(extents)) {}

  /// Strides in elements, of any sign; those of dimensions with extent 0 or 1 mean nothing.
  ///
  /// Throws  as above, and error when there are not as many strides as extents, or when an element
  ///         lies further than 2^63 - 1 bytes from the first, or has no address.
  tensor_view(T* data, std::span<const std::int64_t> extents, std::span<const std::int64_t> strides)
      : data_(data) {
    set_extents(extents);
    if (strides.size() != extents.size()) {
      detail::fail("subfed: tensor_view: " + std::to_string(strides.size()) +
                   " strides are given for shape " + detail::shape_text(extents));
    }
    std::copy(strides.begin(), strides.end(), strides_);
    check_reach();
  }
  tensor_view(T* data, std::initializer_list<std::int64_t> extents,
              std::initializer_list<std::int64_t> strides)
      : tensor_view(data, as_span(extents), as_span(strides)) {}

  /// The same from extents and strides of any integer type.
  ///
  ///   tensor_view<float> w(tensor.data, std::span(tensor.sizes, 4), std::span(tensor.strides, 4));
  ///
  /// Throws  as above, and error for an integer over 2^63 - 1.
  template <integer_range Extents>
  requires(!std::convertible_to<const Extents&, std::span<const std::int64_t>>)
      tensor_view(T* data, const Extents& extents)
      : tensor_view(data, std::span<const std::int64_t>(widened(extents))) {}
  template <integer_range Extents, integer_range Strides>
  requires(!std::convertible_to<const Extents&, std::span<const std::int64_t>> ||
           !std::convertible_to<const Strides&, std::span<const std::int64_t>>)
      tensor_view(T* data, const Extents& extents, const Strides& strides)
      : tensor_view(data, std::span<const std::int64_t>(widened(extents)),
                    std::span<const std::int64_t>(widened(strides))) {}

  /// Any tensor that an adaptor knows, given as an lvalue (a temporary owner would leave the view
  /// dangling and does not compile).
  template <class V>
  requires(!std::same_as<std::remove_cvref_t<V>, tensor_view> &&
           viewable_as<std::remove_reference_t<V>, T> && borrowed<V>) tensor_view(V&& tensor)
      : tensor_view(view_traits<std::remove_cvref_t<V>>::template view<T>(tensor)) {}

  /// A view of the same elements that only reads.
  template <class U>
  requires(std::same_as<const U, T> && !std::same_as<U, T>) tensor_view(const tensor_view<U>& other)
      : tensor_view(other.data_handle(), other.extents(), other.strides()) {}

  T* data_handle() const noexcept { return data_; }
  int rank() const noexcept { return rank_; }
  std::int64_t extent(int r) const noexcept { return extents_[r]; }
  std::int64_t stride(int r) const noexcept { return strides_[r]; }
  std::span<const std::int64_t> extents() const noexcept {
    return {extents_, static_cast<std::size_t>(rank_)};
  }
  std::span<const std::int64_t> strides() const noexcept {
    return {strides_, static_cast<std::size_t>(rank_)};
  }

  /// Elements: the product of the extents, 1 for rank 0.
  std::int64_t size() const noexcept {
    std::int64_t n = 1;
    for (int r = 0; r < rank_; ++r) {
      if (extents_[r] == 0) return 0;  // first: the other extents may be of any size then
    }
    for (int r = 0; r < rank_; ++r) n *= extents_[r];
    return n;
  }

  /// Row-major without gaps. Strides of dimensions of extent 1 do not count; an empty tensor always
  /// is.
  bool is_exhaustive() const noexcept {
    if (size() == 0) return true;
    std::int64_t expected = 1;
    for (int r = rank_ - 1; r >= 0; --r) {
      if (extents_[r] != 1 && strides_[r] != expected) return false;
      expected *= extents_[r];
    }
    return true;
  }

  /// Different indices are different elements. False for a stride of 0 over an extent above 1.
  ///
  /// Cost  O(rank^2), or a sort of all offsets for strides that do not nest.
  bool is_unique() const;

  /// The element at an index. Pre: one index a dimension, each in range.
  template <std::integral... Indices>
  T& operator()(Indices... indices) const noexcept {
    SUBFED_ASSERT(sizeof...(Indices) == static_cast<std::size_t>(rank_));
    std::int64_t offset = 0;
    int r = 0;
    ((offset += static_cast<std::int64_t>(indices) * strides_[r++]), ...);
    return data_[offset];
  }

 private:
  static std::span<const std::int64_t> as_span(std::initializer_list<std::int64_t> list) noexcept {
    return {list.begin(), list.size()};
  }

  template <class R>
  static std::vector<std::int64_t> widened(const R& range) {
    using integer = std::remove_cvref_t<decltype(*std::data(range))>;
    std::vector<std::int64_t> out;
    out.reserve(std::size(range));
    for (std::size_t i = 0; i < std::size(range); ++i) {
      const integer value = std::data(range)[i];
      if constexpr (requires { std::in_range<std::int64_t>(value); }) {
        out.push_back(detail::as_size(value));
      } else {  // characters
        out.push_back(static_cast<std::int64_t>(value));
      }
    }
    return out;
  }

  /// Offsets can be computed, in elements and in bytes, and added to the address.
  void check_reach() const {
    if (size() == 0) return;
    constexpr auto width = static_cast<std::int64_t>(sizeof(T));
    std::int64_t room = detail::largest_size / width - 1;
    std::int64_t below = 0;
    for (int r = 0; r < rank_; ++r) {
      if (extents_[r] == 1) continue;
      const std::int64_t most = room / (extents_[r] - 1);
      if (strides_[r] > most || strides_[r] < -most) {
        detail::fail("subfed: tensor_view: the strides " + detail::shape_text(strides()) +
                     " of shape " + detail::shape_text(extents()) +
                     " reach further than 2^63 - 1 bytes");
      }
      const std::int64_t reach = (extents_[r] - 1) * strides_[r];
      room -= reach < 0 ? -reach : reach;
      if (reach < 0) below -= reach;
    }
    const auto bytes_below = static_cast<std::uint64_t>(below * width);
    const auto bytes_above =
        static_cast<std::uint64_t>((detail::largest_size / width - room - below) * width);
    const std::uint64_t address = reinterpret_cast<std::uintptr_t>(data_);
    if (bytes_below > address || bytes_above > UINTPTR_MAX - address) {
      detail::fail("subfed: tensor_view: the strides " + detail::shape_text(strides()) +
                   " of shape " + detail::shape_text(extents()) +
                   " reach elements that have no address, from the address " +
                   std::to_string(address) + " on");
    }
  }

  void set_extents(std::span<const std::int64_t> extents) {
    if (extents.size() > static_cast<std::size_t>(max_rank)) {
      detail::fail("subfed: tensor_view: the rank " + std::to_string(extents.size()) +
                   " is over 8, in shape " + detail::shape_text(extents));
    }
    if (std::any_of(extents.begin(), extents.end(), [](std::int64_t e) { return e < 0; })) {
      detail::fail("subfed: tensor_view: a negative extent in shape " +
                   detail::shape_text(extents));
    }
    const bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
    std::int64_t bytes = static_cast<std::int64_t>(sizeof(T));
    for (const std::int64_t extent : extents) {
      if (empty || detail::multiply(bytes, extent)) continue;
      detail::fail("subfed: tensor_view: shape " + detail::shape_text(extents) +
                   " has more than 2^63 - 1 " +
                   (detail::fits_in_any_order(extents) ? "bytes" : "elements"));
    }
    if (data_ == nullptr && !empty) {
      detail::fail("subfed: tensor_view: null data for shape " + detail::shape_text(extents));
    }
    rank_ = static_cast<int>(extents.size());
    std::copy(extents.begin(), extents.end(), extents_);
  }

  T* data_;
  int rank_ = 0;
  std::int64_t extents_[max_rank]{};  // plain arrays: device code reads them
  std::int64_t strides_[max_rank]{};
};

namespace detail {

/// Calls f(offset) for every element of the view, in row-major order; offsets in elements.
template <class T, class F>
void for_each_offset(const tensor_view<T>& view, F&& f) {
  if (view.size() == 0) return;
  std::int64_t index[max_rank]{};
  std::int64_t offset = 0;
  while (true) {
    f(offset);
    int r = view.rank() - 1;
    for (; r >= 0; --r) {
      if (index[r] + 1 < view.extent(r)) {
        offset += view.stride(r);
        ++index[r];
        break;
      }
      offset -= index[r] * view.stride(r);
      index[r] = 0;
    }
    if (r < 0) return;
  }
}

/// Smallest and largest offset of an element that is not there to be empty.
template <class T>
std::pair<std::int64_t, std::int64_t> offset_range(const tensor_view<T>& view) noexcept {
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (int r = 0; r < view.rank(); ++r) {
    const std::int64_t reach = (view.extent(r) - 1) * view.stride(r);
    (reach < 0 ? low : high) += reach;
  }
  return {low, high};
}

/// Where the elements of a tensor begin, in bytes: each place once, where a stride is 0. Pre: the
/// tensor is not empty.
template <class V>
tensor_view<const std::byte> byte_starts(const V& view, std::int64_t width) {
  std::array<std::int64_t, max_rank> extents{};
  std::array<std::int64_t, max_rank> strides{};
  for (int r = 0; r < view.rank(); ++r) {
    const auto i = static_cast<std::size_t>(r);
    const bool moves = view.extent(r) != 1 && view.stride(r) != 0;
    extents[i] = moves ? view.extent(r) : 1;
    strides[i] = moves ? view.stride(r) * width : 0;
  }
  const auto rank = static_cast<std::size_t>(view.rank());
  return {reinterpret_cast<const std::byte*>(view.data_handle()),
          std::span<const std::int64_t>(extents.data(), rank),
          std::span<const std::int64_t>(strides.data(), rank)};
}

/// Whether all elements of one tensor lie between those of the other, as columns of one matrix do:
/// modulo what divides all strides their places are apart. False says nothing.
inline bool interleave(const tensor_view<const std::byte>& a, std::int64_t a_width,
                       const tensor_view<const std::byte>& b, std::int64_t b_width) noexcept {
  std::int64_t period = 0;
  for (const auto* view : {&a, &b}) {
    for (const std::int64_t stride : view->strides()) period = std::gcd(period, stride);
  }
  if (period == 0) return false;
  const auto place = [period](const tensor_view<const std::byte>& view) {
    const auto address = reinterpret_cast<std::uintptr_t>(view.data_handle());
    return static_cast<std::int64_t>(address % static_cast<std::uint64_t>(period));
  };
  const std::int64_t apart = place(b) - place(a);
  const std::int64_t behind = apart < 0 ? apart + period : apart;  // from a's places to b's
  return a_width <= behind && b_width <= period - behind;
}

/// Whether an element of one tensor lies in an element of the other; widths of elements in bytes.
/// Exact: views that interleave without meeting (the two halves of each row of one matrix) do not
/// overlap. Pre: neither is empty.
///
/// Cost  O(rank), and a sort of one view's addresses where their address ranges meet and no common
///       period of the strides keeps them apart.
inline bool overlap(const tensor_view<const std::byte>& a, std::int64_t a_width,
                    const tensor_view<const std::byte>& b, std::int64_t b_width) {
  const auto [a_low, a_high] = offset_range(a);
  const auto [b_low, b_high] = offset_range(b);
  const std::byte* const a_first = a.data_handle() + a_low;
  const std::byte* const a_last = a.data_handle() + a_high + a_width;
  const std::byte* const b_first = b.data_handle() + b_low;
  const std::byte* const b_last = b.data_handle() + b_high + b_width;
  const std::less<const std::byte*> before;
  if (!before(a_first, b_last) || !before(b_first, a_last)) return false;
  if (interleave(a, a_width, b, b_width)) return false;
  if (a.size() > b.size()) return overlap(b, b_width, a, a_width);  // the shorter list of places

  std::vector<const std::byte*> places;  // of a's elements, in order
  places.reserve(static_cast<std::size_t>(a.size()));
  for_each_offset(a, [&](std::int64_t o) { places.push_back(a.data_handle() + o); });
  std::sort(places.begin(), places.end(), before);
  bool met = false;
  for_each_offset(b, [&](std::int64_t o) {
    const std::byte* const from = b.data_handle() + o;
    // The first element of a that ends behind `from` overlaps unless it begins behind b's end.
    const auto at = std::upper_bound(places.begin(), places.end(), from, [&](auto* x, auto* place) {
      return before(x, place + a_width);
    });
    met = met || (at != places.end() && before(*at, from + b_width));
  });
  return met;
}

template <class T, class U>
bool overlap(const tensor_view<T>& a, const tensor_view<U>& b) {
  if (a.size() == 0 || b.size() == 0) return false;
  constexpr auto a_width = static_cast<std::int64_t>(sizeof(T));
  constexpr auto b_width = static_cast<std::int64_t>(sizeof(U));
  return overlap(byte_starts(a, a_width), a_width, byte_starts(b, b_width), b_width);
}

}  // namespace detail

template <class T>
bool tensor_view<T>::is_unique() const {
  if (size() == 0) return true;
  // Nested strides: each steps over everything that the smaller ones reach.
  // Sorted by insertion: in std::sort of so few GCC 12 sees a write behind the array, and warns.
  std::array<std::pair<std::int64_t, std::int64_t>, max_rank> by_stride{};  // (|stride|, extent)
  std::size_t n = 0;
  for (int r = 0; r < rank_; ++r) {
    if (extents_[r] == 1) continue;
    if (strides_[r] == 0) return false;
    const std::pair own(strides_[r] < 0 ? -strides_[r] : strides_[r], extents_[r]);
    std::size_t at = n++;
    for (; at > 0 && own < by_stride[at - 1]; --at) by_stride[at] = by_stride[at - 1];
    by_stride[at] = own;
  }
  std::int64_t reach = 0;
  bool nested = true;
  for (std::size_t i = 0; i < n; ++i) {
    nested = nested && by_stride[i].first > reach;
    reach += by_stride[i].first * (by_stride[i].second - 1);
  }
  if (nested) return true;
  if (size() - 1 > reach) return false;  // more elements than places for them

  std::vector<std::int64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(size()));
  detail::for_each_offset(*this, [&](std::int64_t o) { offsets.push_back(o); });
  std::sort(offsets.begin(), offsets.end());
  return std::adjacent_find(offsets.begin(), offsets.end()) == offsets.end();
}

/// The views of all tensors of a model, in the order in which the model lists them.
///
/// Made from a braced list of anything viewable, or from a range of it: {w1, b1}, a
/// std::vector<at::Tensor>, a std::array of tensor_views. Holds views only.
template <class T>
class tensor_views {
 public:
  tensor_views(std::initializer_list<tensor_view<T>> views) : views_(views) {}
  template <class Range>
  requires(!viewable<Range> && !std::same_as<std::remove_cvref_t<Range>, tensor_views> &&
           requires(Range & range) {
             { *std::begin(range) } -> std::convertible_to<tensor_view<T>>;
             std::end(range);
           }) tensor_views(Range&& range) {
    for (auto&& tensor : range) views_.emplace_back(tensor);
  }

  std::size_t size() const noexcept { return views_.size(); }
  const tensor_view<T>& operator[](std::size_t i) const noexcept { return views_[i]; }
  auto begin() const noexcept { return views_.begin(); }
  auto end() const noexcept { return views_.end(); }

 private:
  std::vector<tensor_view<T>> views_;
};

namespace detail {

/// How messages call an element type.
template <class T>
constexpr std::string_view type_name() noexcept {
  if constexpr (std::is_same_v<T, float>) return "float";
  if constexpr (std::is_same_v<T, double>) return "double";
  if constexpr (std::is_integral_v<T>) {
    constexpr std::string_view names[] = {"int8", "int16", "int32", "int64"};
    constexpr std::string_view unsigned_names[] = {"uint8", "uint16", "uint32", "uint64"};
    constexpr std::size_t width = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? names[width] : unsigned_names[width];
  }
  return "another type";
}

/// The element type to work on: the one named, else the one that an argument's type says.
template <class Named, class... Vs>
struct common_element;
template <class Named, class V, class... Vs>
struct common_element<Named, V, Vs...> {
 private:
  using own = typename view_traits<std::remove_cvref_t<V>>::element_type;
  using rest = typename common_element<Named, Vs...>::type;

 public:
  static_assert(std::is_void_v<own> || std::is_void_v<rest> || std::is_same_v<own, rest>,
                "subfed: the tensors of one call differ in element type");
  using type = std::conditional_t<std::is_void_v<rest>, own, rest>;
};
template <class Named>
struct common_element<Named> {
  using type = Named;
};

template <class Named, class... Vs>
struct element_of_call {
  static_assert((viewable<Vs> && ...),
                "subfed: not a tensor that subfed knows: include its header from subfed/adapt/, "
                "specialise subfed::view_traits, or make a tensor_view (lazy expressions of Eigen "
                "and xtensor have no elements yet: evaluate them first)");
  using type = typename common_element<Named, Vs...>::type;
  static_assert(!std::is_void_v<type>,
                "subfed: the element type is known at run time only: name it, as in "
                "slice<float>(...)");
};
template <class Named, class... Vs>
using element_of_call_t = typename element_of_call<Named, Vs...>::type;

/// The element type of one tensor of a call: its own, else the one named, else the other tensor's.
template <class Named, class V, class Other>
struct element_beside {
 private:
  template <class W>
  using own_of = typename view_traits<std::remove_cvref_t<W>>::element_type;
  using fallback = std::conditional_t<std::is_void_v<Named>, own_of<Other>, Named>;

 public:
  using type = std::conditional_t<std::is_void_v<own_of<V>>, fallback, own_of<V>>;
};
template <class Named, class V, class Other>
using element_beside_t = typename element_beside<Named, V, Other>::type;

/// The destination of a verb as a view that writes.
template <class T, class V>
tensor_view<T> destination(V&& tensor) {
  static_assert(
      borrowed<V>,
      "subfed: the destination is a temporary that owns its elements: the result would be "
      "lost");
  static_assert(viewable_as<std::remove_reference_t<V>, T>,
                "subfed: the destination is const, or has another element type");
  return view_traits<std::remove_cvref_t<V>>::template view<T>(tensor);
}

/// The source of a verb as a view that reads; a temporary lives as long as the call.
template <class T, class V>
tensor_view<const T> source(const V& tensor) {
  static_assert(viewable_as<const V, const T>, "subfed: the source has another element type");
  return view_traits<V>::template view<const T>(tensor);
}

}  // namespace detail

}  // namespace subfed::inline v0
