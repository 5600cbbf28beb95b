// SPDX-License-Identifier: MIT
/// Proof of descriptions, with networks in Python; descriptions from two widths.
#include <subfed/graph/derive_widths.hpp>
#include <subfed/proof.hpp>

#include <pybind11/numpy.h>

#include "tensors.hpp"

#include <algorithm>
#include <map>

namespace subfed_python {

namespace {

using subfed::binding;
using subfed::broken_group;
using subfed::coarse_tie;
using subfed::description_proof;
using subfed::doubt;
using subfed::model;
using subfed::proof_options;
using subfed::submodel;

py::array_t<double> new_array(std::span<const std::int64_t> extents) {
  return py::array_t<double>(std::vector<py::ssize_t>(extents.begin(), extents.end()));
}

/// A level of what is nested: Python's own limit on them, since a list may contain itself.
class one_level {
 public:
  one_level() {
    if (Py_EnterRecursiveCall(" in the outputs of the forward function") != 0) {
      throw py::error_already_set();
    }
  }
  one_level(const one_level&) = delete;
  one_level& operator=(const one_level&) = delete;
  ~one_level() { Py_LeaveRecursiveCall(); }
};

/// All numbers of what a network gave: a tensor, a number, or lists, tuples and dicts of them.
void append_numbers(py::object from, std::vector<double>& out) {
  const one_level level;
  if (PyDict_Check(from.ptr()) != 0) {
    for (const auto& item : py::reinterpret_borrow<py::dict>(from)) {
      append_numbers(py::reinterpret_borrow<py::object>(item.second), out);
    }
    return;
  }
  if (PyList_Check(from.ptr()) != 0 || PyTuple_Check(from.ptr()) != 0) {
    for (const py::handle& each : from)
      append_numbers(py::reinterpret_borrow<py::object>(each), out);
    return;
  }
  if (is_torch(from)) {
    from = from.attr("detach")().attr("cpu")();
    const bool is_complex = from.attr("is_complex")().cast<bool>();
    from = from.attr(is_complex ? "resolve_conj" : "double")().attr("numpy")();
  }
  if (py::module_::import("numpy").attr("iscomplexobj")(from).cast<bool>()) {
    for (const char* part : {"real", "imag"}) append_numbers(from.attr(part), out);
    return;
  }
  using array = py::array_t<double, py::array::c_style | py::array::forcecast>;
  const bool is_number = !from.is_none() && PyUnicode_Check(from.ptr()) == 0;
  const auto numbers = is_number ? array::ensure(from) : array();
  if (!is_number || !numbers) {
    throw py::type_error("subfed: the forward function gave '" + type_name(from) +
                         "', expected numbers: an array, a tensor, or lists of them");
  }
  out.insert(out.end(), numbers.data(), numbers.data() + numbers.size());
}

/// Whether a function asks for the submodel in front of the tensors.
bool takes_submodel(const py::object& call) {
  const py::module_ inspect = py::module_::import("inspect");
  try {
    std::size_t needed = 0;
    const py::object parameter = inspect.attr("Parameter");
    const py::object own = inspect.attr("signature")(call).attr("parameters").attr("values")();
    for (const py::handle& each : own) {
      const bool by_place = each.attr("kind").is(parameter.attr("POSITIONAL_ONLY")) ||
                            each.attr("kind").is(parameter.attr("POSITIONAL_OR_KEYWORD"));
      if (by_place && each.attr("default").is(parameter.attr("empty"))) ++needed;
    }
    return needed == 2;
  } catch (const py::error_already_set& error) {  // of some functions in C nothing is known
    if (!error.matches(PyExc_ValueError) && !error.matches(PyExc_TypeError)) throw;
    return false;
  }
}

/// A network in Python, as the library calls it without the GIL. Its arrays are Python's own, so that
/// they may outlive the call, and are filled anew each time.
class network {
 public:
  explicit network(py::object call) : call_(std::move(call)) {
    if (PyCallable_Check(call_.ptr()) == 0) {
      throw py::type_error("subfed: the forward function is given as '" + type_name(call_) +
                           "', expected a callable from a dict of arrays to outputs");
    }
    takes_submodel_ = takes_submodel(call_);
  }

  std::vector<double> operator()(const submodel& sub,
                                 const subfed::tensor_views<const double>& views) {
    const py::gil_scoped_acquire locked;
    py::dict tensors;
    arrays_.resize(views.size());
    for (std::size_t t = 0; t < views.size(); ++t) {
      const auto extents = views[t].extents();
      auto& array = arrays_[t];
      if (!array || !std::equal(array.shape(), array.shape() + array.ndim(), extents.begin(),
                                extents.end())) {
        array = new_array(extents);
      }
      std::copy_n(views[t].data_handle(), views[t].size(), array.mutable_data());
      tensors[py::str(sub.parent().tensors()[t].name)] = array;
    }
    std::vector<double> out;
    append_numbers(takes_submodel_ ? call_(sub, tensors) : call_(tensors), out);
    return out;
  }

 private:
  py::object call_;
  bool takes_submodel_ = false;
  std::vector<py::array_t<double>> arrays_;
};

/// A model's tensors of any types as doubles.
subfed::tensors<double> as_doubles(const model& net, const py::object& given, const char* verb) {
  const tensor_list<const void> from(net, given, verb, "global");
  const py::gil_scoped_release unlocked;
  subfed::tensors<double> out(net);
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& info = net.tensors()[t];
    subfed::detail::check_shape(verb, "global", info.name, from.views()[t].extents(), info.extents);
    double* to = out[subfed::tensor_id(t)].data_handle();
    from.views()[t].visit([&to]<class E>(const subfed::tensor_view<const E>& view) {
      subfed::detail::for_each_offset(view, [&](std::int64_t offset) {
        const E x = view.data_handle()[offset];
        if constexpr (subfed::averageable<E>) {
          *to++ = subfed::scalar_traits<E>::load(x);
        } else {
          *to++ = static_cast<double>(x);
        }
      });
    });
  }
  return out;
}

proof_options to_options(const model& net, const py::object& seed, double tolerance, int orders,
                         int draws, const py::object& in_order, const py::object& without_effect,
                         std::int64_t advice_runs) {
  proof_options out;
  out.seed = to_u64("seed", seed);
  out.tolerance = tolerance;
  out.orders = orders;
  out.draws = draws;
  out.advice_runs = advice_runs;
  for (const py::handle& group : in_order) out.in_order.push_back(to_group(net, group));
  for (const py::handle& t : without_effect) out.without_effect.push_back(to_tensor(net, t));
  return out;
}

/// Pre: nobody else has the model, which Python may extend while the network runs.
description_proof prove(const model& net, const py::object& forward, const py::object& values,
                        const proof_options& options) {
  network run(forward);
  std::optional<subfed::tensors<double>> own;
  if (!values.is_none()) own.emplace(as_doubles(net, values, "prove_description"));
  const py::gil_scoped_release unlocked;
  return own ? subfed::prove_description<double>(net, *own, run, options)
             : subfed::prove_description<double>(net, run, options);
}

/// Throws  error unless all is shown but what the caller said is not to be.
void check(const description_proof& proof) {
  if (proof.verdict() != subfed::verdict::wrong && proof.not_shown.empty()) return;
  std::string group;
  std::string tensor;
  if (!proof.broken.empty()) {
    group = proof.net[proof.broken[0].group].name;
  } else if (!proof.unused.empty()) {
    group = proof.net[proof.unused[0]].name;
  } else {
    tensor = proof.net[proof.not_shown[0].tensor].name;
  }
  std::string text = subfed::describe(proof);
  text.pop_back();
  subfed::detail::fail("subfed: check_description: " + text, {.tensor = tensor, .group = group});
}

/// A use of a group, for Python.
struct binding_row {
  model net;
  binding where;
};
std::vector<binding_row> rows_of(const model& net, const std::vector<binding>& bindings) {
  std::vector<binding_row> out;
  for (const binding& b : bindings) out.push_back({net, b});
  return out;
}
struct broken_row {
  std::string group;
  double change;
  std::vector<std::string> advice;
};
struct tie_row {
  std::string group;
  std::vector<binding_row> apart;
};
struct doubt_row {
  std::string kind;
  std::string group;
  std::string text;
};

std::vector<std::string> names_of(const model& net, const std::vector<subfed::group_id>& groups) {
  std::vector<std::string> out;
  for (const subfed::group_id g : groups) out.push_back(net[g].name);
  return out;
}

std::string verdict_word(const description_proof& proof) {
  return word_of<subfed::verdict>(proof.verdict(), {{"right", subfed::verdict::right},
                                                    {"not_shown", subfed::verdict::not_shown},
                                                    {"wrong", subfed::verdict::wrong}});
}

/// Names and shapes of one network, in the order in which the first one has them.
std::vector<subfed::named_shape> shapes_of(const py::handle& given,
                                           const std::vector<subfed::named_shape>* first) {
  const py::object dict = py::hasattr(given, "state_dict")
                              ? py::object(given.attr("state_dict")())
                              : py::object(py::reinterpret_borrow<py::object>(given));
  std::vector<subfed::named_shape> out;
  for (const auto& item : py::dict(dict)) {
    const py::handle shaped = item.second;
    std::vector<std::int64_t> shape;
    const py::object shape_of = py::hasattr(shaped, "shape")
                                    ? py::object(shaped.attr("shape"))
                                    : py::reinterpret_borrow<py::object>(shaped);
    for (const py::handle& e : shape_of) shape.push_back(e.cast<std::int64_t>());
    out.push_back({text_of(item.first), std::move(shape)});
  }
  if (first != nullptr) {
    std::map<std::string, std::size_t> place;
    for (std::size_t t = 0; t < first->size(); ++t) place[(*first)[t].name] = t;
    const auto place_of = [&](const subfed::named_shape& s) {
      const auto at = place.find(s.name);
      return at == place.end() ? place.size() : at->second;
    };
    std::stable_sort(out.begin(), out.end(),
                     [&](const auto& a, const auto& b) { return place_of(a) < place_of(b); });
  }
  return out;
}

py::tuple derive_widths(const py::object& widths, const py::object& copies) {
  std::vector<std::vector<subfed::named_shape>> shapes;
  for (const py::handle& network_of_a_width : widths) {
    shapes.push_back(shapes_of(network_of_a_width, shapes.empty() ? nullptr : &shapes[0]));
  }
  std::vector<subfed::known_copies> known;
  for (const py::handle& row : copies) {
    const auto parts = py::reinterpret_borrow<py::sequence>(row);
    if (parts.size() != 3) {
      throw py::type_error("subfed: derive_widths: copies are (tensor, dimension, times)");
    }
    known.push_back({parts[0].cast<std::string>(), parts[1].cast<std::size_t>(),
                     parts[2].cast<std::int64_t>()});
  }
  subfed::derived_model made = subfed::derive_widths(shapes, known);
  static PyObject* const type =
      py::object(py::module_::import("collections")
                     .attr("namedtuple")("DerivedModel", py::make_tuple("net", "doubts"),
                                         "module"_a = "subfed"))
          .release()
          .ptr();
  return py::reinterpret_borrow<py::object>(type)(std::move(made.net), made.doubts);
}

constexpr const char* forward_text =
    "forward: the network, from a dict by name of numpy arrays of float64 to its outputs for "
    "inputs "
    "of your own choice: an array, a torch tensor, lists of them. No dropout, statistics used and "
    "not updated. forward_of(module, inputs) makes one of a torch module. One of two arguments "
    "gets "
    "the Submodel first.\n";
constexpr const char* options_text =
    "values: a model's tensors that hide nothing; random_values where there are none.\n"
    "tolerance: the largest change that is rounding, as a share of the largest output; 0 is 1e-9, "
    "and a network that computes in float32 needs 1e-4.\n"
    "orders: that each group is put in. draws: of random values, until all has shown an effect.\n"
    "in_order: groups whose nodes are not alike. without_effect: tensors that are known to have "
    "none on the outputs.\n"
    "advice_runs: of the network for finding out what would be right; 0 for none.";

}  // namespace

void bind_proof(py::module_& m) {
  py::class_<binding_row>(m, "Binding", "One use of a group: a part of a dimension of a tensor.")
      .def_property_readonly("tensor",
                             [](const binding_row& b) { return b.net[b.where.tensor].name; })
      .def_property_readonly("dimension", [](const binding_row& b) { return b.where.dimension; })
      .def_property_readonly("part", [](const binding_row& b) { return b.where.part; })
      .def("__repr__",
           [](const binding_row& b) { return "<" + subfed::binding_text(b.net, b.where) + ">"; });
  py::class_<broken_row>(m, "BrokenGroup", "A group that is not what the description says.")
      .def_readonly("group", &broken_row::group)
      .def_readonly("change", &broken_row::change, "Of the outputs, as a share of the largest.")
      .def_readonly("advice", &broken_row::advice, "What would be right: any one of these.")
      .def("__repr__", [](const broken_row& b) {
        return "BrokenGroup(" + quoted(b.group) + ", change=" + text_of(py::float_(b.change)) + ")";
      });
  py::class_<tie_row>(m, "CoarseTie", "Uses of a group that could be a group of their own.")
      .def_readonly("group", &tie_row::group)
      .def_readonly("apart", &tie_row::apart, "These can change their order without the others.")
      .def("__repr__", [](const tie_row& t) {
        return "CoarseTie(" + quoted(t.group) + ", " + std::to_string(t.apart.size()) + " uses)";
      });
  py::class_<doubt_row>(m, "Doubt", "What looks wrong in a description.")
      .def_readonly("kind", &doubt_row::kind, "'no_tensor', 'one_tensor' or 'nobody_reads'.")
      .def_readonly("group", &doubt_row::group)
      .def_readonly("text", &doubt_row::text, "One sentence, with the tensors.")
      .def("__repr__", [](const doubt_row& d) { return "<" + d.text + ">"; });

  py::class_<description_proof>(
      m, "DescriptionProof", "What prove_description found; true where all was shown to be right.")
      .def_property_readonly("verdict", &verdict_word, "'right', 'not_shown' or 'wrong'.")
      .def_readonly("tolerance", &description_proof::tolerance)
      .def_readonly("rounding", &description_proof::rounding,
                    "The largest change that a right group made.")
      .def_readonly("runs", &description_proof::runs, "Of the network.")
      .def_property_readonly("broken",
                             [](const description_proof& p) {
                               std::vector<broken_row> out;
                               for (const broken_group& b : p.broken) {
                                 out.push_back({p.net[b.group].name, b.change, b.advice});
                               }
                               return out;
                             })
      .def_property_readonly(
          "unused", [](const description_proof& p) { return names_of(p.net, p.unused); },
          "Groups of no tensor.")
      .def_property_readonly(
          "not_permuted",
          [](const description_proof& p) { return names_of(p.net, p.not_permuted); },
          "Groups of one node, or said to be in_order.")
      .def_property_readonly(
          "not_shown", [](const description_proof& p) { return rows_of(p.net, p.not_shown); },
          "The outputs do not depend on which node is where.")
      .def_property_readonly(
          "whole",
          [](const description_proof& p) {
            std::vector<std::string> out;
            for (const subfed::tensor_id t : p.whole) out.push_back(p.net[t].name);
            return out;
          },
          "Tensors that no group touches.")
      .def("__bool__",
           [](const description_proof& p) { return p.verdict() == subfed::verdict::right; })
      .def("__str__", [](const description_proof& p) { return subfed::describe(p); })
      .def("__repr__", [](const description_proof& p) {
        return "<subfed.DescriptionProof: " + verdict_word(p) + ", " +
               std::to_string(p.net.groups().size()) + " groups, " + std::to_string(p.runs) +
               " runs of the network>";
      });

  static const std::string prove_text =
      std::string(
          "Proves a description by values: a network whose nodes of a group are in another order "
          "computes the same, and one in which a single tensor's are does not.\n\n") +
      forward_text + options_text;
  static const std::string check_text =
      std::string(
          "prove_description that raises Error, with what is wrong and what would be right, unless "
          "everything is shown to be as described.\n\n") +
      forward_text + options_text;
  static const std::string ties_text =
      std::string(
          "Groups that tie more than they have to: two independent ones described as one. "
          "The description is right.\n\n") +
      forward_text;
  static const std::string cuts_text =
      std::string(
          "For each group of which a scheme may cut nodes: how far the outputs of the "
          "sub-network are from those of the whole one with zeros in place of the dropped "
          "nodes. It is rounding where cutting is masking.\n\n") +
      forward_text;
  const auto define = [&m](const char* name, const char* text, auto f) {
    m.def(name, f, "net"_a, "forward"_a, "values"_a = py::none(), py::kw_only(), "seed"_a = 1,
          "tolerance"_a = 0.0, "orders"_a = 3, "draws"_a = 4, "in_order"_a = py::tuple(),
          "without_effect"_a = py::tuple(), "advice_runs"_a = 300, text);
  };
  define(
      "prove_description", prove_text.c_str(),
      [](const model net, const py::object& forward, const py::object& values,
         const py::object& seed, double tolerance, int orders, int draws,
         const py::object& in_order, const py::object& without_effect, std::int64_t advice_runs) {
        return prove(
            net, forward, values,
            to_options(net, seed, tolerance, orders, draws, in_order, without_effect, advice_runs));
      });
  define(
      "check_description", check_text.c_str(),
      [](const model net, const py::object& forward, const py::object& values,
         const py::object& seed, double tolerance, int orders, int draws,
         const py::object& in_order, const py::object& without_effect, std::int64_t advice_runs) {
        description_proof proof = prove(
            net, forward, values,
            to_options(net, seed, tolerance, orders, draws, in_order, without_effect, advice_runs));
        check(proof);
        return proof;
      });
  m.def(
      "find_coarse_ties",
      [](const model net, const py::object& forward, const py::object& seed, double tolerance) {
        network run(forward);
        proof_options options;
        options.seed = to_u64("seed", seed);
        options.tolerance = tolerance;
        std::vector<coarse_tie> found;
        {
          const py::gil_scoped_release unlocked;
          found = subfed::find_coarse_ties<double>(net, run, options);
        }
        std::vector<tie_row> out;
        for (const coarse_tie& t : found) {
          out.push_back({net[t.group].name, rows_of(net, t.apart)});
        }
        return out;
      },
      "net"_a, "forward"_a, py::kw_only(), "seed"_a = 1, "tolerance"_a = 0.0, ties_text.c_str());
  m.def(
      "cut_difference",
      [](const submodel& sub, const py::object& globals, const py::object& forward) {
        network run(forward);
        const subfed::tensors<double> values = as_doubles(sub.parent(), globals, "cut_difference");
        const py::gil_scoped_release unlocked;
        return subfed::cut_difference<double>(sub, values, run);
      },
      "sub"_a, "globals"_a, "forward"_a,
      "How far the outputs of a sub-network are from those of the whole one with zeros in place of "
      "all that the client does not hold, as a share of the largest output. forward gets the "
      "client's tensors too.");
  m.def(
      "cut_differences",
      [](const model net, const py::object& forward, const py::object& seed) {
        network run(forward);
        const std::uint64_t number = to_u64("seed", seed);
        std::vector<subfed::group_difference> found;
        {
          const py::gil_scoped_release unlocked;
          found = subfed::cut_differences<double>(net, run, number);
        }
        std::map<std::string, double> out;
        for (const auto& d : found) out[net[d.group].name] = d.difference;
        return out;
      },
      "net"_a, "forward"_a, "seed"_a = 1, cuts_text.c_str());
  m.def(
      "find_doubts",
      [](const model& net) {
        std::vector<doubt_row> out;
        for (const doubt& d : subfed::find_doubts(net)) {
          using subfed::doubt_kind;
          out.push_back({word_of<doubt_kind>(d.kind, {{"no_tensor", doubt_kind::no_tensor},
                                                      {"one_tensor", doubt_kind::one_tensor},
                                                      {"nobody_reads", doubt_kind::nobody_reads}}),
                         net[d.group].name, d.text});
        }
        return out;
      },
      "net"_a, "What looks wrong in a description, where no network is at hand.");
  m.def(
      "bindings_of",
      [](const model& net, const py::object& group) {
        return rows_of(net, subfed::bindings_of(net, to_group(net, group)));
      },
      "net"_a, "group"_a, "All uses of a group, in the order of the model's tensors.");
  m.def(
      "permuted",
      [](const model& net, const py::object& seed) {
        return subfed::permuted(net, to_u64("seed", seed));
      },
      "net"_a, "seed"_a = 1,
      "All of the model, with the nodes of every group that may be cut in another order: a network "
      "that is described rightly computes the same with its tensors.");
  m.def(
      "random_values",
      [](const model net, const py::object& seed) {
        const std::uint64_t number = to_u64("seed", seed);
        const auto values = [&] {
          const py::gil_scoped_release unlocked;
          return subfed::random_values<double>(net, number);
        }();
        py::dict out;
        for (std::size_t t = 0; t < net.tensors().size(); ++t) {
          const auto& view = values[subfed::tensor_id(t)];
          auto array = new_array(view.extents());
          std::copy_n(view.data_handle(), view.size(), array.mutable_data());
          out[py::str(net.tensors()[t].name)] = array;
        }
        return out;
      },
      "net"_a, "seed"_a = 1,
      "Values for all tensors that hide nothing, as those of a fresh network do: a dict of float64 "
      "arrays by name, in the model's shapes.");
  m.def("derive_widths", &derive_widths, "widths"_a, "copies"_a = py::tuple(),
        "(net, doubts): a description of the first of several networks that are alike but for "
        "their widths, and what their shapes could not say, one sentence each.\n\n"
        "widths: torch modules, state_dicts, or dicts of names to arrays or shapes, of two widths "
        "or more.\n"
        "copies: (tensor, dimension, times) of each dimension that consists of copies of its "
        "nodes: the gates of an LSTM, q / k / v.\n"
        "Dimensions that shrink by the same factors become one group, the others are whole; all "
        "tensors are parameters.");
}

}  // namespace subfed_python
