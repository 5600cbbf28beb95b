// SPDX-License-Identifier: MIT
/// What libsodium does for the protocol. All of it is its high-level interface, but for the stream of
/// ChaCha20, which masks need at any place.
#pragma once

#include "bytes.hpp"

#include <subfed/secure.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace secure_aggregation {

using hash = std::array<std::uint8_t, 32>;
using public_key = std::array<std::uint8_t, 32>;
using signature = std::array<std::uint8_t, 64>;

/// 256 secret bits, wiped when they go.
struct secret {
  std::array<std::uint8_t, 32> bits = {};

  secret() = default;
  secret(const secret&) = default;
  secret& operator=(const secret&) = default;
  ~secret();
};

/// Throws  failure when libsodium cannot start. Everything else here calls it first.
void start_crypto();

secret random_secret();
hash hash_of(std::span<const std::uint8_t> message);

/// For crypto_kx.
struct key_pair {
  public_key open;
  secret hidden;

  static key_pair random();
};
/// The public half that belongs to a secret one.
public_key public_half(const secret& hidden);

/// What two clients share, the same for both: crypto_kx, where the smaller number is the "client".
/// purpose: "mask", "shares". context: what the key is for, once.
///
/// Throws  failure for a public key that leads to zeros.
secret agree(std::uint64_t own, const key_pair& pair, std::uint64_t other, const public_key& theirs,
             std::string_view purpose, const hash& context);
/// Of one secret and a context.
secret derive(const secret& from, std::string_view purpose, const hash& context);

/// For crypto_sign.
struct signing_key {
  std::array<std::uint8_t, 32> open;
  std::array<std::uint8_t, 64> hidden;

  static signing_key random();
  signature sign(std::span<const std::uint8_t> message) const;
};
bool is_signed(std::span<const std::uint8_t> message, const signature& by,
               const std::array<std::uint8_t, 32>& signer);

/// crypto_aead_xchacha20poly1305_ietf with a random nonce in front.
bytes seal(std::span<const std::uint8_t> message, const secret& key,
           std::span<const std::uint8_t> about);
/// Throws  failure unless the message was sealed with this key, about the same.
bytes unseal(std::span<const std::uint8_t> sealed, const secret& key,
             std::span<const std::uint8_t> about);

/// The stream of masks: ChaCha20 with a counter of 64 bits, from any block on.
struct chacha20 {
  void operator()(const subfed::mask_key& key, std::uint64_t first,
                  std::span<std::uint64_t> out) const;
};
subfed::mask_key mask_key_of(const secret& from);

}  // namespace secure_aggregation
