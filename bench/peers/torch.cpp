// SPDX-License-Identifier: MIT
/// LibTorch: index_select and index_put_ over index tensors; windows by narrow and copy_; and as the
/// papers' released programs use it.
#include "peer.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>

namespace bench {
namespace {

at::Tensor tensor_of(const subfed::tensor_view<float>& v) {
  return at::from_blob(v.data_handle(), at::IntArrayRef(v.extents().data(), v.extents().size()),
                       at::kFloat);
}

class torch_peer : public peer {
 public:
  explicit torch_peer(workload<float>& work) : work_(work) {
    for (const auto& v : work.globals.views()) {
      globals_.push_back(tensor_of(v));
      sums_.push_back(at::zeros_like(globals_.back()));
      counts_.push_back(at::zeros_like(globals_.back()));
    }
    for (std::size_t c = 0; c < work.cohort.size(); ++c) {
      auto& own = locals_.emplace_back();
      for (const auto& v : work.locals(c).views()) own.push_back(tensor_of(v));
    }
  }

  void average() override {
    at::NoGradGuard guard;
    for (auto& s : sums_) s.zero_();
    for (auto& c : counts_) c.zero_();
    for (std::size_t c = 0; c < locals_.size(); ++c) {
      for (std::size_t t = 0; t < globals_.size(); ++t) add(c, t);
    }
    for (std::size_t t = 0; t < globals_.size(); ++t) {
      globals_[t].copy_(at::where(counts_[t] > 0, sums_[t] / counts_[t], globals_[t]));
    }
  }

 protected:
  virtual void add(std::size_t client, std::size_t tensor) = 0;

  workload<float>& work_;
  std::vector<at::Tensor> globals_, sums_, counts_;
  std::vector<std::vector<at::Tensor>> locals_;
};

class index_ops final : public torch_peer {
 public:
  explicit index_ops(workload<float>& work) : torch_peer(work) {
    for (const auto& sub : work.cohort) {
      auto& own = indices_.emplace_back();
      for (std::size_t t = 0; t < globals_.size(); ++t) {
        auto& each = own.emplace_back();
        for (int r = 0; r < static_cast<int>(globals_[t].dim()); ++r) {
          const auto found = indices(sub, t, r);
          const bool whole = static_cast<std::int64_t>(found.size()) == globals_[t].size(r);
          each.push_back(whole ? at::Tensor() : at::tensor(found, at::kLong));
        }
      }
    }
  }

  void slice() override {
    at::NoGradGuard guard;
    for (std::size_t c = 0; c < locals_.size(); ++c) {
      for (std::size_t t = 0; t < globals_.size(); ++t) {
        // The last selection writes straight into the client's tensor.
        const auto& own = indices_[c][t];
        std::size_t left = 0;
        for (const at::Tensor& i : own) left += i.defined() ? 1u : 0u;
        at::Tensor cut = globals_[t];
        if (left == 0) locals_[c][t].copy_(cut);
        for (std::size_t r = 0; r < own.size() && left > 0; ++r) {
          if (!own[r].defined()) continue;
          const auto dimension = static_cast<std::int64_t>(r);
          if (--left == 0) {
            at::index_select_out(locals_[c][t], cut, dimension, own[r]);
          } else {
            cut = cut.index_select(dimension, own[r]);
          }
        }
      }
    }
  }

 private:
  void add(std::size_t c, std::size_t t) override {
    c10::List<c10::optional<at::Tensor>> at_indices;
    std::size_t last = 0;  // dimensions after the last cut one are whole
    std::vector<at::Tensor> own = indices_[c][t];
    for (std::size_t r = 0; r < own.size(); ++r) {
      if (own[r].defined()) last = r + 1;
    }
    if (last == 0) {
      sums_[t].add_(locals_[c][t]);
      counts_[t].add_(1);
      return;
    }
    for (std::size_t r = 0; r < last; ++r) {
      if (!own[r].defined()) own[r] = at::arange(globals_[t].size(static_cast<std::int64_t>(r)));
      std::vector<std::int64_t> shape(last - r, 1);
      shape[0] = own[r].size(0);
      at_indices.push_back(c10::optional<at::Tensor>(own[r].view(shape)));
    }
    sums_[t].index_put_(at_indices, locals_[c][t], true);
    counts_[t].index_put_(at_indices, one_, true);
  }

  std::vector<std::vector<std::vector<at::Tensor>>> indices_;
  at::Tensor one_ = at::ones({});
};

/// Windows as they are fastest: tensor by tensor; clients with the same windows are added up first, in a
/// small tensor that stays in the cache; counts have one element for each kernel; nothing is allocated
/// where everything is held.
class windows final : public torch_peer {
 public:
  explicit windows(workload<float>& work) : torch_peer(work) {
    for (std::size_t c = 0; c < work.cohort.size(); ++c) {
      std::size_t s = 0;
      while (s < sets_.size() && !work.cohort[sets_[s].front()].same_nodes(work.cohort[c])) ++s;
      if (s == sets_.size()) sets_.emplace_back();
      sets_[s].push_back(c);
    }
    for (std::size_t t = 0; t < globals_.size(); ++t) {
      auto& own = together_.emplace_back();
      for (const auto& set : sets_) own.push_back(at::empty_like(locals_[set.front()][t]));
      auto shape = globals_[t].sizes().vec();
      for (std::size_t r = 2; r < shape.size(); ++r) shape[r] = 1;
      kernel_counts_.push_back(at::zeros(shape));
    }
  }

  void slice() override {
    at::NoGradGuard guard;
    for_each([](at::Tensor local, const at::Tensor& global, at::Tensor, at::Tensor) {
      local.copy_(global);
    });
  }

  void average() override {
    at::NoGradGuard guard;
    for (std::size_t t = 0; t < globals_.size(); ++t) {
      at::Tensor& sum = sums_[t];
      at::Tensor& count = kernel_counts_[t];
      sum.zero_();
      count.zero_();
      for (std::size_t s = 0; s < sets_.size(); ++s) {
        at::Tensor all = locals_[sets_[s].front()][t];
        for (std::size_t k = 1; k < sets_[s].size(); ++k) {
          const at::Tensor& next = locals_[sets_[s][k]][t];
          at::add_out(together_[t][s], all, next);
          all = together_[t][s];
        }
        const auto clients = static_cast<double>(sets_[s].size());
        const subfed::selection chosen = work_.cohort[sets_[s].front()][subfed::tensor_id(t)];
        auto add = [clients](const at::Tensor& local, const at::Tensor&, at::Tensor to,
                             at::Tensor counts) {
          to.add_(local);
          counts.add_(clients);
        };
        descend(chosen, 0, all, globals_[t], sum, count, add);
      }
      const at::Tensor held = count.gt(0);
      if (held.all().item<bool>()) {
        at::div_out(globals_[t], sum, count);
      } else {
        globals_[t].copy_(at::where(held, sum.div_(count), globals_[t]));
      }
    }
  }

 private:
  void add(std::size_t, std::size_t) override {}

  template <class F>
  void for_each(F f) {
    for (std::size_t c = 0; c < locals_.size(); ++c) {
      for (std::size_t t = 0; t < globals_.size(); ++t) pairs(c, t, f);
    }
  }

  template <class F>
  void pairs(std::size_t c, std::size_t t, F f) {
    const subfed::selection chosen = work_.cohort[c][subfed::tensor_id(t)];
    descend(chosen, 0, locals_[c][t], globals_[t], sums_[t], counts_[t], f);
  }

  template <class F>
  static void descend(const subfed::selection& chosen, int r, const at::Tensor& local,
                      const at::Tensor& global, const at::Tensor& sum, const at::Tensor& count,
                      F& f) {
    if (r == chosen.rank()) return f(local, global, sum, count);
    if (chosen.dimension(r).is_whole()) return descend(chosen, r + 1, local, global, sum, count, f);
    for (const subfed::run& run : chosen.dimension(r).runs) {
      const bool counted = count.size(r) == global.size(r);  // not within a kernel
      descend(chosen, r + 1, local.narrow(r, run.position, run.length),
              global.narrow(r, run.first, run.length), sum.narrow(r, run.first, run.length),
              counted ? count.narrow(r, run.first, run.length) : count, f);
    }
  }

  std::vector<std::vector<std::size_t>> sets_;     // clients with the same nodes
  std::vector<std::vector<at::Tensor>> together_;  // [tensor][set]: their sum
  std::vector<at::Tensor> kernel_counts_;
};

/// As released programs do it: a mesh of index tensors for each tensor, new tensors for every slice, for
/// sums and for counts; at the end, elements that somebody holds are assigned through a mask.
class released final : public torch_peer {
 public:
  explicit released(workload<float>& work) : torch_peer(work) {
    for (const auto& sub : work.cohort) {
      auto& own = indices_.emplace_back();
      for (std::size_t t = 0; t < globals_.size(); ++t) {
        auto& each = own.emplace_back();
        for (int r = 0; r < static_cast<int>((std::min)(globals_[t].dim(), std::int64_t{2})); ++r) {
          each.push_back(at::tensor(indices(sub, t, r), at::kLong));
        }
      }
    }
  }

  void slice() override {
    at::NoGradGuard guard;
    for (std::size_t c = 0; c < locals_.size(); ++c) {
      for (std::size_t t = 0; t < globals_.size(); ++t) {
        const auto where = mesh(c, t);
        locals_[c][t].copy_(where.empty() ? globals_[t] : globals_[t].index(where).clone());
      }
    }
  }

  void average() override {
    at::NoGradGuard guard;
    for (std::size_t t = 0; t < globals_.size(); ++t) {
      at::Tensor sums = at::zeros_like(globals_[t]), counts = at::zeros_like(globals_[t]);
      for (std::size_t c = 0; c < locals_.size(); ++c) {
        const auto where = mesh(c, t);
        if (where.empty()) {  // one number
          sums.add_(locals_[c][t]);
          counts.add_(1);
          continue;
        }
        sums.index_put_(where, sums.index(where) + locals_[c][t]);
        counts.index_put_(where, counts.index(where) + 1);
      }
      const c10::List<c10::optional<at::Tensor>> held({c10::optional<at::Tensor>(counts > 0)});
      sums.index_put_(held, sums.index(held) / counts.index(held));
      globals_[t].index_put_(held, sums.index(held));
    }
  }

 private:
  void add(std::size_t, std::size_t) override {}

  c10::List<c10::optional<at::Tensor>> mesh(std::size_t c, std::size_t t) const {
    c10::List<c10::optional<at::Tensor>> out;
    if (indices_[c][t].empty()) return out;
    for (const at::Tensor& i : at::meshgrid(indices_[c][t], "ij")) {
      out.push_back(c10::optional<at::Tensor>(i));
    }
    return out;
  }

  std::vector<std::vector<std::vector<at::Tensor>>> indices_;  // of the first two dimensions
};

}  // namespace

std::unique_ptr<peer> make_torch_released(workload<float>& work) {
  return std::make_unique<released>(work);
}
std::unique_ptr<peer> make_torch_index(workload<float>& work) {
  return std::make_unique<index_ops>(work);
}
std::unique_ptr<peer> make_torch_windows(workload<float>& work) {
  return std::make_unique<windows>(work);
}
void set_torch_threads(int threads) { at::set_num_threads(threads); }

}  // namespace bench
