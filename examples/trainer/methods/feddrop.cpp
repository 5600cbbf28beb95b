// SPDX-License-Identifier: MIT
/// FedDrop and UniDrop: channels are dropped by thresholds that all clients share. UniDrop keeps
/// every channel with one probability; FedDrop finds new ones after each round, from how alike the
/// updates of each channel are, within the same budget of FLOPs. [FedDrop, 3]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <subfed/adapt/torch.hpp>
#include <subfed/draw.hpp>
#include <subfed/philox.hpp>
#include <subfed/systems/feddrop.hpp>
#include <subfed/systems/feddrop_budget.hpp>
#include <subfed/systems/feddrop_optimizer.hpp>
#include <subfed/systems/nested.hpp>
#include <subfed/systems/trajectory_similarity.hpp>

#include "../checkpoint.hpp"
#include "../result.hpp"
#include "list.hpp"
#include "narrowed_network.hpp"

namespace trainer::methods {
namespace {

/// S = {n : t_n < p[n]}; where that is empty the node of the smallest threshold, as a convolution
/// needs a channel. Without synchronisation the thresholds are of a seed of the client's own.
subfed::index_set kept_nodes(const options& settings, const subfed::keep_probabilities& keep,
                             std::uint64_t step, subfed::draw_request where) {
  if (!settings.synchronised) {
    where.seed = subfed::random_stream(where.seed, where.client, 0, "own thresholds").bits(0);
  }
  subfed::index_set set = subfed::sync_dropout{keep, step}(where);
  if (set.size() != 0) return set;
  std::int64_t least = 0;
  const auto threshold = [&](std::int64_t n) {
    return subfed::sync_threshold(where.seed, where.round, step, where.group, n);
  };
  for (std::int64_t n = 1; n < where.extent; ++n) {
    if (threshold(n) < threshold(least)) least = n;
  }
  return subfed::index_set(where.extent, {&least, 1});
}

class dropping_client : public client_side {
 public:
  dropping_client(const options& settings, const architecture& described,
                  const subfed::keep_probabilities& keep)
      : settings_(settings), described_(described), keep_(keep) {}

  at::Tensor gradient(const local_training& own, const batch& samples) override {
    if (settings_.drop_by == thresholds::round) {
      return loss_of(*own.network, own.part, samples);  // what was sent is what is kept
    }
    const auto scheme = [&](const subfed::draw_request& where) {
      return kept_nodes(settings_, keep_, samples.step, where);
    };
    const subfed::submodel kept = subfed::draw(described_.net, scheme, own.key);
    const narrowed_network narrow(*own.network, described_, subfed::within(kept, own.part));
    const at::Tensor loss = loss_of(narrow.network(), kept, samples);
    narrow.hand_gradients_over();
    made(described_.work.count(kept));
    return loss;
  }

 private:
  at::Tensor loss_of(const network& network, const subfed::submodel& kept,
                     const batch& samples) const {
    const auto factors_of = [&](subfed::group_id group) {
      const std::vector<double> scale = subfed::keep_scale(keep_, kept, group);
      return at::tensor(scale, at::kFloat).view({-1, 1, 1}).to(samples.inputs.device());
    };
    channel_factors factors;
    for (const subfed::group_id g : described_.stream) factors.stream.push_back(factors_of(g));
    for (const subfed::group_id g : described_.inner) factors.inner.push_back(factors_of(g));
    const at::Tensor logits = network.forward(
        samples.inputs,
        {norm_mode::batch, nullptr, 1, settings_.dropout_scaling ? &factors : nullptr});
    const at::Tensor loss = masked_loss(logits, samples, settings_.absent);
    loss.backward();
    return loss.detach();
  }

  const options& settings_;
  const architecture& described_;
  const subfed::keep_probabilities& keep_;
};

class unidrop_method : public method {
 public:
  unidrop_method(const options& settings, const architecture& net)
      : method(settings, net),
        budget_(subfed::expected_flops(net.net, net.work), settings.flops_ratio),
        start_(net.net, budget_.constant_start()) {}

  subfed::index_set nodes(const subfed::draw_request& where) const override {
    if (settings().drop_by == thresholds::batch) return subfed::index_set::full(where.extent);
    return kept_nodes(settings(), keep_of(where.client), 0, where);
  }
  std::unique_ptr<client_side> client(const local_training& own) const override {
    return std::make_unique<dropping_client>(settings(), described(), keep_of(own.who->number));
  }
  /// The mean over all clients: one that dropped a channel left it as it was. [FedDrop, Alg. 1]
  weight_rule weights() const override { return weight_rule::examples; }
  subfed::divisor divide_by() const override { return subfed::divisor::cohort; }
  std::vector<std::int64_t> keep_counts() const override {
    std::vector<std::int64_t> out(keep_bins);
    for (std::int64_t c = 0; c < settings().cohort.clients; ++c) {
      for (const double p : keep_of(static_cast<std::uint64_t>(c)).values()) {
        const double bin = std::ceil(p * double{keep_bins}) - 1;
        ++out[static_cast<std::size_t>(std::clamp(bin, 0.0, double{keep_bins - 1}))];
      }
    }
    return out;
  }
  /// [FedDrop, Theorem 1]
  double start_variance() const override {
    return settings().fixed_start ? 2 * budget_.constant_start() : 2;
  }

 protected:
  virtual const subfed::keep_probabilities& keep_of(std::uint64_t) const { return start_; }
  const subfed::flops_budget& budget() const { return budget_; }
  const subfed::keep_probabilities& constant() const { return start_; }

 private:
  subfed::flops_budget budget_;
  subfed::keep_probabilities start_;
};

class feddrop_method : public unidrop_method {
 public:
  using unidrop_method::unidrop_method;

  bool reads_cohort() const override { return true; }
  void end_round(std::span<const local_training> cohort, const tensor_list& before) override {
    std::vector<subfed::trajectory<float>> updates;
    std::vector<host_copy> values;
    for (const local_training& t : cohort) values.emplace_back(t.network->tensors());
    std::vector<subfed::keep_probabilities> keep;
    for (std::size_t c = 0; c < cohort.size(); ++c) {
      const local_training& t = cohort[c];
      keep.push_back(keep_.try_emplace(t.who->number, constant()).first->second);
      updates.push_back(
          {t.part, values[c].tensors(), keep.back(), static_cast<double>(t.who->samples.size())});
    }
    auto alike = subfed::similarity_of<float>(described().net, before, updates);
    const double size = alike.trace();
    if (!(size > 0)) return;  // nobody moved
    alike.scale(1 / size);    // mu is for an objective about 1
    // S of one round is noise in part: a round goes a small part of the way, and no probability is
    // far below the start. docs/methods.md has what that brings.
    subfed::optimize_keep(
        alike, budget(), keep,
        {.iterations = 3, .step = 0.02, .smallest = 0.8 * budget().constant_start()});
    for (std::size_t c = 0; c < cohort.size(); ++c) {
      keep_.insert_or_assign(cohort[c].who->number, keep[c]);
    }
  }

  tensor_map state() const override {
    tensor_map out;
    for (const auto& [number, keep] : keep_) {
      out[fmt::format("keep.{}", number)] =
          at::tensor(std::vector<double>(keep.values().begin(), keep.values().end()), at::kDouble);
    }
    return out;
  }
  void restore(const tensor_map& kept) override {
    for (const auto& [name, values] : kept) {
      subfed::keep_probabilities keep = constant();
      const auto nodes = static_cast<std::int64_t>(keep.values().size());
      expected(kept, name, {nodes}, at::kDouble);
      keep.assign({values.data_ptr<double>(), keep.values().size()});
      keep_.insert_or_assign(std::stoull(name.substr(name.find('.') + 1)), keep);
    }
  }
  std::optional<std::set<std::uint64_t>> remembered() const override {
    std::set<std::uint64_t> out;
    for (const auto& client : keep_) out.insert(client.first);
    return out;
  }

 protected:
  const subfed::keep_probabilities& keep_of(std::uint64_t client) const override {
    const auto at = keep_.find(client);
    return at == keep_.end() ? constant() : at->second;
  }

 private:
  std::map<std::uint64_t, subfed::keep_probabilities> keep_;  // of those that have been asked
};

}  // namespace

made unidrop(const options& settings, const architecture& described) {
  return std::make_unique<unidrop_method>(settings, described);
}
made feddrop(const options& settings, const architecture& described) {
  return std::make_unique<feddrop_method>(settings, described);
}

}  // namespace trainer::methods
