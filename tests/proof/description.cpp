// SPDX-License-Identifier: MIT
#include <subfed/proof/description.hpp>

#include <proof/networks.hpp>
#include <subfed/proof/detail/parts_table.hpp>
#include <support/checks.hpp>
#include <support/views.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

using proof_networks::named_views;
using proof_networks::network;
using proof_networks::numbers;
using proof_networks::views;
using subfed::binding;
using subfed::dimension;
using subfed::group_id;
using subfed::prove_description;
using subfed::tensor_id;
using subfed::verdict;
using subfed::detail::parts_table;
using support::message_of;

namespace {

/// The description with other dimensions for some tensors.
subfed::model with_dimensions(
    const subfed::model& net,
    const std::vector<std::pair<std::string, std::vector<dimension>>>& changes) {
  subfed::model out;
  for (const auto& g : net.groups()) out.group(g.name, g.extent, g.cut);
  for (const auto& t : net.tensors()) {
    std::vector<dimension> dimensions = t.dimensions;
    for (const auto& [name, other] : changes) {
      if (name == t.name) dimensions = other;
    }
    out.tensor(t.name, dimensions, t.role);
  }
  return out;
}

bool mentions(const std::string& text, const std::string& words) {
  return text.find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("right descriptions are proven, up to what has no effect") {
  for (const network& of : proof_networks::all()) {
    INFO(of.name);
    const auto proof = prove_description<double>(of.net, of.forward);
    INFO(describe(proof));
    CHECK(proof.verdict() == verdict::right);
    CHECK(proof.broken.empty());
    CHECK(proof.rounding < 1e-12);
    CHECK(proof.runs > 0);
  }
}

TEST_CASE("right descriptions are proven in float") {
  const network of = proof_networks::residual();
  const auto forward = [&](const subfed::tensor_views<const float>& given) {
    subfed::tensors<double> wide(of.net);
    std::size_t t = 0;
    for (const auto& from : given) {
      const auto& to = wide[tensor_id(t++)];
      for (std::int64_t i = 0; i < from.size(); ++i) {
        to.data_handle()[i] = static_cast<double>(from.data_handle()[i]);
      }
    }
    std::vector<float> out;
    for (const double y : of.forward(subfed::submodel::full(of.net), wide)) {
      out.push_back(static_cast<float>(y));
    }
    return out;
  };
  CHECK(prove_description<float>(of.net, forward).verdict() == verdict::right);
}

TEST_CASE("a batch norm that is tied to another group of equal width is named, and its group") {
  const network of = proof_networks::residual();
  const dimension a = of.net.find_group("a"), b = of.net.find_group("b");
  const auto wrong = with_dimensions(of.net, {{"bn2.weight", {a}},
                                              {"bn2.bias", {a}},
                                              {"bn2.running_mean", {a}},
                                              {"bn2.running_var", {a}}});
  const auto proof = prove_description<double>(wrong, of.forward);
  INFO(describe(proof));
  CHECK(proof.verdict() == verdict::wrong);
  REQUIRE(proof.broken.size() == 2);
  CHECK(proof.broken[0].change > 1e-3);
  REQUIRE(proof.broken[0].advice.size() == 1);
  CHECK(proof.broken[0].advice[0] ==
        "leave dimension 0 of bn2.weight, bn2.bias, bn2.running_mean, bn2.running_var out of it");
  REQUIRE(proof.broken[1].advice.size() == 1);
  CHECK(proof.broken[1].advice[0] ==
        "bind dimension 0 of bn2.weight, bn2.bias, bn2.running_mean, bn2.running_var as b");
  CHECK(mentions(describe(proof), "wrong: 2 of 3 groups, "));
  CHECK(mentions(describe(proof), "\n  b  4 nodes: conv2.weight, conv3.weight\n"));
  CHECK(mentions(describe(proof), "\n    bind dimension 0 of bn2.weight, "));
}

TEST_CASE("repeat for block after a flatten is found, with what is right") {
  const network of = proof_networks::residual();
  const auto a = of.net.find_group("a");
  const dimension classes = of.net.find_group("classes");
  const auto proof = prove_description<double>(
      with_dimensions(of.net, {{"fc.weight", {classes, a.repeat(9)}}}), of.forward);
  REQUIRE(proof.broken.size() == 1);
  CHECK(proof.broken[0].group == a);
  REQUIRE(proof.broken[0].advice.size() == 1);
  CHECK(proof.broken[0].advice[0] == "describe dimension 1 of fc.weight as a x 9");
}

TEST_CASE("rows of queries, keys and values in the wrong order are found, with what is right") {
  const network of = proof_networks::attention(proof_networks::heads_are::whole);
  const auto d = of.net.find_group("d");
  const dimension rows = of.net.find_group("heads").block(2).block(3);  // by head
  const auto proof = prove_description<double>(
      with_dimensions(of.net, {{"attn.qkv.weight", {rows, d}}, {"attn.qkv.bias", {rows}}}),
      of.forward);
  REQUIRE(proof.broken.size() == 1);
  CHECK(proof.broken[0].group == of.net.find_group("heads"));
  REQUIRE(proof.broken[0].advice.size() == 1);
  CHECK(proof.broken[0].advice[0] ==
        "describe dimension 0 of attn.qkv.weight, attn.qkv.bias as 3 x heads x 2");
}

TEST_CASE("a concatenation in the wrong order is found, with what is right") {
  const network of = proof_networks::branches();
  const auto a = of.net.find_group("a"), b = of.net.find_group("b");
  const auto fuse = of.net[of.net.find_tensor("fuse.weight")].dimensions;
  const auto proof = prove_description<double>(
      with_dimensions(of.net, {{"fuse.weight", {fuse[0], subfed::concat({b, a}), 3, 3}}}),
      of.forward);
  REQUIRE(proof.broken.size() == 2);
  REQUIRE(!proof.broken[0].advice.empty());
  CHECK(proof.broken[0].advice[0] ==
        "let parts 0 and 1 of dimension 1 of fuse.weight change places");
}

TEST_CASE("a layer tied to the wrong group while another lacks it: one of each") {
  const network of = proof_networks::residual();
  const dimension a = of.net.find_group("a"), b = of.net.find_group("b");
  std::vector<std::pair<std::string, std::vector<dimension>>> swapped;
  for (const char* name : {"weight", "bias", "running_mean", "running_var"}) {
    swapped.push_back({std::string("bn2.") + name, {a}});
    swapped.push_back({std::string("bn3.") + name, {b}});
  }
  const auto proof = prove_description<double>(with_dimensions(of.net, swapped), of.forward);
  REQUIRE(proof.broken.size() == 2);
  REQUIRE(proof.broken[0].advice.size() == 1);
  CHECK(proof.broken[0].advice[0] ==
        "leave dimension 0 of bn2.weight, bn2.bias, bn2.running_mean, bn2.running_var out of it, "
        "and bind dimension 0 of bn3.weight, bn3.bias, bn3.running_mean, bn3.running_var as a");
}

TEST_CASE("a group that no tensor uses, one that is too small, one that is to stay in order") {
  network of = proof_networks::mlp();
  of.net.group("forgotten", 3);
  auto proof = prove_description<double>(of.net, of.forward);
  CHECK(proof.verdict() == verdict::wrong);
  REQUIRE(proof.unused.size() == 1);
  CHECK(mentions(describe(proof), "forgotten  3 nodes: no tensor"));

  const network other = proof_networks::mlp();
  const auto h1 = other.net.find_group("h1");
  proof = prove_description<double>(other.net, other.forward, {.in_order = {h1}});
  CHECK(proof.verdict() == verdict::not_shown);
  CHECK(proof.not_permuted == std::vector<group_id>{h1});
  CHECK(mentions(describe(proof), "was left in its order"));
}

TEST_CASE("what a fresh network hides is not taken for proven") {
  const network of = proof_networks::residual();
  const dimension a = of.net.find_group("a");
  auto values = subfed::random_values<double>(of.net, 1);
  for (const char* name : {"bn3.weight", "bn3.bias"}) {
    const auto& v = values[of.net.find_tensor(name)];
    for (std::int64_t i = 0; i < v.size(); ++i) v(i) = 0;
  }
  const auto proof = prove_description<double>(of.net, values, of.forward);
  CHECK(proof.verdict() == verdict::not_shown);
  CHECK(mentions(describe(proof), "a: the outputs do not depend on dimension 0 of bn3.weight (a)"));
  // Here the description is wrong, and only the bindings that are not shown say so.
  const auto wrong = with_dimensions(of.net, {{"conv3.weight", {4, of.net.find_group("b"), 3, 3}}});
  CHECK(prove_description<double>(wrong, values, of.forward).verdict() == verdict::not_shown);
  CHECK(prove_description<double>(wrong, of.forward).verdict() == verdict::wrong);
}

TEST_CASE(
    "a tensor that the network does not read is listed, unless it is known to have no effect") {
  network of = proof_networks::mlp();
  const auto extra = of.net.tensor("unread", {of.net.find_group("h1")});
  auto proof = prove_description<double>(of.net, of.forward);
  CHECK(proof.verdict() == verdict::not_shown);
  CHECK(proof.not_shown == std::vector<binding>{{extra, 0, 0}});
  proof = prove_description<double>(of.net, of.forward, {.without_effect = {extra}});
  CHECK(proof.verdict() == verdict::right);
  of.net.tensor("whole", {4});
  proof = prove_description<double>(of.net, of.forward);
  CHECK(proof.whole ==
        std::vector<tensor_id>{of.net.find_tensor("fc3.bias"), of.net.find_tensor("whole")});
}

TEST_CASE("where random values leave a layer dead, others are tried") {
  const network of = proof_networks::mlp();
  int dead = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const auto once = prove_description<double>(of.net, of.forward, {.seed = seed, .draws = 1});
    const auto proof = prove_description<double>(of.net, of.forward, {.seed = seed, .draws = 20});
    CHECK(proof.verdict() == verdict::right);
    CHECK((once.verdict() == verdict::right) == (once.runs == proof.runs));
    dead += once.verdict() == verdict::not_shown;
  }
  CHECK(dead > 0);
  CHECK(dead < 20);
}

TEST_CASE("a forward function that shows nothing is refused") {
  const subfed::model net = proof_networks::mlp().net;
  const auto refused = [&](auto&& forward) {
    return message_of([&] { static_cast<void>(prove_description<double>(net, forward)); });
  };
  CHECK(refused([](const views&) { return numbers{}; }) ==
        "subfed: prove_description: the forward function gave no outputs, which can show nothing");
  CHECK(refused([](const views&) {
          return numbers{0, 0};
        }) ==
        "subfed: prove_description: the forward function gave 2 outputs, all zero, which can show "
        "nothing");
  CHECK(refused([](const views&) {
          return numbers{1, std::nan("")};
        }) == "subfed: prove_description: the forward function gave NaN");
  double calls = 0;
  CHECK(refused([&](const views&) { return numbers{calls += 1}; }) ==
        "subfed: prove_description: the forward function gave other outputs the second time, for "
        "the same tensors; is dropout on, or does it update statistics?");
  calls = 0;
  CHECK(refused([&](const views&) { return numbers(static_cast<std::size_t>(calls += 1), 1.0); }) ==
        "subfed: prove_description: the forward function gave 2 outputs, and 1 before");
}

TEST_CASE("outputs that become infinite or NaN are another function") {
  const network of = proof_networks::mlp();
  int calls = 0;
  const auto proof =
      prove_description<double>(of.net,
                                [&](const views& all) {
                                  numbers y = of.forward(subfed::submodel::full(of.net), all);
                                  if (++calls > 2) y[0] = std::nan("");
                                  return y;
                                },
                                {.advice_runs = 0});
  CHECK(proof.broken.size() == 2);
}

TEST_CASE("a wrong description never passes: bindings of right ones changed at random") {
  support::seeded random(20240229);
  const std::vector<network> networks = proof_networks::all();
  int wrong = 0;
  int tried = 0;
  while (wrong < 1000 && ++tried < 20000) {
    const network& of = networks[static_cast<std::size_t>(
        random.between(0, static_cast<std::int64_t>(networks.size()) - 1))];
    parts_table table(of.net);
    std::string what;
    // One part of one dimension, or of two tensors: another group, whole, another form, other places.
    for (std::int64_t left = random.between(1, 2); left > 0; --left) {
      const auto t = static_cast<std::size_t>(
          random.between(0, static_cast<std::int64_t>(of.net.tensors().size()) - 1));
      const auto& info = of.net.tensors()[t];
      if (info.dimensions.empty()) continue;
      const auto r = static_cast<std::size_t>(
          random.between(0, static_cast<std::int64_t>(info.dimensions.size()) - 1));
      auto& parts = table.all({tensor_id(t), r, 0});
      const auto p =
          static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(parts.size()) - 1));
      const binding at{tensor_id(t), r, p};
      const std::int64_t elements = table.elements(table[at]);
      if (parts.size() > 1 && random.one_in(3)) {
        std::swap(parts[0], parts[p]);
      } else if (random.one_in(4)) {
        table.unbind(at);
      } else {
        const auto g = static_cast<std::size_t>(
            random.between(0, static_cast<std::int64_t>(of.net.groups().size()) - 1));
        const std::int64_t nodes = of.net.groups()[g].extent;
        if (elements % nodes != 0) continue;
        const std::int64_t times = elements / nodes;
        const std::int64_t copies = random.between(1, times);
        if (times % copies != 0) continue;
        table[at] = {g, 0, copies, times / copies};
      }
      what += info.name + " ";
    }
    const subfed::model changed = table.made();
    if (changed == of.net) continue;
    // Never right: at best, a group has lost all its tensors, or what was changed binds nothing that can
    // be cut (classes), which is no mistake.
    bool matters = false;
    for (std::size_t t = 0; t < changed.tensors().size(); ++t) {
      const auto& before = of.net.tensors()[t].dimensions;
      const auto& after = changed.tensors()[t].dimensions;
      for (std::size_t r = 0; r < after.size(); ++r) {
        const auto cuts = [&](const dimension& d) {
          for (const auto& part : d.parts()) {
            if (part.group != dimension::no_group &&
                of.net.groups()[part.group].cut == subfed::cut::by_scheme) {
              return true;
            }
          }
          return false;
        };
        matters = matters || (!(before[r] == after[r]) && (cuts(before[r]) || cuts(after[r])));
      }
    }
    if (!matters) continue;
    ++wrong;
    const auto proof = prove_description<double>(
        changed, of.forward, {.seed = random.next(), .orders = 2, .advice_runs = 0});
    CHECK_MESSAGE(proof.verdict() == verdict::wrong, of.name << ": " << what << "\n"
                                                             << subfed::describe(changed));
  }
  CHECK(wrong == 1000);
}
