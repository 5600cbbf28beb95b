// SPDX-License-Identifier: MIT
/// Keys of masks, and the hook for the generator that turns them into masks.
#pragma once

#include <subfed/error.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace subfed::inline v0 {

/// 256 bits from which a mask follows: a self mask's, known to its client alone until it is opened
/// with the help of others, or a pairwise mask's, on which two clients agree. They are used as they are:
/// nothing is folded into fewer bits. A key is for one round; derive it from the shared secret and
/// secure_round::bytes(), so that clients that were told different rounds have different keys.
struct mask_key {
  std::array<std::uint8_t, 32> bytes = {};

  friend bool operator==(const mask_key&, const mask_key&) = default;
};

/// A stream cipher, wrapped: g(key, first, out) writes the 64-bit words first, first + 1, .. of the key's
/// stream. The words are little-endian pieces of the stream, so word w is its bytes 8 w .. 8 w + 7.
/// It must be one that cryptographers trust, with a counter of 64 bits (ChaCha20). Philox is none.
///
///   [](const subfed::mask_key& key, std::uint64_t first, std::span<std::uint64_t> out) { .. }
///
/// Calls begin at a multiple of 8 words, 64 bytes: a block of ChaCha20.
template <class G>
concept mask_generator = requires(G& g, const mask_key& key, std::uint64_t first,
                                  std::span<std::uint64_t> out) {
  g(key, first, out);
};

namespace detail {

/// A key that was never set is all zeros.
inline void check_key(const mask_key& key, const std::string& whose, std::uint64_t client) {
  const auto is_zero = [](std::uint8_t b) { return b == 0; };
  if (!std::all_of(key.bytes.begin(), key.bytes.end(), is_zero)) return;
  fail("subfed: secure: the key of " + whose + " is zero", {.client = client});
}

}  // namespace detail

}  // namespace subfed::inline v0
