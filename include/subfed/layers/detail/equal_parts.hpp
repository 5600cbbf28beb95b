// SPDX-License-Identifier: MIT
/// A dimension that a layer divides into equal parts: the groups of a convolution, the heads of an
/// attention.
#pragma once

#include <subfed/detail/dimension_text.hpp>
#include <subfed/model.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// What one part of a divided dimension is, and how clients can cut the dimension:
///
/// - inside the parts, the same nodes of each: p.repeat(count), or whole
/// - whole parts: g.block(elements) with a group g of `count` nodes, each of which is a part
struct equal_part {
  dimension one;
  std::size_t parts_are;  ///< the group whose nodes are the parts, or no_group when cut inside
};

inline dimension as_dimension(const dimension::part& p) {
  const dimension base =
      p.group == dimension::no_group ? dimension(p.whole) : dimension(group_id(p.group));
  return base.repeat(p.repeat).block(p.block);
}

/// One of `count` equal parts of d, or empty when clients could cut the parts differently.
inline std::optional<equal_part> find_equal_part(const model& net, const dimension& d,
                                                 std::int64_t count) {
  const auto parts = d.parts();
  if (count == 1) return equal_part{d, dimension::no_group};
  bool whole = true;
  for (const dimension::part& p : parts) whole = whole && p.group == dimension::no_group;
  if (whole) return equal_part{dimension(net.extent(d) / count), dimension::no_group};
  if (parts.size() == 1) {
    dimension::part p = parts[0];
    if (p.repeat % count == 0) {
      p.repeat /= count;
      return equal_part{as_dimension(p), dimension::no_group};
    }
    if (p.repeat == 1 && net[group_id(p.group)].extent == count) {
      return equal_part{dimension(p.block), p.group};
    }
    return {};
  }
  const auto times = static_cast<std::size_t>(count);
  if (parts.size() % times != 0) return {};
  const std::size_t length = parts.size() / times;
  std::vector<dimension> one;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!(parts[i] == parts[i % length])) return {};
    if (i < length) one.push_back(as_dimension(parts[i]));
  }
  return equal_part{concat(one), dimension::no_group};
}

/// The same, or an error that names the tensors, "'a.weight' and 'a.bias'", and says how to
/// describe the dimension. `parts` is the name of the parts: "heads".
inline equal_part checked_equal_part(const model& net, const std::string& tensors,
                                     const dimension& d, std::int64_t count,
                                     const std::string& parts) {
  const std::string number = std::to_string(count) + " " + parts;
  if (count < 1) fail("subfed: layers: " + number + " of " + tensors + ", expected at least 1");
  const std::int64_t extent = net.extent(d);
  const std::string which =
      std::to_string(extent) + " elements (" + dimension_text(net, d) + ") of " + tensors;
  if (extent % count != 0) {
    fail("subfed: layers: the " + which + " are not divisible by " + number);
  }
  if (auto found = find_equal_part(net, d, count)) return *found;
  const std::string each = std::to_string(extent / count);
  fail("subfed: layers: a client could cut the " + which + " differently in each of " + number +
       "; describe them as repeat(" + std::to_string(count) + ") of " + each +
       " elements to cut inside the " + parts + ", or as block(" + each + ") of a group of " +
       std::to_string(count) + " to cut whole " + parts);
}

/// Runs `describe` on net; a layer that is refused leaves net unchanged.
template <class Describe>
auto describe_all_or_nothing(model& net, Describe&& describe) {
  model_undo undo(net);
  auto made = describe(net);
  undo.kept = true;
  return made;
}

}  // namespace subfed::inline v0::detail
