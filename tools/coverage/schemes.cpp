// SPDX-License-Identifier: MIT
#include "schemes.hpp"

#include <fmt/format.h>

#include <common/failure.hpp>
#include <common/text.hpp>
#include <limits>
#include <optional>
#include <string_view>
#include <subfed/schemes/prefix.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/schemes/rolling.hpp>
#include <subfed/schemes/simple_ensemble.hpp>
#include <vector>

namespace coverage_tool {
namespace {

using common::failure;

struct option {
  std::string key, value;
  const std::string& scheme;

  [[noreturn]] void refuse() const {
    throw failure(
        fmt::format("The scheme \"{}\" has the option \"{}{}{}\", which is not understood; "
                    "--help lists the schemes.",
                    scheme, key, value.empty() ? "" : "=", value));
  }
  std::int64_t whole() const {
    const auto found = common::number<std::int64_t>(value);
    if (!found || *found == (std::numeric_limits<std::int64_t>::min)()) refuse();
    return *found;
  }
  double real() const {
    const auto found = common::number<double>(value);
    if (!found) refuse();
    return *found;
  }
  subfed::rounding rounding() const {
    if (value == "floor") return subfed::rounding::floor;
    if (value == "ceil") return subfed::rounding::ceil;
    if (value == "nearest") return subfed::rounding::nearest;
    refuse();
  }
};

named_scheme rolling(const std::vector<option>& options) {
  subfed::rolling out;
  for (const option& o : options) {
    if (o.key == "step") {
      out.step = o.whole();
    } else if (o.key == "overlap") {
      out.window_overlap = o.real();
    } else if (o.key == "phase") {
      out.phase = o.whole();
    } else if (o.key == "client-phase") {
      out.client_phase = o.whole();
    } else if (o.key == "round") {
      out.round_to = o.rounding();
    } else if (o.key == "backward" && o.value.empty()) {
      out.walk = subfed::direction::backward;
    } else {
      o.refuse();
    }
  }
  const bool known = !out.window_overlap && out.phase == 0 && out.client_phase == 0;
  const bool back = out.walk == subfed::direction::backward;
  return {"", out, known ? law::windows : law::unknown, back ? -out.step : out.step};
}

named_scheme random(const std::vector<option>& options) {
  subfed::random_subset out;
  law known = law::random_sets;
  for (const option& o : options) {
    if (o.key == "round") {
      out.round_to = o.rounding();
      continue;
    }
    known = law::unknown;
    if (o.key == "pool") {
      out.seeds = subfed::seed_policy::pool(o.whole());
    } else if (o.key == "pool-per-round") {
      out.seeds = subfed::seed_policy::pool_per_round(o.whole());
    } else if (o.key == "shared") {
      out.seeds = subfed::seed_policy::shared(o.whole());
    } else if (o.key == "per-client" && o.value.empty()) {
      out.seeds = subfed::seed_policy::per_client();
    } else {
      o.refuse();
    }
  }
  return {"", out, known, 0};
}

named_scheme prefix(const std::vector<option>& options) {
  subfed::prefix out;
  for (const option& o : options) {
    if (o.key != "round") o.refuse();
    out.round_to = o.rounding();
  }
  return {"", out, law::windows, 0};
}

named_scheme ensemble(const std::vector<option>& options) {
  subfed::simple_ensemble out;
  for (const option& o : options) {
    if (o.key != "advance" || o.whole() < 0) o.refuse();
    out.advance = static_cast<std::uint64_t>(o.whole());
  }
  return {"", out, law::unknown, 0};
}

}  // namespace

named_scheme parse_scheme(const std::string& text) {
  const std::vector<std::string> words = common::pieces(text, ':');
  std::vector<option> options;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    options.push_back({words[i].substr(0, equals),
                       equals == std::string::npos ? "" : words[i].substr(equals + 1), text});
    for (std::size_t before = 0; before + 1 < options.size(); ++before) {
      if (options[before].key != options.back().key) continue;
      throw failure(
          fmt::format("The scheme \"{}\" has the option \"{}\" twice.", text, options.back().key));
    }
  }
  named_scheme out;
  if (words[0] == "rolling") {
    out = rolling(options);
  } else if (words[0] == "random") {
    out = random(options);
  } else if (words[0] == "static") {
    out = prefix(options);
  } else if (words[0] == "ensemble") {
    out = ensemble(options);
  } else if (words[0] == "mine" && options.empty()) {
    out.scheme = my_scheme();
  } else {
    throw failure(
        fmt::format("There is no scheme \"{}\"; the schemes are rolling, random, static, ensemble "
                    "and mine, and --help lists their options.",
                    text));
  }
  out.name = text;
  return out;
}

std::string scheme_help() {
  return "Schemes, with options after colons, such as rolling:step=4:round=ceil:\n"
         "  rolling   FedRolex: step=N, overlap=R, backward, phase=N, client-phase=N,\n"
         "            round=floor|ceil|nearest\n"
         "  random    Federated Dropout: pool=S, pool-per-round=S, shared=ROUNDS, per-client,\n"
         "            round=..\n"
         "  static    HeteroFL: round=..\n"
         "  ensemble  a simple ensemble; capacities must divide the widths: advance=N\n"
         "  mine      the lambda in tools/coverage/my_scheme.cpp\n";
}

}  // namespace coverage_tool
