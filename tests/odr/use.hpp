// SPDX-License-Identifier: MIT
/// One round over every floor of the library, compiled into two translation units.
#pragma once

#include <every_header.hpp>

#include <vector>

namespace {

/// Cuts a submodel out, averages it with the whole model and returns an element of the result.
float use_every_floor() {
  subfed::model net;
  const auto hidden = net.group("hidden", 8);
  const auto weight = net.tensor("weight", {hidden, 2});

  std::vector<float> global(16, 1.0f);
  std::vector<float> small(8, 0.0f);
  std::vector<float> large(16, 3.0f);
  const subfed::tensor_view<float> all(global.data(), {8, 2});

  subfed::coverage seen(net);
  float last = 0;
  for (const bool at_random : {false, true}) {
    const subfed::draw_key key{.seed = 7, .round = 6, .client = 1, .capacity = 0.5};
    const subfed::submodel sub = at_random ? subfed::draw(net, subfed::random_subset{}, key)
                                           : subfed::draw(net, subfed::rolling{}, key);
    const subfed::tensor_view<float> part(small.data(), sub.extents(weight));
    subfed::slice(all, sub[weight], part);
    subfed::scatter_add(part, sub[weight], all);
    subfed::selective_average<float> mean(net);
    mean.add(sub, {part}, 2);
    mean.add(subfed::submodel::full(net), {subfed::tensor_view<float>(large.data(), {8, 2})});
    mean.finish({all});
    seen.record(sub);
    seen.end_round();
    last = global[0];
  }
  return last;
}

}  // namespace
