// SPDX-License-Identifier: MIT
/// Options whose values are numbers. CLI11 by itself reads -1 as 2^64 - 1, numbers out of range as the
/// nearest one, and an empty text as 0.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <common/failure.hpp>
#include <common/text.hpp>
#include <type_traits>

namespace coverage_tool {

/// An option that is a number, read completely and independently of the locale.
template <class T>
CLI::Option* add_number(CLI::App& app, const char* name, T& variable, const char* about) {
  return app
      .add_option(
          name,
          [name, &variable](const CLI::results_t& words) {
            const auto found = common::number<T>(words.at(0));
            if (!found) {
              throw common::failure(fmt::format("{} is \"{}\", but {} is expected.", name, words[0],
                                                std::is_floating_point_v<T> ? "a number such as 0.1"
                                                : std::is_signed_v<T>
                                                    ? "a whole number"
                                                    : "a whole number from 0 to 2^64 - 1"));
            }
            variable = *found;
            return true;
          },
          about, true, [&variable] { return fmt::format("{}", variable); })
      ->type_name(std::is_floating_point_v<T> ? "FLOAT"
                  : std::is_signed_v<T>       ? "INT"
                                              : "UINT");
}

}  // namespace coverage_tool
