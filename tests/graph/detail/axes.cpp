// SPDX-License-Identifier: MIT
#include <doctest/doctest.h>
#include <subfed/graph/detail/axes.hpp>

#include <support/checks.hpp>
#include <support/views.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace {

using subfed::detail::axis_space;
using subfed::detail::value_axis;

/// "2x4 | 3w": the extents of the leaves, with a w for those that are whole.
std::string leaf_text(axis_space& s, const value_axis& a) {
  std::string out;
  for (const auto& product : s.leaves(a)) {
    out += out.empty() ? "" : " | ";
    for (std::size_t i = 0; i < product.size(); ++i) {
      out += (i == 0 ? "" : "x") + std::to_string(s.extent(product[i]));
      if (s.is_whole(product[i])) out += "w";
    }
    if (product.empty()) out += "1";
  }
  return out;
}

TEST_CASE("axes: two of one factor become one") {
  axis_space s;
  const value_axis a = s.fresh(5), b = s.fresh(5);
  s.unify(a, b);
  CHECK(s.leaves(a) == s.leaves(b));
  s.make_whole(a, s.reason("so"));
  CHECK(s.is_whole(b));
}
TEST_CASE("axes: a factor that is a product elsewhere becomes it") {
  axis_space s;
  const value_axis a = s.fresh(24), three = s.fresh(3), eight = s.fresh(8);
  s.unify(a, s.product(three, eight));
  CHECK(leaf_text(s, a) == "3x8");
  const value_axis b = s.product(s.fresh(6), s.fresh(4));
  s.unify(a, b);
  CHECK(leaf_text(s, a) == "3x2x4");
  CHECK(leaf_text(s, eight) == "2x4");
  CHECK(s.leaves(a) == s.leaves(b));
}
TEST_CASE("axes: a factor that is a concatenation elsewhere becomes it") {
  axis_space s;
  const value_axis a = s.fresh(10);
  value_axis parts = s.fresh(4);
  parts.push_back(s.fresh(6)[0]);
  s.unify(a, parts);
  CHECK(leaf_text(s, a) == "4 | 6");
  value_axis others = s.fresh(6);
  others.push_back(s.fresh(4)[0]);
  s.unify(a, others);
  CHECK(leaf_text(s, a) == "4 | 2 | 4");
  CHECK(s.leaves(a) == s.leaves(others));
}
TEST_CASE("axes: copies of a concatenation are one after the other") {
  axis_space s;
  value_axis parts = s.fresh(4);
  parts.push_back(s.fresh(6)[0]);
  const value_axis copies = s.fresh(2);
  CHECK(leaf_text(s, s.product(copies, parts)) == "4 | 6 | 4 | 6");
  CHECK(s.is_whole(copies));
  CHECK(leaf_text(s, s.product(parts, s.fresh(3))) == "4x3 | 6x3");
}
TEST_CASE("axes: a part of the first of several single elements is found, in whole parts too") {
  axis_space s;
  const value_axis copies = s.fresh(3), whole = s.fresh(12);
  const value_axis all = s.product(s.product(copies, whole), s.fresh(5));
  const std::size_t why = s.reason("so");
  value_axis parts = s.fresh_whole(4, why);
  parts.push_back(s.fresh_whole(8, why)[0]);
  s.unify(copies, value_axis(3));
  s.unify(whole, parts);
  CHECK(leaf_text(s, all) == "4wx5 | 8wx5 | 4wx5 | 8wx5 | 4wx5 | 8wx5");
  CHECK(leaf_text(s, s.slice(all, 0, 10)) == "2wx5");
}
TEST_CASE("axes: whole parts that were taken for one factor are one again after it was divided") {
  axis_space s;
  const std::size_t why = s.reason("so");
  value_axis parts = s.fresh_whole(4, why);
  parts.push_back(s.fresh_whole(8, why)[0]);
  const value_axis copies = s.product(s.fresh(3), parts);
  CHECK(leaf_text(s, copies) == "3x12w");
  const value_axis one = {{copies[0][1]}};
  CHECK(leaf_text(s, s.slice(s.product(one, s.fresh(5)), 0, 10)) == "2wx5");
  CHECK(leaf_text(s, one) == "2w | 10w");
  CHECK(leaf_text(s, copies) == "3x12w");
  CHECK(leaf_text(s, s.product(s.fresh(7), parts)) == "7x12w");
}
TEST_CASE("axes: copies of equal parts are a product, so that their number can be cut") {
  axis_space s;
  const value_axis heads = s.fresh(3), each = s.fresh(8), all = s.product(heads, each);
  const value_axis first = s.slice(each, 0, 4), second = s.slice(each, 4, 8);
  s.unify(first, second);
  CHECK(leaf_text(s, all) == "3x2wx4");
  CHECK_FALSE(s.is_whole(heads));
}
TEST_CASE("axes: slices that meet are the same nodes twice") {
  axis_space s;
  const value_axis a = s.fresh(8);
  const value_axis first = s.slice(a, 0, 4), second = s.slice(a, 4, 8);
  CHECK(leaf_text(s, a) == "4 | 4");
  s.unify(first, second);
  const value_axis all = s.leaves(a);
  REQUIRE(all.size() == 2);
  CHECK(all[0] == all[1]);
  CHECK(s.slice(a, 3, 3).empty());
}
TEST_CASE("axes: what does not fit together is whole, with a reason") {
  axis_space s;
  const value_axis two = s.fresh(2), three = s.fresh(3), third = s.fresh(3), second = s.fresh(2);
  s.unify(s.product(two, three), s.product(third, second));
  for (const value_axis& a : {two, three, third, second}) CHECK(s.is_whole(a));
  CHECK(s.reason_of(s.leaves(two)[0][0]).text == "it is seen as 2 x 3 and as 3 x 2");

  const value_axis pair = s.fresh(2), inner = s.fresh(3);
  CHECK(leaf_text(s, s.slice(s.product(pair, inner), 1, 6)) == "5w");
  CHECK(s.is_whole(inner));
}
TEST_CASE("axes: whole parts make whole what they lie on, and no more") {
  axis_space s;
  const value_axis a = s.fresh(10);
  value_axis parts = s.fresh_whole(4, s.reason("so"));
  const value_axis rest = s.fresh(6);
  parts.push_back(rest[0]);
  s.unify(a, parts);
  CHECK(leaf_text(s, a) == "4w | 6");
  value_axis others = s.fresh(2);
  const value_axis long_one = s.fresh(8);
  others.push_back(long_one[0]);
  s.unify(a, others);
  CHECK(leaf_text(s, long_one) == "2w | 6");
  CHECK(s.leaves(rest) == value_axis{s.leaves(long_one)[1]});
}
TEST_CASE("axes: single elements that are shuffled keep their number") {
  axis_space s;
  value_axis two = s.fresh(2), n = s.fresh(5);
  value_axis row = s.fresh(5);
  row.push_back(s.fresh(5)[0]);
  s.unify(row, s.product(two, n));
  CHECK(leaf_text(s, s.product(n, two)) == "5x2w");
}
TEST_CASE("axes: an axis of too many parts is whole") {
  axis_space s;
  value_axis all;
  for (std::size_t i = 0; i <= axis_space::most_parts; ++i) all.push_back(s.fresh(2)[0]);
  CHECK(leaf_text(s, all) == "8194w");
  CHECK(s.is_whole(s.fresh(1)));
  const value_axis inner = {s.fresh(2)[0], s.fresh(3)[0]};
  CHECK(leaf_text(s, s.product(s.fresh(std::int64_t{1} << 40), inner)) == "5497558138880w");
}

/// Axes of random products and concatenations, joined at random: each join ends, makes the two equal where
/// something may still be cut, and never changes an extent.
TEST_CASE("axes: whatever is joined ends and is the same from then on") {
  support::seeded random(7);
  for (int trial = 0; trial < 300; ++trial) {
    axis_space s;
    std::vector<value_axis> all;
    const auto one_of = [&](std::int64_t extent) -> value_axis {
      std::vector<value_axis> fit;
      for (const value_axis& a : all) {
        if (s.extent(a) == extent) fit.push_back(a);
      }
      if (fit.empty() || random.between(0, 2) == 0) return s.fresh(extent);
      return fit[static_cast<std::size_t>(
          random.between(0, static_cast<std::int64_t>(fit.size()) - 1))];
    };
    for (int i = 0; i < 12; ++i) {
      constexpr std::int64_t extent = 24;
      value_axis made;
      if (random.between(0, 1) == 0) {
        const std::int64_t inner = std::int64_t{1} << random.between(0, 3);
        made = s.product(one_of(extent / inner), one_of(inner));
      } else {
        const std::int64_t first = random.between(1, extent - 1);
        made = one_of(first);
        const value_axis rest = one_of(extent - first);
        made.insert(made.end(), rest.begin(), rest.end());
      }
      if (random.between(0, 9) == 0) s.make_whole(made, s.reason("so"));
      const value_axis other = one_of(extent);
      s.unify(other, made);
      all.push_back(made);
      all.push_back(other);
      all.push_back(s.slice(made, random.between(0, 8), random.between(9, extent)));
      CHECK(s.extent(s.leaves(made)) == extent);
      // Where neither is whole, both have the same leaves.
      std::vector<std::size_t> a, b;
      for (const auto& p : s.leaves(made)) {
        for (const std::size_t f : p) {
          if (!s.is_whole(f)) a.push_back(f);
        }
      }
      for (const auto& p : s.leaves(other)) {
        for (const std::size_t f : p) {
          if (!s.is_whole(f)) b.push_back(f);
        }
      }
      CHECK(a == b);
    }
  }
}

}  // namespace
