// SPDX-License-Identifier: MIT
#include "npz.hpp"

#include <fmt/format.h>

#include <common/failure.hpp>
#include <common/files.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <subfed/adapt/npy.hpp>
#include <subfed/adapt/safetensors.hpp>
#include <subfed/untyped_view.hpp>
#include <utility>

#if defined(SUBFED_TOOL_ZIP)
#include <zip.h>
#endif

namespace tool {

using common::failure;

#if defined(SUBFED_TOOL_ZIP)

namespace {

struct close_archive {
  void operator()(zip_t* archive) const { zip_discard(archive); }
};
struct close_entry {
  void operator()(zip_file_t* entry) const { zip_fclose(entry); }
};
struct release_source {
  void operator()(zip_source_t* source) const { zip_source_free(source); }
};
using archive = std::unique_ptr<zip_t, close_archive>;

std::string text_of(zip_error_t* error) {
  std::string out = zip_error_strerror(error);
  zip_error_fini(error);
  return out;
}

/// The bytes of one array's .npy file. Deflate packs 1032 bytes into one at best; an entry that claims
/// more is refused before memory is taken for it.
std::vector<std::byte> read_entry(zip_t* from, std::uint64_t index, std::uint64_t& left,
                                  const std::function<failure(const std::string&)>& refused) {
  zip_stat_t seen;
  zip_stat_init(&seen);
  if (zip_stat_index(from, index, 0, &seen) != 0) throw refused(zip_strerror(from));
  const bool is_stored = seen.comp_method == ZIP_CM_STORE;
  if (!is_stored && seen.comp_method != ZIP_CM_DEFLATE) {
    throw refused("it is packed by another method than deflate.");
  }
  if (seen.encryption_method != ZIP_EM_NONE) throw refused("it is encrypted.");
  if (seen.comp_size > left ||
      seen.size / (is_stored ? 1 : 1032) > seen.comp_size + (is_stored ? 0 : 1)) {
    throw refused(fmt::format("it claims {} bytes, more than the file has.", seen.size));
  }
  left -= seen.comp_size;
  std::vector<std::byte> out(static_cast<std::size_t>(seen.size));
  const std::unique_ptr<zip_file_t, close_entry> entry(zip_fopen_index(from, index, 0));
  if (!entry) throw refused(zip_strerror(from));
  std::size_t done = 0;
  // One byte more than there are: only then is the checksum compared.
  for (std::byte more{}; done <= out.size();) {
    const bool at_end = done == out.size();
    const zip_int64_t count =
        zip_fread(entry.get(), at_end ? &more : out.data() + done, at_end ? 1 : out.size() - done);
    if (count < 0) throw refused(zip_file_strerror(entry.get()));
    if (count == 0) break;
    done += static_cast<std::size_t>(count);
  }
  if (done != out.size()) {
    throw refused(fmt::format("it has {} bytes, expected {}.", done, out.size()));
  }
  return out;
}

std::vector<std::pair<std::string, std::string>> metadata_of(zip_t* from) {
  int length = 0;
  const char* const comment = zip_get_archive_comment(from, &length, ZIP_FL_ENC_RAW);
  std::vector<std::pair<std::string, std::string>> out;
  if (comment == nullptr || length <= 0) return out;
  const auto parsed = nlohmann::json::parse(comment, comment + length, nullptr, false);
  if (!parsed.is_object()) return out;  // a comment of somebody else
  for (const auto& [key, value] : parsed.items()) {
    if (value.is_string()) out.emplace_back(key, value.get<std::string>());
  }
  return out;
}

}  // namespace

std::vector<std::byte> read_npz(const std::filesystem::path& path) {
  const std::string file = common::read_file(path);
  zip_error_t error;
  zip_error_init(&error);
  zip_source_t* const source = zip_source_buffer_create(file.data(), file.size(), 0, &error);
  const archive from(source == nullptr ? nullptr
                                       : zip_open_from_source(source, ZIP_RDONLY, &error));
  if (!from) {
    if (source != nullptr) zip_source_free(source);
    throw failure(fmt::format("{}: it is no .npz file: {}.", path.string(), text_of(&error)));
  }
  if (file.empty()) throw failure(path.string() + ": it is no .npz file: it has no bytes.");
  std::uint64_t left = file.size();
  const auto count = static_cast<std::uint64_t>(zip_get_num_entries(from.get(), 0));
  std::vector<std::vector<std::byte>> files;
  std::vector<std::pair<std::string, subfed::byte_tensor>> arrays;
  files.reserve(static_cast<std::size_t>(count));
  for (std::uint64_t i = 0; i < count; ++i) {
    const char* const said = zip_get_name(from.get(), i, ZIP_FL_ENC_GUESS);
    std::string name = said == nullptr ? fmt::format("entry {}", i) : said;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    files.push_back(read_entry(from.get(), i, left, [&](const std::string& why) {
      return failure(fmt::format("{}: array \"{}\": {}", path.string(), name, why));
    }));
    try {
      arrays.emplace_back(name, subfed::npy_view(files.back()));
    } catch (const subfed::error& wrong) {
      throw failure(fmt::format("{}: array \"{}\": {}", path.string(), name, wrong.what()));
    }
  }
  return common::about_file(path, [&] {
    std::vector<subfed::named_view> named;
    for (const auto& [name, array] : arrays) named.emplace_back(name, array);
    return subfed::write_safetensors(named, metadata_of(from.get()));
  });
}

std::string npz_bytes(std::span<const std::byte> safetensors, const std::filesystem::path& path) {
  const auto refused = [&](const std::string& why) {
    return failure(fmt::format("{} cannot be written: {}", path.string(), why));
  };
  const subfed::safetensors_view view(safetensors);
  zip_error_t error;
  zip_error_init(&error);
  const std::unique_ptr<zip_source_t, release_source> buffer(
      zip_source_buffer_create(nullptr, 0, 0, &error));
  if (!buffer) throw refused(text_of(&error));
  zip_source_keep(buffer.get());  // the archive has one of its own
  archive to(zip_open_from_source(buffer.get(), ZIP_TRUNCATE, &error));
  if (!to) {
    zip_source_free(buffer.get());
    throw refused(text_of(&error));
  }
  std::vector<std::string> files;  // until the archive is closed
  std::vector<const subfed::safetensors_view::entry*> entries;
  for (const auto& entry : view) entries.push_back(&entry);
  files.reserve(entries.size());
  for (const auto* const entry : entries) {
    if (!entry->tensor.has_elements() ||
        entry->tensor.format().kind == subfed::number_kind::brain) {
      throw refused(fmt::format("NumPy has no type for tensor \"{}\" of {}.", entry->name,
                                entry->tensor.element_type()));
    }
    subfed::tensor_view<const void>(entry->tensor)
        .visit([&]<class E>(const subfed::tensor_view<const E>& typed) {
          if constexpr (subfed::format_of<E>().kind != subfed::number_kind::brain) {
            files.push_back(subfed::npy_bytes<std::string>(typed));
          }
        });
    zip_source_t* const source =
        zip_source_buffer(to.get(), files.back().data(), files.back().size(), 0);
    const zip_int64_t at =
        source == nullptr
            ? -1
            : zip_file_add(to.get(), (entry->name + ".npy").c_str(), source, ZIP_FL_ENC_UTF_8);
    if (at < 0) {
      if (source != nullptr) zip_source_free(source);
      throw refused(zip_strerror(to.get()));
    }
    const auto index = static_cast<std::uint64_t>(at);
    constexpr std::uint16_t first_day = 1 << 5 | 1;  // 1 January 1980
    if (zip_set_file_compression(to.get(), index, ZIP_CM_STORE, 0) != 0 ||
        zip_file_set_dostime(to.get(), index, 0, first_day, 0) != 0) {
      throw refused(zip_strerror(to.get()));
    }
  }
  nlohmann::json metadata = nlohmann::json::object();
  for (const auto& [key, value] : view.metadata()) metadata[key] = value;
  const std::string comment = metadata.empty() ? "" : metadata.dump();
  constexpr std::size_t longest = 65535;
  if (comment.size() > longest) throw refused("its metadata is longer than 65535 bytes.");
  if (zip_set_archive_comment(to.get(), comment.data(),
                              static_cast<std::uint16_t>(comment.size())) != 0 ||
      zip_close(to.get()) != 0) {
    throw refused(zip_strerror(to.get()));
  }
  static_cast<void>(to.release());  // closed

  zip_stat_t seen;
  zip_stat_init(&seen);
  if (zip_source_stat(buffer.get(), &seen) != 0 || zip_source_open(buffer.get()) != 0) {
    throw refused(zip_error_strerror(zip_source_error(buffer.get())));
  }
  std::string out(static_cast<std::size_t>(seen.size), '\0');
  std::size_t done = 0;
  while (done < out.size()) {
    const zip_int64_t count = zip_source_read(buffer.get(), out.data() + done, out.size() - done);
    if (count <= 0) throw refused(zip_error_strerror(zip_source_error(buffer.get())));
    done += static_cast<std::size_t>(count);
  }
  zip_source_close(buffer.get());
  return out;
}

#else

namespace {
failure without_libzip(const std::filesystem::path& path) {
  return failure(path.string() + ": this program was built without libzip, which .npz files need.");
}
}  // namespace

std::vector<std::byte> read_npz(const std::filesystem::path& path) { throw without_libzip(path); }
std::string npz_bytes(std::span<const std::byte>, const std::filesystem::path& path) {
  throw without_libzip(path);
}

#endif

}  // namespace tool
