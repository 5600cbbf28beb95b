// SPDX-License-Identifier: MIT
/// Tensors from Python, and tensors for Python: over DLPack, both generations, and over the buffer
/// protocol, where DLPack does not carry read-only arrays. To be copied.
#pragma once

#include <dlpack/dlpack.h>
#include <pybind11/pybind11.h>

#include <subfed/adapt/dlpack.hpp>
#include <subfed/untyped_view.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace subfed_python {

namespace py = pybind11;

/// DLManagedTensorVersioned as dlpack.h has it from version 1.0 on; older ones lack it.
struct versioned_tensor {
  struct {
    std::uint32_t major;
    std::uint32_t minor;
  } version;
  void* manager_ctx;
  void (*deleter)(versioned_tensor* self);
  std::uint64_t flags;
  DLTensor dl_tensor;
};

inline constexpr const char* plain_name = "dltensor";
inline constexpr const char* versioned_name = "dltensor_versioned";

/// Moves the tensor out of a capsule that has this name. The capsule is renamed, as DLPack asks:
/// from here on we must delete the tensor, and nobody can take it a second time.
template <class Managed>
subfed::dlpack_tensor<Managed> taken(PyObject* capsule, const char* name, const char* used) {
  auto* const managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  if (managed == nullptr || PyCapsule_SetName(capsule, used) != 0) throw py::error_already_set();
  return subfed::dlpack_tensor<Managed>(managed);
}

/// An array that exports a buffer, as a read-only tensor.
inline subfed::dlpack_tensor<versioned_tensor> read_only(const py::buffer& array) {
  py::buffer_info buffer = array.request();  // holds the array
  // One letter of Python's module struct, perhaps after a sign for this machine's byte order.
  std::string format = buffer.format;
  if (format.size() == 2 && (format[0] == '@' || format[0] == '=')) format.erase(0, 1);
  const auto is_one_of = [&format](std::string_view letters) {
    return format.size() == 1 && letters.find(format[0]) != std::string_view::npos;
  };
  DLTensor tensor{};
  if (is_one_of("efd")) {
    tensor.dtype.code = kDLFloat;
  } else if (is_one_of("bhilqn")) {
    tensor.dtype.code = kDLInt;
  } else if (is_one_of("BHILQN")) {
    tensor.dtype.code = kDLUInt;
  } else if (is_one_of("?")) {
    tensor.dtype.code = 6;  // kDLBool, which older headers lack
  } else {
    throw py::type_error("An array has elements of the format '" + buffer.format +
                         "', expected numbers in this machine's byte order.");
  }
  tensor.dtype.bits = static_cast<std::uint8_t>(8 * buffer.itemsize);
  tensor.dtype.lanes = 1;
  std::vector<std::int64_t> shape(buffer.shape.begin(), buffer.shape.end()), strides;
  for (const py::ssize_t bytes : buffer.strides) {
    if (bytes % buffer.itemsize != 0) {
      throw py::value_error("An array has strides that are no multiples of its elements: copy it.");
    }
    strides.push_back(bytes / buffer.itemsize);
  }
  tensor.data = buffer.ptr;
  tensor.device = {kDLCPU, 0};
  tensor.ndim = static_cast<std::int32_t>(shape.size());
  tensor.shape = shape.data();
  tensor.strides = strides.data();
  return subfed::tensor_view<const void>(tensor).visit([&](const auto& view) {
    return subfed::export_dlpack<versioned_tensor>(view, std::move(buffer));
  });
}

/// A tensor from Python, kept until this object ends.
class python_tensor {
 public:
  /// What object.__dlpack__() gives. Arrays that refuse because they are read-only
  /// (NumPy before 2.1) are read through the buffer protocol.
  static python_tensor to_read(const py::handle& object) {
    py::object capsule;
    try {
      capsule = exported(object);
    } catch (const py::error_already_set& error) {
      if (!error.matches(PyExc_BufferError) || !PyObject_CheckBuffer(object.ptr())) throw;
      return python_tensor(read_only(py::reinterpret_borrow<py::buffer>(object)));
    }
    return from_capsule(capsule.ptr());
  }
  /// The same without that second way.
  static python_tensor to_write(const py::handle& object) {
    return from_capsule(exported(object).ptr());
  }

  /// Void const: to read; without const: to write.
  ///
  /// Throws  subfed::error for what the CPU cannot reach and for types that subfed lacks, and for a
  ///         destination that is read-only.
  template <class Void>
  subfed::tensor_view<Void> view() const {
    return std::visit([](const auto& tensor) { return subfed::tensor_view<Void>(tensor); },
                      tensor_);
  }

 private:
  using any =
      std::variant<subfed::dlpack_tensor<DLManagedTensor>, subfed::dlpack_tensor<versioned_tensor>>;
  explicit python_tensor(any tensor) : tensor_(std::move(tensor)) {}

  /// A versioned tensor is requested first: only these say whether they are read-only. Older
  /// objects do not know the argument.
  static py::object exported(const py::handle& object) {
    const py::object export_it = object.attr("__dlpack__");
    try {
      return export_it(py::arg("max_version") = py::make_tuple(1, 0));
    } catch (const py::error_already_set& error) {
      if (!error.matches(PyExc_TypeError)) throw;
    }
    return export_it();
  }

  static python_tensor from_capsule(PyObject* object) {
    if (!PyCapsule_CheckExact(object)) {
      throw py::type_error(std::string("__dlpack__ gave an object of type '") +
                           Py_TYPE(object)->tp_name + "', expected a capsule.");
    }
    if (PyCapsule_IsValid(object, plain_name)) {
      return python_tensor(taken<DLManagedTensor>(object, plain_name, "used_dltensor"));
    }
    if (PyCapsule_IsValid(object, versioned_name)) {
      return python_tensor(
          taken<versioned_tensor>(object, versioned_name, "used_dltensor_versioned"));
    }
    const char* const name = PyCapsule_GetName(object);
    const std::string found = name == nullptr ? "a capsule without a name"
                                              : "a capsule named '" + std::string(name) + "'";
    throw py::value_error("__dlpack__ gave " + found +
                          (found.find("'used_dltensor") != std::string::npos
                               ? ", whose tensor somebody has taken: ask for a new one."
                               : std::string(", expected 'dltensor' or 'dltensor_versioned'.")));
  }

  any tensor_;
};

/// Several of them, as views.
class python_tensors {
 public:
  static python_tensors to_read(const py::sequence& objects) {
    python_tensors out;
    for (const py::handle& o : objects) out.tensors_.push_back(python_tensor::to_read(o));
    return out;
  }
  static python_tensors to_write(const py::sequence& objects) {
    python_tensors out;
    for (const py::handle& o : objects) out.tensors_.push_back(python_tensor::to_write(o));
    return out;
  }
  template <class Void>
  std::vector<subfed::tensor_view<Void>> views() const {
    std::vector<subfed::tensor_view<Void>> out;
    for (const python_tensor& t : tensors_) out.push_back(t.view<Void>());
    return out;
  }

 private:
  std::vector<python_tensor> tensors_;
};

/// A tensor for Python: an array by numpy.asarray(t), which can be written to, or by from_dlpack(t)
/// of any library.
class new_tensor {
 public:
  explicit new_tensor(std::span<const std::int64_t> extents)
      : extents_(extents.begin(), extents.end()) {
    std::size_t size = 1;
    for (const std::int64_t e : extents) size *= static_cast<std::size_t>(e);
    data_ = std::make_shared<std::vector<float>>(size);
  }

  subfed::tensor_view<float> view() const { return {data_->data(), extents_}; }
  py::buffer_info buffer() const {
    return py::buffer_info(
        data_->data(), std::vector<py::ssize_t>(extents_.begin(), extents_.end()),
        py::detail::c_strides({extents_.begin(), extents_.end()}, sizeof(float)));
  }

  /// A capsule of the generation that the receiver knows.
  py::object dlpack(const py::kwargs& named) const {
    if (named.contains("max_version") && !named["max_version"].is_none() &&
        named["max_version"].cast<py::tuple>()[0].cast<int>() >= 1) {
      return capsule<versioned_tensor>(versioned_name);
    }
    return capsule<DLManagedTensor>(plain_name);
  }

 private:
  template <class Managed>
  py::object capsule(const char* name) const {
    auto tensor = subfed::export_dlpack<Managed>(view(), data_);
    PyObject* const made =
        PyCapsule_New(const_cast<Managed*>(&tensor.get()), name, &forget<Managed>);
    if (made == nullptr) throw py::error_already_set();  // the tensor is still ours
    static_cast<void>(std::move(tensor).release());
    return py::reinterpret_steal<py::object>(made);
  }
  /// Deletes the tensor of a capsule that nobody took.
  template <class Managed>
  static void forget(PyObject* object) {
    const char* const name = PyCapsule_GetName(object);
    if (name == nullptr || std::string_view(name).substr(0, 8) != plain_name) return;
    const subfed::dlpack_tensor<Managed> tensor(
        static_cast<Managed*>(PyCapsule_GetPointer(object, name)));
  }

  std::vector<std::int64_t> extents_;
  std::shared_ptr<std::vector<float>> data_;
};

}  // namespace subfed_python
