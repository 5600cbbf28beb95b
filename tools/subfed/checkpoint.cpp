// SPDX-License-Identifier: MIT
#include "checkpoint.hpp"

#include <algorithm>
#include <common/failure.hpp>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include <fmt/format.h>

namespace tool {
namespace {

using common::failure;
using nlohmann::json;

/// The names of the parts and of each part's tensors, in the order of the names.
std::vector<std::pair<std::string, std::vector<std::string>>> read_index(
    const std::filesystem::path& path) {
  const auto refused = [&](const std::string& why) {
    return failure(fmt::format("{}: {}", path.string(), why));
  };
  json index;
  try {
    index = json::parse(common::read_file(path));
  } catch (const json::exception&) {
    throw refused("it is not JSON.");
  }
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    throw refused("an index has a \"weight_map\" from tensors to files, and this file has none.");
  }
  std::vector<std::pair<std::string, std::vector<std::string>>> out;
  for (const auto& [tensor, file] : index["weight_map"].items()) {
    if (!file.is_string()) throw refused(fmt::format("tensor \"{}\" has no file.", tensor));
    const auto name = file.get<std::string>();
    const bool plain = !name.empty() && name.find('/') == std::string::npos &&
                       name.find('\0') == std::string::npos && name != "." && name != "..";
    if (!plain) {
      throw refused(
          fmt::format("tensor \"{}\" is said to be in \"{}\", which is not the name of "
                      "a file in the index's own folder.",
                      tensor, name));
    }
    const auto at =
        std::find_if(out.begin(), out.end(), [&](const auto& o) { return o.first == name; });
    if (at == out.end()) {
      out.push_back({name, {tensor}});
    } else {
      at->second.push_back(tensor);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

checkpoint::checkpoint(std::filesystem::path path) : path_(std::move(path)) {
  const auto add = [&](const std::filesystem::path& file) {
    mapped_file mapped(file);
    auto view = common::about_file(file, [&] { return subfed::safetensors_view(mapped.bytes()); });
    parts_.push_back({std::move(mapped), std::move(view)});
  };
  has_index_ = path_.extension() == ".json";
  if (!has_index_) {
    add(path_);
  } else {
    for (const auto& [name, tensors] : read_index(path_)) {
      add(common::detail::folder_of(path_) / name);
      for (const std::string& tensor : tensors) {
        if (parts_.back().view.contains(tensor)) continue;
        throw failure(fmt::format("{}: tensor \"{}\" is said to be in {}, which lacks it.",
                                  path_.string(), tensor, name));
      }
      for (const auto& entry : parts_.back().view) {
        if (std::binary_search(tensors.begin(), tensors.end(), entry.name)) continue;
        throw failure(fmt::format("{}: {} has the tensor \"{}\", which the index does not name.",
                                  path_.string(), name, entry.name));
      }
    }
  }
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    for (const auto& entry : parts_[p].view) tensors_.push_back({entry.name, entry.tensor, p});
  }
  by_name_.resize(tensors_.size());
  std::iota(by_name_.begin(), by_name_.end(), std::size_t{0});
  std::sort(by_name_.begin(), by_name_.end(),
            [&](std::size_t a, std::size_t b) { return tensors_[a].name < tensors_[b].name; });
}

const stored_tensor* checkpoint::find(std::string_view name) const {
  const auto at =
      std::lower_bound(by_name_.begin(), by_name_.end(), name,
                       [&](std::size_t i, std::string_view n) { return tensors_[i].name < n; });
  return at != by_name_.end() && tensors_[*at].name == name ? &tensors_[*at] : nullptr;
}

const stored_tensor& checkpoint::at(std::string_view name) const {
  const stored_tensor* const found = find(name);
  if (found == nullptr) {
    throw failure(fmt::format("{}: there is no tensor \"{}\".", path_.string(), name));
  }
  return *found;
}

const std::string* checkpoint::metadata(std::string_view key) const {
  if (parts_.empty()) return nullptr;
  for (const auto& [name, value] : parts_[0].view.metadata()) {
    if (name == key) return &value;
  }
  return nullptr;
}

std::size_t checkpoint::bytes() const {
  std::size_t out = 0;
  for (const checkpoint_part& part : parts_) out += part.file.bytes().size();
  return out;
}

bool is_aligned(const subfed::byte_tensor& tensor, const std::byte* at) {
  constexpr std::size_t widest = 8;
  const auto element = static_cast<std::size_t>(tensor.format().bits) / 8;
  return !tensor.has_elements() || element == 0 || element > widest ||
         reinterpret_cast<std::uintptr_t>(at) % element == 0;
}

subfed::tensor_view<const void> aligned_views::view(const checkpoint& of,
                                                    const stored_tensor& stored) {
  const subfed::byte_tensor& tensor = stored.tensor;
  return common::about_file(of.path(), [&]() -> subfed::tensor_view<const void> {
    const auto size = static_cast<std::size_t>(tensor.size_bytes());
    if (is_aligned(tensor, tensor.data())) return subfed::tensor_view<const void>(tensor);
    const std::size_t units = size / sizeof(std::max_align_t) + 1;
    copies_.push_back(std::make_unique<std::max_align_t[]>(units));
    std::memcpy(copies_.back().get(), tensor.data(), size);
    const subfed::byte_tensor moved(
        tensor.label(), tensor.format(), {tensor.extents().begin(), tensor.extents().end()},
        tensor.element_order(), reinterpret_cast<const std::byte*>(copies_.back().get()));
    return subfed::tensor_view<const void>(moved);
  });
}

planned_file plan_file(std::span<const planned_tensor> tensors,
                       std::span<const std::pair<std::string, std::string>> metadata) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(-tensors[a].bits, tensors[a].name) <
           std::pair(-tensors[b].bits, tensors[b].name);
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) {
    std::vector<std::pair<std::string, std::string>> sorted(metadata.begin(), metadata.end());
    std::sort(sorted.begin(), sorted.end());
    for (const auto& [key, value] : sorted) header["__metadata__"][key] = value;
  }
  planned_file out{{}, std::vector<std::size_t>(tensors.size()), 0};
  std::size_t at = 0;
  for (const std::size_t i : order) {
    const planned_tensor& t = tensors[i];
    header[t.name] = {
        {"dtype", t.dtype}, {"shape", t.extents}, {"data_offsets", {at, at + t.bytes}}};
    out.offsets[i] = at;
    at += t.bytes;
  }
  std::string text = header.dump();
  while (text.size() % 8 != 0) text += ' ';
  const std::uint64_t length = text.size();
  for (int byte = 0; byte < 8; ++byte) out.header += static_cast<char>(length >> (8 * byte));
  out.header += text;
  for (std::size_t& offset : out.offsets) offset += out.header.size();
  out.bytes = out.header.size() + at;
  return out;
}

std::string dtype_of(const subfed::byte_tensor& tensor) {
  if (!tensor.has_elements()) return tensor.element_type();
  const subfed::element_format format = tensor.format();
  using subfed::number_kind;
  switch (format.kind) {
    case number_kind::floating:
      return fmt::format("F{}", format.bits);
    case number_kind::brain:
      return "BF16";
    case number_kind::signed_integer:
      return fmt::format("I{}", format.bits);
    case number_kind::unsigned_integer:
      return fmt::format("U{}", format.bits);
    default:
      return "BOOL";
  }
}

std::string shape_text(std::span<const std::int64_t> extents) {
  return fmt::format("({})", fmt::join(extents, ", "));
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit < 4; ++unit) bytes /= 1000;
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.2f} {}", bytes, units[unit]);
}

}  // namespace tool
