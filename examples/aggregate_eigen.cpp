// SPDX-License-Identifier: MIT
/// Federated linear regression on Eigen matrices: clients of different capacity train the columns that
/// they hold by gradient descent, and the server averages them.
#include <Eigen/Dense>
#include <subfed/adapt/eigen.hpp>
#include <subfed/subfed.hpp>

#include <cstdio>

int main() {
  constexpr int features = 8;
  subfed::model net;
  const auto inputs = net.group("inputs", features);
  const auto weight = net.tensor("weight", {1, inputs});

  // y = X w for a known w, made of Philox numbers, so that the output is the same everywhere.
  subfed::random_stream numbers(7, 0, 0, "regression data");
  const auto any = [&] { return numbers.next_unit() - 0.5; };
  const Eigen::MatrixXd x = Eigen::MatrixXd::NullaryExpr(64, features, any);
  const Eigen::VectorXd truth = Eigen::VectorXd::LinSpaced(features, 1, features);
  const Eigen::VectorXd y = x * truth;

  Eigen::MatrixXd global = Eigen::MatrixXd::Zero(1, features);
  for (unsigned round = 0; round < 400; ++round) {
    subfed::selective_average<double> mean(net);
    for (unsigned client = 0; client < 3; ++client) {
      const double capacity = client == 0 ? 1.0 : 0.5;
      const auto sub = subfed::draw(net, subfed::rolling{.client_phase = 4},
                                    {.round = round, .client = client, .capacity = capacity});
      const auto& held = sub[inputs];
      Eigen::MatrixXd w(1, held.size()), own(64, held.size());
      subfed::slice(global, sub[weight], w);
      subfed::slice(x, {subfed::index_set::full(64), held},
                    own);  // the data's columns, the same way
      // The share explained by columns that the client lacks comes from the global model.
      const Eigen::VectorXd rest = y - x * global.transpose() + own * w.transpose();
      for (int step = 0; step < 5; ++step) {
        w -= 0.02 * (own * w.transpose() - rest).transpose() * own;
      }
      mean.add(sub, {w});
    }
    mean.finish({global});
  }
  std::printf("estimated");
  for (int i = 0; i < features; ++i) std::printf(" %.3f", global(0, i));
  std::printf("\n");
  if (std::fflush(stdout) == 0) return 0;
  std::perror("The output could not be written");
  return 1;
}
