// SPDX-License-Identifier: MIT
/// One rank's part of the elements of a model, and its average.
#pragma once

#include <subfed/adapt/detail/mpi_agreement.hpp>
#include <subfed/adapt/detail/mpi_calls.hpp>
#include <subfed/adapt/detail/mpi_merge.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/config.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/messages/fingerprint.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::mpi {

/// Elements of one tensor, by their row-major numbers.
struct element_range {
  std::size_t first = 0;
  std::size_t count = 0;

  friend bool operator==(const element_range&, const element_range&) = default;
};

namespace detail {

/// The elements of all tensors in a row, without those that stay with their clients, in parts that
/// differ by one element at most.
class ranges_of_ranks {
 public:
  ranges_of_ranks(const model& net, int ranks) : ranks_(static_cast<std::size_t>(ranks)) {
    begins_.push_back(0);
    for (const auto& info : net.tensors()) {
      begins_.push_back(
          begins_.back() +
          (info.is_local() ? 0 : subfed::detail::memory_size<std::int64_t>(info.extents)));
    }
  }
  element_range of(int rank, std::size_t tensor) const noexcept {
    const auto number = static_cast<std::size_t>(rank);
    const std::size_t begin = begins_[tensor], end = begins_[tensor + 1];
    const std::size_t first = std::clamp(begin_of(number), begin, end);
    return {first - begin, std::clamp(begin_of(number + 1), begin, end) - first};
  }
  std::size_t tensors() const noexcept { return begins_.size() - 1; }

 private:
  std::size_t begin_of(std::size_t rank) const noexcept {
    const std::size_t each = begins_.back() / ranks_, more = begins_.back() % ranks_;
    return rank * each + (std::min)(rank, more);
  }

  std::size_t ranks_;
  std::vector<std::size_t> begins_;
};

}  // namespace detail

/// What reduce_scatter() gives a rank.
template <class T>
struct share {
  model whole;
  /// Elements of each tensor, in the model's order; none of a tensor that stays with its clients.
  std::vector<element_range> ranges;
  /// Of these elements alone: its model has for each tensor one of the same name and role, with one
  /// dimension of ranges[t].count elements.
  selective_average<T> mean;
};

namespace detail {

/// The weights of a range of a tensor's elements, from its holders.
template <class Holders>
std::vector<double> weights_of(const Holders& holders, std::size_t t, element_range range) {
  std::vector<double> out(range.count);
  const auto begin = static_cast<std::int64_t>(range.first);
  const auto end = begin + static_cast<std::int64_t>(range.count);
  for (const auto& e : holders.entries()) {
    const subfed::detail::loop_nest walk(e.sub[tensor_id(t)]);
    const std::int64_t stride = walk.global_stride();
    walk.for_each([&](std::int64_t g, std::int64_t, std::int64_t length) {
      if (length == 0 || g >= end || g + (length - 1) * stride < begin) return;
      for (std::int64_t i = 0; i < length; ++i) {
        const std::int64_t at = g + i * stride;
        if (at >= begin && at < end) out[static_cast<std::size_t>(at - begin)] += e.weight;
      }
    });
  }
  return out;
}

/// A range of the elements that are merged by a rule.
template <class Value>
void cut_elements(const subfed::detail::merged_elements<Value>& from, element_range range,
                  subfed::detail::merged_elements<Value>& to) {
  if (from.empty()) return;
  std::vector<std::pair<bool, Value>> part;
  std::size_t number = 0;
  from.for_each([&](bool held, const Value& value) {
    if (number >= range.first && number < range.first + range.count) {
      part.emplace_back(held, value);
    }
    ++number;
  });
  auto next = part.begin();
  to.assign(range.count, [&](Value& value) {
    value = next->second;
    return (next++)->first;
  });
}

/// This rank's share, whose sums (and weights, where elements have their own) are in the average. It
/// is empty then.
template <class T>
share<T> cut_share(selective_average<T>& mean, const selective_average<T>& total,
                   const ranges_of_ranks& all, const communicator& ranks) {
  const model& whole = model_of(mean);
  std::vector<element_range> ranges;
  model net;
  for (std::size_t t = 0; t < whole.tensors().size(); ++t) {
    ranges.push_back(all.of(ranks.rank(), t));
    const dimension elements(static_cast<std::int64_t>(ranges[t].count));
    net.tensor(whole.tensors()[t].name, {elements}, whole.tensors()[t].role);
  }
  share<T> out{whole, ranges, selective_average<T>(net, options_of(mean))};
  internals::open(mean, [&](const model&, const average_options&, const auto& from, auto&&...) {
    internals::open(
        total, [&](const model&, const average_options&, const auto& merged, const auto& holders,
                   bool, const auto& seen, double cohort_weight, const average_report& report) {
          internals::open(out.mean, [&](const model&, const average_options&, auto& state,
                                        const auto&, bool& own_dense, auto& own_seen,
                                        double& own_weight, average_report& own_report) {
            own_dense = true;
            own_seen = seen;
            own_weight = cohort_weight;
            own_report = report;
            for (std::size_t t = 0; t < state.size(); ++t) {
              const element_range& r = ranges[t];
              const auto cut = [&](const auto& numbers, auto& to) {
                const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(r.first);
                to.assign(first, first + static_cast<std::ptrdiff_t>(r.count));
              };
              state[t].format = merged[t].format;
              cut_elements(merged[t].integers.elements(), r, state[t].integers.elements());
              cut_elements(merged[t].counters.elements(), r, state[t].counters.elements());
              if (from[t].fixed_sums.empty()) continue;
              cut(from[t].fixed_sums, state[t].fixed_sums);
              if (from[t].weights.empty()) {
                state[t].weights = weights_of(holders, t, r);
              } else {
                cut(from[t].weights, state[t].weights);
              }
            }
          });
        });
  });
  mean.clear();
  return out;
}

/// Row-major views: of a range of elements, and of their bytes.
template <class E>
tensor_view<E> part_of(const tensor_view<E>& of, element_range range) {
  const std::int64_t extents[] = {static_cast<std::int64_t>(range.count)};
  return {of.data_handle() + (range.count == 0 ? 0 : range.first), extents};
}
template <class E>
std::span<std::byte> bytes_of(const tensor_view<E>& of) {
  return std::as_writable_bytes(
      std::span<E>(of.data_handle(), static_cast<std::size_t>(of.size())));
}

template <class E>
std::size_t bytes_of_elements(std::int64_t count) {
  return subfed::detail::memory_size<E>(count) * sizeof(E);
}

/// f(number, view of elements of a type) for each tensor.
template <class T, class F>
void for_each_typed(const tensor_views<T>& tensors, F&& f) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if constexpr (std::is_void_v<T>) {
      tensors[t].visit([&](const auto& typed) { f(t, typed); });
    } else {
      f(t, tensors[t]);
    }
  }
}

/// The number of the first tensor that is not as the model describes it, from 1 on; 0: there is none.
template <class T>
std::uint64_t first_misfit(const model& net, const tensor_views<T>& tensors) {
  if (tensors.size() != net.tensors().size()) return net.tensors().size() + 1;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const auto found = tensors[t].extents();
    const auto& expected = net.tensors()[t].extents;
    if (!std::equal(found.begin(), found.end(), expected.begin(), expected.end())) return t + 1;
  }
  return 0;
}
inline std::string misfit_text(const model& net, std::uint64_t number) {
  if (number > net.tensors().size()) return "has another number of tensors than the model";
  return "has a tensor '" + net.tensors()[static_cast<std::size_t>(number - 1)].name +
         "' of another shape than the model";
}

template <class T>
std::uint64_t formats_hash(const tensor_views<T>& tensors) {
  subfed::detail::byte_hash hash;
  for_each_typed(tensors, [&]<class E>(std::size_t, const tensor_view<E>&) {
    hash.word(subfed::detail::format_code(format_of<E>()));
  });
  return hash.value();
}

/// Broadcasts tensors of any strides.
template <class T>
void broadcast_tensors(const model& net, const tensor_views<T>& tensors, int root,
                       const communicator& ranks) {
  const std::uint64_t misfit = first_misfit(net, tensors);
  const std::uint64_t bad_root = net.tensors().size() + 2;
  agree({.what = call::broadcast,
         .root = root,
         .model = fingerprint(net),
         .detail = formats_hash(tensors),
         .detail_text = "has tensors of other element types",
         .complaint = root < 0 || root >= ranks.size() ? bad_root : misfit},
        ranks, [&](std::uint64_t number) {
          return number == bad_root ? root_text(root, ranks) : misfit_text(net, number);
        });
  for_each_typed(tensors, [&]<class E>(std::size_t, const tensor_view<E>& to) {
    if (to.is_row_major()) {
      broadcast_bytes(bytes_of(to), root, ranks);
      return;
    }
    std::vector<std::byte> memory(bytes_of_elements<E>(to.size()));
    E* const packed = static_cast<E*>(static_cast<void*>(memory.data()));
    std::size_t i = 0;
    subfed::detail::for_each_offset(
        to, [&](std::int64_t offset) { packed[i++] = to.data_handle()[offset]; });
    broadcast_bytes(memory, root, ranks);
    i = 0;
    subfed::detail::for_each_offset(
        to, [&](std::int64_t offset) { to.data_handle()[offset] = packed[i++]; });
  });
}

/// The means of this rank's part in copies of its elements, or why there are none: the same text on all
/// ranks.
template <class T>
average_report finish_copies(const share<T>& part, const tensor_views<T>& copies,
                             const communicator& ranks) {
  average_report report;
  std::string wrong;
#if SUBFED_EXCEPTIONS
  try {
    report = part.mean.finish(copies);
  } catch (const error& e) {
    wrong = e.what();
  } catch (const std::bad_alloc&) {
    wrong = "subfed: mpi: memory ran out";
  }
#else
  report = part.mean.finish(copies);
#endif
  const auto texts = gather_all(std::as_bytes(std::span<const char>(wrong)), ranks);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto& text = texts[static_cast<std::size_t>(rank)];
    if (text.empty()) continue;
    std::string all;
    for (const std::byte b : text) all += std::to_integer<char>(b);
    fail(all + " (in the part of " + on_rank(rank) + ")");
  }
  return report;
}

template <class T>
average_report finish_all(const share<T>& part, const tensor_views<T>& globals,
                          const communicator& ranks) {
  const model& net = part.whole;
  const std::size_t tensors = net.tensors().size();
  const ranges_of_ranks all(net, ranks.size());
  std::uint64_t complaint = first_misfit(net, globals);
  for (std::size_t t = 0; complaint == 0 && t < tensors; ++t) {
    if (part.ranges[t] != all.of(ranks.rank(), t)) complaint = tensors + 2;
    if (!globals[t].is_row_major()) complaint = tensors + 3 + t;
  }
  agree({.what = call::finish,
         .model = fingerprint(net),
         .detail = formats_hash(globals),
         .detail_text = "has tensors of other element types",
         .complaint = complaint},
        ranks, [&](std::uint64_t number) {
          if (number == tensors + 2) return std::string("has a share of other ranks");
          if (number <= tensors + 1) return misfit_text(net, number);
          return "has a tensor '" +
                 net.tensors()[static_cast<std::size_t>(number) - tensors - 3].name +
                 "' that is not row-major without gaps";
        });
  std::vector<std::vector<std::byte>> memory;
  std::vector<tensor_view<T>> copies;
  take_memory(ranks, [&] {
    memory.resize(tensors);
    for_each_typed(globals, [&]<class E>(std::size_t t, const tensor_view<E>& of) {
      const auto old = bytes_of(part_of(of, part.ranges[t]));
      memory[t].assign(old.begin(), old.end());
      memory[t].reserve(1);
      E* const data = static_cast<E*>(static_cast<void*>(memory[t].data()));
      copies.emplace_back(tensor_view<E>(data, {static_cast<std::int64_t>(part.ranges[t].count)}));
    });
  });
  average_report report = finish_copies(part, tensor_views<T>(copies), ranks);
  std::int64_t counts[] = {report.held, report.unheld, report.kept, report.overflowed};
  sum_on_all(std::span<std::int64_t>(counts), ranks);
  report.held = counts[0];
  report.unheld = counts[1];
  report.kept = counts[2];
  report.overflowed = counts[3];
  for_each_typed(globals, [&]<class E>(std::size_t t, const tensor_view<E>& of) {
    if (net.tensors()[t].is_local()) report.kept += of.size();
    std::copy(memory[t].begin(), memory[t].end(), bytes_of(part_of(of, part.ranges[t])).begin());
    for (int rank = 0; rank < ranks.size(); ++rank) {
      broadcast_bytes(bytes_of(part_of(of, all.of(rank, t))), rank, ranks);
    }
  });
  return report;
}

}  // namespace detail

}  // namespace subfed::inline v0::mpi
