// SPDX-License-Identifier: MIT
#include "server_step.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <subfed/adapt/torch.hpp>
#include <subfed/systems/server_optimizer.hpp>
#include <utility>

#include "checkpoint.hpp"

namespace trainer {
namespace {

template <class Rule>
class step_by : public server_step {
 public:
  step_by(const subfed::model& net, Rule rule) : optimizer_(net, std::move(rule)) {}

  void begin(const tensor_list& globals) override { optimizer_.begin(globals); }
  void finish(const subfed::held_elements& held, const tensor_list& globals) override {
    optimizer_.finish(held, globals);
  }
  tensor_map state() override {
    tensor_map out;
    for_each_moment([&](const std::string& name, std::span<double> values) {
      out[name] = at::tensor(at::ArrayRef<double>(values.data(), values.size()), at::kDouble);
    });
    return out;
  }
  void restore(const tensor_map& kept) override {
    for_each_moment([&](const std::string& name, std::span<double> values) {
      const auto size = static_cast<std::int64_t>(values.size());
      const at::Tensor& from = expected(kept, name, {size}, at::kDouble);
      std::copy_n(from.data_ptr<double>(), size, values.begin());
    });
  }

 private:
  template <class F>
  void for_each_moment(F&& f) {
    for (std::size_t t = 0; t < optimizer_.parent().tensors().size(); ++t) {
      f(fmt::format("first.{}", t), optimizer_.first_moment(subfed::tensor_id(t)));
      f(fmt::format("second.{}", t), optimizer_.second_moment(subfed::tensor_id(t)));
    }
  }

  subfed::server_optimizer<float, Rule> optimizer_;
};

template <class Rule>
std::unique_ptr<server_step> made(const options& settings, const subfed::model& net, Rule rule) {
  if (settings.server_lr > 0) rule.lr = settings.server_lr;
  return std::make_unique<step_by<Rule>>(net, rule);
}

}  // namespace

std::unique_ptr<server_step> make_server_step(const options& settings, const subfed::model& net) {
  switch (settings.server) {
    case server_rule::sgd:
      return made(settings, net, subfed::server_sgd{.momentum = settings.server_momentum});
    case server_rule::adagrad:
      return made(settings, net, subfed::server_adagrad{});
    case server_rule::adam:
      return made(settings, net, subfed::server_adam{.beta1 = settings.server_momentum});
    case server_rule::yogi:
      return made(settings, net, subfed::server_yogi{.beta1 = settings.server_momentum});
    default:
      return nullptr;
  }
}

}  // namespace trainer
