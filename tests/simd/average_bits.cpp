// SPDX-License-Identifier: MIT
/// Both forms of the average have the bits of their definition: products and sums in double, each
/// rounded, in the order of the clients, one rounding to the element type at the end. Built twice,
/// plainly and for a processor with fused multiply-add and leave to fuse, which would show here.
#include <doctest/doctest.h>

#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

using subfed::average_options;
using subfed::index_set;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;

namespace {

/// SplitMix64: the same numbers in every build.
struct numbers {
  std::uint64_t state;

  double next() {
    std::uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53 + 0.001;
  }
};

// A volatile result is rounded before it is used again.
double product(double a, double b) {
  volatile double out = a * b;
  return out;
}
double sum(double a, double b) {
  volatile double out = a + b;
  return out;
}

constexpr std::int64_t rows = 7;
constexpr std::int64_t columns = 1500;  // more than a tile of sums

template <class T>
struct client {
  std::vector<std::int64_t> nodes;
  double weight;
  std::vector<T> values;
};

/// Seven clients: windows that wrap, every second node, single nodes.
template <class T>
std::vector<client<T>> clients_with(bool whole) {
  numbers random{whole ? 11u : 7u};
  std::vector<client<T>> out;
  for (std::int64_t c = 0; c < 7; ++c) {
    client<T> made;
    const std::int64_t step = c % 3 == 2 ? 2 : 1;
    const std::int64_t first = whole ? 0 : c * 211;
    const std::int64_t count = whole ? columns : c == 5 ? 3 : 900 / step;
    for (std::int64_t t = 0; t < count; ++t) {
      made.nodes.push_back(whole ? t : (first + t * step) % columns);
    }
    made.weight = c == 3 ? 1.0 : random.next();
    made.values.resize(static_cast<std::size_t>(rows * count));
    for (T& x : made.values) x = T(random.next());
    out.push_back(made);
  }
  return out;
}

template <class T>
std::vector<T> old_values() {
  numbers random{5};
  std::vector<T> out(rows * columns);
  for (T& x : out) x = T(random.next());
  return out;
}

template <class T>
std::vector<T> by_definition(const std::vector<client<T>>& clients,
                             const average_options& options) {
  using subfed::content;
  using subfed::divisor;
  std::vector<T> out = old_values<T>();
  std::vector<double> sums(out.size(), 0.0);
  std::vector<double> weights(out.size(), 0.0);
  double cohort = 0;
  for (const client<T>& c : clients) {
    cohort = sum(cohort, c.weight);
    const std::size_t n = c.nodes.size();
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t p = 0; p < n; ++p) {
        const std::size_t at = r * columns + static_cast<std::size_t>(c.nodes[p]);
        sums[at] = sum(sums[at], product(c.weight, static_cast<double>(c.values[r * n + p])));
        weights[at] = sum(weights[at], c.weight);
      }
    }
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (!(weights[i] > 0)) continue;
    const auto old = static_cast<double>(out[i]);
    const bool all = options.divide_by == divisor::cohort;
    const double total = all ? cohort : weights[i];
    double value = 0;
    if (options.content == content::deltas) {
      value = sum(old, product(options.step, sums[i] / total));
    } else {
      const double missing = all ? product(sum(total, -weights[i]), old) : 0.0;
      const double mean = (all ? sum(sums[i], missing) : sums[i]) / total;
      value = options.step == 1 ? mean : sum(old, product(options.step, sum(mean, -old)));
    }
    out[i] = T(value);
  }
  return out;
}

template <class T>
void check(bool whole, const average_options& options) {
  const auto clients = clients_with<T>(whole);
  const std::vector<T> expected = by_definition(clients, options);
  subfed::model net;
  const auto g = net.group("g", columns);
  net.tensor("x", {rows, g});
  std::vector<subfed::update<T>> updates;
  subfed::selective_average<T> mean(net, options);
  for (std::size_t c = 0; c < clients.size(); ++c) {
    const auto n = static_cast<std::int64_t>(clients[c].nodes.size());
    updates.push_back({submodel(net, {index_set(columns, clients[c].nodes)}, {.client = c}),
                       {tensor_view<const T>(clients[c].values.data(), {rows, n})},
                       clients[c].weight});
    if (!whole) mean.add(updates.back().sub, updates.back().tensors, updates.back().weight);
  }
  std::vector<T> global = old_values<T>();
  subfed::average_cohort<T>(net, updates, {tensor_view<T>(global.data(), {rows, columns})},
                            options);
  CHECK(std::memcmp(global.data(), expected.data(), global.size() * sizeof(T)) == 0);
  if (whole) return;
  global = old_values<T>();
  mean.finish({tensor_view<T>(global.data(), {rows, columns})});
  CHECK(std::memcmp(global.data(), expected.data(), global.size() * sizeof(T)) == 0);
}

}  // namespace

TEST_CASE_TEMPLATE("averages have the bits of their definition whatever the compiler may fuse", T,
                   float, double) {
  for (const bool whole : {false, true}) {
    for (const auto divide_by : {subfed::divisor::holders, subfed::divisor::cohort}) {
      for (const auto content : {subfed::content::parameters, subfed::content::deltas}) {
        for (const double step : {1.0, 0.3}) {
          INFO("whole ", whole, ", cohort ", divide_by == subfed::divisor::cohort, ", deltas ",
               content == subfed::content::deltas, ", step ", step);
          average_options options;
          options.divide_by = divide_by;
          options.content = content;
          options.step = step;
          check<T>(whole, options);
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("leaving single elements out does not let the compiler fuse either", T, float,
                   double) {
  average_options options;
  options.on_non_finite = subfed::non_finite::skip_element;
  check<T>(false, options);
}
