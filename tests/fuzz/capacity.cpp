// SPDX-License-Identifier: MIT
/// Any share of any extent: between the minimum and everything, the roundings in order, and growing
/// with the extent.
#include <fuzz/fuzz.hpp>
#include <subfed/capacity.hpp>
#include <subfed/index_set.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/schemes/simple_ensemble.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

namespace {

using subfed::rounding;

subfed::capacity any_capacity(fuzz::input& in) {
  switch (in.below(3)) {
    case 0:
      return subfed::capacity(in.real());
    case 1:
      return subfed::capacity(static_cast<float>(in.byte()) / 255.0f);
    default: {
      const std::int64_t numerator = in.number();
      return subfed::capacity::ratio(numerator, in.number());
    }
  }
}

const fuzz::registered capacity("capacity", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  subfed::capacity share = any_capacity(in);
  if (in.below(4) == 0) share = share.without(in.real());
  const std::int64_t extent = in.number(), minimum = in.number();
  fuzz::expect(share.value() > 0 && share.value() <= 1);
  const std::int64_t low = share.of(extent, rounding::floor, minimum);
  const std::int64_t near = share.of(extent, rounding::nearest, minimum);
  const std::int64_t high = share.of(extent, rounding::ceil, minimum);
  fuzz::expect(0 <= low && low <= near && near <= high && high <= extent);
  fuzz::expect(low >= (std::min)(minimum, extent) && high - low <= 1);
  if (extent < (std::int64_t{1} << 50)) {
    fuzz::expect(share.of(extent + 1, rounding::floor, minimum) >= low);
  }
});

const fuzz::registered schemes("schemes", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  const std::int64_t kind = in.below(4);
  const subfed::capacity share = any_capacity(in);
  // Sets of many runs are kept to sizes that a test can hold.
  const std::int64_t extent = kind == 1 ? in.number() % 512 : in.number();
  const subfed::draw_request where{in.word(), in.word(), in.word(), "group", extent, share};
  const auto check = [&](const auto& scheme) {
    const subfed::index_set set = scheme(where);
    fuzz::expect(set.extent() == extent && set.size() >= 0 && set.size() <= extent);
    fuzz::expect(set == scheme(where));
    if (kind != 1) fuzz::expect(set.runs().size() <= 2);
  };
  if (kind == 0) {
    subfed::rolling window;
    if (in.below(2) == 1) window.window_overlap = in.real();
    window.step = in.number();
    if (in.below(2) == 1) window.walk = subfed::direction::backward;
    window.phase = in.number();
    window.client_phase = in.number();
    window.minimum = in.number();
    check(window);
  } else if (kind == 1) {
    subfed::random_subset nodes;
    if (in.below(3) == 1) nodes.seeds = subfed::seed_policy::pool(in.number());
    if (in.below(3) == 1) nodes.seeds = subfed::seed_policy::shared(in.number());
    check(nodes);
  } else if (kind == 2) {
    subfed::prefix first;
    first.minimum = in.number();
    check(first);
  } else {
    subfed::simple_ensemble member;
    member.advance = in.word();
    check(member);
  }
});

}  // namespace
