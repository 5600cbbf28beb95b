// SPDX-License-Identifier: MIT
#include "crypto.hpp"

#include <sodium.h>

#include <bit>
#include <cstddef>
#include <string>

namespace secure_aggregation {

namespace {

constexpr std::uint8_t no_nonce[crypto_stream_chacha20_NONCEBYTES] = {};

}  // namespace

secret::~secret() { sodium_memzero(bits.data(), bits.size()); }

void start_crypto() {
  static const int started = sodium_init();  // 1: it had been started
  if (started < 0) throw failure("libsodium does not start");
}

secret random_secret() {
  start_crypto();
  secret out;
  randombytes_buf(out.bits.data(), out.bits.size());
  return out;
}

hash hash_of(std::span<const std::uint8_t> message) {
  start_crypto();
  hash out;
  crypto_generichash(out.data(), out.size(), message.data(), message.size(), nullptr, 0);
  return out;
}

key_pair key_pair::random() {
  start_crypto();
  key_pair out;
  crypto_kx_keypair(out.open.data(), out.hidden.bits.data());
  return out;
}

public_key public_half(const secret& hidden) {
  start_crypto();
  public_key out;
  if (crypto_scalarmult_base(out.data(), hidden.bits.data()) != 0) {
    throw failure("a secret key has no public half");
  }
  return out;
}

secret agree(std::uint64_t own, const key_pair& pair, std::uint64_t other, const public_key& theirs,
             std::string_view purpose, const hash& context) {
  start_crypto();
  // What goes from the smaller number to the larger one, then the other direction.
  secret there, back;
  static_assert(crypto_kx_SESSIONKEYBYTES == 32);
  const int failed =
      own < other
          ? crypto_kx_client_session_keys(back.bits.data(), there.bits.data(), pair.open.data(),
                                          pair.hidden.bits.data(), theirs.data())
          : crypto_kx_server_session_keys(there.bits.data(), back.bits.data(), pair.open.data(),
                                          pair.hidden.bits.data(), theirs.data());
  if (failed != 0) {
    throw failure("the public key of client " + std::to_string(other) + " is unusable");
  }
  crypto_generichash_state state;
  secret out;
  crypto_generichash_init(&state, there.bits.data(), there.bits.size(), out.bits.size());
  crypto_generichash_update(&state, back.bits.data(), back.bits.size());
  crypto_generichash_update(&state, context.data(), context.size());
  crypto_generichash_update(&state, reinterpret_cast<const std::uint8_t*>(purpose.data()),
                            purpose.size());
  crypto_generichash_final(&state, out.bits.data(), out.bits.size());
  sodium_memzero(&state, sizeof state);
  return out;
}

secret derive(const secret& from, std::string_view purpose, const hash& context) {
  start_crypto();
  bytes message(context.begin(), context.end());
  message.insert(message.end(), purpose.begin(), purpose.end());
  secret out;
  crypto_generichash(out.bits.data(), out.bits.size(), message.data(), message.size(),
                     from.bits.data(), from.bits.size());
  return out;
}

signing_key signing_key::random() {
  start_crypto();
  signing_key out;
  static_assert(crypto_sign_PUBLICKEYBYTES == 32 && crypto_sign_SECRETKEYBYTES == 64);
  crypto_sign_keypair(out.open.data(), out.hidden.data());
  return out;
}

signature signing_key::sign(std::span<const std::uint8_t> message) const {
  signature out;
  static_assert(crypto_sign_BYTES == 64);
  crypto_sign_detached(out.data(), nullptr, message.data(), message.size(), hidden.data());
  return out;
}

bool is_signed(std::span<const std::uint8_t> message, const signature& by,
               const std::array<std::uint8_t, 32>& signer) {
  start_crypto();
  return crypto_sign_verify_detached(by.data(), message.data(), message.size(), signer.data()) == 0;
}

bytes seal(std::span<const std::uint8_t> message, const secret& key,
           std::span<const std::uint8_t> about) {
  start_crypto();
  constexpr std::size_t nonce = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
  bytes out(nonce + message.size() + crypto_aead_xchacha20poly1305_ietf_ABYTES);
  randombytes_buf(out.data(), nonce);
  crypto_aead_xchacha20poly1305_ietf_encrypt(out.data() + nonce, nullptr, message.data(),
                                             message.size(), about.data(), about.size(), nullptr,
                                             out.data(), key.bits.data());
  return out;
}

bytes unseal(std::span<const std::uint8_t> sealed, const secret& key,
             std::span<const std::uint8_t> about) {
  start_crypto();
  constexpr std::size_t nonce = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
  constexpr std::size_t more = nonce + crypto_aead_xchacha20poly1305_ietf_ABYTES;
  if (sealed.size() < more) throw failure("a sealed message is too short");
  bytes out(sealed.size() - more);
  if (crypto_aead_xchacha20poly1305_ietf_decrypt(
          out.data(), nullptr, nullptr, sealed.data() + nonce, sealed.size() - nonce, about.data(),
          about.size(), sealed.data(), key.bits.data()) != 0) {
    throw failure("a sealed message has been changed, or is for somebody else");
  }
  return out;
}

void chacha20::operator()(const subfed::mask_key& key, std::uint64_t first,
                          std::span<std::uint64_t> out) const {
  static_assert(crypto_stream_chacha20_KEYBYTES == 32);
  auto* const data = reinterpret_cast<std::uint8_t*>(out.data());
  // The words are zeroed and the stream is added to them, since only that form begins anywhere. (The
  // _ietf form has a counter of 32 bits.)
  for (std::uint64_t& word : out) word = 0;
  crypto_stream_chacha20_xor_ic(data, data, out.size_bytes(), no_nonce, first / 8,
                                key.bytes.data());
  if constexpr (std::endian::native == std::endian::big) {
    for (std::uint64_t& word : out) {
      std::uint64_t swapped = 0;
      for (int shift = 0; shift < 64; shift += 8) swapped = swapped << 8 | (word >> shift & 0xFF);
      word = swapped;
    }
  }
}

subfed::mask_key mask_key_of(const secret& from) { return {from.bits}; }

}  // namespace secure_aggregation
