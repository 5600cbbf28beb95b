// SPDX-License-Identifier: MIT
/// Operations of a forward pass, by the rules of the papers.
#pragma once

#include <subfed/cost/detail/counts.hpp>
#include <subfed/layers/linear.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// The cost of one operation of each kind. The default counts multiply-adds: each weight of a
/// convolution or linear layer once per position, each product of an attention once, nothing else.
struct cost_rule {
  std::int64_t convolution = 1;    ///< per weight and position
  std::int64_t linear = 1;         ///< per weight and position
  std::int64_t bias = 0;           ///< per element and position
  std::int64_t attention = 1;      ///< per product of two elements
  std::int64_t normalization = 0;  ///< per input element
  std::int64_t pooling = 0;        ///< per input element
  std::int64_t elementwise = 0;    ///< an element

  static constexpr cost_rule multiply_adds() { return {}; }
  /// [Rolex, Table 7]: one per multiply-add of a convolution, 4 per input element of batch norm, 2
  /// in out for linear layers without their bias.
  static constexpr cost_rule rolex() {
    cost_rule rule;
    rule.linear = 2;
    rule.normalization = 4;
    return rule;
  }
  /// [FedDrop, Tables 6-9]: weights and biases once per position, one per input element of pooling,
  /// one per element for state updates of a recurrent layer.
  static constexpr cost_rule feddrop_tables() {
    cost_rule rule;
    rule.bias = 1;
    rule.pooling = 1;
    rule.elementwise = 1;
    return rule;
  }
  /// [FedDrop, Eq. 9 and 10]: 2 (K^2 C C' + C) H W, C out of C' channels, pooling nothing.
  static constexpr cost_rule feddrop_equations() {
    cost_rule rule;
    rule.convolution = 2;
    rule.linear = 2;
    rule.bias = 2;
    return rule;
  }
};

/// The operations of one forward pass of one sample. A model does not know the size of images or
/// texts, so each operation is listed with its positions: how often its tensor or dimension is
/// used.
///
///   workload work(net);
///   work.convolution(conv1, 28 * 28).pooling(c1, 28 * 28).linear(fc);
///   work.count(sub);                          // multiply-adds of a client
///   work.count(sub, cost_rule::rolex());      // by the rule of a paper
class workload {
 public:
  enum class kind {
    convolution,
    transposed_convolution,
    linear,
    attention,
    normalization,
    pooling,
    elementwise
  };

  struct operation {
    workload::kind kind;
    std::vector<dimension> elements;  ///< of the weight, or of the input
    std::vector<dimension> bias;      ///< empty when there is none
    std::int64_t positions;
    std::int64_t bias_positions;
  };

  explicit workload(model net) : net_(std::move(net)) {}

  /// An ordinary, grouped or depthwise convolution with `positions` output places.
  workload& convolution(const weight_and_bias& layer, std::int64_t positions) {
    return add(kind::convolution, layer, positions);
  }
  /// Each weight is used once per input place, each bias once per output place.
  workload& transposed_convolution(const weight_and_bias& layer, std::int64_t input_positions,
                                   std::int64_t output_positions) {
    return add(kind::transposed_convolution, layer, input_positions, output_positions);
  }
  /// A linear layer, or gates of a recurrent one, at `positions` places or time steps. An embedding
  /// is a look-up and is not listed.
  workload& linear(const weight_and_bias& layer, std::int64_t positions = 1) {
    return add(kind::linear, layer, positions);
  }
  /// Scores or weighted values of an attention: `heads` elements (of all query heads together) for
  /// each of `pairs` of a query and a key. Scores and values are two of these.
  workload& attention(const dimension& heads, std::int64_t pairs) {
    return add({kind::attention, {heads}, {}, pairs, 0});
  }
  /// Channels, or features, at `positions` input places.
  workload& normalization(const dimension& channels, std::int64_t positions = 1) {
    return add({kind::normalization, {channels}, {}, positions, 0});
  }
  workload& pooling(const dimension& channels, std::int64_t positions) {
    return add({kind::pooling, {channels}, {}, positions, 0});
  }
  /// Activations, residual additions, state updates of a recurrent layer.
  workload& elementwise(const dimension& elements, std::int64_t positions = 1) {
    return add({kind::elementwise, {elements}, {}, positions, 0});
  }

  std::span<const operation> operations() const noexcept { return operations_; }

  /// Operations of one sample by a rule, one number per operation.
  ///
  /// Throws  error for a submodel of another model, or a rule that counts a negative number.
  std::vector<std::int64_t> counts(const submodel& part, const cost_rule& rule = {}) const {
    check_parent(part);
    std::vector<std::int64_t> out;
    for (const operation& o : operations_) {
      out.push_back(times(elements(part, o.elements), o.positions, price(o.kind, rule)));
      if (o.bias.empty()) continue;
      const std::int64_t biases = times(elements(part, o.bias), o.bias_positions, rule.bias);
      out.back() = detail::cost_sum(out.back(), biases);
    }
    return out;
  }

  /// Operations of one sample by a rule.
  ///
  /// Throws  as counts.
  std::int64_t count(const submodel& part, const cost_rule& rule = {}) const {
    std::int64_t n = 0;
    for (const std::int64_t c : counts(part, rule)) n = detail::cost_sum(n, c);
    return n;
  }

  /// Elements that convolutions and linear layers write for one sample: what training keeps for the
  /// backward pass, by the count of [FedDrop, Table 4]. It needs the output positions, so
  /// transposed convolutions are not counted.
  ///
  /// Throws  error for a submodel of another model.
  std::int64_t features(const submodel& part) const {
    check_parent(part);
    std::int64_t n = 0;
    for (const operation& o : operations_) {
      if (o.kind != kind::convolution && o.kind != kind::linear) continue;
      n = detail::cost_sum(n, detail::cost_product(detail::held(part, o.elements[0]), o.positions));
    }
    return n;
  }

 private:
  workload& add(kind what, const weight_and_bias& layer, std::int64_t positions) {
    return add(what, layer, positions, positions);
  }
  workload& add(kind what, const weight_and_bias& layer, std::int64_t positions,
                std::int64_t bias_positions) {
    return add({what, net_[layer.weight].dimensions,
                layer.bias ? net_[*layer.bias].dimensions : std::vector<dimension>(), positions,
                bias_positions});
  }
  workload& add(operation o) {
    for (const std::int64_t n : {o.positions, o.bias_positions}) {
      if (n < 0) {
        detail::fail("subfed: cost: an operation at " + std::to_string(n) + " positions");
      }
    }
    for (const dimension& d : o.elements) net_.extent(d);  // refuses groups of another model
    operations_.push_back(std::move(o));
    return *this;
  }
  void check_parent(const submodel& part) const {
    if (!(part.parent() == net_)) {
      detail::fail("subfed: cost: the submodel is of another model than the workload");
    }
  }
  static std::int64_t elements(const submodel& part, const std::vector<dimension>& dimensions) {
    std::int64_t n = 1;
    for (const dimension& d : dimensions) n = detail::cost_product(n, detail::held(part, d));
    return n;
  }
  static std::int64_t times(std::int64_t n, std::int64_t positions, std::int64_t count) {
    if (detail::not_negative("what a rule counts", count) == 0) return 0;
    return detail::cost_product(detail::cost_product(n, positions), count);
  }
  static std::int64_t price(kind what, const cost_rule& rule) {
    switch (what) {
      case kind::convolution:
      case kind::transposed_convolution:
        return rule.convolution;
      case kind::linear:
        return rule.linear;
      case kind::attention:
        return rule.attention;
      case kind::normalization:
        return rule.normalization;
      case kind::pooling:
        return rule.pooling;
      default:
        return rule.elementwise;
    }
  }

  model net_;
  std::vector<operation> operations_;
};

}  // namespace subfed::inline v0
