// SPDX-License-Identifier: MIT
/// Submodels as bytes, for sets that no scheme gives: chosen by importance, by data, or by hand.
#pragma once

#include <subfed/error.hpp>
#include <subfed/index_set.hpp>
#include <subfed/model.hpp>
#include <subfed/philox.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

inline constexpr std::array<unsigned char, 4> sets_magic = {'S', 'F', 'S', '1'};

/// Of the groups' names, in order, so that sets of another model are not taken for ours.
inline std::uint64_t group_names_hash(const model& net) {
  std::string all;
  for (const auto& group : net.groups())
    all += std::to_string(group.name.size()) + ":" + group.name;
  return name_hash(all);
}

/// Seven bits a byte, the lowest first; all bytes but the last have the highest bit.
inline void append_varint(std::vector<std::byte>& out, std::uint64_t n) {
  for (; n >= 128; n >>= 7) out.push_back(static_cast<std::byte>((n & 127) | 128));
  out.push_back(static_cast<std::byte>(n));
}

/// Bytes of sets, each read once.
class sets_reader {
 public:
  explicit sets_reader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  [[noreturn]] void refuse(const std::string& what) const {
    fail("subfed: read_sets: " + what + ", at byte " + std::to_string(at_));
  }
  std::size_t left() const noexcept { return bytes_.size() - at_; }
  unsigned byte() {
    if (left() == 0) refuse("the bytes end too early");
    return std::to_integer<unsigned>(bytes_[at_++]);
  }
  std::uint64_t varint() {
    std::uint64_t n = 0;
    for (int shift = 0;; shift += 7) {
      const std::uint64_t next = byte();
      const std::uint64_t digits = next & 127;
      if (shift == 63 && digits > 1) refuse("a number over 2^64 - 1");
      n |= digits << shift;
      if (next < 128) {
        if (next == 0 && shift != 0) refuse("a number with leading zeros");
        return n;
      }
      if (shift == 63) refuse("a number of more than ten bytes");
    }
  }
  std::int64_t size() {
    const std::uint64_t n = varint();
    if (!std::in_range<std::int64_t>(n)) refuse("a number over 2^63 - 1");
    return static_cast<std::int64_t>(n);
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

}  // namespace detail

/// The sets of a submodel as bytes: what a client holds, where seed, round, client and scheme do not say
/// it. The draw_key does not travel with them, nor does the model.
///
///   "SFS1", a hash of the groups' names (8 bytes, the lowest first), the number of groups; for each
///   group its extent, the number of runs, and for each run how far its first node is after the end of
///   the run before (or in front: 2 d or -2 d - 1), and its length less one. Numbers have seven bits a
///   byte, the lowest first, with the highest bit set in all bytes but the last.
///
/// Post    read_sets of the bytes has the same nodes; equal submodels have equal bytes.
/// Throws  error for a submodel that is restricted: restrict it where it has been read.
/// Cost    Two bytes a run and more; a group of which a prefix is held takes about six.
inline std::vector<std::byte> write_sets(const submodel& sub) {
  std::vector<std::byte> out;
  for (const unsigned char c : detail::sets_magic) out.push_back(static_cast<std::byte>(c));
  const model& net = sub.parent();
  const std::uint64_t names = detail::group_names_hash(net);
  for (int i = 0; i < 8; ++i) out.push_back(static_cast<std::byte>(names >> (8 * i) & 255));
  detail::append_varint(out, net.groups().size());
  for (std::size_t g = 0; g < net.groups().size(); ++g) {
    const index_set& nodes = sub[group_id(g)];
    const std::span<const run> taking_part = sub.runs(group_id(g));
    if (!std::equal(taking_part.begin(), taking_part.end(), nodes.runs().begin(),
                    nodes.runs().end())) {
      detail::fail("subfed: write_sets: group '" + net.groups()[g].name + "' is restricted",
                   {.group = net.groups()[g].name});
    }
    detail::append_varint(out, static_cast<std::uint64_t>(nodes.extent()));
    detail::append_varint(out, nodes.runs().size());
    std::int64_t end = 0;
    for (const run& r : nodes.runs()) {
      const std::int64_t ahead = r.first - end;
      detail::append_varint(out, ahead < 0 ? 2 * static_cast<std::uint64_t>(-(ahead + 1)) + 1
                                           : 2 * static_cast<std::uint64_t>(ahead));
      detail::append_varint(out, static_cast<std::uint64_t>(r.length - 1));
      end = r.first + r.length;
    }
  }
  return out;
}

namespace detail {

/// Sets at the front of bytes. used: how many bytes they take.
///
/// Throws  error as read_sets does, except for what comes after them.
inline submodel read_sets_in_front(const model& net, std::span<const std::byte> bytes,
                                   const draw_key& origin, std::size_t& used) {
  sets_reader in(bytes);
  for (const unsigned char c : sets_magic) {
    if (in.byte() != c) in.refuse("this is not \"SFS1\"");
  }
  std::uint64_t names = 0;
  for (int i = 0; i < 8; ++i) names |= std::uint64_t{in.byte()} << (8 * i);
  if (names != group_names_hash(net)) in.refuse("these are groups of another model");
  if (in.varint() != net.groups().size()) in.refuse("the number of groups is another");
  std::vector<index_set> sets;
  sets.reserve(net.groups().size());
  for (const auto& group : net.groups()) {
    const std::int64_t extent = in.size();
    if (extent != group.extent) {
      in.refuse("group '" + group.name + "' has " + std::to_string(extent) + " nodes, expected " +
                std::to_string(group.extent));
    }
    const std::uint64_t count = in.varint();
    if (count > in.left() / 2) in.refuse("there are fewer bytes than runs");
    std::vector<run> runs;
    runs.reserve(static_cast<std::size_t>(count));
    std::int64_t end = 0;
    for (std::uint64_t r = 0; r < count; ++r) {
      const std::uint64_t ahead = in.varint();
      const auto distance = static_cast<std::int64_t>(ahead >> 1);
      if (r != 0 && ahead == 0) in.refuse("a run continues the one before it");
      if ((ahead & 1) == 0 ? distance >= extent - end : distance >= end) {
        in.refuse("a run of group '" + group.name + "' begins outside of it");
      }
      const std::int64_t first = (ahead & 1) == 0 ? end + distance : end - distance - 1;
      const std::int64_t more = in.size();
      if (more >= extent - first)
        in.refuse("a run of group '" + group.name + "' ends outside of it");
      runs.push_back({0, first, more + 1});
      end = first + more + 1;
    }
    sets.push_back(index_set::from_runs(extent, runs));
  }
  used = bytes.size() - in.left();
  return {net, std::move(sets), origin};
}

}  // namespace detail

/// The submodel of a model whose sets were written as bytes, which may come from anywhere.
///
/// Throws  error for bytes that are not what write_sets writes for a submodel of this model.
/// Cost    Memory in proportion to the bytes.
inline submodel read_sets(const model& net, std::span<const std::byte> bytes,
                          draw_key origin = {}) {
  std::size_t used = 0;
  submodel out = detail::read_sets_in_front(net, bytes, origin, used);
  if (used != bytes.size()) {
    detail::fail("subfed: read_sets: there are bytes after the end, at byte " +
                 std::to_string(used));
  }
  return out;
}

}  // namespace subfed::inline v0
