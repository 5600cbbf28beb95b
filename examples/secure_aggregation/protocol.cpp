// SPDX-License-Identifier: MIT
#include "protocol.hpp"

#include "shares.hpp"

#include <algorithm>
#include <string>

namespace secure_aggregation {

bytes advertisement::signed_part() const {
  byte_writer out;
  out.number(client).number(round).number(numerator).number(denominator).real(weight);
  return out.all(mask).all(transport).take();
}

bytes advertisement::all() const { return byte_writer().all(signed_part()).all(by).take(); }

advertisement advertisement::read(byte_reader& in, const registry& known, std::uint64_t round) {
  advertisement out;
  out.client = in.number();
  out.round = in.number();
  out.numerator = in.number();
  out.denominator = in.number();
  out.weight = in.real();
  out.mask = in.array<32>();
  out.transport = in.array<32>();
  out.by = in.array<64>();
  const std::string who = "the keys of client " + std::to_string(out.client);
  if (out.client >= known.size()) throw failure(who + ", which nobody knows");
  if (out.round != round) throw failure(who + " are for another round");
  if (!is_signed(out.signed_part(), out.by, known[static_cast<std::size_t>(out.client)])) {
    throw failure(who + " are not signed by it");
  }
  if (out.numerator < 1 || out.denominator < 1 || out.numerator > out.denominator ||
      out.denominator > 1'000'000) {
    throw failure(who + " come with an impossible capacity");
  }
  return out;
}

std::vector<advertisement> read_advertisements(const bytes& message, const registry& known,
                                               std::uint64_t round) {
  byte_reader in(message);
  std::vector<advertisement> out;
  for (std::size_t left = in.count(advertisement::size); left > 0; --left) {
    out.push_back(advertisement::read(in, known, round));
    if (out.size() > 1 && out[out.size() - 2].client >= out.back().client) {
      throw failure("client " + std::to_string(out.back().client) + " is listed twice");
    }
  }
  in.end();
  // A share's number has eight bits.
  if (out.size() > 255) throw failure("there are more than 255 clients");
  return out;
}

std::size_t find(const std::vector<advertisement>& all, std::uint64_t client) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].client == client) return i;
  }
  throw failure("client " + std::to_string(client) + " has no keys in this round");
}

subfed::secure_round round_of(const task& about, const std::vector<advertisement>& all,
                              const std::vector<std::uint64_t>& sharing) {
  std::vector<subfed::secure_participant> out;
  for (const std::uint64_t client : sharing) {
    const advertisement& a = all[find(all, client)];
    const auto share = subfed::capacity::ratio(static_cast<std::int64_t>(a.numerator),
                                               static_cast<std::int64_t>(a.denominator));
    out.push_back({about.draw(a.round, client, share), a.weight});
  }
  return subfed::secure_round(std::move(out), about.options);
}

hash hash_of_round(const subfed::secure_round& round, const hash& keys) {
  byte_writer out;
  for (const std::byte b : round.bytes()) {
    const auto one = std::to_integer<std::uint8_t>(b);
    out.all(std::span(&one, 1));
  }
  return hash_of(out.all(keys).take());
}

bytes survivors_message(const subfed::survivor_list& list) {
  byte_writer out;
  for (const auto* some : {&list.survivors, &list.dropped}) {
    out.number(some->size());
    for (const std::uint64_t client : *some) out.number(client);
  }
  return out.take();
}

subfed::survivor_list read_survivors(const bytes& message) {
  byte_reader in(message);
  subfed::survivor_list out;
  for (auto* some : {&out.survivors, &out.dropped}) {
    for (std::size_t left = in.count(8); left > 0; --left) some->push_back(in.number());
  }
  in.end();
  return out;
}

bytes agreement(const hash& round, const bytes& list) {
  return byte_writer().all(round).all(list).take();
}

bytes share_label(const hash& keys, std::uint64_t from, std::uint64_t to) {
  return byte_writer().all(keys).number(from).number(to).take();
}

bytes bytes_of(std::span<const std::uint64_t> words) {
  bytes out(8 * words.size());
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (std::size_t b = 0; b < 8; ++b) {
      out[8 * i + b] = static_cast<std::uint8_t>(words[i] >> (8 * b) & 0xFF);
    }
  }
  return out;
}

std::vector<std::uint64_t> words_of(std::span<const std::uint8_t> from) {
  if (from.size() % 8 != 0) throw failure("an upload is no sequence of words");
  std::vector<std::uint64_t> out(from.size() / 8, 0);
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (std::size_t b = 0; b < 8; ++b) out[i] |= std::uint64_t{from[8 * i + b]} << (8 * b);
  }
  return out;
}

void check_seed(const secret& seed, const hash& commitment, std::uint64_t client) {
  if (hash_of(seed.bits) == commitment) return;
  throw failure("the seed of client " + std::to_string(client) +
                "'s self mask has another hash than the client sent: a share is wrong");
}

void check_key(const secret& key, const public_key& open, std::uint64_t client) {
  if (public_half(key) == open) return;
  throw failure("the key of client " + std::to_string(client) +
                " does not belong to its public key: a share is wrong");
}

}  // namespace secure_aggregation
