// SPDX-License-Identifier: MIT
#include "federation.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <subfed/adapt/torch.hpp>
#include <subfed/average_cohort.hpp>
#include <subfed/coverage.hpp>
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/submodel.hpp>
#include <utility>

#include "architecture.hpp"
#include "evaluation.hpp"
#include "local_training.hpp"
#include "network.hpp"

namespace trainer {
namespace {

class stopwatch {
 public:
  /// Adds the time since the last call, or since the start, to a sum.
  void lap(double& sum) {
    const auto now = std::chrono::steady_clock::now();
    sum += std::chrono::duration<double>(now - since_).count();
    since_ = now;
  }

 private:
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

/// One client's turn in one round.
struct turn {
  const client* who;
  subfed::submodel part;
  std::shared_ptr<pre_resnet> network;
  double loss = 0;
};

/// Server and rules of one method.
class server {
 public:
  server(const method& which, const options& settings)
      : method_(which),
        settings_(settings),
        capacities_(settings.capacity_values()),
        described_(describe(server_channels())),
        network_(described_.channels(subfed::submodel::full(described_.net))) {
    check_match(network_, described_);
    start(network_, settings.seed);
  }

  const architecture& described() const { return described_; }
  const pre_resnet& network() const { return network_; }

  /// What a client holds of the server's model.
  subfed::capacity share_of(const client& who) const {
    return method_.common_share ? subfed::capacity(1) : who.capacity;
  }

  turn cut(const client& who, std::uint64_t round) const {
    subfed::submodel part = subfed::draw(
        described_.net, method_.scheme,
        {.seed = settings_.seed, .round = round, .client = who.number, .capacity = share_of(who)});
    auto network = std::make_shared<pre_resnet>(described_.channels(part));
    subfed::slice<float>(network_.tensors(), part, network->tensors());
    return {&who, std::move(part), std::move(network)};
  }

  /// Averages every parameter over the clients that hold it; of the output layer a client counts for
  /// the rows of its labels only.
  void average(const std::vector<turn>& turns) {
    std::vector<subfed::update<float>> updates;
    for (const turn& t : turns) {
      const subfed::index_set labels(described_.net[described_.classes].extent, t.who->labels);
      updates.push_back({t.part.restricted(described_.classes, labels), t.network->tensors()});
    }
    subfed::average_cohort<float>(described_.net, updates, network_.tensors());
  }

 private:
  channel_counts server_channels() const {
    return method_.common_share ? narrowed(full_size(), method_.common_share(capacities_))
                                : full_size();
  }

  const method& method_;
  const options& settings_;
  std::vector<subfed::capacity> capacities_;
  architecture described_;
  pre_resnet network_;
};

holdings summarise(const subfed::coverage& seen, subfed::group_id drawn, bool any_client) {
  const auto nodes = seen.counts(drawn);
  return {any_client, seen.summary(), {nodes.begin(), nodes.end()}};
}

}  // namespace

double learning_rate(const options& settings, std::int64_t round) {
  double rate = settings.lr;
  for (const double at : settings.decay_at) {
    if (static_cast<double>(round) >= at * static_cast<double>(settings.rounds)) rate *= 0.1;
  }
  return rate;
}

method_result run(const method& which, const options& settings, const federation& all,
                  pool& workers, const std::function<void(const round_report&)>& report) {
  server central(which, settings);
  const architecture& described = central.described();
  subfed::coverage seen(described.net), seen_by_partial(described.net);
  bool any_partial = false;
  std::int64_t numbers_sent = 0;

  method_result out;
  out.method = which.name;
  out.is_bound = static_cast<bool>(which.common_share);
  out.server_parameters = described.net.size();
  out.drawn_group = described.net[described.stream.back()].name;
  training_plan plan{settings.seed, settings.local_epochs, settings.batch,
                     settings.lr,   settings.momentum,     settings.weight_decay};

  double loss_since = 0;
  std::int64_t rounds_since = 0;
  stopwatch clock;
  double elsewhere = 0;
  for (std::int64_t r = 0; r < settings.rounds; ++r) {
    const auto round = static_cast<std::uint64_t>(r);
    plan.lr = learning_rate(settings, r);
    const auto cohort = draw_cohort(settings.seed, round, settings.clients, settings.participation);

    clock.lap(elsewhere);
    std::vector<turn> turns;
    for (const std::uint64_t number : cohort) {
      turns.push_back(central.cut(all.clients[static_cast<std::size_t>(number)], round));
    }
    clock.lap(out.seconds.cutting);

    // The longest turns first, so that no worker is left alone with one at the end.
    std::vector<turn*> by_size;
    for (turn& t : turns) by_size.push_back(&t);
    std::stable_sort(by_size.begin(), by_size.end(),
                     [](const turn* a, const turn* b) { return a->part.size() > b->part.size(); });
    workers.run(by_size.size(), [&](std::size_t i) {
      turn& t = *by_size[i];
      t.network->to(all.device);
      t.loss = train(*t.network, all.train, *t.who, central.share_of(*t.who).value(), round, plan);
      t.network->to(at::kCPU);
    });
    clock.lap(out.seconds.training);

    central.average(turns);
    clock.lap(out.seconds.averaging);

    round_report news{r + 1, 0, {}};
    for (const turn& t : turns) {
      news.train_loss += t.loss / static_cast<double>(turns.size());
      numbers_sent += 2 * t.part.size();
      seen.record(t.part);
      if (central.share_of(*t.who).value() < 1) {
        seen_by_partial.record(t.part);
        any_partial = true;
      }
    }
    seen.end_round();
    seen_by_partial.end_round();
    loss_since += news.train_loss;
    ++rounds_since;

    if ((r + 1) % settings.eval_every == 0 || r + 1 == settings.rounds) {
      clock.lap(elsewhere);
      pre_resnet copy(described.channels(subfed::submodel::full(described.net)));
      const auto from = central.network().tensors();
      const auto to = copy.tensors();
      for (std::size_t t = 0; t < to.size(); ++t) to[t].copy_(from[t]);
      copy.to(all.device);
      news.on_test = evaluate(copy, all.train, all.test, all.clients, workers);
      out.history.push_back({r + 1, *news.on_test, loss_since / static_cast<double>(rounds_since)});
      loss_since = 0;
      rounds_since = 0;
      clock.lap(out.seconds.evaluating);
    }
    report(news);
  }

  for (const client& c : all.clients) {
    const auto share =
        narrowed(described.channels(subfed::submodel::full(described.net)), central.share_of(c));
    out.client_parameters +=
        static_cast<double>(describe(share).net.size()) / static_cast<double>(all.clients.size());
  }
  out.megabytes_per_round = static_cast<double>(numbers_sent) * sizeof(float) / 1e6 /
                            static_cast<double>(settings.rounds);
  out.by_all = summarise(seen, described.stream.back(), true);
  out.by_partial = summarise(seen_by_partial, described.stream.back(), any_partial);
  return out;
}

}  // namespace trainer
