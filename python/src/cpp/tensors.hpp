// SPDX-License-Identifier: MIT
/// Python's arrays as views of the library, without copies: numpy and its like by the buffer
/// protocol, torch and all others by DLPack of both generations.
#pragma once

#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/untyped_view.hpp>

#include "common.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed_python {

/// DLTensor, DLManagedTensor and DLManagedTensorVersioned, whose layout the DLPack ABI fixes.
struct dl_tensor {
  void* data;
  struct {
    std::int32_t device_type;
    std::int32_t device_id;
  } device;
  std::int32_t ndim;
  struct {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
  } dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
struct dl_managed {
  subfed_python::dl_tensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(dl_managed*);
};
struct dl_versioned {
  struct {
    std::uint32_t major;
    std::uint32_t minor;
  } version;
  void* manager_ctx;
  void (*deleter)(dl_versioned*);
  std::uint64_t flags;
  subfed_python::dl_tensor dl_tensor;
};

/// What stands in messages about a tensor.
struct tensor_place {
  const char* verb;  ///< "slice"
  const char* side;  ///< "global", "local"
  const std::string& name;
  std::optional<std::uint64_t> client = {};
};

/// Keeps an exported buffer or tensor; given back under the GIL.
class tensor_owner {
 public:
  tensor_owner() = default;
  explicit tensor_owner(std::unique_ptr<Py_buffer> buffer) : buffer_(buffer.release()) {}
  explicit tensor_owner(dl_managed* managed) : managed_(managed) {}
  explicit tensor_owner(dl_versioned* versioned) : versioned_(versioned) {}
  tensor_owner(tensor_owner&& other) noexcept
      : buffer_(std::exchange(other.buffer_, nullptr)),
        managed_(std::exchange(other.managed_, nullptr)),
        versioned_(std::exchange(other.versioned_, nullptr)) {}
  tensor_owner& operator=(tensor_owner&&) = delete;
  ~tensor_owner() {
    if (buffer_ != nullptr) {
      PyBuffer_Release(buffer_);
      delete buffer_;
    }
    if (managed_ != nullptr && managed_->deleter != nullptr) managed_->deleter(managed_);
    if (versioned_ != nullptr && versioned_->deleter != nullptr) versioned_->deleter(versioned_);
  }

 private:
  Py_buffer* buffer_ = nullptr;
  dl_managed* managed_ = nullptr;
  dl_versioned* versioned_ = nullptr;
};

/// The tensors of a model or a submodel, in the model's order, exported for one call.
///
/// Void const: to read. Torch tensors that are written get a higher version in bump_versions().
template <class Void>
class tensor_list {
 public:
  static constexpr bool writes = !std::is_const_v<Void>;

  /// tensors: a mapping by name, in any order; a torch module; or a list in the model's order. Of an
  /// update (client given) tensors that stay with the client may be missing.
  ///
  /// Throws  error that names the tensor, and the client, for a missing or an unknown name, a wrong
  ///         number, and whatever is no tensor that the CPU reaches.
  tensor_list(const subfed::model& net, const py::handle& tensors, const char* verb,
              const char* side, std::optional<std::uint64_t> client = {});

  const std::vector<subfed::tensor_view<Void>>& views() const noexcept { return views_; }
  /// The objects themselves, in the model's order.
  const std::vector<py::object>& objects() const noexcept { return objects_; }
  bool by_name() const noexcept { return by_name_; }
  /// Other names of tensors that the model has once: tied weights, as a state_dict lists them.
  const std::vector<std::pair<std::string, std::size_t>>& aliases() const noexcept {
    return aliases_;
  }
  void bump_versions() const;

 private:
  std::vector<py::object> objects_;
  std::vector<std::pair<std::string, std::size_t>> aliases_;
  std::vector<tensor_owner> owners_;
  std::vector<subfed::tensor_view<Void>> views_;
  bool by_name_ = true;
};

extern template class tensor_list<void>;
extern template class tensor_list<const void>;

/// Whether an object is a torch tensor. False while torch has not been imported.
bool is_torch(const py::handle& object);

/// New tensors for a submodel, of the libraries and element types of the global ones.
py::object new_locals(const subfed::submodel& sub, const tensor_list<const void>& globals);

}  // namespace subfed_python
