// SPDX-License-Identifier: MIT
/// Nested loops over index vectors, with dense sums and counts.
#include "peer.hpp"

#include <algorithm>

namespace bench {
namespace {

class loop final : public peer {
 public:
  explicit loop(workload<float>& work)
      : work_(work), selected_(all_matrix_indices<std::int64_t>(work)) {
    for (const auto& global : work.globals.views()) {
      sums_.emplace_back(static_cast<std::size_t>(global.size()));
      counts_.emplace_back(static_cast<std::size_t>(global.size()));
    }
  }

  void slice() override {
    for_each([](float& local, float& global, float&, float&) { local = global; });
  }

  void average() override {
    for (auto& s : sums_) std::fill(s.begin(), s.end(), 0.0f);
    for (auto& c : counts_) std::fill(c.begin(), c.end(), 0.0f);
    for_each([](float& local, float&, float& sum, float& count) {
      sum += local;
      count += 1;
    });
    for (std::size_t t = 0; t < sums_.size(); ++t) {
      float* const global = work_.globals.views()[t].data_handle();
      for (std::size_t i = 0; i < sums_[t].size(); ++i) {
        if (counts_[t][i] > 0) global[i] = sums_[t][i] / counts_[t][i];
      }
    }
  }

 private:
  template <class F>
  void for_each(F f) {
    for (std::size_t c = 0; c < work_.cohort.size(); ++c) {
      for (std::size_t t = 0; t < sums_.size(); ++t) {
        const auto& [rows, columns] = selected_[c][t];
        float* local = work_.locals(c).views()[t].data_handle();
        float* const global = work_.globals.views()[t].data_handle();
        const std::int64_t width = as_matrix(work_.net.tensors()[t].extents).columns;
        for (const std::int64_t row : rows) {
          for (const std::int64_t column : columns) {
            const std::int64_t at = row * width + column;
            f(*local++, global[at], sums_[t][static_cast<std::size_t>(at)],
              counts_[t][static_cast<std::size_t>(at)]);
          }
        }
      }
    }
  }

  workload<float>& work_;
  std::vector<std::vector<matrix_indices<std::int64_t>>> selected_;
  std::vector<std::vector<float>> sums_, counts_;
};

}  // namespace

std::unique_ptr<peer> make_loop(workload<float>& work) { return std::make_unique<loop>(work); }

}  // namespace bench
