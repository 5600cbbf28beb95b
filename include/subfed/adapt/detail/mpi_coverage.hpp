// SPDX-License-Identifier: MIT
/// The clients of one round, recorded on several ranks.
#pragma once

#include <subfed/adapt/detail/mpi_agreement.hpp>
#include <subfed/adapt/detail/mpi_calls.hpp>
#include <subfed/coverage/by_class.hpp>
#include <subfed/coverage/nodes.hpp>
#include <subfed/coverage/text.hpp>
#include <subfed/messages/detail/fields.hpp>
#include <subfed/messages/fingerprint.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace subfed::inline v0::mpi::detail {

/// Of coverage or coverage_by_class.
template <class Coverage>
void merge_round(Coverage& seen, const communicator& ranks) {
  using access = subfed::detail::coverage_access;
  coverage& all = access::all_of(seen);
  std::vector<std::int64_t> numbers;
  access::open_round(seen, [&](std::span<std::int64_t> of) {
    numbers.insert(numbers.end(), of.begin(), of.end());
  });
  subfed::detail::byte_hash like;
  like.word(numbers.size());
  like.word(static_cast<std::uint64_t>(all.rounds()));
  like.word(static_cast<std::uint64_t>(all.clients()));
  like.word(static_cast<std::uint64_t>(all.times()));
  agree({.what = call::merge,
         .model = fingerprint(all.parent()),
         .detail = like.value(),
         .detail_text = "has counted other rounds, times or classes"},
        ranks, [](std::uint64_t) { return std::string(); });
  sum_on_all(std::span<std::int64_t>(numbers), ranks);
  std::size_t clients = 0;  // their number stands after those of the first coverage's nodes
  for (const auto& group : all.parent().groups()) {
    clients += static_cast<std::size_t>(group.extent) + 1;
  }
  access::check_open(all, numbers[clients]);
  auto next = numbers.begin();
  access::open_round(seen, [&](std::span<std::int64_t> of) {
    const auto end = next + static_cast<std::ptrdiff_t>(of.size());
    std::copy(next, end, of.begin());
    next = end;
  });
}

}  // namespace subfed::inline v0::mpi::detail
