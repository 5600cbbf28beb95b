// SPDX-License-Identifier: MIT
/// Texts as sequences of numbers: characters or words, each to be guessed from those before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "books.hpp"
#include "partition.hpp"

namespace trainer {

inline constexpr std::int64_t character_count = 80;
inline constexpr std::int64_t characters_each = 64;  // of a sequence
inline constexpr std::int64_t words_each = 20;

/// Sequences of all clients, one client after the other.
struct text_set {
  std::int64_t steps = 0;            // guesses of a sequence
  std::int64_t classes = 0;          // to choose from
  std::vector<std::int32_t> tokens;  // (count, steps + 1); `classes` stands for all other words
  std::vector<std::int64_t> first = {0};  // client c has first[c] to first[c + 1], without it

  std::int64_t count() const { return first.back(); }
};

struct text_split {
  text_set train;  // the first nine tenths of each client's text
  text_set test;   // of the last tenth at most tests_each sequences, evenly spread
};
inline constexpr std::int64_t tests_each = 8;

/// Sequences follow one another without a gap; the next one's first token is the last one's last guess.
/// What is left at the end is not used.
///
/// Throws  failure that names the part: for a character that is not one of the 80 (letters, digits,
///         spaces, ends of verses and !"&'()*,-.:;?[]_), and for a text too short for a sequence in both
///         parts.
text_split cut_characters(std::span<const book> of_clients);

/// Words are runs of letters, ' and -, in small letters; verses end without a mark. Those that are most
/// frequent in the clients' training parts are the classes, by frequency (equals by the alphabet); all
/// others are one token that nobody has to guess. A sequence without a guess is left out.
///
/// Throws  failure as cut_characters does, and for a text with fewer different words.
text_split cut_words(std::span<const book> of_clients, std::int64_t vocabulary);

/// A number that changes when a token does, as text.
std::string checksum(const text_split& data);

/// Clients with at most samples_each sequences, drawn from their own. They lack no character or word.
std::vector<client> text_clients(const text_split& data, std::uint64_t seed,
                                 std::int64_t samples_each);

}  // namespace trainer
