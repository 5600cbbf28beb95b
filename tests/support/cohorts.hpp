// SPDX-License-Identifier: MIT
/// Random networks and cohorts of clients for the tests of averages, described twice: as plain
/// lists for the oracle, and as the library's model, submodels and views.
#pragma once

#include <oracle.hpp>
#include <subfed/average/cohort.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace support {

/// The library's description of an oracle's network.
inline subfed::model model_of(const oracle::network& net) {
  subfed::model out;
  std::vector<subfed::group_id> groups;
  for (std::size_t g = 0; g < net.groups.size(); ++g) {
    groups.push_back(out.group("group " + std::to_string(g), net.groups[g]));
  }
  for (std::size_t t = 0; t < net.tensors.size(); ++t) {
    std::vector<subfed::dimension> dimensions;
    for (const oracle::dimension& d : net.tensors[t]) {
      subfed::dimension joined = subfed::concat({});
      for (const oracle::part& p : d) {
        const auto bare = p.group >= 0
                              ? subfed::dimension(groups[static_cast<std::size_t>(p.group)])
                              : subfed::dimension(p.whole);
        joined = subfed::concat({joined, bare.repeat(p.repeat).block(p.block)});
      }
      dimensions.push_back(joined);
    }
    out.tensor("tensor " + std::to_string(t), dimensions);
  }
  return out;
}

inline subfed::submodel submodel_of(const subfed::model& net, const oracle::holding& h,
                                    subfed::draw_key origin = {}) {
  std::vector<subfed::index_set> sets;
  for (std::size_t g = 0; g < h.nodes.size(); ++g) {
    sets.emplace_back(net.groups()[g].extent, h.nodes[g]);
  }
  subfed::submodel out(net, std::move(sets), origin);
  for (std::size_t g = 0; g < h.nodes.size(); ++g) {
    if (h.taking_part[g] == h.nodes[g]) continue;
    const subfed::index_set kept(net.groups()[g].extent, h.taking_part[g]);
    out = out.restricted(subfed::group_id(g), kept);
  }
  return out;
}

/// Groups of 0 to 13 nodes; tensors of rank 0 to 4 whose dimensions are whole or one, two or three
/// parts in a row, repeated and in blocks.
inline oracle::network random_network(seeded& random) {
  static constexpr std::int64_t extents[] = {1, 2, 3, 5, 7, 8, 13, 4};
  oracle::network net;
  const std::int64_t groups = random.between(1, 4);
  for (std::int64_t g = 0; g < groups; ++g) {
    net.groups.push_back(random.one_in(12) ? 0 : extents[random.between(0, 7)]);
  }
  const std::int64_t tensors = random.between(1, 3);
  while (static_cast<std::int64_t>(net.tensors.size()) < tensors) {
    oracle::tensor t(static_cast<std::size_t>(random.between(0, 4)));
    for (oracle::dimension& d : t) {
      const std::int64_t parts = random.one_in(4) ? random.between(2, 3) : 1;
      for (std::int64_t p = 0; p < parts; ++p) {
        const bool bound = !random.one_in(3);
        d.push_back({bound ? static_cast<int>(random.between(0, groups - 1)) : -1,
                     random.one_in(12) ? 0 : random.between(1, 4),
                     random.one_in(4) ? random.between(2, 3) : 1,
                     random.one_in(4) ? random.between(2, 3) : 1});
      }
    }
    if (elements_of(oracle::global_shape(net, t)) <= 600) net.tensors.push_back(t);
  }
  return net;
}

/// One tensor whose rows are longer than the tiles, segments and units that averages work in: two
/// groups around or before a kernel of some elements.
inline oracle::network large_network(seeded& random) {
  static constexpr std::int64_t kernels[] = {1, 9, 3, 25, 300, 1};
  const std::int64_t kernel = kernels[random.between(0, 5)];
  const std::int64_t columns = random.between(1, kernel == 1 ? 1500 : 1500 / kernel + 2);
  const std::int64_t rows = random.between(1, 3);
  oracle::tensor t{{{0, 0, 1, 1}}, {{1, 0, 1, 1}}};
  if (kernel == 9) {
    t.push_back({{-1, 3, 1, 1}});
    t.push_back({{-1, 3, 1, 1}});
  } else if (kernel != 1) {
    t.push_back({{-1, kernel, 1, 1}});
  }
  if (random.one_in(3)) std::swap(t[0], t[1]);
  return {{rows, columns}, {t}};
}

/// Random nodes of every group; now and then only some of a group's nodes take part.
inline oracle::holding random_holding(seeded& random, const oracle::network& net) {
  oracle::holding out;
  for (const std::int64_t extent : net.groups) {
    out.nodes.push_back(random_nodes(random, extent));
    out.taking_part.push_back(random.one_in(5) ? random_nodes(random, extent) : out.nodes.back());
  }
  return out;
}

/// A client with its tensors in layouts of their own.
template <class T>
struct client {
  oracle::holding holds;
  subfed::submodel sub;
  double weight;
  std::vector<strided<T>> tensors;

  subfed::update<T> update() const { return {sub, subfed::tensor_views<const T>(views()), weight}; }
  std::vector<subfed::tensor_view<const T>> views() const {
    std::vector<subfed::tensor_view<const T>> out;
    for (const auto& t : tensors) out.push_back(t.view());
    return out;
  }
};

/// A network with global tensors and clients. value(random) gives elements, weight(random) weights.
template <class T>
struct cohort {
  oracle::network plan;
  subfed::model net;
  std::vector<strided<T>> globals;
  std::vector<client<T>> clients;

  template <class Value, class Weight>
  cohort(seeded& random, oracle::network planned, std::int64_t size, Value&& value, Weight&& weight)
      : plan(std::move(planned)), net(model_of(plan)) {
    for (const auto& t : plan.tensors) {
      globals.emplace_back(random_layout(random, oracle::global_shape(plan, t)));
      globals.back().fill([&](std::int64_t) { return value(random); });
    }
    for (std::int64_t c = 0; c < size; ++c) {
      oracle::holding holds = random_holding(random, plan);
      subfed::submodel sub = submodel_of(net, holds, {.client = static_cast<std::uint64_t>(c)});
      client<T> made{std::move(holds), std::move(sub), weight(random), {}};
      for (const auto& t : plan.tensors) {
        made.tensors.emplace_back(
            random_source_layout(random, oracle::local_shape(plan, t, made.holds)));
        made.tensors.back().fill([&](std::int64_t) { return value(random); });
      }
      clients.push_back(std::move(made));
    }
  }

  std::vector<subfed::update<T>> updates() const {
    std::vector<subfed::update<T>> out;
    for (const auto& c : clients) out.push_back(c.update());
    return out;
  }
  std::vector<subfed::tensor_view<T>> global_views() {
    std::vector<subfed::tensor_view<T>> out;
    for (auto& g : globals) out.push_back(g.view());
    return out;
  }
  /// Elements of all global tensors.
  std::vector<std::vector<T>> elements() const {
    std::vector<std::vector<T>> out;
    for (const auto& g : globals) out.push_back(g.elements());
    return out;
  }
  bool rest_untouched() const {
    for (const auto& g : globals) {
      if (!g.rest_untouched()) return false;
    }
    return true;
  }

  /// What the oracle gives for each tensor, and the report that goes with it.
  std::vector<std::vector<oracle::element>> expected(const subfed::average_options& options,
                                                     subfed::average_report& report) const {
    const bool skips_clients = options.on_non_finite == subfed::non_finite::skip_client;
    const bool skips_elements = options.on_non_finite == subfed::non_finite::skip_element;
    std::vector<std::vector<oracle::update<T>>> per_tensor(plan.tensors.size());
    for (const auto& c : clients) {
      std::vector<oracle::update<T>> own;
      std::int64_t bad = 0;
      for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
        own.push_back({c.tensors[t].elements(),
                       oracle::global_numbers(plan, plan.tensors[t], c.holds), c.weight});
        for (std::size_t l = 0; l < own[t].numbers.size(); ++l) {
          bad += own[t].numbers[l] >= 0 && !std::isfinite(oracle::value_of(own[t].values[l]));
        }
      }
      if (skips_clients && bad != 0) {
        ++report.skipped_clients;
        continue;
      }
      ++report.clients;
      if (skips_elements && c.weight > 0) report.skipped_elements += bad;
      for (std::size_t t = 0; t < own.size(); ++t) per_tensor[t].push_back(std::move(own[t]));
    }
    std::vector<std::vector<oracle::element>> out;
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      out.push_back(oracle::average(globals[t].elements(), per_tensor[t], options));
      for (const oracle::element& e : out.back()) ++(e.held ? report.held : report.unheld);
    }
    return out;
  }
};

/// Small whole numbers, exact in every element type, and so are their weighted sums in double: the
/// average of them has one right rounding.
template <class T>
T small_integer(seeded& random) {
  return T(static_cast<double>(random.between(-8, 8)));
}
/// 0 now and then, else a small dyadic number.
inline double dyadic_weight(seeded& random) {
  static constexpr double choices[] = {1, 1, 1, 2, 3, 0.5, 0.25};
  return random.one_in(6) ? 0 : choices[random.between(0, 6)];
}

/// Both forms of the average under one name.
template <class T>
subfed::average_report streamed(const subfed::model& net,
                                const std::vector<subfed::update<T>>& updates,
                                const std::vector<subfed::tensor_view<T>>& globals,
                                const subfed::average_options& options = {}) {
  subfed::selective_average<T> mean(net, options);
  for (const auto& u : updates) mean.add(u.sub, u.tensors, u.weight);
  return mean.finish(subfed::tensor_views<T>(globals));
}
template <class T>
subfed::average_report at_once(const subfed::model& net,
                               const std::vector<subfed::update<T>>& updates,
                               const std::vector<subfed::tensor_view<T>>& globals,
                               const subfed::average_options& options = {}) {
  return subfed::average_cohort<T>(net, updates, subfed::tensor_views<T>(globals), options);
}

}  // namespace support
