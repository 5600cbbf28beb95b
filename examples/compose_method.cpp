// SPDX-License-Identifier: MIT
/// A method that nobody has named, put together from parts: FedRolex's rolling windows, FjORD's
/// widths and self-distillation within them, weights by what a client held, and Yogi at the server.
/// Ends with 1 when it does not learn.
#include <subfed/adapt/eigen.hpp>
#include <subfed/subfed.hpp>
#include <subfed/systems.hpp>

#include <Eigen/Dense>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "common/program.hpp"

namespace {

constexpr std::int64_t inputs = 8, width = 16, classes = 3, samples = 30;

struct data_set {
  Eigen::MatrixXd x{inputs, samples};
  std::vector<std::int64_t> labels;
};
/// Points around one centre per class; every client has its own.
data_set make_data(std::uint64_t who) {
  data_set out;
  subfed::random_stream centres(5, 0, 0, "centres"), own(5, 0, who, "points");
  Eigen::MatrixXd centre(inputs, classes);
  for (double& c : centre.reshaped()) c = 2 * centres.next_unit() - 1;
  for (std::int64_t s = 0; s < samples; ++s) {
    out.labels.push_back(s % classes);
    for (std::int64_t i = 0; i < inputs; ++i) {
      out.x(i, s) = centre(i, s % classes) + own.next_unit() - 0.5;
    }
  }
  return out;
}

/// v relu(w x), and what a step of gradient descent needs.
struct layers {
  Eigen::MatrixXd w, v;

  Eigen::MatrixXd hidden(const Eigen::MatrixXd& x) const { return (w * x).cwiseMax(0); }
  Eigen::MatrixXd logits(const Eigen::MatrixXd& x) const { return (v * hidden(x)).transpose(); }
  void descend(const Eigen::MatrixXd& x, const Eigen::MatrixXd& by_logits, double lr) {
    const Eigen::MatrixXd h = hidden(x);
    const Eigen::MatrixXd by_hidden =
        ((by_logits * v).transpose().array() * (h.array() > 0).cast<double>()).matrix();
    v -= lr * by_logits.transpose() * h.transpose();
    w -= lr * by_hidden * x.transpose();
  }
};

int run() {
  subfed::model net;
  const auto hidden = net.group("hidden", width);
  const auto w = net.tensor("w", {hidden, inputs});
  const auto v = net.tensor("v", {classes, hidden});
  layers server{Eigen::MatrixXd(width, inputs), Eigen::MatrixXd(classes, width)};
  subfed::random_stream start(1, 0, 0, "start");
  for (double& x : server.w.reshaped()) x = 0.6 * (start.next_unit() - 0.5);
  for (double& x : server.v.reshaped()) x = 0.6 * (start.next_unit() - 0.5);

  const subfed::rolling windows;                               // which nodes
  const auto widths = subfed::width_distribution::uniform(4);  // how many, step by step
  subfed::server_optimizer<double, subfed::server_yogi> yogi(net,
                                                             {.lr = 0.05});  // the server's step
  const auto all = subfed::index_set::full(classes);
  const data_set test = make_data(1000);
  const auto loss = [&] {
    const Eigen::MatrixXd z = server.logits(test.x);
    return subfed::masked_cross_entropy<double>(z, test.labels, all);
  };
  const double before = loss();
  for (std::uint64_t round = 0; round < 40; ++round) {
    subfed::selective_average<double> mean(net);
    for (std::uint64_t client = 0; client < 6; ++client) {
      const subfed::draw_key key{
          .seed = 7, .round = round, .client = client, .capacity = client % 2 == 0 ? 0.5 : 1.0};
      const auto held = subfed::draw(net, windows, key);
      layers own{Eigen::MatrixXd(held.extent(hidden), inputs),
                 Eigen::MatrixXd(classes, held.extent(hidden))};
      subfed::slice(server.w, held[w], own.w);
      subfed::slice(server.v, held[v], own.v);
      const data_set data = make_data(client);
      for (std::uint64_t step = 0; step < 4; ++step) {
        // The teacher: all that the client holds. It learns from the labels.
        Eigen::MatrixXd teacher = own.logits(data.x), by_logits(samples, classes);
        subfed::masked_cross_entropy<double>(teacher, data.labels, all, subfed::absent_logits::zero,
                                             by_logits);
        // The student: a window of the width of this step, from the same start, within that.
        subfed::draw_key narrow = key;
        const subfed::ordered_dropout of_step{widths, subfed::width_for::submodel, step};
        narrow.capacity = of_step.width(
            {.seed = key.seed, .round = round, .client = client, .capacity = key.capacity});
        const auto part = subfed::within(subfed::draw(net, windows, narrow), held);
        layers student{Eigen::MatrixXd(part.extent(hidden), inputs),
                       Eigen::MatrixXd(classes, part.extent(hidden))};
        own.descend(data.x, by_logits, 0.2);
        subfed::slice(own.w, part[w], student.w);
        subfed::slice(own.v, part[v], student.v);
        subfed::distillation_loss<double>(student.logits(data.x).eval(), teacher, data.labels, {},
                                          by_logits);
        student.descend(data.x, by_logits, 0.2);
        subfed::scatter(student.w, part[w], own.w);
        subfed::scatter(student.v, part[v], own.v);
      }
      mean.add(held, {own.w, own.v}, subfed::client_weight(subfed::weighting::kept_size, held, 1));
    }
    yogi.begin({server.w, server.v});
    mean.finish({server.w, server.v});
    yogi.finish(mean.held(), {server.w, server.v});
  }
  std::printf(
      "cross entropy on new data: %.3f at the start (log 3 is %.3f), %.3f after 40 rounds\n",
      before, std::log(3.0), loss());
  return loss() < 0.5 * before ? 0 : 1;
}

}  // namespace

int main() { return common::run_program("compose_method", run); }
