// SPDX-License-Identifier: MIT
/// Eigen 3.4: every tensor as a matrix, matrix(rows, columns) on either side of an assignment.
#include "peer.hpp"

#include <Eigen/Core>

namespace bench {
namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using view = Eigen::Map<matrix>;

class eigen final : public peer {
 public:
  explicit eigen(workload<float>& work)
      : work_(work), selected_(all_matrix_indices<Eigen::Index>(work)) {
    for (const auto& t : work.net.tensors()) {
      const as_matrix shape(t.extents);
      sums_.emplace_back(shape.rows, shape.columns);
      counts_.emplace_back(shape.rows, shape.columns);
    }
  }

  void slice() override {
    for_each([](view local, view global, matrix&, matrix&, const auto& rows, const auto& columns) {
      local = global(rows, columns);
    });
  }

  void average() override {
    for (matrix& m : sums_) m.setZero();
    for (matrix& m : counts_) m.setZero();
    for_each(
        [](view local, view, matrix& sums, matrix& counts, const auto& rows, const auto& columns) {
          sums(rows, columns) += local;
          counts(rows, columns).array() += 1.0f;
        });
    for (std::size_t t = 0; t < sums_.size(); ++t) {
      view global(work_.globals.views()[t].data_handle(), sums_[t].rows(), sums_[t].cols());
      global = (counts_[t].array() > 0).select(sums_[t].cwiseQuotient(counts_[t]), global);
    }
  }

 private:
  template <class F>
  void for_each(F f) {
    for (std::size_t c = 0; c < work_.cohort.size(); ++c) {
      for (std::size_t t = 0; t < sums_.size(); ++t) {
        const auto& [rows, columns] = selected_[c][t];
        f(view(work_.locals(c).views()[t].data_handle(), static_cast<Eigen::Index>(rows.size()),
               static_cast<Eigen::Index>(columns.size())),
          view(work_.globals.views()[t].data_handle(), sums_[t].rows(), sums_[t].cols()), sums_[t],
          counts_[t], rows, columns);
      }
    }
  }

  workload<float>& work_;
  std::vector<std::vector<matrix_indices<Eigen::Index>>> selected_;
  std::vector<matrix> sums_, counts_;
};

}  // namespace

std::unique_ptr<peer> make_eigen(workload<float>& work) { return std::make_unique<eigen>(work); }

}  // namespace bench
