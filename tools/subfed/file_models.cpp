// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>
#include <common/failure.hpp>
#include <cstring>
#include <subfed/adapt/model_file.hpp>

#include "file_commands.hpp"

namespace tool {

using common::failure;

namespace {
bool is_opaque(const stored_tensor& t) {
  return !t.tensor.has_elements() || t.tensor.rank() > subfed::max_rank;
}
}  // namespace

std::vector<std::string> opaque_tensors(const checkpoint& server) {
  std::vector<std::string> out;
  for (const stored_tensor& t : server.tensors()) {
    if (is_opaque(t)) out.push_back(t.name);
  }
  return out;
}

subfed::model whole_model(const std::string& model, const checkpoint& server) {
  subfed::model net =
      common::about_file(model, [&] { return subfed::read_model(common::read_file(model)); });
  for (const auto& info : net.tensors()) {
    const subfed::byte_tensor& found = server.at(info.name).tensor;
    const std::span<const std::int64_t> extents = found.extents();
    if (!found.has_elements()) {
      throw failure(
          fmt::format("{}: tensor \"{}\" has elements of type {}, which cannot be "
                      "averaged; take it out of the model file, and it stays as it is.",
                      server.path().string(), info.name, found.element_type()));
    }
    if (std::equal(extents.begin(), extents.end(), info.extents.begin(), info.extents.end())) {
      continue;
    }
    throw failure(fmt::format("{}: tensor \"{}\" has the shape {}, expected {} as in {}.",
                              server.path().string(), info.name, shape_text(extents),
                              shape_text(info.extents), model));
  }
  std::vector<std::string> described;
  for (const auto& info : net.tensors()) described.push_back(info.name);
  std::sort(described.begin(), described.end());
  for (const stored_tensor& t : server.tensors()) {
    if (is_opaque(t) || std::binary_search(described.begin(), described.end(), t.name)) continue;
    std::vector<subfed::dimension> extents;
    for (const std::int64_t extent : t.tensor.extents()) extents.emplace_back(extent);
    const auto kind = t.tensor.format().kind;
    const bool floats = kind == subfed::number_kind::floating || kind == subfed::number_kind::brain;
    net.tensor(t.name, extents, floats ? subfed::role::parameter : subfed::role::counter);
  }
  return net;
}

subfed::tensor_views<const void> server_views(const subfed::model& net, const checkpoint& server,
                                              aligned_views& aligned) {
  std::vector<subfed::tensor_view<const void>> out;
  for (const auto& info : net.tensors()) {
    out.push_back(aligned.view(server, server.at(info.name)));
  }
  return subfed::tensor_views<const void>(out);
}

subfed::tensor_views<const void> client_views(const subfed::submodel& sub, const checkpoint& file,
                                              const subfed::tensor_views<const void>& globals,
                                              aligned_views& aligned, subfed::content what) {
  const auto is_floating = [](subfed::element_format f) {
    return f.kind == subfed::number_kind::floating || f.kind == subfed::number_kind::brain;
  };
  std::vector<subfed::tensor_view<const void>> out;
  const auto& tensors = sub.parent().tensors();
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const auto& info = tensors[t];
    if (info.role == subfed::role::local) {
      out.emplace_back(subfed::tensor_view<const float>(nullptr, {0}));
      continue;
    }
    const auto expected = sub.extents(subfed::tensor_id(t));
    const auto view = aligned.view(file, file.at(info.name));
    const auto found = view.extents();
    if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end())) {
      throw failure(
          fmt::format("{}: tensor \"{}\" has the shape {}, expected {} for client {} of "
                      "round {}.",
                      file.path().string(), info.name, shape_text(found), shape_text(expected),
                      sub.origin().client, sub.origin().round));
    }
    const bool fits = view.format() == globals[t].format() ||
                      (is_floating(view.format()) && is_floating(globals[t].format())) ||
                      (what == subfed::content::deltas && !is_floating(view.format()) &&
                       !is_floating(globals[t].format()));
    if (!fits) {
      throw failure(fmt::format("{}: tensor \"{}\" has elements of type {}, expected {}.",
                                file.path().string(), info.name, view.element_name(),
                                globals[t].element_name()));
    }
    out.push_back(view);
  }
  return subfed::tensor_views<const void>(out);
}

checkpoint_copy::checkpoint_copy(const checkpoint& from, const std::filesystem::path& to,
                                 const std::vector<std::string>& rewritten)
    : from_(from), to_(to) {
  if (from.has_index() != (to.extension() == ".json")) {
    throw failure(fmt::format("--out: {} is {}, so the new model has to be one, too.",
                              from.path().string(),
                              from.has_index() ? "an index" : "a file and no index"));
  }
  const std::filesystem::path folder = common::detail::folder_of(to);
  std::error_code error;
  if (from.has_index() &&
      std::filesystem::equivalent(folder, common::detail::folder_of(from.path()), error)) {
    throw failure(
        "--out: a model in parts is not replaced in its own folder, where a run that is "
        "stopped would leave parts of two models; name another folder.");
  }
  common::remove_unfinished(folder);  // of runs that were killed
  for (const checkpoint_part& part : from.parts()) {
    const auto path = from.has_index() ? folder / part.file.path().filename() : to;
    parts_.push_back(std::make_unique<output_file>(path, part.file.bytes().size()));
  }
  // Tensors are in the order of their bytes, part by part; a header is before the first.
  for (std::size_t p = 0; p < parts_.size(); ++p) {
    const auto bytes = from.parts()[p].file.bytes();
    std::size_t begin = 0;
    for (const stored_tensor& t : from.tensors()) {
      if (t.part != p || !std::binary_search(rewritten.begin(), rewritten.end(), t.name)) continue;
      const auto at = static_cast<std::size_t>(t.tensor.data() - bytes.data());
      copied_.push_back({p, begin, at});
      begin = at + static_cast<std::size_t>(t.tensor.size_bytes());
    }
    copied_.push_back({p, begin, bytes.size()});
  }
  std::reverse(copied_.begin(), copied_.end());
}

std::size_t checkpoint_copy::bytes() const {
  std::size_t out = 0;
  for (const range& r : copied_) out += r.end - r.begin;
  return out;
}

std::size_t checkpoint_copy::copy_some(std::size_t bytes) {
  while (!copied_.empty() && copied_.back().begin == copied_.back().end) copied_.pop_back();
  if (copied_.empty()) return 0;
  range& r = copied_.back();
  const std::size_t length = (std::min)(bytes, r.end - r.begin);
  std::memcpy(parts_[r.part]->bytes().data() + r.begin,
              from_.parts()[r.part].file.bytes().data() + r.begin, length);
  r.begin += length;
  return length;
}

subfed::tensor_view<void> checkpoint_copy::view(const stored_tensor& stored) {
  const auto offset = stored.tensor.data() - from_.parts()[stored.part].file.bytes().data();
  std::byte* at = parts_[stored.part]->bytes().data() + offset;
  const auto size = static_cast<std::size_t>(stored.tensor.size_bytes());
  if (!is_aligned(stored.tensor, at)) {
    auto moved = std::make_unique<std::max_align_t[]>(size / sizeof(std::max_align_t) + 1);
    std::memcpy(moved.get(), at, size);
    elsewhere_.push_back({at, size, std::move(moved)});
    at = reinterpret_cast<std::byte*>(elsewhere_.back().elements.get());
  }
  const subfed::byte_tensor copied(stored.tensor.label(), stored.tensor.format(),
                                   {stored.tensor.extents().begin(), stored.tensor.extents().end()},
                                   stored.tensor.element_order(), at);
  return common::about_file(to_, [&] {
    const subfed::tensor_view<const void> reads(copied);  // checks type and alignment
    return reads.visit([&]<class E>(const subfed::tensor_view<const E>& typed) {
      return subfed::tensor_view<void>(
          subfed::tensor_view<E>(reinterpret_cast<E*>(at), typed.extents(), typed.strides()));
    });
  });
}

void checkpoint_copy::finish() {
  for (const misplaced& m : elsewhere_) std::memcpy(m.at, m.elements.get(), m.size);
  for (auto& part : parts_) part->finish();
  if (from_.has_index()) common::write_file(to_, common::read_file(from_.path()));
}

}  // namespace tool
