// SPDX-License-Identifier: MIT
#include "clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <common/failure.hpp>
#include <common/text.hpp>
#include "../coverage/schemes.hpp"

namespace tool {
namespace {

using common::failure;

/// Sets a field of an entry from text; false when the text is not understood.
bool set(client_entry& entry, const std::string& column, const std::string& text) {
  if (column == "capacity") {
    entry.key.capacity = common::parse_capacity(text);
    entry.capacity = text;
    return true;
  }
  if (column == "weight") {
    const auto weight = common::number<double>(text);
    if (weight) entry.weight = *weight;
    return weight && *weight >= 0;
  }
  const auto whole = common::number<std::uint64_t>(text);
  if (!whole) return false;
  if (column == "client") entry.key.client = *whole;
  if (column == "round") entry.key.round = *whole;
  if (column == "seed") entry.key.seed = *whole;
  return true;
}

}  // namespace

std::vector<client_entry> read_clients(const std::filesystem::path& list, std::uint64_t round,
                                       std::uint64_t seed) {
  const std::string text = common::read_file(list);
  std::vector<client_entry> out;
  std::vector<std::string> columns;
  std::size_t number = 0;
  for (const std::string& line : common::pieces(text, '\n')) {
    ++number;
    const auto refused = [&](const std::string& why) {
      return failure(fmt::format("{}, line {}: {}", list.string(), number, why));
    };
    if (line.empty() || line == "\r") continue;
    std::vector<std::string> fields =
        common::pieces(line.back() == '\r' ? line.substr(0, line.size() - 1) : line);
    if (columns.empty()) {
      for (const std::string& column : fields) {
        const std::string known[] = {"client", "capacity", "round", "weight", "seed", "file"};
        if (std::find(std::begin(known), std::end(known), column) == std::end(known)) {
          throw refused(
              fmt::format("there is no column \"{}\"; the columns are client, capacity, "
                          "round, weight, seed and file.",
                          column));
        }
        if (std::count(fields.begin(), fields.end(), column) > 1) {
          throw refused(fmt::format("the column \"{}\" is named twice.", column));
        }
      }
      columns = fields;
      for (const char* needed : {"client", "capacity"}) {
        if (std::find(columns.begin(), columns.end(), needed) == columns.end()) {
          throw refused(fmt::format("the column \"{}\" is missing.", needed));
        }
      }
      continue;
    }
    if (fields.size() != columns.size()) {
      throw refused(fmt::format("it has {} fields, and the first line names {} columns.",
                                fields.size(), columns.size()));
    }
    client_entry entry;
    entry.key.round = round;
    entry.key.seed = seed;
    for (std::size_t c = 0; c < columns.size(); ++c) {
      if (columns[c] == "file") {
        if (!fields[c].empty()) entry.file = common::detail::folder_of(list) / fields[c];
      } else if (!set(entry, columns[c], fields[c])) {
        throw refused(fmt::format("the {} \"{}\" is not understood.", columns[c], fields[c]));
      }
    }
    out.push_back(std::move(entry));
  }
  if (out.empty()) throw failure(list.string() + " lists no clients.");
  return out;
}

client_entry client_of(const checkpoint& file) {
  client_entry out;
  for (const char* const key : {"client", "capacity", "round", "seed", "weight"}) {
    const std::string* const text = file.metadata(key);
    const bool optional = std::string_view(key) == "seed" || std::string_view(key) == "weight";
    if (text == nullptr && optional) continue;
    if (text == nullptr) {
      throw failure(
          fmt::format("{}: the metadata lacks the {}; --clients gives a list that has it.",
                      file.path().string(), key));
    }
    if (!set(out, key, *text)) {
      throw failure(fmt::format("{}: the metadata's {} \"{}\" is not understood.",
                                file.path().string(), key, *text));
    }
  }
  out.file = file.path();
  return out;
}

submodels::submodels(subfed::model net, const std::string& scheme)
    : net_(std::move(net)), text_(scheme), scheme_(coverage_tool::parse_scheme(scheme).scheme) {}

subfed::submodel submodels::of(const client_entry& client) const {
  return subfed::draw(net_, scheme_, client.key);
}

}  // namespace tool
