// SPDX-License-Identifier: MIT
#include "server.hpp"

#include "shares.hpp"

#include <subfed/messages.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

namespace secure_aggregation {

namespace {

using clock = std::chrono::steady_clock;

/// The clients that are still there, by number, and what the current stage has cost.
class room {
 public:
  explicit room(outcome& to) : to_(to) {}

  void begin(std::string name) {
    to_.stages.push_back({std::move(name)});
    since_ = clock::now();
  }
  void end(std::size_t clients) {
    to_.stages.back().clients = clients;
    to_.stages.back().seconds = std::chrono::duration<double>(clock::now() - since_).count();
  }
  /// f(payload) for each client's answer. Who is gone, or answers with what cannot be, is left out.
  template <class F>
  void receive(frame kind, std::map<std::uint64_t, connection>& from, std::uint64_t most, F&& f) {
    for (auto at = from.begin(); at != from.end();) {
      try {
        const std::uint64_t before = at->second.received;
        const bytes payload = at->second.receive(kind, most);
        to_.stages.back().up += at->second.received - before;
        f(at->first, payload);
        ++at;
      } catch (const failure&) {
        at = from.erase(at);
      }
    }
  }
  /// Who is gone is found out when it is to answer.
  void send(frame kind, connection& to, const bytes& payload) {
    try {
      to.send(kind, payload);
      to_.stages.back().down += payload.size() + 9;
    } catch (const failure&) {
    }
  }

 private:
  outcome& to_;
  clock::time_point since_;
};

void need(std::size_t found, const char* what) {
  if (static_cast<std::int64_t>(found) >= task::threshold) return;
  throw failure(std::to_string(found) + " clients " + what + ", expected at least " +
                std::to_string(task::threshold));
}

}  // namespace

outcome run_server(const task& about, const registry& known, std::uint64_t round, listener& door,
                   std::size_t clients, std::size_t late, subfed::tensors<float>& globals) {
  outcome out;
  room here(out);
  std::vector<connection> strangers;
  while (strangers.size() < clients) strangers.push_back(door.accept());

  here.begin("keys");
  std::map<std::uint64_t, connection> all;
  std::map<std::uint64_t, advertisement> adverts;
  for (connection& stranger : strangers) {
    try {
      const bytes hello = stranger.receive(frame::advertise, advertisement::size);
      out.stages.back().up += stranger.received;
      byte_reader in(hello);
      const advertisement a = advertisement::read(in, known, round);
      in.end();
      if (!adverts.emplace(a.client, a).second) throw failure("a client came twice");
      all.emplace(a.client, std::move(stranger));
    } catch (const failure&) {
    }
  }
  need(all.size(), "have sent keys");
  byte_writer list_of_keys;
  list_of_keys.number(adverts.size());
  std::vector<advertisement> in_order;
  for (const auto& [client, a] : adverts) {
    list_of_keys.all(a.all());
    in_order.push_back(a);
  }
  const bytes list = list_of_keys.take();
  const hash keys = hash_of(list);
  for (auto& [client, to] : all) here.send(frame::participants, to, list);
  here.end(all.size());

  here.begin("shares");
  std::map<std::uint64_t, hash> commitments;
  std::map<std::uint64_t, std::map<std::uint64_t, bytes>> sealed;  // to, from
  here.receive(frame::shares, all, 32 + sealed_size * (in_order.size() - 1),
               [&](std::uint64_t from, const bytes& payload) {
                 byte_reader in(payload);
                 const hash commitment = in.array<32>();
                 std::map<std::uint64_t, bytes> own;
                 for (const advertisement& a : in_order) {
                   if (a.client == from) continue;
                   const auto one = in.some(sealed_size);
                   own[a.client] = bytes(one.begin(), one.end());
                 }
                 in.end();
                 for (auto& [to, one] : own) sealed[to][from] = std::move(one);
                 commitments[from] = commitment;
               });
  need(all.size(), "have sent shares");
  std::vector<std::uint64_t> sharing;
  for (const auto& [client, to] : all) sharing.push_back(client);
  for (auto& [client, to] : all) {
    byte_writer message;
    message.number(sharing.size() - 1);
    for (const std::uint64_t from : sharing) {
      if (from != client) message.number(from).all(sealed[client][from]);
    }
    here.send(frame::shares_for_you, to, message.take());
  }
  here.end(all.size());

  here.begin("masked updates");
  const subfed::secure_round plan = round_of(about, in_order, sharing);
  const hash id = hash_of_round(plan, keys);
  subfed::masked_sum sum(plan);
  here.receive(frame::upload, all, 8 * static_cast<std::uint64_t>(about.net.size() + 10),
               [&](std::uint64_t from, const bytes& payload) {
                 try {
                   sum.add(from, words_of(payload));
                 } catch (const subfed::error& e) {
                   throw failure(e.what());
                 }
               });
  need(all.size(), "have sent updates");
  const subfed::survivor_list fates = sum.close();
  const bytes fates_message = survivors_message(fates);
  for (auto& [client, to] : all) here.send(frame::survivors, to, fates_message);
  here.end(all.size());

  for (std::size_t i = 0; i < late; ++i) {
    connection again = door.accept();
    const bytes payload =
        again.receive(frame::upload, 8 * static_cast<std::uint64_t>(about.net.size() + 10));
    try {
      sum.add(fates.dropped.at(0), words_of(payload));  // it may be any of those that are missing
    } catch (const subfed::error& e) {
      out.late = e.what();
    }
  }

  here.begin("agreement");
  byte_writer signatures;
  const bytes message = agreement(id, fates_message);
  std::map<std::uint64_t, signature> signed_by;
  here.receive(frame::agreed, all, 64, [&](std::uint64_t from, const bytes& payload) {
    byte_reader in(payload);
    const signature by = in.array<64>();
    in.end();
    if (!is_signed(message, by, known[static_cast<std::size_t>(from)])) throw failure("unsigned");
    signed_by[from] = by;
  });
  need(all.size(), "have agreed on the survivors");
  signatures.number(signed_by.size());
  for (const auto& [client, by] : signed_by) signatures.number(client).all(by);
  const bytes agreements = signatures.take();
  for (auto& [client, to] : all) here.send(frame::agreements, to, agreements);
  here.end(all.size());

  here.begin("opening");
  std::map<std::uint64_t, std::vector<share>> of_seeds, of_keys;
  here.receive(frame::opening, all, 32 * sharing.size(),
               [&](std::uint64_t from, const bytes& payload) {
                 if (payload.size() != 32 * sharing.size()) throw failure("a share is missing");
                 byte_reader in(payload);
                 const auto number = static_cast<std::uint8_t>(find(in_order, from) + 1);
                 for (const std::uint64_t s : fates.survivors) {
                   of_seeds[s].push_back({number, in.array<32>()});
                 }
                 for (const std::uint64_t d : fates.dropped) {
                   of_keys[d].push_back({number, in.array<32>()});
                 }
               });
  need(all.size(), "have opened the round");
  const int threshold = static_cast<int>(task::threshold);
  for (const std::uint64_t s : fates.survivors) {
    const secret seed = combine(of_seeds[s], threshold);
    check_seed(seed, commitments[s], s);
    sum.remove_self_mask(s, mask_key_of(derive(seed, "self mask", id)), chacha20{});
  }
  for (const std::uint64_t d : fates.dropped) {
    const key_pair pair{adverts.at(d).mask, combine(of_keys[d], threshold)};
    check_key(pair.hidden, pair.open, d);
    for (const std::uint64_t s : fates.survivors) {
      const secret key = agree(d, pair, s, adverts.at(s).mask, "pair mask", id);
      sum.remove_pairwise_mask(d, s, mask_key_of(key), chacha20{});
    }
  }
  sum.open<float>().finish(globals);
  here.end(all.size());
  out.survivors = fates.survivors;
  out.released = plan.released().count();
  return out;
}

outcome run_plain_server(const task& about, std::uint64_t round, listener& door,
                         std::size_t clients, subfed::tensors<float>& globals) {
  outcome out;
  room here(out);
  std::vector<connection> strangers;
  while (strangers.size() < clients) strangers.push_back(door.accept());
  here.begin("plain updates");
  subfed::selective_average<float> mean(about.net, about.options.average);
  for (connection& stranger : strangers) {
    const bytes payload =
        stranger.receive(frame::plain, 4 * static_cast<std::uint64_t>(about.net.size()) + 4096);
    out.stages.back().up += stranger.received;
    byte_reader in(payload);
    const std::uint64_t client = in.number();
    if (client >= task::clients) throw failure("a client that nobody knows");
    const auto sub = about.draw(round, client, task::capacity_of(client));
    std::vector<double> aligned((payload.size() - 8 + 7) / 8);
    std::memcpy(aligned.data(), payload.data() + 8, payload.size() - 8);
    const auto message = std::as_bytes(std::span<const double>(aligned)).first(payload.size() - 8);
    const auto update = subfed::open_update(sub, "rolling", message);
    mean.add<void>(update.sub.restricted(about.classes, about.labels_of(client)), update.tensors,
                   update.weight);
    out.survivors.push_back(client);
  }
  mean.finish(globals);
  here.end(strangers.size());
  out.released = mean.held().count();
  return out;
}

}  // namespace secure_aggregation
