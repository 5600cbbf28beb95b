// SPDX-License-Identifier: MIT
/// The server's side of secure aggregation: the sum of masked uploads, from which masks are taken away.
#pragma once

#include <subfed/average/options.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/scalar.hpp>
#include <subfed/secure/detail/mask_stream.hpp>
#include <subfed/secure/detail/opened_sums.hpp>
#include <subfed/secure/detail/round_plan.hpp>
#include <subfed/secure/detail/upload_layout.hpp>
#include <subfed/secure/mask_key.hpp>
#include <subfed/secure/secure_round.hpp>
#include <subfed/secure/survivors.hpp>

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// Adds uploads, then takes the masks away, and gives the streaming average that the same updates without
/// masks would have given:
///
///   masked_sum sum(round);
///   sum.add(client, words);                                  // as they arrive
///   const survivor_list list = sum.close();                  // late uploads stay closed
///   sum.remove_self_mask(survivor, key, chacha20);           // for each of list.survivors
///   sum.remove_pairwise_mask(gone, survivor, key, chacha20); // for each pair of both lists
///   sum.open<float>().finish(globals);
///
/// Throws    what a mask generator throws. Where a mask has been taken away in part then, the sum refuses to
///           go on.
/// Numerics  The sums of selective_average with the same options over the survivors, to the bit, for
///           what is released. Everything else keeps its bits.
/// Cost      8 bytes a parameter. One generated stream over what a survivor holds for each survivor,
///           and over what both hold for each pair.
class masked_sum {
 public:
  explicit masked_sum(secure_round round)
      : round_(std::move(round)),
        sums_(static_cast<std::size_t>(plan().words), 0),
        stages_(plan().participants.size(), stage::silent) {}

  /// Throws  error for a client that does not take part or has sent already, another number of words, and
  ///         after close(). The sum is then unchanged.
  /// Cost    Reads the words once, reads and writes the sums.
  void add(std::uint64_t client, std::span<const std::uint64_t> words) {
    check_whole();
    const std::size_t p = plan().number_of(client);
    if (closed_) {
      refuse(client, " is late: the survivors are fixed");
    }
    if (stages_[p] != stage::silent) refuse(client, " has sent an upload already");
    const detail::upload_layout layout(plan(), p);
    const bool whole = layout.is_whole();
    std::vector<std::uint64_t> all;
    std::span<const std::uint64_t> dense = words;
    std::size_t expected = layout.words();
    if (!whole) {
      const std::vector<bool> sent = layout.sent();
      all.resize(layout.words(), 0);
      expected = 0;
      for (std::size_t i = 0; i < sent.size(); ++i) {
        if (!sent[i]) continue;
        if (expected < words.size()) all[i] = words[expected];
        ++expected;
      }
      dense = all;
    }
    if (words.size() != expected) {
      refuse(client, " has sent " + std::to_string(words.size()) + " words, expected " +
                         std::to_string(expected));
    }
    std::uint64_t* const sums = sums_.data();
    layout.for_each_shared(p, [&](std::uint64_t first, std::int64_t stride, std::size_t word,
                                  std::int64_t word_stride, std::int64_t length) {
      std::uint64_t* const to = sums + first;
      const std::uint64_t* const from = dense.data() + word;
      for (std::int64_t i = 0; i < length; ++i) to[i * stride] += from[i * word_stride];
    });
    stages_[p] = stage::masked;
  }

  /// Clients whose uploads have been added, ascending.
  std::vector<std::uint64_t> survivors() const {
    std::vector<std::uint64_t> out;
    for (std::size_t p = 0; p < stages_.size(); ++p) {
      if (stages_[p] != stage::silent) out.push_back(plan().client(p));
    }
    return out;
  }

  /// Fixes the survivors. A second call gives the same list.
  ///
  /// Throws  error when fewer survive than the threshold, or than least_holders of a released parameter
  ///         that somebody holds. Uploads can still be added then.
  survivor_list close() {
    survivor_list out;
    for (std::size_t p = 0; p < stages_.size(); ++p) {
      (stages_[p] == stage::silent ? out.dropped : out.survivors).push_back(plan().client(p));
    }
    if (!closed_) detail::check_survivors(plan(), out);
    closed_ = true;
    return out;
  }

  /// Takes a survivor's self mask away.
  ///
  /// Throws  error before close(), for a client that has not survived, and a second time.
  template <mask_generator Generator>
  void remove_self_mask(std::uint64_t survivor, const mask_key& key, Generator&& generator) {
    const std::size_t p = closed_number(survivor);
    if (stages_[p] == stage::silent) {
      refuse(survivor, " has dropped out: its self mask stays closed");
    }
    if (stages_[p] == stage::open) refuse(survivor, "'s self mask has been removed already");
    detail::check_key(key, "the self mask of client " + std::to_string(survivor), survivor);
    remove(p, p, key, detail::mask_sign::minus, generator);
    stages_[p] = stage::open;
  }

  /// Takes the mask away that a survivor added, or subtracted, for a client that dropped out.
  ///
  /// Throws  error before close(), for two survivors or two that dropped out, and a second time.
  template <mask_generator Generator>
  void remove_pairwise_mask(std::uint64_t dropped, std::uint64_t survivor, const mask_key& key,
                            Generator&& generator) {
    const std::size_t gone = closed_number(dropped), stays = closed_number(survivor);
    if (stages_[gone] != stage::silent) {
      refuse(dropped, " has survived: its pairwise masks stay closed");
    }
    if (stages_[stays] == stage::silent) {
      refuse(survivor, " has dropped out: it has added no mask");
    }
    const std::string whose =
        "the pair of clients " + std::to_string(survivor) + " and " + std::to_string(dropped);
    if (removed_.count({gone, stays}) != 0) {
      detail::fail("subfed: secure: the mask of " + whose + " has been removed already",
                   {.client = dropped});
    }
    detail::check_key(key, whose, dropped);
    decltype(removed_) more;  // made first: once the mask is taken away, nothing may fail
    more.insert({gone, stays});
    remove(stays, gone, key, gone > stays ? detail::mask_sign::minus : detail::mask_sign::plus,
           generator);
    removed_.merge(more);
  }

  /// The average of the survivors, to be finished, merged or written like any other.
  ///
  /// Throws  error before close(), while a mask is left, and for a sum that no updates within the bound
  ///         can have, as a wrong key would leave.
  /// Cost    A copy of the sums; 8 bytes more a parameter for tensors that are not released as a whole.
  template <averageable T>
  selective_average<T> open() const {
    const detail::float_mode mode;
    check_open();
    std::vector<std::size_t> survivors;
    for (std::size_t p = 0; p < stages_.size(); ++p) {
      if (stages_[p] != stage::silent) survivors.push_back(p);
    }
    const detail::opened_sums opened(plan(), sums_, std::move(survivors));
    opened.check();
    selective_average<T> mean(plan().net, plan().options.average);
    detail::internals::open(
        mean, [&](const model&, const average_options&, auto& state, auto& holders, bool& dense,
                  auto& seen, double& cohort_weight, average_report& report) {
          opened.write(state, holders, dense, seen);
          cohort_weight = opened.weight();
          report.clients = opened.clients();
        });
    return mean;
  }

 private:
  enum class stage : unsigned char { silent, masked, open };

  const detail::round_plan& plan() const noexcept { return detail::internals::plan(round_); }
  [[noreturn]] static void refuse(std::uint64_t client, const std::string& what) {
    detail::fail("subfed: secure: client " + std::to_string(client) + what, {.client = client});
  }
  std::size_t closed_number(std::uint64_t client) const {
    check_whole();
    if (!closed_) detail::fail("subfed: secure: the survivors are not fixed yet");
    return plan().number_of(client);
  }

  /// A mask of which a part is taken away cannot be told from one that is there.
  void check_whole() const {
    if (!torn_) return;
    detail::fail(
        "subfed: secure: the mask generator threw an exception while a mask was being removed, of "
        "which the sum has a part; start again with a new sum");
  }

  /// Takes away what participant p added for `other`.
  template <class Generator>
  void remove(std::size_t p, std::size_t other, const mask_key& key, detail::mask_sign sign,
              Generator& generator) {
    auto generate = [&](const mask_key& of, std::uint64_t first, std::span<std::uint64_t> out) {
      generator(of, first, out);
      torn_ = true;
    };
    detail::mask_stream mask(generate, key, sign);
    detail::upload_layout(plan(), p).for_each_shared(
        other, [&](std::uint64_t first, std::int64_t stride, std::size_t, std::int64_t,
                   std::int64_t length) {
          mask.apply(first, stride, sums_.data() + first, stride, length);
        });
    torn_ = false;
  }

  void check_open() const {
    check_whole();
    if (!closed_) detail::fail("subfed: secure: the survivors are not fixed yet");
    for (std::size_t p = 0; p < stages_.size(); ++p) {
      if (stages_[p] == stage::masked)
        refuse(plan().client(p), "'s self mask has not been removed");
      if (stages_[p] != stage::silent) continue;
      for (std::size_t stays = 0; stays < stages_.size(); ++stays) {
        if (stages_[stays] == stage::silent || removed_.count({p, stays}) != 0) continue;
        detail::fail("subfed: secure: the mask of the pair of clients " +
                         std::to_string(plan().client(stays)) + " and " +
                         std::to_string(plan().client(p)) + " has not been removed",
                     {.client = plan().client(p)});
      }
    }
  }

  secure_round round_;
  std::vector<std::uint64_t> sums_;
  std::vector<stage> stages_;
  std::set<std::pair<std::size_t, std::size_t>> removed_;  // dropped out, survivor
  bool closed_ = false;
  bool torn_ = false;  // a mask is taken away in part
};

}  // namespace subfed::inline v0
