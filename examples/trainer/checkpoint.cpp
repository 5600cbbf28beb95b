// SPDX-License-Identifier: MIT
#include "checkpoint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <common/files.hpp>
#include <cstdint>
#include <exception>
#include <subfed/adapt/safetensors.hpp>
#include <subfed/adapt/torch.hpp>
#include <vector>

#include "data.hpp"
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

/// Of all but the file's own way of writing it.
std::string sum_of(const checkpoint& kept) {
  std::uint32_t sum = 0;
  const auto add = [&](const std::string& text) {
    sum = checksum(sum, text.data(), text.size() + 1);  // with the 0 after it
  };
  for (const auto& [name, text] : kept.texts) add(name), add(text);
  for (const auto& [name, tensor] : kept.tensors) {
    add(fmt::format("{} {} {}", name, at::toString(tensor.scalar_type()),
                    fmt::join(tensor.sizes(), ",")));
    const at::Tensor dense = tensor.contiguous();
    sum = checksum(sum, dense.data_ptr(), static_cast<std::size_t>(dense.nbytes()));
  }
  return fmt::format("{:08x}", sum);
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
  std::vector<subfed::safetensors_view::text_pair> texts(kept.texts.begin(), kept.texts.end());
  const std::string sum = sum_of(kept);
  texts.emplace_back("checksum", sum);
  common::write_file(path, subfed::write_safetensors<std::string>(tensors, texts));
}

checkpoint load(const std::filesystem::path& path) {
  const std::string bytes = common::read_file(path);
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
    const auto sum = out.texts.extract("checksum");
    if (sum.empty()) throw failure("it has no checksum");
    if (sum.mapped() != sum_of(out)) throw failure("its checksum is wrong");
    return out;
  } catch (const std::exception& error) {
    throw failure(fmt::format("{} is damaged: {}; without the file the method starts over.",
                              path.string(), error.what()));
  }
}

}  // namespace trainer
