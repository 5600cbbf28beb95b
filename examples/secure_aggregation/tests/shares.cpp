// SPDX-License-Identifier: MIT
#include "shares.hpp"

#include "failure_of.hpp"
#include "protocol.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <vector>

using namespace secure_aggregation;

namespace {

bytes first_numbers(int count) {
  bytes out;
  for (int i = 1; i <= count; ++i) out.push_back(static_cast<std::uint8_t>(i));
  return out;
}

}  // namespace

TEST_CASE("any of the shares, as many as the threshold, give the secret back") {
  for (const int threshold : {2, 3, 7}) {
    const secret whole = random_secret();
    const auto shares = split(whole, first_numbers(7), threshold);
    for (unsigned which = 0; which < 128; ++which) {
      std::vector<share> some;
      for (unsigned i = 0; i < 7; ++i) {
        if ((which >> i & 1) != 0) some.push_back(shares[i]);
      }
      if (static_cast<int>(some.size()) < threshold) continue;
      CHECK(combine(some, threshold).bits == whole.bits);
    }
  }
  const secret whole = random_secret();
  const auto most = split(whole, first_numbers(255), 128);
  CHECK(combine(std::span(most).subspan(100), 128).bits == whole.bits);
}

TEST_CASE("one share less than the threshold says nothing: every secret is still possible") {
  const secret whole = random_secret();
  const auto shares = split(whole, first_numbers(5), 3);
  std::vector<share> some(shares.begin(), shares.begin() + 3);
  // Whatever the third share may be, each of its values gives another secret: all 256 of each byte.
  std::vector<std::set<std::uint8_t>> seen(32);
  for (int value = 0; value < 256; ++value) {
    some[2].bits.fill(static_cast<std::uint8_t>(value));
    const secret found = combine(some, 3);
    for (std::size_t i = 0; i < 32; ++i) seen[i].insert(found.bits[i]);
  }
  for (const auto& values : seen) CHECK(values.size() == 256);
  CHECK(failure_of([&] { combine(std::span(some).first(2), 3); }) ==
        "there are 2 shares, expected 3");
}

TEST_CASE("shares that would not protect the secret are not made") {
  const secret whole = random_secret();
  const auto refusal = [&](const bytes& numbers, int threshold) {
    return failure_of([&] { split(whole, numbers, threshold); });
  };
  CHECK(refusal({1, 2, 3}, 1) == "the threshold is 1: each share would be the secret");
  CHECK(refusal({1, 2, 3}, 4) == "the threshold is 4 of 3 shares");
  CHECK(refusal({1, 2, 2}, 2) == "there are two shares of the number 2");
  CHECK(refusal({1, 0, 2}, 2) == "a share has the number 0");
  auto shares = split(whole, first_numbers(3), 2);
  shares[1] = shares[0];
  CHECK(failure_of([&] { combine(std::span(shares).first(2), 2); }) ==
        "there are two shares of the number 1");
  CHECK(failure_of([&] { combine(shares, 1); }) ==
        "the threshold is 1: each share would be the secret");
}

TEST_CASE("one changed bit of a share is an error with the client's name") {
  const key_pair pair = key_pair::random();
  const secret seed = random_secret();
  const hash commitment = hash_of(seed.bits);
  const auto of_key = split(pair.hidden, first_numbers(4), 3),
             of_seed = split(seed, first_numbers(4), 3);
  check_key(combine(of_key, 3), pair.open, 5);
  check_seed(combine(of_seed, 3), commitment, 5);
  for (std::size_t bit = 0; bit < 256; bit += 37) {
    for (std::size_t which = 0; which < 4; ++which) {
      auto keys = of_key, seeds = of_seed;
      keys[which].bits[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
      seeds[which].bits[bit / 8] ^= static_cast<std::uint8_t>(1 << bit % 8);
      CHECK(failure_of([&] { check_seed(combine(seeds, 3), commitment, 5); }) ==
            "the seed of client 5's self mask has another hash than the client sent: a share is "
            "wrong");
      // crypto_kx ignores three bits of the first and two of the last byte of a key.
      const secret other = combine(keys, 3);
      const std::string found = failure_of([&] { check_key(other, pair.open, 5); });
      if (public_half(other) != pair.open) {
        CHECK(found == "the key of client 5 does not belong to its public key: a share is wrong");
      } else {
        CHECK((bit < 3 || bit >= 254));
      }
    }
  }
}
