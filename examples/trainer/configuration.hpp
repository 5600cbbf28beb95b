// SPDX-License-Identifier: MIT
/// Options as a JSON object, which a file can hold.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

namespace trainer {

/// Where an option's value comes from.
enum class origin { standard, file, command_line };

/// One option: its name, which is its key in JSON, and the variable that it sets.
struct field {
  std::string name;  // without dashes
  std::variant<bool*, std::int64_t*, std::uint64_t*, double*, std::string*> variable;
  origin from = origin::standard;
  std::string instead_of = {};  // the option that it excludes
  std::variant<bool, std::int64_t, std::uint64_t, double, std::string> standard = {};

  bool is_given() const { return from != origin::standard; }
};

/// Whether a field's value is the one that it has without being given.
bool is_standard(const field& f);

/// Whether a configuration can hold the text.
bool is_utf8(const std::string& text);

/// Reads a file into the fields. Those of the command line stay, and so do those that exclude one
/// of the command line.
///
/// Throws  failure that names the file, and the key where it is about one: when the file cannot be
///         read, is not a JSON object, has a key of no field, or a value that a variable cannot hold.
void read_configuration(const std::filesystem::path& path, std::span<field> fields);

enum class layout { pretty, compact };

/// The fields that are wanted as a JSON object, in their order: pretty text, or one line.
///
/// Throws  an exception for a text that is not UTF-8.
std::string write_configuration(std::span<const field> fields, layout how,
                                const std::function<bool(std::string_view)>& wanted);

}  // namespace trainer
