// SPDX-License-Identifier: MIT
/// Tensors of every layout for the tests: gaps between elements, dimensions in any order, negative
/// and zero strides, guard elements around them. Index arithmetic is done here a second time, so
/// that a test does not judge the library by itself.
#pragma once

#include <subfed/index_set.hpp>
#include <subfed/tensor_view.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <ostream>
#include <utility>
#include <vector>

namespace support {

using extents_type = std::vector<std::int64_t>;
using index_type = std::vector<std::int64_t>;

/// Random choices of a test, from its seed alone (SplitMix64; not the library's own generator).
class seeded {
 public:
  explicit seeded(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  /// low .. high, both included.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(high - low + 1));
  }
  /// True once in n times.
  bool one_in(std::int64_t n) { return between(1, n) == 1; }
  /// [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  template <class T>
  void shuffle(std::vector<T>& values) {
    for (std::size_t i = values.size(); i > 1; --i) {
      std::swap(values[i - 1], values[static_cast<std::size_t>(next() % i)]);
    }
  }

 private:
  std::uint64_t state_;
};

/// Number of elements of a shape.
inline std::int64_t elements_of(const extents_type& extents) {
  return std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
}

/// Every index of a shape, in row-major order; one empty index for rank 0.
inline std::vector<index_type> all_indices(const extents_type& extents) {
  std::vector<index_type> out{index_type{}};
  for (const std::int64_t extent : extents) {
    std::vector<index_type> longer;
    for (const index_type& head : out) {
      for (std::int64_t i = 0; i < extent; ++i) {
        longer.push_back(head);
        longer.back().push_back(i);
      }
    }
    out = std::move(longer);
  }
  return out;
}

/// The row-major number of an index.
inline std::size_t row_major_number(const extents_type& extents, const index_type& index) {
  std::int64_t number = 0;
  for (std::size_t r = 0; r < extents.size(); ++r) number = number * extents[r] + index[r];
  return static_cast<std::size_t>(number);
}

/// Where the elements of a shape lie in a buffer.
struct layout {
  extents_type extents;
  std::vector<std::int64_t> strides;
  std::int64_t origin = 0;  ///< of element (0, 0, ..) in the buffer
  std::int64_t length = 0;  ///< of the buffer, guards included

  std::int64_t offset(const index_type& index) const {
    std::int64_t at = origin;
    for (std::size_t r = 0; r < index.size(); ++r) at += index[r] * strides[r];
    return at;
  }

  friend std::ostream& operator<<(std::ostream& out, const layout& l) {
    out << "extents";
    for (const auto e : l.extents) out << ' ' << e;
    out << " strides";
    for (const auto s : l.strides) out << ' ' << s;
    return out << " origin " << l.origin;
  }
};

inline constexpr std::int64_t guard = 3;

/// Lays dimensions out from the innermost of `order` (its last) to the outermost. Dimension r takes
/// step[r] times the room it needs (1: no gap), in the direction sign[r]; sign 0 is a broadcast.
inline layout make_layout(const extents_type& extents, const std::vector<std::size_t>& order,
                          const std::vector<std::int64_t>& step, const std::vector<int>& sign) {
  layout out{extents, std::vector<std::int64_t>(extents.size(), 0), guard, 0};
  std::int64_t room = 1;
  for (std::size_t k = order.size(); k-- > 0;) {
    const std::size_t r = order[k];
    if (sign[r] == 0) continue;
    const std::int64_t stride = room * step[r];
    const std::int64_t extent = extents[r] > 0 ? extents[r] : 1;
    out.strides[r] = sign[r] * stride;
    if (sign[r] < 0) out.origin += (extent - 1) * stride;
    room = stride * extent;
  }
  out.length = room + 2 * guard;
  return out;
}

/// Row-major without gaps.
inline layout row_major(const extents_type& extents) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  return make_layout(extents, order, std::vector<std::int64_t>(extents.size(), 1),
                     std::vector<int>(extents.size(), 1));
}

/// Column-major without gaps.
inline layout column_major(const extents_type& extents) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.rbegin(), order.rend(), std::size_t{0});
  return make_layout(extents, order, std::vector<std::int64_t>(extents.size(), 1),
                     std::vector<int>(extents.size(), 1));
}

/// Any layout without two indices for one element: a third row-major, the rest with permuted
/// dimensions, gaps and negative strides.
inline layout random_layout(seeded& random, const extents_type& extents) {
  if (random.one_in(3)) return row_major(extents);
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (random.one_in(2)) random.shuffle(order);
  std::vector<std::int64_t> step(extents.size(), 1);
  std::vector<int> sign(extents.size(), 1);
  for (std::size_t r = 0; r < extents.size(); ++r) {
    if (random.one_in(3)) step[r] = random.between(2, 3);
    if (random.one_in(3)) sign[r] = -1;
  }
  return make_layout(extents, order, step, sign);
}

/// As random_layout, with stride 0 in some dimensions: for tensors that are only read.
inline layout random_source_layout(seeded& random, const extents_type& extents) {
  layout out = random_layout(random, extents);
  for (std::size_t r = 0; r < extents.size(); ++r) {
    if (!random.one_in(5)) continue;
    if (out.strides[r] < 0 && extents[r] > 0) out.origin += out.strides[r] * (extents[r] - 1);
    out.strides[r] = 0;
  }
  return out;
}

/// A shape of rank 0 .. most_rank with extents among 0, 1, 2 and primes; 0 is rare.
inline extents_type random_extents(seeded& random, int most_rank) {
  static constexpr std::int64_t choices[] = {1, 2, 3, 5, 7, 1, 4, 3};
  extents_type out(static_cast<std::size_t>(random.between(0, most_rank)));
  for (auto& extent : out) extent = random.one_in(16) ? 0 : choices[random.between(0, 7)];
  return out;
}

/// Distinct nodes of [0, extent) in an order of their own; each shape of set comes up: empty, full,
/// prefix, wrapping window, ascending with gaps, shuffled.
inline std::vector<std::int64_t> random_nodes(seeded& random, std::int64_t extent) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(extent));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  if (extent == 0) return all;
  const std::int64_t count = random.between(random.one_in(8) ? 0 : 1, extent);
  const std::int64_t first = random.between(0, extent - 1);
  std::vector<std::int64_t> nodes;
  switch (random.between(0, 5)) {
    case 0:
      return all;
    case 1:
      return {all.begin(), all.begin() + count};
    case 2:
      for (std::int64_t t = 0; t < count; ++t) nodes.push_back((first + t) % extent);
      return nodes;
    case 3:
      random.shuffle(all);
      return {all.begin(), all.begin() + count};
    default:
      for (const std::int64_t node : all) {
        if (random.one_in(2)) nodes.push_back(node);
      }
      return nodes;
  }
}

inline subfed::index_set random_set(seeded& random, std::int64_t extent) {
  return {extent, random_nodes(random, extent)};
}

/// Elements in a buffer of their own, in any layout. What is no element holds a bit pattern;
/// rest_untouched() says whether it still does.
template <class T>
class strided {
 public:
  explicit strided(layout where)
      : layout_(std::move(where)), buffer_(static_cast<std::size_t>(layout_.length)) {
    std::memset(static_cast<void*>(buffer_.data()), pattern, buffer_.size() * sizeof(T));
  }

  /// value(n) for the n-th element in row-major order.
  template <class F>
  strided& fill(F&& value) {
    std::int64_t n = 0;
    for (const index_type& index : all_indices(layout_.extents)) (*this)(index) = value(n++);
    return *this;
  }

  subfed::tensor_view<T> view() {
    return {buffer_.data() + layout_.origin, layout_.extents, layout_.strides};
  }
  subfed::tensor_view<const T> view() const {
    return {buffer_.data() + layout_.origin, layout_.extents, layout_.strides};
  }

  T& operator()(const index_type& index) {
    return buffer_[static_cast<std::size_t>(layout_.offset(index))];
  }
  const T& operator()(const index_type& index) const {
    return buffer_[static_cast<std::size_t>(layout_.offset(index))];
  }

  /// All elements in row-major order.
  std::vector<T> elements() const {
    std::vector<T> out;
    for (const index_type& index : all_indices(layout_.extents)) out.push_back((*this)(index));
    return out;
  }

  bool rest_untouched() const {
    std::vector<char> is_element(buffer_.size(), 0);
    for (const index_type& index : all_indices(layout_.extents)) {
      is_element[static_cast<std::size_t>(layout_.offset(index))] = 1;
    }
    unsigned char untouched[sizeof(T)];
    std::memset(untouched, pattern, sizeof(T));
    for (std::size_t i = 0; i < buffer_.size(); ++i) {
      if (is_element[i] == 0 && std::memcmp(&buffer_[i], untouched, sizeof(T)) != 0) return false;
    }
    return true;
  }

  const layout& where() const { return layout_; }
  const extents_type& extents() const { return layout_.extents; }
  const std::vector<T>& buffer() const { return buffer_; }
  std::vector<T>& buffer() { return buffer_; }

 private:
  static constexpr int pattern = 0x6B;

  layout layout_;
  std::vector<T> buffer_;
};

/// Bit for bit: tells 0 from -0 and one NaN from another.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace support
