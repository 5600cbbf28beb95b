// SPDX-License-Identifier: MIT
#include <subfed/secure/detail/mask_stream.hpp>

#include <doctest/doctest.h>
#include <support/views.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

using subfed::mask_key;
using subfed::detail::mask_sign;
using support::seeded;

namespace {

/// Word w of a key's stream, and what was asked for.
struct counting_generator {
  std::uint64_t words = 0, calls = 0, misplaced = 0;

  static std::uint64_t word(std::uint64_t w) { return (w + 1) * 0x9E3779B97F4A7C15u; }
  void operator()(const mask_key&, std::uint64_t first, std::span<std::uint64_t> out) {
    misplaced += first % 8 != 0 ? 1 : 0;
    words += out.size();
    ++calls;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = word(first + i);
  }
};

}  // namespace

TEST_CASE("each element has its own word, in whatever runs and order they come") {
  for (std::uint64_t n = 0; n < 300; ++n) {
    INFO("number ", n);
    seeded random(n);
    const mask_key key;
    counting_generator generator;
    const bool plus = random.one_in(2);
    subfed::detail::mask_stream mask(generator, key, plus ? mask_sign::plus : mask_sign::minus);
    std::uint64_t at = static_cast<std::uint64_t>(random.between(0, 20));
    for (int run = 0; run < 30; ++run) {
      const std::int64_t length = random.one_in(5) ? random.between(0, 3000) : random.between(1, 9);
      const std::int64_t stride = random.one_in(4) ? random.between(2, 40) : 1;
      const std::int64_t to_stride = random.one_in(4) ? random.between(2, 3) : 1;
      if (random.one_in(9)) at = static_cast<std::uint64_t>(random.between(0, 20));
      std::vector<std::uint64_t> to(static_cast<std::size_t>(length * to_stride + 1), 5);
      mask.apply(at, stride, to.data(), to_stride, length);
      int wrong = 0;
      for (std::size_t i = 0; i < to.size(); ++i) {
        std::uint64_t expected = 5;
        const std::uint64_t element = i / static_cast<std::uint64_t>(to_stride);
        if (i % static_cast<std::uint64_t>(to_stride) == 0 &&
            element < static_cast<std::uint64_t>(length)) {
          const auto word =
              counting_generator::word(at + element * static_cast<std::uint64_t>(stride));
          expected += plus ? word : 0 - word;
        }
        wrong += to[i] != expected ? 1 : 0;
      }
      CHECK(wrong == 0);
      at += static_cast<std::uint64_t>(length * stride + random.between(0, 30));
    }
    CHECK(generator.misplaced == 0);
  }
}

TEST_CASE("long runs cost what they hold, short ones with small gaps share calls") {
  const mask_key key;
  std::vector<std::uint64_t> to(100'000);
  counting_generator whole;
  subfed::detail::mask_stream(whole, key, mask_sign::plus).apply(3, 1, to.data(), 1, 100'000);
  CHECK(whole.words <= 100'000 + 16);
  CHECK(whole.calls < 100);
  counting_generator half;  // every other element, as of a random set of half of the nodes
  subfed::detail::mask_stream mask(half, key, mask_sign::plus);
  for (std::uint64_t i = 0; i < 50'000; ++i) mask.apply(2 * i, 1, to.data() + i, 1, 1);
  CHECK(half.words < 102'000);
  CHECK(half.calls < 110);
  counting_generator rows;  // the first half of each row: nothing in between is generated
  subfed::detail::mask_stream by_row(rows, key, mask_sign::plus);
  for (std::uint64_t r = 0; r < 100; ++r) by_row.apply(1000 * r, 1, to.data(), 1, 500);
  CHECK(rows.words < 100 * 520);
}
