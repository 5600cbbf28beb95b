// SPDX-License-Identifier: MIT
/// Whether all ranks mean the same call: each says what it is about to do, each hears all, and so all
/// of them refuse alike, with the same sentence.
#pragma once

#include <subfed/adapt/detail/mpi_calls.hpp>
#include <subfed/average/options.hpp>
#include <subfed/config.hpp>
#include <subfed/messages/detail/fields.hpp>
#include <subfed/messages/fingerprint.hpp>
#include <subfed/messages/partial_average.hpp>
#include <subfed/model.hpp>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace subfed::inline v0::mpi::detail {

using subfed::detail::field_reader;
using subfed::detail::field_writer;

enum class call : std::uint64_t {
  all_reduce,
  reduce,
  reduce_scatter,
  finish,
  broadcast,
  sum,
  merge,
};

inline const char* name_of(std::uint64_t number) noexcept {
  constexpr const char* names[] = {"all_reduce", "reduce", "reduce_scatter", "finish",
                                   "broadcast",  "sum",    "merge"};
  return number < 7 ? names[number] : "another function";
}

/// What a rank is about to do.
struct intention {
  call what;
  int root = 0;
  std::uint64_t model = 0;
  std::uint64_t detail = 0;  ///< what else must be equal
  const char* detail_text = "has other values";
  bool is_typed = false;
  average_options options = {};
  std::uint64_t complaint = 0;  ///< not 0: what is wrong on this rank, for `complain`
};

inline std::string on_rank(int rank) { return "rank " + std::to_string(rank); }

/// How two lists of options differ: "step 0.5", "step 1".
inline void refuse_options(int rank, std::span<const std::byte> theirs,
                           std::span<const std::byte> first) {
  constexpr const char* bytes[] = {"divide_by", "content",        "on_non_finite",
                                   "integers",  "on_late",        "on_repeated",
                                   "",          "on_out_of_bound"};
  constexpr const char* set[] = {"round", "late_weight", "sums"};
  constexpr const char* words[] = {"step", "round", "sums.bound", "sums.clients",
                                   "sums.total_weight"};
  const auto refuse = [&](const char* name, const std::string& other, const std::string& own) {
    fail("subfed: mpi: " + on_rank(rank) + " has the option " + name + " = " + other +
         ", rank 0 has " + own);
  };
  field_reader other(theirs, "mpi"), own(first, "mpi");
  for (const char* name : bytes) {
    const std::uint8_t a = other.u8(), b = own.u8();
    for (unsigned i = 0; *name == '\0' && i < 3; ++i) {
      if (((a ^ b) >> i & 1) == 0) continue;
      refuse(set[i], (a >> i & 1) != 0 ? "set" : "not set", (b >> i & 1) != 0 ? "set" : "not set");
    }
    if (a != b) refuse(name, std::to_string(a), std::to_string(b));
  }
  for (const char* name : words) {
    const std::uint64_t a = other.u64(), b = own.u64();
    if (a == b) continue;
    const std::string_view of = name;
    const bool whole = of == "round" || of == "sums.clients";
    const auto text = [&](std::uint64_t x) {
      return whole ? std::to_string(x) : subfed::detail::text(std::bit_cast<double>(x));
    };
    refuse(name, text(a), text(b));
  }
}

/// Throws on every rank, with the same text, unless all of them are about to do the same.
/// complain(number): the text of a complaint.
///
/// Cost  One MPI_Allgather of 96 bytes.
template <class Complain>
void agree(const intention& own, const communicator& ranks, Complain&& complain) {
  constexpr std::size_t words = 6;
  field_writer out;
  out.u64(static_cast<std::uint64_t>(own.what));
  out.u64(static_cast<std::uint64_t>(own.root));
  out.u64(own.model);
  out.u64(own.is_typed ? 1 : 0);
  out.u64(own.detail);
  out.u64(own.complaint);
  subfed::detail::append_options(out, own.options);
  const std::size_t size = out.size();
  const std::vector<std::byte> all = gather_equal(out.all(), ranks);
  const std::span<const std::byte> bytes(all);
  field_reader first(bytes.subspan(0, size), "mpi");
  std::uint64_t expected[words];
  for (std::uint64_t& x : expected) x = first.u64();
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto theirs = bytes.subspan(static_cast<std::size_t>(rank) * size, size);
    field_reader in(theirs, "mpi");
    std::uint64_t found[words];
    for (std::uint64_t& x : found) x = in.u64();
    const auto refuse = [&](const std::string& what) {
      fail("subfed: mpi: " + on_rank(rank) + " " + what);
    };
    if (found[0] != expected[0]) {
      refuse(std::string("calls ") + name_of(found[0]) + ", rank 0 calls " + name_of(expected[0]));
    }
    if (found[1] != expected[1]) {
      refuse("has the root " + std::to_string(static_cast<std::int64_t>(found[1])) +
             ", rank 0 has " + std::to_string(static_cast<std::int64_t>(expected[1])));
    }
    if (found[2] != expected[2]) {
      refuse("has another model, with the fingerprint " + std::to_string(found[2]) +
             ", rank 0 has " + std::to_string(expected[2]));
    }
    if (found[3] != expected[3]) {
      refuse(found[3] == 0 ? "has an average of mixed types, rank 0 one of one type"
                           : "has an average of one type, rank 0 one of mixed types");
    }
    refuse_options(rank, theirs.subspan(8 * words), bytes.subspan(8 * words, size - 8 * words));
    if (found[5] != 0) refuse(complain(found[5]));
    if (found[4] != expected[4]) refuse(std::string(own.detail_text) + " than rank 0");
  }
}

/// Does what may take much memory on this rank, before the ranks go on together.
///
/// Throws  std::bad_alloc where memory runs out, error that names this rank on all others; what f throws
///         otherwise is to be the same on all ranks.
/// Cost    One MPI_Allreduce of 8 bytes.
template <class F>
void take_memory(const communicator& ranks, F&& f) {
  std::int64_t without = 0;  // number of a rank without memory, from 1 on
#if SUBFED_EXCEPTIONS
  try {
    f();
  } catch (const std::bad_alloc&) {
    without = ranks.rank() + 1;
  }
#else
  f();
#endif
  const bool is_short = without != 0;
  sum_on_all(std::span<std::int64_t>(&without, 1), ranks, MPI_MAX);
  if (without == 0) return;
#if SUBFED_EXCEPTIONS
  if (is_short) throw std::bad_alloc();
#else
  static_cast<void>(is_short);
#endif
  fail("subfed: mpi: memory ran out on " + on_rank(static_cast<int>(without - 1)));
}

inline std::string root_text(int root, const communicator& ranks) {
  return "has the root " + std::to_string(root) + ", but there are " +
         std::to_string(ranks.size()) + " ranks";
}

}  // namespace subfed::inline v0::mpi::detail
