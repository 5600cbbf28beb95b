// SPDX-License-Identifier: MIT
/// Random words in vectors are those that come one by one.
#include <subfed/detail/philox_lanes.hpp>

#include <doctest/doctest.h>

#include <subfed/philox.hpp>
#include <support/instructions.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

TEST_CASE("the first words of a stream are its words, for every number of them") {
  const subfed::random_stream stream(3, 1, 4, "philox_lanes");
  support::with_all_instructions([&] {
    for (std::size_t count = 0; count < 100; ++count) {
      std::vector<std::uint64_t> words(count + 1, 77);
      stream.first_words({words.data(), count});
      bool same = words[count] == 77;
      for (std::size_t i = 0; i < count; ++i) same = same && words[i] == stream.bits(i);
      CHECK(same);
    }
  });
}

TEST_CASE("counters in vectors may have more than 32 bits, and begin anywhere") {
  const subfed::detail::philox_stream from{{5, 0xFFFFFFFFu}, {0x9E3779B9u, 1}};
  support::with_all_instructions([&] {
    for (const std::uint64_t first :
         {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{0xFFFFFFFFu} - 5,
          std::uint64_t{1} << 40, ~std::uint64_t{0} - 9}) {
      std::vector<std::uint64_t> words(2 * 37 + 1, 77);
      const std::size_t done = subfed::detail::philox_words(from, first, 37, words.data());
      const bool in_vectors =
          subfed::detail::instructions_in_use() != subfed::detail::instructions::baseline;
      CHECK(done == (in_vectors ? 32u : 0u));
      bool same = words[2 * done] == 77;
      for (std::size_t k = 0; k < done; ++k) {
        const std::uint64_t i = first + k;
        const subfed::philox_block block =
            subfed::philox4x32({{static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i >> 32),
                                 from.tag[0], from.tag[1]}},
                               {{from.key[0], from.key[1]}});
        same = same && words[2 * k] == (std::uint64_t{block.word[1]} << 32 | block.word[0]) &&
               words[2 * k + 1] == (std::uint64_t{block.word[3]} << 32 | block.word[2]);
      }
      CHECK(same);
    }
  });
}
