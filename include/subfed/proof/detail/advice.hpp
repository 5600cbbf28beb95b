// SPDX-License-Identifier: MIT
/// What a wrong description should have said, found by trying.
#pragma once

#include <subfed/detail/dimension_text.hpp>
#include <subfed/model.hpp>
#include <subfed/proof/bindings.hpp>
#include <subfed/proof/detail/parts_table.hpp>
#include <subfed/proof/permuted.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// Parts of the tensors of one layer that are bound alike and stay together in a mistake: what it
/// writes (first dimensions: weight, bias, running_mean, ..), or what it reads.
struct layer_side {
  std::string layer;
  bool writes;
  std::vector<binding> uses;
};

/// "layer1.0.bn1" of "layer1.0.bn1.weight".
inline std::string layer_of(const std::string& tensor) {
  const std::size_t dot = tensor.rfind('.');
  return dot == std::string::npos ? tensor : tensor.substr(0, dot);
}

/// The parts of a model for which chosen(part) is true, put together by layer, side, place in the
/// dimension and number of elements.
template <class Chosen>
std::vector<layer_side> layer_sides(const model& net, const parts_table& table, Chosen&& chosen) {
  std::vector<layer_side> out;
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& tensor = net.tensors()[t];
    const std::string layer = layer_of(tensor.name);
    for (std::size_t r = 0; r < tensor.dimensions.size(); ++r) {
      const auto parts = tensor.dimensions[r].parts();
      for (std::size_t p = 0; p < parts.size(); ++p) {
        if (!chosen(parts[p])) continue;
        const binding use{tensor_id(t), r, p};
        const auto fits = [&](const layer_side& s) {
          return s.layer == layer && s.writes == (r == 0) && s.uses[0].part == p &&
                 table[s.uses[0]] == parts[p];
        };
        const auto found = std::find_if(out.begin(), out.end(), fits);
        if (found == out.end()) {
          out.push_back({layer, r == 0, {use}});
        } else {
          found->uses.push_back(use);
        }
      }
    }
  }
  return out;
}

/// "dimension 0 of bn1.weight, bn1.bias".
inline std::string side_text(const model& net, const layer_side& side) {
  std::string out;
  std::size_t dimension = 0;
  for (const binding& use : side.uses) {
    if (out.empty() || use.dimension != dimension) {
      out += (out.empty() ? "dimension " : "; dimension ") + std::to_string(use.dimension) + " of ";
    } else {
      out += ", ";
    }
    dimension = use.dimension;
    out += net[use.tensor].name;
  }
  return out;
}

/// Tries other descriptions of one group: other forms of its bindings, layers that it lacks, layers
/// that it has by mistake, and one of each.
template <class Probe>
class adviser {
 public:
  adviser(const model& net, group_id group, std::uint64_t seed, double tolerance,
          std::int64_t most_runs, Probe& network)
      : net_(net),
        group_(group),
        order_(permuted(net, group, seed)),
        other_order_(permuted(net, group, seed + 1)),
        tolerance_(tolerance),
        runs_left_(most_runs),
        network_(network),
        described_(net) {}

  /// Each says one description that keeps the outputs; none when nothing that was tried does.
  std::vector<std::string> find() {
    const auto own = layer_sides(
        net_, described_, [&](const dimension::part& p) { return p.group == group_.number(); });
    std::vector<change> forms, additions, removals;
    for (const layer_side& side : own) {
      add_forms(side, forms);
      removals.push_back({"leave " + side_text(net_, side) + " out of it", [side](parts_table& t) {
                            for (const binding& use : side.uses) t.unbind(use);
                          }});
    }
    const std::int64_t nodes = net_[group_].extent;
    const auto others = layer_sides(net_, described_, [&](const dimension::part& p) {
      const std::int64_t elements = described_.elements(p);
      return p.group != group_.number() && elements > 0 && elements % nodes == 0;
    });
    for (const layer_side& side : others) add_binding_forms(side, "bind ", additions);

    std::vector<std::string> out;
    for (const auto* changes : {&forms, &additions, &removals}) {
      for (const change& c : *changes) try_out({&c}, out);
      if (!out.empty()) return out;
    }
    for (const change& r : removals) {
      for (const change& a : additions) try_out({&r, &a}, out);
      if (!out.empty()) return out;
    }
    return out;
  }

 private:
  struct change {
    std::string text;
    std::function<void(parts_table&)> make;
  };
  static constexpr std::size_t most_advice = 3;

  void try_out(std::initializer_list<const change*> changes, std::vector<std::string>& out) {
    if (runs_left_ < 1 || out.size() == most_advice) return;
    parts_table table = described_;
    std::string text;
    for (const change* c : changes) {
      c->make(table);
      text += (text.empty() ? "" : ", and ") + c->text;
    }
    const model other = table.made();
    if (bindings_of(other, group_).empty()) return;
    for (const submodel* order : {&order_, &other_order_}) {
      --runs_left_;
      const submodel as_described_otherwise = submodel::full(other).with(group_, (*order)[group_]);
      if (!(network_.change(as_described_otherwise) <= tolerance_)) return;
    }
    out.push_back(std::move(text));
  }

  /// The side as group.repeat(r).block(b), for every r b that fits.
  void add_binding_forms(const layer_side& side, const std::string& verb,
                         std::vector<change>& out) const {
    const std::int64_t times = described_.elements(described_[side.uses[0]]) / net_[group_].extent;
    for (std::int64_t r = 1; r <= times; ++r) {
      if (times % r != 0) continue;
      const dimension::part form{group_.number(), 0, r, times / r};
      if (form == described_[side.uses[0]]) continue;
      const std::string as =
          dimension_text(net_, dimension(group_).repeat(form.repeat).block(form.block));
      out.push_back({verb + side_text(net_, side) + " as " + as, [side, form](parts_table& t) {
                       for (const binding& use : side.uses) t[use] = form;
                     }});
    }
  }
  /// Other copies and blocks of the same group, and other places in a concatenation.
  void add_forms(const layer_side& side, std::vector<change>& out) const {
    add_binding_forms(side, "describe ", out);
    const std::size_t own = side.uses[0].part;
    const std::size_t parts = described_.all(side.uses[0]).size();
    for (std::size_t p = 0; p < parts; ++p) {
      bool alike = p != own;
      for (const binding& use : side.uses) alike = alike && p < described_.all(use).size();
      if (!alike) continue;
      out.push_back({"let parts " + std::to_string((std::min)(own, p)) + " and " +
                         std::to_string((std::max)(own, p)) + " of " + side_text(net_, side) +
                         " change places",
                     [side, own, p](parts_table& t) {
                       for (const binding& use : side.uses)
                         std::swap(t.all(use)[own], t.all(use)[p]);
                     }});
    }
  }

  const model& net_;
  group_id group_;
  submodel order_;
  submodel other_order_;
  double tolerance_;
  std::int64_t runs_left_;
  Probe& network_;
  parts_table described_;
};

}  // namespace subfed::inline v0::detail
