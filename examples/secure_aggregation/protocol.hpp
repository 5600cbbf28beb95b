// SPDX-License-Identifier: MIT
/// What clients and the server say to one another, and what each can check of it.
#pragma once

#include "crypto.hpp"
#include "task.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace secure_aggregation {

/// Long-term keys for signatures: all clients know all public ones, as from a registry that is not the
/// server's.
using registry = std::vector<std::array<std::uint8_t, 32>>;

/// A client's own part of the plan, and its keys for this round. It signs all of it, so that a server
/// cannot say that it has another capacity.
struct advertisement {
  std::uint64_t client = 0, round = 0;
  std::uint64_t numerator = 0, denominator = 0;  ///< the capacity
  double weight = 0;
  public_key mask, transport;
  signature by;

  static constexpr std::size_t size = 5 * 8 + 2 * 32 + 64;
  bytes signed_part() const;
  bytes all() const;
  /// Throws  failure for a client that is not in the registry, another round, or a wrong signature.
  static advertisement read(byte_reader& in, const registry& known, std::uint64_t round);
};

/// Everybody with keys, ascending.
///
/// Throws  failure for clients that are not ascending, and fewer than the threshold.
std::vector<advertisement> read_advertisements(const bytes& message, const registry& known,
                                               std::uint64_t round);
/// Throws  failure for a client without keys.
std::size_t find(const std::vector<advertisement>& all, std::uint64_t client);

/// The round of those that have sent shares. Its hash, over all of the plan and all keys, is in every
/// mask.
subfed::secure_round round_of(const task& about, const std::vector<advertisement>& all,
                              const std::vector<std::uint64_t>& sharing);
hash hash_of_round(const subfed::secure_round& round, const hash& keys);

/// What a client signs of the survivors.
bytes survivors_message(const subfed::survivor_list& list);
subfed::survivor_list read_survivors(const bytes& message);
bytes agreement(const hash& round, const bytes& list);

/// About a sealed pair of shares: whose keys, from whom, for whom.
bytes share_label(const hash& keys, std::uint64_t from, std::uint64_t to);
inline constexpr std::size_t sealed_size = 24 + 2 * 32 + 16;

/// Words as bytes.
bytes bytes_of(std::span<const std::uint64_t> words);
std::vector<std::uint64_t> words_of(std::span<const std::uint8_t> from);

/// Throws  failure unless the seed, put together from shares, is the one that its client has hashed.
void check_seed(const secret& seed, const hash& commitment, std::uint64_t client);
/// Throws  failure unless the key, put together from shares, belongs to the client's public one.
void check_key(const secret& key, const public_key& open, std::uint64_t client);

}  // namespace secure_aggregation
