// SPDX-License-Identifier: MIT
/// Options of a command line and of a configuration file.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <common/text.hpp>
#include <common/wrapped.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "configuration.hpp"
#include "failure.hpp"

namespace trainer {

/// Names of values, as they are typed.
template <class T>
using choices = std::vector<std::pair<std::string_view, T>>;

/// The value of a name.
///
/// Throws  failure that names the option and what is expected.
template <class T>
T chosen(std::string_view option, std::string_view name, const choices<T>& table) {
  std::string known;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (table[i].first == name) return table[i].second;
    known += i == 0 ? "" : i + 1 == table.size() ? " or " : ", ";
    known += table[i].first;
  }
  throw failure(fmt::format("--{} is \"{}\", but {} is expected.", option, name, known));
}

/// The command line, then the configuration file.
class command_line {
 public:
  explicit command_line(const std::string& footer) {
    app_.get_formatter()->column_width(32);
    app_.footer(footer);
    app_.option_defaults()->always_capture_default();
  }

  command_line(const command_line&) = delete;  // options refer to it
  command_line& operator=(const command_line&) = delete;

  /// The options that follow appear under this title in the help.
  void title(std::string text) { title_ = std::move(text); }
  /// An option that a file may set too.
  template <class T>
  CLI::Option* add(const std::string& name, T& variable, const std::string& about) {
    fields_.push_back({name, &variable});
    fields_.back().standard = variable;
    options_.push_back(add_typed_only(name, variable, about));
    return options_.back();
  }
  template <class T>
  CLI::Option* add_typed_only(const std::string& name, T& variable, const std::string& about) {
    if constexpr (std::is_same_v<T, bool>) {
      return app_.add_flag("--" + name, variable, about)->group(title_);
    } else {
      CLI::Option* option = app_.add_option("--" + name, variable, about)->group(title_);
      // CLI11 by itself reads numbers out of range as the nearest one, -1 as 2^64 - 1, and an empty
      // text as 0.
      if constexpr (std::is_arithmetic_v<T>) {
        option->check([](const std::string& text) -> std::string {
          if (text.empty()) return "a number is expected";
          if (std::is_floating_point_v<T> || common::number<T>(text)) return "";
          if (std::is_unsigned_v<T> && text.starts_with('-')) return text + " is negative";
          return text + " is not a whole number, or is out of range";
        });
      }
      return option;
    }
  }
  /// An option that is typed as a T and stands for something else. When the command line and the
  /// file have been read, `set` is given its value, given or not, and may write it in another way;
  /// configurations have what it writes.
  template <class T>
  CLI::Option* add_as(const std::string& name, std::type_identity_t<T> standard,
                      const std::string& about, std::function<void(T&)> set) {
    const auto typed = std::make_shared<T>(std::move(standard));
    CLI::Option* option = add(name, *typed, about);
    setters_.push_back([typed, set] { set(*typed); });
    return option;
  }
  /// One of several names. The standard value is the variable's.
  template <class T>
  CLI::Option* add_choice(const std::string& name, T& variable,
                          const choices<std::type_identity_t<T>>& table, const std::string& about) {
    const auto standard = std::find_if(table.begin(), table.end(),
                                       [&](const auto& c) { return c.second == variable; });
    return add_as<std::string>(
        name, std::string(standard->first), about,
        [&variable, name, table](std::string& word) { variable = chosen<T>(name, word, table); });
  }
  /// An option without a standard value.
  template <class T>
  void add_optional(const std::string& name, std::optional<T>& variable, const std::string& about) {
    add_as<T>(name, T{}, about, [this, name, &variable](T& value) {
      if (find(name).is_given()) variable = value;
    })->default_str("");
  }
  /// At most one of the two may be given.
  void exclude(std::string_view a, std::string_view b) {
    find(a).instead_of = b;
    find(b).instead_of = a;
  }

  /// False when it asked for help, which has then been printed.
  ///
  /// Throws  failure that names the option.
  bool parse(int argc, const char* const* argv, const std::string& file) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      fmt::print("{}", common::wrapped(app_.help()));
      return false;
    } catch (const CLI::ParseError& error) {
      throw failure(fmt::format("{}; --help lists the options.", error.what()));
    }
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (options_[i]->count() > 0) fields_[i].from = origin::command_line;
    }
    if (!file.empty()) read_configuration(file, fields_);
    for (const field& f : fields_) {
      const auto* text = std::get_if<std::string*>(&f.variable);
      if (text == nullptr || is_utf8(**text)) continue;
      throw failure(fmt::format(
          "--{} is not UTF-8 text, so the configuration of the run cannot store it.", f.name));
    }
    for (const field& f : fields_) {
      if (!f.instead_of.empty() && f.is_given() && find(f.instead_of).is_given()) {
        throw failure(fmt::format("--{} and --{} cannot be used together.", f.name, f.instead_of));
      }
    }
    for (const auto& set : setters_) set();
    return true;
  }

  field& find(std::string_view name) {
    return *std::find_if(fields_.begin(), fields_.end(),
                         [&](const field& f) { return f.name == name; });
  }
  const std::vector<field>& fields() const { return fields_; }

 private:
  CLI::App app_{
      "Trains one model on clients of different capacity, by several methods, on Fashion-MNIST, "
      "and compares them in a table, in CSV files and in a picture.",
      "subfed_trainer"};
  std::string title_;
  std::vector<field> fields_;
  std::vector<CLI::Option*> options_;  // of the fields
  std::vector<std::function<void()>> setters_;
};

}  // namespace trainer
