// SPDX-License-Identifier: MIT
#include "server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <subfed/adapt/span.hpp>
#include <subfed/adapt/torch.hpp>
#include <subfed/average/by_element.hpp>
#include <subfed/average/cohort.hpp>
#include <subfed/average/robust.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/cuda/device_view.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <utility>

#include "failure.hpp"
#include "host_copy.hpp"
#include "liars.hpp"
#include "ranks.hpp"

namespace trainer {
namespace {

channel_counts server_channels(const named_method& which, const options& settings) {
  const channel_counts whole = full_size(settings.model, settings.width, settings.vocabulary);
  if (const auto share = which.common_share(settings)) return narrowed(whole, *share);
  return widened(whole, settings.server_scale);
}

network_variant variant_of(const named_method& which, const options& settings) {
  const bool untied = settings.untied_skips && which.name.reads("untied-skips");
  return {settings.norm, untied ? skips::untied : skips::tied};
}

/// Of the variance of first values. The layers of a Transformer are added to what goes around them:
/// with variance 2 / inputs they drown it, and SGD learns no more than how frequent words are. With
/// 1 / (3 inputs), PyTorch's own, it learns from the words before.
double share_of_variance(model_kind model) {
  return model == model_kind::transformer ? 1.0 / 6 : 1;
}

/// The pool as an executor of the library.
struct pool_executor {
  pool& workers;
  template <class F>
  void parallel_for(std::int64_t n, F&& f) const {
    workers.run(static_cast<std::size_t>(n),
                [&](std::size_t i) { f(static_cast<std::int64_t>(i)); });
  }
};

/// What the library knows of a rule: examples are the trainer's own, and by_method is another's.
subfed::weighting weighting_of(weight_rule rule) {
  switch (rule) {
    case weight_rule::kept_size:
      return subfed::weighting::kept_size;
    case weight_rule::updates:
      return subfed::weighting::updates;
    case weight_rule::both:
      return subfed::weighting::both;
    case weight_rule::none:
    case weight_rule::examples:
    case weight_rule::by_method:
      break;
  }
  return subfed::weighting::none;
}

}  // namespace

server::server(const named_method& which, const options& settings, at::Device device, pool& workers)
    : settings_(settings),
      workers_(workers),
      device_(device),
      homogeneous_(which.common_share(settings).has_value()),
      described_(describe(server_channels(which, settings), variant_of(which, settings))),
      method_(which.make(settings, described_)),
      network_(make_network(described_.channels(subfed::submodel::full(described_.net)),
                            described_.norm)),
      step_(make_server_step(settings, described_.net)) {
  if (settings.weights_by_element &&
      settings.divide_by.value_or(method_->divide_by()) == subfed::divisor::cohort) {
    throw failure(fmt::format(
        "{} divides by the weights of the whole cohort, which --weight-each element does not do; "
        "use --average holders.",
        which.name.name));
  }
  check_match(*network_, described_);
  trainer::start(*network_, settings.seed(),
                 method_->start_variance() * share_of_variance(described_.model));
  method_->start(network_->tensors());
  if (device.is_cuda()) cuda_.emplace(described_.net);
  network_->to(device);
}

void server::check_draws() const {
  for (const subfed::capacity_class& c : settings_.cohort.mix.classes) {
    subfed::draw(described_.net, scheme(), key_of(0, 0, c.capacity));
  }
}

subfed::draw_key server::key_of(std::uint64_t client, std::uint64_t round,
                                const subfed::capacity& own) const {
  const double share = homogeneous_ ? 1 : own.value() / settings_.server_scale;
  return {.seed = settings_.seed(), .round = round, .client = client, .capacity = share};
}

std::vector<local_training> server::cut(std::span<const subfed::cohort_member> cohort,
                                        const std::vector<client>& clients, std::uint64_t round) {
  const tensor_list globals = network_->tensors();
  std::vector<local_training> trainings;
  for (const subfed::cohort_member& member : cohort) {
    const subfed::draw_key key = key_of(member.client, round, member.capacity);
    trainings.push_back({&clients[static_cast<std::size_t>(member.client)], key,
                         subfed::draw(described_.net, scheme(), key)});
  }
  std::vector<double> costs;
  for (local_training& t : trainings) {
    t.flops_of_part = described_.work.count(t.part);
    costs.push_back(static_cast<double>(t.flops_of_part) *
                    static_cast<double>(t.who->samples.size()));
  }
  const std::vector<int> owners = ranks::deal(costs, ranks::count());
  workers_.run(trainings.size(), [&](std::size_t i) {
    local_training& own = trainings[i];
    own.rank = owners[i];
    if (own.rank != ranks::number() && !has_whole_cohort()) return;
    own.network = make_network(described_.channels(own.part), described_.norm);
    own.side = method_->client(own);
    if (!cuda_) subfed::slice<float>(globals, own.part, own.network->tensors());
  });
  if (cuda_) {
    std::vector<subfed::submodel> parts;
    std::vector<subfed::tensor_views<float>> locals;
    for (const local_training& t : trainings) {
      t.network->to(device_);
      parts.push_back(t.part);
      locals.push_back(subfed::cuda::device_views<float>(t.network->tensors()));
    }
    cuda_->slice(subfed::cuda::device_views<const float>(globals), parts, locals);
  }
  return trainings;
}

void server::exchange(std::span<local_training> cohort) {
  if (ranks::count() == 1) return;
  for (local_training& t : cohort) {
    ranks::broadcast(t.loss, t.rank);
    ranks::broadcast(t.flops, t.rank);
    ranks::broadcast(t.all_flops, t.rank);
    if (!has_whole_cohort()) continue;
    tensor_list all = t.network->tensors();
    for (const at::Tensor& own : t.side->results()) all.push_back(own);
    for (const at::Tensor& own : all) {
      at::Tensor whole = own.contiguous();
      ranks::broadcast(std::span(static_cast<std::byte*>(whole.data_ptr()),
                                 static_cast<std::size_t>(whole.nbytes())),
                       t.rank);
      if (!whole.is_alias_of(own)) own.copy_(whole);
    }
  }
}

void server::average(std::span<local_training> cohort) {
  const tensor_list before = copies(network_->tensors());
  if (step_) step_->begin(before);

  tell_lies(cohort, before, settings_);
  clip(cohort, before, settings_);
  std::vector<subfed::submodel> parts;
  for (const local_training& t : cohort) {
    const subfed::index_set labels(described_.net[described_.classes].extent, t.who->labels);
    const bool rows = method_->by_label_rows() && settings_.absent != absent_classes::trained &&
                      !t.who->labels.empty();
    parts.push_back(rows ? t.part.restricted(described_.classes, labels) : t.part);
    ++rounds_[t.who->number];
  }
  subfed::held_elements held;
  if (ranks::count() > 1 && !has_whole_cohort()) {
    held = average_over_ranks(parts, cohort);
  } else {
    ranks::together([&] {
      if (settings_.against == defense::median || settings_.against == defense::trimmed_mean) {
        held = robust_average(parts, cohort);
      } else {
        held = settings_.weights_by_element ? average_by_element(parts, cohort)
                                            : average_where_it_lies(parts, cohort);
      }
    });
  }

  if (step_) {
    const host_copy now(network_->tensors());
    step_->finish(held, now.tensors());
    now.put_back();
  }
  method_->end_round(cohort, before);
}

double server::weight_of(const local_training& own) {
  weight_rule rule = settings_.weights;
  if (rule == weight_rule::by_method) rule = method_->weights();
  if (rule == weight_rule::examples) return static_cast<double>(own.who->samples.size());
  return subfed::client_weight(weighting_of(rule), own.part, rounds_[own.who->number]);
}

subfed::average_options server::options_of_average(std::span<local_training> cohort) {
  subfed::average_options out{.divide_by = settings_.divide_by.value_or(method_->divide_by()),
                              .step = settings_.server_step};
  if (!settings_.fixed_sums) return out;
  double total = 0;
  for (const local_training& t : cohort) total += weight_of(t);
  out.sums = subfed::fixed_point{.bound = settings_.sums_bound,
                                 .clients = static_cast<std::int64_t>(cohort.size()),
                                 .total_weight = total};
  return out;
}

subfed::held_elements server::average_over_ranks(std::span<const subfed::submodel> parts,
                                                 std::span<local_training> cohort) {
  subfed::selective_average<float> mean(described_.net, options_of_average(cohort));
  ranks::together([&] {
    for (std::size_t c = 0; c < cohort.size(); ++c) {
      if (cohort[c].rank != ranks::number()) continue;
      const tensor_list own = cohort[c].network->tensors();
      mean.add(parts[c], subfed::tensor_views<const float>(own), weight_of(cohort[c]));
    }
  });
  ranks::all_reduce(mean);
  mean.finish(network_->tensors(), pool_executor{workers_});
  return mean.held();
}

subfed::held_elements server::average_where_it_lies(std::span<const subfed::submodel> parts,
                                                    std::span<local_training> cohort) {
  const subfed::average_options options = options_of_average(cohort);
  const tensor_list globals = network_->tensors();
  std::vector<subfed::update<float>> updates;
  for (std::size_t c = 0; c < cohort.size(); ++c) {
    const tensor_list own = cohort[c].network->tensors();
    updates.push_back(
        {parts[c],
         cuda_ ? subfed::tensor_views<const float>(subfed::cuda::device_views<const float>(own))
               : subfed::tensor_views<const float>(own),
         weight_of(cohort[c])});
  }
  subfed::held_elements held;
  if (cuda_) {
    cuda_->average(updates, subfed::cuda::device_views<float>(globals), options);
    std::vector<subfed::submodel> taken;  // a device leaves nothing out
    for (const auto& u : updates) {
      if (u.weight > 0) taken.push_back(u.sub);
    }
    held = subfed::held_elements(described_.net, taken);
  } else {
    subfed::average_cohort<float>(described_.net, updates, globals, held, options,
                                  pool_executor{workers_});
  }
  return held;
}

subfed::held_elements server::robust_average(std::span<const subfed::submodel> parts,
                                             std::span<local_training> cohort) {
  std::vector<subfed::update<float>> updates;
  for (std::size_t c = 0; c < cohort.size(); ++c) {
    const tensor_list own = cohort[c].network->tensors();
    updates.push_back({parts[c], subfed::tensor_views<const float>(own), 1});
  }
  subfed::robust_options how;
  if (settings_.against == defense::trimmed_mean) how.trim = settings_.trim;
  how.on_few = subfed::few_holders::mean;
  subfed::held_elements held;
  subfed::robust_cohort<float>(described_.net, updates, network_->tensors(), held, how,
                               pool_executor{workers_});
  return held;
}

subfed::held_elements server::average_by_element(std::span<const subfed::submodel> parts,
                                                 std::span<local_training> cohort) {
  const subfed::weighting by = weighting_of(settings_.weights);
  subfed::element_weighted_average<float> mean(described_.net);
  for (std::size_t c = 0; c < cohort.size(); ++c) {
    auto& counts = updates_.try_emplace(cohort[c].who->number, described_.net).first->second;
    counts.record(parts[c]);
    const host_copy own(cohort[c].network->tensors());
    const auto weights = subfed::element_weights(by, parts[c], counts);
    std::vector<subfed::tensor_view<const double>> views;
    for (std::size_t t = 0; t < weights.size(); ++t) {
      views.emplace_back(weights[t].data(), parts[c].extents(subfed::tensor_id(t)));
    }
    mean.add(parts[c], own.tensors(), subfed::tensor_views<const double>(views));
  }
  const host_copy globals(network_->tensors());
  mean.finish(globals.tensors());
  globals.put_back();
  return mean.held();
}

std::optional<server::part_network> server::network_of(std::uint64_t client, std::uint64_t round,
                                                       const subfed::capacity& own) const {
  const subfed::draw_key key = key_of(client, round, own);
  if (homogeneous_) return std::nullopt;
  const subfed::submodel part = subfed::draw(described_.net, scheme(), key);
  if (part.size() == described_.net.size()) return std::nullopt;
  const host_copy globals(network_->tensors());
  part_network out{make_network(described_.channels(part), described_.norm),
                   method_->scale(key.capacity.value()), part.size(), method_->moments_of(part)};
  subfed::slice<float>(globals.tensors(), part, out.network->tensors());
  out.network->to(device_);
  return out;
}

std::vector<std::shared_ptr<network>> server::evaluated_networks() const {
  const host_copy globals(network_->tensors());
  std::vector<std::shared_ptr<network>> out;
  for (const subfed::submodel& part : method_->evaluated_submodels()) {
    out.push_back(make_network(described_.channels(part), described_.norm));
    subfed::slice<float>(globals.tensors(), part, out.back()->tensors());
    out.back()->to(device_);
  }
  return out;
}

network_moments server::evaluated_moments() const {
  return method_->moments_of(subfed::submodel::full(described_.net));
}

void server::keep(checkpoint& in) const {
  const host_copy globals(network_->tensors());
  tensor_map named, rounds, updates;
  for (std::size_t t = 0; t < globals.tensors().size(); ++t) {
    named[described_.net.tensors()[t].name] = globals.tensors()[t];
  }
  for (const auto& [number, count] : rounds_) {
    rounds[std::to_string(number)] = at::full({}, static_cast<double>(count), at::kDouble);
  }
  for (const auto& [number, counts] : updates_) {
    for (std::size_t t = 0; t < described_.net.tensors().size(); ++t) {
      const auto& own = counts.of(subfed::tensor_id(t));
      at::Tensor copy = at::empty({static_cast<std::int64_t>(own.size())}, at::kInt);
      std::copy(own.begin(), own.end(), copy.data_ptr<int>());
      updates[fmt::format("{}.{}", number, t)] = copy;
    }
  }
  add(in, "", named);
  add(in, "server.rounds.", rounds);
  add(in, "server.updates.", updates);
  add(in, "method.", method_->state());
  if (step_) add(in, "optimizer.", step_->state());
}

void server::restore(const checkpoint& from, std::int64_t rounds) {
  const tensor_list globals = network_->tensors();
  for (std::size_t t = 0; t < globals.size(); ++t) {
    const std::string& name = described_.net.tensors()[t].name;
    globals[t].copy_(expected(from.tensors, name, globals[t].sizes(), at::kFloat));
  }
  // Who was asked how often follows from the options.
  rounds_.clear();
  const subfed::cohort_model cohorts(settings_.cohort);
  for (std::int64_t r = 0; r < rounds; ++r) {
    for (const auto& member : cohorts.members(static_cast<std::uint64_t>(r))) {
      ++rounds_[member.client];
    }
  }
  for (const auto& [number, count] : rounds_) {
    const std::string name = fmt::format("server.rounds.{}", number);
    const double kept = expected(from.tensors, name, {}, at::kDouble).item<double>();
    if (kept == static_cast<double>(count)) continue;
    throw failure(
        fmt::format("{} is {}, but the client was asked in {} rounds", name, kept, count));
  }
  updates_.clear();
  for (const auto& [number, count] : rounds_) {
    if (!settings_.weights_by_element) break;
    auto& counts = updates_.try_emplace(number, described_.net).first->second;
    for (std::size_t t = 0; t < described_.net.tensors().size(); ++t) {
      const std::string name = fmt::format("server.updates.{}.{}", number, t);
      const std::span<std::uint32_t> to = counts.counts(subfed::tensor_id(t));
      const auto size = static_cast<std::int64_t>(to.size());
      const int* kept = expected(from.tensors, name, {size}, at::kInt).data_ptr<int>();
      if (std::any_of(kept, kept + size, [most = count](int n) { return n < 0 || n > most; })) {
        throw failure(
            fmt::format("{} has a number outside 0 to {}, the client's rounds", name, count));
      }
      std::copy_n(kept, size, to.begin());
    }
  }
  for (const auto& [name, moment] : with_prefix(from, "optimizer.second.")) {
    if (!moment.lt(0).any().item<bool>()) continue;
    throw failure(fmt::format("optimizer.second.{} has a negative mean of squares", name));
  }
  method_->restore(with_prefix(from, "method."));
  if (const auto remembered = method_->remembered()) {
    for (const auto& [number, count] : rounds_) {
      if (remembered->contains(number)) continue;
      throw failure(fmt::format("what the method keeps of client {} is missing", number));
    }
  }
  if (step_) step_->restore(with_prefix(from, "optimizer."));
  check_all_is_used(from);
}

void server::check_all_is_used(const checkpoint& from) const {
  checkpoint again;
  keep(again);
  for (const auto& [name, tensor] : from.tensors) {
    const auto at = again.tensors.find(name);
    if (at == again.tensors.end()) {
      throw failure(fmt::format("there is a tensor {}, which this run would not write", name));
    }
    const at::Tensor &a = tensor, b = at->second.contiguous();
    if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes() ||
        (a.numel() != 0 &&
         std::memcmp(a.data_ptr(), b.data_ptr(), static_cast<std::size_t>(a.nbytes())) != 0)) {
      throw failure(fmt::format("the tensor {} is not as this run would write it", name));
    }
  }
}

}  // namespace trainer
