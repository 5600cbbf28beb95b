// SPDX-License-Identifier: MIT
/// Streaming averages of many machines, added with MPI: to the same bits for any number of ranks. Needs
/// <mpi.h> (CMake: the target subfed::mpi).
#pragma once

#include <subfed/adapt/detail/mpi_agreement.hpp>
#include <subfed/adapt/detail/mpi_calls.hpp>
#include <subfed/adapt/detail/mpi_coverage.hpp>
#include <subfed/adapt/detail/mpi_merge.hpp>
#include <subfed/adapt/detail/mpi_share.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/coverage/by_class.hpp>
#include <subfed/coverage/nodes.hpp>
#include <subfed/messages/fingerprint.hpp>
#include <subfed/model.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

/// Each rank adds the updates of its clients to an average of its own; then the ranks add what they
/// have:
///
///   subfed::mpi::communicator world(MPI_COMM_WORLD);
///   subfed::selective_average<float> mean(net, {.sums = subfed::fixed_point{.bound = 4, .clients = 100}});
///   for (const auto& client : mine) mean.add(sub_of(client), tensors_of(client));
///   subfed::mpi::all_reduce(mean, world);
///   mean.finish(globals);                       // on every rank, the same bits
///
/// All functions are collective. Ranks with another model, other options, another root, or in
/// another function are refused by name on all ranks alike, before anything is written. So is a
/// second update of a client under options.round, wherever it was added.
///
/// Sums must be in fixed point (average_options::sums): sums of doubles would have other bits for
/// every number of ranks and every version of MPI, and are refused. Without fixed point, send
/// write_partial_average() to one rank, and merge there in an order of your own.
///
/// Where a rank has no memory for sums or means it throws std::bad_alloc, the others throw error that names
/// it, and nothing has changed. Where memory runs out for anything smaller, only that rank throws, and
/// others may wait for it: call MPI_Abort.
///
/// All ranks have the same byte order and the same version of subfed.
namespace subfed::inline v0::mpi {

/// Adds what all ranks have added: afterwards each has all of it.
///
/// Post     finish() gives the bits of one average to which all updates were added in any order.
/// Throws   error on all ranks alike, as described above, and for what merge() refuses; then no
///          average has changed.
/// Numerics Integers are added by MPI_SUM on 64 bits, and weights on doubles that are exact.
///          Integers and counters of integer_rule::max and sum are merged in the order of the ranks.
/// Cost     One MPI_Allreduce of 8 bytes per parameter, 16 where weights are kept for every element,
///          in pieces of communicator::bytes_at_once(). One broadcast per rank of its list of
///          submodels, of clients under options.round, and of integers and counters that are merged.
template <class T>
void all_reduce(selective_average<T>& mean, const communicator& ranks) {
  selective_average<T> total = detail::merge_all(mean, {detail::call::all_reduce}, ranks);
  detail::add_sums(mean, total, ranks,
                   [&](auto values, std::size_t) { detail::sum_on_all(values, ranks); });
  detail::complete(mean, std::move(total));
}

/// Adds what all ranks have added on one of them. The others keep what is theirs; clear() it before
/// the next round.
///
/// Post, Throws, Numerics, Cost  as all_reduce, with MPI_Reduce.
template <class T>
void reduce(selective_average<T>& mean, int root, const communicator& ranks) {
  selective_average<T> total = detail::merge_all(mean, {detail::call::reduce, root}, ranks);
  detail::add_sums(mean, total, ranks,
                   [&](auto values, std::size_t) { detail::sum_on(root, values, ranks); });
  if (ranks.rank() == root) detail::complete(mean, std::move(total));
}

/// Adds what all ranks have added, spread over them by parameters: each rank gets the sums of its part
/// of the elements, 1 / size() of them, and computes their means alone.
///
///   const auto part = subfed::mpi::reduce_scatter(mean, world);
///   subfed::mpi::finish(part, globals, world);    // all ranks get all means; or
///   part.mean.finish(mine);                       // a server whose state is spread
///
/// Post     The average is empty, as after clear().
/// Throws, Numerics  as all_reduce.
/// Cost     MPI_Reduce of each part to its rank, 8 bytes per parameter together, 16 where weights are
///          kept for every element. 16 bytes of memory for each element of the own part.
template <class T>
share<T> reduce_scatter(selective_average<T>& mean, const communicator& ranks) {
  selective_average<T> total = detail::merge_all(mean, {detail::call::reduce_scatter}, ranks);
  const detail::ranges_of_ranks all(detail::model_of(mean), ranks.size());
  detail::add_sums(mean, total, ranks, [&](auto values, std::size_t t) {
    if (values.empty()) return;
    for (int rank = 0; rank < ranks.size(); ++rank) {
      const element_range own = all.of(rank, t);
      detail::sum_on(rank, values.subspan(own.first, own.count), ranks);
    }
  });
  return detail::cut_share(mean, std::move(total), all, ranks);
}

/// Computes the means of all shares and gives them to all ranks, as finish() of the whole average
/// does.
///
/// Pre      The globals have the same values on all ranks.
/// Throws   error on all ranks alike, for tensors that are not row-major without gaps or of other
///          shapes than the model's, and for what finish() refuses on any rank; nothing has been
///          written then.
/// Cost     Each rank computes its share; a broadcast of each.
template <class T>
average_report finish(const share<T>& part, const tensor_views<T>& globals,
                      const communicator& ranks) {
  return detail::finish_all(part, globals, ranks);
}

/// Gives all ranks the tensors of one: a model before the first round.
///
/// Throws   error on all ranks alike, for another model, shape or element type on one of them;
///          nothing has been written then.
/// Cost     MPI_Bcast of the elements. Tensors that are not row-major without gaps are copied.
template <class T>
void broadcast(const model& net, const tensor_views<T>& tensors, int root,
               const communicator& ranks) {
  detail::broadcast_tensors(net, tensors, root, ranks);
}

/// Gives all ranks the bytes of one: a file, a description.
///
/// Throws   error on all ranks alike where they have room for different numbers of bytes.
inline void broadcast(std::span<std::byte> bytes, int root, const communicator& ranks) {
  detail::agree({.what = detail::call::broadcast,
                 .root = root,
                 .detail = bytes.size(),
                 .detail_text = "has room for another number of bytes",
                 .complaint = root < 0 || root >= ranks.size() ? 1u : 0u},
                ranks, [&](std::uint64_t) { return detail::root_text(root, ranks); });
  detail::broadcast_bytes(bytes, root, ranks);
}

/// Adds the clients that the other ranks have recorded in the current round: coverage::merge() of all
/// of them, on all of them. Then end the round on every rank.
///
///   for (const auto& client : mine) seen.record(sub_of(client));
///   subfed::mpi::merge(seen, world);
///   seen.end_round();
///
/// Throws   error on all ranks alike for coverage of other models, rounds or first covers, and for
///          too many clients.
/// Cost     One MPI_Allreduce of 8 bytes per node, for all clients and for each class.
inline void merge(coverage& seen, const communicator& ranks) { detail::merge_round(seen, ranks); }
inline void merge(coverage_by_class& seen, const communicator& ranks) {
  detail::merge_round(seen, ranks);
}

/// values[i] = its sum over all ranks, for counts of any kind.
///
/// Throws   error on all ranks alike where they have different numbers of values.
inline void sum(std::span<std::int64_t> values, const communicator& ranks) {
  detail::agree({.what = detail::call::sum,
                 .detail = values.size(),
                 .detail_text = "has another number of values"},
                ranks, [](std::uint64_t) { return std::string(); });
  detail::sum_on_all(values, ranks);
}

}  // namespace subfed::inline v0::mpi
