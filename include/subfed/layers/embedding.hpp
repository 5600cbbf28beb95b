// SPDX-License-Identifier: MIT
/// Tables with one row per word or position.
#pragma once

#include <subfed/model.hpp>

#include <string>

namespace subfed::inline v0 {

struct embedding_layer {
  dimension count;  ///< words of the vocabulary, or positions
  dimension width;
};

/// Whether a table is stored with a dimension of 1 in front, for the batch.
enum class batch_dimension { none, leading };

struct position_table {
  dimension positions;
  dimension width;
  batch_dimension batch = batch_dimension::none;
};

/// name.weight (count, width): torch.nn.Embedding. linear_tied describes a layer that shares the
/// table.
inline tensor_id embedding(model& net, const std::string& name, const embedding_layer& layer) {
  return net.tensor(name + ".weight", {layer.count, layer.width});
}

/// name (positions, width), or (1, positions, width) as vision transformers store it: a table of
/// learned or fixed positions that is its own parameter or buffer. Its width is that of what it is
/// added to. Where positions are a torch.nn.Embedding, use embedding.
inline tensor_id positions(model& net, const std::string& name, const position_table& table) {
  if (table.batch == batch_dimension::leading) {
    return net.tensor(name, {1, table.positions, table.width});
  }
  return net.tensor(name, {table.positions, table.width});
}

}  // namespace subfed::inline v0
