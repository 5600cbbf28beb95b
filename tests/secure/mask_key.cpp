// SPDX-License-Identifier: MIT
#include <subfed/secure/mask_key.hpp>

#include <doctest/doctest.h>
#include <support/checks.hpp>
#include <support/secure_rounds.hpp>

#include <cstddef>
#include <cstdint>
#include <span>

TEST_CASE("anything that fills a span from a key and a word is a generator of masks") {
  static_assert(subfed::mask_generator<support::chacha20>);
  const auto lambda = [](const subfed::mask_key&, std::uint64_t, std::span<std::uint64_t>) {};
  static_assert(subfed::mask_generator<decltype(lambda)>);
  static_assert(!subfed::mask_generator<int>);
}

TEST_CASE("a key of zeros is one that was never set") {
  subfed::mask_key key;
  CHECK(support::message_of([&] { subfed::detail::check_key(key, "the pair", 3); }) ==
        "subfed: secure: the key of the pair is zero");
  key.bytes[31] = 1;
  subfed::detail::check_key(key, "the pair", 3);
}

TEST_CASE("the tests' generator is ChaCha20") {
  // The key and the nonce are zero: RFC 8439, appendix A.1, vectors 1 and 2.
  std::uint64_t words[16] = {};
  support::chacha20{}(subfed::mask_key{}, 0, words);
  CHECK(words[0] == 0x903df1a0ade0b876);  // the stream begins 76 b8 e0 ad a0 f1 3d 90
  CHECK(words[7] == 0x8665eeb269b687c3);  // and its first block ends c3 87 b6 69 b2 ee 65 86
  CHECK(words[8] == 0x7a385155bee7079f);  // the second begins 9f 07 e7 be 55 51 38 7a
}
