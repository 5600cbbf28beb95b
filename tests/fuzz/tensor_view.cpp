// SPDX-License-Identifier: MIT
/// Any extents and strides: a view is refused, or its size and reach can be computed. Small ones
/// are compared with all their offsets written out.
#include <fuzz/fuzz.hpp>
#include <subfed/detail/view_overlap.hpp>
#include <subfed/tensor_view.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <set>
#include <span>
#include <vector>

namespace {

constexpr std::int64_t room = 1 << 12;
std::array<double, 2 * room> memory;  // views that reach less far than `room` begin in its middle

/// Offsets of all elements, row-major.
std::vector<std::int64_t> offsets_of(const subfed::tensor_view<double>& view) {
  std::vector<std::int64_t> out{0};
  for (int r = 0; r < view.rank(); ++r) {
    std::vector<std::int64_t> longer;
    for (const std::int64_t before : out) {
      for (std::int64_t i = 0; i < view.extent(r); ++i)
        longer.push_back(before + i * view.stride(r));
    }
    out = longer;
  }
  return out;
}

subfed::tensor_view<double> any_view(fuzz::input& in) {
  std::vector<std::int64_t> extents(static_cast<std::size_t>(in.below(10)));
  std::vector<std::int64_t> strides(extents.size());
  const bool small = in.below(3) != 0;
  for (std::int64_t& e : extents) e = small ? in.below(5) : in.number();
  for (std::int64_t& s : strides) s = small ? in.below(41) - 20 : in.number();
  double* const middle = memory.data() + room;
  if (in.below(4) == 0) return {middle, extents};
  return {middle, std::span<const std::int64_t>(extents), std::span<const std::int64_t>(strides)};
}

bool is_small(const subfed::tensor_view<double>& view) {
  if (view.size() == 0 || view.size() > 400) return false;
  const auto [low, high] = subfed::detail::offset_range(view);
  return low > -room && high < room;
}

const fuzz::registered tensor_view("tensor_view", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  const subfed::tensor_view<double> a = any_view(in);
  fuzz::expect(a.size() >= 0 && a.rank() <= subfed::max_rank);
  if (!is_small(a)) return;
  const std::vector<std::int64_t> offsets = offsets_of(a);
  const auto [low, high] = std::minmax_element(offsets.begin(), offsets.end());
  const auto range = subfed::detail::offset_range(a);
  fuzz::expect(range.first == *low && range.second == *high);
  const std::set<std::int64_t> places(offsets.begin(), offsets.end());
  fuzz::expect(a.is_unique() == (places.size() == offsets.size()));
  std::vector<std::int64_t> walked;
  subfed::detail::for_each_offset(a, [&](std::int64_t o) { walked.push_back(o); });
  fuzz::expect(walked == offsets);

  const subfed::tensor_view<double> b = any_view(in);
  if (!is_small(b)) return;
  bool meet = false;
  for (const std::int64_t o : offsets_of(b)) meet = meet || places.contains(o);
  fuzz::expect(subfed::detail::overlap_in_memory(a, b) == meet);
});

}  // namespace
