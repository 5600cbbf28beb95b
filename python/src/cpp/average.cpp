// SPDX-License-Identifier: MIT
/// average_cohort, SelectiveAverage, their options and reports, HeldElements.
#include <subfed/average.hpp>

#include <pybind11/numpy.h>

#include "tensors.hpp"
#include "threads.hpp"

#include <map>
#include <mutex>

namespace subfed_python {

namespace {

using subfed::average_options;
using subfed::average_report;
using subfed::update_outcome;
using reads = tensor_list<const void>;
using writes = tensor_list<void>;

const std::initializer_list<std::pair<std::string_view, subfed::fate>> fate_words = {
    {"taken", subfed::fate::taken},
    {"late", subfed::fate::late},
    {"early", subfed::fate::early},
    {"repeated", subfed::fate::repeated},
    {"non_finite", subfed::fate::non_finite}};

/// What a late_weight of Python's gives, asked while the GIL was held; the library asks for it on the
/// calling thread.
thread_local const std::map<std::uint64_t, double>* late_weights = nullptr;

double asked_late_weight(std::uint64_t rounds_passed) {
  const auto at = late_weights->find(rounds_passed);
  return at == late_weights->end() ? -1 : at->second;
}

struct options {
  average_options values;
  py::object late_weight = py::none();

  explicit options(const py::kwargs& named) {
    for (const auto& [key, value] : named) {
      const std::string name = text_of(key);
      const auto word = [&name, &value = value] { return to_word(name, value); };
      if (name == "divide_by") {
        using subfed::divisor;
        values.divide_by = one_of<divisor>(
            "divide_by", word(), {{"holders", divisor::holders}, {"cohort", divisor::cohort}});
      } else if (name == "content") {
        using subfed::content;
        values.content = one_of<content>(
            "content", word(), {{"parameters", content::parameters}, {"deltas", content::deltas}});
      } else if (name == "step") {
        values.step = to_real("step", value);
      } else if (name == "on_non_finite") {
        using subfed::non_finite;
        values.on_non_finite = one_of<non_finite>("on_non_finite", word(),
                                                  {{"propagate", non_finite::propagate},
                                                   {"refuse", non_finite::refuse},
                                                   {"skip_client", non_finite::skip_client},
                                                   {"skip_element", non_finite::skip_element}});
      } else if (name == "integers") {
        using subfed::integer_rule;
        values.integers = one_of<integer_rule>(
            "integers", word(),
            {{"keep", integer_rule::keep}, {"max", integer_rule::max}, {"sum", integer_rule::sum}});
      } else if (name == "round") {
        if (!value.is_none()) values.round = to_u64("round", value);
      } else if (name == "on_late") {
        using subfed::late_update;
        values.on_late = one_of<late_update>("on_late", word(),
                                             {{"refuse", late_update::refuse},
                                              {"skip", late_update::skip},
                                              {"weigh", late_update::weigh}});
      } else if (name == "on_repeated") {
        using subfed::repeated_update;
        values.on_repeated = one_of<repeated_update>(
            "on_repeated", word(),
            {{"refuse", repeated_update::refuse}, {"skip", repeated_update::skip}});
      } else if (name == "late_weight") {
        late_weight = py::reinterpret_borrow<py::object>(value);
        if (!value.is_none()) values.late_weight = &asked_late_weight;
      } else {
        throw py::type_error("subfed: average: there is no option '" + name + "'");
      }
    }
  }

  /// Asks late_weight about an update, if the library is going to.
  void ask(const subfed::submodel& sub, std::map<std::uint64_t, double>& weights) const {
    const std::uint64_t round = sub.origin().round;
    if (late_weight.is_none() || !values.round || round >= *values.round) return;
    const std::uint64_t passed = *values.round - round;
    if (weights.count(passed) != 0) return;
    weights[passed] = to_real("late_weight of " + std::to_string(passed) + " rounds passed",
                              py::object(late_weight(passed)));
  }
};

/// For as long as a call runs.
struct late_weights_of_call {
  explicit late_weights_of_call(const std::map<std::uint64_t, double>& weights) {
    late_weights = &weights;
  }
  late_weights_of_call(const late_weights_of_call&) = delete;
  late_weights_of_call& operator=(const late_weights_of_call&) = delete;
  ~late_weights_of_call() { late_weights = nullptr; }
};

/// (submodel, tensors) or (submodel, tensors, weight).
struct update_parts {
  py::object owner;  // a row that is a list may lose it while tensors are asked for
  const subfed::submodel& sub;
  py::object tensors;
  double weight = 1;

  static update_parts of(const py::handle& row) {
    if (!py::isinstance<py::tuple>(row) && !py::isinstance<py::list>(row)) {
      throw py::type_error("subfed: average: an update is given as '" + type_name(row) +
                           "', expected (submodel, tensors) or (submodel, tensors, weight)");
    }
    const auto parts = py::reinterpret_borrow<py::sequence>(row);
    if (parts.size() < 2 || parts.size() > 3 || !py::isinstance<subfed::submodel>(parts[0])) {
      throw py::type_error("subfed: average: an update of " + std::to_string(parts.size()) +
                           " parts, expected (submodel, tensors) or (submodel, tensors, weight)");
    }
    const py::object owner = parts[0];
    const auto& sub = owner.cast<const subfed::submodel&>();
    if (parts.size() == 2) return {owner, sub, parts[1]};
    const std::string what = "weight of client " + std::to_string(sub.origin().client);
    return {owner, sub, parts[1], to_real(what, py::object(parts[2]))};
  }
};

void check_parent(const subfed::model& net, const subfed::submodel& sub) {
  if (sub.parent() == net) return;
  subfed::detail::fail("subfed: average: the submodel of client " +
                           std::to_string(sub.origin().client) + " is of another model",
                       {.client = sub.origin().client});
}

/// The same error with its client, where the library names the tensor alone.
[[noreturn]] void rethrow_with_client(const subfed::error& wrong, std::uint64_t client) {
  subfed::detail::fail(std::string(wrong.what()) + " (client " + std::to_string(client) + ")",
                       {.client = client, .tensor = wrong.tensor(), .group = wrong.group()});
}

/// Of an error about a tensor's type: the first client whose tensor has another type than it may have.
[[noreturn]] void rethrow_with_client(const subfed::error& wrong, const subfed::model& net,
                                      const std::vector<subfed::update<void>>& updates,
                                      const std::vector<subfed::tensor_view<void>>& globals) {
  for (std::size_t t = 0; !wrong.client() && t < net.tensors().size(); ++t) {
    if (net.tensors()[t].name != wrong.tensor()) continue;
    for (const auto& u : updates) {
      const auto expected = globals[t].format(), found = u.tensors[t].format();
      if (expected == found ||
          (subfed::detail::is_floating(expected) && subfed::detail::is_floating(found))) {
        continue;
      }
      rethrow_with_client(wrong, u.sub.origin().client);
    }
  }
  throw wrong;
}

average_report average_cohort(subfed::model net, const py::object& updates,
                              const py::object& globals, subfed::held_elements* held, int wanted,
                              const py::kwargs& named) {
  const threads team(wanted);
  const options chosen(named);
  std::vector<py::object> rows;  // keeps the updates of a generator
  std::vector<reads> kept;
  std::vector<subfed::update<void>> all;
  std::map<std::uint64_t, double> weights;
  if (py::hasattr(updates, "__len__")) kept.reserve(py::len(updates));
  for (const py::handle& row : updates) {
    rows.push_back(py::reinterpret_borrow<py::object>(row));
    const update_parts u = update_parts::of(row);
    check_parent(net, u.sub);
    kept.emplace_back(net, u.tensors, "average", "client", u.sub.origin().client);
    chosen.ask(u.sub, weights);
    all.push_back({u.sub, kept.back().views(), u.weight});
  }
  const writes to(net, globals, "average", "global");
  average_report report;
  subfed::held_elements found;
  {
    const py::gil_scoped_release unlocked;
    const late_weights_of_call asked(weights);
    try {
      report = held != nullptr
                   ? subfed::average_cohort<void>(net, all, to.views(), found, chosen.values, team)
                   : subfed::average_cohort<void>(net, all, to.views(), chosen.values, team);
    } catch (const subfed::error& wrong) {
      rethrow_with_client(wrong, net, all, to.views());
    }
  }
  if (held != nullptr) *held = std::move(found);
  to.bump_versions();
  return report;
}

/// A streaming average that several threads of Python may use.
class streaming {
 public:
  streaming(const subfed::model& net, const py::kwargs& named)
      : net_(net), options_(named), mean_(net, options_.values) {}

  update_outcome add(const subfed::submodel& sub, const py::object& tensors, double weight) {
    check_parent(net_, sub);
    const reads from(net_, tensors, "average", "client", sub.origin().client);
    std::map<std::uint64_t, double> weights;
    options_.ask(sub, weights);
    const py::gil_scoped_release unlocked;
    const std::lock_guard held(lock_);
    const late_weights_of_call asked(weights);
    try {
      return mean_.add<void>(sub, from.views(), weight);
    } catch (const subfed::error& wrong) {
      if (wrong.client()) throw;
      rethrow_with_client(wrong, sub.origin().client);
    }
  }
  void merge(const streaming& other) {
    if (!options_.late_weight.is(other.options_.late_weight)) {
      subfed::detail::fail("subfed: average: the average to merge has other options");
    }
    const py::gil_scoped_release unlocked;
    if (&other == this) {
      const std::lock_guard held(lock_);
      mean_.merge(mean_);
      return;
    }
    const std::scoped_lock held(lock_, other.lock_);
    mean_.merge(other.mean_);
  }
  average_report finish(const py::object& globals, int wanted) const {
    const threads team(wanted);
    const writes to(net_, globals, "average", "global");
    average_report report;
    {
      const py::gil_scoped_release unlocked;
      const std::lock_guard held(lock_);
      report = mean_.finish(to.views(), team);
    }
    to.bump_versions();
    return report;
  }
  subfed::held_elements held() const {
    const py::gil_scoped_release unlocked;
    const std::lock_guard locked(lock_);
    return mean_.held();
  }
  void clear() {
    const py::gil_scoped_release unlocked;
    const std::lock_guard held(lock_);
    mean_.clear();
  }
  average_report report() const {
    const py::gil_scoped_release unlocked;
    const std::lock_guard held(lock_);
    return mean_.report();
  }
  bool has_dense_weights() const {
    const py::gil_scoped_release unlocked;
    const std::lock_guard held(lock_);
    return mean_.has_dense_weights();
  }

 private:
  subfed::model net_;
  options options_;
  mutable std::mutex lock_;  // taken without the GIL, so that nobody waits for both
  subfed::selective_average<void> mean_;
};

std::string outcome_text(const update_outcome& o) {
  std::string out = "UpdateOutcome(" + word_of(o.fate, fate_words) +
                    ", client=" + std::to_string(o.client) + ", round=" + std::to_string(o.round) +
                    ", weight=" + text_of(py::float_(o.weight));
  if (o.skipped_elements != 0) out += ", skipped_elements=" + std::to_string(o.skipped_elements);
  if (!o.tensor.empty()) {
    out += ", tensor=" + quoted(o.tensor) + ", element=" + std::to_string(o.element);
  }
  return out + ")";
}

constexpr const char* option_text =
    "divide_by: 'holders', or 'cohort': the weights of all clients.\n"
    "content: 'parameters', or 'deltas': new minus old values.\n"
    "step: server step size.\n"
    "on_non_finite: 'propagate', 'refuse', 'skip_client' or 'skip_element'.\n"
    "integers: 'keep', 'max' or 'sum': what becomes of step counters.\n"
    "round, on_late ('refuse', 'skip', 'weigh'), on_repeated ('refuse', 'skip'), late_weight (a "
    "function of the rounds passed): an update is taken once for each client and round.";

}  // namespace

void bind_average(py::module_& m) {
  using subfed::held_elements;
  using subfed::model;

  py::class_<update_outcome>(m, "UpdateOutcome",
                             "What became of an update; true where it was taken.")
      .def_property_readonly(
          "fate", [](const update_outcome& o) { return word_of(o.fate, fate_words); },
          "'taken', 'late', 'early', 'repeated' or 'non_finite'.")
      .def_readonly("client", &update_outcome::client)
      .def_readonly("round", &update_outcome::round)
      .def_readonly("weight", &update_outcome::weight)
      .def_readonly("skipped_elements", &update_outcome::skipped_elements)
      .def_readonly("tensor", &update_outcome::tensor,
                    "The tensor with the first value that is not finite, or ''.")
      .def_readonly("element", &update_outcome::element)
      .def("__bool__", [](const update_outcome& o) { return static_cast<bool>(o); })
      .def("__repr__", &outcome_text);

  py::class_<average_report>(m, "AverageReport", "What an average did.")
      .def_readonly("clients", &average_report::clients, "Updates that took part.")
      .def_readonly("refused_clients", &average_report::refused_clients)
      .def_readonly("skipped_clients", &average_report::skipped_clients)
      .def_readonly("late_clients", &average_report::late_clients)
      .def_readonly("repeated_clients", &average_report::repeated_clients)
      .def_readonly("skipped_elements", &average_report::skipped_elements)
      .def_readonly("held", &average_report::held, "Elements of the server that were written.")
      .def_readonly("unheld", &average_report::unheld, "Elements that nobody held: unchanged.")
      .def_readonly("kept", &average_report::kept, "Integers, counters and local tensors.")
      .def_readonly("overflowed", &average_report::overflowed)
      .def_readonly("left_out", &average_report::left_out, "The first 1024 updates left out.")
      .def(
          "__eq__",
          [](const average_report& a, const py::object& b) {
            return py::isinstance<average_report>(b) && a == b.cast<const average_report&>();
          },
          "other"_a)
      .def("__repr__",
           [](const average_report& r) {
             std::string out = "AverageReport(clients=" + std::to_string(r.clients) +
                               ", held=" + std::to_string(r.held) +
                               ", unheld=" + std::to_string(r.unheld);
             const auto add = [&out](const char* name, std::int64_t n) {
               if (n != 0) out += std::string(", ") + name + "=" + std::to_string(n);
             };
             add("kept", r.kept);
             add("refused_clients", r.refused_clients);
             add("skipped_clients", r.skipped_clients);
             add("late_clients", r.late_clients);
             add("repeated_clients", r.repeated_clients);
             add("skipped_elements", r.skipped_elements);
             add("overflowed", r.overflowed);
             return out + ")";
           })
      .attr("__hash__") = py::none();

  py::class_<held_elements>(m, "HeldElements",
                            "Which elements of a model's tensors an average gave a value.")
      .def(py::init<model>(), "net"_a, "Nothing is held.")
      .def_static(
          "of",
          [](const model& net, const std::vector<subfed::submodel>& subs) {
            return held_elements(net, subs);
          },
          "net"_a, "subs"_a, "What at least one of the submodels holds.")
      .def(
          "test",
          [](const held_elements& h, const py::object& tensor, std::int64_t element) {
            return h.test(to_tensor(h.parent(), tensor), element);
          },
          "tensor"_a, "element"_a, "Whether an element is held, by its row-major number.")
      .def(
          "count",
          [](const held_elements& h, const py::object& tensor) {
            return tensor.is_none() ? h.count() : h.count(to_tensor(h.parent(), tensor));
          },
          "tensor"_a = py::none(), "Held elements of a tensor, or of all.")
      .def(
          "mask",
          [](const held_elements& h, const py::object& tensor) {
            const subfed::tensor_id t = to_tensor(h.parent(), tensor);
            const auto& extents = h.parent()[t].extents;
            py::array_t<bool> out(std::vector<py::ssize_t>(extents.begin(), extents.end()));
            const auto words = h.words(t);
            bool* const to = out.mutable_data();
            for (std::size_t i = 0; i < static_cast<std::size_t>(out.size()); ++i) {
              to[i] = (words[i / 64] >> (i % 64) & 1) != 0;
            }
            return out;
          },
          "tensor"_a, "A new array of bool, in the shape of the server's tensor.")
      .def(
          "__eq__",
          [](const held_elements& a, const py::object& b) {
            return py::isinstance<held_elements>(b) && a == b.cast<const held_elements&>();
          },
          "other"_a)
      .def("__repr__",
           [](const held_elements& h) {
             return "<subfed.HeldElements: " + std::to_string(h.count()) + " of " +
                    std::to_string(h.parent().size()) + " elements>";
           })
      .attr("__hash__") = py::none();

  static const std::string cohort_text =
      std::string(
          "Averages every element of the server's tensors over just the clients that hold it, in "
          "place; what nobody holds keeps its bits.\n\n"
          "updates: (submodel, tensors) or (submodel, tensors, weight) of each client, which are "
          "only read. The submodel is the one that the client was sent.\n"
          "globals: a dict by name, a torch module, or a list in the model's order.\n"
          "held: HeldElements to fill in, for a server optimiser.\n"
          "threads: 0 takes as many as the machine has. The bits do not depend on it, nor on the "
          "order of the updates.\n") +
      option_text;
  m.def(
      "average_cohort",
      [](const model& net, const py::object& updates, const py::object& globals,
         held_elements* held, int wanted, const py::kwargs& named) {
        return average_cohort(net, updates, globals, held, wanted, named);
      },
      "net"_a, "updates"_a, "globals"_a, "held"_a = py::none(), "threads"_a = 1,
      cohort_text.c_str());

  static const std::string streaming_text =
      std::string(
          "The same average with updates that come one by one and are not kept: add, merge, "
          "finish. At most 16 bytes an element of the server.\n\n") +
      option_text;
  py::class_<streaming>(m, "SelectiveAverage", streaming_text.c_str())
      .def(py::init<const model&, const py::kwargs&>(), "net"_a)
      .def("add", &streaming::add, "sub"_a, "tensors"_a, "weight"_a = 1.0,
           "Adds a client's tensors, a dict or a list; says what became of them.")
      .def("merge", &streaming::merge, "other"_a, "Takes in what another average has added.")
      .def("finish", &streaming::finish, "globals"_a, "threads"_a = 1,
           "Writes the average into the server's tensors, in place. More may be added afterwards.")
      .def("held", &streaming::held, "The elements that finish() would give a value.")
      .def("clear", &streaming::clear, "Forgets all updates.")
      .def_property_readonly("report", &streaming::report, "What has been added so far.")
      .def_property_readonly("has_dense_weights", &streaming::has_dense_weights)
      .def("__repr__", [](const streaming& s) {
        return "<subfed.SelectiveAverage of " + std::to_string(s.report().clients) + " updates>";
      });
}

}  // namespace subfed_python
