// SPDX-License-Identifier: MIT
/// A client that trains in widths: FjORD's side of a method, for what any scheme has sent. [FjORD, 3.1,
/// 3.2]
#pragma once

#include <algorithm>
#include <subfed/adapt/torch.hpp>
#include <subfed/draw.hpp>
#include <subfed/systems/distillation.hpp>
#include <subfed/systems/nested.hpp>
#include <subfed/systems/ordered_dropout.hpp>
#include <utility>

#include "../torch_runtime.hpp"
#include "list.hpp"
#include "narrowed_network.hpp"

namespace trainer::methods {

/// D_P: uniform over --widths, or over the capacities that clients have.
inline subfed::width_distribution widths_of(const options& settings) {
  std::vector<subfed::capacity> widths = settings.widths;
  if (widths.empty()) {
    for (const auto& c : settings.cohort.mix.classes) {
      widths.push_back(c.capacity.value() / settings.server_scale);
    }
    std::sort(widths.begin(), widths.end(),
              [](const auto& a, const auto& b) { return a.value() < b.value(); });
    const auto same = [](const auto& a, const auto& b) { return a.value() == b.value(); };
    widths.erase(std::unique(widths.begin(), widths.end(), same), widths.end());
  }
  return subfed::width_distribution(std::move(widths));
}

/// In every step a width p is drawn, and of each group the first ceil(p K) channels that the client
/// holds are trained. With --distillation they learn from all that it holds, which learns the labels
/// in the same step.
class ordered_client : public client_side {
 public:
  /// Keeps references.
  ordered_client(const options& settings, const architecture& described,
                 const subfed::width_distribution& widths)
      : settings_(settings), described_(described), widths_(widths) {}

  at::Tensor gradient(const local_training& own, const batch& samples) override {
    const subfed::submodel width = width_of_step(own, samples.step);
    const bool widest = width.size() == own.part.size();
    std::int64_t flops = widest || settings_.distillation ? own.flops_of_part : 0;
    if (!widest) flops += flops_of(own, width);
    made(flops);
    at::Tensor teacher;
    if (widest || settings_.distillation) {
      teacher = own.network->forward(samples.inputs, pass_of(own.part));
      const at::Tensor loss = masked_loss(teacher, samples, settings_.absent);
      loss.backward();
      if (widest) return loss.detach();
    }
    const narrowed_network narrow(*own.network, described_, width);
    const at::Tensor student = narrow.network().forward(samples.inputs, pass_of(width));
    const at::Tensor loss = settings_.distillation
                                ? distil(student, teacher.detach(), samples)
                                : masked_loss(student, samples, settings_.absent);
    if (!settings_.distillation) loss.backward();
    narrow.hand_gradients_over();
    return loss.detach();
  }

 private:
  /// A submodel of what the client holds.
  subfed::submodel width_of_step(const local_training& own, std::uint64_t step) const {
    const subfed::ordered_dropout drawn{widths_, subfed::width_for::submodel, step};
    const auto first = [&](const subfed::draw_request& where) {
      subfed::draw_request whole = where;
      whole.extent = described_.net[described_.net.find_group(where.group)].extent;
      const std::int64_t kept = drawn(whole).size();
      return subfed::index_set::prefix(where.extent, (std::min)(kept, where.extent));
    };
    return subfed::draw(subfed::local_model(own.part), first, own.key);
  }

  /// Multiply-adds of a width: as many nodes of the server's model cost as much.
  std::int64_t flops_of(const local_training& own, const subfed::submodel& width) const {
    const auto as_many = [&](const subfed::draw_request& where) {
      return subfed::index_set::prefix(where.extent,
                                       width.extent(described_.net.find_group(where.group)));
    };
    return described_.work.count(subfed::draw(described_.net, as_many, own.key));
  }

  /// Each hidden layer's result times 1 / p, as all clients of the trainer that hold a part have it.
  forward_pass pass_of(const subfed::submodel& part) const {
    const subfed::group_id last = described_.last;
    const auto all = static_cast<double>(described_.net[last].extent);
    const double scale = settings_.scaler ? all / static_cast<double>(part.extent(last)) : 1;
    return {norm_mode::batch, nullptr, scale, nullptr};
  }

  /// The loss of a narrow width that learns from the widest, and its gradient. Absent classes are
  /// masked in both.
  at::Tensor distil(const at::Tensor& student, const at::Tensor& teacher, const batch& samples) {
    const at::Tensor rows = samples.targets.ne(no_target).nonzero().squeeze(1);
    const auto counted = [&](const at::Tensor& of_all) {
      return rows.size(0) == of_all.size(0) ? of_all : of_all.index_select(0, rows);
    };
    const at::Tensor own = counted(masked_logits(student, samples, settings_.absent));
    const at::Tensor own_values = own.detach().to(at::kCPU).contiguous();
    const at::Tensor their_values =
        counted(masked_logits(teacher, samples, settings_.absent)).to(at::kCPU).contiguous();
    const at::Tensor labels = counted(samples.targets).to(at::kCPU).contiguous();
    const at::Tensor gradient = at::empty_like(own_values);
    const double loss = subfed::distillation_loss<float>(
        own_values, their_values,
        {labels.data_ptr<std::int64_t>(), static_cast<std::size_t>(labels.numel())},
        settings_.distilled, gradient);
    own.backward(gradient.to(own.device()));
    return at::full({}, loss, own.options()).detach();
  }

  const options& settings_;
  const architecture& described_;
  const subfed::width_distribution& widths_;
};

}  // namespace trainer::methods
