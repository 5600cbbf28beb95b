// SPDX-License-Identifier: MIT
/// Whether a description is that of a network: the nodes of its groups are put in another order, which
/// must not change what the network computes.
#pragma once

#include <subfed/describe.hpp>
#include <subfed/error.hpp>
#include <subfed/model.hpp>
#include <subfed/proof/bindings.hpp>
#include <subfed/proof/detail/advice.hpp>
#include <subfed/proof/detail/parts_table.hpp>
#include <subfed/proof/detail/probe.hpp>
#include <subfed/proof/forward.hpp>
#include <subfed/proof/permuted.hpp>
#include <subfed/proof/random_values.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/tensors.hpp>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

struct proof_options {
  std::uint64_t seed = 1;
  /// Largest change of an output that is taken for rounding, as a share of the largest output; 0:
  /// 1e-9 for double, 1e-4 for float.
  double tolerance = 0;
  /// Orders that each group is put in.
  int orders = 3;
  /// Random values of the tensors, taken one after the other until each binding has shown an effect: with
  /// some, a layer after a ReLU is dead.
  int draws = 4;
  /// Groups whose nodes are not alike, so that none may take the place of another: outputs, or positions
  /// that the network numbers itself. Groups that are never cut are left as they are anyway.
  std::vector<group_id> in_order = {};
  /// Tensors that are known to have no effect on the outputs, as the bias of keys has none under a
  /// softmax; they are not listed as not shown.
  std::vector<tensor_id> without_effect = {};
  /// Runs of the network for finding out, for each wrong group, what is right; 0 for none.
  std::int64_t advice_runs = 300;
};

/// right: every binding was shown to be as described. not_shown: nothing is wrong, but of the listed
/// bindings the outputs do not tell. wrong: a sub-network of it would not be what it is taken for.
enum class verdict { right, not_shown, wrong };

/// "right", "not shown", "wrong".
constexpr std::string_view verdict_text(verdict v) noexcept {
  constexpr std::string_view names[] = {"right", "not shown", "wrong"};
  return names[static_cast<std::size_t>(v)];
}

/// A group that is not what the description says.
struct broken_group {
  group_id group;
  double change;                    ///< of the outputs, as a share of the largest
  std::vector<std::string> advice;  ///< descriptions that would be right: any one of them
};

/// What prove_description found.
struct description_proof {
  model net;
  double tolerance = 0;
  double rounding = 0;    ///< the largest change that a right group made
  std::int64_t runs = 0;  ///< of the network
  std::vector<broken_group> broken = {};
  std::vector<group_id> unused = {};        ///< groups of no tensor
  std::vector<group_id> not_permuted = {};  ///< of one node, or said to be in_order
  std::vector<binding> not_shown = {};      ///< the outputs do not depend on which node is where
  std::vector<tensor_id> whole = {};        ///< tensors that no group touches

  subfed::verdict verdict() const noexcept {
    if (!broken.empty() || !unused.empty()) return subfed::verdict::wrong;
    return not_shown.empty() && not_permuted.empty() ? subfed::verdict::right
                                                     : subfed::verdict::not_shown;
  }
};

namespace detail {

template <class T, class Forward>
class description_prover {
 public:
  description_prover(const model& net, const tensor_views<const T>& values, Forward& forward,
                     const proof_options& options)
      : net_(net), options_(options), network_("prove_description", net, values, forward) {
    out_.net = net;
    out_.tolerance = options.tolerance > 0 ? options.tolerance : default_tolerance<T>();
  }

  description_proof run() {
    for (std::size_t g = 0; g < net_.groups().size(); ++g) {
      const group_id group(g);
      const std::vector<binding> uses = bindings_of(net_, group);
      if (uses.empty()) {
        out_.unused.push_back(group);
      } else if (net_[group].cut == cut::never) {
        continue;
      } else if (net_[group].extent < 2 || keeps_order(group)) {
        out_.not_permuted.push_back(group);
      } else {
        look_at(group, uses);
      }
    }
    if (out_.broken.empty()) look_at_all();
    for (std::size_t t = 0; t < net_.tensors().size(); ++t) {
      if (is_whole(net_.tensors()[t])) out_.whole.push_back(tensor_id(t));
    }
    out_.runs = network_.runs();
    return out_;
  }
  /// With other values than those of an earlier proof: looks at what that did not show.
  description_proof go_on(description_proof earlier) {
    out_ = std::move(earlier);
    const std::vector<binding> left = std::exchange(out_.not_shown, {});
    for (std::size_t first = 0, last = 0; first < left.size(); first = last) {
      const group_id group = group_of(left[first]);
      while (last < left.size() && group_of(left[last]) == group) ++last;
      look_at(group, {left.begin() + static_cast<std::ptrdiff_t>(first),
                      left.begin() + static_cast<std::ptrdiff_t>(last)});
    }
    out_.runs += network_.runs();
    return out_;
  }

 private:
  group_id group_of(const binding& use) const {
    return group_id(net_[use.tensor].dimensions[use.dimension].parts()[use.part].group);
  }
  static bool is_whole(const model::tensor_info& tensor) {
    for (const dimension& d : tensor.dimensions) {
      for (const dimension::part& p : d.parts()) {
        if (p.group != dimension::no_group) return false;
      }
    }
    return true;
  }
  bool keeps_order(group_id group) const {
    return std::find(options_.in_order.begin(), options_.in_order.end(), group) !=
           options_.in_order.end();
  }
  std::uint64_t seed(int order) const { return options_.seed + static_cast<std::uint64_t>(order); }

  /// The group in other orders, then each of the uses by itself.
  void look_at(group_id group, const std::vector<binding>& uses) {
    double most = 0;
    for (int o = 0; o < options_.orders; ++o) {
      most = (std::max)(most, network_.change(permuted(net_, group, seed(o))));
      if (!(most <= out_.tolerance)) break;
    }
    if (most <= out_.tolerance) {
      out_.rounding = (std::max)(out_.rounding, most);
      for (const binding& use : uses) look_alone(group, use);
      return;
    }
    broken_group bad{group, most, {}};
    if (options_.advice_runs > 0) {
      adviser<probe<T, Forward>> ask(net_, group, options_.seed, out_.tolerance,
                                     options_.advice_runs, network_);
      bad.advice = ask.find();
    }
    out_.broken.push_back(std::move(bad));
  }

  /// Where one tensor's nodes can change places by themselves, that the group may is no evidence.
  void look_alone(group_id group, const binding& use) {
    const auto& known = options_.without_effect;
    if (std::find(known.begin(), known.end(), use.tensor) != known.end()) return;
    parts_table table(net_);
    const dimension::part own = table[use];
    table.unbind(group);
    table[use] = own;
    const model alone = table.made();
    for (int o = 0; o < options_.orders; ++o) {
      const submodel order = submodel::full(alone).with(group, shuffled_nodes(group, o));
      if (!(network_.change(order) <= out_.tolerance)) return;
    }
    out_.not_shown.push_back(use);
  }
  index_set shuffled_nodes(group_id group, int order) const {
    return shuffled(net_[group].extent, net_[group].name, seed(order));
  }

  /// All groups at once: what holds for each must hold together.
  void look_at_all() {
    submodel order = permuted(net_, options_.seed);
    for (const group_id g : options_.in_order) {
      order = order.with(g, index_set::full(net_[g].extent));
    }
    const double change = network_.change(order);
    if (change <= 100 * out_.tolerance) return;
    fail(
        "subfed: prove_description: each group by itself may change its order, but not all of them "
        "together: the outputs move by " +
        text(change) + " of the largest; the tolerance of " + text(out_.tolerance) +
        " may be too large");
  }

  const model& net_;
  const proof_options& options_;
  probe<T, Forward> network_;
  description_proof out_;
};

}  // namespace detail

/// Proves a description by values: for each group, a network whose nodes of that group are in another
/// order computes the same, and one in which a single tensor's are does not.
///
///   const auto proof = subfed::prove_description<double>(net, forward);
///   if (proof.verdict() != subfed::verdict::right) std::puts(describe(proof).c_str());
///
/// What it cannot see: two independent groups that are described as one (find_coarse_ties does), and
/// layers for which a sub-network is right but not the masked network (cut_differences does).
///
/// Pre     values differ from node to node, statistics included; random_values makes such.
/// Throws  error when the outputs are empty, zero or not finite, or differ from one call to the next for
///         the same tensors.
/// Cost    About as many runs of the network as there are bindings and three for each group.
template <std::floating_point T, class Forward>
requires forward_function<std::remove_reference_t<Forward>, T> description_proof
prove_description(const model& net, const tensor_views<std::type_identity_t<const T>>& values,
                  Forward&& forward, const proof_options& options = {}) {
  return detail::description_prover<T, std::remove_reference_t<Forward>>(net, values, forward,
                                                                         options)
      .run();
}
/// With random_values; with others too, where the first do not show all.
template <std::floating_point T, class Forward>
requires forward_function<std::remove_reference_t<Forward>, T> description_proof
prove_description(const model& net, Forward&& forward, const proof_options& options = {}) {
  using prover = detail::description_prover<T, std::remove_reference_t<Forward>>;
  tensors<T> values = random_values<T>(net, options.seed);
  description_proof out = prove_description<T>(net, values, forward, options);
  for (int d = 1; d < options.draws && !out.not_shown.empty(); ++d) {
    values = random_values<T>(net, options.seed + static_cast<std::uint64_t>(d));
    out = prover(net, values, forward, options).go_on(std::move(out));
  }
  return out;
}

namespace detail {

/// Two digits: the others differ from machine to machine.
inline std::string two_digits(double x) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2g", x);
  return buffer;
}

}  // namespace detail

/// The verdict, then what is wrong, with its tensors and what would be right, and what was not shown:
///
///   wrong: 1 of 3 groups, 40 runs of the network
///     a  8 nodes: conv1.weight, conv2.weight
///       in another order the outputs move by 0.4 of the largest (rounding: 1e-09)
///       bind dimension 0 of bn1.weight, bn1.bias as a
inline std::string describe(const description_proof& proof) {
  const model& net = proof.net;
  const std::vector<std::string> tied = detail::tied_texts(net);
  const auto line = [&](group_id g) {
    return detail::group_line(net[g], 0, std::to_string(net[g].extent), tied[g.number()]);
  };
  std::string out(verdict_text(proof.verdict()));
  out += ": ";
  const std::size_t wrong = proof.broken.size() + proof.unused.size();
  if (wrong != 0) out += std::to_string(wrong) + " of ";
  out += std::to_string(net.groups().size()) + (net.groups().size() == 1 ? " group" : " groups");
  out += ", " + std::to_string(proof.runs) + " runs of the network\n";
  for (const broken_group& bad : proof.broken) {
    out += line(bad.group) + "    in another order the outputs move by " +
           detail::two_digits(bad.change) +
           " of the largest (rounding: " + detail::two_digits(proof.tolerance) + ")\n";
    for (const std::string& advice : bad.advice) out += "    " + advice + "\n";
  }
  for (const group_id g : proof.unused) out += line(g);
  for (const group_id g : proof.not_permuted) {
    out += line(g) + (net[g].extent < 2 ? "    too small to be put in another order\n"
                                        : "    was left in its order\n");
  }
  for (const binding& use : proof.not_shown) {
    const auto& part = net[use.tensor].dimensions[use.dimension].parts()[use.part];
    out += "  " + net.groups()[part.group].name + ": the outputs do not depend on " +
           binding_text(net, use) + "\n";
  }
  return out;
}

}  // namespace subfed::inline v0
