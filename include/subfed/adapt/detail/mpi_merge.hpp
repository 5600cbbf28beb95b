// SPDX-License-Identifier: MIT
/// Everything of the ranks' averages but their sums, merged on every rank alike, and then the sums.
#pragma once

#include <subfed/adapt/detail/mpi_agreement.hpp>
#include <subfed/adapt/detail/mpi_calls.hpp>
#include <subfed/average/detail/tensor_sums.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/element_format.hpp>
#include <subfed/messages/fingerprint.hpp>
#include <subfed/messages/partial_average.hpp>
#include <subfed/model.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0::mpi::detail {

using subfed::detail::internals;
using subfed::detail::sums_are;
using subfed::detail::tensor_sums;

template <class T>
const model& model_of(const selective_average<T>& mean) noexcept {
  return internals::model_of(mean);
}
template <class T>
const average_options& options_of(const selective_average<T>& mean) noexcept {
  return internals::options_of(mean);
}

/// Under options.round a client may be in one of the averages alone.
template <class T>
void check_apart(const selective_average<T>& total, const selective_average<T>& more, int rank,
                 const std::vector<std::vector<std::byte>>& parts) {
  const auto seen_of = [](const selective_average<T>& of) -> const auto& {
    return internals::open(
        of,
        [](const model&, const average_options&, const auto&, const auto&, bool, const auto& seen,
           auto&&...) -> const auto& { return seen; });
  };
  for (const auto& key : seen_of(more)) {
    if (seen_of(total).count(key) == 0) continue;
    int earlier = 0;
    while (seen_of(subfed::detail::read_average<T>(model_of(total), options_of(total),
                                                   parts[static_cast<std::size_t>(earlier)],
                                                   sums_are::elsewhere))
               .count(key) == 0) {
      ++earlier;
    }
    fail("subfed: mpi: an update of client " + std::to_string(key.second) + " for round " +
             std::to_string(key.first) + " was added on " + on_rank(earlier) + " and on " +
             on_rank(rank),
         {.client = key.second});
  }
}

/// An average with all that the ranks have added, but for sums and weights of elements.
///
/// Throws  error on all ranks alike. Nothing has changed then.
template <class T>
selective_average<T> merge_all(const selective_average<T>& mean, intention own,
                               const communicator& ranks) {
  const model& net = model_of(mean);
  const average_options& options = options_of(mean);
  own.model = fingerprint(net);
  own.options = options;
  own.is_typed = !std::is_void_v<T>;
  const bool has_root = own.root >= 0 && own.root < ranks.size();
  own.complaint = !has_root ? 1 : !options.sums ? 2 : internals::is_torn(mean) ? 3 : 0;
  agree(own, ranks, [&](std::uint64_t number) {
    if (number == 1) return root_text(own.root, ranks);
    return std::string(number == 2
                           ? "has sums of doubles, whose bits would depend on the number of "
                             "ranks; set average_options::sums"
                           : "has an average of which memory ran out while updates were added; "
                             "clear() forgets all");
  });
  const auto parts = gather_all(subfed::detail::write_average(mean, sums_are::elsewhere), ranks);
  selective_average<T> total(net, options);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto more = subfed::detail::read_average<T>(
        net, options, parts[static_cast<std::size_t>(rank)], sums_are::elsewhere);
    check_apart(total, more, rank, parts);
    total.merge(more);
  }
  return total;
}

/// Adds the ranks' sums, and the weights where elements have their own, in place: add(values of a
/// tensor, its number) for each array. The total says which there are.
///
/// Throws  std::bad_alloc where a rank has no memory for them, and error on the others. Nothing has been
///         added then.
template <class T, class Add>
void add_sums(selective_average<T>& mean, const selective_average<T>& total,
              const communicator& ranks, Add&& add) {
  internals::open(mean, [&](const model& net, const average_options&, auto& state,
                            const auto& holders, auto&&...) {
    internals::open(total, [&](const model&, const average_options&, const auto& all,
                               const auto& all_holders, bool dense, auto&&...) {
      std::vector<std::int64_t> has_weights(state.size());
      for (std::size_t t = 0; t < state.size(); ++t) {
        has_weights[t] = dense || !state[t].weights.empty() ? 1 : 0;
      }
      sum_on_all(std::span<std::int64_t>(has_weights), ranks, MPI_MAX);
      const bool is_empty = !dense && all_holders.entries().empty();
      std::vector<std::size_t> summed;  // tensors
      take_memory(ranks, [&] {
        for (std::size_t t = 0; t < state.size(); ++t) {
          const auto& info = net.tensors()[t];
          const bool is_number =
              !std::is_void_v<T> || (all[t].format && subfed::detail::is_floating(*all[t].format));
          if (is_empty || !is_number || info.is_local() || info.role == role::counter) continue;
          summed.push_back(t);
          state[t].begin_fixed_sums(info.extents);
          if (has_weights[t] != 0) state[t].keep_weights(tensor_id(t), holders);
        }
      });
      for (const std::size_t t : summed) {
        add(std::span<std::int64_t>(state[t].fixed_sums), t);
        add(std::span<double>(state[t].weights), t);
      }
    });
  });
}

/// The total with the sums and weights that are now in the average.
template <class T>
void complete(selective_average<T>& mean, selective_average<T>&& total) {
  internals::open(mean, [&](const model&, const average_options&, auto& from, auto&&...) {
    internals::open(total, [&](const model&, const average_options&, auto& state, auto&&...) {
      for (std::size_t t = 0; t < state.size(); ++t) {
        state[t].fixed_sums = std::move(from[t].fixed_sums);
        state[t].weights = std::move(from[t].weights);
      }
    });
  });
  mean = std::move(total);
}

}  // namespace subfed::inline v0::mpi::detail
