// SPDX-License-Identifier: MIT
/// Where one participant's elements are: in its row-major tensors, in the streams, in its upload.
#pragma once

#include <subfed/detail/loop_nest.hpp>
#include <subfed/index_set.hpp>
#include <subfed/secure/detail/round_plan.hpp>
#include <subfed/selection.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace subfed::inline v0::detail {

/// The words of one participant: its tensors, row-major, one after the other; then one for each private
/// row that it holds. Words that are not released are left out of the upload.
class upload_layout {
 public:
  upload_layout(const round_plan& plan, std::size_t p) : plan_(plan), p_(p) {
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      begin_.push_back(words_);
      if (!plan.sends(p, t)) continue;
      std::size_t elements = 1;
      for (const std::int64_t e : sub().extents(tensor_id(t))) {
        elements *= static_cast<std::size_t>(e);
      }
      words_ += elements;
    }
    if (!plan.sends_rows(p)) return;
    for (const group_id group : plan.options.private_rows) {
      rows_.push_back(words_);
      for (const run& r : sub().runs(group)) words_ += static_cast<std::size_t>(r.length);
    }
  }

  const submodel& sub() const noexcept { return plan_.participants[p_].sub; }
  /// Words, those that are not released included.
  std::size_t words() const noexcept { return words_; }
  /// The first word of a tensor.
  std::size_t begin(std::size_t t) const noexcept { return begin_[t]; }
  /// The first word of a private group's rows. Pre: the participant sends rows.
  std::size_t rows(std::size_t group) const noexcept { return rows_[group]; }

  /// Whether every word is sent.
  bool is_whole() const {
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      if (plan_.sends(p_, t) && plan_.tensors[t].withheld != 0) return false;
    }
    for (std::size_t g = 0; g < plan_.net.groups().size(); ++g) {
      std::int64_t nodes = 0;
      for (const run& r : sub().runs(group_id(g))) nodes += r.length;
      if (nodes != sub().extent(group_id(g))) return false;
    }
    return true;
  }
  /// Words of the upload.
  std::size_t sent_words() const {
    if (is_whole()) return words_;
    const std::vector<bool> which = sent();
    return static_cast<std::size_t>(std::count(which.begin(), which.end(), true));
  }

  /// f(word of the stream, stride, word of the participant, stride, length) for all elements that the
  /// participant shares with `other`, a participant or itself. No memory is taken after the first call of f.
  template <class F>
  void for_each_shared(std::size_t other, F&& f) const {
    submodel common = sub();
    if (other != p_) {
      const submodel& theirs = plan_.participants[other].sub;
      for (std::size_t g = 0; g < plan_.net.groups().size(); ++g) {
        common = common.restricted(group_id(g), index_set::from_runs(plan_.net.groups()[g].extent,
                                                                     theirs.runs(group_id(g))));
      }
    }
    std::vector<std::pair<std::size_t, loop_nest>> walks;  // of tensors
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      if (!plan_.sends(p_, t) || !plan_.sends(other, t)) continue;
      walks.emplace_back(t, loop_nest(common[tensor_id(t)]));
    }
    for (const auto& of_tensor : walks) {
      const std::size_t t = of_tensor.first;
      const loop_nest& walk = of_tensor.second;
      walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
        f(plan_.tensors[t].first + static_cast<std::uint64_t>(g), walk.global_stride(),
          begin_[t] + static_cast<std::size_t>(l), walk.local_stride(), length);
      });
    }
    // The nodes are the same in a class, and so is their number.
    if (!plan_.sends_rows(p_) || plan_.class_of[p_] != plan_.class_of[other]) return;
    for (std::size_t i = 0; i < plan_.options.private_rows.size(); ++i) {
      std::size_t row = rows_[i];
      for (const run& r : sub().runs(plan_.options.private_rows[i])) {
        f(plan_.first_row(p_, i) + static_cast<std::uint64_t>(r.first), std::int64_t{1}, row,
          std::int64_t{1}, r.length);
        row += static_cast<std::size_t>(r.length);
      }
    }
  }

  /// For each word whether it is sent.
  std::vector<bool> sent() const {
    std::vector<bool> out(words_, false);
    for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
      if (!plan_.sends(p_, t)) continue;
      const std::span<const std::uint64_t> released = plan_.released.words(tensor_id(t));
      const loop_nest walk(sub()[tensor_id(t)]);
      walk.for_each([&](std::int64_t g, std::int64_t l, std::int64_t length) {
        for (std::int64_t i = 0; i < length; ++i) {
          const auto at = static_cast<std::size_t>(g + i * walk.global_stride());
          if ((released[at / 64] >> (at % 64) & 1) == 0) continue;
          out[begin_[t] + static_cast<std::size_t>(l + i * walk.local_stride())] = true;
        }
      });
    }
    if (!rows_.empty()) {
      std::fill(out.begin() + static_cast<std::ptrdiff_t>(rows_[0]), out.end(), true);
    }
    return out;
  }

 private:
  const round_plan& plan_;
  std::size_t p_;
  std::size_t words_ = 0;
  std::vector<std::size_t> begin_;
  std::vector<std::size_t> rows_;
};

}  // namespace subfed::inline v0::detail
