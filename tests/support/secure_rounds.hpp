// SPDX-License-Identifier: MIT
/// Rounds of secure aggregation without sockets: keys from numbers, and ChaCha20 as it is described.
#pragma once

#include <subfed/average/cohort.hpp>
#include <subfed/secure.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace support {

/// One block of ChaCha20 with a counter of 64 bits and the nonce 0 [Bernstein 2008].
inline std::array<std::uint32_t, 16> chacha20_block(const subfed::mask_key& key,
                                                    std::uint64_t counter) {
  std::array<std::uint32_t, 16> in{0x61707865, 0x3320646e, 0x79622d32, 0x6b206574};
  for (std::size_t i = 0; i < 32; ++i) {
    in[4 + i / 4] |= static_cast<std::uint32_t>(key.bytes[i]) << (8 * (i % 4));
  }
  in[12] = static_cast<std::uint32_t>(counter);
  in[13] = static_cast<std::uint32_t>(counter >> 32);
  std::array<std::uint32_t, 16> x = in;
  const auto quarter = [&x](std::size_t a, std::size_t b, std::size_t c, std::size_t d) {
    x[a] += x[b], x[d] = std::rotl(x[d] ^ x[a], 16);
    x[c] += x[d], x[b] = std::rotl(x[b] ^ x[c], 12);
    x[a] += x[b], x[d] = std::rotl(x[d] ^ x[a], 8);
    x[c] += x[d], x[b] = std::rotl(x[b] ^ x[c], 7);
  };
  for (int i = 0; i < 10; ++i) {
    quarter(0, 4, 8, 12), quarter(1, 5, 9, 13), quarter(2, 6, 10, 14), quarter(3, 7, 11, 15);
    quarter(0, 5, 10, 15), quarter(1, 6, 11, 12), quarter(2, 7, 8, 13), quarter(3, 4, 9, 14);
  }
  for (std::size_t i = 0; i < 16; ++i) x[i] += in[i];
  return x;
}

/// A mask_generator.
struct chacha20 {
  void operator()(const subfed::mask_key& key, std::uint64_t first,
                  std::span<std::uint64_t> out) const {
    for (std::size_t i = 0; i < out.size(); i += 8) {
      const auto words = chacha20_block(key, first / 8 + i / 8);
      for (std::size_t j = 0; j < 8 && i + j < out.size(); ++j) {
        out[i + j] = words[2 * j] | static_cast<std::uint64_t>(words[2 * j + 1]) << 32;
      }
    }
  }
};

inline subfed::mask_key key_number(std::uint64_t number) {
  seeded random(number);
  subfed::mask_key out;
  for (std::uint8_t& b : out.bytes) b = static_cast<std::uint8_t>(random.next());
  return out;
}
inline subfed::mask_key self_key(std::uint64_t client) { return key_number(2 * client); }
inline subfed::mask_key pair_key(std::uint64_t a, std::uint64_t b) {
  return key_number(2 * ((std::min)(a, b) * 1000003 + (std::max)(a, b)) + 1);
}

inline subfed::mask_secrets secrets_of(const subfed::secure_round& round, std::uint64_t client) {
  subfed::mask_secrets out{self_key(client), {}};
  for (const auto& p : round.participants()) {
    const std::uint64_t other = p.sub.origin().client;
    if (other != client) out.pairs.push_back({other, pair_key(client, other)});
  }
  std::reverse(out.pairs.begin(), out.pairs.end());  // any order
  return out;
}

/// Takes all masks away that must be.
inline void remove_masks(subfed::masked_sum& sum, const subfed::survivor_list& list) {
  for (const std::uint64_t s : list.survivors) sum.remove_self_mask(s, self_key(s), chacha20{});
  for (const std::uint64_t d : list.dropped) {
    for (const std::uint64_t s : list.survivors) {
      sum.remove_pairwise_mask(d, s, pair_key(d, s), chacha20{});
    }
  }
}

template <class T>
std::vector<subfed::secure_participant> participants_of(
    const std::vector<subfed::update<T>>& updates) {
  std::vector<subfed::secure_participant> out;
  for (const auto& u : updates) out.push_back({u.sub, u.weight});
  return out;
}

}  // namespace support
