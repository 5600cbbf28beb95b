// SPDX-License-Identifier: MIT
#include <subfed/detail/memory_size.hpp>

#include <support/checks.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

using subfed::detail::memory_size;
using support::message_of;

namespace {

constexpr std::int64_t most_places = (std::numeric_limits<std::ptrdiff_t>::max)();

}  // namespace

TEST_CASE("a count is a size as long as its bytes have addresses") {
  CHECK(memory_size<std::uint64_t>(0) == 0);
  CHECK(memory_size<std::uint64_t>(1 << 20) == std::size_t{1} << 20);
  CHECK(memory_size<unsigned char>(most_places) == static_cast<std::size_t>(most_places));
  CHECK(memory_size<std::uint64_t>(most_places / 8) == static_cast<std::size_t>(most_places / 8));
  CHECK(message_of([] { memory_size<std::uint64_t>(most_places / 8 + 1); }) ==
        "subfed: " + std::to_string(most_places / 8 + 1) +
            " values of 8 bytes are more than this machine can address");
  // 2^32 + 3 is 3 in a size of 32 bits.
  CHECK(message_of([] { memory_size<unsigned char>((std::int64_t{1} << 32) + 3); }) ==
        (sizeof(std::size_t) == 8
             ? "nothing was thrown"
             : "subfed: 4294967299 values of 1 bytes are more than this machine can address"));
}

TEST_CASE("a shape is a size as long as its product has addresses, and is there") {
  CHECK(memory_size<double>(std::array<std::int64_t, 0>{}) == 1);
  CHECK(memory_size<double>(std::array<std::int64_t, 3>{2, 3, 5}) == 30);
  CHECK(memory_size<double>(std::array<std::int64_t, 3>{most_places, 0, most_places}) == 0);
  CHECK(message_of([] {
          memory_size<double>(std::array<std::int64_t, 2>{std::int64_t{1} << 40, 1 << 30});
        }) ==
        "subfed: shape (1099511627776, 1073741824) has more elements than this machine can "
        "address");
  CHECK(message_of([] {
          memory_size<double>(std::array<std::int64_t, 2>{most_places / 8, 2});
        }) == "subfed: " + std::to_string(most_places / 8 * 2) +
                  " values of 8 bytes are more than this machine can address");
}
