// SPDX-License-Identifier: MIT
#include <subfed/draw.hpp>
#include <subfed/model_slice.hpp>
#include <subfed/schemes/random_subset.hpp>
#include <subfed/submodel.hpp>

#include <support/checks.hpp>
#include <support/cohorts.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using subfed::concat;
using subfed::index_set;
using subfed::model;
using subfed::run;
using subfed::submodel;
using subfed::tensor_view;
using subfed::tensor_views;
using support::message_of;
using support::seeded;
using extents_type = std::vector<std::int64_t>;
using nodes_type = std::vector<std::int64_t>;

namespace {

/// The global index of each local position of one dimension.
nodes_type listed(const subfed::selected_dimension& d) {
  nodes_type out;
  for (const run& r : d.runs) {
    REQUIRE(r.position == static_cast<std::int64_t>(out.size()));
    for (std::int64_t i = 0; i < r.length; ++i) out.push_back(r.first + i);
  }
  REQUIRE(static_cast<std::int64_t>(out.size()) == d.local_extent);
  return out;
}

/// 0, 1, 2, .. by shape.
std::vector<float> counted(std::int64_t n) {
  std::vector<float> out(static_cast<std::size_t>(n));
  std::iota(out.begin(), out.end(), 0.0f);
  return out;
}

/// The columns that a submodel has of a tensor with one row, by slicing 0, 1, 2, ..
nodes_type sliced_columns(const submodel& sub, subfed::tensor_id t) {
  const auto extents = sub[t].global_extents();
  const auto global = counted(support::elements_of(extents));
  std::vector<float> local(static_cast<std::size_t>(support::elements_of(sub.extents(t))));
  subfed::slice(tensor_view<const float>(global.data(), extents), sub[t],
                tensor_view<float>(local.data(), sub.extents(t)));
  return {local.begin(), local.end()};
}

}  // namespace

TEST_CASE("heads that are cut inside: the same nodes of every head and of q, k and v") {
  model net;
  const auto head = net.group("head", 4);  // 2 heads of 4
  const auto qkv = net.tensor("qkv.weight", {head.repeat(2).repeat(3)});
  const auto projection = net.tensor("proj.weight", {1, head.repeat(2)});

  const submodel prefix(net, {index_set(4, {0, 1})});
  CHECK(listed(prefix[qkv].dimension(0)) == nodes_type{0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21});
  CHECK(sliced_columns(prefix, projection) == nodes_type{0, 1, 4, 5});

  const submodel rolled(net, {index_set::window(4, 3, 2)});
  CHECK(listed(rolled[qkv].dimension(0)) == nodes_type{3, 0, 7, 4, 11, 8, 15, 12, 19, 16, 23, 20});
  CHECK(sliced_columns(rolled, projection) == nodes_type{3, 0, 7, 4});
}

TEST_CASE("whole heads: a head is one node, a block of its width") {
  model net;
  const auto heads = net.group("heads", 2);
  const auto qkv = net.tensor("qkv.weight", {heads.block(4).repeat(3)});
  const auto projection = net.tensor("proj.weight", {1, heads.block(4)});
  const submodel second(net, {index_set(2, {1})});
  CHECK(listed(second[qkv].dimension(0)) == nodes_type{4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23});
  CHECK(sliced_columns(second, projection) == nodes_type{4, 5, 6, 7});
}

TEST_CASE("after a flatten, channels first, a channel is a block of columns") {
  model net;
  const auto channels = net.group("channels", 4);
  const auto first = net.tensor("first", {1, channels.block(4)});
  const auto last = net.tensor("last", {1, channels.repeat(4)});
  const auto neither = net.tensor("neither", {1, channels});
  const submodel sub(net, {index_set(4, {3, 0})});
  CHECK(sliced_columns(sub, first) == nodes_type{12, 13, 14, 15, 0, 1, 2, 3});
  CHECK(sliced_columns(sub, last) == nodes_type{3, 0, 7, 4, 11, 8, 15, 12});
  CHECK(sliced_columns(sub, neither) == nodes_type{3, 0});
}

TEST_CASE("the gates of an LSTM are four copies, not one long axis") {
  model net;
  const auto hidden = net.group("hidden", 3);
  const auto weight = net.tensor("lstm.weight_hh", {hidden.repeat(4), hidden});
  const submodel sub(net, {index_set(3, {2, 0})});
  CHECK(sub.extents(weight) == extents_type{8, 2});
  CHECK(listed(sub[weight].dimension(0)) == nodes_type{2, 0, 5, 3, 8, 6, 11, 9});
  CHECK(listed(sub[weight].dimension(1)) == nodes_type{2, 0});
}

TEST_CASE("a concatenation has its parts one after the other, each with its own set") {
  model net;
  const auto a = net.group("a", 4);
  const auto b = net.group("b", 3);
  const auto t = net.tensor("t", {1, concat({a, 2, b.block(2), a})});
  const submodel sub(net, {index_set(4, {3, 1}), index_set(3, {0, 2})});
  CHECK(sub.extents(t) == extents_type{1, 10});
  CHECK(sliced_columns(sub, t) == nodes_type{3, 1, 4, 5, 6, 7, 10, 11, 15, 13});
}

TEST_CASE("a residual add cannot be cut inconsistently: tied dimensions have the same nodes") {
  // x + f(x): what f ends in and what the next layer reads are the same group as x.
  model net;
  const auto stream = net.group("stream", 16);
  const auto middle = net.group("middle", 16);
  const auto embed = net.tensor("embed", {stream, 5});
  const auto in = net.tensor("block.in", {middle, stream});
  const auto out = net.tensor("block.out", {stream, middle});
  const auto norm = net.tensor("norm", {stream});
  const auto head = net.tensor("head", {10, stream});
  for (std::uint64_t round = 0; round < 10; ++round) {
    const auto sub = subfed::draw(net, subfed::random_subset{}, {.round = round, .capacity = 0.4});
    const auto nodes = listed(sub[embed].dimension(0));
    CHECK(nodes == nodes_type(sub[stream].begin(), sub[stream].end()));
    CHECK(listed(sub[in].dimension(1)) == nodes);
    CHECK(listed(sub[out].dimension(0)) == nodes);
    CHECK(listed(sub[norm].dimension(0)) == nodes);
    CHECK(listed(sub[head].dimension(1)) == nodes);
    CHECK(listed(sub[in].dimension(0)) == listed(sub[out].dimension(1)));
  }
}

TEST_CASE("rank 0 is one element, an empty set or group gives extent 0") {
  model net;
  const auto g = net.group("g", 3);
  const auto none = net.group("none", 0);
  const auto scalar = net.tensor("scalar", {});
  const auto matrix = net.tensor("matrix", {g, 2});
  const auto empty = net.tensor("empty", {none, g});
  const submodel sub(net, {index_set(3, {}), index_set(0, {})});
  CHECK(sub.extents(scalar).empty());
  CHECK(sub.extents(matrix) == extents_type{0, 2});
  CHECK(sub.extents(empty) == extents_type{0, 0});
  CHECK(sub.size() == 1);

  std::vector<float> global{1, 2, 3, 4, 5, 6};
  float one = 7;
  float local = 0;
  const tensor_views<float> globals{tensor_view<float>(&one, {}),
                                    tensor_view<float>(global.data(), {3, 2}),
                                    tensor_view<float>(nullptr, {0, 3})};
  const tensor_views<float> locals{tensor_view<float>(&local, {}),
                                   tensor_view<float>(nullptr, {0, 2}),
                                   tensor_view<float>(nullptr, {0, 0})};
  subfed::slice<float>({globals[0], globals[1], globals[2]}, sub, locals);
  CHECK(local == 7);
  local = 8;
  subfed::scatter<float>({locals[0], locals[1], locals[2]}, sub, globals);
  CHECK(one == 8);
  CHECK(global == std::vector<float>{1, 2, 3, 4, 5, 6});
}

TEST_CASE("shapes, selections and sizes are those of the listed indices, for any network") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    const oracle::network plan = support::random_network(random);
    const model net = support::model_of(plan);
    const auto holds = support::random_holding(random, plan);
    const submodel sub = support::submodel_of(net, holds);
    std::int64_t size = 0;
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      const subfed::tensor_id id(t);
      const auto shape = oracle::local_shape(plan, plan.tensors[t], holds);
      CHECK(sub.extents(id) == shape);
      CHECK(sub[id].global_extents() == net[id].extents);
      CHECK(sub[id].name() == net[id].name);
      size += support::elements_of(shape);
      for (std::size_t r = 0; r < plan.tensors[t].size(); ++r) {
        const auto expected = oracle::positions(plan, plan.tensors[t][r], holds);
        const auto found = sub[id].dimension(static_cast<int>(r));
        nodes_type taking(expected.size(), -1);
        for (const run& one : found.runs) {
          for (std::int64_t i = 0; i < one.length; ++i) {
            taking[static_cast<std::size_t>(one.position + i)] = one.first + i;
          }
        }
        for (std::size_t p = 0; p < expected.size(); ++p) {
          CHECK(taking[p] == (expected[p].takes_part ? expected[p].global : -1));
        }
      }
    }
    CHECK(sub.size() == size);
    for (std::size_t g = 0; g < plan.groups.size(); ++g) {
      CHECK(sub[subfed::group_id(g)] == index_set(plan.groups[g], holds.nodes[g]));
      CHECK(sub.extent(subfed::group_id(g)) == static_cast<std::int64_t>(holds.nodes[g].size()));
    }
  }
}

TEST_CASE("slice and scatter of a whole model are those of the listed indices, in any layout") {
  for (std::uint64_t seed = 0; seed < 150; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    support::cohort<float> group{random, support::random_network(random), 1,
                                 support::small_integer<float>, support::dyadic_weight};
    const auto& holds = group.clients[0].holds;
    const submodel& sub = group.clients[0].sub;
    std::vector<support::strided<float>> locals;
    std::vector<tensor_view<float>> local_views;
    for (const auto& t : group.plan.tensors) {
      locals.emplace_back(
          support::random_layout(random, oracle::local_shape(group.plan, t, holds)));
      locals.back().fill([](std::int64_t n) { return static_cast<float>(100 + n); });
    }
    for (auto& l : locals) local_views.push_back(l.view());
    const auto numbers = [&](std::size_t t) {
      return oracle::global_numbers(group.plan, group.plan.tensors[t], holds);
    };

    std::vector<std::vector<float>> expected;
    for (std::size_t t = 0; t < locals.size(); ++t) {
      expected.push_back(locals[t].elements());
      oracle::slice(group.globals[t].elements(), numbers(t), expected[t]);
    }
    subfed::slice<float>(group.global_views(), sub, local_views);
    for (std::size_t t = 0; t < locals.size(); ++t) {
      CHECK(locals[t].elements() == expected[t]);
      CHECK(locals[t].rest_untouched());
    }

    const auto before = group.elements();
    subfed::scatter<float>(local_views, sub, group.global_views());
    CHECK(group.elements() == before);  // what was cut out, put back

    for (auto& l : locals) l.fill([](std::int64_t n) { return static_cast<float>(n) - 7; });
    expected = before;
    auto added = before;
    for (std::size_t t = 0; t < locals.size(); ++t) {
      oracle::scatter(locals[t].elements(), numbers(t), expected[t]);
      const auto own = locals[t].elements();
      for (std::size_t l = 0; l < own.size(); ++l) {
        if (numbers(t)[l] >= 0) added[t][static_cast<std::size_t>(numbers(t)[l])] += own[l];
      }
    }
    subfed::scatter<float>(local_views, sub, group.global_views());
    CHECK(group.elements() == expected);
    for (std::size_t t = 0; t < before.size(); ++t) {
      group.globals[t].fill([&](std::int64_t n) { return before[t][static_cast<std::size_t>(n)]; });
    }
    subfed::scatter_add<float>(local_views, sub, group.global_views());
    CHECK(group.elements() == added);
    CHECK(group.rest_untouched());
  }
}

TEST_CASE("label rows: a restricted submodel has all shapes but only some rows take part") {
  model net;
  const auto hidden = net.group("hidden", 3);
  const auto classes = net.group("classes", 4, subfed::cut::never);
  const auto weight = net.tensor("head.weight", {classes, hidden});
  const auto bias = net.tensor("head.bias", {classes});
  const submodel whole(net, {index_set(3, {2, 0}), index_set::full(4)});
  const submodel sub = whole.restricted(classes, index_set(4, {3, 0}));
  CHECK(sub.extents(weight) == extents_type{4, 2});
  CHECK(sub.extents(bias) == extents_type{4});
  CHECK(sub.extent(classes) == 4);
  CHECK(sub.size() == whole.size());
  CHECK(sub[weight].dimension(0).runs == std::vector<run>{{0, 0, 1}, {3, 3, 1}});
  CHECK(sub.runs(classes).size() == 2);
  CHECK(sub.runs(hidden).size() == whole.runs(hidden).size());
  CHECK(whole[weight].dimension(0).runs == std::vector<run>{{0, 0, 4}});  // a new submodel

  // Restricted once more: both restrictions hold. To nodes that are not held: nothing is left.
  CHECK(sub.restricted(classes, index_set(4, {0, 1})).runs(classes).size() == 1);
  CHECK(sub.restricted(classes, index_set(4, {1, 2}))[bias].dimension(0).runs.empty());
  CHECK(sub.restricted(hidden, index_set(3, {1}))[weight].dimension(1).runs.empty());

  std::vector<float> global(12, 0);
  const std::vector<float> local(8, 5);
  subfed::scatter(tensor_view<const float>(local.data(), {4, 2}), sub[weight],
                  tensor_view<float>(global.data(), {4, 3}));
  CHECK(global == std::vector<float>{5, 0, 5, 0, 0, 0, 0, 0, 0, 5, 0, 5});
}

TEST_CASE("labels that are no classes, or are named twice, are refused") {
  model net;
  const auto classes = net.group("classes", 4, subfed::cut::never);
  const auto sub = submodel::full(net);
  CHECK(message_of([&] { sub.restricted(classes, index_set(4, {4})); }) ==
        "subfed: index_set: node 4 at position 0 is outside [0, 4)");
  CHECK(message_of([&] {
          sub.restricted(classes, index_set(4, {2, 2}));
        }) == "subfed: index_set: node 2 is repeated, at positions 0 and 1");
  CHECK(message_of([&] { sub.restricted(classes, index_set(5, {2})); }) ==
        "subfed: submodel: the restriction of group 'classes' has the extent 5, expected 4");
}

TEST_CASE("a full submodel is the model") {
  model net;
  const auto g = net.group("g", 3);
  const auto t = net.tensor("t", {g, g.block(2)});
  const auto sub = submodel::full(net);
  CHECK(sub.size() == net.size());
  CHECK(sub[t].dimension(0).is_whole());
  CHECK(sub[t].dimension(1).is_whole());
  CHECK(sub[g].is_full());
  CHECK(sub.parent() == net);
}

TEST_CASE("with replaces the set of one group and keeps the rest") {
  model net;
  const auto a = net.group("a", 3);
  const auto b = net.group("b", 4);
  const submodel sub(net, {index_set(3, {1}), index_set(4, {2, 0})}, {.seed = 1, .client = 9});
  const submodel other = sub.with(b, index_set(4, {3}));
  CHECK(other[a] == index_set(3, {1}));
  CHECK(other[b] == index_set(4, {3}));
  CHECK(sub[b] == index_set(4, {2, 0}));
  CHECK(other.origin() == sub.origin());
  CHECK(message_of([&] { sub.with(b, index_set(3, {1})); }) ==
        "subfed: submodel: the index set of group 'b' has the extent 3, expected 4");
}

TEST_CASE("with leaves a restriction of another group alone") {
  model net;
  const auto classes = net.group("classes", 4, subfed::cut::never);
  const auto hidden = net.group("hidden", 4);
  const auto restricted = submodel::full(net).restricted(classes, index_set(4, {1}));
  const auto both = restricted.with(hidden, index_set(4, {0, 2}));
  REQUIRE(both.runs(classes).size() == 1);
  CHECK(both.runs(classes)[0] == run{1, 1, 1});
}

TEST_CASE("same_nodes tells orders, restrictions and models apart, but not origins") {
  model net;
  const auto g = net.group("g", 4);
  const submodel sub(net, {index_set(4, {1, 3})}, {.client = 1});
  CHECK(sub.same_nodes(submodel(net, {index_set(4, {1, 3})}, {.client = 2})));
  CHECK_FALSE(sub.same_nodes(submodel(net, {index_set(4, {3, 1})})));
  CHECK_FALSE(sub.same_nodes(sub.restricted(g, index_set(4, {1}))));
  CHECK(sub.same_nodes(sub.restricted(g, index_set::full(4))));
  model other;
  other.group("h", 4);
  CHECK_FALSE(sub.same_nodes(submodel(other, {index_set(4, {1, 3})})));
}

TEST_CASE("describing the model further leaves its submodels as they were") {
  model net;
  const auto g = net.group("g", 3);
  net.tensor("t", {g});
  const submodel sub(net, {index_set(3, {1})});
  net.tensor("u", {g});
  CHECK(sub.parent().tensors().size() == 1);
  CHECK(sub.size() == 1);
  CHECK_FALSE(sub.parent() == net);
}

TEST_CASE("sets that are not the model's are refused by the group's name") {
  model net;
  net.group("a", 3);
  net.group("b", 4);
  CHECK(message_of([&] { submodel(net, {index_set(3, {1})}); }) ==
        "subfed: submodel: 1 index sets are given for 2 groups");
  CHECK(message_of([&] {
          submodel(net, {index_set(3, {1}), index_set(5, {1})});
        }) == "subfed: submodel: the index set of group 'b' has the extent 5, expected 4");
  const auto sub = submodel::full(net);
  CHECK(message_of([&] { sub[subfed::group_id(2)]; }) ==
        "subfed: model: group number 2 is not of this model, which has 2");
  CHECK(message_of([&] { sub.extents(subfed::tensor_id(0)); }) ==
        "subfed: model: tensor number 0 is not of this model, which has 0");
}

TEST_CASE("slice and scatter of a whole model check every tensor before they write to any") {
  model net;
  const auto g = net.group("g", 3);
  net.tensor("w", {g, 2});
  net.tensor("b", {g});
  const submodel sub(net, {index_set(3, {2, 0})});
  std::vector<float> global_w{1, 2, 3, 4, 5, 6};
  std::vector<float> global_b{7, 8, 9};
  std::vector<float> local_w(4, -1);
  std::vector<float> local_b(3, -1);
  const tensor_view<float> gw(global_w.data(), {3, 2});
  const tensor_view<float> gb(global_b.data(), {3});
  const tensor_view<float> lw(local_w.data(), {2, 2});
  const tensor_view<float> lb(local_b.data(), {2});
  const auto untouched = [&] {
    CHECK(global_w == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(global_b == std::vector<float>{7, 8, 9});
    CHECK(local_w == std::vector<float>(4, -1));
    CHECK(local_b == std::vector<float>(3, -1));
  };

  const tensor_view<float> long_b(local_b.data(), {3});
  CHECK(message_of([&] {
          subfed::slice<float>({gw, gb}, sub, {lw, long_b});
        }) == "subfed: slice: the local tensor 'b' has shape (3,), expected (2,)");
  untouched();
  CHECK(message_of([&] {
          subfed::scatter<float>({lw, long_b}, sub, {gw, gb});
        }) == "subfed: scatter: the local tensor 'b' has shape (3,), expected (2,)");
  untouched();
  CHECK(message_of([&] {
          subfed::scatter_add<float>({lw, lb}, sub, {gw, gw});
        }) == "subfed: scatter_add: the global tensor 'b' has shape (3, 2), expected (3,)");
  untouched();
  CHECK(message_of([&] {
          subfed::slice<float>({gw}, sub, {lw, lb});
        }) == "subfed: slice: 1 global tensors are given for a model of 2");
  CHECK(message_of([&] {
          subfed::slice<float>({gw, gb}, sub, {lw, lb, lb});
        }) == "subfed: slice: 3 local tensors are given for a model of 2");
  untouched();
  const tensor_view<float> broadcast(local_b.data(), {2}, {0});
  CHECK(message_of([&] {
          subfed::slice<float>({gw, gb}, sub, {lw, broadcast});
        }).find("has several indices for one element") != std::string::npos);
  untouched();
  const tensor_view<float> own(global_b.data() + 1, {2});
  CHECK(message_of([&] {
          subfed::scatter<float>({lw, own}, sub, {gw, gb});
        }) == "subfed: scatter: the global and the local tensor 'b' overlap in memory");
  untouched();

  subfed::slice<float>({gw, gb}, sub, {lw, lb});
  CHECK(local_w == std::vector<float>{5, 6, 1, 2});
  CHECK(local_b == std::vector<float>{9, 7, -1});
}

TEST_CASE("copies of what is empty or whole cost nothing, however many there are") {
  const std::int64_t many = std::int64_t{1} << 30;
  model net;
  const auto none = net.group("none", 0);
  const auto g = net.group("g", 3);
  const auto t = net.tensor("t", {none.repeat(many), none.block(many)});
  const auto u = net.tensor("u", {concat({none.repeat(many), g.repeat(many), 5})});
  const auto v =
      net.tensor("v", {subfed::dimension(2).repeat(many), subfed::dimension(0).repeat(many)});
  const submodel full = submodel::full(net);
  CHECK(full.extents(t) == extents_type{0, 0});
  CHECK(full[t].dimension(0).runs.empty());
  CHECK(full[u].dimension(0).runs == std::vector<run>{{0, 0, 3 * many + 5}});
  CHECK(full[v].dimension(0).runs == std::vector<run>{{0, 0, 2 * many}});
  // Nothing of g is held, or nothing of it takes part.
  const submodel without = full.with(g, index_set(3, {}));
  CHECK(without.extents(u) == extents_type{5});
  CHECK(without[u].dimension(0).runs == std::vector<run>{{0, 3 * many, 5}});
  const submodel resting = full.restricted(g, index_set(3, {}));
  CHECK(resting.extents(u) == extents_type{3 * many + 5});
  CHECK(resting[u].dimension(0).runs == std::vector<run>{{3 * many, 3 * many, 5}});
  CHECK(full.size() == 3 * many + 5);
  CHECK(subfed::detail::internals::plans(full.planned()).size() == 3);

  // Copies of some nodes have runs of their own, but not where there are no elements.
  model empty;
  const auto h = empty.group("h", 8);
  const auto before = empty.tensor("before", {h.repeat(many << 10), h, 0});
  empty.tensor("after", {0, concat({3, h.repeat(many << 10)})});
  const submodel narrow = submodel(empty, {index_set::prefix(8, 4)}).planned();
  CHECK(narrow[before].local_extents() == extents_type{many << 12, 4, 0});
  CHECK(narrow[before].global_extents() == extents_type{many << 13, 8, 0});
  CHECK(narrow[before].dimension(1).runs == std::vector<run>{{0, 0, 4}});
  float x = 7, y = 7;
  const tensor_view<float> views[] = {{&x, {many << 12, 4, 0}}, {&x, {0, 3 + (many << 12)}}};
  const tensor_view<const float> from[] = {{&y, {many << 13, 8, 0}}, {&y, {0, 3 + (many << 13)}}};
  subfed::slice<float>(from, narrow, views);
  CHECK(x == 7);
}

TEST_CASE("a restriction in any order is that of its nodes, one by one") {
  seeded random(20);
  for (int trial = 0; trial < 300; ++trial) {
    const std::int64_t extent = random.between(0, 40);
    model net;
    const auto g = net.group("g", extent);
    const nodes_type held = support::random_nodes(random, extent);
    const nodes_type kept = support::random_nodes(random, extent);
    const submodel sub =
        submodel(net, {index_set(extent, held)}).restricted(g, index_set(extent, kept));
    std::vector<run> expected;
    for (std::size_t p = 0; p < held.size(); ++p) {
      if (std::find(kept.begin(), kept.end(), held[p]) == kept.end()) continue;
      subfed::detail::append_run(expected, run{static_cast<std::int64_t>(p), held[p], 1});
    }
    const auto found = sub.runs(g);
    CHECK(std::vector<run>(found.begin(), found.end()) == expected);
  }
}

TEST_CASE("a restriction to many nodes in any order takes no square of their number") {
  const std::int64_t extent = 1000000;
  model net;
  const auto g = net.group("g", extent);
  nodes_type even;  // descending, so that each is a run of its own
  for (std::int64_t n = extent - 2; n >= 0; n -= 2) even.push_back(n);
  const auto start = std::chrono::steady_clock::now();
  const submodel sub = submodel::full(net).restricted(g, index_set(extent, even));
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  CHECK(sub.runs(g).size() == even.size());
  CHECK(took.count() < 60);  // 1 s; 10^12 / 4 comparisons where it is quadratic
}
