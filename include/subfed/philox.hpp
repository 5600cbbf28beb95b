// SPDX-License-Identifier: MIT
/// Counter-based random numbers: Philox4x32-10, the same bits on every platform, host and device.
/// [Random123] Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
#pragma once

#include <subfed/config.hpp>
#include <subfed/detail/philox_lanes.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace subfed::inline v0 {

/// Four 32-bit words: a counter going in, or random bits coming out.
struct philox_block {
  std::uint32_t word[4];

  friend constexpr bool operator==(const philox_block&, const philox_block&) = default;
};

/// Two 32-bit words that select one of 2^64 independent permutations of the counters.
struct philox_key {
  std::uint32_t word[2];
};

/// Philox4x32 with ten rounds: a bijection of the 128-bit counters for each key.
///
/// Numerics  philox4x32({0,0,0,0}, {0,0}) = 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
SUBFED_HD constexpr philox_block philox4x32(philox_block counter, philox_key key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t b = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    const auto a_high = static_cast<std::uint32_t>(a >> 32);
    const auto b_high = static_cast<std::uint32_t>(b >> 32);
    counter = {{b_high ^ counter.word[1] ^ key.word[0], static_cast<std::uint32_t>(b),
                a_high ^ counter.word[3] ^ key.word[1], static_cast<std::uint32_t>(a)}};
    key.word[0] += 0x9E3779B9u;
    key.word[1] += 0xBB67AE85u;
  }
  return counter;
}

/// 64-bit FNV-1a of a name: how a group's name enters a random stream (the standard library's hash
/// differs between implementations).
constexpr std::uint64_t name_hash(std::string_view name) noexcept {
  std::uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001B3u;
  }
  return hash;
}

/// One stream of random numbers, addressed by its purpose: (seed, a, b, purpose).
///
/// Streams that differ in any of the four are independent. bits(i) is a pure function of the stream
/// and i, so it may be called in any order and from any thread; next_*() and below() advance i.
class random_stream {
 public:
  constexpr random_stream(std::uint64_t seed, std::uint64_t a, std::uint64_t b,
                          std::uint64_t purpose) noexcept {
    // Two permutations chained: the first is one to one in (a, b) for a seed, the second in what
    // the first gave for a purpose, so no two addresses with the same seed and purpose share a
    // stream.
    const philox_block first =
        philox4x32({{low(a), high(a), low(b), high(b)}}, {{low(seed), high(seed)}});
    const philox_block second = philox4x32(first, {{low(purpose), high(purpose)}});
    key_ = {{second.word[0], second.word[1]}};
    tag_[0] = second.word[2];
    tag_[1] = second.word[3];
  }
  constexpr random_stream(std::uint64_t seed, std::uint64_t a, std::uint64_t b,
                          std::string_view purpose) noexcept
      : random_stream(seed, a, b, name_hash(purpose)) {}

  /// Word i of the stream, 64 random bits.
  constexpr std::uint64_t bits(std::uint64_t i) const noexcept {
    const pair both = bits_pair(i >> 1);
    return (i & 1) == 0 ? both.even : both.odd;
  }

  struct pair {
    std::uint64_t even;
    std::uint64_t odd;
  };

  /// Words 2 i and 2 i + 1 of the stream, at the cost of one.
  constexpr pair bits_pair(std::uint64_t i) const noexcept {
    const philox_block block = philox4x32({{low(i), high(i), tag_[0], tag_[1]}}, key_);
    return {join(block.word[0], block.word[1]), join(block.word[2], block.word[3])};
  }

  /// out[k] = bits(k): the first words of the stream.
  void first_words(std::span<std::uint64_t> out) const noexcept {
    const detail::philox_stream from{{tag_[0], tag_[1]}, {key_.word[0], key_.word[1]}};
    std::size_t block = detail::philox_words(from, 0, out.size() / 2, out.data());
    for (; 2 * block < out.size(); ++block) {
      const auto [even, odd] = bits_pair(block);
      out[2 * block] = even;
      if (2 * block + 1 < out.size()) out[2 * block + 1] = odd;
    }
  }

  constexpr std::uint64_t next_u64() noexcept { return bits(next_++); }

  /// Uniform in [0, 1), a multiple of 2^-53.
  constexpr double next_unit() noexcept {
    return static_cast<double>(next_u64() >> 11) * 0x1.0p-53;
  }

  /// Uniform integer in [0, bound), without bias: words in the incomplete last interval are drawn
  /// again.
  ///
  /// Pre  bound > 0.
  constexpr std::uint64_t below(std::uint64_t bound) noexcept {
    SUBFED_ASSERT(bound > 0);
    const std::uint64_t surplus = (0 - bound) % bound;  // 2^64 mod bound
    std::uint64_t word = next_u64();
    while (word < surplus) word = next_u64();
    return word % bound;
  }

 private:
  static constexpr std::uint32_t low(std::uint64_t x) noexcept {
    return static_cast<std::uint32_t>(x);
  }
  static constexpr std::uint32_t high(std::uint64_t x) noexcept {
    return static_cast<std::uint32_t>(x >> 32);
  }
  static constexpr std::uint64_t join(std::uint32_t lo, std::uint32_t hi) noexcept {
    return std::uint64_t{hi} << 32 | lo;
  }

  philox_key key_{};
  std::uint32_t tag_[2]{};
  std::uint64_t next_ = 0;
};

}  // namespace subfed::inline v0
