// SPDX-License-Identifier: MIT
#include "liars.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <subfed/adapt/torch.hpp>
#include <subfed/average/clip_update.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/philox.hpp>

#include "random_order.hpp"

namespace trainer {
namespace {

/// The part of a model that a client was sent.
tensor_list part_of(const tensor_list& sent, const local_training& own) {
  tensor_list out;
  for (const at::Tensor& t : own.network->tensors()) out.push_back(at::empty_like(t));
  subfed::slice<float>(sent, own.part, out);
  return out;
}

}  // namespace

bool is_liar(std::uint64_t client, const options& settings) {
  std::vector<std::uint64_t> order(static_cast<std::size_t>(settings.cohort.clients));
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  const auto count =
      static_cast<std::size_t>(settings.liars * static_cast<double>(order.size()) + 1e-9);
  subfed::random_stream stream(settings.seed(), 0, 0, "clients that lie");
  draw_to_front(order, count, stream);
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(count);
  return std::find(order.begin(), end, client) != end;
}

void tell_lies(std::span<local_training> cohort, const tensor_list& sent, const options& settings) {
  if (settings.liars == 0) return;
  const at::NoGradGuard no_grad;
  const double factor = settings.told == lie::flipped ? -settings.lie_factor : settings.lie_factor;
  for (local_training& own : cohort) {
    if (own.network == nullptr || !is_liar(own.who->number, settings)) continue;
    const tensor_list before = part_of(sent, own);
    const tensor_list now = own.network->tensors();
    for (std::size_t t = 0; t < now.size(); ++t) {
      now[t].copy_(before[t] + factor * (now[t] - before[t]));
    }
  }
}

void clip(std::span<local_training> cohort, const tensor_list& sent, const options& settings) {
  if (settings.against == defense::none) return;
  const at::NoGradGuard no_grad;
  for (local_training& own : cohort) {
    if (own.network == nullptr) continue;
    const tensor_list before = part_of(sent, own);
    subfed::clip_update<float>(own.part, before, settings.clip_bound, own.network->tensors());
  }
}

}  // namespace trainer
