// SPDX-License-Identifier: MIT
/// What headers promise together: an extracted submodel computes what the whole model does with the
/// dropped nodes masked to zero, for every way in which layers can be tied.
#include <subfed/average/cohort.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/schemes/simple_ensemble.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using subfed::index_set;
using subfed::model;
using subfed::submodel;
using subfed::tensor_view;
using support::seeded;

namespace {

using numbers = std::vector<double>;

/// A network by hand, on whole numbers: sums are exact in any order, so equal means equal.
///
///   image (3 channels, 2 x 2) -> conv 1x1 -> a + conv(relu(a))     residual add
///     -> batch norm -> flatten, channels first and channels last -> one linear layer each
///     -> both added, a residual add of its own -> the gates of a cell -> 4 classes
struct network {
  model net;
  subfed::group_id stream, middle, hidden, cell;
  std::int64_t pixels = 4;

  explicit network(std::int64_t width)
      : stream(net.group("stream", width)),
        middle(net.group("middle", width + 1)),
        hidden(net.group("hidden", 2 * width)),
        cell(net.group("cell", width)) {
    net.tensor("stem", {stream, 3});
    net.tensor("in", {middle, stream});
    net.tensor("out", {stream, middle});
    for (const char* name : {"norm.weight", "norm.bias", "norm.mean"}) net.tensor(name, {stream});
    net.tensor("first", {hidden, stream.block(pixels)});
    net.tensor("last", {hidden, stream.repeat(pixels)});
    net.tensor("both", {hidden, subfed::concat({hidden, hidden})});
    net.tensor("cell.input", {cell.repeat(4), hidden});
    net.tensor("cell.state", {cell.repeat(4), cell});
    net.tensor("cell.bias", {cell.repeat(4)});
    net.tensor("head", {4, cell});
  }
};

/// All tensors of a model or submodel, row-major.
struct weights {
  std::vector<numbers> tensors;
  std::vector<std::vector<std::int64_t>> shapes;

  static weights of(const submodel& sub) {
    weights out;
    for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
      out.shapes.push_back(sub.extents(subfed::tensor_id(t)));
      out.tensors.emplace_back(static_cast<std::size_t>(support::elements_of(out.shapes.back())));
    }
    return out;
  }
  std::vector<tensor_view<double>> views() {
    std::vector<tensor_view<double>> out;
    for (std::size_t t = 0; t < tensors.size(); ++t) {
      out.emplace_back(tensors[t].data(), shapes[t]);
    }
    return out;
  }
};

double relu(double x) { return x > 0 ? x : 0; }
/// Takes the place of the sigmoid, in whole numbers.
double gate(double x) { return static_cast<double>(static_cast<std::int64_t>(x) % 3); }

/// matrix (rows, columns) times x, added to what is in y.
void multiply(const numbers& matrix, const numbers& x, numbers& y) {
  REQUIRE(matrix.size() == x.size() * y.size());
  for (std::size_t r = 0; r < y.size(); ++r) {
    for (std::size_t c = 0; c < x.size(); ++c) y[r] += matrix[r * x.size() + c] * x[c];
  }
}

/// Sets the nodes that a mask does not have to 0.
void apply(const std::vector<char>& mask, numbers& x) {
  if (mask.empty()) return;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = mask[i] != 0 ? x[i] : 0;
}

/// Masks by group, empty for "all nodes".
struct masks {
  std::vector<char> stream, middle, hidden, cell;
};

numbers forward(const weights& w, const masks& mask) {
  constexpr std::size_t pixels = 4;
  const auto& t = w.tensors;
  const std::size_t width = t[3].size();
  std::vector<numbers> images;  // one vector of channels a pixel
  for (std::size_t p = 0; p < pixels; ++p) {
    const numbers colour{1.0 + static_cast<double>(p), -2, 3};
    numbers a(width);
    multiply(t[0], colour, a);
    apply(mask.stream, a);
    numbers m(t[1].size() / width);
    multiply(t[1], a, m);
    for (double& x : m) x = relu(x);
    apply(mask.middle, m);
    multiply(t[2], m, a);  // the residual add
    for (std::size_t c = 0; c < width; ++c) a[c] = (a[c] - t[5][c]) * t[3][c] + t[4][c];
    apply(mask.stream, a);
    images.push_back(a);
  }
  numbers channels_first;
  numbers channels_last;
  for (std::size_t c = 0; c < width; ++c) {
    for (std::size_t p = 0; p < pixels; ++p) channels_first.push_back(images[p][c]);
  }
  for (std::size_t p = 0; p < pixels; ++p) {
    channels_last.insert(channels_last.end(), images[p].begin(), images[p].end());
  }
  numbers a(t[6].size() / channels_first.size());
  numbers b(a.size());
  multiply(t[6], channels_first, a);
  multiply(t[7], channels_last, b);
  for (double& x : a) x = gate(x);  // keeps the numbers small
  for (double& x : b) x = gate(x);
  apply(mask.hidden, a);
  apply(mask.hidden, b);
  numbers joined = a;
  joined.insert(joined.end(), b.begin(), b.end());
  numbers h = a;
  multiply(t[8], joined, h);
  apply(mask.hidden, h);

  // Two steps of a cell with the gates input, forget, candidate and output in a row.
  const std::size_t n = t[12].size() / 4;
  numbers state(n, 1);
  numbers memory(n, 2);
  apply(mask.cell, state);
  apply(mask.cell, memory);
  for (int step = 0; step < 2; ++step) {
    numbers gates = t[11];
    multiply(t[9], h, gates);
    multiply(t[10], state, gates);
    for (std::size_t i = 0; i < n; ++i) {
      memory[i] = gate(gates[n + i]) * memory[i] + gate(gates[i]) * gate(gates[2 * n + i]);
      state[i] = gate(gates[3 * n + i]) * memory[i];
    }
    apply(mask.cell, memory);
    apply(mask.cell, state);
  }
  numbers classes(4);
  multiply(t[12], state, classes);
  return classes;
}

std::vector<char> mask_of(const index_set& nodes) {
  std::vector<char> out(static_cast<std::size_t>(nodes.extent()), 0);
  for (const std::int64_t n : nodes) out[static_cast<std::size_t>(n)] = 1;
  return out;
}

template <class Scheme>
void check_true_sub_network(const std::string& name, const Scheme& scheme,
                            std::vector<double> capacities) {
  for (const std::int64_t width : {1, 4, 16}) {
    const network n(width);
    for (const double capacity : capacities) {
      for (std::uint64_t round = 0; round < 4; ++round) {
        INFO(name, ", width ", width, ", capacity ", capacity, ", round ", round);
        weights whole = weights::of(submodel::full(n.net));
        seeded random(round);
        for (auto& tensor : whole.tensors) {
          for (double& x : tensor) x = static_cast<double>(random.between(-3, 3));
        }
        const auto sub = subfed::draw(
            n.net, scheme, {.seed = 1, .round = round, .client = 2, .capacity = capacity});
        weights part = weights::of(sub);
        std::vector<tensor_view<const double>> globals;
        for (const auto& view : whole.views()) globals.emplace_back(view);
        subfed::slice<double>(globals, sub, part.views());
        const masks mask{mask_of(sub[n.stream]), mask_of(sub[n.middle]), mask_of(sub[n.hidden]),
                         mask_of(sub[n.cell])};
        CHECK(forward(part, {}) == forward(whole, mask));
        if (capacity == 1) CHECK(forward(whole, mask) == forward(whole, {}));
      }
    }
  }
}

const std::vector<double> halves{1, 0.5, 0.25, 0.125, 0.0625};
const std::vector<double> all_capacities{1, 0.5, 0.3, 0.25, 0.125, 0.0625};

}  // namespace

TEST_CASE("the masked network depends on its masks: dropping other nodes gives other classes") {
  const network n(16);
  weights whole = weights::of(submodel::full(n.net));
  seeded random(3);
  for (auto& tensor : whole.tensors) {
    for (double& x : tensor) x = static_cast<double>(random.between(-3, 3));
  }
  const auto classes = forward(whole, {});
  for (int group = 0; group < 4; ++group) {
    masks mask;
    const index_set first = index_set::prefix(group == 1 ? 17 : group == 2 ? 32 : 16, 8);
    (group == 0   ? mask.stream
     : group == 1 ? mask.middle
     : group == 2 ? mask.hidden
                  : mask.cell) = mask_of(first);
    CHECK(forward(whole, mask) != classes);
  }
}

TEST_CASE("true sub-network: a rolling window") {
  check_true_sub_network("paper", subfed::rolling::paper(), all_capacities);
  check_true_sub_network("released", subfed::rolling::released(), all_capacities);
  subfed::rolling apart;
  apart.step = 3;
  apart.client_phase = 5;
  check_true_sub_network("apart", apart, all_capacities);
}

TEST_CASE("true sub-network: a random set") {
  check_true_sub_network("random", subfed::random_subset{}, all_capacities);
  subfed::random_subset shared;
  shared.seeds = subfed::seed_policy::shared(2);
  check_true_sub_network("shared", shared, all_capacities);
}

TEST_CASE("true sub-network: a prefix") {
  check_true_sub_network("paper", subfed::prefix::paper(), all_capacities);
  check_true_sub_network("ordered", subfed::prefix::ordered(), all_capacities);
}

TEST_CASE("true sub-network: a member of an ensemble, where members divide the group") {
  const auto scheme = [](const subfed::draw_request& where) {
    if (where.extent % where.kept() == 0) return subfed::simple_ensemble{.advance = 1}(where);
    return subfed::prefix{}(where);
  };
  check_true_sub_network("simple ensemble", scheme, halves);
}

TEST_CASE("true sub-network: nodes in any order, by a scheme of the user's own") {
  const auto scheme = [](const subfed::draw_request& where) {
    std::vector<std::int64_t> nodes;
    for (std::int64_t n = 0; n < where.kept(); ++n) nodes.push_back(n);
    seeded order(where.round + static_cast<std::uint64_t>(where.extent));
    order.shuffle(nodes);
    return index_set(where.extent, nodes);
  };
  check_true_sub_network("shuffled", scheme, all_capacities);
}

TEST_CASE("a round without training changes nothing: slice, then average, gives the model back") {
  for (const double capacity : all_capacities) {
    INFO("capacity ", capacity);
    const network n(16);
    weights whole = weights::of(submodel::full(n.net));
    seeded random(9);
    for (auto& tensor : whole.tensors) {
      for (double& x : tensor) x = random.unit();
    }
    const auto before = whole.tensors;
    std::vector<weights> parts;
    std::vector<submodel> subs;
    parts.reserve(5);
    std::vector<subfed::update<double>> updates;
    for (std::uint64_t client = 0; client < 5; ++client) {
      subs.push_back(
          subfed::draw(n.net, subfed::random_subset{}, {.client = client, .capacity = capacity}));
      parts.push_back(weights::of(subs.back()));
      std::vector<tensor_view<const double>> globals;
      for (const auto& view : whole.views()) globals.emplace_back(view);
      subfed::slice<double>(globals, subs.back(), parts.back().views());
      std::vector<tensor_view<const double>> locals;
      for (const auto& view : parts.back().views()) locals.emplace_back(view);
      updates.push_back({subs.back(), subfed::tensor_views<const double>(locals), 0.5});
    }
    subfed::average_cohort<double>(n.net, updates, whole.views());
    for (std::size_t t = 0; t < before.size(); ++t) {
      for (std::size_t i = 0; i < before[t].size(); ++i) {
        CHECK(whole.tensors[t][i] == doctest::Approx(before[t][i]).epsilon(1e-15));
      }
    }
  }
}
