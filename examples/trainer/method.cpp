// SPDX-License-Identifier: MIT
#include "method.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random.hpp>
#include <subfed/schemes/rolling.hpp>

#include "failure.hpp"

namespace trainer {
namespace {

bool smaller(subfed::capacity a, subfed::capacity b) { return a.value() < b.value(); }

subfed::capacity largest(std::span<const subfed::capacity> all) {
  return *std::max_element(all.begin(), all.end(), smaller);
}
subfed::capacity smallest(std::span<const subfed::capacity> all) {
  return *std::min_element(all.begin(), all.end(), smaller);
}

}  // namespace

const std::vector<method>& all_methods() {
  static const std::vector<method> methods = {
      {"fedrolex", "Each client trains a window of channels that rolls on by one every round.",
       subfed::rolling::paper()},
      {"heterofl", "Each client trains the first channels, the same in every round.",
       subfed::prefix::paper()},
      {"federated-dropout", "Each client trains random channels, new ones in every round.",
       subfed::random{}},
      {"fedavg-largest", "All clients train the model of the largest capacity: the upper bound.",
       subfed::prefix{}, largest},
      {"fedavg-smallest", "All clients train the model of the smallest capacity: the lower bound.",
       subfed::prefix{}, smallest},
  };
  return methods;
}

const method& find_method(std::string_view name) {
  const auto& methods = all_methods();
  const auto at =
      std::find_if(methods.begin(), methods.end(), [&](const method& m) { return m.name == name; });
  if (at != methods.end()) return *at;
  std::vector<std::string_view> names;
  for (const method& m : methods) names.emplace_back(m.name);
  throw failure(
      fmt::format("There is no method \"{}\"; the methods are {}.", name, fmt::join(names, ", ")));
}

}  // namespace trainer
