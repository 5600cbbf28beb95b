// SPDX-License-Identifier: MIT
/// What a user would otherwise pick, each but the one named released written as well as its library
/// allows: indices, windows and buffers are made before the clock starts.
#pragma once

#include "../workload.hpp"

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench {

class peer {
 public:
  virtual ~peer() = default;
  /// Cuts every client's tensors out of the global ones.
  virtual void slice() = 0;
  /// Averages the clients' tensors into the global ones.
  virtual void average() = 0;
};

struct peer_entry {
  std::string name;
  std::unique_ptr<peer> (*make)(workload<float>&);
};

/// The peers that this program was built with.
std::vector<peer_entry> peers();
/// The names of those that it was built without.
std::vector<std::string> missing_peers();

std::unique_ptr<peer> make_loop(workload<float>&);
std::unique_ptr<peer> make_eigen(workload<float>&);
std::unique_ptr<peer> make_xtensor(workload<float>&);
std::unique_ptr<peer> make_torch_index(workload<float>&);
std::unique_ptr<peer> make_torch_windows(workload<float>&);
std::unique_ptr<peer> make_torch_released(workload<float>&);
/// Threads of LibTorch's own operators; nothing without LibTorch.
void set_torch_threads(int threads);

/// For each position of dimension r of a client's tensor, the index in the global one.
inline std::vector<std::int64_t> indices(const subfed::submodel& sub, std::size_t tensor, int r) {
  const subfed::selection chosen = sub[subfed::tensor_id(tensor)];
  const auto& d = chosen.dimension(r);
  std::vector<std::int64_t> out(static_cast<std::size_t>(d.local_extent));
  for (const subfed::run& run : d.runs) {
    for (std::int64_t i = 0; i < run.length; ++i) {
      out[static_cast<std::size_t>(run.position + i)] = run.first + i;
    }
  }
  return out;
}

/// Tensors seen as matrices: rows are dimension 0, columns all others together.
struct as_matrix {
  std::int64_t rows = 1, columns = 1;

  explicit as_matrix(std::span<const std::int64_t> extents) {
    for (std::size_t r = 0; r < extents.size(); ++r) (r == 0 ? rows : columns) *= extents[r];
  }
};

/// The columns of a client's matrix, as columns of the global one.
inline std::vector<std::int64_t> matrix_columns(const subfed::submodel& sub, std::size_t tensor) {
  const auto& extents = sub.parent().tensors()[tensor].extents;
  std::vector<std::int64_t> out = {0};
  for (std::size_t r = 1; r < extents.size(); ++r) {
    std::vector<std::int64_t> next;
    const auto own = indices(sub, tensor, static_cast<int>(r));
    for (const std::int64_t outer : out) {
      for (const std::int64_t i : own) next.push_back(outer * extents[r] + i);
    }
    out = std::move(next);
  }
  return out;
}

/// Where a client's matrix lies in the global one.
template <class Index>
struct matrix_indices {
  std::vector<Index> rows, columns;
};

/// For each client and tensor.
template <class Index>
std::vector<std::vector<matrix_indices<Index>>> all_matrix_indices(const workload<float>& work) {
  std::vector<std::vector<matrix_indices<Index>>> out;
  for (const auto& sub : work.cohort) {
    auto& own = out.emplace_back();
    for (std::size_t t = 0; t < work.net.tensors().size(); ++t) {
      const bool scalar = work.net.tensors()[t].extents.empty();
      const auto rows = scalar ? std::vector<std::int64_t>{0} : indices(sub, t, 0);
      const auto columns = matrix_columns(sub, t);
      own.push_back({{rows.begin(), rows.end()}, {columns.begin(), columns.end()}});
    }
  }
  return out;
}

}  // namespace bench
