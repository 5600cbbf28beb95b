// SPDX-License-Identifier: MIT
/// Axes of values as products and concatenations of factors, and what follows when two are the same.
#pragma once

#include <subfed/detail/sizes.hpp>
#include <subfed/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// Factors, outermost first. Factors of extent 1 are left out: the empty product is one element.
using factor_product = std::vector<std::size_t>;
/// Products one after the other.
using value_axis = std::vector<factor_product>;

/// Why a factor is whole. Nodes are told, and are a group that is never cut; the factors of a product of which
/// another is cut are told; positions and kernels are not.
enum class whole_kind { nodes, other_factor, positions };
struct whole_reason {
  std::string text;
  whole_kind kind;
};

/// All factors of a graph. A factor is one of four: a leaf, which is a set of nodes in its own right; a leaf
/// that is whole, with a reason; the same as another factor; or an axis of smaller factors, because some
/// operator looks at it so.
///
/// unify says that two axes are the same. It joins factors, and splits them where the two axes have other
/// boundaries: 24 and (3, 8) make the 24 a product, 12 and a concatenation of 4, 4, 4 make it a concatenation.
/// What does not fit together becomes whole.
class axis_space {
 public:
  static constexpr std::size_t none = (std::numeric_limits<std::size_t>::max)();
  static constexpr std::size_t most_parts = 4096;  // of an axis; beyond, it is whole

  /// An axis of one new factor.
  value_axis fresh(std::int64_t extent) {
    if (extent == 1) return {{}};
    return {{add_factor(extent)}};
  }
  value_axis fresh_whole(std::int64_t extent, std::size_t reason) {
    const value_axis out = fresh(extent);
    if (extent != 1) factors_[out[0][0]].reason = reason;
    return out;
  }
  std::size_t reason(std::string text, whole_kind kind = whole_kind::nodes) {
    reasons_.push_back({std::move(text), kind});
    return reasons_.size() - 1;
  }
  const whole_reason& reason_of(std::size_t leaf) const { return reasons_[factors_[leaf].reason]; }
  bool is_whole(std::size_t leaf) const { return factors_[leaf].reason != none; }
  std::int64_t extent(std::size_t of) const { return factors_[of].extent; }
  std::size_t size() const { return factors_.size(); }

  /// largest_size where it is more.
  std::int64_t extent(const factor_product& product) const {
    std::int64_t n = 1;
    for (const std::size_t f : product) {
      if (!multiply(n, factors_[f].extent)) return largest_size;
    }
    return n;
  }
  std::int64_t extent(const value_axis& a) const {
    std::int64_t n = 0;
    for (const factor_product& p : a) {
      if (!add(n, extent(p))) return largest_size;
    }
    return n;
  }
  bool is_whole(const factor_product& product) const {
    return std::all_of(product.begin(), product.end(), [&](auto f) { return is_whole(f); });
  }

  /// The axis in leaves.
  value_axis leaves(const value_axis& a) {
    value_axis out;
    for (const factor_product& p : a) {
      value_axis part = {{}};
      for (const std::size_t f : p) part = product_of_leaves(part, leaves_of(f));
      if (out.size() + part.size() > most_parts) return {whole_copy(a, too_many())};
      out.insert(out.end(), part.begin(), part.end());
    }
    return out;
  }
  /// Each element of the first axis is a copy of the second.
  value_axis product(const value_axis& outer, const value_axis& inner) {
    return product_of_leaves(leaves(outer), leaves(inner));
  }

  bool is_whole(const value_axis& a) { return is_all_whole(leaves(a)); }
  /// Keeps the first reason that is worth telling.
  void make_whole(const value_axis& a, std::size_t why) {
    for (const factor_product& p : leaves(a)) make_whole(p, why);
  }
  void make_leaf_whole(std::size_t leaf, std::size_t why) { make_whole(factor_product{leaf}, why); }

  /// The earliest name stays.
  void name(const value_axis& a, std::size_t label) {
    for (const factor_product& p : leaves(a)) {
      for (const std::size_t f : p) factors_[f].label = (std::min)(factors_[f].label, label);
    }
  }
  std::size_t label(std::size_t leaf) const { return factors_[leaf].label; }

  /// Pre: as many elements.
  void unify(const value_axis& a, const value_axis& b) {
    // Every step joins two factors or splits one; the bound is a net.
    for (int step = 0; unify_step(a, b); ++step) {
      if (step < most_steps) continue;
      const std::size_t why = not_understood();
      make_whole(a, why);
      return make_whole(b, why);
    }
  }

  /// Elements [begin, end) of an axis.
  value_axis slice(const value_axis& a, std::int64_t begin, std::int64_t end) {
    for (int step = 0;; ++step) {
      if (step == most_steps) make_whole(a, not_understood());
      value_axis out;
      bool again = false;
      std::int64_t at = 0;
      for (const factor_product& p : leaves(a)) {
        const std::int64_t n = extent(p);
        const std::int64_t from = (std::max)(begin, at) - at;
        const std::int64_t to = (std::min)(end, at + n) - at;
        at += n;
        if (from >= to) continue;
        if (from == 0 && to == n) {
          out.push_back(p);
        } else if (is_whole(p)) {
          out.push_back(fresh_whole(to - from, factors_[p[0]].reason)[0]);
        } else {
          split(p, from != 0 ? from : to);
          again = true;
          break;
        }
      }
      if (!again) return out;
    }
  }

 private:
  struct factor {
    std::int64_t extent;
    std::size_t same;    // as another, or itself
    value_axis parts{};  // empty for a leaf
    std::size_t reason = none;
    std::size_t label = none;
  };

  std::size_t add_factor(std::int64_t extent) {
    factors_.push_back({extent, factors_.size()});
    return factors_.size() - 1;
  }
  static constexpr int most_steps = 1 << 16;
  std::size_t not_understood() { return reason("it is seen in two ways that are not understood"); }
  std::size_t too_many() {
    return reason("it is a concatenation of more than " + std::to_string(most_parts) + " parts");
  }

  bool is_all_whole(const value_axis& of_leaves) const {
    return std::all_of(of_leaves.begin(), of_leaves.end(),
                       [&](const factor_product& p) { return is_whole(p); });
  }
  std::size_t root(std::size_t f) {
    while (factors_[f].same != f) {
      factors_[f].same = factors_[factors_[f].same].same;
      f = factors_[f].same;
    }
    return f;
  }
  value_axis leaves_of(std::size_t f) {
    f = root(f);
    if (factors_[f].parts.empty()) return {{f}};
    // Its parts may have been split since: keep the result, so that chains stay short.
    value_axis out = leaves(value_axis(factors_[f].parts));
    factors_[f].parts = out;
    return out;
  }

  value_axis product_of_leaves(const value_axis& outer, const value_axis& inner) {
    if (outer.size() == 1 && outer[0].empty()) return inner;
    if (inner.size() == 1) {
      value_axis out = outer;
      for (factor_product& p : out) p.insert(p.end(), inner[0].begin(), inner[0].end());
      return out;
    }
    if (is_all_whole(inner)) {
      value_axis one = leaves_of(one_whole(inner));
      if (one.size() > 1) {  // it has been divided since, perhaps in these parts
        whole_axes_.erase(inner);
        one = leaves_of(one_whole(inner));
      }
      value_axis out;
      for (const factor_product& p : outer) {
        if (p.empty() && out.size() + inner.size() <= most_parts) {  // it can be divided further
          out.insert(out.end(), inner.begin(), inner.end());
        } else {
          out.push_back(p);
          out.back().insert(out.back().end(), one[0].begin(), one[0].end());
        }
      }
      return out;
    }
    // Equal parts are copies: a product too.
    if (std::count(inner.begin(), inner.end(), inner[0]) ==
        static_cast<std::ptrdiff_t>(inner.size())) {
      const value_axis copies = leaves_of(one_whole(value_axis(inner.size())));
      if (copies.size() == 1) {
        return product_of_leaves(outer, product_of_leaves(copies, {inner[0]}));
      }
    }
    // Copies of a concatenation are one after the other, so that their number stays.
    std::size_t parts = 0;
    for (const factor_product& p : outer) {
      const std::int64_t copies = extent(p);
      if (copies > static_cast<std::int64_t>(most_parts)) parts = most_parts + 1;
      parts += static_cast<std::size_t>(copies) * inner.size();
      if (parts > most_parts) break;
    }
    if (parts > most_parts) {
      const std::size_t why = too_many();
      for (const value_axis* a : {&outer, &inner}) {
        for (const factor_product& p : *a) make_whole(p, why);
      }
      std::int64_t all = extent(outer);
      if (!multiply(all, extent(inner))) all = largest_size;
      return fresh_whole(all, why);
    }
    value_axis out;
    for (const factor_product& p : outer) {
      if (!p.empty() && !is_whole(p)) make_whole(p, reason("it counts copies of a concatenation"));
      for (std::int64_t copy = extent(p); copy > 0; --copy) {
        out.insert(out.end(), inner.begin(), inner.end());
      }
    }
    return out;
  }
  /// A whole axis of several parts as one factor, the same one each time.
  std::size_t one_whole(const value_axis& a) {
    const auto known = whole_axes_.find(a);
    if (known != whole_axes_.end()) return known->second;
    std::size_t why = none;
    for (const factor_product& p : a) {
      if (!p.empty()) why = factors_[p[0]].reason;
    }
    if (why == none) why = reason("it is of single elements", whole_kind::positions);
    const std::size_t made = add_factor(extent(a));
    factors_[made].reason = why;
    whole_axes_.emplace(a, made);
    return made;
  }
  factor_product whole_copy(const value_axis& a, std::size_t why) {
    for (const factor_product& p : a) {
      for (const std::size_t f : p) make_whole_below(f, why);
    }
    return fresh_whole(extent(a), why)[0];
  }
  void make_whole_below(std::size_t f, std::size_t why) {
    f = root(f);
    if (factors_[f].parts.empty()) return make_whole(factor_product{f}, why);
    for (const factor_product& p : value_axis(factors_[f].parts)) {
      for (const std::size_t each : p) make_whole_below(each, why);
    }
  }
  void make_whole(const factor_product& leaves, std::size_t why) {
    for (const std::size_t f : leaves) {
      std::size_t& own = factors_[f].reason;
      if (own == none || (reasons_[own].kind == whole_kind::positions &&
                          reasons_[why].kind == whole_kind::nodes)) {
        own = why;
      }
    }
  }

  /// A leaf is from now on what the axis of leaves is.
  void define(std::size_t leaf, const value_axis& as) {
    for (const factor_product& p : as) {
      if (is_whole(leaf)) make_whole(p, factors_[leaf].reason);
      for (const std::size_t f : p) {
        factors_[f].label = (std::min)(factors_[f].label, factors_[leaf].label);
      }
    }
    if (as.size() == 1 && as[0].size() == 1) {
      factors_[leaf].same = as[0][0];
    } else {
      factors_[leaf].parts = as;
    }
  }
  void split_product(std::size_t leaf, std::int64_t inner) {
    const value_axis outer = fresh(extent(leaf) / inner);
    define(leaf, product_of_leaves(outer, fresh(inner)));
  }
  /// Splits a product of leaves after `at` of its elements, or makes it whole where that is not possible.
  void split(const factor_product& product, std::int64_t at) {
    const std::int64_t outer = extent(product[0]);
    const std::int64_t inner = extent(product) / outer;
    if (at % inner != 0) {
      make_whole(product,
                 reason("it is divided after " + std::to_string(at) + " of its " +
                        std::to_string(outer) + " x " + std::to_string(inner) + " elements"));
      return;
    }
    value_axis parts = fresh(at / inner);
    parts.push_back(fresh(outer - at / inner)[0]);
    define(product[0], parts);
  }

  /// Whether something was done.
  bool unify_step(const value_axis& given_a, const value_axis& given_b) {
    const value_axis a = leaves(given_a);
    const value_axis b = leaves(given_b);
    if (a == b || (is_all_whole(a) && is_all_whole(b))) return false;
    if (is_single_leaf(a)) return define(a[0][0], b), false;
    if (is_single_leaf(b)) return define(b[0][0], a), false;
    std::size_t i = 0, j = 0;
    std::int64_t left_a = extent(a[0]), left_b = extent(b[0]);  // of the parts at i and j
    while (i < a.size() && j < b.size()) {
      const bool whole_a = is_whole(a[i]), whole_b = is_whole(b[j]);
      const std::int64_t both = (std::min)(left_a, left_b);
      if (whole_a && whole_b) {
      } else if (whole_a || whole_b) {
        const factor_product& other = whole_a ? b[j] : a[i];
        if ((whole_a ? left_b : left_a) > both) return split(other, both), true;
        const factor_product& whole = whole_a ? a[i] : b[j];
        make_whole(other, factors_[whole[0]].reason);
      } else if (left_a != left_b) {
        return split(left_a < left_b ? b[j] : a[i], both), true;
      } else if (unify_products(a[i], b[j])) {
        return true;
      }
      if ((left_a -= both) == 0 && ++i < a.size()) left_a = extent(a[i]);
      if ((left_b -= both) == 0 && ++j < b.size()) left_b = extent(b[j]);
    }
    return false;
  }
  bool is_single_leaf(const value_axis& a) const { return a.size() == 1 && a[0].size() == 1; }

  /// One step; whether something was done. Pre: neither is whole.
  bool unify_products(factor_product a, factor_product b) {
    const auto are_joined = [&](std::size_t f, std::size_t g) {
      return f == g || (is_whole(f) && is_whole(g) && extent(f) == extent(g));
    };
    while (!a.empty() && !b.empty() && are_joined(a.back(), b.back())) {
      a.pop_back();
      b.pop_back();
    }
    while (!a.empty() && !b.empty() && are_joined(a.front(), b.front())) {
      a.erase(a.begin());
      b.erase(b.begin());
    }
    const bool whole_a = is_whole(a), whole_b = is_whole(b);
    if (whole_a && whole_b) return false;
    if (a.size() == 1) {
      define(a[0], {b});
    } else if (b.size() == 1) {
      define(b[0], {a});
    } else if (whole_a || whole_b) {
      make_whole(whole_a ? b : a, factors_[whole_a ? a[0] : b[0]].reason);
    } else {
      join_ends(a, b);
    }
    return true;
  }
  /// Joins the innermost or outermost factors, or splits one so that they can be joined.
  void join_ends(const factor_product& a, const factor_product& b) {
    if (extent(a.back()) == extent(b.back())) return define(a.back(), {{b.back()}});
    if (extent(a.front()) == extent(b.front())) return define(a.front(), {{b.front()}});
    const std::int64_t inner = std::gcd(extent(a.back()), extent(b.back()));
    if (inner > 1) return split_product(extent(a.back()) != inner ? a.back() : b.back(), inner);
    const std::int64_t outer = std::gcd(extent(a.front()), extent(b.front()));
    if (outer > 1) {
      const std::size_t f = extent(a.front()) != outer ? a.front() : b.front();
      return split_product(f, extent(f) / outer);
    }
    const std::size_t why = reason("it is seen as " + text(a) + " and as " + text(b));
    make_whole(a, why);
    make_whole(b, why);
  }
  std::string text(const factor_product& product) const {
    std::string out;
    for (const std::size_t f : product) {
      out += (out.empty() ? "" : " x ") + std::to_string(extent(f));
    }
    return out;
  }

  std::vector<factor> factors_;
  std::vector<whole_reason> reasons_;
  std::map<value_axis, std::size_t> whole_axes_;
};

}  // namespace subfed::inline v0::detail
