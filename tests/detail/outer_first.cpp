// SPDX-License-Identifier: MIT
#include <subfed/detail/outer_first.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <vector>

namespace {

struct numbered_loop {
  std::int64_t global_stride;
  int number;
};

std::vector<int> sorted_numbers(const std::vector<std::int64_t>& strides) {
  std::vector<numbered_loop> loops;
  for (const std::int64_t s : strides) loops.push_back({s, static_cast<int>(loops.size())});
  subfed::detail::sort_outer_first(std::span<numbered_loop>(loops));
  std::vector<int> out;
  for (const numbered_loop& l : loops) out.push_back(l.number);
  return out;
}

}  // namespace

TEST_CASE("loops are sorted by the size of their strides; equal ones keep their order") {
  CHECK(sorted_numbers({}).empty());
  CHECK(sorted_numbers({1, 6, 2}) == std::vector<int>{1, 2, 0});
  CHECK(sorted_numbers({3, -12, 3, 12, 0}) == std::vector<int>{1, 3, 0, 2, 4});
}
