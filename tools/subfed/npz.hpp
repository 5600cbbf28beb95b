// SPDX-License-Identifier: MIT
/// .npz files, as numpy.savez writes them. They are read into memory, as the safetensors file of the
/// same tensors, so that everything else knows one format. Needs libzip.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace tool {

inline bool is_npz(const std::filesystem::path& path) { return path.extension() == ".npz"; }

/// The arrays of a .npz file, stored or compressed, as a safetensors file in memory. Metadata is in the
/// archive's comment, as JSON, where npz_bytes wrote it.
///
/// Throws  failure that names file and array: no archive, a wrong checksum, an array that npy_view does
///         not read, a size that the file's bytes cannot hold.
std::vector<std::byte> read_npz(const std::filesystem::path& path);

/// The .npz file of a safetensors file in memory. Same bytes in, same bytes out: entries have no date.
///
/// Throws  failure that names the tensor, for types that NumPy does not have: bfloat16, FP8.
std::string npz_bytes(std::span<const std::byte> safetensors, const std::filesystem::path& path);

}  // namespace tool
