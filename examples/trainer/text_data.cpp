// SPDX-License-Identifier: MIT
#include "text_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "data.hpp"
#include "failure.hpp"
#include "random_order.hpp"

namespace trainer {
namespace {

using tokens = std::vector<std::int32_t>;

constexpr std::string_view known_characters =
    "\n !\"&'()*,-.0123456789:;?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]_abcdefghijklmnopqrstuvwxyz";
static_assert(known_characters.size() == character_count);

/// How many of a client's tokens are for training.
std::size_t train_size(std::size_t all) { return all - all / 10; }

/// Appends the sequences of a client that are wanted: those of `from`, at most `most`, evenly spread.
void add_sequences(text_set& set, std::span<const std::int32_t> from, std::int64_t most,
                   std::string_view name, std::string_view what) {
  const auto step = static_cast<std::size_t>(set.steps);
  std::vector<std::size_t> begins;
  for (std::size_t at = 0; at + step < from.size(); at += step) {
    const auto guesses = from.subspan(at + 1, step);
    const bool any = std::any_of(guesses.begin(), guesses.end(),
                                 [&](std::int32_t t) { return t < set.classes; });
    if (any) begins.push_back(at);
  }
  if (begins.empty()) {
    throw failure(
        fmt::format("A client's part of {} has no sequence of {} guesses for {}: --clients is too "
                    "large for this "
                    "text.",
                    name, set.steps, what));
  }
  const std::size_t wanted = (std::min)(begins.size(), static_cast<std::size_t>(most));
  for (std::size_t i = 0; i < wanted; ++i) {
    const auto chosen = from.subspan(begins[i * begins.size() / wanted], step + 1);
    set.tokens.insert(set.tokens.end(), chosen.begin(), chosen.end());
  }
  set.first.push_back(set.first.back() + static_cast<std::int64_t>(wanted));
}

text_split cut(std::span<const book> of_clients, std::span<const tokens> all, std::int64_t steps,
               std::int64_t classes) {
  text_split out;
  for (text_set* set : {&out.train, &out.test}) set->steps = steps, set->classes = classes;
  for (std::size_t c = 0; c < all.size(); ++c) {
    const std::span<const std::int32_t> own = all[c];
    const std::size_t train = train_size(own.size());
    const auto every = static_cast<std::int64_t>(own.size());
    add_sequences(out.train, own.first(train), every, of_clients[c].name, "training");
    add_sequences(out.test, own.subspan(train), tests_each, of_clients[c].name, "testing");
  }
  return out;
}

/// The words of all verses, in small letters.
std::vector<std::string> words_of(const book& text) {
  std::vector<std::string> out;
  for (const std::string& verse : text.verses) {
    std::string word;
    for (const char each : verse + ' ') {
      const bool large = each >= 'A' && each <= 'Z';
      if (large || (each >= 'a' && each <= 'z') || each == '\'' || each == '-') {
        word += large ? static_cast<char>(each - 'A' + 'a') : each;
      } else if (!word.empty()) {
        out.push_back(std::exchange(word, {}));
      }
    }
  }
  return out;
}

}  // namespace

text_split cut_characters(std::span<const book> of_clients) {
  std::vector<tokens> all;
  for (const book& own : of_clients) {
    tokens& numbers = all.emplace_back();
    for (const std::string& verse : own.verses) {
      for (const char each : verse + '\n') {
        const std::size_t at = known_characters.find(each);
        if (at == std::string_view::npos) {
          throw failure(fmt::format(
              "{} has a character of code {}, which is none of the 80 that the network knows.",
              own.name, static_cast<int>(static_cast<unsigned char>(each))));
        }
        numbers.push_back(static_cast<std::int32_t>(at));
      }
    }
  }
  return cut(of_clients, all, characters_each, character_count);
}

text_split cut_words(std::span<const book> of_clients, std::int64_t vocabulary) {
  std::vector<std::vector<std::string>> words;
  std::map<std::string_view, std::int64_t> counts;
  for (const book& own : of_clients) words.push_back(words_of(own));
  for (const auto& own : words) {
    for (std::size_t w = 0; w < train_size(own.size()); ++w) ++counts[own[w]];
  }
  if (static_cast<std::int64_t>(counts.size()) < vocabulary) {
    throw failure(fmt::format("--vocabulary is {}, but the text has only {} different words.",
                              vocabulary, counts.size()));
  }
  std::vector<std::pair<std::string_view, std::int64_t>> order(counts.begin(), counts.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::map<std::string_view, std::int32_t> numbers;
  for (std::int32_t n = 0; n < vocabulary; ++n) {
    numbers[order[static_cast<std::size_t>(n)].first] = n;
  }
  std::vector<tokens> all;
  for (const auto& own : words) {
    tokens& out = all.emplace_back();
    for (const std::string& word : own) {
      const auto at = numbers.find(word);
      out.push_back(at == numbers.end() ? static_cast<std::int32_t>(vocabulary) : at->second);
    }
  }
  return cut(of_clients, all, words_each, vocabulary);
}

std::string checksum(const text_split& data) {
  std::uint32_t sum = 0;
  for (const text_set* set : {&data.train, &data.test}) {
    sum = checksum(sum, set->tokens.data(), set->tokens.size() * sizeof(std::int32_t));
    sum = checksum(sum, set->first.data(), set->first.size() * sizeof(std::int64_t));
  }
  return fmt::format("{:08x}", sum);
}

std::vector<client> text_clients(const text_split& data, std::uint64_t seed,
                                 std::int64_t samples_each) {
  std::vector<client> out;
  for (std::size_t c = 0; c + 1 < data.train.first.size(); ++c) {
    client& own = out.emplace_back();
    own.number = c;
    const auto all = [c](const text_set& set) {
      std::vector<std::int64_t> numbers(static_cast<std::size_t>(set.first[c + 1] - set.first[c]));
      std::iota(numbers.begin(), numbers.end(), set.first[c]);
      return numbers;
    };
    own.samples = all(data.train);
    own.tests = all(data.test);
    subfed::random_stream stream(seed, 0, c, "sequences of a client");
    const auto wanted = static_cast<std::size_t>(samples_each);
    draw_to_front(own.samples, wanted, stream);
    if (own.samples.size() > wanted) own.samples.resize(wanted);
  }
  return out;
}

}  // namespace trainer
