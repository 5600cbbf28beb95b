// SPDX-License-Identifier: MIT
#include "books.hpp"

#include <archive.h>
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include <common/files.hpp>

#include "failure.hpp"

namespace trainer {
namespace {

constexpr std::string_view package_title = "EC02Compressed Data File";
constexpr std::size_t numbers_begin = 80;
constexpr std::string_view compress_header = "\x1f\x9d\x90";  // 16 bits, with a code that clears

std::uint32_t big_endian_word(std::string_view bytes, std::size_t at) {
  std::uint32_t out = 0;
  for (std::size_t i = 0; i < 4; ++i) out = out << 8 | static_cast<std::uint8_t>(bytes.at(at + i));
  return out;
}

/// The text of bible.data.
std::string unpacked(std::string_view file) {
  const std::size_t size = big_endian_word(file, numbers_begin + 4);
  const std::size_t pieces = big_endian_word(file, numbers_begin + 8);
  const std::size_t table = numbers_begin + 12;
  if (pieces > file.size() / 4) throw failure("it counts more pieces than it can have");
  if (file.substr(table + 4 * (pieces + 1), 3) != compress_header) {
    throw failure("its pieces are not of compress -b 16");
  }
  std::string out;
  for (std::size_t p = 0; p < pieces; ++p) {
    const std::size_t from = big_endian_word(file, table + 4 * p);
    const std::size_t to = big_endian_word(file, table + 4 * (p + 1));
    if (from > to || to > file.size()) throw failure(fmt::format("piece {} is cut short", p));
    const std::string text = decompress(file.substr(from, to - from));
    if (text.size() > size || (p + 1 < pieces && text.size() != size)) {
      throw failure(fmt::format("piece {} holds {} characters", p, text.size()));
    }
    out += text;
  }
  return out;
}

/// The name of the book in "Gen1:2"; empty where it is no such place.
std::string_view book_in(std::string_view place) {
  constexpr std::string_view digits = "0123456789";
  const std::size_t colon = place.find(':');
  if (colon == std::string_view::npos || colon + 1 == place.size() || colon == 0) return {};
  if (place.find_first_not_of(digits, colon + 1) != std::string_view::npos) return {};
  const std::size_t last = place.find_last_not_of(digits, colon - 1);
  if (last == std::string_view::npos || last + 1 == colon) return {};
  return place.substr(0, last + 1);
}

std::vector<book> parse_books(std::string_view text) {
  std::vector<book> out;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix((std::min)(line.size() + 1, text.size()));
    ++number;
    const std::size_t space = line.find(' ');
    const std::string_view name = book_in(line.substr(0, space));
    if (name.empty() || space == std::string_view::npos) {
      if (out.empty()) continue;
      throw failure(fmt::format("line {} is no verse, such as \"Gen1:2 And the earth\"", number));
    }
    if (out.empty() || out.back().name != name) out.push_back({std::string(name), {}});
    out.back().verses.emplace_back(line.substr(space + 1));
  }
  if (out.empty()) throw failure("it has no verse, such as \"Gen1:2 And the earth\"");
  return out;
}

/// The half of a book that begins at the verse nearest to its middle, which the book then lacks.
book second_half(book& whole) {
  const std::size_t all = whole.size();
  const auto off = [&](std::size_t at) { return 2 * at > all ? 2 * at - all : all - 2 * at; };
  std::size_t verse = 1, at = whole.verses.front().size() + 1;
  for (std::size_t v = 1, before = at; v < whole.verses.size(); ++v) {
    if (off(before) < off(at)) verse = v, at = before;
    before += whole.verses[v].size() + 1;
  }
  const auto from = whole.verses.begin() + static_cast<std::ptrdiff_t>(verse);
  book out{whole.name,
           {std::make_move_iterator(from), std::make_move_iterator(whole.verses.end())}};
  whole.verses.erase(from, whole.verses.end());
  return out;
}

bool is_shorter(const book& a, const book& b) { return a.size() < b.size(); }

}  // namespace

std::size_t book::size() const {
  std::size_t out = verses.size();
  for (const std::string& v : verses) out += v.size();
  return out;
}

std::string decompress(std::string_view packed) {
  if (packed.empty()) return {};
  const std::string whole = std::string(compress_header).append(packed);
  const std::unique_ptr<archive, decltype(&archive_read_free)> reader(archive_read_new(),
                                                                      archive_read_free);
  const auto check = [&reader](la_ssize_t status) {
    if (status >= 0) return;
    throw failure(
        fmt::format("compress did not make its pieces: {}", archive_error_string(reader.get())));
  };
  check(archive_read_support_filter_compress(reader.get()));
  check(archive_read_support_format_raw(reader.get()));
  check(archive_read_open_memory(reader.get(), whole.data(), whole.size()));
  archive_entry* entry = nullptr;
  check(archive_read_next_header(reader.get(), &entry));
  std::string out, part(1 << 16, '\0');
  for (;;) {
    const la_ssize_t size = archive_read_data(reader.get(), part.data(), part.size());
    check(size);
    if (size == 0) return out;
    out.append(part, 0, static_cast<std::size_t>(size));
  }
}

std::vector<book> read_books(const std::filesystem::path& path) {
  std::string text;
  try {
    text = common::read_file(path);
  } catch (const failure&) {
    text.clear();  // the sentence below says what helps
  }
  if (text.empty()) {
    throw failure(
        fmt::format("{} cannot be read: on Debian `apt-get install bible-kjv-text` puts the King "
                    "James Bible in "
                    "/usr/lib/bible.data, and --data takes any other file of such verses.",
                    path.string()));
  }
  try {
    return parse_books(text.starts_with(package_title) ? unpacked(text) : text);
  } catch (const std::exception& error) {
    throw failure(fmt::format("{} is damaged: {}.", path.string(), error.what()));
  }
}

std::vector<book> deal_books(std::vector<book> books, std::int64_t clients) {
  const auto wanted = static_cast<std::size_t>(clients);
  while (books.size() > wanted) {
    // The last of equals goes.
    std::size_t shortest = 0;
    for (std::size_t b = 1; b < books.size(); ++b) {
      if (!is_shorter(books[shortest], books[b])) shortest = b;
    }
    books.erase(books.begin() + static_cast<std::ptrdiff_t>(shortest));
  }
  while (books.size() < wanted) {
    const auto longest = std::max_element(books.begin(), books.end(), is_shorter);
    if (longest->verses.size() < 2) {
      throw failure(
          fmt::format("--clients is {}, but {} is a single verse, which cannot be halved: the text "
                      "is too short "
                      "for that many clients.",
                      clients, longest->name));
    }
    book half = second_half(*longest);
    books.insert(longest + 1, std::move(half));
  }
  return books;
}

}  // namespace trainer
