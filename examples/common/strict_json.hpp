// SPDX-License-Identifier: MIT
/// JSON in which no object has a key twice: the parser by itself takes the last of them.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "failure.hpp"

namespace common {

/// Throws  failure for a key that occurs twice, and what the parser throws.
template <class Json>
Json parse_strictly(std::string_view text) {
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  return Json::parse(text, [&](int, typename Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(parsed.template get<std::string>()).second) {
      throw failure(fmt::format("the key {} occurs twice", parsed.dump()));
    }
    return true;
  });
}

}  // namespace common
