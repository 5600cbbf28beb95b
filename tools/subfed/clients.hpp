// SPDX-License-Identifier: MIT
/// Which clients there are, what each holds, and where its file is.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <subfed/draw.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <vector>

#include "checkpoint.hpp"

namespace tool {

/// A row of a list of clients, or what the metadata of a client's file says.
struct client_entry {
  subfed::draw_key key;
  std::string capacity;  // as it was typed
  double weight = 1;
  std::filesystem::path file;  // empty: none was given
};

/// A CSV file whose first line names the columns, or a .json file with an array of objects: client and
/// capacity are needed; round, weight, seed and file may follow. A file's path is relative to the
/// list's folder.
///
/// Throws  failure that names the list, the line or row and what is wrong with it.
std::vector<client_entry> read_clients(const std::filesystem::path& list, std::uint64_t round,
                                       std::uint64_t seed);

/// What cut writes into a client's file: client, round, capacity, seed, scheme and weight.
///
/// Throws  failure that names the file when one is missing or not understood.
client_entry client_of(const checkpoint& file);

using scheme_function = std::function<subfed::index_set(const subfed::draw_request&)>;

/// The submodels of clients. Clients with equal sets share them.
class submodels {
 public:
  submodels(subfed::model net, const std::string& scheme);
  subfed::submodel of(const client_entry& client) const;
  const subfed::model& net() const { return net_; }
  const std::string& scheme() const { return text_; }

 private:
  subfed::model net_;
  std::string text_;
  scheme_function scheme_;
};

}  // namespace tool
