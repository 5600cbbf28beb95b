// SPDX-License-Identifier: MIT
/// Any dense tensor as pointer, extents and signed strides: what the operations work on.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/error.hpp>
#include <subfed/view_traits.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// The largest rank of a tensor.
inline constexpr int max_rank = 8;

/// Extents or strides as other libraries provide them: an array, vector or span of any integer
/// type.
template <class R>
concept integer_range = requires(const R& range) {
  { std::size(range) } -> std::convertible_to<std::size_t>;
  requires std::integral<std::remove_cvref_t<decltype(*std::data(range))>>;
  requires !std::same_as<std::remove_cvref_t<decltype(*std::data(range))>, bool>;
};

namespace detail {

/// Without gaps, the last dimension innermost.
inline bool is_row_major(std::span<const std::int64_t> extents,
                         std::span<const std::int64_t> strides) noexcept {
  if (std::find(extents.begin(), extents.end(), 0) != extents.end()) return true;
  std::int64_t expected = 1;
  for (std::size_t r = extents.size(); r-- > 0; expected *= extents[r]) {
    if (extents[r] != 1 && strides[r] != expected) return false;
  }
  return true;
}

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

/// Integers of which not all are extents.
template <class Integer>
concept wide_unsigned = std::unsigned_integral<Integer> && sizeof(Integer) >= sizeof(std::int64_t);

/// Throws unless a view of elements of `width` bytes can have these extents. It does not depend on
/// their type, so that it is compiled once.
inline void check_view_extents(bool null_data, std::span<const std::int64_t> extents,
                               std::size_t width) {
  if (extents.size() > static_cast<std::size_t>(max_rank)) {
    fail("subfed: tensor_view: the rank " + std::to_string(extents.size()) +
         " is over 8, in shape " + shape_text(extents));
  }
  if (std::any_of(extents.begin(), extents.end(), [](std::int64_t e) { return e < 0; })) {
    fail("subfed: tensor_view: a negative extent in shape " + shape_text(extents));
  }
  const bool empty = std::find(extents.begin(), extents.end(), 0) != extents.end();
  auto bytes = static_cast<std::int64_t>(width);
  for (const std::int64_t extent : extents) {
    if (empty || multiply(bytes, extent)) continue;
    fail("subfed: tensor_view: shape " + shape_text(extents) + " has more than 2^63 - 1 " +
         (fits_in_any_order(extents) ? "bytes" : "elements"));
  }
  if (null_data && !empty) {
    fail("subfed: tensor_view: null data for shape " + shape_text(extents));
  }
}

/// Throws unless offsets of a view that has elements can be computed, in elements and in bytes, and
/// added to the address.
inline void check_view_reach(std::uint64_t address, std::span<const std::int64_t> extents,
                             std::span<const std::int64_t> strides, std::size_t element_size) {
  const auto width = static_cast<std::int64_t>(element_size);
  std::int64_t room = largest_size / width - 1;
  std::int64_t below = 0;
  for (std::size_t r = 0; r < extents.size(); ++r) {
    if (extents[r] == 1) continue;
    const std::int64_t most = room / (extents[r] - 1);
    if (strides[r] > most || strides[r] < -most) {
      fail("subfed: tensor_view: the strides " + shape_text(strides) + " of shape " +
           shape_text(extents) + " reach further than 2^63 - 1 bytes");
    }
    const std::int64_t reach = (extents[r] - 1) * strides[r];
    room -= reach < 0 ? -reach : reach;
    if (reach < 0) below -= reach;
  }
  const auto bytes_below = static_cast<std::uint64_t>(below * width);
  const auto bytes_above =
      static_cast<std::uint64_t>((largest_size / width - room - below) * width);
  if (bytes_below > address || bytes_above > UINTPTR_MAX - address) {
    fail("subfed: tensor_view: the strides " + shape_text(strides) + " of shape " +
         shape_text(extents) + " reach elements that have no address, from the address " +
         std::to_string(address) + " on");
  }
}

template <class V>
inline constexpr bool is_tensor_view = false;
template <class T>
inline constexpr bool is_tensor_view<tensor_view<T>> = true;
}  // namespace detail

/// A rank up to 8, extents in elements, signed strides in elements; element (i, j, ..) is
/// data[i stride(0) + j stride(1) + ..]. Rank 0 has exactly one element. The view owns nothing.
///
/// T const: a tensor that is only read. tensor_view<T> converts to tensor_view<const T>.
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
  /// Throws  as above, and error when the numbers of strides and extents differ, or when an element
  ///         is more than 2^63 - 1 bytes from the first, or has no address.
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

  /// And from lists of sizes: tensor_view(v.data(), {v.size()}).
  template <detail::wide_unsigned Size>
  tensor_view(T* data, std::initializer_list<Size> extents)
      : tensor_view(data, std::span<const std::int64_t>(widened(extents))) {}
  template <std::integral Extent, std::integral Stride>
  requires(detail::wide_unsigned<Extent> || detail::wide_unsigned<Stride>)
      tensor_view(T* data, std::initializer_list<Extent> extents,
                  std::initializer_list<Stride> strides)
      : tensor_view(data, std::span<const std::int64_t>(widened(extents)),
                    std::span<const std::int64_t>(widened(strides))) {}

  /// Any tensor that an adaptor knows, given as an lvalue (a temporary owner would leave the view
  /// dangling and does not compile).
  template <class V>
  requires(!std::same_as<std::remove_cvref_t<V>, tensor_view> &&
           viewable_as<std::remove_reference_t<V>, T> && borrowed<V>) tensor_view(V&& tensor)
      : tensor_view(view_traits<std::remove_cvref_t<V>>::template view<T>(tensor)) {}

  /// A read-only view of the same elements.
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
      if (extents_[r] == 0) return 0;  // checked first: the other extents may then be of any size
    }
    for (int r = 0; r < rank_; ++r) n *= extents_[r];
    return n;
  }

  /// Row-major without gaps. Strides of dimensions of extent 1 do not count; an empty tensor always
  /// is.
  bool is_row_major() const noexcept { return detail::is_row_major(extents(), strides()); }

  /// Different indices are different elements. False for a stride of 0 with an extent above 1.
  ///
  /// Cost  O(rank^2), or a sort of all offsets for strides that do not nest.
  bool is_unique() const;

  /// The element at an index. Pre: one index per dimension, each in range.
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

  void set_extents(std::span<const std::int64_t> extents) {
    detail::check_view_extents(data_ == nullptr, extents, sizeof(T));
    rank_ = static_cast<int>(extents.size());
    std::copy(extents.begin(), extents.end(), extents_);
  }
  void check_reach() const {
    if (size() == 0) return;
    detail::check_view_reach(reinterpret_cast<std::uintptr_t>(data_), extents(), strides(),
                             sizeof(T));
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

/// Smallest and largest offset of an element of a view that is not empty.
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

}  // namespace detail

template <class T>
bool tensor_view<T>::is_unique() const {
  if (size() == 0) return true;
  // Nested strides: each stride steps over everything that the smaller ones reach. Sorted by
  // insertion: in std::sort of so few GCC 12 sees a write past the array's end, and warns.
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
  if (size() - 1 > reach) return false;  // more elements than places

  std::vector<std::int64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(size()));
  detail::for_each_offset(*this, [&](std::int64_t o) { offsets.push_back(o); });
  std::sort(offsets.begin(), offsets.end());
  return std::adjacent_find(offsets.begin(), offsets.end()) == offsets.end();
}

}  // namespace subfed::inline v0
