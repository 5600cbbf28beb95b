// SPDX-License-Identifier: MIT
/// What a dimension of a tensor consists of: whole parts, and parts that are the nodes of groups.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/error.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

class dimension;

/// Identifies a group of the model that returned it.
class group_id {
 public:
  constexpr explicit group_id(std::size_t number) noexcept : number_(number) {}
  constexpr std::size_t number() const noexcept { return number_; }

  /// `times` copies of the group, one after the other: the gates of an LSTM, q / k / v, heads that
  /// are cut inside, a channels-last flatten. Element (copy, node).
  dimension repeat(std::int64_t times) const;
  /// Each node stands for `elements` consecutive elements: a channels-first flatten, the width of a
  /// head. Element (node, inner).
  dimension block(std::int64_t elements) const;

  friend constexpr bool operator==(group_id, group_id) = default;

 private:
  std::size_t number_;
};

/// Identifies a tensor of the model that returned it.
class tensor_id {
 public:
  constexpr explicit tensor_id(std::size_t number) noexcept : number_(number) {}
  constexpr std::size_t number() const noexcept { return number_; }

  friend constexpr bool operator==(tensor_id, tensor_id) = default;

 private:
  std::size_t number_;
};

/// What a dimension of a tensor consists of: a sequence of parts, each either whole (a number of
/// elements that are never cut) or bound to a group. Element (copy, node, inner) of a part is at
/// (copy K + node) block + inner.
class dimension {
 public:
  struct part {
    std::size_t group;   ///< number of the group, or no_group
    std::int64_t whole;  ///< elements when there is no group
    std::int64_t repeat;
    std::int64_t block;

    friend bool operator==(const part&, const part&) = default;
  };
  static constexpr std::size_t no_group = (std::numeric_limits<std::size_t>::max)();

  /// A dimension of that many elements, all of which every client holds.
  template <std::integral Integer>
  dimension(Integer extent) : parts_{{no_group, as_extent(extent), 1, 1}} {}
  /// A dimension whose elements are the nodes of a group.
  dimension(group_id group) : parts_{{group.number(), 0, 1, 1}} {}

  /// The whole dimension repeated `times` times.
  ///
  /// Throws  error when times < 1, when repeat times block of a part is over 2^63 - 1, or for a
  ///         concatenation of more than 2^20 parts.
  dimension repeat(std::int64_t times) const {
    check_positive("repeat", times);
    dimension out = *this;
    if (parts_.size() == 1) {
      multiply("repeat", out.parts_[0], out.parts_[0].repeat, times);
      return out;
    }
    if (parts_.empty()) return out;
    auto parts = static_cast<std::int64_t>(parts_.size());
    if (!detail::multiply(parts, times)) parts = detail::largest_size;
    check_parts(parts);
    for (std::int64_t t = 1; t < times; ++t) out.append(*this);
    return out;
  }
  /// Each element of the dimension becomes `elements` consecutive ones.
  dimension block(std::int64_t elements) const {
    check_positive("block", elements);
    dimension out = *this;
    for (part& p : out.parts_) multiply("block", p, p.block, elements);
    return out;
  }

  std::span<const part> parts() const noexcept { return parts_; }

  friend dimension concat(std::span<const dimension> dimensions);
  friend bool operator==(const dimension&, const dimension&) = default;

 private:
  dimension() = default;

  template <std::integral Integer>
  static std::int64_t as_extent(Integer extent) {
    if (!std::in_range<std::int64_t>(extent) || extent < 0) {
      detail::fail("subfed: model: a dimension of " + std::to_string(extent) + " elements");
    }
    return static_cast<std::int64_t>(extent);
  }
  static void check_positive(const char* what, std::int64_t n) {
    if (n < 1) {
      detail::fail(std::string("subfed: model: ") + what + " is " + std::to_string(n) +
                   ", expected at least 1");
    }
  }
  static void multiply(const char* what, const part& p, std::int64_t& factor, std::int64_t times) {
    std::int64_t elements = times;  // of one node
    if (!detail::multiply(elements, p.repeat) || !detail::multiply(elements, p.block)) {
      detail::fail(std::string("subfed: model: ") + what + " grows beyond 2^63 - 1");
    }
    factor *= times;
  }
  static void check_parts(std::int64_t parts) {
    constexpr std::int64_t most = std::int64_t{1} << 20;
    if (parts <= most) return;
    detail::fail("subfed: model: a dimension of " + std::to_string(parts) +
                 " parts, expected at most 2^20; repeat a group, not a concatenation");
  }
  void append(const dimension& other) {
    const std::vector<part> parts = other.parts_;
    check_parts(static_cast<std::int64_t>(parts_.size() + parts.size()));
    parts_.insert(parts_.end(), parts.begin(), parts.end());
  }

  std::vector<part> parts_;
};

/// Dimensions one after the other: the input of a layer that reads a concatenation (DenseNet,
/// U-Net).
///
/// Throws  error for more than 2^20 parts.
inline dimension concat(std::span<const dimension> dimensions) {
  dimension out;
  for (const dimension& d : dimensions) out.append(d);
  return out;
}
/// concat({stem, block1, block2})
inline dimension concat(std::initializer_list<dimension> dimensions) {
  return concat(std::span<const dimension>(dimensions.begin(), dimensions.size()));
}

inline dimension group_id::repeat(std::int64_t times) const {
  return dimension(*this).repeat(times);
}
inline dimension group_id::block(std::int64_t elements) const {
  return dimension(*this).block(elements);
}

}  // namespace subfed::inline v0
