// SPDX-License-Identifier: MIT
/// [FjORD] Theorem 1 by numbers: a network of two linear layers trained with ordered dropout on the
/// outputs of a matrix A gives, cut to its first b hidden nodes, the best approximation of A of
/// rank b, for every b at once. Without ordered dropout only the whole network is good. Ends with 1
/// when the theorem does not hold.
#include <subfed/adapt/eigen.hpp>
#include <subfed/subfed.hpp>
#include <subfed/systems.hpp>

#include <Eigen/Dense>
#include <cstdio>

#include "common/program.hpp"

namespace {

constexpr Eigen::Index rows = 6, columns = 7, hidden_nodes = 6;  // K = min(m, n)

/// Orthonormal columns from random numbers.
Eigen::MatrixXd orthonormal(Eigen::Index size, const char* purpose) {
  subfed::random_stream stream(1, 0, 0, purpose);
  Eigen::MatrixXd m(size, size);
  for (double& x : m.reshaped()) x = 2 * stream.next_unit() - 1;
  return Eigen::MatrixXd(Eigen::HouseholderQR<Eigen::MatrixXd>(m).householderQ());
}

struct network {
  subfed::model net;
  subfed::group_id hidden = net.group("hidden", hidden_nodes);
  subfed::tensor_id u = net.tensor("u", {rows, hidden});
  subfed::tensor_id v = net.tensor("v", {hidden, columns});
  Eigen::MatrixXd u_values{rows, hidden_nodes}, v_values{hidden_nodes, columns};
};

/// Minimises E ||F_p(x) - A x||^2. For x uniform on the unit ball E[x x'] is a multiple of the unit
/// matrix, so the expectation over x is ||U_b V_b - A||^2 but for a factor; widths are drawn.
network train(const Eigen::MatrixXd& a, const subfed::width_distribution& widths) {
  network out;
  subfed::random_stream stream(2, 0, 0, "start");
  for (double& x : out.u_values.reshaped()) x = 0.5 * (2 * stream.next_unit() - 1);
  for (double& x : out.v_values.reshaped()) x = 0.5 * (2 * stream.next_unit() - 1);
  for (std::uint64_t step = 0; step < 12000; ++step) {
    const auto part = subfed::draw(
        out.net, subfed::ordered_dropout{widths, subfed::width_for::submodel, step}, {.seed = 3});
    const auto b = part.extent(out.hidden);
    Eigen::MatrixXd u(rows, b), v(b, columns);
    subfed::slice(out.u_values, part[out.u], u);
    subfed::slice(out.v_values, part[out.v], v);
    const Eigen::MatrixXd apart = u * v - a;
    const Eigen::MatrixXd of_u = apart * v.transpose(), of_v = u.transpose() * apart;
    u -= 0.1 * of_u;
    v -= 0.1 * of_v;
    subfed::scatter(u, part[out.u], out.u_values);
    subfed::scatter(v, part[out.v], out.v_values);
  }
  return out;
}

int run() {
  Eigen::VectorXd singular(hidden_nodes);
  singular << 3, 2.5, 2, 1.5, 1, 0.5;  // K different ones
  const Eigen::MatrixXd left = orthonormal(rows, "left"), right = orthonormal(columns, "right");
  const auto best = [&](Eigen::Index b) -> Eigen::MatrixXd {
    return left.leftCols(b) * singular.head(b).asDiagonal() * right.leftCols(b).transpose();
  };
  const Eigen::MatrixXd a = best(hidden_nodes);

  const network ordered = train(a, subfed::width_distribution::uniform(hidden_nodes));
  const network plain = train(a, subfed::width_distribution({1.0}));
  const auto cut = [](const network& n, Eigen::Index b) -> Eigen::MatrixXd {
    return n.u_values.leftCols(b) * n.v_values.topRows(b);
  };

  std::printf("distance of the first b hidden nodes' map from A (Frobenius)\n\n");
  std::printf("   b   best of rank b   ordered dropout   without   from the best map\n");
  bool holds = true, plain_differs = false;
  for (Eigen::Index b = 1; b <= hidden_nodes; ++b) {
    const double least = (best(b) - a).norm();
    const double with = (cut(ordered, b) - a).norm();
    const double without = (cut(plain, b) - a).norm();
    const double from_best = (cut(ordered, b) - best(b)).norm();
    std::printf("%4d %16.6f %17.6f %9.4f %19.1e\n", static_cast<int>(b), least, with, without,
                from_best);
    holds = holds && from_best < 1e-6;
    plain_differs = plain_differs || without > least + 0.1;
  }
  std::printf("\nTheorem 1 %s.\n", holds ? "holds" : "DOES NOT HOLD");
  return holds && plain_differs ? 0 : 1;
}

}  // namespace

int main() { return common::run_program("ordered_dropout_svd", run); }
