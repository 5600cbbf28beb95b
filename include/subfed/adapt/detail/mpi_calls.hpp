// SPDX-License-Identifier: MIT
/// MPI's functions with errors of subfed, and in pieces where a count has more than 31 bits.
#pragma once

#include <subfed/detail/memory_size.hpp>
#include <subfed/error.hpp>

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0::mpi {

/// The ranks that work together: a copy of an MPI communicator, so that what is sent here is never
/// taken for messages of the program itself.
///
/// Errors of MPI in calls of this copy are returned (MPI_ERRORS_RETURN) and thrown as subfed::error.
/// The handler of the original communicator stays as it is: by default an error in a call of it ends
/// all ranks. After an error of MPI itself, other than one that subfed finds in the data, ranks may
/// wait for one another: call MPI_Abort.
///
/// Pre  MPI_Init has been called, MPI_Finalize has not. One thread at a time uses it.
class communicator {
 public:
  /// Collective. Of long arrays at most `bytes_at_once` are passed to MPI in one call, which may
  /// need as much memory again.
  explicit communicator(MPI_Comm of, std::int64_t bytes_at_once = std::int64_t{1} << 22)
      : bytes_at_once_(bytes_at_once) {
    if (bytes_at_once < 8 || bytes_at_once > std::int64_t{1} << 30) {
      detail::fail("subfed: mpi: bytes_at_once is " + std::to_string(bytes_at_once) +
                   ", expected 8 to 2^30");
    }
    check(MPI_Comm_dup(of, &handle_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(handle_, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(handle_, &size_), "MPI_Comm_size");
  }
  ~communicator() {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (handle_ != MPI_COMM_NULL && finalized == 0) MPI_Comm_free(&handle_);
  }
  communicator(communicator&& other) noexcept
      : handle_(std::exchange(other.handle_, MPI_COMM_NULL)),
        rank_(other.rank_),
        size_(other.size_),
        bytes_at_once_(other.bytes_at_once_) {}
  communicator& operator=(communicator&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(rank_, other.rank_);
    std::swap(size_, other.size_);
    std::swap(bytes_at_once_, other.bytes_at_once_);
    return *this;
  }

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  MPI_Comm handle() const noexcept { return handle_; }
  std::int64_t bytes_at_once() const noexcept { return bytes_at_once_; }

  /// Throws  error with MPI's own text for a code that is not MPI_SUCCESS.
  static void check(int code, const char* function) {
    if (code == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING + 1] = {};
    int length = 0;
    MPI_Error_string(code, text, &length);
    detail::fail(std::string("subfed: mpi: ") + function + ": " + text);
  }

 private:
  MPI_Comm handle_ = MPI_COMM_NULL;
  int rank_ = 0;
  int size_ = 1;
  std::int64_t bytes_at_once_;
};

namespace detail {

using subfed::detail::fail;

/// f(first, count) for pieces of an array that are short enough for one call.
template <class F>
void in_pieces(std::int64_t count, std::int64_t width, const communicator& ranks, F&& f) {
  const std::int64_t most = ranks.bytes_at_once() / width;
  for (std::int64_t first = 0; first < count; first += most) {
    f(first, static_cast<int>((std::min)(most, count - first)));
  }
}

inline MPI_Datatype type_of(const std::int64_t*) noexcept { return MPI_INT64_T; }
inline MPI_Datatype type_of(const double*) noexcept { return MPI_DOUBLE; }

/// values[i] = its sum over all ranks: on every rank.
template <class Number>
void sum_on_all(std::span<Number> values, const communicator& ranks, MPI_Op by = MPI_SUM) {
  in_pieces(static_cast<std::int64_t>(values.size()), sizeof(Number), ranks,
            [&](std::int64_t first, int count) {
              communicator::check(MPI_Allreduce(MPI_IN_PLACE, values.data() + first, count,
                                                type_of(values.data()), by, ranks.handle()),
                                  "MPI_Allreduce");
            });
}

/// The same on one rank; elsewhere the values stay as they are.
template <class Number>
void sum_on(int root, std::span<Number> values, const communicator& ranks) {
  in_pieces(static_cast<std::int64_t>(values.size()), sizeof(Number), ranks,
            [&](std::int64_t first, int count) {
              Number* const from = values.data() + first;
              const bool own = ranks.rank() == root;
              communicator::check(MPI_Reduce(own ? MPI_IN_PLACE : static_cast<const void*>(from),
                                             own ? from : nullptr, count, type_of(values.data()),
                                             MPI_SUM, root, ranks.handle()),
                                  "MPI_Reduce");
            });
}

/// Copies the bytes of one rank to all others.
inline void broadcast_bytes(std::span<std::byte> bytes, int root, const communicator& ranks) {
  in_pieces(static_cast<std::int64_t>(bytes.size()), 1, ranks, [&](std::int64_t first, int count) {
    communicator::check(MPI_Bcast(bytes.data() + first, count, MPI_BYTE, root, ranks.handle()),
                        "MPI_Bcast");
  });
}

/// What each rank has, by rank: as many bytes on every one.
inline std::vector<std::byte> gather_equal(std::span<const std::byte> own,
                                           const communicator& ranks) {
  std::vector<std::byte> all(own.size() * static_cast<std::size_t>(ranks.size()));
  const auto count = static_cast<int>(own.size());
  communicator::check(
      MPI_Allgather(own.data(), count, MPI_BYTE, all.data(), count, MPI_BYTE, ranks.handle()),
      "MPI_Allgather");
  return all;
}

/// What each rank has, by rank: of any number of bytes.
inline std::vector<std::vector<std::byte>> gather_all(std::span<const std::byte> own,
                                                      const communicator& ranks) {
  std::vector<std::vector<std::byte>> all(static_cast<std::size_t>(ranks.size()));
  std::vector<std::int64_t> sizes(all.size());
  const auto size = static_cast<std::int64_t>(own.size());
  communicator::check(
      MPI_Allgather(&size, 1, MPI_INT64_T, sizes.data(), 1, MPI_INT64_T, ranks.handle()),
      "MPI_Allgather");
  for (int rank = 0; rank < ranks.size(); ++rank) {
    auto& theirs = all[static_cast<std::size_t>(rank)];
    if (rank == ranks.rank()) {
      theirs.assign(own.begin(), own.end());
    } else {
      theirs.resize(subfed::detail::memory_size<std::byte>(sizes[static_cast<std::size_t>(rank)]));
    }
    broadcast_bytes(theirs, rank, ranks);
  }
  return all;
}

}  // namespace detail

}  // namespace subfed::inline v0::mpi
