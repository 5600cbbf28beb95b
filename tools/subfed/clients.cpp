// SPDX-License-Identifier: MIT
#include "clients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <common/failure.hpp>
#include <common/strict_json.hpp>
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

/// The fields of a line of CSV. One in quotes may have commas, and a quote that is written twice.
std::vector<std::string> fields_of(const std::string& line,
                                   const std::function<failure(const std::string&)>& refused) {
  if (line.find('"') == std::string::npos) return common::pieces(line);
  constexpr const char* blanks = " \t";
  std::vector<std::string> out;
  for (std::size_t at = 0;; ++at) {  // at a field's first character
    const std::size_t first = line.find_first_not_of(blanks, at);
    if (first == std::string::npos || line[first] != '"') {
      const std::size_t end = (std::min)(line.find(',', at), line.size());
      out.push_back(common::pieces(line.substr(at, end - at))[0]);
      at = end;
    } else {
      std::string& field = out.emplace_back();
      for (at = first + 1;; ++at) {
        if (at >= line.size()) throw refused("a quote is not closed.");
        const bool quote = line[at] == '"';
        if (quote && (at + 1 == line.size() || line[at + 1] != '"')) break;
        field += line[at];
        at += quote ? 1 : 0;
      }
      at = (std::min)(line.find_first_not_of(blanks, at + 1), line.size());
      if (at < line.size() && line[at] != ',') {
        throw refused(fmt::format("after the field \"{}\" in quotes a comma is expected.", field));
      }
    }
    if (at >= line.size()) return out;
  }
}

/// The first line names the columns.
std::vector<list_row> read_csv(const std::filesystem::path& list, std::string text) {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";  // as spreadsheets write it
  if (text.starts_with(byte_order_mark)) text.erase(0, byte_order_mark.size());
  std::vector<list_row> out;
  std::vector<std::pair<std::string, std::string>> columns;
  std::size_t number = 0;
  for (const std::string& line : common::pieces(text, '\n')) {
    ++number;
    std::string place = fmt::format("{}, line {}", list.string(), number);
    const auto refused = [&](const std::string& why) { return failure(place + ": " + why); };
    if (line.empty() || line == "\r") continue;
    const std::vector<std::string> fields =
        fields_of(line.back() == '\r' ? line.substr(0, line.size() - 1) : line, refused);
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
  const auto parsed = common::about_file(list, [&] {
    try {
      auto array = common::parse_strictly<nlohmann::ordered_json>(text);
      if (array.is_array()) return array;
    } catch (const nlohmann::json::out_of_range&) {
      throw failure("it has a number that no double can hold.");
    } catch (const nlohmann::json::exception&) {
    }
    throw failure(R"(it is no JSON array of objects like {"client": 0, "capacity": "1/2"}.)");
  });
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
        if (value.find('\0') != std::string::npos) {
          throw failure(row.place + ": the file's name has a character 0.");
        }
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
    const bool understood = common::about_file(file.path(), [&] { return set(out, key, *text); });
    if (!understood) {
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
