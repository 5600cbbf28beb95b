// SPDX-License-Identifier: MIT
#include <algorithm>
#include <exception>
#include <numeric>

#include "ranks.hpp"

namespace trainer::ranks {

std::vector<int> deal(std::span<const double> costs, int ranks) {
  std::vector<std::size_t> order(costs.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return costs[a] > costs[b]; });
  std::vector<double> load(static_cast<std::size_t>(ranks));
  std::vector<int> out(costs.size());
  for (const std::size_t task : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += costs[task];
    out[task] = static_cast<int>(least - load.begin());
  }
  return out;
}

void together(const std::function<void()>& f) {
  if (count() == 1) {
    f();
    return;
  }
  std::string wrong;
  try {
    f();
  } catch (const std::exception& error) {
    wrong = error.what();
    if (wrong.empty()) wrong = "unknown";
  }
  for (int rank = 0; rank < count(); ++rank) {
    std::uint64_t size = wrong.size();
    broadcast(size, rank);
    if (size == 0) continue;
    wrong.resize(static_cast<std::size_t>(size));
    broadcast(std::as_writable_bytes(std::span<char>(wrong)), rank);
    throw common_failure(wrong);
  }
}

void on_first(const std::function<void()>& f) {
  together([&] {
    if (is_first()) f();
  });
}

}  // namespace trainer::ranks
