// SPDX-License-Identifier: MIT
/// Tensors of three rows that can be read and written four floats at once, but for one or several
/// numbers that are no multiple of four.
#pragma once

#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace alignments {

inline constexpr std::int64_t rows = 3;
inline constexpr std::int64_t extent = 32;

/// Two runs of nodes, a distance apart. The client holds `gap` nodes between them that take no part.
struct form {
  std::int64_t first, length, distance, gap, last;
  std::int64_t global_at, local_at;          ///< of the first element, from an aligned address
  std::int64_t global_stride, local_stride;  ///< of the rows
  bool is_aligned;                           ///< every number is a multiple of four
  std::vector<std::int64_t> held = {}, taking_part = {};

  bool takes_part(std::int64_t node) const {
    const std::int64_t end = first + length;
    return (node >= first && node < end) ||
           (node >= end + distance && node < end + distance + last);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(held.size()); }
  /// Of a model with one tensor, {rows, nodes}.
  subfed::submodel of(const subfed::model& net, subfed::group_id nodes,
                      subfed::draw_key origin = {}) const {
    return subfed::submodel(net, {subfed::index_set(extent, held)}, origin)
        .restricted(nodes, subfed::index_set(extent, taking_part));
  }
  std::string text() const {
    std::string out;
    for (const std::int64_t n :
         {first, length, distance, gap, last, global_at, local_at, global_stride, local_stride}) {
      out += std::to_string(n) + " ";
    }
    return out;
  }
};

/// Every combination of numbers that are a multiple and numbers that are not.
inline std::vector<form> all() {
  constexpr int numbers = 9;
  std::vector<form> out;
  for (int n = 0; n < 1 << numbers; ++n) {
    const auto pick = [n](int bit, std::int64_t aligned, std::int64_t other) {
      return (n >> bit & 1) == 0 ? aligned : other;
    };
    form f{pick(0, 0, 1), pick(1, 4, 5),   pick(2, 4, 3),
           pick(3, 0, 2), pick(4, 8, 5),   pick(5, 0, 1),
           pick(6, 0, 3), pick(7, 36, 33), 0,
           n == 0};
    const std::int64_t second = f.first + f.length + f.distance;
    for (std::int64_t node = f.first; node < second + f.last; ++node) {
      if (f.takes_part(node)) f.taking_part.push_back(node);
      if (f.takes_part(node) || node >= second - f.gap) f.held.push_back(node);
    }
    f.local_stride = (f.size() + 3) / 4 * 4 + pick(8, 0, 1);
    out.push_back(f);
  }
  return out;
}

/// So many floats from an aligned address, each with its number, or all the same.
class floats {
 public:
  explicit floats(std::int64_t count, float first = 0, float step = 1)
      : blocks_(static_cast<std::size_t>(count / 4 + 1)) {
    for (std::size_t i = 0; i < 4 * blocks_.size(); ++i) {
      data()[i] = first + step * static_cast<float>(i);
    }
  }
  float* data() { return blocks_[0].values; }
  std::vector<float> elements() { return {data(), data() + 4 * blocks_.size()}; }

 private:
  struct alignas(16) block {
    float values[4];
  };
  std::vector<block> blocks_;
};

}  // namespace alignments
