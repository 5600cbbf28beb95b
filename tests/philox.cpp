// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/philox.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

using subfed::philox4x32;
using subfed::philox_block;
using subfed::philox_key;
using subfed::random_stream;

namespace {

struct block_row {
  philox_block counter;
  philox_key key;
  philox_block bits;
};
constexpr block_row golden_blocks[] = {
#include <golden/philox_blocks.inc>
};

struct stream_row {
  std::uint64_t seed;
  std::uint64_t a;
  std::uint64_t b;
  std::string_view purpose;
  std::uint64_t i;
  std::uint64_t word;
};
constexpr stream_row golden_streams[] = {
#include <golden/streams.inc>
};

struct below_row {
  std::uint64_t seed;
  std::uint64_t bound;
  std::uint64_t values[4];
};
constexpr below_row golden_below[] = {
#include <golden/below.inc>
};

/// Sum of (seen - expected)^2 / expected over equally likely cells.
double chi_square(const std::vector<int>& seen) {
  double total = 0;
  for (const int n : seen) total += n;
  const double expected = total / static_cast<double>(seen.size());
  double sum = 0;
  for (const int n : seen) sum += (n - expected) * (n - expected) / expected;
  return sum;
}

}  // namespace

TEST_CASE("Philox gives the published known answers") {
  // [Random123], kat_vectors, philox4x32 with 10 rounds.
  static_assert(philox4x32({{0, 0, 0, 0}}, {{0, 0}}) ==
                philox_block{{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  constexpr std::uint32_t ones = 0xffffffff;
  static_assert(philox4x32({{ones, ones, ones, ones}}, {{ones, ones}}) ==
                philox_block{{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  static_assert(
      philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}}) ==
      philox_block{{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
  // The 10000th word of the standard's philox4x32 engine with its default seed.
  static_assert(philox4x32({{2499, 0, 0, 0}}, {{20111115, 0}}).word[3] == 1955073260);
}

TEST_CASE("Philox blocks agree with the golden values") {
  for (const block_row& row : golden_blocks) CHECK(philox4x32(row.counter, row.key) == row.bits);
}

TEST_CASE("names are hashed by FNV-1a") {
  static_assert(subfed::name_hash("") == 0xcbf29ce484222325);
  static_assert(subfed::name_hash("a") == 0xaf63dc4c8601ec8c);
  static_assert(subfed::name_hash("foobar") == 0x85944171f73967e8);
  CHECK(subfed::name_hash(std::string_view("a\0b", 3)) != subfed::name_hash("ab"));
}

TEST_CASE("the words of random streams agree with the golden values, at compile time too") {
  static_assert([] {
    for (const stream_row& row : golden_streams) {
      if (random_stream(row.seed, row.a, row.b, row.purpose).bits(row.i) != row.word) return false;
    }
    return true;
  }());
  for (const stream_row& row : golden_streams) {
    CAPTURE(row.purpose);
    CAPTURE(row.i);
    const random_stream stream(row.seed, row.a, row.b, row.purpose);
    CHECK(stream.bits(row.i) == row.word);
    const random_stream hashed(row.seed, row.a, row.b, subfed::name_hash(row.purpose));
    CHECK(hashed.bits(row.i) == row.word);
    const random_stream::pair both = stream.bits_pair(row.i / 2);
    CHECK((row.i % 2 == 0 ? both.even : both.odd) == row.word);
  }
}

TEST_CASE("bounded integers agree with the golden values") {
  for (const below_row& row : golden_below) {
    random_stream stream(row.seed, 1, 2, "b");
    CAPTURE(row.bound);
    for (const std::uint64_t value : row.values) CHECK(stream.below(row.bound) == value);
  }
}

TEST_CASE("words may be asked in any order, and the next ones walk upwards from word 0") {
  random_stream stream(7, 1, 2, "order");
  const random_stream untouched = stream;
  std::vector<std::uint64_t> forward;
  for (int i = 0; i < 20; ++i) forward.push_back(stream.next_u64());
  for (std::uint64_t i = 20; i-- > 0;) {
    CHECK(stream.bits(i) == forward[i]);
    CHECK(untouched.bits(i) == forward[i]);
  }
  CHECK(std::set<std::uint64_t>(forward.begin(), forward.end()).size() == 20);
}

TEST_CASE("a unit number is the top 53 bits of the next word") {
  support::for_all("next_unit()", [] {
    random_stream stream(*rc::gen::arbitrary<std::uint64_t>(), 0, 0, "unit");
    const std::uint64_t word = stream.bits(0);
    const double unit = stream.next_unit();
    RC_ASSERT(unit >= 0);
    RC_ASSERT(unit < 1);
    RC_ASSERT(unit == std::ldexp(static_cast<double>(word >> 11), -53));
    RC_ASSERT(stream.next_u64() == stream.bits(1));
  });
}

TEST_CASE("a bounded integer is below its bound, for every bound") {
  support::for_all("below()", [] {
    const auto bound = *rc::gen::suchThat<std::uint64_t>([](std::uint64_t b) { return b != 0; });
    random_stream stream(*rc::gen::arbitrary<std::uint64_t>(), 0, 0, "below");
    for (int i = 0; i < 5; ++i) RC_ASSERT(stream.below(bound) < bound);
  });
  random_stream stream(1, 2, 3, "one");
  for (int i = 0; i < 10; ++i) CHECK(stream.below(1) == 0);
}

TEST_CASE("bounded integers are uniform, where a plain remainder would not be") {
  for (const std::uint64_t bound : {2u, 7u, 10u}) {
    random_stream stream(11, bound, 0, "uniform");
    std::vector<int> seen(bound, 0);
    for (int i = 0; i < 20000; ++i) ++seen[stream.below(bound)];
    CHECK(chi_square(seen) < 30);  // 9 degrees of freedom at most: p < 0.0005
  }
  // Of 2^64 words, a remainder by 3 * 2^62 gives the lowest third twice.
  const std::uint64_t bound = std::uint64_t{3} << 62;
  random_stream stream(12, 0, 0, "third");
  std::vector<int> thirds(3, 0);
  for (int i = 0; i < 6000; ++i) ++thirds[stream.below(bound) >> 62];
  CHECK(chi_square(thirds) < 18);  // 2 degrees of freedom: p < 0.0002
}

TEST_CASE("each bit of the words is set half the time") {
  const random_stream stream(13, 0, 0, "bits");
  std::vector<int> set(64, 0);
  constexpr int words = 10000;
  for (std::uint64_t i = 0; i < words; ++i) {
    const std::uint64_t word = stream.bits(i);
    for (std::size_t bit = 0; bit < 64; ++bit) set[bit] += static_cast<int>(word >> bit & 1);
  }
  for (const int n : set) CHECK(std::abs(n - words / 2) < 250);  // 5 sigma
}

TEST_CASE("streams that differ in seed, a, b or purpose have nothing in common") {
  std::vector<random_stream> streams;
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
    for (const std::uint64_t a : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
      for (const std::uint64_t b : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 32}) {
        for (const char* purpose : {"", "a", "b"}) streams.emplace_back(seed, a, b, purpose);
      }
    }
  }
  std::set<std::uint64_t> words;
  for (const random_stream& stream : streams) {
    for (std::uint64_t i = 0; i < 8; ++i) words.insert(stream.bits(i));
  }
  CHECK(words.size() == streams.size() * 8);

  // Bits of neighbours agree half the time, as those of strangers do.
  int agree = 0;
  int asked = 0;
  for (std::size_t s = 1; s < streams.size(); ++s) {
    for (std::uint64_t i = 0; i < 8; ++i) {
      const std::uint64_t different = streams[s].bits(i) ^ streams[s - 1].bits(i);
      for (int bit = 0; bit < 64; ++bit) agree += (different >> bit & 1) == 0 ? 1 : 0;
      asked += 64;
    }
  }
  CHECK(std::abs(agree - asked / 2) < 2.5 * std::sqrt(asked));  // 5 sigma
}

TEST_CASE("Philox is one to one in the counter for a key") {
  std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
  for (std::uint32_t n = 0; n < 4096; ++n) {
    const philox_block out = philox4x32({{n & 15, n >> 4 & 15, n >> 8, 0}}, {{5, 6}});
    seen.emplace(std::uint64_t{out.word[0]} << 32 | out.word[1],
                 std::uint64_t{out.word[2]} << 32 | out.word[3]);
  }
  CHECK(seen.size() == 4096);
}
