// SPDX-License-Identifier: MIT
/// A description whose bindings can be changed: what else it could have said.
#pragma once

#include <subfed/detail/dimension_parts.hpp>
#include <subfed/model.hpp>
#include <subfed/proof/bindings.hpp>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// The parts of all dimensions of all tensors, free to be changed, and back to a model.
class parts_table {
 public:
  using parts = std::vector<dimension::part>;

  explicit parts_table(const model& net) : net_(&net) {
    for (const auto& tensor : net.tensors()) {
      auto& own = parts_.emplace_back();
      for (const dimension& d : tensor.dimensions)
        own.emplace_back(d.parts().begin(), d.parts().end());
    }
  }

  dimension::part& operator[](const binding& at) {
    return parts_[at.tensor.number()][at.dimension][at.part];
  }
  const dimension::part& operator[](const binding& at) const {
    return parts_[at.tensor.number()][at.dimension][at.part];
  }
  parts& all(const binding& at) { return parts_[at.tensor.number()][at.dimension]; }
  const parts& all(const binding& at) const { return parts_[at.tensor.number()][at.dimension]; }

  /// Elements of a part.
  std::int64_t elements(const dimension::part& p) const {
    return p.repeat * p.block *
           (p.group == dimension::no_group ? p.whole : net_->groups()[p.group].extent);
  }
  /// Makes a part whole.
  void unbind(const binding& at) {
    dimension::part& p = (*this)[at];
    p = {dimension::no_group, elements(p), 1, 1};
  }
  /// Makes every use of a group whole.
  void unbind(group_id group) {
    for (const binding& use : bindings_of(*net_, group)) unbind(use);
  }

  /// The same groups, and tensors of the dimensions as they are now.
  model made() const {
    model out;
    for (const auto& group : net_->groups()) out.group(group.name, group.extent, group.cut);
    for (std::size_t t = 0; t < parts_.size(); ++t) {
      const auto& tensor = net_->tensors()[t];
      std::vector<dimension> dimensions;
      for (const parts& p : parts_[t]) dimensions.push_back(dimension_of(p));
      out.tensor(tensor.name, dimensions, tensor.role);
    }
    return out;
  }

 private:
  const model* net_;
  std::vector<std::vector<parts>> parts_;
};

}  // namespace subfed::inline v0::detail
