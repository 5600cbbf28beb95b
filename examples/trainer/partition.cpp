// SPDX-License-Identifier: MIT
#include "partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "data.hpp"
#include "failure.hpp"
#include "random_order.hpp"

namespace trainer {
namespace {

/// Each client takes the labels that have the fewest clients so far; chance decides among equals.
void assign_labels(std::vector<client>& clients, const partition_plan& plan) {
  subfed::random_stream stream(plan.seed, 0, 0, "labels of the clients");
  std::vector<std::int64_t> taken(class_count, 0);
  std::vector<std::int64_t> order(class_count);
  std::iota(order.begin(), order.end(), 0);
  for (client& c : clients) {
    shuffle(order, stream);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return taken[static_cast<std::size_t>(a)] < taken[static_cast<std::size_t>(b)];
    });
    c.labels.assign(order.begin(), order.begin() + plan.labels_each);
    std::sort(c.labels.begin(), c.labels.end());
    for (const std::int64_t label : c.labels) ++taken[static_cast<std::size_t>(label)];
  }
}

/// The i-th of `parts` nearly equal parts of `total`, the longer ones first.
std::int64_t part_of(std::int64_t total, std::int64_t parts, std::int64_t i) {
  return total / parts + (i < total % parts ? 1 : 0);
}

/// Deals the samples of each label to the clients that have it.
void assign_samples(std::vector<client>& clients, std::span<const std::uint8_t> labels,
                    const partition_plan& plan) {
  for (std::int64_t label = 0; label < class_count; ++label) {
    std::vector<std::int64_t> samples;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == label) samples.push_back(static_cast<std::int64_t>(i));
    }
    subfed::random_stream stream(plan.seed, 0, static_cast<std::uint64_t>(label),
                                 "samples of a label");
    shuffle(samples, stream);

    std::vector<std::pair<client*, std::int64_t>> holders;  // with the label's place among theirs
    for (client& c : clients) {
      const auto at = std::find(c.labels.begin(), c.labels.end(), label);
      if (at != c.labels.end()) holders.emplace_back(&c, at - c.labels.begin());
    }
    auto next = samples.begin();
    for (std::size_t h = 0; h < holders.size(); ++h) {
      const auto [holder, place] = holders[h];
      const std::int64_t share =
          part_of(static_cast<std::int64_t>(samples.size()),
                  static_cast<std::int64_t>(holders.size()), static_cast<std::int64_t>(h));
      const std::int64_t kept =
          (std::min)(share, part_of(plan.samples_each, plan.labels_each, place));
      holder->samples.insert(holder->samples.end(), next, next + kept);
      next += share;
    }
  }
}

}  // namespace

std::vector<client> partition(std::span<const std::uint8_t> labels, const partition_plan& plan) {
  if (plan.labels_each < 1 || plan.labels_each > class_count) {
    throw failure(fmt::format("{} labels are asked for each client, but there are 1 to {}.",
                              plan.labels_each, class_count));
  }
  std::vector<client> clients(static_cast<std::size_t>(plan.clients));
  for (std::size_t c = 0; c < clients.size(); ++c) {
    clients[c].number = c;
    clients[c].capacity = plan.capacities[c % plan.capacities.size()];
  }
  assign_labels(clients, plan);
  assign_samples(clients, labels, plan);
  for (const client& c : clients) {
    if (c.samples.empty()) {
      throw failure(fmt::format(
          "Client {} of {} gets no sample: {} training samples are too few for that many clients.",
          c.number, clients.size(), labels.size()));
    }
  }
  return clients;
}

std::int64_t cohort_size(std::int64_t clients, double participation) {
  const std::int64_t size = std::llround(participation * static_cast<double>(clients));
  if (size < 1) {
    throw failure(
        fmt::format("A participation of {} among {} clients leaves every cohort empty; at "
                    "least one client must take part in a round.",
                    participation, clients));
  }
  return (std::min)(size, clients);
}

std::vector<std::uint64_t> draw_cohort(std::uint64_t seed, std::uint64_t round,
                                       std::int64_t clients, double participation) {
  const auto size = static_cast<std::size_t>(cohort_size(clients, participation));
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(clients));
  std::iota(numbers.begin(), numbers.end(), 0);
  subfed::random_stream stream(seed, round, 0, "cohort of a round");
  draw_to_front(numbers, size, stream);
  numbers.resize(size);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

}  // namespace trainer
