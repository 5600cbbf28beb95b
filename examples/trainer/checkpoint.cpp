// SPDX-License-Identifier: MIT
#include "checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <common/output.hpp>
#include <fstream>
#include <iterator>
#include <subfed/adapt/safetensors.hpp>
#include <subfed/adapt/torch.hpp>
#include <vector>

#include "failure.hpp"

namespace trainer {
namespace {

template <class T>
at::Tensor read_tensor(const subfed::byte_tensor& from, at::ScalarType type) {
  const auto values = subfed::aligned_copy<T>(from);
  at::Tensor out = at::empty(at::IntArrayRef(from.extents().data(), from.extents().size()), type);
  std::copy_n(values.data(), out.numel(), out.data_ptr<T>());
  return out;
}

}  // namespace

void add(checkpoint& to, const std::string& prefix, const tensor_map& tensors) {
  for (const auto& [name, tensor] : tensors) to.tensors.insert_or_assign(prefix + name, tensor);
}

tensor_map with_prefix(const checkpoint& from, const std::string& prefix) {
  tensor_map out;
  for (const auto& [name, tensor] : from.tensors) {
    if (name.starts_with(prefix)) out.emplace(name.substr(prefix.size()), tensor);
  }
  return out;
}

const at::Tensor& expected(const tensor_map& kept, const std::string& name, at::IntArrayRef shape,
                           at::ScalarType type) {
  const auto found = kept.find(name);
  if (found == kept.end() || found->second.sizes() != shape ||
      found->second.scalar_type() != type) {
    throw failure(fmt::format("there is no tensor {} of shape ({}) and the right type", name,
                              fmt::join(shape, ", ")));
  }
  return found->second;
}

void save(const checkpoint& kept, const std::filesystem::path& path) {
  std::vector<at::Tensor> alive;  // views own nothing
  std::vector<subfed::named_view> tensors;
  for (const auto& [name, tensor] : kept.tensors) {
    const at::IntArrayRef shape = tensor.sizes();
    const std::span<const std::int64_t> extents(shape.data(), shape.size());
    const at::Tensor dense = tensor.contiguous();
    alive.push_back(dense);
    if (dense.scalar_type() == at::kDouble) {
      tensors.emplace_back(name,
                           subfed::tensor_view<const double>(dense.data_ptr<double>(), extents));
    } else if (dense.scalar_type() == at::kInt) {
      tensors.emplace_back(name, subfed::tensor_view<const int>(dense.data_ptr<int>(), extents));
    } else {
      tensors.emplace_back(name,
                           subfed::tensor_view<const float>(dense.data_ptr<float>(), extents));
    }
  }
  const std::vector<subfed::safetensors_view::text_pair> texts(kept.texts.begin(),
                                                               kept.texts.end());
  common::write_file(path, subfed::write_safetensors<std::string>(tensors, texts));
}

checkpoint load(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) throw failure(fmt::format("The checkpoint {} cannot be read.", path.string()));
  try {
    const subfed::safetensors_view view(bytes);
    checkpoint out;
    for (const auto& [key, text] : view.metadata()) out.texts[key] = text;
    for (const auto& [name, tensor] : view) {
      if (tensor.holds<float>()) {
        out.tensors[name] = read_tensor<float>(tensor, at::kFloat);
      } else if (tensor.holds<double>()) {
        out.tensors[name] = read_tensor<double>(tensor, at::kDouble);
      } else {
        out.tensors[name] = read_tensor<int>(tensor, at::kInt);
      }
    }
    return out;
  } catch (const subfed::error& error) {
    throw failure(fmt::format("The checkpoint {} is damaged: {}.", path.string(), error.what()));
  }
}

}  // namespace trainer
