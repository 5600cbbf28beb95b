// SPDX-License-Identifier: MIT
/// subfed.theory: what coverage to expect, without walking the rounds.
#include <subfed/coverage/theory.hpp>

#include "common.hpp"

#include <optional>

namespace subfed_python {

namespace {

using subfed::held_window;
using subfed::random_round;

/// (kept, step, phase) of each window; the last two may be left out.
std::vector<held_window> to_windows(const py::object& list) {
  std::vector<held_window> out;
  for (const py::handle& row : list) {
    if (PyIndex_Check(row.ptr()) != 0) {
      out.push_back({to_i64("number of nodes", row)});
      continue;
    }
    const auto parts = row.cast<std::vector<std::int64_t>>();
    if (parts.empty() || parts.size() > 3) {
      subfed::detail::fail("subfed: theory: a window of " + std::to_string(parts.size()) +
                           " numbers, expected (kept, step, phase)");
    }
    held_window w{parts[0]};
    if (parts.size() > 1) w.step = parts[1];
    if (parts.size() > 2) w.phase = parts[2];
    out.push_back(w);
  }
  return out;
}

py::tuple pair_of(const subfed::round_moments& m) { return py::make_tuple(m.mean, m.variance); }

}  // namespace

void bind_theory(py::module_& parent) {
  py::module_ m = parent.def_submodule("theory", "What coverage to expect, without simulating it.");

  py::class_<random_round>(m, "RandomRound",
                           "A round of random sets of `extent` nodes: each client keeps so many.")
      .def(py::init([](std::int64_t extent, const std::vector<std::int64_t>& kept) {
             return random_round(extent, kept);
           }),
           "extent"_a, "kept"_a, "One client for each number of kept nodes.")
      .def_static(
          "drawn",
          [](std::int64_t extent, std::int64_t clients,
             const std::vector<std::pair<std::int64_t, double>>& mix) {
            std::vector<subfed::kept_share> shares;
            for (const auto& [kept, share] : mix) shares.push_back({kept, share});
            return random_round::drawn(extent, clients, shares);
          },
          "extent"_a, "clients"_a, "mix"_a,
          "Clients that each draw (kept, share) from the mix every round.")
      .def_property_readonly("extent", &random_round::extent);
  py::class_<subfed::round_distribution>(m, "RoundDistribution",
                                         "A random number of rounds, by its tail.")
      .def_readonly("beyond", &subfed::round_distribution::beyond, "P(T > R) for R = 0, 1, ..")
      .def("after", &subfed::round_distribution::after, "rounds"_a, "P(T > rounds).")
      .def("quantile", &subfed::round_distribution::quantile, "p"_a)
      .def(
          "moments", [](const subfed::round_distribution& d) { return pair_of(d.moments()); },
          "Mean and variance.");
  py::class_<subfed::cover_bounds>(m, "CoverBounds",
                                   "Two tails between which the true one lies, and two means.")
      .def_readonly("lower", &subfed::cover_bounds::lower)
      .def_readonly("upper", &subfed::cover_bounds::upper)
      .def_readonly("mean_at_least", &subfed::cover_bounds::mean_at_least)
      .def_readonly("mean_at_most", &subfed::cover_bounds::mean_at_most);
  py::class_<subfed::expected_counts>(m, "ExpectedCounts",
                                      "What is expected of how often nodes are held.")
      .def_readonly("mean", &subfed::expected_counts::mean)
      .def_readonly("variance", &subfed::expected_counts::variance)
      .def_readonly("unseen_share", &subfed::expected_counts::unseen_share)
      .def_readonly("gini", &subfed::expected_counts::gini);

  m.def("unseen_probability", &subfed::unseen_probability, "round"_a, "rounds"_a,
        "P(a node was not held in so many rounds).");
  m.def("held_probabilities", &subfed::held_probabilities, "round"_a, "rounds"_a, "most"_a,
        "P(a node was held 0, 1, .. most times).");
  m.def("random_counts", &subfed::random_counts, "round"_a, "rounds"_a,
        "What is expected of the counts of all nodes.");
  m.def("first_cover", &subfed::first_cover, "round"_a, "times"_a = 1, "tail"_a = 1e-16,
        py::call_guard<py::gil_scoped_release>(),
        "The first round after which every node has been held `times` times.");
  m.def(
      "first_cover_moments",
      [](const random_round& round) {
        subfed::round_moments found;
        {
          const py::gil_scoped_release unlocked;
          found = subfed::first_cover_moments(round);
        }
        return pair_of(found);
      },
      "round"_a, "Its mean and variance, for any number of nodes.");
  m.def("first_cover_bounds", &subfed::first_cover_bounds, "round"_a, "times"_a = 1,
        py::call_guard<py::gil_scoped_release>(), "Bounds of its distribution.");
  m.def("rolling_first_cover", &subfed::rolling_first_cover, "round"_a,
        "The same of rolling windows of step 1 whose lengths are drawn each round.");
  m.def(
      "window_counts",
      [](std::int64_t extent, const py::object& windows, std::int64_t rounds) {
        return subfed::window_counts(extent, to_windows(windows), rounds);
      },
      "extent"_a, "windows"_a, "rounds"_a,
      "How often windows (kept, step, phase) hold each node; step 0: static sets.");
  m.def(
      "window_first_cover",
      [](std::int64_t extent, const py::object& windows, std::int64_t times) {
        return subfed::window_first_cover(extent, to_windows(windows), times);
      },
      "extent"_a, "windows"_a, "times"_a = 1, "The first round after which all are held, or None.");
  m.def("window_unseen_probabilities", &subfed::window_unseen_probabilities, "round"_a, "step"_a,
        "rounds"_a, "P(node n was not held), for each node.");
  m.def(
      "unseen_parameter_probability",
      [](const std::vector<random_round>& dimensions, std::int64_t rounds) {
        return subfed::unseen_parameter_probability(dimensions, rounds);
      },
      "dimensions"_a, "rounds"_a,
      "P(a parameter was not held), whose dimensions are bound to different groups.");
  m.def("rolling_parameter_counts", &subfed::rolling_parameter_counts, "extent1"_a, "kept1"_a,
        "extent2"_a, "kept2"_a,
        "How often rolling windows of two groups hold each class of parameters between them.");
  m.def(
      "rounds_until_chosen",
      [](std::int64_t indices, std::int64_t times) {
        return pair_of(subfed::rounds_until_chosen(indices, times));
      },
      "indices"_a, "times"_a = 1,
      "Mean and variance of the rounds until each of so many indices was chosen, one a round.");
  m.def("rounds_until_chosen_in_turn", &subfed::rounds_until_chosen_in_turn, "indices"_a,
        "times"_a = 1, "The same when they are chosen in turn.");
}

}  // namespace subfed_python
