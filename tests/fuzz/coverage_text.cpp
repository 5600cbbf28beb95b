// SPDX-License-Identifier: MIT
/// Any text as coverage of a small model: refused, or what is written again is the same text.
#include <fuzz/fuzz.hpp>
#include <subfed/coverage/text.hpp>
#include <subfed/index_set.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <string>

namespace {

const subfed::model& small_model() {
  static const subfed::model net = [] {
    subfed::model out;
    const auto a = out.group("a", 3), b = out.group("b b", 2);
    out.tensor("w", {a, b});
    out.tensor("v", {b});
    return out;
  }();
  return net;
}

const fuzz::registered coverage_text("coverage_text", [](fuzz::bytes bytes) {
  const std::string text(bytes.begin(), bytes.end());
  const subfed::model& net = small_model();
  fuzz::refused([&] {
    subfed::coverage seen = subfed::read_coverage(net, text);
    fuzz::expect(subfed::to_text(seen) == text);
    static_cast<void>(seen.summary());
    seen.record(subfed::submodel(net, {subfed::index_set(3, {0, 2}), subfed::index_set::full(2)}));
    seen.end_round();
    const std::string later = subfed::to_text(seen);
    fuzz::expect(subfed::to_text(subfed::read_coverage(net, later)) == later);
  });
  fuzz::refused(
      [&] { fuzz::expect(subfed::to_text(subfed::read_coverage_by_class(net, text)) == text); });
  fuzz::refused(
      [&] { fuzz::expect(subfed::to_text(subfed::read_parameter_coverage(net, text)) == text); });
});

}  // namespace
