// SPDX-License-Identifier: MIT
/// xtensor: every tensor as a matrix, xt::view(matrix, xt::keep(rows), xt::keep(columns)).
#include "peer.hpp"

#include <xtensor/xadapt.hpp>
#include <xtensor/xmath.hpp>
#include <xtensor/xnoalias.hpp>
#include <xtensor/xtensor.hpp>
#include <xtensor/xview.hpp>

#include <array>

namespace bench {
namespace {

using matrix = xt::xtensor<float, 2>;

auto view_of(float* data, std::size_t rows, std::size_t columns) {
  return xt::adapt(data, rows * columns, xt::no_ownership(),
                   std::array<std::size_t, 2>{rows, columns});
}

class xtensor final : public peer {
  auto global_of(std::size_t t) {
    return view_of(work_.globals.views()[t].data_handle(), sums_[t].shape(0), sums_[t].shape(1));
  }

 public:
  explicit xtensor(workload<float>& work)
      : work_(work), selected_(all_matrix_indices<std::int64_t>(work)) {
    for (const auto& t : work.net.tensors()) {
      const as_matrix m(t.extents);
      const std::array<std::size_t, 2> shape = {static_cast<std::size_t>(m.rows),
                                                static_cast<std::size_t>(m.columns)};
      sums_.emplace_back(shape);
      counts_.emplace_back(shape);
    }
  }

  void slice() override {
    for_each(
        [](auto&& local, auto&& global, matrix&, matrix&, const auto& rows, const auto& columns) {
          xt::noalias(local) = xt::view(global, xt::keep(rows), xt::keep(columns));
        });
  }

  void average() override {
    for (matrix& m : sums_) m.fill(0.0f);
    for (matrix& m : counts_) m.fill(0.0f);
    for_each([](auto&& local, auto&&, matrix& sums, matrix& counts, const auto& rows,
                const auto& columns) {
      xt::view(sums, xt::keep(rows), xt::keep(columns)) += local;
      xt::view(counts, xt::keep(rows), xt::keep(columns)) += 1.0f;
    });
    for (std::size_t t = 0; t < sums_.size(); ++t) {
      auto global = global_of(t);
      xt::noalias(global) = xt::where(counts_[t] > 0.0f, sums_[t] / counts_[t], global);
    }
  }

 private:
  template <class F>
  void for_each(F f) {
    for (std::size_t c = 0; c < work_.cohort.size(); ++c) {
      for (std::size_t t = 0; t < sums_.size(); ++t) {
        const auto& [rows, columns] = selected_[c][t];
        f(view_of(work_.locals(c).views()[t].data_handle(), rows.size(), columns.size()),
          global_of(t), sums_[t], counts_[t], rows, columns);
      }
    }
  }

  workload<float>& work_;
  std::vector<std::vector<matrix_indices<std::int64_t>>> selected_;
  std::vector<matrix> sums_, counts_;
};

}  // namespace

std::unique_ptr<peer> make_xtensor(workload<float>& work) {
  return std::make_unique<xtensor>(work);
}

}  // namespace bench
