// SPDX-License-Identifier: MIT
/// From axes of parameters to groups, dimensions and reasons.
#pragma once

#include <subfed/detail/dimension_parts.hpp>
#include <subfed/dimension.hpp>
#include <subfed/graph/detail/axes.hpp>
#include <subfed/graph/detail/equal_parts.hpp>
#include <subfed/graph/detail/walk.hpp>
#include <subfed/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Where an axis is a product of nodes, as heads and the nodes of each head are, one factor can be cut: the
/// one of most nodes (the inner one, of two that are equal), the outermost (whole heads, whole groups of a
/// convolution), or the innermost (the same nodes of each head).
enum class product_cut { largest, outer, inner };

struct derive_options {
  product_cut products = product_cut::largest;
};

/// Nodes that are in every client's network, and why.
struct whole_nodes {
  std::int64_t extent;
  std::vector<std::string> tensors;
  std::string reason;  ///< "it reaches the output 'y'"
};
/// What is computed over the nodes of a group, so that a client's network computes over those that it holds.
struct group_note {
  group_id group;
  std::vector<std::string> operators;
};

struct derived_description {
  model net;
  std::vector<whole_nodes> whole{};
  std::vector<group_note> notes{};     ///< norms, means and extremes over nodes that are cut
  std::vector<std::string> unknown{};  ///< operators that were not understood
  std::vector<std::string> unused{};   ///< tensors that no operator reads
};

namespace detail {

class description_maker {
 public:
  description_maker(graph_walk& walk, const derive_options& options) : w_(walk), options_(options) {
    for (const traced_parameter& p : w_.parameters) {
      axes_.emplace_back();
      for (const value_axis& a : w_.values[p.value].axes)
        axes_.back().push_back(w_.space.leaves(a));
    }
    // leaves() may have found more that is whole.
    for (auto& axes : axes_) {
      for (value_axis& a : axes) a = w_.space.leaves(a);
    }
  }

  derived_description make() {
    choose();
    cut_parts_alike(w_);
    derived_description out;
    group_of_.assign(w_.space.size(), dimension::no_group);
    whole_of_.assign(w_.space.size(), axis_space::none);
    each_axis(
        [&](auto p, auto r, const value_axis& a) { make_groups(out, p, r, a, cut::by_scheme); });
    each_axis([&](auto p, auto r, const value_axis& a) { make_groups(out, p, r, a, cut::never); });
    each_axis([&](auto p, auto, const value_axis& a) { tell(out, p, a); });
    for (std::size_t p = 0; p < axes_.size(); ++p) {
      std::vector<dimension> dimensions;
      for (const value_axis& a : axes_[p]) dimensions.push_back(dimension_of_axis(a));
      out.net.tensor(w_.parameters[p].name, dimensions,
                     w_.parameters[p].is_statistic ? role::statistic : role::parameter);
      if (!w_.parameters[p].is_used) out.unused.push_back(w_.parameters[p].name);
    }
    make_notes(out);
    out.unknown = w_.unknown;
    if (w_.following != 0) {
      out.unknown.push_back(std::to_string(w_.following) +
                            (w_.following == 1 ? " operator after " : " operators after ") +
                            (w_.unknown.size() == 1 ? "it" : "them"));
    }
    return out;
  }

 private:
  template <class F>
  void each_axis(F&& f) {
    for (std::size_t p = 0; p < axes_.size(); ++p) {
      for (std::size_t r = 0; r < axes_[p].size(); ++r) f(p, r, axes_[p][r]);
    }
  }
  bool is_cut(std::size_t leaf) const { return !w_.space.is_whole(leaf); }

  /// Of the factors of a product one is cut; the others become whole.
  void choose() {
    struct candidate {
      std::size_t leaf;
      std::size_t depth;
    };
    struct conflict {
      std::size_t first, second;
      bool operator<(const conflict& o) const {
        return first != o.first ? first < o.first : second < o.second;
      }
    };
    std::vector<candidate> all;
    std::vector<conflict> conflicts;
    each_axis([&](std::size_t, std::size_t, const value_axis& a) {
      for (const factor_product& product : a) {
        std::vector<std::size_t> own;
        for (const std::size_t f : product) {
          if (!is_cut(f)) continue;
          if (std::find(own.begin(), own.end(), f) != own.end()) {
            const std::size_t why = w_.space.reason("it is a product with itself");
            w_.space.make_leaf_whole(f, why);
          }
          own.push_back(f);
        }
        for (std::size_t i = 0; i < own.size(); ++i) {
          all.push_back({own[i], i});
          for (std::size_t j = 0; j < own.size(); ++j) {
            if (i != j) conflicts.push_back({own[i], own[j]});
          }
        }
      }
    });
    const auto before = [&](const candidate& a, const candidate& b) {
      // Copies that an operator makes are no layer's nodes.
      const bool wrote_a = w_.space.label(a.leaf) != axis_space::none;
      const bool wrote_b = w_.space.label(b.leaf) != axis_space::none;
      if (wrote_a != wrote_b) return wrote_a;
      const std::int64_t ea = w_.space.extent(a.leaf), eb = w_.space.extent(b.leaf);
      switch (options_.products) {
        case product_cut::largest:
          if (ea != eb) return ea > eb;
          if (a.depth != b.depth) return a.depth > b.depth;
          break;
        case product_cut::outer:
          if (a.depth != b.depth) return a.depth < b.depth;
          break;
        case product_cut::inner:
          if (a.depth != b.depth) return a.depth > b.depth;
          break;
      }
      return a.leaf < b.leaf;
    };
    // A factor counts with its largest depth.
    std::sort(all.begin(), all.end(), [](const candidate& a, const candidate& b) {
      return a.leaf != b.leaf ? a.leaf < b.leaf : a.depth > b.depth;
    });
    all.erase(std::unique(all.begin(), all.end(),
                          [](const candidate& a, const candidate& b) { return a.leaf == b.leaf; }),
              all.end());
    std::sort(all.begin(), all.end(), before);
    std::sort(conflicts.begin(), conflicts.end());
    for (const candidate& c : all) {
      if (!is_cut(c.leaf)) continue;
      auto at = std::lower_bound(conflicts.begin(), conflicts.end(), conflict{c.leaf, 0});
      for (; at != conflicts.end() && at->first == c.leaf; ++at) {
        if (!is_cut(at->second)) continue;
        const std::size_t why =
            w_.space.reason("it is a factor of a product of which the other, of " +
                                std::to_string(w_.space.extent(c.leaf)) + " nodes, is cut",
                            whole_kind::other_factor);
        w_.space.make_leaf_whole(at->second, why);
      }
    }
  }

  std::string base_name(std::size_t leaf, std::size_t p, std::size_t r) const {
    const std::size_t label = w_.space.label(leaf);
    std::string name = label == axis_space::none ? w_.parameters[p].name : w_.labels[label];
    for (const std::string_view end : {".weight", "_weight", ".bias", "_bias"}) {
      if (name.size() > end.size() && std::string_view(name).ends_with(end)) {
        name.resize(name.size() - end.size());
        break;
      }
    }
    if (label == axis_space::none && r > 0) name += ".in";
    return name;
  }
  std::string free_name(const model& net, const std::string& base) const {
    const auto taken = [&](const std::string& name) {
      for (const auto& g : net.groups()) {
        if (g.name == name) return true;
      }
      return false;
    };
    std::string name = base;
    for (int i = 2; taken(name); ++i) name = base + "." + std::to_string(i);
    return name;
  }

  void make_groups(derived_description& out, std::size_t p, std::size_t r, const value_axis& a,
                   cut which) {
    for (const factor_product& product : a) {
      for (const std::size_t f : product) {
        if (group_of_[f] != dimension::no_group || is_cut(f) != (which == cut::by_scheme)) continue;
        const bool is_one = a.size() == 1 && product.size() == 1;
        if (!is_cut(f) && (!is_one || w_.space.reason_of(f).kind != whole_kind::nodes)) continue;
        const std::string name = free_name(out.net, base_name(f, p, r));
        group_of_[f] = out.net.group(name, w_.space.extent(f), which).number();
      }
    }
  }
  /// Whole nodes, with their tensors and the reason.
  void tell(derived_description& out, std::size_t p, const value_axis& a) {
    for (const factor_product& product : a) {
      for (const std::size_t f : product) {
        if (is_cut(f) || w_.space.reason_of(f).kind == whole_kind::positions) continue;
        if (whole_of_[f] == axis_space::none) {
          whole_of_[f] = out.whole.size();
          out.whole.push_back({w_.space.extent(f), {}, w_.space.reason_of(f).text});
          last_told_.push_back(axis_space::none);
        }
        if (last_told_[whole_of_[f]] == p) continue;
        last_told_[whole_of_[f]] = p;
        out.whole[whole_of_[f]].tensors.push_back(w_.parameters[p].name);
      }
    }
  }

  dimension dimension_of_axis(const value_axis& a) const {
    std::vector<dimension::part> parts;
    for (const factor_product& product : a) {
      dimension::part own{dimension::no_group, 1, 1, 1};
      std::int64_t inner = 1;
      for (std::size_t i = product.size(); i-- > 0;) {
        const std::size_t f = product[i];
        const bool binds = is_cut(f) || (a.size() == 1 && product.size() == 1);
        if (binds && group_of_[f] != dimension::no_group) {
          own = {group_of_[f], 0, 1, inner};
          inner = 1;
        } else {
          inner *= w_.space.extent(f);
        }
      }
      if (own.group == dimension::no_group) {
        own.whole = inner;
      } else {
        own.repeat = inner;
      }
      if (!parts.empty() && parts.back().group == own.group && parts.back().block == own.block) {
        if (own.group == dimension::no_group) {
          parts.back().whole += own.whole;
        } else {
          parts.back().repeat += own.repeat;
        }
      } else {
        parts.push_back(own);
      }
    }
    if (parts.empty()) return dimension(0);
    return detail::dimension_of(parts);
  }

  void make_notes(derived_description& out) {
    for (std::size_t g = 0; g < out.net.groups().size(); ++g) notes_.emplace_back();
    for (const computed_over& o : w_.over) {
      for (const factor_product& product : w_.space.leaves(o.nodes)) {
        for (const std::size_t f : product) {
          if (f >= group_of_.size() || !is_cut(f) || group_of_[f] == dimension::no_group) continue;
          std::vector<std::string>& own = notes_[group_of_[f]];
          if (own.empty() || own.back() != o.text) own.push_back(o.text);
        }
      }
    }
    for (std::size_t g = 0; g < notes_.size(); ++g) {
      if (!notes_[g].empty()) out.notes.push_back({group_id(g), std::move(notes_[g])});
    }
  }

  graph_walk& w_;
  derive_options options_;
  std::vector<std::vector<value_axis>> axes_;  // in leaves, of the parameters
  std::vector<std::size_t> group_of_;          // by leaf
  std::vector<std::size_t> whole_of_;          // place in `whole`, by leaf
  std::vector<std::size_t> last_told_;         // parameter, by place in `whole`
  std::vector<std::vector<std::string>> notes_;
};

}  // namespace detail

}  // namespace subfed::inline v0
