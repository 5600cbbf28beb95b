// SPDX-License-Identifier: MIT
#include "books.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <common/tests/message_of.hpp>
#include <common/tests/temporary_folder.hpp>

#include "text_files.hpp"

namespace {

/// What compress(1) writes, by its own way: a table of prefixes, codes in groups of eight, wider ones as
/// the table grows.
std::string compressed(const std::string& text) {
  std::map<std::string, unsigned> table;
  for (unsigned c = 0; c < 256; ++c) table[std::string(1, static_cast<char>(c))] = c;
  unsigned next = 257, width = 9, in_group = 0;
  std::vector<bool> bits;
  const auto write = [&](unsigned code) {
    for (unsigned b = 0; b < width; ++b) bits.push_back((code >> b & 1) != 0);
    in_group = (in_group + 1) % 8;
  };
  std::string have;
  for (const char c : text) {
    if (table.count(have + c) != 0) {
      have += c;
      continue;
    }
    write(table[have]);
    if (next > (1u << width) - 1 && width < 16) {
      while (in_group != 0) write(0);
      ++width;
    }
    if (next < 1u << 16) table[have + c] = next++;
    have = c;
  }
  if (!have.empty()) write(table[have]);
  std::string out;
  for (std::size_t b = 0; b < bits.size(); ++b) {
    if (b % 8 == 0) out += '\0';
    if (bits[b]) out.back() = static_cast<char>(out.back() | 1 << b % 8);
  }
  return out;
}

void append_number(std::string& out, std::size_t number) {
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(number >> shift & 0xFF);
}

/// The same layout as bible.data.
std::string package_file(const std::string& text, std::size_t size) {
  std::vector<std::string> pieces;
  for (std::size_t at = 0; at < text.size(); at += size) {
    pieces.push_back(compressed(text.substr(at, size)));
  }
  std::string out = "EC02Compressed Data File";
  out.resize(80, '\0');
  for (const std::size_t number : {std::size_t{0}, size, pieces.size()}) append_number(out, number);
  std::size_t from = out.size() + 4 * (pieces.size() + 1) + 3;
  append_number(out, from);
  for (const std::string& p : pieces) append_number(out, from += p.size());
  out += "\x1f\x9d\x90";
  for (const std::string& p : pieces) out += p;
  return out;
}

struct text_file {
  temporary_folder folder;
  std::filesystem::path path = folder.path() / "text";

  std::vector<trainer::book> read(const std::string& content) const {
    std::ofstream(path, std::ios::binary) << content;
    return trainer::read_books(path);
  }
  std::string refused(const std::string& content) const {
    std::string message = message_of([&] { read(content); });
    const std::size_t at = message.find(path.string());
    if (at != std::string::npos) message.replace(at, path.string().size(), "FILE");
    return message;
  }
};

void check_same(const std::vector<trainer::book>& a, const std::vector<trainer::book>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    CHECK(a[i].name == b[i].name);
    CHECK(a[i].verses == b[i].verses);
  }
}

trainer::book book_of(const std::string& name, std::vector<std::size_t> sizes) {
  trainer::book out{name, {}};
  for (const std::size_t s : sizes) out.verses.emplace_back(s - 1, 'x');
  return out;
}

}  // namespace

TEST_CASE("a text is read book by book, after its title") {
  const text_file file;
  check_same(file.read("A title, 1611.\nGe1:1 In the beginning\nGe1:2 And the\n1Sm31:13 bones\n"),
             {{"Ge", {"In the beginning", "And the"}}, {"1Sm", {"bones"}}});
  check_same(file.read("SSol1:1 a\nSSol2:1 b"), {{"SSol", {"a", "b"}}});
}

TEST_CASE("a file that is no text of verses is refused by its name and line") {
  const text_file file;
  CHECK(file.refused("no verse") ==
        "FILE is damaged: it has no verse, such as \"Gen1:2 And the earth\".");
  CHECK(file.refused("Ge1:1 a\nand more\n") ==
        "FILE is damaged: line 2 is no verse, such as \"Gen1:2 And the earth\".");
  for (const char* line : {"Ge1: a", "Ge:1 a", "1:1 a", "Ge1:1a b", "Ge1:1", ":1 a", ""}) {
    CAPTURE(line);
    CHECK(file.refused("Ge1:1 a\n" + std::string(line) + "\nGe1:2 b\n")
              .starts_with("FILE is damaged: line 2"));
  }
  CHECK(file.refused("").starts_with("FILE cannot be read: on Debian `apt-get install bible-kjv"));
  CHECK(message_of([] {
          trainer::read_books("/nowhere/at/all");
        }).starts_with("/nowhere/at/all cannot be read: "));
}

TEST_CASE("what compress made is unpacked: codes of every width, and one that is just being made") {
  for (const std::string text : {"", "a", "aaaaaaaaaaaaaaaaaaaaaaaa", "abababababababababab"}) {
    CHECK(trainer::decompress(compressed(text)) == text);
  }
  std::string noise;
  unsigned state = 1;
  for (int i = 0; i < 90000; ++i) {
    state = state * 1664525u + 1013904223u;
    noise += static_cast<char>(state >> 24);
  }
  for (const std::size_t size : {255u, 256u, 257u, 258u, 300u, 1000u, 20000u, 90000u}) {
    CHECK((trainer::decompress(compressed(noise.substr(0, size))) == noise.substr(0, size)));
  }
  // 300 is no code yet.
  CHECK(message_of([] { trainer::decompress("\x2c\x01"); }).starts_with("compress did not make"));
}

TEST_CASE("the package's file is read, in one piece or many") {
  const text_file file;
  const std::string text = verses_text(3, 40);
  const auto expected = file.read(text);
  for (const std::size_t size : {std::size_t{65536}, std::size_t{1000}, std::size_t{64}}) {
    check_same(file.read(package_file("Holy title.\n" + text, size)), expected);
  }
  const std::string whole = package_file(text, 1000);
  for (std::size_t length = 24; length < whole.size(); length += 97) {
    CHECK(file.refused(whole.substr(0, length)).starts_with("FILE is damaged: "));
  }
  std::string other = whole;
  other[84] = 1;  // pieces of 16 MiB and more
  CHECK(file.refused(other).find("piece 0 holds 1000 characters") != std::string::npos);
}

TEST_CASE("Debian's King James Bible has its 66 books and 31102 verses") {
  const std::filesystem::path path = "/usr/lib/bible.data";
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: bible-kjv-text is not installed");
    return;
  }
  const auto books = trainer::read_books(path);
  REQUIRE(books.size() == 66);
  std::size_t verses = 0, characters = 0;
  for (const trainer::book& b : books) {
    verses += b.verses.size();
    characters += b.size();
  }
  CHECK(verses == 31102);
  CHECK(characters == 4137850);
  CHECK(books[0].verses[0] == "In the beginning God created the heaven and the earth.");
  CHECK(books[65].name == "Rev");
  CHECK(books[65].verses.back().ends_with("be with you all. Amen."));
}

TEST_CASE("few clients have the longest books, in the order of the text") {
  const std::vector<trainer::book> books = {book_of("a", {5}), book_of("b", {9}), book_of("c", {5}),
                                            book_of("d", {7, 7})};
  const auto names = [&](std::int64_t clients) {
    std::string out;
    for (const auto& b : trainer::deal_books(books, clients)) out += b.name;
    return out;
  };
  CHECK(names(4) == "abcd");
  CHECK(names(3) == "abd");
  CHECK(names(2) == "bd");
  CHECK(names(1) == "d");
}

TEST_CASE("for more clients the longest part is halved at the verse nearest to its middle") {
  const std::vector<trainer::book> books = {book_of("a", {4, 4}), book_of("b", {2, 3, 4, 3, 2})};
  const auto sizes = [&](std::int64_t clients) {
    std::vector<std::size_t> out;
    for (const auto& b : trainer::deal_books(books, clients)) out.push_back(b.size());
    return out;
  };
  CHECK(sizes(2) == std::vector<std::size_t>{8, 14});
  CHECK(sizes(3) == std::vector<std::size_t>{8, 5, 9});
  CHECK(sizes(4) == std::vector<std::size_t>{8, 5, 4, 5});
  CHECK(sizes(5) == std::vector<std::size_t>{4, 4, 5, 4, 5});
  CHECK(sizes(6) == std::vector<std::size_t>{4, 4, 2, 3, 4, 5});
  const auto parts = trainer::deal_books(books, 7);
  CHECK(parts.size() == 7);
  CHECK(
      message_of([&] { trainer::deal_books(books, 8); }) ==
      "--clients is 8, but a is a single verse, which cannot be halved: the text is too short for "
      "that many clients.");
}
