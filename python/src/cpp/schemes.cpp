// SPDX-License-Identifier: MIT
/// The schemes, draw requests, and draw: with a scheme of the library or any callable.
#include "schemes.hpp"

#include <subfed/draw.hpp>
#include <subfed/schemes.hpp>
#include <subfed/systems/feddrop.hpp>
#include <subfed/systems/ordered_dropout.hpp>

#include <pybind11/numpy.h>

#include "tensors.hpp"

#include <algorithm>
#include <optional>

namespace subfed_python {

namespace {

using subfed::draw_request;
using subfed::index_set;

/// What a scheme in Python is told; it may outlive the call.
struct request {
  std::uint64_t seed = 0, round = 0, client = 0;
  std::string group;
  std::int64_t extent = 0;
  subfed::capacity capacity = 1.0;

  draw_request view() const { return {seed, round, client, group, extent, capacity}; }
};

/// A seed policy and the words that it was made with.
struct seeds {
  std::string kind = "per_client_and_round";
  std::int64_t count = 1;

  subfed::seed_policy policy() const {
    using subfed::seed_policy;
    if (kind == "per_client") return seed_policy::per_client();
    if (kind == "pool") return seed_policy::pool(count);
    if (kind == "pool_per_round") return seed_policy::pool_per_round(count);
    if (kind == "shared") return seed_policy::shared(count);
    return seed_policy::per_client_and_round();
  }
  static seeds checked(std::string kind, std::int64_t count) {
    seeds out{std::move(kind), count};
    static_cast<void>(out.policy());  // refuses a count under 1
    return out;
  }
};
struct random_subset {
  seeds seeded;
  subfed::random_subset scheme;
  index_set operator()(const draw_request& where) const { return scheme(where); }
};

/// top_k and the arguments that it was made with; a copy of the scores, which it does not give back.
struct top_k {
  subfed::node_scores scores;
  subfed::rounding round_to;
  std::int64_t minimum;
  subfed::top_k scheme{scores, round_to, minimum};

  index_set operator()(const draw_request& where) const { return scheme(where); }
};

subfed::node_scores node_norms(const subfed::model net, const py::object& globals,
                               const std::string& order) {
  using subfed::norm_order;
  const auto p = one_of<norm_order>(
      "the norm", order,
      {{"one", norm_order::one}, {"two", norm_order::two}, {"infinity", norm_order::infinity}});
  const tensor_list<const void> from(net, globals, "node_norms", "global");
  const py::gil_scoped_release unlocked;
  return subfed::node_norms<void>(net, from.views(), p);
}

/// A view that writes, which keeps `self`.
py::array scores_of(const py::object& self, const py::object& group) {
  auto& own = self.cast<subfed::node_scores&>();
  const auto scores = own[to_group(own.parent(), group)];
  return py::array(py::dtype::of<double>(), {static_cast<py::ssize_t>(scores.size())},
                   scores.data(), self);
}

py::tuple scores_state(const subfed::node_scores& scores) {
  py::list all;
  for (std::size_t g = 0; g < scores.parent().groups().size(); ++g) {
    const auto of_group = scores[subfed::group_id(g)];
    all.append(py::array_t<double>(static_cast<py::ssize_t>(of_group.size()), of_group.data()));
  }
  return py::make_tuple(scores.parent(), all);
}
subfed::node_scores scores_from(const py::tuple& state) {
  subfed::node_scores out(state[0].cast<const subfed::model&>());
  const py::list all = state[1];
  bool fits = all.size() == out.parent().groups().size();
  for (std::size_t g = 0; fits && g < all.size(); ++g) {
    const auto from = all[g].cast<py::array_t<double, py::array::c_style | py::array::forcecast>>();
    const auto to = out[subfed::group_id(g)];
    fits = from.size() == static_cast<py::ssize_t>(to.size());
    if (fits) std::copy_n(from.data(), to.size(), to.begin());
  }
  if (!fits) subfed::detail::fail("subfed: NodeScores: the scores are those of another model");
  return out;
}

/// A scheme in Python: a set, or nodes, for a DrawRequest.
struct python_scheme {
  py::object call;
  index_set operator()(const draw_request& where) const {
    const py::object nodes = call(request{where.seed, where.round, where.client,
                                          std::string(where.group), where.extent, where.capacity});
    return to_index_set(where.extent, nodes);
  }
};

template <class F>
auto with_scheme(const py::object& scheme, F&& f) {
  if (py::isinstance<subfed::rolling>(scheme)) return f(scheme.cast<const subfed::rolling&>());
  if (py::isinstance<subfed::prefix>(scheme)) return f(scheme.cast<const subfed::prefix&>());
  if (py::isinstance<random_subset>(scheme)) {
    return f(scheme.cast<const random_subset&>().scheme);
  }
  if (py::isinstance<subfed::simple_ensemble>(scheme)) {
    return f(scheme.cast<const subfed::simple_ensemble&>());
  }
  if (py::isinstance<subfed::ordered_dropout>(scheme)) {
    return f(scheme.cast<const subfed::ordered_dropout&>());
  }
  if (py::isinstance<subfed::sync_dropout>(scheme)) {
    return f(scheme.cast<const subfed::sync_dropout&>());
  }
  if (py::isinstance<top_k>(scheme)) return f(scheme.cast<const top_k&>().scheme);
  if (PyCallable_Check(scheme.ptr()) == 0) {
    throw py::type_error(
        "subfed: a scheme is given as '" + type_name(scheme) +
        "', expected a scheme of subfed or a callable from a DrawRequest to nodes");
  }
  return f(python_scheme{scheme});
}

/// By value: a scheme in Python, or another thread meanwhile, may describe more of the caller's model.
subfed::submodel draw(const subfed::model net, const py::object& scheme, const py::object& seed,
                      const py::object& round, const py::object& client, const py::object& capacity,
                      const py::dict& exceptions) {
  const subfed::draw_key key{to_u64("seed", seed), to_u64("round", round), to_u64("client", client),
                             to_capacity(capacity)};
  std::vector<subfed::group_capacity> own;
  for (const auto& [group, share] : exceptions) {
    own.push_back({to_group(net, group), to_capacity(share)});
  }
  return with_scheme(scheme, [&](const auto& s) { return subfed::draw(net, s, key, own); });
}

template <class Scheme, class... Extra>
py::class_<Scheme> scheme_class(py::module_& m, const char* name, const char* text) {
  py::class_<Scheme> c(m, name, text);
  c.def(
      "__call__", [](const Scheme& s, const request& where) { return s(where.view()); },
      "request"_a, "The nodes for a DrawRequest.");
  return c;
}

std::string number(std::int64_t n) { return std::to_string(n); }

}  // namespace

void bind_schemes(py::module_& m) {
  using subfed::keep_probabilities;
  using subfed::ordered_dropout;
  using subfed::prefix;
  using subfed::rolling;
  using subfed::simple_ensemble;
  using subfed::sync_dropout;
  using subfed::width_distribution;

  py::class_<request>(m, "DrawRequest",
                      "One place where nodes are wanted: whose, when, of which "
                      "group. All that a scheme may depend on.")
      .def(py::init([](const py::object& seed, const py::object& round, const py::object& client,
                       std::string group, std::int64_t extent, const py::object& capacity) {
             return request{to_u64("seed", seed),
                            to_u64("round", round),
                            to_u64("client", client),
                            std::move(group),
                            extent,
                            to_capacity(capacity)};
           }),
           "seed"_a = 0, "round"_a = 0, "client"_a = 0, "group"_a = "", "extent"_a = 0,
           "capacity"_a = 1.0)
      .def_readonly("seed", &request::seed)
      .def_readonly("round", &request::round)
      .def_readonly("client", &request::client)
      .def_readonly("group", &request::group, "The group's name.")
      .def_readonly("extent", &request::extent, "Nodes of the group.")
      .def_readonly("capacity", &request::capacity)
      .def(
          "kept",
          [](const request& r, const std::string& mode, std::int64_t minimum) {
            return r.view().kept(to_rounding(mode), minimum);
          },
          "rounding"_a = "floor", "minimum"_a = 1, "The nodes to keep.")
      .def("__repr__", [](const request& r) {
        return "DrawRequest(seed=" + std::to_string(r.seed) + ", round=" + std::to_string(r.round) +
               ", client=" + std::to_string(r.client) + ", group=" + quoted(r.group) +
               ", extent=" + number(r.extent) + ")";
      });

  const auto make_rolling = [](std::int64_t step, std::optional<double> window_overlap,
                               const std::string& walk, const std::string& mode,
                               std::int64_t minimum, std::int64_t phase,
                               std::int64_t client_phase) {
    using subfed::direction;
    return rolling{
        step,
        window_overlap,
        one_of<direction>("the walk", walk,
                          {{"forward", direction::forward}, {"backward", direction::backward}}),
        to_rounding(mode),
        minimum,
        phase,
        client_phase};
  };
  const auto walk_word = [](const rolling& r) {
    return std::string(r.walk == subfed::direction::forward ? "forward" : "backward");
  };
  scheme_class<rolling>(m, "Rolling",
                        "FedRolex's rolling window: nodes start .. start + L - 1, round the end, "
                        "start = round * step + phase.")
      .def(py::init(make_rolling), "step"_a = 1, "window_overlap"_a = py::none(),
           "walk"_a = "forward", "round_to"_a = "floor", "minimum"_a = 1, "phase"_a = 0,
           "client_phase"_a = 0)
      .def_static("paper", &rolling::paper, "Forward, floor.")
      .def_static("released", &rolling::released,
                  "As the code released with the paper: backward, ceil.")
      .def("__repr__",
           [walk_word](const rolling& r) {
             return "Rolling(step=" + number(r.step) +
                    (r.window_overlap ? ", window_overlap=" + text_of(py::float_(*r.window_overlap))
                                      : std::string()) +
                    ", walk='" + walk_word(r) + "', round_to='" + rounding_word(r.round_to) +
                    "', minimum=" + number(r.minimum) + ", phase=" + number(r.phase) +
                    ", client_phase=" + number(r.client_phase) + ")";
           })
      .def(py::pickle(
          [walk_word](const rolling& r) {
            return py::make_tuple(r.step, r.window_overlap, walk_word(r), rounding_word(r.round_to),
                                  r.minimum, r.phase, r.client_phase);
          },
          [make_rolling](const py::tuple& t) {
            return make_rolling(t[0].cast<std::int64_t>(), t[1].cast<std::optional<double>>(),
                                t[2].cast<std::string>(), t[3].cast<std::string>(),
                                t[4].cast<std::int64_t>(), t[5].cast<std::int64_t>(),
                                t[6].cast<std::int64_t>());
          }));

  const auto make_prefix = [](const std::string& mode, std::int64_t minimum) {
    return prefix{to_rounding(mode), minimum};
  };
  scheme_class<prefix>(m, "Prefix", "The first nodes: HeteroFL, and FjORD at a fixed width.")
      .def(py::init(make_prefix), "round_to"_a = "floor", "minimum"_a = 1)
      .def_static("paper", &prefix::paper, "floor.")
      .def_static("released", &prefix::released, "As the released code of HeteroFL: ceil.")
      .def_static("ordered", &prefix::ordered, "Ordered dropout at width p: ceil.")
      .def("__repr__",
           [](const prefix& p) {
             return "Prefix(round_to='" + rounding_word(p.round_to) +
                    "', minimum=" + number(p.minimum) + ")";
           })
      .def(py::pickle(
          [](const prefix& p) { return py::make_tuple(rounding_word(p.round_to), p.minimum); },
          [make_prefix](const py::tuple& t) {
            return make_prefix(t[0].cast<std::string>(), t[1].cast<std::int64_t>());
          }));

  py::class_<seeds>(m, "SeedPolicy", "Which requests share a random set.")
      .def_static(
          "per_client_and_round", [] { return seeds{}; },
          "A new set for every client in every round.")
      .def_static(
          "per_client",
          [] {
            return seeds{"per_client", 1};
          },
          "A set for every client, the same for the whole run.")
      .def_static(
          "pool", [](std::int64_t size) { return seeds::checked("pool", size); }, "size"_a,
          "Every client picks one of `size` sets and keeps it.")
      .def_static(
          "pool_per_round",
          [](std::int64_t size) { return seeds::checked("pool_per_round", size); }, "size"_a,
          "Every client picks one of `size` sets anew in every round.")
      .def_static(
          "shared", [](std::int64_t rounds) { return seeds::checked("shared", rounds); },
          "rounds"_a = 1, "One set for all clients, changed every `rounds` rounds.")
      .def("__repr__",
           [](const seeds& s) {
             return "SeedPolicy." + s.kind +
                    (s.kind.compare(0, 10, "per_client") == 0 ? "()" : "(" + number(s.count) + ")");
           })
      .def(py::pickle([](const seeds& s) { return py::make_tuple(s.kind, s.count); },
                      [](const py::tuple& t) {
                        return seeds::checked(t[0].cast<std::string>(), t[1].cast<std::int64_t>());
                      }));

  const auto make_random = [](const seeds& s, const std::string& mode, std::int64_t minimum) {
    return random_subset{s, {s.policy(), to_rounding(mode), minimum}};
  };
  scheme_class<random_subset>(m, "RandomSubset", "Uniform random nodes: Federated Dropout.")
      .def(py::init(make_random), "seeds"_a = seeds{}, "round_to"_a = "floor", "minimum"_a = 1)
      .def("__repr__",
           [](const random_subset& r) {
             return "RandomSubset(" + text_of(py::repr(py::cast(r.seeded))) + ", round_to='" +
                    rounding_word(r.scheme.round_to) + "', minimum=" + number(r.scheme.minimum) +
                    ")";
           })
      .def(py::pickle(
          [](const random_subset& r) {
            return py::make_tuple(r.seeded, rounding_word(r.scheme.round_to), r.scheme.minimum);
          },
          [make_random](const py::tuple& t) {
            return make_random(t[0].cast<seeds>(), t[1].cast<std::string>(),
                               t[2].cast<std::int64_t>());
          }));

  const auto make_ensemble = [](const py::object& advance, const std::string& mode,
                                std::int64_t minimum) {
    return simple_ensemble{to_u64("advance", advance), to_rounding(mode), minimum};
  };
  scheme_class<simple_ensemble>(m, "SimpleEnsemble",
                                "One of K / L members, disjoint parts of equal size.")
      .def(py::init(make_ensemble), "advance"_a = 0, "round_to"_a = "floor", "minimum"_a = 1)
      .def("__repr__",
           [](const simple_ensemble& s) {
             return "SimpleEnsemble(advance=" + std::to_string(s.advance) + ", round_to='" +
                    rounding_word(s.round_to) + "', minimum=" + number(s.minimum) + ")";
           })
      .def(py::pickle(
          [](const simple_ensemble& s) {
            return py::make_tuple(s.advance, rounding_word(s.round_to), s.minimum);
          },
          [make_ensemble](const py::tuple& t) {
            return make_ensemble(t[0], t[1].cast<std::string>(), t[2].cast<std::int64_t>());
          }));

  py::class_<width_distribution>(m, "WidthDistribution",
                                 "FjORD's widths, ascending in (0, 1], with weights.")
      .def(py::init([](const py::object& widths, std::vector<double> weights) {
             std::vector<subfed::capacity> list;
             for (const py::handle& w : widths) list.push_back(to_capacity(w));
             return width_distribution(std::move(list), std::move(weights));
           }),
           "widths"_a, "weights"_a = std::vector<double>())
      .def_static("uniform", &width_distribution::uniform, "k"_a, "1/k, 2/k, .. 1.")
      .def_property_readonly("widths",
                             [](const width_distribution& w) {
                               return std::vector<subfed::capacity>(w.widths().begin(),
                                                                    w.widths().end());
                             })
      .def(
          "largest",
          [](const width_distribution& w, const py::object& p_max) {
            return w.largest(to_capacity(p_max));
          },
          "p_max"_a, "The largest width that a client can hold.")
      .def(
          "probability",
          [](const width_distribution& w, std::size_t i, const py::object& p_max) {
            return w.probability(i, to_capacity(p_max));
          },
          "i"_a, "p_max"_a = 1.0);
  scheme_class<ordered_dropout>(m, "OrderedDropout",
                                "FjORD: the first ceil(p K) nodes, p drawn from the widths up to "
                                "the client's capacity.")
      .def(py::init([](const width_distribution& widths, const std::string& drawn_for,
                       const py::object& step, std::int64_t minimum) {
             using subfed::width_for;
             return ordered_dropout{widths,
                                    one_of<width_for>("drawn_for", drawn_for,
                                                      {{"submodel", width_for::submodel},
                                                       {"group", width_for::group}}),
                                    to_u64("step", step), minimum};
           }),
           "widths"_a, "drawn_for"_a = "submodel", "step"_a = 0, "minimum"_a = 1);

  py::class_<keep_probabilities>(m, "KeepProbabilities",
                                 "FedDrop: with which probability a client keeps each node.")
      .def(py::init<subfed::model, double>(), "net"_a, "p"_a = 1.0)
      .def(
          "__getitem__",
          [](const keep_probabilities& k, const py::object& group) {
            const auto p = k[to_group(k.parent(), group)];
            return std::vector<double>(p.begin(), p.end());
          },
          "group"_a, "Of the nodes of a group; none for a group that is never cut.")
      .def_property_readonly(
          "values",
          [](const keep_probabilities& k) {
            return std::vector<double>(k.values().begin(), k.values().end());
          },
          "Of all nodes in a row, group by group.")
      .def(
          "assign",
          [](keep_probabilities& k, const std::vector<double>& values) { k.assign(values); },
          "values"_a);
  scheme_class<sync_dropout>(m, "SyncDropout",
                             "FedDrop: nodes whose threshold, the same for all clients of a round, "
                             "is under the client's probability.")
      .def(py::init([](const keep_probabilities& keep, const py::object& step) {
             return sync_dropout{keep, to_u64("step", step)};
           }),
           "keep"_a, "step"_a = 0);
  m.def(
      "keep_scale",
      [](const keep_probabilities& keep, const subfed::submodel& kept, const py::object& group) {
        return subfed::keep_scale(keep, kept, to_group(keep.parent(), group));
      },
      "keep"_a, "kept"_a, "group"_a, "1 / p of the nodes that a submodel keeps, in its order.");

  using subfed::node_scores;
  py::class_<node_scores>(m, "NodeScores",
                          "A number for each node of each group, zero at first. TopK keeps the "
                          "nodes with the largest.")
      .def(py::init<subfed::model>(), "net"_a)
      .def_property_readonly("parent", [](const node_scores& s) { return s.parent(); })
      .def("__getitem__", &scores_of, "group"_a,
           "The scores of a group: the memory itself, an array of float64, one a node.")
      .def("__repr__",
           [](const node_scores& s) {
             return "<subfed.NodeScores of " +
                    number(static_cast<std::int64_t>(s.parent().groups().size())) + " groups>";
           })
      .def(py::pickle(&scores_state, &scores_from));
  m.def("node_norms", &node_norms, "net"_a, "globals"_a, "order"_a = "two",
        "The norm of all that is cut with a node: (sum of |x|^p)^(1/p) over the elements of all "
        "parameters that belong to it. Gives NodeScores.\n\n"
        "globals: a dict by name, a torch module, or a list in the model's order; shapes as the "
        "model has them.\n"
        "order: 'one', 'two' or 'infinity'.");
  const auto make_top_k = [](const node_scores& scores, const std::string& mode,
                             std::int64_t minimum) {
    return top_k{scores, to_rounding(mode), minimum};
  };
  scheme_class<top_k>(m, "TopK",
                      "The nodes with the largest scores, ascending; of equal scores the smaller "
                      "nodes. It keeps a copy of the scores, which the sets depend on: keep the "
                      "Submodel until the client's answer is there.")
      .def(py::init(make_top_k), "scores"_a, "round_to"_a = "floor", "minimum"_a = 1)
      .def("__repr__",
           [](const top_k& k) {
             return "TopK(round_to='" + rounding_word(k.round_to) +
                    "', minimum=" + number(k.minimum) + ")";
           })
      .def(py::pickle(
          [](const top_k& k) {
            return py::make_tuple(k.scores, rounding_word(k.round_to), k.minimum);
          },
          [make_top_k](const py::tuple& t) {
            return make_top_k(t[0].cast<const node_scores&>(), t[1].cast<std::string>(),
                              t[2].cast<std::int64_t>());
          }));

  m.def(
      "draw", &draw, "net"_a, "scheme"_a, py::kw_only(), "seed"_a = 0, "round"_a = 0,
      "client"_a = 0, "capacity"_a = 1.0, "exceptions"_a = py::dict(),
      "What a client holds in a round: a set of nodes for every group that may be cut.\n\n"
      "scheme: one of subfed's, or any callable from a DrawRequest to nodes (an IndexSet, a list, "
      "an array).\n"
      "capacity: a number, a fraction or a Capacity, for all groups but those in exceptions, a "
      "dict of groups to capacities.\n\n"
      "The same arguments give the same nodes on every machine, in Python and in C++.");
}

}  // namespace subfed_python
