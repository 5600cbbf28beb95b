// SPDX-License-Identifier: MIT
#include "client.hpp"

#include "shares.hpp"
#include "wire.hpp"

#include <subfed/messages.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace secure_aggregation {

namespace {

/// What one client holds of another's secrets.
struct held_shares {
  share seed, key;
};

}  // namespace

void run_client(const task& about, const registry& known, const signing_key& own,
                std::uint64_t round, std::uint64_t client, std::uint16_t port, behaviour does) {
  const subfed::capacity::parts capacity = task::capacity_of(client).to_parts();
  const subfed::submodel mine = about.draw(round, client, task::capacity_of(client));
  const subfed::tensors<float> trained = about.trained(mine);
  connection server = connect_to(port);
  if (does == behaviour::leaves_before_keys) return;

  // 1. Keys for this round alone: one pair for masks, which others may open, one for transport.
  const key_pair mask = key_pair::random(), transport = key_pair::random();
  advertisement hello{client,
                      round,
                      static_cast<std::uint64_t>(capacity.numerator),
                      static_cast<std::uint64_t>(capacity.denominator),
                      task::weight_of(client),
                      mask.open,
                      transport.open,
                      {}};
  hello.by = own.sign(hello.signed_part());
  server.send(frame::advertise, hello.all());

  // 2. Shares of the masks' key and of the self mask's seed, sealed for each of the others.
  const bytes list = server.receive(frame::participants, 8 + 255 * advertisement::size);
  const std::vector<advertisement> all = read_advertisements(list, known, round);
  const std::size_t self = find(all, client);
  if (all[self].all() != hello.all()) throw failure("the server changes what this client said");
  if (static_cast<std::int64_t>(all.size()) < task::threshold) throw failure("too few have keys");
  const hash keys = hash_of(list);
  const secret seed = random_secret();
  bytes numbers;
  for (std::size_t i = 0; i < all.size(); ++i) numbers.push_back(static_cast<std::uint8_t>(i + 1));
  const auto of_seed = split(seed, numbers, static_cast<int>(task::threshold));
  const auto of_key = split(mask.hidden, numbers, static_cast<int>(task::threshold));
  if (does == behaviour::leaves_before_shares) return;
  byte_writer sealed;
  sealed.all(hash_of(seed.bits));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (i == self) continue;
    const secret key = agree(client, transport, all[i].client, all[i].transport, "shares", keys);
    const bytes both = byte_writer().all(of_seed[i].bits).all(of_key[i].bits).take();
    sealed.all(seal(both, key, share_label(keys, client, all[i].client)));
  }
  server.send(frame::shares, sealed.take());

  // 3. Whoever has sent shares takes part. All of the round goes into the keys of the masks.
  const bytes others = server.receive(frame::shares_for_you, 8 + 255 * (8 + sealed_size));
  std::map<std::uint64_t, held_shares> held{{client, {of_seed[self], of_key[self]}}};
  {
    byte_reader in(others);
    for (std::size_t left = in.count(8 + sealed_size); left > 0; --left) {
      const std::uint64_t from = in.number();
      const advertisement& theirs = all[find(all, from)];
      const secret key = agree(client, transport, from, theirs.transport, "shares", keys);
      const bytes both = unseal(in.some(sealed_size), key, share_label(keys, from, client));
      byte_reader parts(both);
      held_shares shares{{numbers[self], parts.array<32>()}, {numbers[self], parts.array<32>()}};
      if (!held.emplace(from, shares).second) {
        throw failure("client " + std::to_string(from) + " is listed twice");
      }
    }
    in.end();
  }
  std::vector<std::uint64_t> sharing;
  for (const auto& [from, shares] : held) sharing.push_back(from);
  const subfed::secure_round plan = round_of(about, all, sharing);
  const hash id = hash_of_round(plan, keys);
  subfed::mask_secrets secrets{mask_key_of(derive(seed, "self mask", id)), {}};
  for (const std::uint64_t other : sharing) {
    if (other == client) continue;
    const secret pair = agree(client, mask, other, all[find(all, other)].mask, "pair mask", id);
    secrets.pairs.push_back({other, mask_key_of(pair)});
  }
  if (does == behaviour::leaves_before_upload) return;
  const std::vector<subfed::row_labels> labels{{about.classes, about.labels_of(client)}};
  const auto words =
      subfed::masked_update<float>(plan, client, trained, secrets, chacha20{}, labels);
  if (does == behaviour::uploads_late) {
    server = connect_to(port);  // the server answers after the survivors are fixed
    server.send(frame::upload, bytes_of(words));
    return;
  }
  server.send(frame::upload, bytes_of(words));

  // 4. Everybody signs the survivors, so that nobody is told two lists; each client signs one list only.
  const bytes fates = server.receive(frame::survivors, 16 + 8 * sharing.size());
  const subfed::survivor_list list_of_survivors = read_survivors(fates);
  subfed::unmasking_guard guard(plan, client);
  guard.admit(list_of_survivors);
  if (does == behaviour::leaves_before_agreeing) return;
  const bytes message = agreement(id, fates);
  server.send(frame::agreed, byte_writer().all(own.sign(message)).take());

  // 5. Of a survivor the share of its seed, of others that of their key: never both of one.
  const bytes signatures =
      server.receive(frame::agreements, 8 + (8 + 64) * list_of_survivors.survivors.size());
  std::set<std::uint64_t> agreeing;
  byte_reader in(signatures);
  for (std::size_t left = in.count(8 + 64); left > 0; --left) {
    const std::uint64_t from = in.number();
    const signature by = in.array<64>();
    const auto& survivors = list_of_survivors.survivors;
    if (std::find(survivors.begin(), survivors.end(), from) == survivors.end() ||
        !is_signed(message, by, known[static_cast<std::size_t>(from)])) {
      throw failure("client " + std::to_string(from) + " has not signed the survivors");
    }
    agreeing.insert(from);
  }
  in.end();
  if (static_cast<std::int64_t>(agreeing.size()) < task::threshold) {
    throw failure("too few have signed the survivors");
  }
  if (does == behaviour::leaves_before_opening) return;
  byte_writer opening;
  for (const std::uint64_t s : list_of_survivors.survivors) {
    auto bits = held.at(s).seed.bits;
    if (does == behaviour::changes_a_share) bits[9] ^= 4;
    opening.all(bits);
  }
  for (const std::uint64_t d : list_of_survivors.dropped) opening.all(held.at(d).key.bits);
  server.send(frame::opening, opening.take());
}

void run_plain_client(const task& about, std::uint64_t round, std::uint64_t client,
                      std::uint16_t port) {
  const subfed::submodel mine = about.draw(round, client, task::capacity_of(client));
  const subfed::tensors<float> trained = about.trained(mine);
  connection server = connect_to(port);
  const auto message =
      subfed::write_update<float>(mine, trained, task::weight_of(client), "rolling");
  bytes out;
  byte_writer front;
  front.number(client);
  out = front.take();
  for (const std::byte b : message) out.push_back(std::to_integer<std::uint8_t>(b));
  server.send(frame::plain, out);
}

}  // namespace secure_aggregation
