// SPDX-License-Identifier: MIT
#include <subfed/systems/distillation.hpp>

#include <support/checks.hpp>
#include <support/views.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
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

TEST_CASE("any temperature: from the teacher's largest logit to squared distances of the logits") {
  // T -> 0: T (u - w) at the teacher's largest logit, u and w being distances from the largest.
  // T -> infinity: half the variance of the differences. A class with -inf is in no softmax.
  constexpr double none = -std::numeric_limits<double>::infinity();
  const std::vector<double> student{1, 2, 4, none}, teacher{2, 1, 0, none};
  const tensor_view<const double> s(student.data(), {1, 4}), q(teacher.data(), {1, 4});
  const std::vector<std::int64_t> label{0};
  const double half_variance = (1.0 + 1 + 16) / 3 / 2 - (4.0 / 3) * (4.0 / 3) / 2;
  for (const double t : {1e4, 1e6, 1e9, 1e12, 1e160, 1e300}) {
    CAPTURE(t);
    std::vector<double> gradient(4);
    const double loss = distillation_loss<double>(s, q, label, {.alpha = 1, .temperature = t},
                                                  tensor_view<double>(gradient.data(), {1, 4}));
    CHECK(gradient[3] == 0);
    const double rest = 10 / t + 1e-9;
    CHECK(loss == doctest::Approx(half_variance).epsilon(rest));
    for (std::size_t k = 0; k < 3; ++k) {
      const double apart = student[k] - teacher[k] - 4.0 / 3;
      CHECK(gradient[k] == doctest::Approx(apart / 3).epsilon(rest));
    }
  }
  for (const double t : {1e-3, 1e-160, 1e-300, 1e-308}) {
    CAPTURE(t);
    std::vector<double> gradient(4);
    const double loss = distillation_loss<double>(s, q, label, {.alpha = 1, .temperature = t},
                                                  tensor_view<double>(gradient.data(), {1, 4}));
    CHECK(gradient[3] == 0);
    CHECK(loss / t == doctest::Approx(3));
    CHECK(gradient[0] / t == doctest::Approx(-1));
    CHECK(gradient[1] == 0);
    CHECK(gradient[2] / t == doctest::Approx(1));
  }
}

TEST_CASE("a part that weighs nothing does not count, even where it is infinite") {
  constexpr double none = -std::numeric_limits<double>::infinity();
  const std::vector<double> student{none, 0, 0}, teacher{0, 1, 2};
  const tensor_view<const double> s(student.data(), {1, 3}), q(teacher.data(), {1, 3});
  std::vector<double> gradient(3);
  const tensor_view<double> out(gradient.data(), {1, 3});
  CHECK(distillation_loss<double>(s, q, std::vector<std::int64_t>{1}, {.alpha = 0}, out) ==
        doctest::Approx(std::log(2.0)));
  CHECK(gradient == std::vector<double>{0, -0.5, 0.5});
  const std::vector<double> without{none, 0, std::log(3.0)};  // 1/4 and 3/4
  const tensor_view<const double> w(without.data(), {1, 3});
  CHECK(distillation_loss<double>(s, w, std::vector<std::int64_t>{0}, {.alpha = 1}, out) ==
        doctest::Approx(0.25 * std::log(0.5) + 0.75 * std::log(1.5)));
  CHECK(gradient[0] == 0);
  CHECK(gradient[1] == doctest::Approx(0.25));
  CHECK(gradient[2] == doctest::Approx(-0.25));
}

TEST_CASE("what classes add to the largest logit is not lost beside it") {
  const std::vector<double> large{1e17, 1e17, 0}, other{1e17, 0, 1e17};
  const tensor_view<const double> s(large.data(), {1, 3}), q(other.data(), {1, 3});
  const std::vector<std::int64_t> label{0};
  CHECK(distillation_loss<double>(s, q, label, {.alpha = 0}) == doctest::Approx(std::log(2.0)));
  CHECK(distillation_loss<double>(s, s, label, {.alpha = 1}) == 0);
}

TEST_CASE("half and bfloat16 need no qualified name") {
  const std::vector<double> z{1, 2, 4}, y{2, 1, 0};
  const auto loss = [&]<class T>(T) {
    std::vector<T> student(z.begin(), z.end()), teacher(y.begin(), y.end()), gradient(3);
    return distillation_loss<T>(
        tensor_view<const T>(student.data(), {1, 3}), tensor_view<const T>(teacher.data(), {1, 3}),
        std::vector<std::int64_t>{0}, {}, tensor_view<T>(gradient.data(), {1, 3}));
  };
  CHECK(loss(subfed::half()) == loss(0.0));
  CHECK(loss(subfed::bfloat16()) == loss(0.0));
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
