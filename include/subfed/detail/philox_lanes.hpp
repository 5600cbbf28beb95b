// SPDX-License-Identifier: MIT
/// Philox4x32-10 of many counters that follow each other, in vectors.
#pragma once

#include <subfed/config.hpp>
#include <subfed/detail/instructions.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace subfed::inline v0::detail {

/// The two halves of a counter that stay the same, and the key.
struct philox_stream {
  std::uint32_t tag[2];
  std::uint32_t key[2];
};

#if SUBFED_VARIANTS

namespace avx2 {

/// Words of 32 bits, one in each lane; what is above them is anything.
using philox_lanes = std::uint64_t __attribute__((vector_size(32)));

/// The products of the words.
SUBFED_AVX2 __attribute__((always_inline)) inline philox_lanes philox_product(
    std::uint32_t factor, const philox_lanes& x) noexcept {
  const philox_lanes all = factor - philox_lanes{};
  philox_lanes out;
  __asm__("vpmuludq {%2, %1, %0|%0, %1, %2}" : "=x"(out) : "x"(x), "x"(all));
  return out;
}

/// Words 2 first .. 2 (first + blocks) - 1 of a stream, as far as whole vectors go. Returns for how many
/// blocks.
SUBFED_AVX2 inline std::size_t philox_words(const philox_stream& from, std::uint64_t first,
                                            std::size_t blocks, std::uint64_t* out) noexcept {
  constexpr int per_vector = 4,
                at_once = 2;  // vectors, so that products need not wait for each other
  constexpr std::uint64_t low = 0xFFFFFFFFu;
  std::size_t done = 0;
  for (; blocks - done >= per_vector * at_once; done += per_vector * at_once) {
    philox_lanes word[4][at_once];
    for (int v = 0; v < at_once; ++v) {
      const std::uint64_t at = first + done + static_cast<std::uint64_t>(v * per_vector);
      word[0][v] = at + philox_lanes{0, 1, 2, 3};
      word[1][v] = word[0][v] >> 32;
      word[2][v] = from.tag[0] - philox_lanes{};
      word[3][v] = from.tag[1] - philox_lanes{};
    }
    std::uint32_t key[2] = {from.key[0], from.key[1]};
    for (int round = 0; round < 10; ++round) {
      for (int v = 0; v < at_once; ++v) {
        const philox_lanes a = philox_product(0xD2511F53u, word[0][v]);
        const philox_lanes b = philox_product(0xCD9E8D57u, word[2][v]);
        word[0][v] = (b >> 32) ^ word[1][v] ^ (key[0] - philox_lanes{});
        word[1][v] = b;
        word[2][v] = (a >> 32) ^ word[3][v] ^ (key[1] - philox_lanes{});
        word[3][v] = a;
      }
      key[0] += 0x9E3779B9u;
      key[1] += 0xBB67AE85u;
    }
    for (int v = 0; v < at_once; ++v) {
      const philox_lanes even = word[1][v] << 32 | (word[0][v] & low);
      const philox_lanes odd = word[3][v] << 32 | (word[2][v] & low);
      const philox_lanes head = __builtin_shufflevector(even, odd, 0, 4, 1, 5);
      const philox_lanes tail = __builtin_shufflevector(even, odd, 2, 6, 3, 7);
      std::uint64_t* const to = out + 2 * (done + static_cast<std::size_t>(v * per_vector));
      std::memcpy(to, &head, sizeof(head));
      std::memcpy(to + per_vector, &tail, sizeof(tail));
    }
  }
  return done;
}

}  // namespace avx2

inline std::size_t philox_words(const philox_stream& from, std::uint64_t first, std::size_t blocks,
                                std::uint64_t* out) noexcept {
  if (instructions_in_use() == instructions::baseline) return 0;
  return avx2::philox_words(from, first, blocks, out);
}

#else

inline std::size_t philox_words(const philox_stream&, std::uint64_t, std::size_t,
                                std::uint64_t*) noexcept {
  return 0;
}

#endif

}  // namespace subfed::inline v0::detail
