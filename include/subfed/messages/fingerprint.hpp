// SPDX-License-Identifier: MIT
/// A number for a model's description, by which the two ends of a connection tell that they mean the
/// same model.
#pragma once

#include <subfed/dimension.hpp>
#include <subfed/messages/detail/fields.hpp>
#include <subfed/model.hpp>

#include <cstdint>

namespace subfed::inline v0 {

/// A hash of the groups (names, extents, whether they are cut) and the tensors (names, dimensions,
/// roles), in order: the same on every machine, and other for models that differ, but for a chance of
/// 2^-64. It is no protection against somebody who looks for two models with one fingerprint.
inline std::uint64_t fingerprint(const model& net) {
  detail::byte_hash hash;
  hash.text("subfed model 1");
  hash.word(net.groups().size());
  for (const auto& group : net.groups()) {
    hash.text(group.name);
    hash.word(static_cast<std::uint64_t>(group.extent));
    hash.word(group.cut == cut::never ? 1 : 0);
  }
  hash.word(net.tensors().size());
  for (const auto& tensor : net.tensors()) {
    hash.text(tensor.name);
    hash.word(static_cast<std::uint64_t>(tensor.role));
    hash.word(tensor.dimensions.size());
    for (const dimension& d : tensor.dimensions) {
      hash.word(d.parts().size());
      for (const dimension::part& p : d.parts()) {
        const bool is_whole = p.group == dimension::no_group;
        hash.word(is_whole ? 0 : std::uint64_t{p.group} + 1);
        hash.word(static_cast<std::uint64_t>(p.whole));
        hash.word(static_cast<std::uint64_t>(p.repeat));
        hash.word(static_cast<std::uint64_t>(p.block));
      }
    }
  }
  return hash.value();
}

}  // namespace subfed::inline v0
