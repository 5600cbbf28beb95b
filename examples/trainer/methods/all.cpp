// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <utility>

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

enum class runs { by_default, if_asked };

/// Clients hold what they can. `options`: of those for single methods, the ones that it reads.
named_method of_parts(std::string name, std::string about, decltype(named_method::make) make,
                      runs when, std::vector<std::string> options = {}) {
  return {{std::move(name), std::move(about), when == runs::by_default, true, std::move(options)},
          make,
          own_share};
}
/// Clients and server have one model, a share of the network.
named_method of_all_alike(std::string name, std::string about, decltype(named_method::make) make,
                          decltype(named_method::common_share) share, runs when,
                          std::vector<std::string> options = {}) {
  return {{std::move(name), std::move(about), when == runs::by_default, false, std::move(options)},
          make,
          share};
}

named_method for_images(named_method m) {
  m.name.cuts_texts = false;
  return m;
}

const std::vector<std::string> options_of_dropout = {"flops-ratio", "thresholds", "synchronization",
                                                     "dropout-scaling", "initialization"};

const named_method methods_[] = {
    of_parts("fedrolex", "Clients train a window of channels that rolls on every round.",
             methods::fedrolex, runs::by_default,
             {"step", "overlap", "client-phase", "layer-phases"}),
    of_parts("heterofl", "Clients train the first channels, the same in every round.",
             methods::heterofl, runs::by_default, {"batch-norm"}),
    of_parts("federated-dropout",
             "Clients train random channels; --seed-policy says who shares a set.",
             methods::federated_dropout, runs::by_default, {"seed-policy", "untied-skips"}),
    of_parts("fjord", "Clients train the first channels in widths that change with every step.",
             methods::fjord, runs::if_asked, {"widths", "distillation", "alpha", "temperature"}),
    of_parts("ensemble", "The server's model consists of small ones whose outputs are averaged.",
             methods::ensemble, runs::if_asked, {"members", "member-by"}),
    for_images(of_all_alike(
        "feddrop",
        "Channels are dropped by common thresholds; keep probabilities follow the updates.",
        methods::feddrop, all_largest, runs::if_asked, options_of_dropout)),
    for_images(of_all_alike(
        "unidrop", "As feddrop, but all channels of all clients have the same keep probability.",
        methods::unidrop, all_largest, runs::if_asked, options_of_dropout)),
    of_all_alike("fedavg", "All clients train the model of the largest capacity: the upper bound.",
                 methods::fedavg, all_largest, runs::by_default),
    of_all_alike("fedprox", "As fedavg, but a client is kept near the model that it was sent.",
                 methods::fedprox, all_largest, runs::if_asked, {"proximal"}),
    of_all_alike("scaffold", "As fedavg, but each step is corrected by how clients differ.",
                 methods::scaffold, all_largest, runs::if_asked),
    of_all_alike("fedavg-smallest",
                 "All clients train the model of the smallest capacity: the lower bound.",
                 methods::fedavg, all_smallest, runs::by_default),
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
