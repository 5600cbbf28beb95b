// SPDX-License-Identifier: MIT
/// How often everything is held, and populations of clients for simulations.
#include <subfed/coverage.hpp>

#include <pybind11/numpy.h>

#include "schemes.hpp"

namespace subfed_python {

namespace {

using subfed::coverage;
using subfed::coverage_by_class;
using subfed::coverage_summary;
using subfed::parameter_coverage;

py::array_t<std::int64_t> array_of(std::span<const std::int64_t> values) {
  return py::array_t<std::int64_t>(static_cast<py::ssize_t>(values.size()), values.data());
}

template <class Class>
void add_text(py::class_<Class>& c, Class (*read)(const subfed::model&, std::string_view)) {
  c.def(
       "to_text", [](const Class& seen) { return subfed::to_text(seen); },
       "All of it in lines of text.")
      .def_static(
          "read",
          [read](const subfed::model& net, const std::string& text) { return read(net, text); },
          "net"_a, "text"_a, "Reads what to_text gave about the same model.")
      .def("append", &Class::append, "later"_a, "The rounds of `later` come after these.")
      .def("merge", &Class::merge, "shard"_a,
           "The clients that another server recorded of the same rounds take part here.");
}

}  // namespace

void bind_coverage(py::module_& m) {
  using subfed::model;
  using subfed::submodel;

  py::class_<coverage_summary>(m, "CoverageSummary", "How evenly a number of things were held.")
      .def_readonly("items", &coverage_summary::items)
      .def_readonly("min", &coverage_summary::min)
      .def_readonly("max", &coverage_summary::max)
      .def_readonly("mean", &coverage_summary::mean)
      .def_readonly("variance", &coverage_summary::variance)
      .def_readonly("unseen", &coverage_summary::unseen, "Never held.")
      .def_readonly("unseen_share", &coverage_summary::unseen_share)
      .def_readonly("gini", &coverage_summary::gini, "0: all equally often.")
      .def_readonly("entropy", &coverage_summary::entropy, "1: all equally often.")
      .def_readonly("first_full_cover", &coverage_summary::first_full_cover,
                    "Rounds after which all had been held, or None.")
      .def("__repr__", [](const coverage_summary& s) {
        return "CoverageSummary(items=" + std::to_string(s.items) +
               ", min=" + std::to_string(s.min) + ", max=" + std::to_string(s.max) +
               ", mean=" + text_of(py::float_(s.mean)) + ", unseen=" + std::to_string(s.unseen) +
               ", gini=" + text_of(py::float_(s.gini)) + ", first_full_cover=" +
               (s.first_full_cover ? std::to_string(*s.first_full_cover) : "None") + ")";
      });
  using subfed::holder_summary;
  py::class_<holder_summary>(m, "HolderSummary", "How many clients of a round hold a node.")
      .def_readonly("mean", &holder_summary::mean)
      .def_readonly("least", &holder_summary::least)
      .def_readonly("most", &holder_summary::most)
      .def_readonly("held_again", &holder_summary::held_again,
                    "Of what is held in a round, the share that the round before held too.")
      .def_readonly("shared_by_two", &holder_summary::shared_by_two);

  py::class_<coverage> nodes(m, "Coverage",
                             "How often each node of each group is held: record() every client's "
                             "submodel of a round, then end_round().");
  nodes.def(py::init<model, std::int64_t>(), "net"_a, "times"_a = 1)
      .def_property_readonly("parent", [](const coverage& c) { return c.parent(); })
      .def("record", &coverage::record, "sub"_a)
      .def("end_round", &coverage::end_round)
      .def_property_readonly("rounds", &coverage::rounds, "Rounds that have ended.")
      .def_property_readonly("clients", &coverage::clients, "Clients recorded in them.")
      .def_property_readonly("times", &coverage::times)
      .def(
          "counts",
          [](const coverage& c, const py::object& group) {
            return array_of(c.counts(to_group(c.parent(), group)));
          },
          "group"_a, "How often each node was held: a new array of int64, one a node.")
      .def(
          "rounds_since",
          [](const coverage& c, const py::object& group) {
            return array_of(c.rounds_since(to_group(c.parent(), group)));
          },
          "group"_a, "Rounds since each node was last held; -1 never.")
      .def(
          "summary",
          [](const coverage& c, const py::object& group) {
            return group.is_none() ? c.summary() : c.summary(to_group(c.parent(), group));
          },
          "group"_a = py::none(), "Of a group, or of all groups that schemes cut.")
      .def(
          "first_cover",
          [](const coverage& c, std::int64_t times, const py::object& group) {
            return group.is_none() ? c.first_cover(times)
                                   : c.first_cover(to_group(c.parent(), group), times);
          },
          "times"_a = 1, "group"_a = py::none(),
          "Rounds after which every node had been held `times` times, or None.")
      .def("complete", &coverage::complete)
      .def(
          "holders",
          [](const coverage& c, const py::object& group) {
            return c.holders(to_group(c.parent(), group));
          },
          "group"_a)
      .def(
          "holder_counts",
          [](const coverage& c, const py::object& group) {
            return array_of(c.holder_counts(to_group(c.parent(), group)));
          },
          "group"_a, "Entry h: pairs of a node and a round in which h clients held it.")
      .def("__repr__",
           [](const coverage& c) {
             const coverage_summary s = c.summary();
             return "<subfed.Coverage of " + std::to_string(c.rounds()) + " rounds: nodes held " +
                    std::to_string(s.min) + " to " + std::to_string(s.max) + " times, " +
                    std::to_string(s.unseen) + " of " + std::to_string(s.items) + " never>";
           })
      .def(py::pickle(
          [](const coverage& c) { return py::make_tuple(c.parent(), subfed::to_text(c)); },
          [](const py::tuple& t) {
            return subfed::read_coverage(t[0].cast<const subfed::model&>(),
                                         t[1].cast<std::string>());
          }));
  add_text<coverage>(nodes, &subfed::read_coverage);

  py::class_<coverage_by_class> classes(m, "CoverageByClass",
                                        "A Coverage for each class of clients and one for all.");
  classes.def(py::init<model, std::size_t, std::int64_t>(), "net"_a, "classes"_a, "times"_a = 1)
      .def("record", &coverage_by_class::record, "sub"_a, "client_class"_a)
      .def("end_round", &coverage_by_class::end_round)
      .def_property_readonly("classes", &coverage_by_class::classes)
      .def("in_all", [](const coverage_by_class& c) { return c.in_all(); })
      .def(
          "of_class", [](const coverage_by_class& c, std::size_t k) { return c.of_class(k); },
          "client_class"_a);
  add_text<coverage_by_class>(classes, &subfed::read_coverage_by_class);

  py::class_<parameter_coverage> all(
      m, "ParameterCoverage",
      "How often each parameter is held: a weight is when one client "
      "holds the nodes at both of its ends.");
  const auto asked = [](const parameter_coverage& c, const py::object& tensor, auto of_all,
                        auto of_one) {
    return tensor.is_none() ? of_all(c) : of_one(c, to_tensor(c.parent(), tensor));
  };
  all.def(py::init<model>(), "net"_a)
      .def_property_readonly("parent", [](const parameter_coverage& c) { return c.parent(); })
      .def("record", &parameter_coverage::record, "sub"_a)
      .def("end_round", &parameter_coverage::end_round)
      .def_property_readonly("rounds", &parameter_coverage::rounds)
      .def_property_readonly("distinct_submodels", &parameter_coverage::distinct_submodels)
      .def(
          "count",
          [](const parameter_coverage& c, const py::object& tensor,
             const std::vector<std::int64_t>& index) {
            return c.count(to_tensor(c.parent(), tensor), index);
          },
          "tensor"_a, "index"_a, "How often one parameter was held.")
      .def(
          "histogram",
          [asked](const parameter_coverage& c, const py::object& tensor) {
            return asked(
                c, tensor, [](const auto& p) { return p.histogram(); },
                [](const auto& p, subfed::tensor_id t) { return p.histogram(t); });
          },
          "tensor"_a = py::none(), "Times held -> parameters.")
      .def(
          "rounds_since",
          [asked](const parameter_coverage& c, const py::object& tensor) {
            return asked(
                c, tensor, [](const auto& p) { return p.rounds_since(); },
                [](const auto& p, subfed::tensor_id t) { return p.rounds_since(t); });
          },
          "tensor"_a = py::none(), "Rounds since last held -> parameters; -1 never.")
      .def(
          "summary",
          [asked](const parameter_coverage& c, const py::object& tensor) {
            return asked(
                c, tensor, [](const auto& p) { return p.summary(); },
                [](const auto& p, subfed::tensor_id t) { return p.summary(t); });
          },
          "tensor"_a = py::none())
      .def(
          "first_cover",
          [asked](const parameter_coverage& c, std::int64_t times, const py::object& tensor) {
            return asked(
                c, tensor, [times](const auto& p) { return p.first_cover(times); },
                [times](const auto& p, subfed::tensor_id t) { return p.first_cover(t, times); });
          },
          "times"_a = 1, "tensor"_a = py::none())
      .def(
          "holders",
          [asked](const parameter_coverage& c, const py::object& tensor) {
            return asked(
                c, tensor, [](const auto& p) { return p.holders(); },
                [](const auto& p, subfed::tensor_id t) { return p.holders(t); });
          },
          "tensor"_a = py::none())
      .def("__repr__", [](const parameter_coverage& c) {
        return "<subfed.ParameterCoverage of " + std::to_string(c.rounds()) + " rounds>";
      });
  add_text<parameter_coverage>(all, &subfed::read_parameter_coverage);

  using subfed::cohort_member;
  using subfed::cohort_model;
  py::class_<cohort_member>(m, "CohortMember", "One client that takes part in a round.")
      .def_readonly("client", &cohort_member::client)
      .def_readonly("client_class", &cohort_member::client_class, "Its number in the mix.")
      .def_readonly("capacity", &cohort_member::capacity)
      .def("__repr__", [](const cohort_member& c) {
        return "CohortMember(client=" + std::to_string(c.client) +
               ", client_class=" + std::to_string(c.client_class) +
               ", capacity=" + text_of(py::float_(c.capacity.value())) + ")";
      });
  py::class_<cohort_model>(
      m, "CohortModel",
      "A population of clients for simulations: who takes part in which round, "
      "with which capacity. A pure function of its arguments.")
      .def(
          py::init([](std::int64_t clients, double participation, const py::object& mix,
                      const std::string& capacities, double dropout, std::int64_t cohort_rounds,
                      const py::object& seed) {
            using subfed::capacity_assignment;
            using subfed::capacity_mix;
            subfed::cohort_options options;
            options.clients = clients;
            options.participation = participation;
            options.cohort_rounds = cohort_rounds;
            options.dropout = dropout;
            options.seed = to_u64("seed", seed);
            options.capacities = one_of<capacity_assignment>(
                "capacities", capacities,
                {{"fixed", capacity_assignment::fixed}, {"redrawn", capacity_assignment::redrawn}});
            if (py::isinstance<py::str>(mix)) {
              using make = capacity_mix (*)();
              options.mix = one_of<make>(
                  "the mix", mix.cast<std::string>(),
                  {{"uniform", &capacity_mix::uniform}, {"income", &capacity_mix::income}})();
            } else if (!mix.is_none()) {
              options.mix.classes.clear();
              for (const py::handle& row : mix) {
                const auto pair = row.cast<py::sequence>();
                options.mix.classes.push_back(
                    {to_capacity(pair[0]), to_real("share of a capacity", py::object(pair[1]))});
              }
            }
            return cohort_model(options);
          }),
          "clients"_a = 100, "participation"_a = 0.1, "mix"_a = py::none(),
          "capacities"_a = "fixed", "dropout"_a = 0.0, "cohort_rounds"_a = 1, "seed"_a = 0,
          "mix: 'uniform' (1, 1/2, .. 1/16), 'income', or (capacity, share) of each class.")
      .def_property_readonly("asked", &cohort_model::asked, "Clients that are asked in a round.")
      .def(
          "members",
          [](const cohort_model& c, const py::object& round) {
            return c.members(to_u64("round", round));
          },
          "round"_a, "The clients that take part in a round.");
}

}  // namespace subfed_python
