// SPDX-License-Identifier: MIT
/// What the loops of an average keep of its holders.
#include <subfed/average/detail/layout.hpp>
#include <subfed/selection.hpp>
#include <subfed/tensor_view.hpp>
#include <support/instructions.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

TEST_CASE("masks of holders without data stay within 4 MiB") {
  constexpr std::int64_t size = std::int64_t{1} << 20;
  std::vector<subfed::run> runs;
  for (std::int64_t k = 0; k < size / 16; ++k) runs.push_back({k, 16 * k, 1});
  const subfed::selection chosen({{size, size / 16, runs}});
  const std::vector<float> data(static_cast<std::size_t>(size / 16));
  std::vector<float> global(static_cast<std::size_t>(size));
  const subfed::tensor_view<float> to(global.data(), {size});
  const auto has_masks = [&](std::size_t holders, bool with_data) {
    const std::vector<const subfed::selection*> shapes(holders, &chosen);
    std::vector<subfed::detail::participant<float>> participants;
    for (std::size_t p = 0; p < holders; ++p) {
      participants.push_back({1, p, with_data ? data.data() : nullptr, {1}});
    }
    const subfed::detail::average_layout<float> layout(
        to, std::span<const subfed::selection* const>(shapes), participants);
    return !layout.masks().empty();
  };
  support::with_all_instructions([&] {
    const bool in_vectors = subfed::detail::in_lanes<float>();
    CHECK(has_masks(2, false) == in_vectors);
    CHECK(has_masks(10, false) == in_vectors);
    CHECK_FALSE(has_masks(11, false));
    CHECK(has_masks(11, true) == in_vectors);
  });
}
