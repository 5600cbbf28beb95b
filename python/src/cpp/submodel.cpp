// SPDX-License-Identifier: MIT
/// Submodel, and submodels inside of one another.
#include <subfed/coverage/shared.hpp>
#include <subfed/describe.hpp>
#include <subfed/messages/submodel_bytes.hpp>
#include <subfed/submodel.hpp>
#include <subfed/systems/nested.hpp>

#include "bytes.hpp"
#include "schemes.hpp"

#include <algorithm>

namespace subfed_python {

namespace {

py::bytes bytes_of(const subfed::submodel& sub) {
  const std::vector<std::byte> written = subfed::write_sets(sub);
  return {reinterpret_cast<const char*>(written.data()), written.size()};
}
std::span<const std::byte> seen(const py::bytes& data) {
  const std::string_view text(data);
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

py::tuple submodel_state(const subfed::submodel& sub) {
  const subfed::draw_key& key = sub.origin();
  std::vector<subfed::index_set> sets;
  py::dict restricted;
  for (std::size_t g = 0; g < sub.parent().groups().size(); ++g) {
    const subfed::group_id group(g);
    sets.push_back(sub[group]);
    const auto runs = sub.runs(group);
    if (std::equal(runs.begin(), runs.end(), sets[g].runs().begin(), sets[g].runs().end())) {
      continue;
    }
    restricted[py::int_(g)] = set_state(subfed::index_set::from_runs(sets[g].extent(), runs));
  }
  const subfed::submodel plain(sub.parent(), std::move(sets), key);
  return py::make_tuple(
      sub.parent(), bytes_of(plain),
      py::make_tuple(key.seed, key.round, key.client, capacity_state(key.capacity)), restricted);
}
subfed::submodel submodel_from(const py::tuple& state) {
  const py::tuple key = state[2];
  const py::bytes sets = state[1];
  subfed::submodel out =
      subfed::read_sets(state[0].cast<const subfed::model&>(), seen(sets),
                        {key[0].cast<std::uint64_t>(), key[1].cast<std::uint64_t>(),
                         key[2].cast<std::uint64_t>(), capacity_from(key[3])});
  for (const auto& [group, nodes] : py::dict(state[3])) {
    out = out.restricted(subfed::group_id(group.cast<std::size_t>()),
                         set_from(nodes.cast<py::tuple>()));
  }
  return out;
}

void bind_submodel(py::module_& m) {
  using subfed::index_set;
  using subfed::model;
  using subfed::submodel;

  py::class_<submodel>(m, "Submodel",
                       "What one client holds in one round: nodes of each group, from which the "
                       "shapes of its tensors follow. draw() makes one; it does not change.")
      .def(py::init([](const model& net, const py::dict& nodes, const py::object& seed,
                       const py::object& round, const py::object& client,
                       const py::object& capacity) {
             std::vector<index_set> sets;
             for (const auto& group : net.groups()) sets.push_back(index_set::full(group.extent));
             for (const auto& [group, list] : nodes) {
               const subfed::group_id g = to_group(net, group);
               sets[g.number()] = to_index_set(net[g].extent, list);
             }
             return submodel(net, std::move(sets),
                             {to_u64("seed", seed), to_u64("round", round),
                              to_u64("client", client), to_capacity(capacity)});
           }),
           "parent"_a, "nodes"_a = py::dict(), py::kw_only(), "seed"_a = 0, "round"_a = 0,
           "client"_a = 0, "capacity"_a = 1.0,
           "nodes: groups to IndexSets or lists of nodes; groups that are not there are whole.")
      .def_static("full", &submodel::full, "parent"_a, "All of the model.")
      .def_property_readonly("parent", [](const submodel& s) { return s.parent(); })
      .def_property_readonly("seed", [](const submodel& s) { return s.origin().seed; })
      .def_property_readonly("round", [](const submodel& s) { return s.origin().round; })
      .def_property_readonly("client", [](const submodel& s) { return s.origin().client; })
      .def_property_readonly("capacity", [](const submodel& s) { return s.origin().capacity; })
      .def(
          "__getitem__",
          [](const submodel& s, const py::object& group) { return s[to_group(s.parent(), group)]; },
          "group"_a, "The nodes that the client holds of a group.")
      .def(
          "extent",
          [](const submodel& s, const py::object& group) {
            return s.extent(to_group(s.parent(), group));
          },
          "group"_a, "How many nodes it holds of a group.")
      .def(
          "runs",
          [](const submodel& s, const py::object& group) {
            py::list out;
            for (const subfed::run& r : s.runs(to_group(s.parent(), group))) {
              out.append(py::make_tuple(r.position, r.first, r.length));
            }
            return out;
          },
          "group"_a, "Runs of the nodes that take part: (position, first node, length).")
      .def(
          "shape",
          [](const submodel& s, const py::object& tensor) {
            return shape_tuple(s.extents(to_tensor(s.parent(), tensor)));
          },
          "tensor"_a, "Shape of the client's tensor.")
      .def_property_readonly(
          "shapes",
          [](const submodel& s) {
            py::dict out;
            for (std::size_t t = 0; t < s.parent().tensors().size(); ++t) {
              out[py::str(s.parent().tensors()[t].name)] =
                  shape_tuple(s.extents(subfed::tensor_id(t)));
            }
            return out;
          },
          "Shapes of all of the client's tensors, by name.")
      .def_property_readonly("size", &submodel::size, "Elements of all of the client's tensors.")
      .def(
          "with_nodes",
          [](const submodel& s, const py::object& group, const py::object& nodes) {
            const subfed::group_id g = to_group(s.parent(), group);
            return s.with(g, to_index_set(s.parent()[g].extent, nodes));
          },
          "group"_a, "nodes"_a, "The same with other nodes of one group.")
      .def(
          "restricted",
          [](const submodel& s, const py::object& group, const py::object& nodes) {
            const subfed::group_id g = to_group(s.parent(), group);
            return s.restricted(g, to_index_set(s.parent()[g].extent, nodes));
          },
          "group"_a, "nodes"_a,
          "The same tensors, but of this group only the given nodes take part in copies, averages "
          "and counts: the classes that a client has.")
      .def("planned", &submodel::planned,
           "The same with the copies worked out once: for submodels that are small or used again.")
      .def("unplanned", &submodel::unplanned, "The same without its plan.")
      .def("same_nodes", &submodel::same_nodes, "other"_a,
           "The same model and nodes; origins may differ.")
      .def("to_bytes", &bytes_of,
           "The nodes, as write_sets of C++ writes them: for sets that no scheme gives. The key "
           "(seed, round, client, capacity) and the model do not travel with them. Refuses a "
           "submodel that is restricted.")
      .def_static(
          "from_bytes",
          [](const model& net, const py::bytes& data, const py::object& seed,
             const py::object& round, const py::object& client, const py::object& capacity) {
            return subfed::read_sets(net, seen(data),
                                     {to_u64("seed", seed), to_u64("round", round),
                                      to_u64("client", client), to_capacity(capacity)});
          },
          "parent"_a, "data"_a, py::kw_only(), "seed"_a = 0, "round"_a = 0, "client"_a = 0,
          "capacity"_a = 1.0,
          "The submodel of which to_bytes, or write_sets of C++, gave the nodes. The bytes may "
          "come "
          "from anywhere: what is wrong is refused.")
      .def("__str__", [](const submodel& s) { return subfed::describe(s); })
      .def("__repr__",
           [](const submodel& s) {
             return "<subfed.Submodel of client " + std::to_string(s.origin().client) +
                    " in round " + std::to_string(s.origin().round) + ": " +
                    std::to_string(s.size()) + " of " + std::to_string(s.parent().size()) +
                    " elements>";
           })
      .def(py::pickle(&submodel_state, &submodel_from));

  m.def("local_model", &subfed::local_model, "held"_a, "The model as the client sees it.");
  m.def("within", &subfed::within, "smaller"_a, "held"_a,
        "A smaller submodel as part of a larger one: a Submodel of local_model(held).");
  m.def(
      "shared_nodes",
      [](const submodel& a, const submodel& b, const py::object& group) {
        return subfed::shared_nodes(a, b, to_group(a.parent(), group));
      },
      "a"_a, "b"_a, "group"_a, "Nodes of a group that both have taking part.");
  m.def("shared_parameters", &subfed::shared_parameters, "a"_a, "b"_a,
        "Parameters that both have taking part.");
}

}  // namespace subfed_python
