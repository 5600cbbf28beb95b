// SPDX-License-Identifier: MIT
/// What the benchmarks work on: a model in memory, and a cohort of clients with their submodels and
/// tensors.
#pragma once

#include <subfed/subfed.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// The models of the cases.
subfed::model make_model(const std::string& name);
/// A perceptron with two hidden layers and about so many parameters.
subfed::model perceptron(double parameters);

struct case_key {
  std::string model;
  std::string scheme;  // rolling, static, random, ensemble
  std::int64_t clients = 10;
  int threads = 1;

  friend bool operator==(const case_key&, const case_key&) = default;
};

/// Every client's submodel in round 17; capacities 1, 1/2, 1/4, 1/8, 1/16 in turn (ensemble: 1/4).
std::vector<subfed::submodel> make_cohort(const subfed::model& net, const std::string& scheme,
                                          std::int64_t clients);

/// All tensors of a model or a submodel, row-major, one after the other in one allocation.
template <class T>
class tensors {
 public:
  tensors(const std::vector<std::vector<std::int64_t>>& shapes, float value) {
    std::int64_t size = 0;
    for (const auto& s : shapes) size += count(s);
    data_.assign(static_cast<std::size_t>(size), subfed::scalar_traits<T>::store(value));
    std::int64_t at = 0;
    for (const auto& s : shapes) {
      views_.emplace_back(data_.data() + at, std::span<const std::int64_t>(s));
      at += count(s);
    }
  }
  /// Values as a network's weights have them: mean 0, standard deviation 0.03.
  void fill_like_weights() {
    std::uint64_t state = 7;
    for (T& element : data_) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      int sum = -510;  // four bytes
      for (int byte = 4; byte < 8; ++byte) sum += static_cast<int>(state >> (8 * byte) & 0xFF);
      element = subfed::scalar_traits<T>::store(static_cast<float>(sum) * (0.03f / 148));
    }
  }

  const std::vector<subfed::tensor_view<T>>& views() const noexcept { return views_; }
  std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(data_.size() * sizeof(T));
  }

 private:
  static std::int64_t count(const std::vector<std::int64_t>& shape) {
    std::int64_t n = 1;
    for (const std::int64_t e : shape) n *= e;
    return n;
  }
  std::vector<T> data_;
  std::vector<subfed::tensor_view<T>> views_;
};

inline std::vector<std::vector<std::int64_t>> shapes_of(const subfed::model& net) {
  std::vector<std::vector<std::int64_t>> out;
  for (const auto& t : net.tensors()) out.push_back(t.extents);
  return out;
}
inline std::vector<std::vector<std::int64_t>> shapes_of(const subfed::submodel& sub) {
  std::vector<std::vector<std::int64_t>> out;
  for (std::size_t t = 0; t < sub.parent().tensors().size(); ++t) {
    out.push_back(sub.extents(subfed::tensor_id(t)));
  }
  return out;
}

/// Everything a case needs. Clients beyond 6 GiB of tensors share those of earlier clients of the same
/// shapes, which an average of rows may then find in a cache: no case here has as many.
template <class T>
struct workload {
  static constexpr std::int64_t most_bytes = std::int64_t{6} << 30;

  workload(const case_key& key, subfed::model model)
      : net(std::move(model)),
        cohort(make_cohort(net, key.scheme, key.clients)),
        globals(shapes_of(net), 0) {
    globals.fill_like_weights();
    std::map<std::int64_t, std::vector<std::size_t>> by_size;
    std::int64_t used = 0;
    for (std::size_t c = 0; c < cohort.size(); ++c) {
      const std::int64_t size = cohort[c].size();
      auto& known = by_size[size];
      const std::int64_t bytes = size * static_cast<std::int64_t>(sizeof(T));
      if (known.empty() || used + bytes <= most_bytes) {
        known.push_back(buffers.size());
        buffers.push_back(std::make_unique<tensors<T>>(shapes_of(cohort[c]), 0.0f));
        subfed::slice<T>(globals.views(), cohort[c], buffers.back()->views());
        used += bytes;
        buffer_of.push_back(buffers.size() - 1);
      } else {
        buffer_of.push_back(known[c % known.size()]);
      }
      client_bytes += bytes;
    }
    for (std::size_t c = 0; c < cohort.size(); ++c) {
      updates.push_back({cohort[c], locals(c).views(), 1.0});
    }
    held_bytes = held() * static_cast<std::int64_t>(sizeof(T));
  }

  const tensors<T>& locals(std::size_t client) const { return *buffers[buffer_of[client]]; }

  subfed::model net;
  std::vector<subfed::submodel> cohort;
  tensors<T> globals;
  std::vector<std::unique_ptr<tensors<T>>> buffers;
  std::vector<std::size_t> buffer_of;
  std::vector<subfed::update<T>> updates;
  std::int64_t client_bytes = 0;  // of all clients together
  std::int64_t held_bytes = 0;    // of the global elements that somebody holds

 private:
  std::int64_t held() const {
    return subfed::average_cohort<T>(net, updates, globals.views()).held;
  }
};

/// The workload of a case; the last one is kept, since neighbouring cases share it.
template <class T>
workload<T>& workload_of(const case_key& key) {
  static case_key last;
  static std::unique_ptr<workload<T>> made;
  if (!made || last.model != key.model || last.scheme != key.scheme ||
      last.clients != key.clients) {
    made.reset();
    made = std::make_unique<workload<T>>(key, make_model(key.model));
    last = key;
  }
  return *made;
}

}  // namespace bench
