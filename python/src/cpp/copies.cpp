// SPDX-License-Identifier: MIT
/// slice, scatter and scatter_add of all tensors of a submodel.
#include <subfed/model_slice.hpp>

#include "tensors.hpp"
#include "threads.hpp"

namespace subfed_python {

namespace {

using reads = tensor_list<const void>;
using writes = tensor_list<void>;

py::object slice(const py::object& tensors, const subfed::submodel& sub, py::object out,
                 int wanted) {
  const threads team(wanted);
  const reads from(sub.parent(), tensors, "slice", "global");
  const bool is_new = out.is_none();
  if (is_new) out = new_locals(sub, from);
  const writes to(sub.parent(), out, "slice", "local");
  {
    const py::gil_scoped_release unlocked;
    subfed::slice<void>(from.views(), sub, to.views(), team);
  }
  if (!is_new) to.bump_versions();  // nobody has seen the others
  return out;
}

template <class Verb>
void put_back(const char* verb, const py::object& tensors, const subfed::submodel& sub,
              const py::object& into, int wanted, Verb put) {
  const threads team(wanted);
  const reads from(sub.parent(), tensors, verb, "local");
  const writes to(sub.parent(), into, verb, "global");
  {
    const py::gil_scoped_release unlocked;
    put(from.views(), to.views(), team);
  }
  to.bump_versions();
}

}  // namespace

void bind_copies(py::module_& m) {
  m.def("slice", &slice, "tensors"_a, "sub"_a, "out"_a = py::none(), "threads"_a = 1,
        "A client's tensors, cut out of the server's: new ones of the same kind and types, or "
        "`out`.\n\n"
        "tensors: a dict by name in any order (a state_dict), a torch module, or a list in the "
        "model's order; shapes as the model has them.\n"
        "Gives a dict or a list, like tensors; shapes are sub.shapes. They share no memory with "
        "the server's.\n"
        "threads: 0 takes as many as the machine has. The bits do not depend on it.");
  m.def(
      "scatter",
      [](const py::object& tensors, const subfed::submodel& sub, const py::object& into,
         int wanted) {
        put_back("scatter", tensors, sub, into, wanted,
                 [&](const auto& from, const auto& to, const threads& team) {
                   subfed::scatter<void>(from, sub, to, team);
                 });
      },
      "tensors"_a, "sub"_a, "into"_a, "threads"_a = 1,
      "Writes a client's tensors to where they were cut out of `into`, in place.");
  m.def(
      "scatter_add",
      [](const py::object& tensors, const subfed::submodel& sub, const py::object& into,
         int wanted) {
        put_back("scatter_add", tensors, sub, into, wanted,
                 [&](const auto& from, const auto& to, const threads& team) {
                   subfed::scatter_add<void>(from, sub, to, team);
                 });
      },
      "tensors"_a, "sub"_a, "into"_a, "threads"_a = 1,
      "Adds a client's tensors to where they were cut out of `into`, in place.");
}

}  // namespace subfed_python
