// SPDX-License-Identifier: MIT
/// Messages as bytes: little-endian numbers, each read within what has arrived.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace secure_aggregation {

using bytes = std::vector<std::uint8_t>;

/// What another process did wrong, or that it is gone.
class failure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class byte_writer {
 public:
  byte_writer& number(std::uint64_t x) {
    for (int shift = 0; shift < 64; shift += 8) {
      out_.push_back(static_cast<std::uint8_t>(x >> shift & 0xFF));
    }
    return *this;
  }
  byte_writer& real(double x) { return number(std::bit_cast<std::uint64_t>(x)); }
  byte_writer& all(std::span<const std::uint8_t> more) {
    out_.insert(out_.end(), more.begin(), more.end());
    return *this;
  }
  bytes take() { return std::move(out_); }

 private:
  bytes out_;
};

class byte_reader {
 public:
  explicit byte_reader(std::span<const std::uint8_t> all) : left_(all) {}

  std::span<const std::uint8_t> some(std::uint64_t count) {
    if (count > left_.size()) throw failure("a message ends too early");
    const auto out = left_.first(static_cast<std::size_t>(count));
    left_ = left_.subspan(out.size());
    return out;
  }
  std::uint64_t number() {
    const auto from = some(8);
    std::uint64_t out = 0;
    for (std::size_t i = 0; i < 8; ++i) out |= static_cast<std::uint64_t>(from[i]) << (8 * i);
    return out;
  }
  double real() { return std::bit_cast<double>(number()); }
  template <std::size_t N>
  std::array<std::uint8_t, N> array() {
    const auto from = some(N);
    std::array<std::uint8_t, N> out;
    for (std::size_t i = 0; i < N; ++i) out[i] = from[i];
    return out;
  }
  /// A number of items, each of at least so many bytes.
  std::size_t count(std::size_t item_bytes) {
    const std::uint64_t n = number();
    if (n > left_.size() / item_bytes) throw failure("a message announces more than it has");
    return static_cast<std::size_t>(n);
  }
  void end() const {
    if (!left_.empty()) throw failure("a message has bytes after its end");
  }

 private:
  std::span<const std::uint8_t> left_;
};

}  // namespace secure_aggregation
