// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "../failure.hpp"
#include "list.hpp"

namespace trainer {
namespace {

std::optional<subfed::capacity> own_share(const options&) { return std::nullopt; }
std::optional<subfed::capacity> all_largest(const options& o) { return largest_capacity(o); }
std::optional<subfed::capacity> all_smallest(const options& o) { return smallest_capacity(o); }

bool smaller(const subfed::capacity_class& a, const subfed::capacity_class& b) {
  return a.capacity.value() < b.capacity.value();
}

const named_method methods_[] = {
    {{"fedrolex", "Clients train a window of channels that rolls on every round."},
     methods::fedrolex,
     own_share},
    {{"heterofl", "Clients train the first channels, the same in every round."},
     methods::heterofl,
     own_share},
    {{"federated-dropout", "Clients train random channels; --seed-policy says who shares a set."},
     methods::federated_dropout,
     own_share},
    {{"fjord", "Clients train the first channels in widths that change with every step.", false},
     methods::fjord,
     own_share},
    {{"ensemble", "The server's model is made of small ones whose outputs are averaged.", false},
     methods::ensemble,
     own_share},
    {{"feddrop",
      "Channels are dropped by common thresholds; clients' chances follow their updates.", false},
     methods::feddrop,
     all_largest},
    {{"unidrop", "As feddrop, but all channels of all clients have one and the same chance.",
      false},
     methods::unidrop,
     all_largest},
    {{"fedavg", "All clients train the model of the largest capacity: the upper bound."},
     methods::fedavg,
     all_largest},
    {{"fedprox", "As fedavg, but a client is held near the model that it was sent.", false},
     methods::fedprox,
     all_largest},
    {{"scaffold", "As fedavg, but each step is corrected by how clients differ.", false},
     methods::scaffold,
     all_largest},
    {{"fedavg-smallest", "All clients train the model of the smallest capacity: the lower bound."},
     methods::fedavg,
     all_smallest},
};

}  // namespace

std::span<const named_method> all_methods() { return methods_; }

std::vector<method_name> method_names() {
  std::vector<method_name> out;
  for (const named_method& m : methods_) out.push_back(m.name);
  return out;
}

const named_method& find_method(std::string_view name) {
  for (const named_method& m : methods_) {
    if (m.name.name == name) return m;
  }
  throw failure(fmt::format("There is no method \"{}\".", name));
}

subfed::capacity largest_capacity(const options& settings) {
  const auto& all = settings.cohort.mix.classes;
  return std::max_element(all.begin(), all.end(), smaller)->capacity;
}
subfed::capacity smallest_capacity(const options& settings) {
  const auto& all = settings.cohort.mix.classes;
  return std::min_element(all.begin(), all.end(), smaller)->capacity;
}

}  // namespace trainer
