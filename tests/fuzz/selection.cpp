// SPDX-License-Identifier: MIT
/// Any runs: a selection is refused exactly when a run is wrong, and otherwise slice and scatter do
/// what the runs say, element by element.
#include <fuzz/fuzz.hpp>
#include <subfed/scatter.hpp>
#include <subfed/selection.hpp>
#include <subfed/slice.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace {

using subfed::run;
using subfed::selected_dimension;

/// The global index of each local one, or -1; empty where the runs are wrong. Pre: small extents.
bool spelled(const selected_dimension& d, std::vector<std::int64_t>& out) {
  if (d.global_extent < 0 || d.local_extent < 0) return false;
  out.assign(static_cast<std::size_t>(d.local_extent), -1);
  std::vector<bool> used(static_cast<std::size_t>(d.global_extent));
  for (const run& r : d.runs) {
    if (r.length < 1 || r.position < 0 || r.first < 0) return false;
    if (r.length > d.local_extent || r.length > d.global_extent) return false;
    if (r.position > d.local_extent - r.length || r.first > d.global_extent - r.length)
      return false;
    for (std::int64_t i = 0; i < r.length; ++i) {
      auto& at = out[static_cast<std::size_t>(r.position + i)];
      if (at >= 0 || used[static_cast<std::size_t>(r.first + i)]) return false;
      at = r.first + i;
      used[static_cast<std::size_t>(r.first + i)] = true;
    }
  }
  return true;
}

const fuzz::registered selection("selection", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  const bool small = in.below(4) != 0;
  std::vector<selected_dimension> dimensions(static_cast<std::size_t>(in.below(small ? 4 : 10)));
  std::vector<std::vector<std::int64_t>> listed;
  bool right = true;
  for (selected_dimension& d : dimensions) {
    d.global_extent = small ? in.below(7) : in.number();
    d.local_extent = small ? in.below(7) : in.number();
    for (std::int64_t runs = in.below(4); runs > 0; --runs) {
      const std::int64_t position = small ? in.below(8) - 1 : in.number();
      const std::int64_t first = small ? in.below(8) - 1 : in.number();
      d.runs.push_back({position, first, small ? in.below(5) : in.number()});
    }
    listed.emplace_back();
    if (small) right = spelled(d, listed.back()) && right;
  }
  if (!small) {
    const subfed::selection chosen(dimensions);
    fuzz::expect(chosen.rank() <= subfed::max_rank);
    return;
  }
  fuzz::expect(fuzz::refused([&] {
                 const subfed::selection chosen(dimensions);
                 // For each local element, row-major, its global number or -1.
                 std::vector<std::int64_t> numbers{0};
                 std::int64_t elements = 1;
                 for (std::size_t r = 0; r < dimensions.size(); ++r) {
                   const std::int64_t extent = dimensions[r].global_extent;
                   std::vector<std::int64_t> longer;
                   for (const std::int64_t n : numbers) {
                     for (const std::int64_t g : listed[r]) {
                       longer.push_back(n < 0 || g < 0 ? -1 : n * extent + g);
                     }
                   }
                   numbers = longer;
                   elements *= extent;
                 }
                 std::vector<int> global(static_cast<std::size_t>(elements) + 1);
                 for (std::size_t i = 0; i < global.size(); ++i)
                   global[i] = static_cast<int>(i) + 1;
                 std::vector<int> local(numbers.size() + 1, -7);
                 const auto locals = chosen.local_extents();
                 const auto globals = chosen.global_extents();
                 subfed::slice(subfed::tensor_view<int>(global.data(), globals), chosen,
                               subfed::tensor_view<int>(local.data(), locals));
                 for (std::size_t l = 0; l < numbers.size(); ++l) {
                   const int expected = numbers[l] < 0 ? -7 : static_cast<int>(numbers[l]) + 1;
                   fuzz::expect(local[l] == expected);
                 }
                 fuzz::expect(local.back() == -7);
                 std::vector<int> back = global;
                 for (int& x : local) x = x == -7 ? -7 : x + 1000;
                 subfed::scatter(subfed::tensor_view<int>(local.data(), locals), chosen,
                                 subfed::tensor_view<int>(back.data(), globals));
                 for (const std::int64_t n : numbers) {
                   if (n >= 0) global[static_cast<std::size_t>(n)] += 1000;
                 }
                 fuzz::expect(back == global);
               }) == !right);
});

}  // namespace
