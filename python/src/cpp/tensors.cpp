// SPDX-License-Identifier: MIT
#include "tensors.hpp"

#include <subfed/adapt/dlpack.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace subfed_python {

namespace {

using subfed::detail::fail;

std::string about(const tensor_place& place) {
  return std::string("subfed: ") + place.verb + ": the " + place.side + " tensor '" + place.name +
         "'" + (place.client ? " of client " + std::to_string(*place.client) : std::string());
}
[[noreturn]] void refuse(const tensor_place& place, const std::string& why) {
  fail(about(place) + " " + why, {.client = place.client, .tensor = place.name});
}

/// For as long as the interpreter lives: what torch gives. Empty until torch has been imported.
struct torch_names {
  PyObject* tensor = nullptr;  // torch.Tensor
  PyObject* to_dlpack = nullptr;
  PyObject* boolean = nullptr;  // torch.bool
  PyObject* uint8 = nullptr;
  PyObject* increment_version = nullptr;  // of torch 2.1 and later

  static const torch_names* get() {
    static torch_names found;
    if (found.tensor != nullptr) return &found;
    PyObject* const modules = PyImport_GetModuleDict();  // borrowed
    PyObject* const torch = PyDict_GetItemString(modules, "torch");
    if (torch == nullptr || PyObject_HasAttrString(torch, "Tensor") == 0) return nullptr;
    try {
      const auto module = py::reinterpret_borrow<py::object>(torch);
      const py::object dlpack = py::module_::import("torch.utils.dlpack").attr("to_dlpack");
      const py::object graph = py::module_::import("torch.autograd").attr("graph");
      if (py::hasattr(graph, "increment_version")) {
        found.increment_version = py::object(graph.attr("increment_version")).release().ptr();
      }
      found.to_dlpack = py::object(dlpack).release().ptr();
      found.boolean = py::object(module.attr("bool")).release().ptr();
      found.uint8 = py::object(module.attr("uint8")).release().ptr();
      found.tensor = py::object(module.attr("Tensor")).release().ptr();
    } catch (const py::error_already_set& error) {
      if (!error.matches(PyExc_Exception)) throw;
      return nullptr;  // torch is being imported
    }
    return &found;
  }
};

/// Exceptions that say something about the object, rather than about the program.
bool is_about_the_object(const py::error_already_set& error) {
  for (PyObject* const type : {PyExc_BufferError, PyExc_TypeError, PyExc_ValueError,
                               PyExc_RuntimeError, PyExc_AttributeError}) {
    if (error.matches(type)) return true;
  }
  return false;
}

/// "BufferError: Cannot export readonly array": what() has the whole stack after it.
std::string reason(const py::error_already_set& error) {
  const std::string said = text_of(error.value());
  return text_of(error.type().attr("__name__")) + (said.empty() ? "" : ": " + said);
}

template <class Void>
subfed::tensor_view<Void> view_of(const dl_tensor& tensor, const tensor_place& place) {
  try {
    return subfed::tensor_view<Void>(tensor);
  } catch (const subfed::error& wrong) {
    std::string why = wrong.what();
    for (const std::string_view head : {"subfed: the DLPack tensor ", "subfed: "}) {
      if (why.compare(0, head.size(), head) != 0) continue;
      why = (head.size() > 8 ? "" : "is refused: ") + why.substr(head.size());
      break;
    }
    if (tensor.device.device_type == 2) why += "; copy it there first, as with .cpu()";
    refuse(place, why);
  }
}

/// An array that exports a buffer.
template <class Void>
subfed::tensor_view<Void> from_buffer(const py::handle& object, const tensor_place& place,
                                      std::vector<tensor_owner>& owners) {
  constexpr bool writes = !std::is_const_v<Void>;
  if (std::strncmp(Py_TYPE(object.ptr())->tp_name, "MaskedArray", 11) == 0) {
    refuse(place, "is a masked array, whose mask would be ignored: fill it first");
  }
  auto buffer = std::make_unique<Py_buffer>();
  if (PyObject_GetBuffer(object.ptr(), buffer.get(), writes ? PyBUF_RECORDS : PyBUF_RECORDS_RO) !=
      0) {
    const py::error_already_set error;
    if (!is_about_the_object(error)) throw error;
    if (writes) {
      Py_buffer readable;
      if (PyObject_GetBuffer(object.ptr(), &readable, PyBUF_RECORDS_RO) == 0) {
        PyBuffer_Release(&readable);
        refuse(place, "is a destination, but is read-only");
      }
      PyErr_Clear();
    }
    refuse(place, "cannot be read: " + reason(error));
  }
  const Py_buffer& b = *buffer;
  owners.emplace_back(std::move(buffer));

  // One letter of Python's module struct, perhaps after a sign for this machine's byte order.
  std::string_view format = b.format == nullptr ? "B" : b.format;
  if (format.size() == 2 && (format[0] == '@' || format[0] == '=')) format.remove_prefix(1);
  const auto is_one_of = [&format](std::string_view letters) {
    return format.size() == 1 && letters.find(format[0]) != std::string_view::npos;
  };
  dl_tensor tensor{};
  if (is_one_of("efd")) {
    tensor.dtype.code = 2;
  } else if (is_one_of("bhilqn")) {
    tensor.dtype.code = 0;
  } else if (is_one_of("BHILQN")) {
    tensor.dtype.code = 1;
  } else if (is_one_of("?")) {
    tensor.dtype.code = 6;
  } else if (format == "Zf" || format == "Zd" || format == "Zg") {
    refuse(place, "has complex elements");
  } else {
    refuse(place, "has elements of the format '" + std::string(format) +
                      "', expected numbers in this machine's byte order");
  }
  std::int64_t shape[subfed::max_rank];
  std::int64_t strides[subfed::max_rank];
  if (b.ndim > subfed::max_rank) {
    refuse(place, "has the rank " + std::to_string(b.ndim) + ", expected 0 to 8");
  }
  for (int r = 0; r < b.ndim; ++r) {
    shape[r] = b.shape[r];
    if (b.strides[r] % b.itemsize != 0) {
      refuse(place, "has strides that are no multiples of its elements: copy it first");
    }
    strides[r] = b.strides[r] / b.itemsize;
  }
  tensor.dtype.bits = static_cast<std::uint8_t>(8 * b.itemsize);
  tensor.dtype.lanes = 1;
  tensor.data = b.buf;
  tensor.device.device_type = 1;
  tensor.ndim = b.ndim;
  tensor.shape = shape;
  tensor.strides = strides;
  return view_of<Void>(tensor, place);
}

/// The tensor of a capsule, which is renamed, as DLPack asks: from here on it is ours to delete, and
/// nobody takes it a second time.
template <class Void>
subfed::tensor_view<Void> from_capsule(PyObject* capsule, const tensor_place& place,
                                       std::vector<tensor_owner>& owners, bool is_bool) {
  if (PyCapsule_CheckExact(capsule) == 0) {
    refuse(place, std::string("gave an object of type '") + Py_TYPE(capsule)->tp_name +
                      "' by __dlpack__, expected a capsule");
  }
  if (PyCapsule_IsValid(capsule, "dltensor") != 0) {
    auto* const managed = static_cast<dl_managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
    if (PyCapsule_SetName(capsule, "used_dltensor") != 0) throw py::error_already_set();
    owners.emplace_back(managed);
    dl_tensor tensor = managed->dl_tensor;
    if (is_bool) tensor.dtype.code = 6;
    return view_of<Void>(tensor, place);
  }
  if (PyCapsule_IsValid(capsule, "dltensor_versioned") != 0) {
    auto* const managed =
        static_cast<dl_versioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    if (PyCapsule_SetName(capsule, "used_dltensor_versioned") != 0) throw py::error_already_set();
    owners.emplace_back(managed);
    if (managed->version.major != 1) {
      refuse(place,
             "has DLPack's version " + std::to_string(managed->version.major) + ", known is 1");
    }
    if (!std::is_const_v<Void> && (managed->flags & 1) != 0) {
      refuse(place, "is a destination, but is read-only");
    }
    dl_tensor tensor = managed->dl_tensor;
    if (is_bool) tensor.dtype.code = 6;
    return view_of<Void>(tensor, place);
  }
  const char* const name = PyCapsule_GetName(capsule);
  if (name == nullptr) {
    PyErr_Clear();
    refuse(place, "gave a capsule without a name by __dlpack__");
  }
  const std::string found(name);
  refuse(place, "gave a capsule named '" + found + "' by __dlpack__, " +
                    (found.compare(0, 13, "used_dltensor") == 0
                         ? "whose tensor somebody has taken: ask for a new one"
                         : "expected 'dltensor' or 'dltensor_versioned'"));
}

template <class Void>
subfed::tensor_view<Void> from_torch(const torch_names& torch, const py::handle& object,
                                     const tensor_place& place, std::vector<tensor_owner>& owners) {
  try {
    static PyObject* const is_neg = PyUnicode_InternFromString("is_neg");
    const auto negated =
        py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(object.ptr(), is_neg));
    if (!negated) throw py::error_already_set();
    if (negated.ptr() == Py_True) {
      refuse(place, "is a negated view: call resolve_neg() on it first");
    }
    const auto dtype =
        py::reinterpret_steal<py::object>(PyObject_GetAttrString(object.ptr(), "dtype"));
    if (!dtype) throw py::error_already_set();
    if (dtype.ptr() == torch.boolean) {  // which older ones do not export
      const py::object bytes = object.attr("view")(py::handle(torch.uint8));
      const auto capsule =
          py::reinterpret_steal<py::object>(PyObject_CallOneArg(torch.to_dlpack, bytes.ptr()));
      if (!capsule) throw py::error_already_set();
      return from_capsule<Void>(capsule.ptr(), place, owners, true);
    }
    const auto capsule =
        py::reinterpret_steal<py::object>(PyObject_CallOneArg(torch.to_dlpack, object.ptr()));
    if (!capsule) throw py::error_already_set();
    return from_capsule<Void>(capsule.ptr(), place, owners, false);
  } catch (const py::error_already_set& error) {
    if (!is_about_the_object(error)) throw;
    refuse(place, "cannot be read: " + reason(error));
  }
}

/// What object.__dlpack__() gives. The version is asked for first: only versioned tensors say that
/// they are only read. Objects from before it do not know the word.
py::object dlpack_capsule(const py::handle& object) {
  const py::object export_it = object.attr("__dlpack__");
  try {
    return export_it("max_version"_a = py::make_tuple(1, 0));
  } catch (const py::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return export_it();
}

template <class Void>
subfed::tensor_view<Void> from_any(const py::handle& object, const tensor_place& place,
                                   std::vector<tensor_owner>& owners) {
  const torch_names* const torch = torch_names::get();
  if (torch != nullptr &&
      PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(torch->tensor)) != 0) {
    return from_torch<Void>(*torch, object, place, owners);
  }
  if (PyObject_CheckBuffer(object.ptr()) != 0) return from_buffer<Void>(object, place, owners);
  if (!py::hasattr(object, "__dlpack__")) {
    refuse(place, "is of type '" + type_name(object) +
                      "', expected a numpy array, a torch tensor or another with __dlpack__");
  }
  py::object capsule;
  try {
    capsule = dlpack_capsule(object);
  } catch (const py::error_already_set& error) {
    if (!is_about_the_object(error)) throw;
    refuse(place, "cannot be read: " + reason(error));
  }
  return from_capsule<Void>(capsule.ptr(), place, owners, false);
}

/// One object, or two torch tensors of the same elements, as a state_dict gives for tied weights.
bool is_same_tensor(const py::handle& a, const py::handle& b) {
  if (a.is(b)) return true;
  return is_torch(a) && is_torch(b) && a.attr("shape").equal(b.attr("shape")) &&
         a.attr("numel")().cast<std::int64_t>() > 0 && a.attr("dtype").is(b.attr("dtype")) &&
         a.attr("stride")().equal(b.attr("stride")()) &&
         a.attr("data_ptr")().equal(b.attr("data_ptr")());
}

/// The objects by the names of the model's tensors.
std::vector<py::object> by_names(const subfed::model& net, const py::dict& tensors,
                                 const char* verb, const char* side,
                                 std::optional<std::uint64_t> client,
                                 std::vector<std::pair<std::string, std::size_t>>& aliases) {
  std::vector<py::object> out;
  std::size_t found = 0;
  const auto described = net.tensors();
  out.reserve(described.size());
  for (const auto& tensor : described) {
    const py::str name(tensor.name);
    PyObject* const object = PyDict_GetItemWithError(tensors.ptr(), name.ptr());  // borrowed
    if (object == nullptr) {
      if (PyErr_Occurred() != nullptr) throw py::error_already_set();
      if (client && tensor.is_local()) {
        out.emplace_back();
        continue;
      }
      refuse({verb, side, tensor.name, client}, "is missing");
    }
    ++found;
    out.push_back(py::reinterpret_borrow<py::object>(object));
  }
  if (found == tensors.size()) return out;
  for (const auto& [key, object] : tensors) {
    const std::string name = text_of(key);
    if (py::isinstance<py::str>(key) &&
        std::any_of(described.begin(), described.end(),
                    [&name = name](const auto& t) { return t.name == name; })) {
      continue;
    }
    const auto same = std::find_if(out.begin(), out.end(), [&object = object](const py::object& t) {
      return t && is_same_tensor(t, object);
    });
    if (same == out.end()) refuse({verb, side, name, client}, "is not in the model's description");
    aliases.emplace_back(name, static_cast<std::size_t>(same - out.begin()));
  }
  return out;
}

}  // namespace

bool is_torch(const py::handle& object) {
  const torch_names* const torch = torch_names::get();
  return torch != nullptr &&
         PyObject_TypeCheck(object.ptr(), reinterpret_cast<PyTypeObject*>(torch->tensor)) != 0;
}

template <class Void>
tensor_list<Void>::tensor_list(const subfed::model& net, const py::handle& tensors,
                               const char* verb, const char* side,
                               std::optional<std::uint64_t> client) {
  py::object from = py::reinterpret_borrow<py::object>(tensors);
  if (!PyDict_Check(from.ptr()) && py::hasattr(from, "state_dict"))
    from = from.attr("state_dict")();
  if (PyDict_Check(from.ptr())) {
    objects_ = by_names(net, py::reinterpret_borrow<py::dict>(from), verb, side, client, aliases_);
  } else if (py::hasattr(from, "keys") && py::hasattr(from, "__getitem__")) {
    objects_ = by_names(net, py::dict(from), verb, side, client, aliases_);
  } else {
    if (is_torch(from) || PyObject_CheckBuffer(from.ptr()) != 0 || PyUnicode_Check(from.ptr()) ||
        !py::hasattr(from, "__iter__")) {
      throw py::type_error(std::string("subfed: ") + verb + ": the " + side +
                           " tensors are given as '" + type_name(from) +
                           "', expected a dict by name, or a list in the model's order");
    }
    by_name_ = false;
    for (const py::handle& object : from) {
      objects_.push_back(py::reinterpret_borrow<py::object>(object));
    }
    if (objects_.size() != net.tensors().size()) {
      const auto described = net.tensors();
      fail(std::string("subfed: ") + verb + ": " + std::to_string(objects_.size()) + " " + side +
               " tensors are given" +
               (client ? " by client " + std::to_string(*client) : std::string()) +
               ", the model has " + std::to_string(described.size()),
           {.client = client,
            .tensor = objects_.size() < described.size() ? described[objects_.size()].name : ""});
    }
  }
  owners_.reserve(objects_.size());
  views_.reserve(objects_.size());
  for (std::size_t t = 0; t < objects_.size(); ++t) {
    const auto& info = net.tensors()[t];
    if (client && info.is_local()) {  // never read
      views_.push_back(subfed::tensor_view<float>(nullptr, {0}));
      continue;
    }
    views_.push_back(from_any<Void>(objects_[t], {verb, side, info.name, client}, owners_));
  }
}

template <class Void>
void tensor_list<Void>::bump_versions() const {
  if constexpr (writes) {
    const torch_names* const torch = torch_names::get();
    if (torch == nullptr) return;
    for (const py::object& object : objects_) {
      if (!is_torch(object)) continue;
      if (torch->increment_version != nullptr) {
        py::reinterpret_borrow<py::object>(torch->increment_version)(object);
        continue;
      }
      // An alias of it is given another shape, in place: that is what counts, and costs least.
      static PyObject* const detach = PyUnicode_InternFromString("detach");
      static PyObject* const squeeze = PyUnicode_InternFromString("squeeze_");
      const auto alias =
          py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(object.ptr(), detach));
      if (!alias) throw py::error_already_set();
      const auto counted =
          py::reinterpret_steal<py::object>(PyObject_CallMethodNoArgs(alias.ptr(), squeeze));
      if (!counted) throw py::error_already_set();
    }
  }
}

template class tensor_list<void>;
template class tensor_list<const void>;

py::object new_locals(const subfed::submodel& sub, const tensor_list<const void>& globals) {
  const auto described = sub.parent().tensors();
  py::object numpy_empty;
  py::list list;
  py::dict dict;
  for (std::size_t t = 0; t < described.size(); ++t) {
    const py::object& from = globals.objects()[t];
    const py::tuple shape = shape_tuple(sub.extents(subfed::tensor_id(t)));
    py::object made;
    if (is_torch(from)) {
      made = from.attr("new_empty")(shape);
    } else {
      if (!numpy_empty) numpy_empty = py::module_::import("numpy").attr("empty");
      py::object dtype;
      if (py::hasattr(from, "dtype") && PyObject_CheckBuffer(from.ptr()) != 0) {
        dtype = from.attr("dtype");
      } else {
        const std::string name = globals.views()[t].element_name();
        if (name == "bfloat16") {
          refuse({"slice", "global", described[t].name},
                 "has elements of bfloat16, which numpy "
                 "lacks: give the tensors to write to as out");
        }
        dtype = py::str(name == "float"    ? "float32"
                        : name == "double" ? "float64"
                        : name == "half"   ? "float16"
                                           : name);
      }
      made = numpy_empty(shape, dtype);
    }
    if (globals.by_name()) {
      dict[py::str(described[t].name)] = made;
    } else {
      list.append(made);
    }
  }
  for (const auto& [name, t] : globals.aliases()) {
    dict[py::str(name)] = dict[py::str(described[t].name)];
  }
  return globals.by_name() ? py::object(dict) : py::object(list);
}

}  // namespace subfed_python
