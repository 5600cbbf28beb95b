// SPDX-License-Identifier: MIT
/// Descriptions of models as JSON text, to be kept and to be read by other programs and languages.
#pragma once

#include <subfed/adapt/detail/json_reader.hpp>
#include <subfed/detail/dimension_parts.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

inline constexpr std::int64_t model_file_version = 1;

/// Reads what write_model writes, with keys in any order.
class model_file_reader {
 public:
  explicit model_file_reader(std::string_view text) : json_(text, "model file: the text") {}

  model read() {
    object({"format", "version", "groups", "tensors"}, {"format", "version", "groups", "tensors"},
           [&](const std::string& key) {
             if (key == "format") {
               const std::string format = json_.string();
               if (format != "subfed model") json_.refuse("the format '" + format + "'");
             } else if (key == "version") {
               const std::int64_t version = json_.number();
               if (version != model_file_version) {
                 json_.refuse("version " + std::to_string(version) + ", and this is for version " +
                              std::to_string(model_file_version));
               }
             } else if (key == "groups") {
               json_.array([&] { read_group(); });
             } else {
               json_.array([&] { read_tensor(); });
             }
           });
    json_.end();
    for (drafted_tensor& t : tensors_) {
      std::vector<dimension> dimensions;
      for (const std::vector<drafted_part>& parts : t.dimensions) {
        dimensions.push_back(made(t.name, parts));
      }
      net_.tensor(std::move(t.name), dimensions, t.role);
    }
    return std::move(net_);
  }

 private:
  struct drafted_part {
    std::optional<std::string> group;
    std::optional<std::int64_t> whole;
    std::int64_t repeat = 1;
    std::int64_t block = 1;
  };
  struct drafted_tensor {
    std::string name;
    subfed::role role = subfed::role::parameter;
    std::vector<std::vector<drafted_part>> dimensions;
  };
  using words = std::vector<std::string_view>;

  /// An object of these keys, each once at most, and of those that it must have.
  template <class F>
  void object(const words& known, const words& needed, F&& read_value) {
    words seen;
    json_.object([&](const std::string& key) {
      const auto has = [&](const words& all) {
        return std::find(all.begin(), all.end(), key) != all.end();
      };
      if (!has(known)) json_.refuse("the unknown key '" + key + "'");
      if (has(seen)) json_.refuse("the key '" + key + "' twice");
      seen.push_back(*std::find(known.begin(), known.end(), key));
      read_value(key);
    });
    for (const std::string_view key : needed) {
      if (std::find(seen.begin(), seen.end(), key) == seen.end()) {
        json_.refuse("an object without the key '" + std::string(key) + "'");
      }
    }
  }

  void read_group() {
    std::string name;
    std::int64_t extent = 0;
    cut decides = cut::by_scheme;
    object({"name", "extent", "cut"}, {"name", "extent"}, [&](const std::string& key) {
      if (key == "name") {
        name = json_.string();
      } else if (key == "extent") {
        extent = json_.number();
      } else {
        const std::string text = json_.string();
        if (text != "never" && text != "by scheme") json_.refuse("the cut '" + text + "'");
        decides = text == "never" ? cut::never : cut::by_scheme;
      }
    });
    net_.group(std::move(name), extent, decides);
  }

  void read_tensor() {
    drafted_tensor out;
    object({"name", "role", "dimensions"}, {"name", "dimensions"}, [&](const std::string& key) {
      if (key == "name") {
        out.name = json_.string();
      } else if (key == "role") {
        out.role = read_role();
      } else {
        json_.array([&] {
          // Before the model refuses it, a rank of any size would be kept.
          if (out.dimensions.size() == static_cast<std::size_t>(max_rank)) {
            json_.refuse("a tensor of a rank over 8");
          }
          auto& parts = out.dimensions.emplace_back();
          json_.array([&] { parts.push_back(read_part()); });
        });
      }
    });
    tensors_.push_back(std::move(out));
  }
  subfed::role read_role() {
    const std::string text = json_.string();
    for (const role r : {role::parameter, role::statistic, role::counter, role::local}) {
      if (text == role_text(r)) return r;
    }
    json_.refuse("the role '" + text + "'");
  }
  drafted_part read_part() {
    drafted_part out;
    object({"group", "whole", "repeat", "block"}, {}, [&](const std::string& key) {
      if (key == "group") {
        out.group = json_.string();
      } else if (key == "whole") {
        out.whole = json_.number();
      } else {
        (key == "repeat" ? out.repeat : out.block) = json_.number();
      }
    });
    if (out.group.has_value() == out.whole.has_value()) {
      json_.refuse("a part that is not either of a group or whole");
    }
    return out;
  }

  dimension made(const std::string& tensor, const std::vector<drafted_part>& parts) const {
    if (parts.empty()) {
      fail("subfed: model file: tensor '" + tensor + "' has a dimension of no parts",
           {.tensor = tensor});
    }
    std::vector<dimension::part> out;
    out.reserve(parts.size());
    for (const drafted_part& p : parts) {
      out.push_back({p.group ? net_.find_group(*p.group).number() : dimension::no_group,
                     p.whole.value_or(0), p.repeat, p.block});
    }
    return dimension_of(out);
  }

  json_reader json_;
  model net_;
  std::vector<drafted_tensor> tensors_;
};

}  // namespace detail

/// A description as JSON text; docs/model_file.md has the schema. read_model gives an equal model.
///
/// Throws  error for a name that is not UTF-8, and for a dimension of no parts, concat({}).
inline std::string write_model(const model& net) {
  const auto quoted = [](const std::string& name) {
    if (!detail::is_utf8(name)) {
      detail::fail("subfed: model file: a name of " + std::to_string(name.size()) +
                   " bytes is not UTF-8");
    }
    return detail::json_string(name);
  };
  std::string out = "{\n  \"format\": \"subfed model\",\n  \"version\": " +
                    std::to_string(detail::model_file_version) + ",\n  \"groups\": [";
  const char* separator = "\n";
  for (const auto& group : net.groups()) {
    out += separator;
    out += "    {\"name\": " + quoted(group.name) +
           ", \"extent\": " + std::to_string(group.extent) +
           (group.cut == cut::never ? ", \"cut\": \"never\"}" : "}");
    separator = ",\n";
  }
  out += "\n  ],\n  \"tensors\": [";
  separator = "\n";
  for (const auto& tensor : net.tensors()) {
    out += separator;
    separator = ",\n";
    out += "    {\"name\": " + quoted(tensor.name);
    if (!tensor.is_parameter()) {
      out += ", \"role\": \"" + std::string(role_text(tensor.role)) + "\"";
    }
    out += ", \"dimensions\": [";
    for (std::size_t r = 0; r < tensor.dimensions.size(); ++r) {
      out += r == 0 ? "[" : ", [";
      const auto parts = tensor.dimensions[r].parts();
      if (parts.empty()) {
        detail::fail("subfed: model file: tensor '" + tensor.name + "' has a dimension of no parts",
                     {.tensor = tensor.name});
      }
      for (std::size_t p = 0; p < parts.size(); ++p) {
        out += p == 0 ? "{" : ", {";
        out += parts[p].group == dimension::no_group
                   ? "\"whole\": " + std::to_string(parts[p].whole)
                   : "\"group\": " + quoted(net.groups()[parts[p].group].name);
        if (parts[p].repeat != 1) out += ", \"repeat\": " + std::to_string(parts[p].repeat);
        if (parts[p].block != 1) out += ", \"block\": " + std::to_string(parts[p].block);
        out += "}";
      }
      out += "]";
    }
    out += "]}";
  }
  return out + "\n  ]\n}\n";
}

/// The model that a text describes. The text may come from anywhere.
///
/// Throws  error for anything but the schema: another version, unknown or repeated keys, groups that are
///         not there, and what the model itself refuses.
/// Cost    O(n log n), memory in proportion to the text.
inline model read_model(std::string_view text) { return detail::model_file_reader(text).read(); }

}  // namespace subfed::inline v0
