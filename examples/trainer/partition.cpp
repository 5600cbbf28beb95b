// SPDX-License-Identifier: MIT
#include "partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "data.hpp"
#include "failure.hpp"
#include "random_order.hpp"

namespace trainer {
namespace {

/// Each client takes the labels that have the fewest clients so far; chance decides among equals.
void assign_labels(std::vector<client>& clients, const partition_plan& plan) {
  subfed::random_stream stream(plan.seed, 0, 0, "labels of the clients");
  std::vector<std::int64_t> taken(class_count, 0);
  std::vector<std::int64_t> order(class_count);
  std::iota(order.begin(), order.end(), 0);
  for (client& c : clients) {
    shuffle(order, stream);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return taken[static_cast<std::size_t>(a)] < taken[static_cast<std::size_t>(b)];
    });
    c.labels.assign(order.begin(), order.begin() + plan.labels_each);
    std::sort(c.labels.begin(), c.labels.end());
    for (const std::int64_t label : c.labels) ++taken[static_cast<std::size_t>(label)];
  }
}

/// The i-th of `parts` nearly equal parts of `total`, the longer ones first.
std::int64_t part_of(std::int64_t total, std::int64_t parts, std::int64_t i) {
  return total / parts + (i < total % parts ? 1 : 0);
}

/// The positions of a label's samples, in random order.
std::vector<std::int64_t> samples_of(std::int64_t label, std::span<const std::uint8_t> labels,
                                     std::uint64_t seed) {
  std::vector<std::int64_t> samples;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == label) samples.push_back(static_cast<std::int64_t>(i));
  }
  subfed::random_stream stream(seed, 0, static_cast<std::uint64_t>(label), "samples of a label");
  shuffle(samples, stream);
  return samples;
}

/// Deals the samples of each label to the clients that have it.
void assign_samples(std::vector<client>& clients, std::span<const std::uint8_t> labels,
                    const partition_plan& plan) {
  for (std::int64_t label = 0; label < class_count; ++label) {
    const std::vector<std::int64_t> samples = samples_of(label, labels, plan.seed);
    std::vector<std::pair<client*, std::int64_t>> holders;  // with the label's place among theirs
    for (client& c : clients) {
      const auto at = std::find(c.labels.begin(), c.labels.end(), label);
      if (at != c.labels.end()) holders.emplace_back(&c, at - c.labels.begin());
    }
    auto next = samples.begin();
    for (std::size_t h = 0; h < holders.size(); ++h) {
      const auto [holder, place] = holders[h];
      const std::int64_t share =
          part_of(static_cast<std::int64_t>(samples.size()),
                  static_cast<std::int64_t>(holders.size()), static_cast<std::int64_t>(h));
      const std::int64_t kept =
          (std::min)(share, part_of(plan.samples_each, plan.labels_each, place));
      holder->samples.insert(holder->samples.end(), next, next + kept);
      next += share;
    }
  }
}

/// A standard normal deviate: the polar method of Marsaglia and Bray.
double draw_normal(subfed::random_stream& stream) {
  while (true) {
    const double u = 2 * stream.next_unit() - 1, v = 2 * stream.next_unit() - 1;
    const double square = u * u + v * v;
    if (square > 0 && square < 1) return u * std::sqrt(-2 * std::log(square) / square);
  }
}

/// A number in (0, 1].
double draw_positive(subfed::random_stream& stream) { return 1 - stream.next_unit(); }

/// The logarithm of a gamma variate of shape a >= 1: Marsaglia and Tsang, A simple method for
/// generating gamma variables (ACM TOMS 26, 2000).
double draw_log_gamma(double a, subfed::random_stream& stream) {
  const double d = a - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double x = draw_normal(stream);
    if (1 + c * x <= 0) continue;
    const double log_v = 3 * std::log1p(c * x), v = std::exp(log_v);
    if (std::log(draw_positive(stream)) < 0.5 * x * x + d - d * v + d * log_v) {
      return std::log(d) + log_v;
    }
  }
}

/// alpha times the logarithm of a gamma variate of shape alpha, or for alpha >= 1 the logarithm itself:
/// below 1 a variate of alpha is one of alpha + 1 times U^(1 / alpha), whose logarithm is beyond a
/// double's range for the smallest alphas.
double draw_scaled_log_gamma(double alpha, subfed::random_stream& stream) {
  return alpha < 1 ? alpha * draw_log_gamma(alpha + 1, stream) + std::log(draw_positive(stream))
                   : draw_log_gamma(alpha, stream);
}

/// In proportion to a draw from Dir(alpha, .. alpha); the largest is 1.
std::vector<double> dirichlet_shares(std::size_t count, double alpha,
                                     subfed::random_stream& stream) {
  std::vector<double> out;
  for (std::size_t i = 0; i < count; ++i) out.push_back(draw_scaled_log_gamma(alpha, stream));
  const double largest = *std::max_element(out.begin(), out.end());
  for (double& x : out) x = std::exp((x - largest) / (std::min)(alpha, 1.0));
  return out;
}

/// Proportions of labels from Dir(alpha, .. alpha), as far as labels are left.
class label_mixture {
 public:
  label_mixture(double alpha, subfed::random_stream stream) : scale_((std::min)(alpha, 1.0)) {
    for (double& log : scaled_logs_) log = draw_scaled_log_gamma(alpha, stream);
  }

  /// Shares the proportions out among the labels that are left. The largest of them counts 1, so
  /// that there is always one to draw.
  void renormalise(const std::vector<std::vector<std::int64_t>>& left) {
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (!left[k].empty()) largest = (std::max)(largest, scaled_logs_[k]);
    }
    for (std::size_t k = 0; k < left.size(); ++k) {
      weights_[k] = left[k].empty() ? 0 : std::exp((scaled_logs_[k] - largest) / scale_);
    }
  }

  std::size_t draw(subfed::random_stream& stream) const {
    double at = stream.next_unit() * std::accumulate(weights_.begin(), weights_.end(), 0.0);
    std::size_t last = 0;  // with a weight: rounding may leave a rest after it
    for (std::size_t k = 0; k < weights_.size(); ++k) {
      if (!(weights_[k] > 0)) continue;
      last = k;
      if (at < weights_[k]) break;
      at -= weights_[k];
    }
    return last;
  }

 private:
  double scale_;
  std::array<double, class_count> scaled_logs_{};
  std::array<double, class_count> weights_{};
};

/// Whole numbers that add up to `total`, as near to the shares as can be.
std::vector<std::int64_t> dealt(std::int64_t total, const std::vector<double>& shares) {
  std::vector<std::int64_t> out;
  double sum = 0, before = 0;
  for (const double share : shares) sum += share;
  std::int64_t given = 0;
  for (const double share : shares) {
    before += share;
    const auto upto = (std::min)(
        total,
        static_cast<std::int64_t>(std::floor(static_cast<double>(total) * before / sum + 0.5)));
    out.push_back(upto - given);
    given = upto;
  }
  out.back() += total - given;
  return out;
}

void set_labels(std::vector<client>& clients, std::span<const std::uint8_t> labels) {
  for (client& c : clients) {
    std::set<std::int64_t> met;
    for (const std::int64_t s : c.samples) met.insert(labels[static_cast<std::size_t>(s)]);
    c.labels.assign(met.begin(), met.end());
  }
}

/// Splits each label over the clients.
void split_labels(std::vector<client>& clients, std::span<const std::uint8_t> labels,
                  const partition_plan& plan) {
  const double alpha = *plan.dirichlet;
  const auto all = static_cast<std::int64_t>(labels.size());
  const std::int64_t dealt_out = (std::min)(plan.samples_each, all) * plan.clients;
  for (std::int64_t label = 0; label < class_count; ++label) {
    std::vector<std::int64_t> samples = samples_of(label, labels, plan.seed);
    const auto wanted = static_cast<std::size_t>(part_of(dealt_out, class_count, label));
    if (samples.size() > wanted) samples.resize(wanted);
    subfed::random_stream stream(plan.seed, 0, static_cast<std::uint64_t>(label),
                                 "clients' shares of a label");
    const std::vector<double> shares =
        dirichlet_shares(static_cast<std::size_t>(plan.clients), alpha, stream);
    const auto sizes = dealt(static_cast<std::int64_t>(samples.size()), shares);
    auto next = samples.begin();
    for (std::size_t c = 0; c < clients.size(); ++c) {
      clients[c].samples.insert(clients[c].samples.end(), next, next + sizes[c]);
      next += sizes[c];
    }
  }
  for (client& c : clients) {
    if (!c.samples.empty()) continue;
    client& richest = *std::max_element(
        clients.begin(), clients.end(),
        [](const client& a, const client& b) { return a.samples.size() < b.samples.size(); });
    if (richest.samples.size() < 2) break;  // there are not enough
    c.samples.push_back(richest.samples.back());
    richest.samples.pop_back();
  }
  set_labels(clients, labels);
}

/// Clients draw in turn, a sample each, so that none is better off when labels run out.
void draw_samples(std::vector<client>& clients, std::span<const std::uint8_t> labels,
                  const partition_plan& plan) {
  std::vector<std::vector<std::int64_t>> left;
  for (std::int64_t label = 0; label < class_count; ++label) {
    left.push_back(samples_of(label, labels, plan.seed));
  }
  std::vector<label_mixture> mixtures;
  std::vector<subfed::random_stream> streams;
  for (const client& c : clients) {
    mixtures.emplace_back(*plan.dirichlet, subfed::random_stream(plan.seed, 0, c.number,
                                                                 "label proportions of a client"));
    mixtures.back().renormalise(left);
    streams.emplace_back(plan.seed, 0, c.number, "labels that a client draws");
  }
  auto samples_left = static_cast<std::int64_t>(labels.size());
  for (std::int64_t turn = 0; turn < plan.samples_each; ++turn) {
    for (std::size_t c = 0; c < clients.size() && samples_left > 0; ++c, --samples_left) {
      const std::size_t label = mixtures[c].draw(streams[c]);
      clients[c].samples.push_back(left[label].back());
      left[label].pop_back();
      if (!left[label].empty()) continue;
      for (label_mixture& mixture : mixtures) mixture.renormalise(left);
    }
  }
  set_labels(clients, labels);
}

}  // namespace

std::vector<client> partition(std::span<const std::uint8_t> labels, const partition_plan& plan) {
  std::vector<client> clients(static_cast<std::size_t>(plan.clients));
  for (std::size_t c = 0; c < clients.size(); ++c) clients[c].number = c;
  if (plan.dirichlet) {
    if (!(*plan.dirichlet > 0) || !std::isfinite(*plan.dirichlet)) {
      throw failure(
          fmt::format("The alpha of a Dirichlet distribution is {}, but a positive number "
                      "is expected.",
                      *plan.dirichlet));
    }
    if (plan.by_class) {
      split_labels(clients, labels, plan);
    } else {
      draw_samples(clients, labels, plan);
    }
  } else {
    if (plan.labels_each < 1 || plan.labels_each > class_count) {
      throw failure(
          fmt::format("--labels is {}, but 1 to {} is expected.", plan.labels_each, class_count));
    }
    assign_labels(clients, plan);
    assign_samples(clients, labels, plan);
  }
  for (const client& c : clients) {
    if (c.samples.empty()) {
      throw failure(fmt::format(
          "Client {} of {} gets no sample: {} training samples are too few for that many clients.",
          c.number, clients.size(), labels.size()));
    }
  }
  return clients;
}

}  // namespace trainer
