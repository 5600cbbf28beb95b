// SPDX-License-Identifier: MIT
/// What a client sends in a round of secure aggregation: its update in fixed point, under masks.
#pragma once

#include <subfed/average/detail/checks.hpp>
#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/error.hpp>
#include <subfed/index_set.hpp>
#include <subfed/scalar.hpp>
#include <subfed/secure/detail/mask_stream.hpp>
#include <subfed/secure/detail/round_plan.hpp>
#include <subfed/secure/detail/upload_layout.hpp>
#include <subfed/secure/mask_key.hpp>
#include <subfed/secure/secure_round.hpp>
#include <subfed/selection.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0 {

/// The key on which a client has agreed with another.
struct pairwise_key {
  std::uint64_t client = 0;  ///< the other one
  mask_key key;
};

/// A client's own for one round.
struct mask_secrets {
  mask_key self;                         ///< drawn at random by the client
  std::vector<pairwise_key> pairs = {};  ///< one for every other participant, in any order
};

/// The nodes of a private group for which a client has data.
struct row_labels {
  group_id group;
  index_set nodes;
};

namespace detail {

/// The keys in the order of the participants; the client's own place has its self mask's.
///
/// Throws  error for a key that is zero, missing, there twice, or of one who does not take part; and for
///         two equal ones.
inline std::vector<const mask_key*> keys_in_order(const round_plan& plan, std::size_t p,
                                                  const mask_secrets& secrets) {
  std::vector<const mask_key*> out(plan.participants.size(), nullptr);
  check_key(secrets.self, "the self mask of client " + std::to_string(plan.client(p)),
            plan.client(p));
  out[p] = &secrets.self;
  for (const pairwise_key& pair : secrets.pairs) {
    const std::size_t other = plan.number_of(pair.client);
    const std::string whose = "the pair of clients " + std::to_string(plan.client(p)) + " and " +
                              std::to_string(pair.client);
    check_key(pair.key, whose, pair.client);
    if (out[other] != nullptr) {
      fail("subfed: secure: there is a second key of " + whose, {.client = pair.client});
    }
    out[other] = &pair.key;
  }
  std::vector<const mask_key*> sorted = out;
  for (std::size_t other = 0; other < out.size(); ++other) {
    if (out[other] != nullptr) continue;
    fail("subfed: secure: client " + std::to_string(plan.client(p)) + " has no key for client " +
             std::to_string(plan.client(other)),
         {.client = plan.client(other)});
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const mask_key* a, const mask_key* b) { return a->bytes < b->bytes; });
  const auto same = [](const mask_key* a, const mask_key* b) { return *a == *b; };
  if (std::adjacent_find(sorted.begin(), sorted.end(), same) != sorted.end()) {
    fail("subfed: secure: client " + std::to_string(plan.client(p)) + " has one key twice",
         {.client = plan.client(p)});
  }
  return out;
}

/// The positions of a selection in a row-major copy of the local tensor.
inline selection local_selection(const selection& chosen) {
  std::vector<selected_dimension> out;
  for (int r = 0; r < chosen.rank(); ++r) {
    const selected_dimension& d = chosen.dimension(r);
    out.emplace_back(d.local_extent, d.local_extent, std::vector<run>());
    std::vector<run> runs = d.runs;
    std::sort(runs.begin(), runs.end(),
              [](const run& a, const run& b) { return a.position < b.position; });
    for (const run& x : runs) append_run(out.back().runs, run{x.position, x.position, x.length});
  }
  return proven_selection::of(std::move(out), chosen.name());
}

/// Adds the terms of an update to its words.
///
/// Throws  error for a tensor of integers, and for a value beyond the bound unless it is to be clipped.
template <class T>
void add_update_terms(const round_plan& plan, const upload_layout& layout, std::size_t p,
                      const submodel& held, const tensor_views<const T>& tensors,
                      std::vector<std::uint64_t>& words) {
  const term_rule rule(*plan.options.average.sums, plan.participants[p].weight);
  std::int64_t beyond = 0;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (!plan.sends(p, t)) continue;
    with_type(tensors[t], [&]<class E>(const tensor_view<const E>& tensor) {
      if constexpr (averageable<E>) {
        const loop_nest walk(local_selection(held[tensor_id(t)]),
                             std::span<const std::int64_t>(held.extents(tensor_id(t))), tensor);
        // Terms are added as signed numbers, masks as unsigned ones: the same bits.
        auto* const to = reinterpret_cast<std::int64_t*>(words.data() + layout.begin(t));
        walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
          beyond += add_terms(tensor.data_handle() + l, walk.local_stride(), rule, to + g,
                              walk.global_stride(), length);
        });
      } else {
        const std::string& name = plan.net.tensors()[t].name;
        fail("subfed: secure: tensor '" + name +
                 "' has integers, which are not summed behind masks; "
                 "mark it role::counter or role::local",
             {.client = plan.client(p), .tensor = name});
      }
    });
  }
  if (beyond == 0) return;
  update_outcome outcome;
  admits("secure", held, find_beyond(held, tensors, plan.options.average), plan.options.average,
         outcome);
}

}  // namespace detail

/// Words of a client's upload; 8 bytes each.
///
/// Throws  error for a client that does not take part.
inline std::size_t upload_words(const secure_round& round, std::uint64_t client) {
  const detail::round_plan& plan = detail::internals::plan(round);
  return detail::upload_layout(plan, plan.number_of(client)).sent_words();
}

/// A client's upload: the terms of its update, as in fixed-point sums, plus its self mask, plus a mask for
/// every other participant over exactly the elements that both hold, modulo 2^64:
///
///   y_u = w_u x_u / q + G(b_u) + sum of G(k_uv) over v > u - sum of G(k_uv) over v < u   mod 2^64
///
/// Each element has its own place in the streams, wherever a client has it, so that pairwise masks
/// cancel element by element although all clients hold other parts. What is not released is not in
/// the upload. With private rows, one weight for each row of the submodel follows the elements.
///
///   const auto words = masked_update<float>(round, my_number, tensors, secrets, chacha20);
///
/// Shapes  tensor t is the participant's sub.extents(tensor_id(t)); any strides, floating-point types.
/// Returns uniformly random words to whoever lacks the keys. upload_words() says how many.
/// Throws  error for a client that does not take part; keys that are zero, missing, there twice, equal or
///         of others; a wrong number or shape of tensors; a tensor of integers; a value beyond the
///         bound, unless it is to be clipped; labels of a group that is not private, or of none.
/// Numerics  The terms are those of selective_average with the same options, to the bit.
/// Cost    Generates 8 bytes a shared element and participant, and reads and writes the words of a pair
///         once.
template <class T, mask_generator Generator>
std::vector<std::uint64_t> masked_update(const secure_round& round, std::uint64_t client,
                                         const tensor_views<const T>& tensors,
                                         const mask_secrets& secrets, Generator&& generator,
                                         std::span<const row_labels> labels = {}) {
  const detail::float_mode mode;
  const detail::round_plan& plan = detail::internals::plan(round);
  const std::size_t p = plan.number_of(client);
  const secure_participant& own = plan.participants[p];
  detail::check_update<T>("secure", plan.net, own.sub, tensors, own.weight);
  const std::vector<const mask_key*> keys = detail::keys_in_order(plan, p, secrets);
  const detail::upload_layout layout(plan, p);
  submodel held = own.sub;
  std::vector<const index_set*> rows(plan.options.private_rows.size(), nullptr);
  for (const row_labels& own_rows : labels) {
    const std::string& name = plan.net[own_rows.group].name;
    const auto at = std::find_if(plan.options.private_rows.begin(), plan.options.private_rows.end(),
                                 [&](group_id g) { return g.number() == own_rows.group.number(); });
    const auto i = static_cast<std::size_t>(at - plan.options.private_rows.begin());
    if (i == rows.size() || rows[i] != nullptr) {
      detail::fail("subfed: secure: labels are given " +
                       std::string(i == rows.size() ? "" : "twice ") + "for group '" + name + "'" +
                       (i == rows.size() ? ", whose rows are not private" : ""),
                   {.client = client, .group = name});
    }
    rows[i] = &own_rows.nodes;
    held = held.restricted(own_rows.group, own_rows.nodes);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != nullptr) continue;
    const std::string& name = plan.net[plan.options.private_rows[i]].name;
    detail::fail("subfed: secure: client " + std::to_string(client) +
                     " gives no labels for group '" + name + "', whose rows are private",
                 {.client = client, .group = name});
  }

  std::vector<std::uint64_t> words(layout.words(), 0);
  detail::add_update_terms(plan, layout, p, held, tensors, words);
  if (plan.sends_rows(p)) {
    const double quantum = plan.options.average.sums->weight_quantum();
    const auto weight =
        static_cast<std::uint64_t>(detail::scaled(own.weight, -detail::exponent_of(quantum)));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      std::size_t row = layout.rows(i);
      for (const run& r : own.sub.runs(plan.options.private_rows[i])) {
        for (std::int64_t n = 0; n < r.length; ++n) {
          if (rows[i]->contains(r.first + n)) words[row] = weight;
          ++row;
        }
      }
    }
  }
  for (std::size_t other = 0; other < keys.size(); ++other) {
    // The later of two clients takes away what the earlier adds; a self mask is added.
    const bool adds = other >= p;
    detail::mask_stream mask(generator, *keys[other],
                             adds ? detail::mask_sign::plus : detail::mask_sign::minus);
    layout.for_each_shared(other, [&](std::uint64_t first, std::int64_t stride, std::size_t word,
                                      std::int64_t word_stride, std::int64_t length) {
      mask.apply(first, stride, words.data() + word, word_stride, length);
    });
  }
  if (layout.is_whole()) return words;
  const std::vector<bool> sent = layout.sent();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (sent[i]) words[kept++] = words[i];
  }
  words.resize(kept);
  return words;
}

}  // namespace subfed::inline v0
