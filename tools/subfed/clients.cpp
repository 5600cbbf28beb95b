// SPDX-License-Identifier: MIT
#include "clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <common/failure.hpp>
#include <common/text.hpp>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
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

/// A list's rows: where each is, for messages, and its fields by column.
struct list_row {
  std::string place;
  std::vector<std::pair<std::string, std::string>> fields;
};

void check_columns(const std::vector<std::pair<std::string, std::string>>& fields,
                   const std::function<failure(const std::string&)>& refused) {
  constexpr std::string_view known[] = {"client", "capacity", "round", "weight", "seed", "file"};
  const auto count = [&](std::string_view column) {
    return std::count_if(fields.begin(), fields.end(),
                         [&](const auto& f) { return f.first == column; });
  };
  for (const auto& [column, value] : fields) {
    if (std::find(std::begin(known), std::end(known), column) == std::end(known)) {
      throw refused(
          fmt::format("there is no column \"{}\"; the columns are client, capacity, "
                      "round, weight, seed and file.",
                      column));
    }
    if (count(column) > 1) throw refused(fmt::format("the column \"{}\" is named twice.", column));
  }
  for (const std::string_view needed : {"client", "capacity"}) {
    if (count(needed) == 0) throw refused(fmt::format("the column \"{}\" is missing.", needed));
  }
}

/// The first line names the columns.
std::vector<list_row> read_csv(const std::filesystem::path& list, const std::string& text) {
  std::vector<list_row> out;
  std::vector<std::pair<std::string, std::string>> columns;
  std::size_t number = 0;
  for (const std::string& line : common::pieces(text, '\n')) {
    ++number;
    std::string place = fmt::format("{}, line {}", list.string(), number);
    const auto refused = [&](const std::string& why) { return failure(place + ": " + why); };
    if (line.empty() || line == "\r") continue;
    const std::vector<std::string> fields =
        common::pieces(line.back() == '\r' ? line.substr(0, line.size() - 1) : line);
    if (columns.empty()) {
      for (const std::string& column : fields) columns.emplace_back(column, "");
      check_columns(columns, refused);
      continue;
    }
    if (fields.size() != columns.size()) {
      throw refused(fmt::format("it has {} fields, and the first line names {} columns.",
                                fields.size(), columns.size()));
    }
    out.push_back({std::move(place), columns});
    for (std::size_t c = 0; c < columns.size(); ++c) out.back().fields[c].second = fields[c];
  }
  return out;
}

/// An array of objects: [{"client": 0, "capacity": "1/2"}, ..].
std::vector<list_row> read_json(const std::filesystem::path& list, const std::string& text) {
  const auto parsed = nlohmann::ordered_json::parse(text, nullptr, false);
  if (!parsed.is_array()) {
    throw failure(list.string() +
                  R"(: it is no JSON array of objects like {"client": 0, "capacity": "1/2"}.)");
  }
  std::vector<list_row> out;
  for (const auto& row : parsed) {
    std::string place = fmt::format("{}, row {}", list.string(), out.size() + 1);
    const auto refused = [&](const std::string& why) { return failure(place + ": " + why); };
    if (!row.is_object()) throw refused("it is no object.");
    std::vector<std::pair<std::string, std::string>> fields;
    for (const auto& [column, value] : row.items()) {
      if (!value.is_string() && !value.is_number()) {
        throw refused(fmt::format("the {} is neither text nor a number.", column));
      }
      fields.emplace_back(column, value.is_string() ? value.get<std::string>() : value.dump());
    }
    check_columns(fields, refused);
    out.push_back({std::move(place), std::move(fields)});
  }
  return out;
}

}  // namespace

std::vector<client_entry> read_clients(const std::filesystem::path& list, std::uint64_t round,
                                       std::uint64_t seed) {
  const std::string text = common::read_file(list);
  std::vector<client_entry> out;
  for (const list_row& row :
       list.extension() == ".json" ? read_json(list, text) : read_csv(list, text)) {
    client_entry entry;
    entry.key.round = round;
    entry.key.seed = seed;
    for (const auto& [column, value] : row.fields) {
      if (column == "file") {
        if (!value.empty()) entry.file = common::detail::folder_of(list) / value;
        continue;
      }
      bool understood = false;
      try {
        understood = set(entry, column, value);
      } catch (const failure& wrong) {
        throw failure(row.place + ": " + wrong.what());
      }
      if (!understood) {
        throw failure(
            fmt::format("{}: the {} \"{}\" is not understood.", row.place, column, value));
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
