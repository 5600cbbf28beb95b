// SPDX-License-Identifier: MIT
/// Any nodes and windows: refused exactly when they are wrong, and otherwise what was given.
#include <fuzz/fuzz.hpp>
#include <subfed/index_set.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace {

template <class Index>
void check_nodes(std::int64_t extent, const std::vector<std::int64_t>& nodes) {
  std::vector<Index> given;
  for (const std::int64_t n : nodes) given.push_back(static_cast<Index>(n));
  const auto own_extent = static_cast<Index>(extent);
  bool right = own_extent >= 0;
  std::set<Index> seen;
  for (const Index n : given) {
    right = right && n >= 0 && n < own_extent && seen.insert(n).second;
  }
  bool made = false;
  fuzz::expect(fuzz::refused([&] {
                 const subfed::basic_index_set<Index> set(own_extent,
                                                          std::span<const Index>(given));
                 made = true;
                 fuzz::expect(set.extent() == own_extent);
                 fuzz::expect(std::cmp_equal(set.size(), given.size()));
                 fuzz::expect(std::equal(set.begin(), set.end(), given.begin(), given.end()));
                 fuzz::expect(set.is_ascending() == std::is_sorted(given.begin(), given.end()));
                 for (std::size_t p = 0; p < given.size(); ++p) {
                   fuzz::expect(set[static_cast<Index>(p)] == given[p]);
                   fuzz::expect(set.contains(given[p]));
                 }
                 fuzz::expect(set.contains(own_extent) == false);
                 if (!std::in_range<std::int64_t>(own_extent)) return;
                 const subfed::index_set wide(set);
                 fuzz::expect(subfed::basic_index_set<Index>(wide) == set);
               }) == !right);
  fuzz::expect(made == right);
}

const fuzz::registered index_set("index_set", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  const std::int64_t kind = in.below(5);
  const std::int64_t extent = in.number();
  if (kind == 4) {
    const std::int64_t first = in.number(), count = in.number();
    const bool right = extent >= 0 && count >= 0 && count <= extent && first >= 0 &&
                       (first < extent || first == 0);
    fuzz::expect(fuzz::refused([&] {
                   const auto set = subfed::index_set::window(extent, first, count);
                   fuzz::expect(set.size() == count && set.runs().size() <= 2);
                   fuzz::expect(set.contains(first) == (count > 0));
                   fuzz::expect(set.is_full() == (count == extent && (first == 0 || extent == 0)));
                   if (count > 0) {
                     const std::int64_t last = set[count - 1];
                     const std::int64_t room = extent - first;
                     fuzz::expect(last == (count <= room ? first + count - 1 : count - room - 1));
                   }
                 }) == !right);
    return;
  }
  std::vector<std::int64_t> nodes;
  while (!in.empty() && nodes.size() < 64) {
    const std::int64_t next = in.number();
    // Runs: a number of nodes that continue after the last one.
    if (next < 0 && next > -8 && !nodes.empty()) {
      for (std::int64_t i = next; i < 0; ++i) {
        nodes.push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(nodes.back()) + 1));
      }
    } else {
      nodes.push_back(next);
    }
  }
  if (kind == 0) check_nodes<std::int64_t>(extent, nodes);
  if (kind == 1) check_nodes<std::int8_t>(extent, nodes);
  if (kind == 2) check_nodes<std::uint16_t>(extent, nodes);
  if (kind == 3) check_nodes<std::uint64_t>(extent, nodes);
});

}  // namespace
