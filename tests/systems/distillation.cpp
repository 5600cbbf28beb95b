// SPDX-License-Identifier: MIT
#include <subfed/systems/distillation.hpp>

#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

using subfed::distillation_loss;
using subfed::tensor_view;
using support::message_of;

namespace {

/// softmax(z / t), in long double and without a shift.
std::vector<long double> probabilities(const double* z, std::size_t classes, double t) {
  std::vector<long double> out(classes);
  long double sum = 0;
  for (std::size_t k = 0; k < classes; ++k) {
    out[k] = std::exp(static_cast<long double>(z[k]) / static_cast<long double>(t));
    sum += out[k];
  }
  for (long double& p : out) p /= sum;
  return out;
}

}  // namespace

TEST_CASE(
    "alpha 0 is the cross entropy, alpha 1 the divergence from the teacher, times T squared") {
  support::seeded random(4);
  for (int trial = 0; trial < 40; ++trial) {
    constexpr std::size_t samples = 3, classes = 4;
    std::vector<double> student(samples * classes), teacher(samples * classes);
    for (double& z : student) z = 6 * random.unit() - 3;
    for (double& z : teacher) z = 6 * random.unit() - 3;
    const std::vector<std::int64_t> labels{random.between(0, 3), random.between(0, 3),
                                           random.between(0, 3)};
    const double alpha = random.one_in(3) ? 0 : random.one_in(2) ? 1 : random.unit();
    const double t = 0.5 + 3 * random.unit();
    long double expected = 0;
    for (std::size_t b = 0; b < samples; ++b) {
      const auto p = probabilities(&student[b * classes], classes, t);
      const auto q = probabilities(&teacher[b * classes], classes, t);
      const auto plain = probabilities(&student[b * classes], classes, 1);
      long double divergence = 0;
      for (std::size_t k = 0; k < classes; ++k) divergence += q[k] * std::log(q[k] / p[k]);
      const long double hard = -std::log(plain[static_cast<std::size_t>(labels[b])]);
      expected += ((1 - static_cast<long double>(alpha)) * hard +
                   static_cast<long double>(alpha * t * t) * divergence) /
                  samples;
    }
    const tensor_view<const double> s(student.data(), {3, 4}), q(teacher.data(), {3, 4});
    std::vector<double> gradient(samples * classes);
    const double loss = distillation_loss<double>(s, q, labels, {alpha, t},
                                                  tensor_view<double>(gradient.data(), {3, 4}));
    CHECK(loss == doctest::Approx(static_cast<double>(expected)).epsilon(1e-12));
    CHECK(loss == distillation_loss<double>(s, q, labels, {alpha, t}));
    for (std::size_t i = 0; i < student.size(); ++i) {
      const double before = student[i], step = 1e-6;
      student[i] = before + step;
      const double up = distillation_loss<double>(s, q, labels, {alpha, t});
      student[i] = before - step;
      const double down = distillation_loss<double>(s, q, labels, {alpha, t});
      student[i] = before;
      CHECK(std::fabs(gradient[i] - (up - down) / (2 * step)) < 1e-7);
    }
  }
}

TEST_CASE("a student that is its teacher has no divergence, even where probabilities vanish") {
  const std::vector<float> z{1000, -1000, 0, 5, 5, 5};
  const tensor_view<const float> view(z.data(), {2, 3});
  CHECK(distillation_loss<float>(view, view, std::vector<std::int64_t>{0, 1}) == 0);
}

TEST_CASE("what is out of range is refused by name") {
  std::vector<double> z(4, 0.0), gradient(4, 2.0);
  const tensor_view<const double> view(z.data(), {2, 2}), row(z.data(), {1, 2});
  const std::vector<std::int64_t> labels{0, 1};
  CHECK(message_of([&] { distillation_loss<double>(view, view, labels, {.alpha = 1.5}); }) ==
        "subfed: distillation_loss: alpha is 1.5, expected in [0, 1]");
  CHECK(message_of([&] {
          distillation_loss<double>(view, view, labels, {.alpha = 1, .temperature = 0});
        }) == "subfed: distillation_loss: the temperature is 0, expected a positive number");
  CHECK(message_of([&] {
          distillation_loss<double>(view, view, std::vector<std::int64_t>{0, 2}, {},
                                    tensor_view<double>(gradient.data(), {2, 2}));
        }) == "subfed: distillation_loss: sample 1 has the label 2, expected in [0, 2)");
  CHECK(message_of([&] { distillation_loss<double>(view, row, labels); }) ==
        "subfed: distillation_loss: the teacher tensor has shape (1, 2), expected (2, 2)");
  CHECK(gradient == std::vector<double>(4, 2.0));
}
