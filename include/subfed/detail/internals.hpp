// SPDX-License-Identifier: MIT
/// What parts of the library do with one another's classes, but their users do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace subfed::inline v0::detail {

/// A friend of the classes concerned.
struct internals {
  /// Of a submodel, for each tensor; empty without a plan.
  template <class Submodel>
  static auto plans(const Submodel& sub) noexcept {
    return sub.plans();
  }
  /// Whether they are the extents of the client's tensor; without a list of them.
  template <class Submodel, class Tensor, class Extents>
  static bool has_shape(const Submodel& sub, Tensor tensor, const Extents& extents) {
    return sub.has_shape(tensor, extents);
  }
  /// Elements first + i stride of tensor number t are held from now on, i = 0 .. length-1.
  template <class HeldElements>
  static void add(HeldElements& held, std::size_t t, std::int64_t first, std::int64_t stride,
                  std::int64_t length) {
    held.add(t, first, stride, length);
  }
  /// The same for all that a submodel holds of tensor number t.
  template <class HeldElements, class Submodel>
  static void add(HeldElements& held, const Submodel& sub, std::size_t t) {
    held.add(sub, t);
  }
  /// f(model, options, state of each tensor, holders, whether weights are dense, rounds and clients
  /// seen, weight of the cohort, report) of a streaming average.
  ///
  /// Throws  error where an addition was cut short.
  template <class Average, class F>
  static decltype(auto) open(Average& mean, F&& f) {
    mean.check_whole();
    return f(mean.model_, mean.options_, mean.state_, mean.holders_, mean.dense_, mean.seen_,
             mean.cohort_weight_, mean.report_);
  }
  /// Of a streaming average, also where an addition was cut short.
  template <class Average>
  static const auto& model_of(const Average& mean) noexcept {
    return mean.model_;
  }
  template <class Average>
  static const auto& options_of(const Average& mean) noexcept {
    return mean.options_;
  }
  template <class Average>
  static bool is_torn(const Average& mean) noexcept {
    return mean.torn_;
  }
  /// Of a round of secure aggregation: what follows from its participants.
  template <class Round>
  static const auto& plan(const Round& round) noexcept {
    return *round.plan_;
  }
  /// Copies packed arrays to the device, in the order of the stream.
  template <class Workspace, class Arrays, class Stream>
  static auto upload(Workspace& memory, const Arrays& from, Stream stream) {
    return memory.upload(from, stream);
  }
  /// A prepared launch.
  template <class Launch, class... Arguments>
  static Launch make(Arguments&&... arguments) {
    return Launch(std::forward<Arguments>(arguments)...);
  }
};

}  // namespace subfed::inline v0::detail
