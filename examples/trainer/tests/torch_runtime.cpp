// SPDX-License-Identifier: MIT
#include "torch_runtime.hpp"

#include <cstdint>
#include <subfed/philox.hpp>
#include <vector>

// LibTorch defines CHECK, too.
#define DOCTEST_CONFIG_NO_SHORT_MACRO_NAMES
#include <doctest/doctest.h>

DOCTEST_TEST_CASE("images have the bits that operators on a whole batch give") {
  trainer::dataset set{9, 28, 28, {}, std::vector<std::uint8_t>(9, 1)};
  subfed::random_stream noise(3, 0, 0, "images");
  for (int i = 0; i < 9 * 28 * 28; ++i) set.pixels.push_back(std::uint8_t(noise.below(256)));
  const trainer::device_data data(set, at::kCPU);
  const std::vector<std::int64_t> chosen = {8, 0, 3, 3, 5};
  const at::Tensor bytes = at::tensor(set.pixels, at::kByte).view({9, 1, 28, 28});
  const at::Tensor batch = bytes.index_select(0, at::tensor(chosen, at::kLong)).to(at::kFloat);
  const at::Tensor expected = (batch - 72.94) / 90.02;
  DOCTEST_CHECK(data.inputs(chosen).equal(expected));
  DOCTEST_CHECK(data.inputs(std::vector<std::int64_t>{7}).sizes() ==
                at::IntArrayRef({1, 1, 28, 28}));
  for (const std::int64_t beyond : {-1, 9}) {
    DOCTEST_CHECK_THROWS_AS(data.inputs(std::vector<std::int64_t>{beyond}), c10::IndexError);
  }
}
