// SPDX-License-Identifier: MIT
/// Populations, costs, evenness and theory of any numbers: refused, or finite and in their range.
#include <fuzz/fuzz.hpp>
#include <subfed/cost.hpp>
#include <subfed/coverage/cohort_model.hpp>
#include <subfed/coverage/evenness.hpp>
#include <subfed/coverage/theory.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace {

bool is_share(double x) { return x >= 0 && x <= 1 + 1e-9; }

void check_population(fuzz::input& in) {
  subfed::cohort_options options;
  // What would only take memory: a class for each of 2^31 clients.
  options.clients = in.number();
  if (options.clients > 2000 && options.clients <= std::int64_t{1} << 31) options.clients %= 2000;
  options.participation = in.real();
  options.cohort_rounds = in.number();
  options.dropout = in.below(2) == 0 ? 0 : in.real();
  options.seed = in.word();
  if (in.below(2) == 0) options.capacities = subfed::capacity_assignment::redrawn;
  options.mix.classes.resize(static_cast<std::size_t>(in.below(5)));
  for (auto& c : options.mix.classes) c = {subfed::capacity(1.0), in.real()};
  const subfed::cohort_model population(options);
  fuzz::expect(population.asked() >= 1 && population.asked() <= options.clients);
  double shares = 0;
  for (std::size_t c = 0; c < options.mix.classes.size(); ++c) {
    fuzz::expect(is_share(population.share(c)));
    shares += population.share(c);
  }
  fuzz::expect(std::fabs(shares - 1) < 1e-9);
  const std::uint64_t round = in.word();
  const auto members = population.members(round);
  fuzz::expect(static_cast<std::int64_t>(members.size()) <= population.asked());
  for (std::size_t m = 0; m < members.size(); ++m) {
    fuzz::expect(members[m].client < static_cast<std::uint64_t>(options.clients));
    fuzz::expect(m == 0 || members[m - 1].client < members[m].client);
    fuzz::expect(members[m].client_class == population.class_of(members[m].client, round));
    fuzz::expect(members[m].client_class < options.mix.classes.size());
  }
  fuzz::expect(population.members(round) == members);
}

void check_cost(fuzz::input& in) {
  subfed::model net;
  const auto a = net.group("a", in.number());
  const auto b = net.group("b", in.below(5), subfed::cut::never);
  const auto w = net.tensor("w", {subfed::dimension(a).block(1 + in.below(4)), b},
                            static_cast<subfed::role>(in.below(4)));
  const auto v = net.tensor("v", {a, in.number()});
  const subfed::submodel part = subfed::submodel::full(net);
  subfed::workload work(net);
  work.convolution({w, v}, in.number()).linear({v, {}}, in.number());
  const std::int64_t places = in.number();
  work.transposed_convolution({w, v}, places, in.number());
  work.attention(a, in.number()).normalization(b, in.number()).pooling(a, in.number());
  subfed::cost_rule rule;
  for (std::int64_t* each : {&rule.convolution, &rule.linear, &rule.bias, &rule.attention,
                             &rule.normalization, &rule.pooling, &rule.elementwise}) {
    *each = in.number();
  }
  fuzz::refused([&] { fuzz::expect(work.count(part, rule) >= 0); });
  fuzz::refused([&] { fuzz::expect(work.features(part) >= 0); });
  fuzz::refused([&] {
    const std::vector<std::int64_t> sizes{in.number(), in.number()};
    subfed::traffic_options options;
    options.lists = static_cast<subfed::index_lists>(in.below(3));
    options.element_bytes = in.number();
    options.index_bytes = in.number();
    if (in.below(2) == 0) options.tensor_element_bytes = sizes;
    const subfed::traffic_bytes bytes = subfed::traffic(part, options);
    fuzz::expect(bytes.down >= 0 && bytes.up >= 0);
  });
  fuzz::refused([&] { fuzz::expect(subfed::parameters(part) >= 0); });
}

void check_evenness(fuzz::input& in) {
  subfed::count_histogram histogram;
  for (std::int64_t n = in.below(6); n > 0; --n) {
    const std::int64_t times = in.number();
    histogram[times] = in.number();
  }
  const subfed::evenness e = subfed::evenness_of(histogram);
  fuzz::expect(e.items >= 0 && e.min <= e.max && std::isfinite(e.mean) && e.variance >= 0);
  fuzz::expect(std::isfinite(e.variance) && is_share(e.unseen_share));
  fuzz::expect(e.gini >= -1e-9 && is_share(e.gini) && e.entropy >= -1e-9 && is_share(e.entropy));
  fuzz::expect(e.mean >= static_cast<double>(e.min) * (1 - 1e-12));
  fuzz::expect(e.mean <= static_cast<double>(e.max) * (1 + 1e-12));
  std::int64_t items = 0;
  for (const auto& [times, some] : histogram) items += some < 100 ? some : 1000;
  if (items >= 1000) return;
  std::vector<std::int64_t> counts;
  for (const auto& [times, some] : histogram) {
    counts.insert(counts.end(), static_cast<std::size_t>(some), times);
  }
  const subfed::evenness listed = subfed::evenness_of(counts);
  fuzz::expect(listed.items == e.items && listed.gini == e.gini && listed.mean == e.mean);
}

/// Sizes that a test can wait for: costs grow with them as their comments say.
std::int64_t some(fuzz::input& in, std::int64_t most) {
  const std::int64_t n = in.number();
  return n > most ? n % most : n;
}

void check_rounds(fuzz::input& in) {
  const std::int64_t extent = some(in, 40);
  std::vector<subfed::kept_share> mix(static_cast<std::size_t>(in.below(4)));
  double left = 1;
  for (std::size_t i = 0; i < mix.size(); ++i) {
    mix[i].kept = some(in, 50);
    mix[i].share = i + 1 == mix.size() ? left : in.real();
    left -= mix[i].share;
  }
  const std::int64_t clients = some(in, 4);
  const auto round = subfed::random_round::drawn(extent, clients, mix);
  const std::int64_t rounds = in.number();
  fuzz::refused([&] { fuzz::expect(is_share(subfed::unseen_probability(round, rounds))); });
  fuzz::refused([&] {
    for (const double p : subfed::held_probabilities(round, some(in, 50), some(in, 50))) {
      fuzz::expect(is_share(p));
    }
  });
  fuzz::refused([&] {
    const auto expected = subfed::random_counts(round, rounds > 10000 ? rounds % 10000 : rounds);
    fuzz::expect(std::isfinite(expected.mean) && expected.variance >= 0);
    fuzz::expect(is_share(expected.unseen_share) && is_share(expected.gini));
  });
  fuzz::refused([&] {
    for (const double p : subfed::window_unseen_probabilities(round, in.number(), rounds)) {
      fuzz::expect(is_share(p));
    }
  });
  fuzz::refused([&] {
    const std::vector<subfed::random_round> dimensions{round, round};
    fuzz::expect(is_share(subfed::unseen_parameter_probability(dimensions, rounds)));
  });
  // Covers by clients that nearly never hold a node take as many rounds as that.
  double held = 0;
  for (const auto& m : mix) held += m.share * static_cast<double>(m.kept > 0);
  if (clients < 1 || held < 0.05) return;
  fuzz::refused([&] {
    const auto m = subfed::first_cover_moments(round);
    fuzz::expect(m.mean >= 1 - 1e-9 && std::isfinite(m.mean) && std::isfinite(m.variance));
  });
  fuzz::refused([&] {
    const auto cover = subfed::first_cover(round, 1 + in.below(2));
    for (const double p : cover.beyond) fuzz::expect(is_share(p));
  });
  fuzz::refused([&] {
    const auto bounds = subfed::first_cover_bounds(round, some(in, 6));
    fuzz::expect(bounds.mean_at_least <= bounds.mean_at_most * (1 + 1e-9));
    fuzz::expect(std::isfinite(bounds.mean_at_most));
  });
  fuzz::refused([&] {
    for (const double p : subfed::rolling_first_cover(round).beyond) fuzz::expect(is_share(p));
  });
}

void check_windows(fuzz::input& in) {
  const std::int64_t extent = some(in, 60);
  std::vector<subfed::held_window> windows(static_cast<std::size_t>(in.below(4)));
  for (auto& w : windows) {
    w.kept = some(in, 61);
    w.step = in.number();
    w.phase = in.number();
  }
  const std::int64_t rounds = in.number();
  fuzz::refused([&] {
    // Of few rounds, written out.
    const auto counts = subfed::window_counts(extent, windows, rounds);
    if (rounds > 50) return;
    std::vector<std::int64_t> expected(counts.size());
    const auto wrapped = [&](std::int64_t n) { return ((n % extent) + extent) % extent; };
    for (const auto& w : windows) {
      for (std::int64_t j = 0; j < rounds; ++j) {
        const std::int64_t start = wrapped(wrapped(w.phase) + j * wrapped(w.step));
        for (std::int64_t i = 0; i < w.kept; ++i) {
          ++expected[static_cast<std::size_t>((start + i) % extent)];
        }
      }
    }
    fuzz::expect(counts == expected);
  });
  fuzz::refused([&] {
    const auto first = subfed::window_first_cover(extent, windows, in.number());
    fuzz::expect(!first || *first >= 1);
  });
}

void check_indices(fuzz::input& in) {
  const std::int64_t indices = in.number();
  const std::int64_t times = some(in, 40);
  fuzz::refused([&] {
    const auto m = subfed::rounds_until_chosen(indices, times);
    fuzz::expect(m.mean >= static_cast<double>(indices) * (1 - 1e-9) && std::isfinite(m.mean));
    fuzz::expect(std::isfinite(m.variance));
  });
  fuzz::refused(
      [&] { fuzz::expect(subfed::rounds_until_chosen_in_turn(indices, times) >= indices); });
  fuzz::refused([&] {
    fuzz::expect(std::isfinite(subfed::rounds_until_chosen_newman_shepp(indices, times)));
    fuzz::expect(std::isfinite(subfed::rounds_until_chosen_erdos_renyi(indices, times)));
  });
  fuzz::refused([&] {
    const std::int64_t extent1 = some(in, 300), kept1 = some(in, 300), extent2 = some(in, 300);
    const std::int64_t kept2 = some(in, 300);
    std::int64_t sum = 0;
    for (const std::int64_t n : subfed::rolling_parameter_counts(extent1, kept1, extent2, kept2)) {
      fuzz::expect(n >= 0);
      sum += n;
    }
    fuzz::expect(sum == kept1 * kept2);
  });
}

const fuzz::registered statistics("statistics", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  constexpr void (*checks[])(fuzz::input&) = {check_population, check_cost,    check_evenness,
                                              check_rounds,     check_windows, check_indices};
  checks[in.below(6)](in);
});

}  // namespace
