// SPDX-License-Identifier: MIT
/// What the inner loops of averaging take: runs of elements, divisors, and random sets as masks.
#pragma once

#include <subfed/index_set.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace subfed::inline v0::detail {

/// One client's run of elements.
template <class T>
struct stream {
  const T* data;
  double weight;
};

/// Of how many halves, multiples of 2^-24 below 2^16, double holds every sum: in 53 bits. Sums of so many may
/// be formed in any order.
inline constexpr std::size_t most_exact_halves = 8192;
/// Whether sums of so many elements of a type with weights of 1 may go by loops that form some of them apart.
template <class T>
constexpr bool may_group(std::size_t elements) noexcept {
  return sizeof(T) != 2 || elements <= most_exact_halves;
}

/// Division by a weight: by its reciprocal where that gives the same bits.
struct divider {
  double weight;
  double reciprocal;
  bool exact;  ///< weight is a power of two that has a reciprocal

  explicit divider(double w) noexcept : weight(w), reciprocal(1 / w) {
    const auto bits = std::bit_cast<std::uint64_t>(w);
    const auto exponent = bits >> 52;
    exact = (bits & 0xFFFFFFFFFFFFFu) == 0 && exponent > 0 && exponent < 2 * 1023;
  }
};

/// How sums are divided.
enum class division {
  by_instruction,
  by_reciprocal,  ///< a product, and its remainder as a second one: sums of floats by weights of
                  ///< ordinary size
};

/// A holder of a row, of which it has the elements of a mask.
template <class T>
struct masked_holder {
  const T* data;               ///< its elements of the row
  const std::uint16_t* masks;  ///< for every 16 elements of the row, those that it holds
  const std::int32_t* starts;  ///< how many of its elements come before
  std::int64_t limit;          ///< how many elements may be read
  double weight;
  bool has_all;  ///< the masks have no zeros but after the row's end
};

/// A row of which holders have the elements of masks.
template <class T>
struct masked_row {
  const masked_holder<T>* holders;
  std::size_t count;
  std::size_t full;           ///< how many of them have all elements
  bool ones;                  ///< all weights are 1, and the holders may_group
  const double* reciprocals;  ///< of 0 .. 15 holders; null: by_instruction
  T* out;
  std::int64_t size;  ///< elements
};

/// What a holder has of a block of 16 elements.
struct masked_part {
  std::int32_t holder;
  std::int32_t start;  ///< how many of its elements of the row come before
  std::uint16_t mask;  ///< not 0
};

/// Who has which elements of a row, and with what weight: the same for many rows.
struct masked_pattern {
  const masked_part* parts;         ///< block by block, in the order of the holders
  const std::int32_t* block_parts;  ///< how many of them each block has
  const std::uint16_t* held;        ///< each block's elements that somebody holds
  const double* weights;            ///< of each element's holders; 1 where there is none
  const double* reciprocals;        ///< of them
  std::size_t blocks;
  bool ones;  ///< all holders' weights are 1, and they may_group
  division how;
};

/// The same with elements in place of blocks: which columns the holders have.
struct column_pattern {
  const std::uint16_t* columns;  ///< the first holder's, in the order of its data; the second's; ..
  const std::size_t* begins;     ///< each holder's first one, and the end
  const double* weights;         ///< of each column's holders
  std::int64_t row_size;         ///< columns
  double* tile;                  ///< for the sums of tile_rows rows
  std::int64_t tile_rows;        ///< a multiple of 8
  bool ones;                     ///< all holders' weights are 1
  division how;

  std::span<const std::uint16_t> of(std::size_t holder) const noexcept {
    return {columns + begins[holder], columns + begins[holder + 1]};
  }
};

/// The same with runs of columns: for holders that have few of them.
struct run_pattern {
  const run* runs;  ///< the first holder's, the second's, ..: columns, and where in its rows
  const std::size_t* begins;    ///< each holder's first one, and the end
  const std::int64_t* reaches;  ///< each holder's elements of a row up to the last that takes part
  const double* weights;        ///< of each column's holders; 0 where there is none
  std::int64_t row_size;        ///< columns
  double* tile;                 ///< for the sums of tile_rows rows, and a vector more
  std::int64_t tile_rows;
  bool ones;  ///< all holders' weights are 1
};

/// The holders of rows of a pattern, by number.
template <class T>
struct pattern_holders {
  std::size_t count;
  const T** data;                   ///< their elements of the row
  const std::int64_t* strides;      ///< of data, from row to row
  const T** ends;                   ///< of what may be read
  const std::int64_t* end_strides;  ///< of ends
  const double* weights;

  /// Moves on by so many rows. By addresses: those after the last row may lie outside the data.
  void step(std::int64_t rows) const noexcept {
    for (std::size_t h = 0; h < count; ++h) data[h] = moved(data[h], rows * strides[h]);
    for (std::size_t h = 0; h < count; ++h) ends[h] = moved(ends[h], rows * end_strides[h]);
  }

 private:
  static const T* moved(const T* from, std::int64_t elements) noexcept {
    const auto bytes = static_cast<std::uintptr_t>(elements) * sizeof(T);
    return reinterpret_cast<const T*>(reinterpret_cast<std::uintptr_t>(from) + bytes);
  }
};

/// Rows of the result.
template <class T>
struct pattern_rows {
  T* out;
  std::int64_t stride;
  std::int64_t count;
};

/// What turns values into terms of a fixed-point sum that are below 2^51 (see term_rule).
struct narrow_terms {
  double weight;
  double shift;  ///< its last digit is one quantum
  double bound;
  bool takes_back;
};

}  // namespace subfed::inline v0::detail
