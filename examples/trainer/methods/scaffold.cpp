// SPDX-License-Identifier: MIT
/// SCAFFOLD: control variates, cut and averaged like parameters. [SCAFFOLD, Alg. 1, option II]
#include <fmt/format.h>

#include <subfed/adapt/torch.hpp>
#include <subfed/average/cohort.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/systems/scaffold.hpp>

#include "../checkpoint.hpp"
#include "../host_copy.hpp"
#include "homogeneous.hpp"

namespace trainer::methods {
namespace {

tensor_list zeros_like_parts(const subfed::submodel& part) {
  tensor_list out;
  for (std::size_t t = 0; t < part.parent().tensors().size(); ++t) {
    out.push_back(at::zeros(part.extents(subfed::tensor_id(t))));
  }
  return out;
}

/// The parts of the controls that go with the client's part of the model.
class scaffold_client : public masked_client {
 public:
  scaffold_client(absent_classes rule, double scale, tensor_list own, tensor_list server)
      : masked_client(rule, scale), own_(std::move(own)), server_(std::move(server)) {
    for (const at::Tensor& t : own_) change_.push_back(at::zeros_like(t));
  }

  void begin(const local_training& own) override { start_ = copies(own.network->tensors()); }
  at::Tensor gradient(const local_training& own, const batch& samples) override {
    const at::Tensor loss = masked_client::gradient(own, samples);
    const host_copy gradients(own.network->gradients());
    subfed::correct_gradients<float>(own.part.parent(), own_, server_, gradients.tensors());
    gradients.put_back();
    return loss;
  }
  /// `distance` is K lr of the equation, or more with momentum.
  void end(const local_training& own, double distance) override {
    const host_copy trained(own.network->tensors());
    subfed::control_change<float>(own.part.parent(), start_, trained.tensors(), server_,
                                  {.steps = 1, .lr = distance}, change_);
    for (std::size_t t = 0; t < change_.size(); ++t) own_[t] += change_[t];
  }

  std::vector<at::Tensor> results() override {
    tensor_list out = change_;
    out.insert(out.end(), own_.begin(), own_.end());
    return out;
  }

  const tensor_list& change() const { return change_; }  // c_i+ - c_i
  const tensor_list& control() const { return own_; }    // c_i+

 private:
  tensor_list own_, server_, start_, change_;
};

class scaffold_method : public homogeneous_method {
 public:
  /// Controls are means over all clients, for all rows of the output layer: so are the averages.
  weight_rule weights() const override { return weight_rule::none; }
  bool by_label_rows() const override { return false; }

  scaffold_method(const options& settings, const architecture& net)
      : homogeneous_method(settings, net),
        server_(zeros_like_parts(subfed::submodel::full(net.net))) {}

  std::unique_ptr<client_side> client(const local_training& own) const override {
    tensor_list mine = zeros_like_parts(own.part), server = zeros_like_parts(own.part);
    subfed::slice<float>(server_, own.part, server);
    if (const auto at = clients_.find(own.who->number); at != clients_.end()) {
      subfed::slice<float>(at->second, own.part, mine);
    }
    return std::make_unique<scaffold_client>(settings().absent, 1 / own.key.capacity.value(),
                                             std::move(mine), std::move(server));
  }

  bool reads_cohort() const override { return true; }
  void end_round(std::span<const local_training> cohort, const tensor_list&) override {
    std::vector<subfed::update<float>> changes;
    for (const local_training& t : cohort) {
      const auto& side = static_cast<const scaffold_client&>(*t.side);
      changes.push_back({t.part, side.change()});
      tensor_list& kept = clients_[t.who->number];
      if (kept.empty()) kept = zeros_like_parts(subfed::submodel::full(described().net));
      subfed::scatter<float>(side.control(), t.part, kept);
    }
    subfed::average_cohort<float>(described().net, changes, server_,
                                  subfed::control_options(static_cast<std::int64_t>(cohort.size()),
                                                          settings().cohort.clients));
  }

  tensor_map state() const override {
    tensor_map out;
    for (std::size_t t = 0; t < server_.size(); ++t) {
      out[fmt::format("server.{}", t)] = server_[t];
      for (const auto& [number, control] : clients_) {
        out[fmt::format("client.{}.{}", number, t)] = control[t];
      }
    }
    return out;
  }
  void restore(const tensor_map& kept) override {
    for (std::size_t t = 0; t < server_.size(); ++t) {
      server_[t].copy_(part(kept, "server", t));
    }
    clients_.clear();
    for (std::uint64_t c = 0; c < static_cast<std::uint64_t>(settings().cohort.clients); ++c) {
      if (kept.find(fmt::format("client.{}.0", c)) == kept.end()) continue;
      tensor_list& control = clients_[c];
      for (std::size_t t = 0; t < server_.size(); ++t) {
        control.push_back(part(kept, fmt::format("client.{}", c), t).clone());
      }
    }
  }
  std::optional<std::set<std::uint64_t>> remembered() const override {
    std::set<std::uint64_t> out;
    for (const auto& client : clients_) out.insert(client.first);
    return out;
  }

 private:
  const at::Tensor& part(const tensor_map& kept, const std::string& whose, std::size_t t) const {
    return expected(kept, fmt::format("{}.{}", whose, t), server_[t].sizes(), at::kFloat);
  }

  tensor_list server_;                            // c
  std::map<std::uint64_t, tensor_list> clients_;  // c_i, of those that have been asked
};

}  // namespace

made scaffold(const options& settings, const architecture& described) {
  return std::make_unique<scaffold_method>(settings, described);
}

}  // namespace trainer::methods
