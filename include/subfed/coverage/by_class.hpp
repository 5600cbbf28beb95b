// SPDX-License-Identifier: MIT
/// Coverage of each class of clients (of one capacity, say) and of all clients together.
#pragma once

#include <subfed/coverage/nodes.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// A coverage for each class of clients, and one for all clients.
///
/// Cost  Twice that of coverage, and O(nodes) per class at the end of a round.
class coverage_by_class {
 public:
  /// Throws  error when times < 1.
  coverage_by_class(model net, std::size_t classes, std::int64_t times = 1)
      : all_(std::move(net), times), classes_(classes, all_) {}

  /// Counts a client of the current round, of a class numbered from 0.
  ///
  /// Throws  error when there is no such class or the submodel is of another model.
  void record(const submodel& sub, std::size_t client_class) {
    check(client_class);
    all_.record(sub);
    classes_[client_class].record(sub);
  }
  /// Throws  as coverage::end_round.
  void end_round() {
    all_.prepare_end();
    for (coverage& each : classes_) each.prepare_end();
    all_.end_round();
    for (coverage& each : classes_) each.end_round();
  }

  /// As coverage::append, class by class.
  ///
  /// Throws  also error for another number of classes.
  void append(const coverage_by_class& later) {
    check_like(later);
    coverage all = all_;  // memory may run out in between
    std::vector<coverage> classes = classes_;
    all.append(later.all_);
    for (std::size_t c = 0; c < classes.size(); ++c) classes[c].append(later.classes_[c]);
    all_ = std::move(all);
    classes_ = std::move(classes);
  }
  /// As coverage::merge, class by class.
  ///
  /// Throws  also error for another number of classes.
  void merge(const coverage_by_class& shard) {
    check_like(shard);
    all_.merge(shard.all_);
    for (std::size_t c = 0; c < classes_.size(); ++c) classes_[c].merge(shard.classes_[c]);
  }

  std::size_t classes() const noexcept { return classes_.size(); }
  const coverage& in_all() const noexcept { return all_; }
  /// Throws  error when there is no such class.
  const coverage& of_class(std::size_t client_class) const {
    check(client_class);
    return classes_[client_class];
  }

 private:
  friend struct detail::coverage_access;

  void check(std::size_t client_class) const {
    if (client_class < classes_.size()) return;
    detail::fail("subfed: coverage: class number " + std::to_string(client_class) +
                 " is asked for, but there are " + std::to_string(classes_.size()) + " classes");
  }
  void check_like(const coverage_by_class& other) const {
    if (other.classes_.size() == classes_.size()) return;
    detail::fail("subfed: coverage: the coverage to join has " +
                 std::to_string(other.classes_.size()) + " classes, expected " +
                 std::to_string(classes_.size()));
  }

  coverage all_;
  std::vector<coverage> classes_;
};

}  // namespace subfed::inline v0
