// SPDX-License-Identifier: MIT
/// Any bytes as the sets of a small model: they are refused with an error, or are exactly what is written
/// for the submodel that was read.
#include <fuzz/fuzz.hpp>
#include <subfed/messages/submodel_bytes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace {

const fuzz::registered submodel_bytes("submodel_bytes", [](fuzz::bytes bytes) {
  subfed::model net;
  net.group("a", 10);
  net.group("b", std::int64_t{1} << 62);
  net.group("c", 300);
  // The first twelve bytes are the magic and the names: none need be found by chance.
  std::vector<std::byte> all = subfed::write_sets(subfed::submodel::full(net));
  if (!bytes.empty() && bytes[0] % 16 != 0) {
    all.resize(12);
    bytes = bytes.subspan(1);
  } else {
    all.clear();
  }
  for (const std::uint8_t b : bytes) all.push_back(std::byte{b});
  const subfed::submodel sub = subfed::read_sets(net, all);
  fuzz::expect(subfed::write_sets(sub) == all);
});

}  // namespace
