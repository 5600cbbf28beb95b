// SPDX-License-Identifier: MIT
#include "configuration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <common/strict_json.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>

#include "failure.hpp"

namespace trainer {
namespace {

using nlohmann::ordered_json;

ordered_json parsed(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text;
  std::getline(file, text, '\0');  // all of it: JSON has no such byte
  if (!file.is_open() || file.bad()) {
    throw failure(fmt::format("The configuration {} cannot be read.", path.string()));
  }
  ordered_json out;
  try {
    out = common::parse_strictly<ordered_json>(text);
  } catch (const ordered_json::exception& error) {
    throw failure(fmt::format("{} is not JSON: {}.", path.string(), error.what()));
  } catch (const failure& error) {
    throw failure(fmt::format("{}: {}.", path.string(), error.what()));
  }
  if (!out.is_object()) throw failure(fmt::format("{} is not a JSON object.", path.string()));
  return out;
}

/// What a JSON value must be to fit a variable.
std::string_view kind_of(const field& f) {
  constexpr std::string_view kinds[] = {"true or false", "a whole number",
                                        "a whole number that is not negative", "a number",
                                        "a text"};
  return kinds[f.variable.index()];
}

template <class T>
bool fits(const ordered_json& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value.is_boolean();
  } else if constexpr (std::is_same_v<T, std::string>) {
    return value.is_string();
  } else if constexpr (std::is_same_v<T, double>) {
    return value.is_number();
  } else if constexpr (std::is_same_v<T, std::uint64_t>) {
    return value.is_number_unsigned();
  } else {
    // Numbers without a sign are held unsigned, and some of them are too large for T.
    return value.is_number_integer() && (!value.is_number_unsigned() || value.get<T>() >= 0);
  }
}

}  // namespace

bool is_standard(const field& f) {
  return std::visit(
      [&](const auto* variable) {
        using T = std::remove_cv_t<std::remove_pointer_t<decltype(variable)>>;
        return std::get<T>(f.standard) == *variable;
      },
      f.variable);
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(ordered_json(text).dump());
    return true;
  } catch (const ordered_json::type_error&) {
    return false;
  }
}

void read_configuration(const std::filesystem::path& path, std::span<field> fields) {
  const ordered_json values = parsed(path);
  const auto find = [&](std::string_view name) {
    return std::find_if(fields.begin(), fields.end(),
                        [&](const field& f) { return f.name == name; });
  };
  const auto typed = [&](auto at) {
    return at != fields.end() && at->from == origin::command_line;
  };
  for (const auto& item : values.items()) {  // Clang 14 captures no structured binding
    const std::string& key = item.key();
    const ordered_json& value = item.value();
    const auto at = find(key);
    if (at == fields.end()) {
      throw failure(fmt::format(
          "{}: there is no option \"{}\" for a configuration; --help lists the options.",
          path.string(), key));
    }
    const bool overruled = typed(at) || typed(find(at->instead_of));
    std::visit(
        [&](auto* variable) {
          using T = std::remove_pointer_t<decltype(variable)>;
          if (!fits<T>(value)) {
            throw failure(fmt::format("{}: \"{}\" is {}, but {} is expected.", path.string(), key,
                                      value.dump(), kind_of(*at)));
          }
          if (!overruled) *variable = value.get<T>();
        },
        at->variable);
    if (!overruled) at->from = origin::file;
  }
}

std::string write_configuration(std::span<const field> fields, layout how,
                                const std::function<bool(std::string_view)>& wanted) {
  ordered_json out = ordered_json::object();
  for (const field& f : fields) {
    if (!wanted(f.name)) continue;
    std::visit([&](const auto* from) { out[f.name] = *from; }, f.variable);
  }
  return out.dump(how == layout::pretty ? 2 : -1);
}

}  // namespace trainer
