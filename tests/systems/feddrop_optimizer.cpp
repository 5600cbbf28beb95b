// SPDX-License-Identifier: MIT
#include <subfed/systems/feddrop_optimizer.hpp>

#include <support/checks.hpp>
#include <support/views.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

using subfed::expected_flops;
using subfed::flops_budget;
using subfed::keep_optimizer_options;
using subfed::keep_probabilities;
using subfed::keep_stop;
using subfed::trajectory_similarity;
using support::message_of;

namespace {

/// Layers of the given widths one after the other, 3 inputs and 2 outputs; a multiply-add costs 1.
struct chain {
  subfed::model net;
  std::vector<std::int64_t> widths;
  std::vector<subfed::weight_and_bias> layers;

  explicit chain(std::vector<std::int64_t> w) : widths(std::move(w)) {
    subfed::dimension in = 3;
    for (std::size_t l = 0; l < widths.size(); ++l) {
      const auto out = net.group("g" + std::to_string(l), widths[l]);
      layers.push_back(
          linear(net, "l" + std::to_string(l), {.in = in, .out = out, .bias = subfed::bias::none}));
      in = out;
    }
    layers.push_back(linear(net, "last", {.in = in, .out = 2, .bias = subfed::bias::none}));
  }
  flops_budget budget(double ratio) const {
    subfed::workload work(net);
    for (const auto& layer : layers) work.linear(layer);
    return {expected_flops(net, work, subfed::cost_rule::multiply_adds()), ratio};
  }
  /// g(q) written out; q has the clients of a node in a row.
  double slack(std::span<const double> q, std::size_t clients, double ratio) const {
    double mean = 0, dense = 0;
    for (std::size_t c = 0; c <= clients; ++c) {  // the last: everything kept
      double in = 3, cost = 0;
      std::size_t node = 0;
      for (const std::int64_t width : widths) {
        double out = 0;
        for (std::int64_t n = 0; n < width; ++n, ++node) {
          out += c == clients ? 1 : q[node * clients + c];
        }
        cost += in * out;
        in = out;
      }
      cost += in * 2;
      (c == clients ? dense : mean) += cost;
    }
    return ratio - mean / (static_cast<double>(clients) * dense);
  }
};

double objective(const trajectory_similarity& s, std::span<const double> q) {
  const std::size_t count = s.clients();
  double sum = 0;
  for (std::size_t n = 0; n < s.nodes(); ++n) {
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j < count; ++j) {
        sum += s(n, i, j) / (std::max)(q[n * count + i], q[n * count + j]);
      }
    }
  }
  return sum;
}

std::vector<double> in_rows(const std::vector<keep_probabilities>& clients) {
  std::vector<double> q;
  for (std::size_t n = 0; n < clients[0].values().size(); ++n) {
    for (const auto& keep : clients) q.push_back(keep.values()[n]);
  }
  return q;
}

/// Sum of outer products, as gradients give it.
trajectory_similarity similar(support::seeded& random, std::size_t nodes, std::size_t count) {
  trajectory_similarity s(nodes, count);
  for (std::size_t n = 0; n < nodes; ++n) {
    for (int term = 0; term < 3; ++term) {
      std::vector<double> x(count);
      for (double& v : x) v = 2 * random.unit() - 0.7;
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j <= i; ++j) s(n, i, j) += x[i] * x[j];
      }
    }
  }
  return s;
}

/// Tries all points of a grid around `centre`, narrowing it, and returns the least of Eq. 8.
double brute_force(const chain& net, const trajectory_similarity& s, double ratio, double mu,
                   double smallest, int points) {
  const std::size_t size = s.nodes() * s.clients();
  std::vector<double> centre(size, (1 + smallest) / 2), best = centre;
  double least = std::numeric_limits<double>::infinity();
  double half = (1 - smallest) / 2;
  for (int level = 0; level < 22; ++level) {
    std::vector<int> at(size, 0);
    while (true) {
      std::vector<double> q(size);
      for (std::size_t k = 0; k < size; ++k) {
        q[k] = centre[k] + half * (2.0 * at[k] / (points - 1) - 1);
        q[k] = (std::min)(1.0, (std::max)(smallest, q[k]));
      }
      const double g = net.slack(q, s.clients(), ratio);
      if (g > 0) {
        const double value = objective(s, q) - mu * std::log(g);
        if (value < least) least = value, best = q;
      }
      std::size_t k = 0;
      while (k < size && ++at[k] == points) at[k++] = 0;
      if (k == size) break;
    }
    centre = best;
    half *= 0.6;
  }
  return least;
}

/// The least that random searches from random points find: small changes of everything, of one
/// value, of some clients of a node together, or of two against each other, kept where they gain.
double restarts(const chain& net, const trajectory_similarity& s, double ratio, double mu,
                support::seeded& random) {
  const std::size_t count = s.clients(), size = s.nodes() * count;
  const auto at_most = [&](std::size_t n) {
    return static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(n) - 1));
  };
  const auto inside = [](std::vector<double>& q) {
    for (double& p : q) p = (std::min)(1.0, (std::max)(0.01, p));
  };
  const auto penalised = [&](std::span<const double> q) {
    const double g = net.slack(q, count, ratio);
    return g > 0 ? objective(s, q) - mu * std::log(g) : std::numeric_limits<double>::infinity();
  };
  double least = std::numeric_limits<double>::infinity();
  for (int start = 0; start < 12; ++start) {
    std::vector<double> q(size), x;
    double now = std::numeric_limits<double>::infinity();
    while (!(now < std::numeric_limits<double>::infinity())) {
      const double most = 2 * random.unit();
      for (double& p : q) p = most * random.unit();
      inside(q);
      now = penalised(q);
    }
    double far = 0.3;
    for (int trial = 0; trial < 1200 && far > 1e-5; ++trial) {
      x = q;
      const auto change = [&] { return far * (2 * random.unit() - 1); };
      const auto kind = random.between(0, 3);
      if (kind == 0) {
        for (double& p : x) p += change();
      } else if (kind == 1) {
        x[at_most(size)] += change();
      } else if (kind == 2) {
        const std::size_t n = at_most(s.nodes());
        const double by = change();
        for (std::size_t c = 0; c < count; ++c) x[n * count + c] += random.one_in(2) ? by : 0;
      } else {
        const double by = change();
        x[at_most(size)] += by;
        x[at_most(size)] -= by * (0.5 + random.unit());
      }
      inside(x);
      const double value = penalised(x);
      if (value < now) {
        now = value;
        q = x;
        far = (std::min)(0.3, far * 1.5);
      } else {
        far *= 0.98;
      }
    }
    least = (std::min)(least, now);
  }
  return least;
}

/// The least of Eq. 7 for one node whose probabilities are to have the mean `ratio` and do not rise
/// along `order`: q = k sqrt(a) within [smallest, 1], neighbours that would rise put together.
double along(const trajectory_similarity& s, const std::vector<std::size_t>& order, double ratio,
             double smallest) {
  std::vector<std::pair<double, double>> pools;  // sum of a, clients
  for (std::size_t k = 0; k < order.size(); ++k) {
    std::pair<double, double> own(s(0, order[k], order[k]), 1);
    for (std::size_t l = k + 1; l < order.size(); ++l) own.first += 2 * s(0, order[k], order[l]);
    for (; !pools.empty() && pools.back().first * own.second <= own.first * pools.back().second;
         pools.pop_back()) {
      own.first += pools.back().first, own.second += pools.back().second;
    }
    pools.push_back(own);
  }
  const auto at = [&](double k, const std::pair<double, double>& pool) {
    const double root = std::sqrt((std::max)(0.0, pool.first / pool.second));
    return (std::min)(1.0, (std::max)(smallest, k * root));
  };
  double low = 0, high = 1e6;
  for (int i = 0; i < 80; ++i) {
    double sum = 0;
    for (const auto& pool : pools) sum += pool.second * at((low + high) / 2, pool);
    (sum > ratio * static_cast<double>(order.size()) ? high : low) = (low + high) / 2;
  }
  double value = 0;
  for (const auto& pool : pools) value += pool.first / at(low, pool);
  return value;
}

/// The least of Eq. 7 over orders that taking one client elsewhere finds from random orders.
double best_order(const trajectory_similarity& s, double ratio, double smallest,
                  support::seeded& random, int tries) {
  double least = std::numeric_limits<double>::infinity();
  for (int start = 0; start < tries; ++start) {
    std::vector<std::size_t> order;
    for (std::size_t c = 0; c < s.clients(); ++c) {
      order.insert(order.begin() + random.between(0, static_cast<std::int64_t>(c)), c);
    }
    double now = along(s, order, ratio, smallest);
    for (bool gained = true; gained;) {
      gained = false;
      for (std::size_t from = 0; from < order.size(); ++from) {
        for (std::size_t to = 0; to < order.size(); ++to) {
          auto other = order;
          other.erase(other.begin() + static_cast<std::ptrdiff_t>(from));
          other.insert(other.begin() + static_cast<std::ptrdiff_t>(to), order[from]);
          const double value = along(s, other, ratio, smallest);
          if (value < now * (1 - 1e-9)) now = value, order = other, gained = true;
        }
      }
    }
    least = (std::min)(least, now);
  }
  return least;
}

}  // namespace

TEST_CASE("every step is feasible, within bounds, and the best of them is returned and reported") {
  support::seeded random(41);
  for (int trial = 0; trial < 8; ++trial) {
    const chain net({random.between(1, 6), random.between(1, 7)});
    const auto nodes = static_cast<std::size_t>(net.widths[0] + net.widths[1]);
    const auto count = static_cast<std::size_t>(random.between(1, 5));
    const double ratio = 0.2 + 0.6 * random.unit();
    const auto s = similar(random, nodes, count);
    const auto budget = net.budget(ratio);
    std::vector<keep_probabilities> clients(count,
                                            keep_probabilities(net.net, budget.constant_start()));
    const double start = objective(s, in_rows(clients));
    const keep_optimizer_options options{.iterations = 150};
    std::int64_t seen = 0;
    double least = std::numeric_limits<double>::infinity();
    const auto report = subfed::optimize_keep(
        s, budget, clients, options, [&](std::int64_t iteration, std::span<const double> q) {
          CHECK(iteration == ++seen);
          const double g = net.slack(q, count, ratio);
          CHECK(g > 0);
          least = (std::min)(least, objective(s, q) - options.barrier * std::log(g));
          for (const double p : q) CHECK((p >= options.smallest && p <= 1));
        });
    const auto q = in_rows(clients);
    CHECK(report.iterations == seen);
    CHECK(report.objective == doctest::Approx(objective(s, q)).epsilon(1e-12));
    CHECK(report.slack == doctest::Approx(net.slack(q, count, ratio)).epsilon(1e-9));
    CHECK(report.slack > 0);
    CHECK(report.penalised == doctest::Approx(least).epsilon(1e-6));
    CHECK(report.objective <= start * 1.002);     // the start had g = 0, which is not allowed here
    CHECK(report.objective >= s.total() - 1e-9);  // Theorem 3
  }
}

TEST_CASE("it stops on the tolerance, or on the limit of iterations, and says which") {
  support::seeded random(5);
  const chain net({4, 2});  // in one layer the cost is linear: settled at once
  const auto s = similar(random, 6, 3);
  const auto budget = net.budget(0.5);
  const auto run = [&](const keep_optimizer_options& options) {
    std::vector<keep_probabilities> clients(3, keep_probabilities(net.net, 0.3));
    return subfed::optimize_keep(s, budget, clients, options);
  };
  const auto loose = run({.tolerance = 0.05});
  const auto fine = run({.tolerance = 1e-12});
  CHECK(loose.stopped == keep_stop::tolerance);
  CHECK(fine.stopped == keep_stop::tolerance);
  CHECK(loose.iterations < fine.iterations);
  CHECK(fine.penalised <= loose.penalised);
  const auto short_run = run({.iterations = 3});
  CHECK(short_run.stopped == keep_stop::iterations);
  CHECK(short_run.iterations == 3);
  CHECK(run({.iterations = 0}).iterations == 0);
}

TEST_CASE("without common trajectories the answer is q ~ sqrt(S): water filling") {
  // One node a client; cost 3 q + 2 q, g = r - mean q. minimise sum s / q: q = r C sqrt(s) / sum.
  const chain net({1});
  const auto budget = net.budget(0.4);
  trajectory_similarity s(1, 3);
  const double own[] = {1, 4, 9};
  for (std::size_t i = 0; i < 3; ++i) s(0, i, i) = own[i];
  std::vector<keep_probabilities> clients(3, keep_probabilities(net.net, 0.4));
  subfed::optimize_keep(s, budget, clients, {.barrier = 1e-9, .tolerance = 1e-8});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(clients[i].values()[0] == doctest::Approx(0.4 * 3 * std::sqrt(own[i]) / 6).epsilon(1e-4));
  }
}

TEST_CASE("tiny cases: as good as trying every grid point, where clients disagree (convex)") {
  support::seeded random(77);
  for (int trial = 0; trial < 6; ++trial) {
    const chain net({trial % 2 == 0 ? 1 : 2});
    const auto nodes = static_cast<std::size_t>(net.widths[0]);
    const std::size_t count = trial % 2 == 0 ? 3 : 2;
    trajectory_similarity s(nodes, count);
    for (std::size_t n = 0; n < nodes; ++n) {
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t j = 0; j < i; ++j) s(n, i, j) = -0.4 * random.unit();
        s(n, i, i) = 1 + random.unit();
      }
    }
    const double ratio = 0.3 + 0.4 * random.unit(), mu = 1e-2;
    std::vector<keep_probabilities> clients(count, keep_probabilities(net.net, ratio));
    const auto report = subfed::optimize_keep(
        s, net.budget(ratio), clients, {.barrier = mu, .iterations = 400, .tolerance = 1e-7});
    const double least = brute_force(net, s, ratio, mu, 0.01, 5);
    CHECK(report.penalised == doctest::Approx(least).epsilon(2e-3));
  }
}

TEST_CASE("tiny cases: nothing near is better, and the grid finds little better far away") {
  support::seeded random(78);
  for (int trial = 0; trial < 8; ++trial) {
    const chain net({2});
    const auto s = similar(random, 2, 2);
    const double ratio = 0.3 + 0.4 * random.unit(), mu = 1e-2;
    std::vector<keep_probabilities> clients(2, keep_probabilities(net.net, ratio));
    const auto report = subfed::optimize_keep(
        s, net.budget(ratio), clients, {.barrier = mu, .iterations = 400, .tolerance = 1e-7});
    CHECK(report.penalised <= brute_force(net, s, ratio, mu, 0.01, 5) * 1.05);
    const auto q = in_rows(clients);
    for (int other = 0; other < 400; ++other) {
      std::vector<double> near = q;
      for (double& p : near) {
        p = (std::min)(1.0, (std::max)(0.01, p + 0.01 * (2 * random.unit() - 1)));
      }
      const double g = net.slack(near, 2, ratio);
      if (g > 0) {
        CHECK(objective(s, near) - mu * std::log(g) >= report.penalised * (1 - 1e-3));
      }
    }
  }
}

TEST_CASE("clients that agree about a node keep it more, clients that disagree less") {
  // Node 0: the same update; node 1: nothing in common; node 2: opposite updates.
  const chain net({3});
  trajectory_similarity s(3, 2);
  const double common[] = {0.9, 0, -0.9};
  for (std::size_t n = 0; n < 3; ++n) {
    s(n, 0, 0) = 1;
    s(n, 1, 1) = 1.1;
    s(n, 0, 1) = common[n];
  }
  std::vector<keep_probabilities> clients(2, keep_probabilities(net.net, 0.4));
  subfed::optimize_keep(s, net.budget(0.4), clients);
  double kept[3];
  for (std::size_t n = 0; n < 3; ++n) kept[n] = clients[0].values()[n] + clients[1].values()[n];
  CHECK(kept[0] > kept[1] + 0.05);
  CHECK(kept[1] > kept[2] + 0.05);
}

TEST_CASE("a larger budget is used, and clients that are alike get the same") {
  support::seeded random(9);
  const chain net({5, 4});
  trajectory_similarity s = similar(random, 9, 3);
  for (std::size_t n = 0; n < 9; ++n) {  // client 2 is client 1 again
    s(n, 2, 0) = s(n, 1, 0);
    s(n, 2, 1) = s(n, 2, 2) = s(n, 1, 1);
  }
  double before = std::numeric_limits<double>::infinity();
  for (const double ratio : {0.1, 0.3, 0.6, 0.9}) {
    std::vector<keep_probabilities> clients(3, keep_probabilities(net.net, 0.5));
    const auto report = subfed::optimize_keep(s, net.budget(ratio), clients);
    CHECK(report.objective < before);
    before = report.objective;
    for (std::size_t n = 0; n < 9; ++n) {
      CHECK(clients[1].values()[n] == clients[2].values()[n]);
    }
  }
}

TEST_CASE("the coefficients by order are those of the sum over all pairs, whatever changes") {
  support::seeded random(3);
  for (int trial = 0; trial < 300; ++trial) {
    const auto count = static_cast<std::size_t>(random.between(1, 8));
    std::vector<float> square(count * count);
    std::vector<double> q(count, 1.0), a(count);
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        square[i * count + j] = square[j * count + i] = static_cast<float>(2 * random.unit() - 1);
      }
    }
    std::vector<std::uint32_t> order(count);
    const subfed::detail::probability_order state{square.data(), order, a};
    state.build(q.data());
    for (int step = 0; step < 8; ++step) {
      for (double& p : q) {  // quarters, so that many are equal
        if (random.one_in(2)) p = static_cast<double>(random.between(1, 4)) / 4;
      }
      state.update(q.data());
      for (std::size_t i = 0; i < count; ++i) {
        double expected = state.similarity(i, i);
        bool behind = false;
        for (const std::uint32_t j : order) {
          if (behind) expected += 2 * state.similarity(i, j);
          if (j == i) behind = true;
        }
        CHECK(std::fabs(a[i] - expected) < 1e-13);
      }
      for (std::size_t k = 1; k < count; ++k) CHECK(q[order[k - 1]] >= q[order[k]]);
    }
  }
}

TEST_CASE("within 0.1 % of what random restarts find: clients part at ties, and change places") {
  support::seeded random(2024);
  int parted = 0;
  for (int trial = 0; trial < 120; ++trial) {
    const chain net(trial % 4 == 0   ? std::vector<std::int64_t>{1}
                    : trial % 4 == 1 ? std::vector<std::int64_t>{2}
                    : trial % 4 == 2 ? std::vector<std::int64_t>{1, 1}
                                     : std::vector<std::int64_t>{2, 1});
    const std::size_t nodes = trial % 4 == 0 ? 1 : trial % 4 == 3 ? 3 : 2;
    const auto count = static_cast<std::size_t>(nodes == 1   ? random.between(2, 4)
                                                : nodes == 2 ? random.between(2, 3)
                                                             : 2);
    trajectory_similarity s(nodes, count);
    for (std::size_t n = 0; n < nodes; ++n) {
      for (int term = 0; term < 1 + trial / 4 % 3; ++term) {
        std::vector<double> x(count);
        for (double& v : x) v = 2 * random.unit() - 0.7;
        for (std::size_t i = 0; i < count; ++i) {
          for (std::size_t j = 0; j <= i; ++j) s(n, i, j) += x[i] * x[j];
        }
      }
    }
    const double ratio = 0.2 + 0.6 * random.unit(), mu = trial % 3 == 0 ? 1e-2 : 1e-4;
    const auto budget = net.budget(ratio);
    std::vector<keep_probabilities> clients(count,
                                            keep_probabilities(net.net, budget.constant_start()));
    const auto report = subfed::optimize_keep(s, budget, clients, {.barrier = mu});
    const double least = restarts(net, s, ratio, mu, random);
    CHECK_MESSAGE(report.penalised <= least + 1e-3 * std::fabs(least), trial);
    parted += clients[0].values()[0] != clients[1].values()[0] ? 1 : 0;
  }
  CHECK(parted > 60);
}

TEST_CASE("two clients at a kink: the worked example parts them") {
  // S = (1, b; b, 1.1), b = 0.9: with equal q the least of Eq. 7 is 3.9 / r; apart, q2 in front,
  // (sqrt(1.1 + 2 b) + sqrt(1))^2 / (2 r).
  const chain net({1});
  trajectory_similarity s(1, 2);
  s(0, 0, 0) = 1, s(0, 1, 1) = 1.1, s(0, 1, 0) = 0.9;
  std::vector<keep_probabilities> clients(2, keep_probabilities(net.net, 0.4));
  const auto report =
      subfed::optimize_keep(s, net.budget(0.4), clients, {.barrier = 1e-9, .tolerance = 1e-8});
  const double apart = std::sqrt(2.9) + 1;
  CHECK(report.objective == doctest::Approx(apart * apart / 0.8).epsilon(1e-4));
  CHECK(clients[1].values()[0] == doctest::Approx(0.8 * std::sqrt(2.9) / apart).epsilon(1e-3));
}

/// S_ij = b for twenty clients of one node: the client at place k of the order has
/// a = S_ii + 2 b (19 - k), the least of Eq. 7 along it is (sum sqrt a)^2 / (20 r), and that is
/// least where S_ii falls along the order, since the root is concave.
struct twenty_clients {
  static constexpr std::size_t count = 20;
  double b, apart;
  std::vector<double> falling;  ///< S_ii

  twenty_clients(double pair, double own) : b(pair), apart(own) {
    for (std::size_t k = 0; k < count; ++k)
      falling.push_back(1 + apart * static_cast<double>(count - 1 - k));
  }
  double root(std::size_t k) const {
    return std::sqrt(falling[k] + 2 * b * static_cast<double>(count - 1 - k));
  }
  double roots() const {
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) sum += root(k);
    return sum;
  }
  /// Client i is at place at(i) of the best order.
  template <class At>
  trajectory_similarity similarity(At at) const {
    trajectory_similarity s(1, count);
    for (std::size_t i = 0; i < count; ++i) {
      s(0, i, i) = falling[at(i)];
      for (std::size_t j = 0; j < i; ++j) s(0, i, j) = b;
    }
    return s;
  }
};

TEST_CASE("twenty clients that start equal part in the best order, wherever they start") {
  const twenty_clients those(0.05, 0.03);
  const auto at = [](std::size_t i) { return 7 * i % 20; };
  const auto s = those.similarity(at);
  const double ratio = 0.4;
  const chain net({1});
  for (const double start : {ratio, 0.01, 1.0}) {
    std::vector<keep_probabilities> clients(20, keep_probabilities(net.net, start));
    const auto report = subfed::optimize_keep(
        s, net.budget(ratio), clients, {.barrier = 1e-9, .iterations = 400, .tolerance = 1e-7});
    const double least = those.roots() * those.roots() / (20 * ratio);
    CHECK(report.objective == doctest::Approx(least).epsilon(1e-5));
    for (std::size_t i = 0; i < 20; ++i) {
      const double q = 20 * ratio * those.root(at(i)) / those.roots();
      CHECK(clients[i].values()[0] == doctest::Approx(q).epsilon(1e-3));
    }
  }
}

TEST_CASE("twenty clients of which neighbours stand the wrong way round change places") {
  const twenty_clients those(0.5, 0.4);
  const auto s = those.similarity([](std::size_t i) { return i ^ 1; });
  const double ratio = 0.4;
  const chain net({1});
  std::vector<keep_probabilities> clients(20, keep_probabilities(net.net, ratio));
  for (std::size_t i = 0; i < 20; ++i) {
    // The least along the wrong order, which no step leaves.
    const double root = std::sqrt(those.falling[i ^ 1] + 2 * those.b * static_cast<double>(19 - i));
    clients[i].assign(std::vector<double>{20 * ratio * root / those.roots()});
  }
  const auto report = subfed::optimize_keep(s, net.budget(ratio), clients, {.barrier = 1e-9});
  const double least = those.roots() * those.roots() / (20 * ratio);
  CHECK(report.objective < least * (1 + 1e-4));
}

TEST_CASE("many clients: a few percent from what a search through their orders finds") {
  support::seeded random(1717);
  double worst = 0, sum = 0;
  for (int trial = 0; trial < 12; ++trial) {
    const auto count = static_cast<std::size_t>(random.between(17, 20));
    const chain net({1});
    const auto s = similar(random, 1, count);
    const double ratio = 0.2 + 0.5 * random.unit();
    const double least = best_order(s, ratio, 0.01, random, 2);
    for (const double start : {ratio, 0.01}) {
      std::vector<keep_probabilities> clients(count, keep_probabilities(net.net, start));
      const auto report = subfed::optimize_keep(s, net.budget(ratio), clients, {.barrier = 1e-9});
      sum += report.objective / least - 1;
      worst = (std::max)(worst, report.objective / least - 1);
    }
  }
  CHECK(worst < 0.2);
  CHECK(sum / 24 < 0.05);
}

TEST_CASE("its logarithm is the logarithm") {
  support::seeded random(6);
  CHECK(subfed::detail::portable_log(1) == 0);
  for (int trial = 0; trial < 1000; ++trial) {
    const double x = std::ldexp(0.5 + random.unit(), static_cast<int>(random.between(-1000, 900)));
    CHECK(subfed::detail::portable_log(x) == doctest::Approx(std::log(x)).epsilon(1e-14));
  }
}

TEST_CASE(
    "finite input gives finite probabilities: huge, tiny and zero S, budgets of 1 and little") {
  support::seeded random(12);
  const chain net({3, 2});
  const auto plain = similar(random, 5, 3);
  for (const double size : {1.0, 0x1p300, 0x1p900, 0x1p-300, 0x1p-1000, 0.0}) {
    for (const double ratio : {1.0, 0.5, 0.02}) {
      trajectory_similarity s = plain;
      s.scale(size);
      std::vector<keep_probabilities> clients(3, keep_probabilities(net.net, 1));
      const auto report = subfed::optimize_keep(s, net.budget(ratio), clients);
      for (const double x : {report.objective, report.penalised, report.slack}) {
        CHECK(std::isfinite(x));
      }
      CHECK(report.slack > 0);
      for (const double p : in_rows(clients)) CHECK((p >= 0.01 && p <= 1));
    }
  }
  std::vector<keep_probabilities> clients(3, keep_probabilities(net.net, 0.25));
  for (const double bad : {0x1p1020, std::numeric_limits<double>::quiet_NaN()}) {
    trajectory_similarity s = plain;
    s(0, 1, 0) = bad;
    CHECK(message_of([&] { subfed::optimize_keep(s, net.budget(0.5), clients); }) ==
          "subfed: optimize_keep: a similarity is not finite, or they are so large that the "
          "objective is not");
  }
  CHECK(clients[0].values()[0] == 0.25);
}

TEST_CASE("what does not fit is refused by name, and probabilities stay as they were") {
  const chain net({3});
  const trajectory_similarity s(3, 2);
  const auto budget = net.budget(0.3);
  std::vector<keep_probabilities> clients(2, keep_probabilities(net.net, 0.5));
  const auto refused = [&](const keep_optimizer_options& options) {
    return message_of([&] { subfed::optimize_keep(s, budget, clients, options); });
  };
  CHECK(refused({.barrier = 0}) ==
        "subfed: optimize_keep: the barrier is 0, expected a positive number");
  CHECK(refused({.step = std::numeric_limits<double>::infinity()}).find("the step is inf") !=
        std::string::npos);
  CHECK(refused({.smallest = 0}) ==
        "subfed: optimize_keep: the smallest keep probability is 0, expected in (0, 1]");
  CHECK(refused({.iterations = -1}) == "subfed: optimize_keep: -1 iterations");
  CHECK(refused({.smallest = 0.5}) ==
        "subfed: optimize_keep: with all keep probabilities at the smallest, 0.5, the clients cost "
        "0.5 of the model, which is not below the ratio 0.3");
  CHECK(message_of([&] { subfed::optimize_keep(s, budget, std::span(clients).first(1)); }) ==
        "subfed: optimize_keep: 1 clients are given, expected 2 as in the similarity, and at "
        "least 1");
  const chain other({4});
  std::vector<keep_probabilities> foreign(2, keep_probabilities(other.net, 0.5));
  CHECK(message_of([&] {
          subfed::optimize_keep(s, budget, foreign);
        }).find("are of another model than the budget or the similarity") != std::string::npos);
  CHECK(clients[0].values()[0] == 0.5);
}
