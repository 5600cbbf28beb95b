// SPDX-License-Identifier: MIT
/// A run that can be continued: tensors and texts in a safetensors file.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "method.hpp"

namespace trainer {

struct checkpoint {
  tensor_map tensors;                        // of float, double or int, on the CPU
  std::map<std::string, std::string> texts;  // the file's metadata, but for its checksum
};

/// Adds tensors under a prefix, and takes those with the prefix out.
void add(checkpoint& to, const std::string& prefix, const tensor_map& tensors);
tensor_map with_prefix(const checkpoint& from, const std::string& prefix);

/// Throws  failure unless there is a tensor of that name, shape and type.
const at::Tensor& expected(const tensor_map& kept, const std::string& name, at::IntArrayRef shape,
                           at::ScalarType type);

/// Writes the file, which appears complete or not at all.
///
/// Throws  failure when it cannot be written.
void save(const checkpoint& kept, const std::filesystem::path& path);

/// Throws  failure that names the file when it cannot be read, is not such a file, or has another
///         checksum than when it was written.
checkpoint load(const std::filesystem::path& path);

}  // namespace trainer
