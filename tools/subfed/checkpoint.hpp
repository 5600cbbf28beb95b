// SPDX-License-Identifier: MIT
/// A model's tensors in files: one safetensors file, several with an index, as large models are kept,
/// or a .npz file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <subfed/adapt/safetensors.hpp>
#include <subfed/untyped_view.hpp>
#include <utility>
#include <vector>

#include "mapping.hpp"

namespace tool {

/// One file of a checkpoint, mapped.
struct checkpoint_part {
  mapped_file file;
  subfed::safetensors_view view;
};

struct stored_tensor {
  std::string name;
  subfed::byte_tensor tensor;
  std::size_t part;
};

class checkpoint {
 public:
  /// Reads the headers of a .safetensors or .npz file, or of the files that a .json index names in its own
  /// folder.
  ///
  /// Throws  failure that names the file when it cannot be read or is damaged, when a part is named
  ///         by a path that leaves the folder, and when the index and the parts disagree.
  explicit checkpoint(std::filesystem::path path);

  const std::filesystem::path& path() const { return path_; }
  bool has_index() const { return has_index_; }
  const std::vector<checkpoint_part>& parts() const { return parts_; }
  /// In the order of the parts and of the bytes in them.
  const std::vector<stored_tensor>& tensors() const { return tensors_; }
  const stored_tensor* find(std::string_view name) const;
  /// Throws  failure that names file and tensor when there is none.
  const stored_tensor& at(std::string_view name) const;
  /// The value for a key in the metadata of the first part; null when it has none.
  const std::string* metadata(std::string_view key) const;
  std::size_t bytes() const;

 private:
  std::filesystem::path path_;
  bool has_index_ = false;
  std::vector<checkpoint_part> parts_;
  std::vector<stored_tensor> tensors_;
  std::vector<std::size_t> by_name_;
};

/// Whether elements of a tensor's type can be at an address.
bool is_aligned(const subfed::byte_tensor& tensor, const std::byte* at);

/// A view of a tensor in a file. Where its address does not suit its type, of a copy that `copies`
/// owns.
///
/// Throws  failure that names file and tensor for a type that cannot be averaged.
class aligned_views {
 public:
  subfed::tensor_view<const void> view(const checkpoint& of, const stored_tensor& tensor);

 private:
  std::vector<std::unique_ptr<std::max_align_t[]>> copies_;
};

/// The header of a safetensors file for tensors of these shapes, and where each begins after it.
struct planned_tensor {
  std::string name;
  std::string dtype;  // the format's name
  std::vector<std::int64_t> extents;
  std::size_t bytes;
  int bits;  // of an element
};
struct planned_file {
  std::string header;                // with its length before it
  std::vector<std::size_t> offsets;  // of the tensors, from the file's beginning
  std::size_t bytes;
};
/// Tensors by decreasing element size, then by name, as write_safetensors does.
planned_file plan_file(std::span<const planned_tensor> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata);

/// The format's name of a tensor's type.
std::string dtype_of(const subfed::byte_tensor& tensor);

/// "(64, 3, 7, 7)"
std::string shape_text(std::span<const std::int64_t> extents);
/// "1.50 GB"
std::string bytes_text(double bytes);

}  // namespace tool
