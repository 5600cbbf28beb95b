// SPDX-License-Identifier: MIT
#include "check_options.hpp"

#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "failure.hpp"

namespace trainer {
namespace {

template <class T>
void require(bool holds, std::string_view option, std::string_view expected, T found) {
  if (!holds) throw failure(fmt::format("{} is {}, but {} is expected.", option, found, expected));
}
/// Written so that NaN is refused too.
void require_positive(std::string_view option, double value) {
  require(value > 0 && std::isfinite(value), option, "a positive number", value);
}
void require_not_negative(std::string_view option, double value) {
  require(value >= 0 && std::isfinite(value), option, "a number that is not negative", value);
}
void require_within(std::string_view option, std::int64_t value, std::int64_t least,
                    std::int64_t most) {
  require(value >= least && value <= most, option, fmt::format("{} to {}", least, most), value);
}
void require_at_least(std::string_view option, std::int64_t value, std::int64_t least) {
  require(value >= least, option, fmt::format("at least {}", least), value);
}

}  // namespace

void check_options(const options& o) {
  if (o.weights_by_element && o.weights != weight_rule::kept_size &&
      o.weights != weight_rule::updates && o.weights != weight_rule::both) {
    throw failure("--weight-each element needs --weighting kept-size, updates or both.");
  }
  if (o.weights_by_element && (o.divide_by == subfed::divisor::cohort || o.server_step != 1)) {
    throw failure(
        "--weight-each element divides by the weights of an element's holders and takes the "
        "whole step: it cannot be used with --average cohort or a --server-step other than 1.");
  }

  if (o.fixed_sums && (o.weights_by_element || o.device != "cpu")) {
    throw failure(fmt::format("--sums fixed-point cannot be used with {}.",
                              o.weights_by_element ? "--weight-each element" : "--device cuda"));
  }
  require(o.sums_bound >= 0x1p-20 && o.sums_bound <= 0x1p100, "--sums-bound",
          "a number from 2^-20 to 2^100", o.sums_bound);

  require(o.liars >= 0 && o.liars < 1, "--liars", "at least 0 and below 1", o.liars);
  require_not_negative("--lie-factor", o.lie_factor);
  require_positive("--clip-bound", o.clip_bound);
  require(o.trim >= 0 && o.trim <= 0.5, "--trim", "0 to 0.5", o.trim);
  if ((o.liars > 0 || o.against != defense::none) && o.device != "cpu") {
    throw failure("--liars and --defense cannot be used with --device cuda.");
  }
  const bool by_order = o.against == defense::median || o.against == defense::trimmed_mean;
  if (by_order && (o.weights_by_element || o.fixed_sums || o.server_step != 1 ||
                   o.divide_by == subfed::divisor::cohort || o.server != server_rule::none)) {
    throw failure(
        "--defense median and trimmed-mean take the place of the average: they cannot be used "
        "with --weight-each element, --sums fixed-point, --average cohort, --server-step or "
        "--server-optimizer.");
  }

  require_at_least("--clients", o.cohort.clients, 1);
  require(o.cohort.clients <= 1'000'000, "--clients", "at most 1000000", o.cohort.clients);
  require(o.cohort.participation > 0 && o.cohort.participation <= 1, "--participation",
          "more than 0 and at most 1", o.cohort.participation);
  require_at_least("--cohort-rounds", o.cohort.cohort_rounds, 1);
  require(o.server_scale >= 1 && std::isfinite(o.server_scale), "--server-scale",
          "a number of at least 1", o.server_scale);
  require_within("--labels", o.labels, 1, 10);
  if (o.dirichlet) require_positive("--dirichlet", *o.dirichlet);
  require_at_least("--samples", o.samples, 1);

  require_within("--width", o.width, 1, 64);
  require_within("--vocabulary", o.vocabulary, 2, 1'000'000);
  require_at_least("--rounds", o.rounds, 1);
  require(o.rounds <= 10'000'000, "--rounds", "at most 10000000", o.rounds);
  require_at_least("--local-epochs", o.local_epochs, 1);
  require_at_least("--batch", o.batch, 1);
  require_positive("--lr", o.lr);
  for (const double at : o.decay_at) require(at >= 0 && at <= 1, "--decay-at", "0 to 1", at);
  require(o.momentum >= 0 && o.momentum < 1, "--momentum", "at least 0 and below 1", o.momentum);
  require_not_negative("--weight-decay", o.weight_decay);

  require_positive("--server-step", o.server_step);
  require_not_negative("--server-lr", o.server_lr);
  require(o.server_momentum >= 0 && o.server_momentum < 1, "--server-momentum",
          "at least 0 and below 1", o.server_momentum);

  require(o.window_step != 0, "--step", "a number that is not 0", o.window_step);
  if (o.overlap) {
    require(*o.overlap >= 0 && *o.overlap <= 1, "--overlap", "0 to 1", *o.overlap);
  }
  require_at_least("--members", o.members, 0);
  for (std::size_t w = 1; w < o.widths.size(); ++w) {
    require(o.widths[w - 1].value() < o.widths[w].value(), "--widths", "an ascending list",
            fmt::format("{} after {}", o.widths[w].value(), o.widths[w - 1].value()));
  }
  require(o.distilled.alpha >= 0 && o.distilled.alpha <= 1, "--alpha", "0 to 1", o.distilled.alpha);
  require_positive("--temperature", o.distilled.temperature);
  require(o.flops_ratio > 0 && o.flops_ratio <= 1, "--flops-ratio", "more than 0 and at most 1",
          o.flops_ratio);
  require_not_negative("--proximal", o.proximal);
  if (o.statistics == norm_statistics::running && o.device != "cpu") {
    throw failure("--batch-norm running cannot be used with --device cuda.");
  }

  require_at_least("--eval-every", o.eval_every, 1);
  require_at_least("--checkpoint-every", o.checkpoint_every, 0);
  require_at_least("--threads", o.threads, 1);
  require(o.threads <= 1024, "--threads", "at most 1024", o.threads);
  try {
    const subfed::cohort_model probe(o.cohort);
  } catch (const subfed::error& error) {
    throw failure(error.what());
  }
}

}  // namespace trainer
