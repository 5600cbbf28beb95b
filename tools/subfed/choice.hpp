// SPDX-License-Identifier: MIT
/// Options whose values are words.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <utility>
#include <vector>

namespace tool {

/// An option whose value is one of some words.
template <class E>
void add_choice(CLI::App* command, const char* name, E& value,
                const std::vector<std::pair<std::string, E>>& words, const char* help) {
  std::string all;
  for (const auto& [word, meaning] : words) all += (all.empty() ? "" : "|") + word;
  const auto choose = [&value, words, name, all](const std::string& text) {
    for (const auto& [word, meaning] : words) {
      if (text == word) {
        value = meaning;
        return;
      }
    }
    throw CLI::ValidationError(name, "\"" + text + "\" is not one of " + all);
  };
  command->add_option_function<std::string>(name, choose, help)->type_name(all);
}

}  // namespace tool
