// SPDX-License-Identifier: MIT
#include "mix.hpp"

#include <fmt/format.h>

#include <string_view>

#include "failure.hpp"
#include "text.hpp"

namespace common {
namespace {

named_mix two_classes(const std::string& text, std::string_view typed_share) {
  const auto share = number<double>(typed_share);
  if (!share || !(*share >= 0 && *share <= 1)) {
    throw failure(fmt::format(
        "The capacity mix \"{}\" has the share \"{}\" of capacity 1, but 0 to 1 is expected.", text,
        typed_share));
  }
  const auto large = subfed::capacity::ratio(1, 1), small = subfed::capacity::ratio(1, 16);
  named_mix out{subfed::capacity_mix::two_classes(large, small, *share), {}, text};
  for (const subfed::capacity_class& c : out.mix.classes) {
    out.names.push_back(c.capacity == large ? "1" : "1/16");
  }
  return out;
}

}  // namespace

named_mix parse_mix(const std::string& text) {
  constexpr std::string_view two = "two-class:";
  if (text == "uniform" || text == "income") {
    return {text == "income" ? subfed::capacity_mix::income() : subfed::capacity_mix::uniform(),
            {"1", "1/2", "1/4", "1/8", "1/16"},
            text};
  }
  if (text.starts_with(two)) return two_classes(text, std::string_view(text).substr(two.size()));

  named_mix out;
  out.mix.classes.clear();
  for (const std::string& piece : pieces(text)) {
    const auto words = pieces(piece, ':');
    const auto weight = words.size() == 2 ? number<double>(words[1]) : 1.0;
    if (words.size() > 2 || !weight || !(*weight > 0)) {
      throw failure(
          fmt::format("The capacity mix \"{}\" is none of uniform, income and two-class:RHO, and "
                      "\"{}\" is not a capacity with a positive weight after a colon, such as "
                      "1/16:0.9.",
                      text, piece));
    }
    out.mix.classes.push_back({parse_capacity(words[0]), *weight});
    out.names.push_back(words[0]);
    out.text += (out.text.empty() ? "" : ",") + words[0];
    if (words.size() == 2) out.text += ":" + words[1];
  }
  return out;
}

}  // namespace common
