// SPDX-License-Identifier: MIT
/// HeteroFL: the first channels, always. [HeteroFL; Rolex, Eq. 6] Its masked loss, scaler and static
/// batch norm are what all methods here do. With --batch-norm running there is no static batch norm,
/// but what an implementation does that does not think of it.
#include <fmt/format.h>

#include <subfed/schemes/prefix.hpp>
#include <utility>

#include "../checkpoint.hpp"
#include "list.hpp"

namespace trainer::methods {
namespace {

/// Tracks mean and variance of every channel of its batch norm layers while it trains.
class tracking_client : public client_side {
 public:
  tracking_client(absent_classes rule, double scale, network_moments sent)
      : rule_(rule), scale_(scale), moments_(std::move(sent)) {}

  at::Tensor gradient(const local_training& own, const batch& samples) override {
    const forward_pass pass{norm_mode::track, &moments_, scale_};
    const at::Tensor loss = masked_loss(own.network->forward(samples.inputs, pass), samples, rule_);
    loss.backward();
    return loss.detach();
  }

  std::vector<at::Tensor> results() override {
    std::vector<at::Tensor> out;
    for (const moments& m : moments_) out.insert(out.end(), {m.mean, m.variance});
    return out;
  }

 private:
  absent_classes rule_;
  double scale_;
  network_moments moments_;
};

class heterofl_method : public method {
 public:
  heterofl_method(const options& settings, const architecture& net) : method(settings, net) {
    if (settings.statistics == norm_statistics::measured) return;
    for (const auto& tensor : net.net.tensors()) {
      // The weight of a norm is the only vector of that name.
      if (tensor.dimensions.size() != 1 || !tensor.name.ends_with(".weight")) continue;
      groups_.emplace_back(tensor.dimensions[0].parts()[0].group);
      const std::int64_t channels = net.net[groups_.back()].extent;
      running_.push_back({at::zeros({channels}), at::ones({channels})});
    }
  }

  subfed::index_set nodes(const subfed::draw_request& where) const override {
    return subfed::prefix::paper()(where);
  }

  std::unique_ptr<client_side> client(const local_training& own) const override {
    if (running_.empty()) return method::client(own);
    return std::make_unique<tracking_client>(settings().absent, scale(own.key.capacity.value()),
                                             moments_of(own.part));
  }

  network_moments moments_of(const subfed::submodel& part) const override {
    network_moments out;
    for (std::size_t n = 0; n < running_.size(); ++n) {
      const at::Tensor held = channels_of(part, n);
      out.push_back(
          {running_[n].mean.index_select(0, held), running_[n].variance.index_select(0, held)});
    }
    return out;
  }

  bool reads_cohort() const override { return !running_.empty(); }
  /// The mean over the holders of a channel, each counting the same; without one it stays.
  void end_round(std::span<const local_training> cohort, const tensor_list&) override {
    for (std::size_t n = 0; n < running_.size(); ++n) {
      const at::Tensor holders = at::zeros({running_[n].mean.size(0)}, at::kDouble);
      const at::Tensor mean = at::zeros_like(holders), variance = at::zeros_like(holders);
      for (const local_training& t : cohort) {
        const at::Tensor held = channels_of(t.part, n);
        const std::vector<at::Tensor> own = t.side->results();
        holders.index_add_(0, held, at::ones({held.size(0)}, at::kDouble));
        mean.index_add_(0, held, own[2 * n].to(at::kDouble));
        variance.index_add_(0, held, own[2 * n + 1].to(at::kDouble));
      }
      const auto averaged = [&](const at::Tensor& sum, const at::Tensor& before) {
        return at::where(holders.gt(0), (sum / holders).to(at::kFloat), before);
      };
      running_[n] = {averaged(mean, running_[n].mean), averaged(variance, running_[n].variance)};
    }
  }

  tensor_map state() const override {
    tensor_map out;
    for (std::size_t n = 0; n < running_.size(); ++n) {
      out[fmt::format("mean.{}", n)] = running_[n].mean;
      out[fmt::format("variance.{}", n)] = running_[n].variance;
    }
    return out;
  }
  void restore(const tensor_map& kept) override {
    for (std::size_t n = 0; n < running_.size(); ++n) {
      const at::IntArrayRef shape = running_[n].mean.sizes();
      running_[n] = {expected(kept, fmt::format("mean.{}", n), shape, at::kFloat).clone(),
                     expected(kept, fmt::format("variance.{}", n), shape, at::kFloat).clone()};
    }
  }

 private:
  /// The channels of batch norm layer number n that a part has, in its order.
  at::Tensor channels_of(const subfed::submodel& part, std::size_t n) const {
    const subfed::index_set& held = part[groups_[n]];
    return at::tensor(std::vector<std::int64_t>(held.begin(), held.end()), at::kLong);
  }

  // Of each batch norm layer; none where statistics are measured.
  std::vector<subfed::group_id> groups_;
  network_moments running_;
};

}  // namespace

made heterofl(const options& settings, const architecture& described) {
  return std::make_unique<heterofl_method>(settings, described);
}

}  // namespace trainer::methods
