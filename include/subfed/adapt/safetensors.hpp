// SPDX-License-Identifier: MIT
/// The safetensors format in memory: tensors found by name and read in place, files written.
#pragma once

#include <subfed/adapt/byte_tensor.hpp>
#include <subfed/adapt/detail/bytes.hpp>
#include <subfed/adapt/detail/json_reader.hpp>
#include <subfed/detail/call_elements.hpp>
#include <subfed/detail/element_format.hpp>
#include <subfed/model.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

[[noreturn]] inline void refuse_safetensors(const std::string& what, std::string_view tensor = {}) {
  fail("subfed: safetensors: " + what, {.client = {}, .tensor = std::string(tensor)});
}

/// The longest header; the format's own reader has the same limit.
inline constexpr std::uint64_t safetensors_most_header = 100'000'000;

struct safetensors_dtype {
  std::string_view name;
  element_format format;  // of kind `other` where subfed has no such type
};
inline constexpr safetensors_dtype safetensors_dtypes[] = {
    {"F64", {number_kind::floating, 64}},         {"F32", {number_kind::floating, 32}},
    {"F16", {number_kind::floating, 16}},         {"BF16", {number_kind::brain, 16}},
    {"I64", {number_kind::signed_integer, 64}},   {"I32", {number_kind::signed_integer, 32}},
    {"I16", {number_kind::signed_integer, 16}},   {"I8", {number_kind::signed_integer, 8}},
    {"U64", {number_kind::unsigned_integer, 64}}, {"U32", {number_kind::unsigned_integer, 32}},
    {"U16", {number_kind::unsigned_integer, 16}}, {"U8", {number_kind::unsigned_integer, 8}},
    {"BOOL", {number_kind::boolean, 8}},          {"C64", {number_kind::other, 64}},
    {"F8_E4M3", {number_kind::other, 8}},         {"F8_E5M2", {number_kind::other, 8}},
    {"F8_E8M0", {number_kind::other, 8}},         {"F6_E2M3", {number_kind::other, 6}},
    {"F6_E3M2", {number_kind::other, 6}},         {"F4", {number_kind::other, 4}},
};

/// The meaning of a dtype's name; 0 bits for one that is not known.
inline element_format safetensors_format(std::string_view name) noexcept {
  for (const auto& known : safetensors_dtypes) {
    if (known.name == name) return known.format;
  }
  return {};
}
inline std::string_view safetensors_name(element_format format) noexcept {
  for (const auto& known : safetensors_dtypes) {
    if (known.format == format) return known.name;
  }
  return {};
}

/// Bytes of a dense tensor of elements of a number of bits; false when there are more than
/// 2^63 - 1, or when its last byte is incomplete.
inline bool bytes_of_bits(std::span<const std::int64_t> extents, int bits,
                          std::int64_t& out) noexcept {
  if (bits % 8 == 0) return bytes_of(extents, bits / 8, out);
  if (!bytes_of(extents, bits, out) || out % 8 != 0) return false;
  out /= 8;
  return true;
}

}  // namespace detail

/// The tensors of a safetensors file in memory (what NVFlare sends and Hugging Face stores), read
/// in place.
///
///   const safetensors_view file(bytes);
///   subfed::slice<float>(file["fc1.weight"], sub[weight], local);
///   mean.add(sub, file.tensors<float>(net), client.weight);
///
/// A tensor is where the file put it, which may not be aligned for its type: see byte_tensor and
/// aligned_copy(). A tensor of a type that subfed does not have (FP8, FP4, complex numbers, future
/// types), or of more than 8 dimensions, has bytes, a shape and the name of its type, can be
/// written to another file, and is refused only when it is requested as elements.
class safetensors_view {
 public:
  struct entry {
    std::string name;
    byte_tensor tensor;
  };
  using text_pair = std::pair<std::string, std::string>;

  /// Reads the header. The bytes must outlive the view and its tensors; a temporary string or
  /// vector does not compile.
  ///
  /// The format's rules are kept to the letter: the header is JSON of at most 100 MB that begins
  /// with '{' and may end in spaces; no name occurs twice; metadata is strings; offsets may be in
  /// any order, but the tensors cover all bytes after the header exactly once. Dimensions of 0 and
  /// rank 0 are fine. In one point it is stricter than the format's own reader: a tensor's entry
  /// has dtype, shape and data_offsets, and nothing else.
  ///
  /// Throws  error for bytes that are not a safetensors file: too few, a header over 100 MB or
  ///         longer than the file, bad JSON, a name that occurs twice, a shape that does not fit
  ///         its bytes (where the type is known), and bytes that belong to no tensor or to two.
  ///         Each names the tensor.
  /// Cost    O(header log header); does not read the elements.
  template <detail::byte_range Bytes>
  requires(!std::same_as<std::remove_cvref_t<Bytes>, safetensors_view>) explicit safetensors_view(
      Bytes&& file) {
    read(detail::as_bytes(file));
  }

  std::size_t size() const noexcept { return entries_.size(); }
  /// Entries in the order of their bytes.
  auto begin() const noexcept { return entries_.begin(); }
  auto end() const noexcept { return entries_.end(); }

  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  /// Throws  error when there is no tensor of that name.
  const byte_tensor& operator[](std::string_view name) const {
    const entry* const found = find(name);
    if (found == nullptr) {
      detail::refuse_safetensors("the file has no tensor " + detail::quoted(name), name);
    }
    return found->tensor;
  }

  /// The tensors of a model, by their names, in its order: tensors<float>(net), or for a model of
  /// mixed element types tensors<void>(net). Other tensors of the file are ignored.
  ///
  /// Throws  error when one is missing, has another element type, or is not aligned for T.
  template <class T>
  tensor_views<const T> tensors(const model& net) const {
    std::vector<tensor_view<const T>> out;
    for (const auto& info : net.tensors()) out.emplace_back((*this)[info.name]);
    return tensor_views<const T>(out);
  }

  /// The strings of "__metadata__", in the order of the header.
  std::span<const text_pair> metadata() const noexcept { return metadata_; }

 private:
  /// An entry with the position of its bytes.
  struct draft {
    std::string name;
    std::string dtype = {};
    element_format format = {};
    std::vector<std::int64_t> extents = {};
    std::int64_t begin = 0;
    std::int64_t end = 0;
  };

  void read(std::span<const std::byte> file) {
    constexpr std::size_t before = 8;
    if (file.size() < before) {
      detail::refuse_safetensors("the file has " + std::to_string(file.size()) +
                                 " bytes, at least 8 are needed");
    }
    const std::uint64_t length = detail::load_little<8>(file.data());
    if (length > detail::safetensors_most_header) {
      detail::refuse_safetensors("the header should have " + std::to_string(length) +
                                 " bytes, the maximum is " +
                                 std::to_string(detail::safetensors_most_header));
    }
    if (length > file.size() - before) {
      detail::refuse_safetensors("the header should have " + std::to_string(length) +
                                 " bytes, but the file has only " +
                                 std::to_string(file.size() - before) + " more");
    }
    const auto header = file.subspan(before, static_cast<std::size_t>(length));
    const auto data = file.subspan(before + static_cast<std::size_t>(length));
    std::vector<draft> drafts = parse(detail::as_text(header));
    for (const draft& d : drafts) check_size(d);
    check_cover(drafts, data.size());

    entries_.reserve(drafts.size());
    for (draft& d : drafts) {
      byte_tensor tensor = tensor_of(d, data.data() + d.begin);
      entries_.push_back({std::move(d.name), std::move(tensor)});
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) by_name_.push_back(i);
    std::sort(by_name_.begin(), by_name_.end(),
              [&](std::size_t a, std::size_t b) { return entries_[a].name < entries_[b].name; });
    for (std::size_t i = 1; i < by_name_.size(); ++i) {
      const std::string& name = entries_[by_name_[i]].name;
      if (name == entries_[by_name_[i - 1]].name) {
        detail::refuse_safetensors("the tensor " + detail::quoted(name) + " occurs twice", name);
      }
    }
  }

  static byte_tensor tensor_of(draft& d, const std::byte* data) {
    std::string label = "the safetensors tensor ";
    label += detail::quoted(d.name);
    if (d.format.kind == number_kind::other) {
      return {std::move(label), std::move(d.dtype), std::move(d.extents), d.end - d.begin, data};
    }
    return {std::move(label), d.format, std::move(d.extents), byte_tensor::order::row_major, data};
  }

  std::vector<draft> parse(std::string_view text) {
    if (!text.starts_with('{')) {
      detail::refuse_safetensors("the header does not begin with '{'");
    }
    std::vector<draft> out;
    bool has_metadata = false;
    detail::json_reader json(text, "safetensors: the header");
    json.object([&](std::string name) {
      if (name != "__metadata__") {
        out.push_back(parse_entry(json, std::move(name)));
        return;
      }
      if (std::exchange(has_metadata, true)) {
        detail::refuse_safetensors("'__metadata__' occurs twice");
      }
      json.object([&](std::string key) { metadata_.emplace_back(std::move(key), json.string()); });
    });
    json.end();
    return out;
  }

  static draft parse_entry(detail::json_reader& json, std::string name) {
    draft out{.name = std::move(name)};
    const auto refuse = [&](const std::string& what) {
      detail::refuse_safetensors("the tensor " + detail::quoted(out.name) + " " + what, out.name);
    };
    bool seen[3] = {};
    json.object([&](const std::string& key) {
      const std::size_t which = key == "dtype"          ? 0
                                : key == "shape"        ? 1
                                : key == "data_offsets" ? 2
                                                        : 3;
      if (which == 3) refuse("has the unknown property " + detail::quoted(key));
      if (std::exchange(seen[which], true)) refuse("has '" + key + "' twice");
      if (which == 0) {
        out.dtype = json.string();
        out.format = detail::safetensors_format(out.dtype);
      } else if (which == 1) {
        out.extents = json.numbers();
      } else {
        const std::vector<std::int64_t> offsets = json.numbers();
        if (offsets.size() != 2 || offsets[0] > offsets[1]) {
          refuse("has 'data_offsets' that are not a first and a last");
        }
        out.begin = offsets[0];
        out.end = offsets[1];
      }
    });
    if (!seen[0] || !seen[1] || !seen[2]) refuse("lacks 'dtype', 'shape' or 'data_offsets'");
    return out;
  }

  static void check_size(const draft& d) {
    if (d.format.bits == 0) return;  // a type of a newer format: unknown
    std::int64_t needed = 0;
    if (detail::bytes_of_bits(d.extents, d.format.bits, needed) && needed == d.end - d.begin) {
      return;
    }
    const bool other = d.format.kind == number_kind::other;
    detail::refuse_safetensors("the tensor " + detail::quoted(d.name) + " of shape " +
                                   detail::shape_text(d.extents) + " and type " +
                                   (other ? d.dtype : detail::format_text(d.format)) +
                                   " is given " + std::to_string(d.end - d.begin) + " bytes",
                               d.name);
  }

  /// Sorts the drafts by their bytes, of which each belongs to exactly one.
  static void check_cover(std::vector<draft>& drafts, std::size_t bytes) {
    std::stable_sort(drafts.begin(), drafts.end(), [](const draft& a, const draft& b) {
      return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
    });
    std::int64_t covered = 0;
    for (const draft& d : drafts) {
      if (d.begin != covered) {
        detail::refuse_safetensors("the tensor " + detail::quoted(d.name) + " begins at byte " +
                                       std::to_string(d.begin) + ", the previous one ends at " +
                                       std::to_string(covered),
                                   d.name);
      }
      covered = d.end;
    }
    if (static_cast<std::uint64_t>(covered) != bytes) {
      detail::refuse_safetensors("the tensors end at byte " + std::to_string(covered) + ", but " +
                                 std::to_string(bytes) + " bytes follow the header");
    }
  }

  const entry* find(std::string_view name) const noexcept {
    const auto at =
        std::lower_bound(by_name_.begin(), by_name_.end(), name,
                         [&](std::size_t i, std::string_view n) { return entries_[i].name < n; });
    return at != by_name_.end() && entries_[*at].name == name ? &entries_[*at] : nullptr;
  }

  std::vector<entry> entries_;
  std::vector<std::size_t> by_name_;
  std::vector<text_pair> metadata_;
};

/// A tensor to write, with its name: {"fc1.weight", w}, or unchanged from another file:
/// {"scale", file["scale"]}. Holds a view only, so a temporary that owns its elements does not
/// compile.
class named_view {
 public:
  template <viewable V>
  requires(borrowed<V> && !std::same_as<std::remove_cvref_t<V>, byte_tensor>)
      named_view(std::string name, V&& tensor)
      : name_(std::move(name)),
        view_(detail::source<detail::element_of_call_t<detail::deduced, V>>(tensor)) {
    using element = detail::element_of_call_t<detail::deduced, V>;
    static_assert(format_of<element>().kind != number_kind::other,
                  "subfed: safetensors has no name for this element type");
    dtype_ = detail::safetensors_name(view_.format);
    extents_ = view_.extents;
    bits_ = view_.format.bits;
  }
  /// The bytes of a tensor in a buffer, also of a type that subfed does not have.
  named_view(std::string name, const byte_tensor& tensor)
      : name_(std::move(name)),
        dtype_(tensor.has_elements() ? std::string(detail::safetensors_name(tensor.format()))
                                     : tensor.element_type()),
        extents_(tensor.extents().begin(), tensor.extents().end()),
        view_(tensor_view<const std::uint8_t>(reinterpret_cast<const std::uint8_t*>(tensor.data()),
                                              {tensor.size_bytes()})) {
    if (!tensor.has_elements()) {
      bits_ = detail::safetensors_format(dtype_).bits;
      return;
    }
    bits_ = tensor.format().bits;
    view_.format = tensor.format();
    view_.is_little = true;
    view_.extents = extents_;
    view_.strides = tensor.strides();
    for (std::int64_t& stride : view_.strides) stride *= tensor.size_bytes() != 0 ? bits_ / 8 : 0;
  }

  const std::string& name() const noexcept { return name_; }
  /// The format's name of the type.
  const std::string& dtype() const noexcept { return dtype_; }
  std::span<const std::int64_t> extents() const noexcept { return extents_; }
  /// Bits of an element; 0 for an unknown type.
  int bits() const noexcept { return bits_; }
  const detail::erased_view& view() const noexcept { return view_; }

 private:
  std::string name_;
  std::string dtype_;
  std::vector<std::int64_t> extents_;
  detail::erased_view view_;
  int bits_ = 0;
};

namespace detail {

inline std::string safetensors_header(std::span<const named_view* const> tensors,
                                      std::span<const safetensors_view::text_pair> metadata) {
  std::string out = "{";
  if (!metadata.empty()) {
    out += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (out.back() != '{') out += ',';
      out.append(json_string(key)).append(":").append(json_string(value));
    }
    out += '}';
  }
  std::int64_t at = 0;
  for (const named_view* const tensor : tensors) {
    if (out.size() > 1) out += ',';
    out += json_string(tensor->name());
    out.append(":{\"dtype\":").append(json_string(tensor->dtype())).append(",\"shape\":[");
    for (std::size_t r = 0; r < tensor->extents().size(); ++r) {
      if (r != 0) out += ',';
      out += std::to_string(tensor->extents()[r]);
    }
    out.append("],\"data_offsets\":[").append(std::to_string(at)).append(",");
    at += tensor->view().size_bytes();
    out.append(std::to_string(at)).append("]}");
  }
  out += '}';
  while (out.size() % 8 != 0) out += ' ';
  return out;
}

}  // namespace detail

/// Tensors as a safetensors file. Bytes: a std::string or std::vector of a type of one byte.
///
///   const auto body = write_safetensors<std::string>({{"fc1.weight", w1}, {"fc1.bias", b1}});
///
/// Post    The file depends on names, shapes, elements and metadata alone, not on the order in
///         which they are given. They are sorted by decreasing element size, then by name, so each
///         tensor is at a multiple of its element's size from the file's beginning (those of
///         unknown types come last). Metadata is sorted by key.
/// Throws  error for a name or a key that occurs twice, is '__metadata__' or is not UTF-8.
/// Cost    Reads and writes each element once.
template <class Bytes = std::vector<std::byte>>
Bytes write_safetensors(std::span<const named_view> tensors,
                        std::span<const safetensors_view::text_pair> metadata = {}) {
  const auto check = [](const char* kind, const std::string& name, bool twice) {
    if (!detail::is_utf8(name)) {
      detail::refuse_safetensors(std::string("the ") + kind + " " + detail::quoted(name) +
                                 " is not UTF-8");
    }
    if (twice || name == "__metadata__") {
      detail::refuse_safetensors(std::string("the ") + kind + " " + detail::quoted(name) +
                                 (twice ? " is given twice" : " is the format's own"));
    }
  };
  std::vector<const named_view*> sorted;
  for (const named_view& tensor : tensors) sorted.push_back(&tensor);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto* a, const auto* b) { return a->name() < b->name(); });
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    check("tensor", sorted[i]->name(), i != 0 && sorted[i]->name() == sorted[i - 1]->name());
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto* a, const auto* b) { return a->bits() > b->bits(); });
  std::vector<safetensors_view::text_pair> texts(metadata.begin(), metadata.end());
  std::sort(texts.begin(), texts.end());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    check("metadata key", texts[i].first, i != 0 && texts[i].first == texts[i - 1].first);
    if (!detail::is_utf8(texts[i].second)) {
      detail::refuse_safetensors("the metadata of " + detail::quoted(texts[i].first) +
                                 " is not UTF-8");
    }
  }

  const std::string header = detail::safetensors_header(sorted, texts);
  std::size_t size = 8 + header.size();
  for (const auto* tensor : sorted) size += static_cast<std::size_t>(tensor->view().size_bytes());
  Bytes out;
  out.resize(size);
  auto* to = reinterpret_cast<std::byte*>(std::data(out));
  detail::store_little<8>(header.size(), to);
  std::memcpy(to + 8, header.data(), header.size());
  to += 8 + header.size();
  for (const auto* tensor : sorted) {
    tensor->view().copy_to(to);
    to += tensor->view().size_bytes();
  }
  return out;
}
template <class Bytes = std::vector<std::byte>>
Bytes write_safetensors(std::initializer_list<named_view> tensors,
                        std::initializer_list<safetensors_view::text_pair> metadata = {}) {
  return write_safetensors<Bytes>(
      std::span<const named_view>(tensors.begin(), tensors.size()),
      std::span<const safetensors_view::text_pair>(metadata.begin(), metadata.size()));
}

}  // namespace subfed::inline v0
