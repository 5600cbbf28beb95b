// SPDX-License-Identifier: MIT
#include <subfed/systems/ensemble.hpp>

#include <subfed/average/cohort.hpp>
#include <subfed/draw.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/slice.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

using subfed::ensemble_members;
using subfed::index_set;
using subfed::member_nodes;
using subfed::submodel;
using subfed::tensor_view;
using support::message_of;

namespace {

struct golden_member {
  std::string_view by;
  std::uint64_t seed, round, client;
  std::int64_t members, member;
};
constexpr golden_member golden[] = {
#include <golden/systems_members.inc>
};

using matrix = std::vector<double>;  // row-major

matrix product(const matrix& a, std::size_t rows, std::size_t inner, const matrix& b) {
  const std::size_t columns = b.size() / inner;
  matrix out(rows * columns, 0.0);
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t i = 0; i < inner; ++i) {
      for (std::size_t c = 0; c < columns; ++c) {
        out[r * columns + c] += a[r * inner + i] * b[i * columns + c];
      }
    }
  }
  return out;
}

/// U relu(W relu(V x)), or U relu(V x) where W is empty.
matrix forward(const matrix& u, const matrix& w, const matrix& v, const matrix& x, std::size_t k) {
  const std::size_t hidden = u.size() / k;
  matrix h = product(v, hidden, x.size(), x);
  for (double& value : h) value = value > 0 ? value : 0;
  if (!w.empty()) {
    h = product(w, hidden, hidden, h);
    for (double& value : h) value = value > 0 ? value : 0;
  }
  return product(u, k, hidden, h);
}

/// What a client makes of its tensors: any function of values, client and round.
void local_training(matrix& values, std::uint64_t client, std::uint64_t round) {
  for (double& x : values) {
    x = x * 0.9 + 0.1 * std::sin(static_cast<double>(client * 7 + round) + 3 * x);
  }
}

constexpr std::int64_t members = 3, narrow = 2, wide = members * narrow, inputs = 4, outputs = 2;

/// U (outputs, h), W (h, h), V (h, inputs) of a model with h hidden nodes twice.
struct network {
  subfed::model net;
  subfed::group_id first, second;
  std::vector<matrix> values;

  explicit network(std::int64_t h) : first(net.group("first", h)), second(net.group("second", h)) {
    net.tensor("u", {outputs, second});
    net.tensor("w", {second, first});
    net.tensor("v", {first, inputs});
    for (const auto& t : net.tensors()) {
      values.emplace_back(static_cast<std::size_t>(support::elements_of(t.extents)), 0.0);
    }
  }
  std::vector<tensor_view<double>> views() {
    std::vector<tensor_view<double>> out;
    for (std::size_t t = 0; t < 3; ++t) {
      out.emplace_back(values[t].data(), net.tensors()[t].extents);
    }
    return out;
  }
};

/// A round of FedAvg over the clients of `cohort`: cut, train, average.
template <class Scheme>
void round_of(network& server, const Scheme& scheme, const std::vector<std::uint64_t>& cohort,
              std::uint64_t round) {
  std::vector<std::vector<matrix>> own(cohort.size());
  std::vector<subfed::update<double>> updates;
  for (std::size_t i = 0; i < cohort.size(); ++i) {
    const auto sub = subfed::draw(server.net, scheme, {.round = round, .client = cohort[i]});
    std::vector<tensor_view<const double>> tensors;
    for (std::size_t t = 0; t < 3; ++t) {
      const auto extents = sub.extents(subfed::tensor_id(t));
      own[i].emplace_back(static_cast<std::size_t>(support::elements_of(extents)));
      subfed::slice(server.views()[t], sub[subfed::tensor_id(t)],
                    tensor_view<double>(own[i][t].data(), extents));
      local_training(own[i][t], cohort[i], round);
    }
    for (std::size_t t = 0; t < 3; ++t) {
      tensors.emplace_back(own[i][t].data(), sub.extents(subfed::tensor_id(t)));
    }
    updates.push_back({sub, tensors, 1.0 + static_cast<double>(cohort[i])});
  }
  if (!updates.empty()) subfed::average_cohort<double>(server.net, updates, server.views());
}

const auto everything = [](const subfed::draw_request& s) { return index_set::full(s.extent); };

}  // namespace

TEST_CASE("members: client mod R, or drawn evenly; members are disjoint and cover the group") {
  const ensemble_members fixed{3};
  CHECK(fixed.of(1, 2, 7) == 1);
  std::array<int, 3> seen{};
  const ensemble_members anew{3, ensemble_members::assignment::per_round};
  for (std::uint64_t round = 0; round < 900; ++round) {
    ++seen[static_cast<std::size_t>(anew.of(5, round, 7))];
  }
  for (const int n : seen) CHECK(std::abs(n - 300) < 60);
  seen = {};
  const ensemble_members once{3, ensemble_members::assignment::per_client};
  for (std::uint64_t client = 0; client < 900; ++client) {
    ++seen[static_cast<std::size_t>(once.of(5, 0, client))];
    CHECK(once.of(5, client + 1, client) == once.of(5, 0, client));
  }
  for (const int n : seen) CHECK(std::abs(n - 300) < 60);
  CHECK(member_nodes{{3}}({.client = 5, .extent = 6}) == index_set(6, {4, 5}));
  CHECK(member_nodes{{3}}({.client = 3, .extent = 6, .capacity = 0.1}) == index_set(6, {0, 1}));
}

TEST_CASE("both forms agree: members of one server model and R models of their own") {
  support::seeded random(12);
  network whole(wide);
  for (matrix& m : whole.values) {
    for (double& x : m) x = 2 * random.unit() - 1;
  }
  const member_nodes scheme{{members}};
  // Form 2: models of their own, started from the parts.
  std::vector<network> own(members, network(narrow));
  std::vector<submodel> parts;
  for (std::uint64_t r = 0; r < members; ++r) {
    parts.push_back(subfed::draw(whole.net, scheme, {.client = r}));
    for (std::size_t t = 0; t < 3; ++t) {
      subfed::slice(whole.views()[t], parts[r][subfed::tensor_id(t)], own[r].views()[t]);
    }
  }
  for (std::uint64_t round = 0; round < 4; ++round) {
    std::vector<std::uint64_t> cohort;
    std::array<std::vector<std::uint64_t>, members> apart;
    for (std::uint64_t client = 0; client < 9; ++client) {
      if (random.one_in(2)) {
        cohort.push_back(client);
        apart[client % members].push_back(client);
      }
    }
    round_of(whole, scheme, cohort, round);
    for (std::size_t r = 0; r < members; ++r) round_of(own[r], everything, apart[r], round);
  }
  // Parameters: the same bits, member by member.
  for (std::size_t r = 0; r < members; ++r) {
    for (std::size_t t = 0; t < 3; ++t) {
      matrix part(own[r].values[t].size());
      subfed::slice(whole.views()[t], parts[r][subfed::tensor_id(t)],
                    tensor_view<double>(part.data(), own[r].net.tensors()[t].extents));
      CHECK(part == own[r].values[t]);
    }
  }
  // Outputs: the server model gives R times the mean, at once for two layers, and for three once
  // the weights between members are cleared.
  const matrix x{0.3, -0.7, 1.1, 0.4};
  const auto mean_of_members = [&](bool three) {
    std::vector<matrix> results;
    std::vector<tensor_view<const double>> views;
    for (const network& m : own) {
      results.push_back(
          forward(m.values[0], three ? m.values[1] : matrix{}, m.values[2], x, outputs));
    }
    for (const matrix& result : results) views.emplace_back(result.data(), std::vector{outputs});
    matrix mean(outputs);
    subfed::average_outputs<double>(views, tensor_view<double>(mean.data(), {outputs}));
    for (std::size_t k = 0; k < outputs; ++k) {
      CHECK(mean[k] == doctest::Approx((results[0][k] + results[1][k] + results[2][k]) / 3));
    }
    return mean;
  };
  const auto server = [&](bool three) {
    return forward(whole.values[0], three ? whole.values[1] : matrix{}, whole.values[2], x,
                   outputs);
  };
  for (std::size_t k = 0; k < outputs; ++k) {
    CHECK(server(false)[k] / members == doctest::Approx(mean_of_members(false)[k]).epsilon(1e-12));
    CHECK(std::fabs(server(true)[k] / members - mean_of_members(true)[k]) > 1e-3);
  }
  const auto cleared = subfed::clear_unheld<double>(whole.net, parts, whole.views());
  CHECK(cleared == wide * wide - members * narrow * narrow);
  for (std::size_t k = 0; k < outputs; ++k) {
    CHECK(server(true)[k] / members == doctest::Approx(mean_of_members(true)[k]).epsilon(1e-12));
  }
}

TEST_CASE("Cheng's average: deltas of random sets over all m clients, times alpha, by hand") {
  // U += (alpha / m) sum of scattered deltas, the sets drawn by the library, the sums here.
  subfed::model net;
  const auto g = net.group("g", 5);
  net.tensor("u", {g});
  std::vector<double> u{1, 2, 3, 4, 5}, expected = u;
  constexpr double alpha = 3;
  constexpr std::uint64_t m = 4;
  std::vector<std::vector<double>> deltas;
  std::vector<subfed::update<double>> updates;
  deltas.reserve(m);
  for (std::uint64_t c = 0; c < m; ++c) {
    const auto sub =
        subfed::draw(net, subfed::random_subset{}, {.seed = 3, .client = c, .capacity = 0.4});
    deltas.push_back({0.5 + static_cast<double>(c), -1});
    std::size_t p = 0;
    for (const std::int64_t node : sub[g]) {
      expected[static_cast<std::size_t>(node)] += alpha / m * deltas.back()[p++];
    }
    updates.push_back({sub, {tensor_view<const double>(deltas.back().data(), {2})}});
  }
  subfed::average_cohort<double>(
      net, updates, {tensor_view<double>(u.data(), {5})},
      {.divide_by = subfed::divisor::cohort, .content = subfed::content::deltas, .step = alpha});
  for (std::size_t n = 0; n < 5; ++n) CHECK(u[n] == doctest::Approx(expected[n]).epsilon(1e-14));
}

TEST_CASE("l_s / l_c keeps the sum over random nodes at its mean, and 1 / beta is HeteroFL's") {
  subfed::model net;
  const auto g = net.group("g", 7);
  double mean = 0;
  constexpr std::uint64_t draws = 2000;
  for (std::uint64_t round = 0; round < draws; ++round) {
    const auto sub =
        subfed::draw(net, subfed::random_subset{}, {.seed = 1, .round = round, .capacity = 0.5});
    CHECK(subfed::width_scale(sub, g) == 7.0 / 3);
    double sum = 0;
    for (const std::int64_t node : sub[g]) sum += static_cast<double>(node);
    mean += subfed::width_scale(sub, g) * sum / draws;
  }
  CHECK(std::fabs(mean - 21) < 0.6);  // 0 + 1 + .. + 6
  CHECK(subfed::scaler(0.25) == 4);
}

TEST_CASE("what does not fit is refused by name") {
  subfed::model net;
  const auto g = net.group("g", 5);
  net.tensor("x", {g});
  CHECK(message_of([&] { subfed::draw(net, member_nodes{{2}}, {}); }) ==
        "subfed: ensemble: group 'g' has 5 nodes, which 2 members do not divide");
  CHECK(message_of([&] { subfed::draw(net, member_nodes{{0}}, {}); }) ==
        "subfed: ensemble: 0 members, expected at least 1");
  CHECK(message_of([&] { subfed::width_scale(submodel(net, {index_set(5, {})}), g); }) ==
        "subfed: width_scale: no node of group 'g' is held");
  matrix values(5, 2.0);
  const tensor_view<double> view(values.data(), {5});
  CHECK(message_of([&] { subfed::average_outputs<double>({}, view); }) ==
        "subfed: average_outputs: there is no member");
  const tensor_view<const double> shorter(values.data(), {4});
  CHECK(message_of([&] { subfed::average_outputs<double>({shorter}, view); }) ==
        "subfed: average_outputs: the output tensor 'of member 0' has shape (4,), expected (5,)");
  subfed::model other;
  CHECK(message_of([&] {
          subfed::clear_unheld<double>(net, std::vector{submodel::full(other)}, {view});
        }) == "subfed: clear_unheld: the submodel of client 0 is of another model");
  CHECK(values == matrix(5, 2.0));
}

TEST_CASE("the mean of very large outputs is finite") {
  constexpr double most = (std::numeric_limits<double>::max)();
  const matrix first{most, 1, -most, most}, second{most, 3, -most, -most};
  matrix mean(4, 0.0);
  const auto view = [](const matrix& m) { return tensor_view<const double>(m.data(), {4}); };
  subfed::average_outputs<double>({view(first), view(second)},
                                  tensor_view<double>(mean.data(), {4}));
  CHECK(mean == matrix{most, 2, -most, 0});
}

TEST_CASE("drawn members are the golden ones") {
  for (const golden_member& row : golden) {
    const auto by = row.by == "per_client" ? ensemble_members::assignment::per_client
                                           : ensemble_members::assignment::per_round;
    CHECK(ensemble_members{row.members, by}.of(row.seed, row.round, row.client) == row.member);
  }
}

TEST_CASE("what is no parameter is not cleared: a variance of 0 would divide by 0") {
  subfed::model net;
  const auto g = net.group("g", 4);
  net.tensor("w", {g});
  net.tensor("variance", {g}, subfed::role::statistic);
  net.tensor("own", {g}, subfed::role::local);
  matrix w(4, 2.0), variance(4, 3.0), own(4, 5.0);
  const std::vector members_of{subfed::draw(net, member_nodes{{2}}, {.client = 1})};
  CHECK(subfed::clear_unheld<double>(
            net, members_of,
            {tensor_view<double>(w.data(), {4}), tensor_view<double>(variance.data(), {4}),
             tensor_view<double>(own.data(), {4})}) == 2);
  CHECK(w == matrix{0, 0, 2, 2});
  CHECK(variance == matrix(4, 3.0));
  CHECK(own == matrix(4, 5.0));
}

TEST_CASE("the mean of outputs that are -0 is -0, as in averages") {
  const float a = -0.0f, b = 0.0f;
  float mean = 1;
  const tensor_view<const float> minus(&a, {1}), plus(&b, {1});
  subfed::average_outputs<float>({minus, minus}, tensor_view<float>(&mean, {1}));
  CHECK(std::signbit(mean));
  subfed::average_outputs<float>({minus, plus}, tensor_view<float>(&mean, {1}));
  CHECK_FALSE(std::signbit(mean));
}
