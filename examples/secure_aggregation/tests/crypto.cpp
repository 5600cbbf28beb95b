// SPDX-License-Identifier: MIT
#include "crypto.hpp"

#include "failure_of.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using namespace secure_aggregation;

TEST_CASE("two clients agree on one secret, for one purpose and one context") {
  const key_pair a = key_pair::random(), b = key_pair::random(), c = key_pair::random();
  const hash one = hash_of(a.open), two = hash_of(b.open);
  const secret ab = agree(3, a, 8, b.open, "mask", one);
  CHECK(ab.bits == agree(8, b, 3, a.open, "mask", one).bits);
  CHECK(ab.bits != agree(3, a, 8, b.open, "mask", two).bits);  // another round
  CHECK(ab.bits != agree(3, a, 8, b.open, "shares", one).bits);
  CHECK(ab.bits != agree(3, a, 9, c.open, "mask", one).bits);
  CHECK(failure_of([&] { agree(3, a, 8, public_key{}, "mask", one); }) ==
        "the public key of client 8 is unusable");
  CHECK(public_half(a.hidden) == a.open);
  CHECK(derive(a.hidden, "self", one).bits != derive(a.hidden, "self", two).bits);
  CHECK(derive(a.hidden, "self", one).bits != derive(b.hidden, "self", one).bits);
}

TEST_CASE("what was sealed is read by its receiver alone, and not once it has been changed") {
  const secret key = random_secret(), other = random_secret();
  const bytes message{1, 2, 3, 4, 5}, about{9};
  const bytes sealed = seal(message, key, about);
  CHECK(unseal(sealed, key, about) == message);
  CHECK(seal(message, key, about) != sealed);  // another nonce
  const std::string refused = "a sealed message has been changed, or is for somebody else";
  CHECK(failure_of([&] { unseal(sealed, other, about); }) == refused);
  CHECK(failure_of([&] { unseal(sealed, key, message); }) == refused);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    bytes changed = sealed;
    changed[i] ^= 1;
    CHECK(failure_of([&] { unseal(changed, key, about); }) == refused);
  }
  CHECK(failure_of([&] { unseal(message, key, about); }) == "a sealed message is too short");
}

TEST_CASE("a signature is that of one message and one signer") {
  const signing_key a = signing_key::random(), b = signing_key::random();
  bytes message{1, 2, 3};
  const signature by = a.sign(message);
  CHECK(is_signed(message, by, a.open));
  CHECK_FALSE(is_signed(message, by, b.open));
  message[1] ^= 1;
  CHECK_FALSE(is_signed(message, by, a.open));
}

TEST_CASE("masks are ChaCha20 from any block on, with a counter of 64 bits") {
  static_assert(subfed::mask_generator<chacha20>);
  std::uint64_t words[16] = {};
  chacha20{}(subfed::mask_key{}, 0, words);
  CHECK(words[0] == 0x903df1a0ade0b876);  // RFC 8439, appendix A.1, vectors 1 and 2
  CHECK(words[8] == 0x7a385155bee7079f);
  const subfed::mask_key key = mask_key_of(random_secret());
  std::vector<std::uint64_t> whole(1000);
  chacha20{}(key, 0, whole);
  for (const std::size_t first : {8u, 64u, 504u}) {
    std::vector<std::uint64_t> part(100, 7);
    chacha20{}(key, first, part);
    CHECK(part ==
          std::vector<std::uint64_t>(whole.begin() + static_cast<std::ptrdiff_t>(first),
                                     whole.begin() + static_cast<std::ptrdiff_t>(first + 100)));
  }
  std::vector<std::uint64_t> far(8);
  chacha20{}(key, std::uint64_t{8} << 32, far);  // where a counter of 32 bits begins anew
  CHECK(far != std::vector<std::uint64_t>(whole.begin(), whole.begin() + 8));
}
