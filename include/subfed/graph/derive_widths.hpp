// SPDX-License-Identifier: MIT
/// A description from the shapes of one network in several widths: for networks whose widths are arguments.
#pragma once

#include <subfed/describe.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// A dimension that consists of copies of its nodes, one after the other: the gates of an LSTM, q / k / v, a
/// concatenation of layers of one width. Shapes do not tell copies from blocks.
struct known_copies {
  std::string tensor;
  std::size_t dimension;
  std::int64_t times;
};

/// A description, and what its shapes could not say.
struct derived_model {
  model net;
  std::vector<std::string> doubts;  ///< one sentence each; none does not say that it is right
};

namespace detail {

/// A dimension in all widths, without its known copies.
struct scaled_extent {
  std::size_t tensor;
  std::size_t dimension;
  std::int64_t copies;
  std::vector<std::int64_t> extents;

  /// a[i] / a[0] = b[i] / b[0] for all i.
  bool scales_as(const scaled_extent& other) const {
    for (std::size_t i = 1; i < extents.size(); ++i) {
      const std::int64_t own = std::gcd(extents[i], extents[0]);
      const std::int64_t others = std::gcd(other.extents[i], other.extents[0]);
      if (extents[i] / own != other.extents[i] / others ||
          extents[0] / own != other.extents[0] / others) {
        return false;
      }
    }
    return true;
  }
};

inline void check_widths(std::span<const std::vector<named_shape>> widths) {
  if (widths.size() < 2) {
    fail("subfed: derive_widths: shapes of " + std::to_string(widths.size()) +
         " widths are given, expected two or more");
  }
  const auto& first = widths[0];
  for (const auto& other : widths) {
    if (other.size() != first.size()) {
      fail("subfed: derive_widths: one network has " + std::to_string(first.size()) +
           " tensors, another " + std::to_string(other.size()));
    }
    for (std::size_t t = 0; t < first.size(); ++t) {
      if (other[t].name == first[t].name && other[t].extents.size() == first[t].extents.size()) {
        continue;
      }
      fail("subfed: derive_widths: tensor " + std::to_string(t) + " is '" + first[t].name + "' " +
               shape_text(first[t].extents) + " in one network, '" + other[t].name + "' " +
               shape_text(other[t].extents) + " in another",
           {.tensor = first[t].name});
    }
  }
}

}  // namespace detail

/// Describes the first of several networks that are alike but for their widths. Dimensions that shrink by
/// the same factors are one group, each element of it a node or a block of elements in a row; dimensions
/// that stay are whole.
///
///   const std::vector<subfed::named_shape> shapes[] = {shapes_of(net(64)), shapes_of(net(32))};
///   const auto [net, doubts] = subfed::derive_widths(shapes);
///
/// That is enough for schemes that keep a prefix, and ties more than a description by hand. It cannot
/// know copies from blocks, nor widths that are equal by chance, nor a width with a constant beside it
/// (a concatenation with inputs): prove_description does, and says what would be right. Groups are called
/// "width", "width 2", ..; all tensors are parameters, so mark the others.
///
/// Throws  error unless two or more networks have the same tensors of the same ranks, and where a
///         dimension is empty in one width only, or copies do not divide one.
inline derived_model derive_widths(std::span<const std::vector<named_shape>> widths,
                                   std::span<const known_copies> copies = {}) {
  detail::check_widths(widths);
  std::vector<std::vector<detail::scaled_extent>> groups;  // of equal factors
  for (std::size_t t = 0; t < widths[0].size(); ++t) {
    for (std::size_t r = 0; r < widths[0][t].extents.size(); ++r) {
      detail::scaled_extent own{t, r, 1, {}};
      for (const auto& network : widths) own.extents.push_back(network[t].extents[r]);
      const auto [least, most] = std::minmax_element(own.extents.begin(), own.extents.end());
      if (*least == *most) continue;
      for (const known_copies& c : copies) {
        if (c.tensor == widths[0][t].name && c.dimension == r) own.copies = c.times;
      }
      for (std::int64_t& e : own.extents) {
        if (own.copies < 1 || e < 1 || e % own.copies != 0) {
          detail::fail("subfed: derive_widths: dimension " + std::to_string(r) + " of '" +
                           widths[0][t].name + "' has " + std::to_string(e) +
                           " elements in one width, which are not " + std::to_string(own.copies) +
                           " copies of nodes",
                       {.tensor = widths[0][t].name});
        }
        e /= own.copies;
      }
      const auto fits = [&](const auto& group) { return group[0].scales_as(own); };
      const auto found = std::find_if(groups.begin(), groups.end(), fits);
      if (found == groups.end()) {
        groups.push_back({std::move(own)});
      } else {
        found->push_back(std::move(own));
      }
    }
  }
  for (const known_copies& c : copies) {
    const auto is_there = [&](const auto& group) {
      return std::any_of(group.begin(), group.end(), [&](const detail::scaled_extent& e) {
        return widths[0][e.tensor].name == c.tensor && e.dimension == c.dimension;
      });
    };
    if (std::any_of(groups.begin(), groups.end(), is_there)) continue;
    detail::fail("subfed: derive_widths: copies are given of dimension " +
                     std::to_string(c.dimension) + " of '" + c.tensor +
                     "', which is not there or has one width",
                 {.tensor = c.tensor});
  }

  derived_model out;
  std::vector<std::vector<dimension>> dimensions;
  for (const named_shape& shape : widths[0]) {
    dimensions.emplace_back(shape.extents.begin(), shape.extents.end());
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::int64_t nodes = 0;
    for (const auto& e : groups[g]) nodes = std::gcd(nodes, e.extents[0]);
    const std::string name = g == 0 ? "width" : "width " + std::to_string(g + 1);
    const group_id group = out.net.group(name, nodes);
    for (const auto& e : groups[g]) {
      const std::int64_t block = e.extents[0] / nodes;
      dimensions[e.tensor][e.dimension] = group.repeat(e.copies).block(block);
      if (block == 1) continue;
      out.doubts.push_back("dimension " + std::to_string(e.dimension) + " of '" +
                           widths[0][e.tensor].name + "' is taken for " + std::to_string(nodes) +
                           " nodes of " + std::to_string(block) +
                           " elements in a row; they could be copies");
    }
    if (groups[g].size() == 1) {
      out.doubts.push_back("group '" + name + "' is of one dimension alone, of '" +
                           widths[0][groups[g][0].tensor].name +
                           "'; it could be another group with a constant beside it");
    }
  }
  for (std::size_t t = 0; t < widths[0].size(); ++t) {
    out.net.tensor(widths[0][t].name, dimensions[t]);
  }
  return out;
}

inline derived_model derive_widths(std::span<const std::vector<named_shape>> widths,
                                   std::initializer_list<known_copies> copies) {
  return derive_widths(widths, std::span<const known_copies>(copies.begin(), copies.size()));
}

}  // namespace subfed::inline v0
