// SPDX-License-Identifier: MIT
/// What the fuzz targets share. A target is a function of bytes with a name; it may throw
/// subfed::error, which is how wrong data is refused, and nothing else.
#pragma once

#include <subfed/adapt/byte_tensor.hpp>
#include <subfed/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

namespace fuzz {

using bytes = std::span<const std::uint8_t>;

struct target {
  std::string name;
  void (*run)(bytes);
};

/// All targets of the program.
inline std::vector<target>& targets() {
  static std::vector<target> all;
  return all;
}

/// const fuzz::registered npy("npy", [](fuzz::bytes in) { .. });
struct registered {
  registered(std::string name, void (*run)(bytes)) { targets().push_back({std::move(name), run}); }
};

inline void expect(bool holds) {
  if (!holds) std::abort();
}

/// Runs f; whether the library refused what it was given.
template <class F>
bool refused(F&& f) {
  try {
    f();
    return false;
  } catch (const subfed::error&) {
    return true;
  }
}

/// Shape, type and bits.
template <class T>
bool same(const subfed::byte_tensor& a, const subfed::dense_tensor<T>& b) {
  return a.holds<T>() &&
         std::equal(a.extents().begin(), a.extents().end(), b.extents().begin(),
                    b.extents().end()) &&
         (a.size_bytes() == 0 ||
          std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.size_bytes())) == 0);
}

/// Bytes as numbers; after their end everything is 0.
class input {
 public:
  explicit input(bytes all) : all_(all) {}

  bool empty() const noexcept { return at_ >= all_.size(); }
  std::uint8_t byte() noexcept { return empty() ? std::uint8_t{0} : all_[at_++]; }
  /// 0 .. n-1.
  std::int64_t below(std::int64_t n) noexcept { return byte() % n; }

  /// Small numbers, numbers near the ends of types, and any other.
  std::int64_t number() noexcept {
    constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
    constexpr std::int64_t least = (std::numeric_limits<std::int64_t>::min)();
    const std::uint8_t kind = byte();
    if (kind < 160) return kind - 16;
    const std::int64_t power = std::int64_t{1} << (kind % 63);
    if (kind < 200) return power - 1 + below(3);
    if (kind < 215) return -power;
    if (kind < 225) return most - below(4);
    if (kind < 230) return least + below(4);
    return static_cast<std::int64_t>(word());
  }
  /// Numbers between 0 and 1, their ends, and any bits.
  double real() noexcept {
    constexpr double some[] = {0.0,  1.0,    0.5,    0.25,  0.1, 1.0 / 3,
                               -0.5, 5e-324, 1e-300, 1e300, 2.0, 0x1.fffffffffffffp-1};
    const std::uint8_t kind = byte();
    if (kind < 96) return some[kind % std::size(some)];
    if (kind < 192) return (kind - 96) / 96.0;
    const std::uint64_t bits = word();
    double out = 0;
    std::memcpy(&out, &bits, sizeof out);
    return out;
  }
  std::uint64_t word() noexcept {
    std::uint64_t out = 0;
    for (int i = 0; i < 8; ++i) out = out << 8 | byte();
    return out;
  }
  bytes rest() noexcept {
    const bytes out = all_.subspan((std::min)(at_, all_.size()));
    at_ = all_.size();
    return out;
  }

 private:
  bytes all_;
  std::size_t at_ = 0;
};

/// Runs one target on bytes that end where their memory ends.
void run(const target& which, bytes in);

}  // namespace fuzz
