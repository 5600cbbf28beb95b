// SPDX-License-Identifier: MIT
/// The King James Bible as Debian's package bible-kjv-text has it, and other texts of verses; which
/// verses each client has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

/// A book, or a client's part of one.
struct book {
  std::string name;
  std::vector<std::string> verses;

  /// Characters, with one for the end of each verse.
  std::size_t size() const;
};

/// Reads a file of lines such as "Gen1:2 And the earth ..": the name of a book, chapter:verse, a space
/// and the verse. Lines before the first verse are a title. Or the file bible.data of the package, which
/// has such lines in pieces that compress(1) made: after 80 bytes of title it has 32-bit numbers, high
/// byte first: 0, the size of a piece, how many there are, where each begins, and the file's size.
///
/// Throws  failure that names the file: one that is missing, damaged, or has a line without a verse. A
///         missing file of the package's place is told with how to get it.
std::vector<book> read_books(const std::filesystem::path& file);

/// What `compress -b 16` made, without its header of three bytes.
///
/// Throws  failure for what no compress makes.
std::string decompress(std::string_view packed);

/// As many parts as there are clients, in the order of the text. For fewer clients than books, the
/// longest books (the first of equals). For more, the longest part is halved at the verse nearest to its
/// middle until there are enough.
///
/// Throws  failure when a part of one verse would have to be halved.
std::vector<book> deal_books(std::vector<book> books, std::int64_t clients);

}  // namespace trainer
