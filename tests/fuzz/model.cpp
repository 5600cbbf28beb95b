// SPDX-License-Identifier: MIT
/// A program of bytes that describes a network with any numbers: refused exactly where sizes do not
/// fit, and unchanged then. Of small networks, submodels copy what dense loops copy.
#include <fuzz/fuzz.hpp>
#include <oracle.hpp>
#include <subfed/coverage/shared.hpp>
#include <subfed/describe.hpp>
#include <subfed/layers.hpp>
#include <subfed/model.hpp>
#include <subfed/model_slice.hpp>
#include <support/cohorts.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace {

using subfed::dimension;
using subfed::group_id;
using subfed::model;

/// A number that is not negative, or more than 2^63 - 1.
struct count {
  std::optional<std::int64_t> n;

  friend count operator*(count a, count b) {
    if (!a.n || !b.n) return {};
    if (*b.n != 0 && *a.n > (std::numeric_limits<std::int64_t>::max)() / *b.n) return {};
    return {*a.n * *b.n};
  }
  friend count operator+(count a, count b) {
    if (!a.n || !b.n || *a.n > (std::numeric_limits<std::int64_t>::max)() - *b.n) return {};
    return {*a.n + *b.n};
  }
};

/// A dimension and what it should consist of.
struct described {
  dimension made;
  std::vector<dimension::part> parts;
};

dimension bare(const model& net, fuzz::input& in) {
  switch (in.below(4)) {
    case 0:
      return dimension(in.number());
    case 1:
      return dimension(in.below(6));
    default:
      // Now and then a group that the model does not have.
      return dimension(group_id(static_cast<std::size_t>(in.byte()) % (net.groups().size() + 1)));
  }
}

/// Whole, or a group; repeated, in blocks, joined.
described any_dimension(const model& net, fuzz::input& in) {
  const dimension first = bare(net, in);
  described out{first, {first.parts().begin(), first.parts().end()}};
  for (std::int64_t steps = in.below(5); steps > 0; --steps) {
    const std::int64_t kind = in.below(3);
    if (kind == 2) {
      const dimension more = bare(net, in);
      out.made = subfed::concat({out.made, more});
      out.parts.insert(out.parts.end(), more.parts().begin(), more.parts().end());
      continue;
    }
    const std::int64_t times = in.below(3) == 0 ? in.number() : in.below(4);
    // What would only take long: up to a million parts.
    if (kind == 0 && out.parts.size() > 1 && times > 64 && times <= std::int64_t{1} << 20) continue;
    const bool wrong = fuzz::refused(
        [&] { out.made = kind == 0 ? out.made.repeat(times) : out.made.block(times); });
    bool expected = times < 1;
    for (const auto& p : out.parts) {
      const bool joined = kind == 0 && out.parts.size() > 1;
      const count grown =
          count{p.repeat} * count{p.block} * count{(std::max)(times, std::int64_t{0})};
      expected = expected || (!joined && !grown.n);
      expected = expected || (joined && times > std::int64_t{1} << 20);
    }
    fuzz::expect(wrong == expected);
    if (wrong) continue;
    if (kind == 1) {
      for (auto& p : out.parts) p.block *= times;
    } else if (out.parts.size() == 1) {
      out.parts[0].repeat *= times;
    } else {
      const auto once = out.parts;
      for (std::int64_t t = 1; t < times; ++t) {
        out.parts.insert(out.parts.end(), once.begin(), once.end());
      }
    }
  }
  fuzz::expect(std::equal(out.parts.begin(), out.parts.end(), out.made.parts().begin(),
                          out.made.parts().end()));
  return out;
}

/// Elements of a dimension; nothing for a foreign group. Nodes of a part: at least `least`.
std::optional<count> elements_of(const model& net, const described& d, std::int64_t least) {
  count sum{0};
  for (const auto& p : d.parts) {
    const bool bound = p.group != dimension::no_group;
    if (bound && p.group >= net.groups().size()) return std::nullopt;
    const std::int64_t nodes = bound ? net.groups()[p.group].extent : p.whole;
    sum = sum + count{p.repeat} * count{p.block} * count{(std::max)(nodes, least)};
  }
  return sum;
}

void describe_tensor(model& net, fuzz::input& in, count& sizes) {
  std::vector<described> all;
  std::vector<dimension> dimensions;
  for (std::int64_t rank = in.below(16) == 0 ? in.below(10) : in.below(4); rank > 0; --rank) {
    all.push_back(any_dimension(net, in));
    dimensions.push_back(all.back().made);
  }
  count size{1};
  std::vector<std::int64_t> extents;
  bool right = all.size() <= 8;
  for (const described& d : all) {
    const auto each = elements_of(net, d, 0);
    const auto padded = elements_of(net, d, 1);
    right = right && each && each->n;
    if (!right) break;
    extents.push_back(*each->n);
    size = size * *padded;
  }
  const count together = right ? sizes + size : count{};
  const auto is = static_cast<subfed::role>(in.below(4));
  const model before = net;
  const std::string name = "tensor " + std::to_string(net.tensors().size());
  const bool wrong = fuzz::refused([&] { net.tensor(name, dimensions, is); });
  fuzz::expect(wrong == !together.n.has_value());
  if (wrong) {
    fuzz::expect(net == before);
    return;
  }
  sizes = together;
  fuzz::expect(net.tensors().back().extents == extents && net.tensors().back().role == is);
}

/// One of the layer helpers with any sizes: all of its tensors, or none.
void describe_layer(model& net, fuzz::input& in) {
  const model before = net;
  const std::string name = "layer " + std::to_string(net.tensors().size());
  const dimension a = any_dimension(net, in).made, b = any_dimension(net, in).made;
  const auto size = [&] { return in.below(3) == 0 ? in.number() : in.below(5); };
  const std::int64_t x = size(), y = size(), z = size();
  const std::int64_t kind = in.below(14);
  const bool wrong = fuzz::refused([&] {
    switch (kind) {
      case 0:
        return void(subfed::linear(net, name, {.in = a, .out = b}));
      case 1:
        return void(subfed::conv1d(net, name, {.in = a, .out = b, .kernel_size = x, .groups = y}));
      case 2:
        return void(subfed::conv2d(
            net, name, {.in = a, .out = b, .kernel_height = x, .kernel_width = y, .groups = z}));
      case 3:
        return void(subfed::conv3d(net, name,
                                   {.in = a,
                                    .out = b,
                                    .kernel_depth = x,
                                    .kernel_height = y,
                                    .kernel_width = z,
                                    .groups = x}));
      case 4:
        return void(subfed::conv_transpose2d(
            net, name, {.in = a, .out = b, .kernel_height = x, .kernel_width = y, .groups = z}));
      case 5:
        return void(subfed::multihead_attention(net, name, {.width = a, .inner = b, .heads = x}));
      case 6:
        return void(subfed::attention(net, name,
                                      {.in = a, .out = b, .heads = subfed::inside_heads(a, x, y)}));
      case 7:
        return void(subfed::attention(
            net, name, {.in = a, .out = b, .heads = subfed::whole_heads(net, group_id(0), x, y)}));
      case 8:
        return void(subfed::fused_attention(
            net, name, {.in = a, .out = b, .heads = subfed::attention_heads{a, b, x, y}}));
      case 9:
        return void(subfed::embedding(net, name, {.count = a, .width = b}));
      case 10:
        return void(subfed::batch_norm(
            net, name, {.channels = a, .statistics = subfed::running_statistics::with_counter}));
      case 11:
        return void(subfed::group_norm(net, name, {.channels = a, .groups = x}));
      case 12:
        return void(subfed::lstm(net, name, {.in = a, .hidden = {a, b}, .reverse = {b, a}}));
      default:
        return void(subfed::gru_cell(net, name, {.in = a, .hidden = b}));
    }
  });
  if (wrong) fuzz::expect(net == before);
}

oracle::network plan_of(const model& net) {
  oracle::network out;
  for (const auto& g : net.groups()) out.groups.push_back(g.extent);
  for (const auto& t : net.tensors()) {
    out.tensors.emplace_back();
    for (const dimension& d : t.dimensions) {
      out.tensors.back().emplace_back();
      for (const auto& p : d.parts()) {
        const bool bound = p.group != dimension::no_group;
        out.tensors.back().back().push_back(
            {bound ? static_cast<int>(p.group) : -1, p.whole, p.repeat, p.block});
      }
    }
  }
  return out;
}

/// Whether everything of it can be written out.
bool can_be_written_out(const model& net) {
  std::int64_t all = 0;
  for (const auto& g : net.groups()) {
    if (g.extent > 64) return false;
  }
  for (const auto& t : net.tensors()) {
    std::int64_t elements = 1;
    for (std::size_t r = 0; r < t.extents.size(); ++r) {
      if (t.extents[r] > 2000) return false;
      // Layouts have room for the other dimensions where one is empty.
      elements *= (std::max)(t.extents[r], std::int64_t{1});
      // Empty dimensions still have copies.
      for (const auto& p : t.dimensions[r].parts()) {
        if (p.repeat > 2000 || p.block > 2000) return false;
      }
      if (elements > 4000) return false;
    }
    all += elements;
  }
  return all <= 8000;
}

void check_submodel(const model& net, fuzz::input& in) {
  const oracle::network plan = plan_of(net);
  support::seeded random(in.word());
  const oracle::holding holds = support::random_holding(random, plan);
  subfed::submodel sub = support::submodel_of(net, holds);
  if (in.below(2) == 0) sub = sub.planned();
  std::vector<support::strided<float>> globals, locals;
  std::int64_t size = 0;
  std::int64_t shared = 0;
  std::vector<std::vector<std::int64_t>> numbers;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const auto shape = oracle::local_shape(plan, plan.tensors[t], holds);
    fuzz::expect(sub.extents(subfed::tensor_id(t)) == shape);
    globals.emplace_back(support::random_layout(random, net.tensors()[t].extents));
    globals.back().fill([&](std::int64_t n) { return static_cast<float>(n + 1); });
    locals.emplace_back(support::random_layout(random, shape));
    locals.back().fill([&](std::int64_t n) { return static_cast<float>(-n - 1); });
    size += support::elements_of(shape);
    numbers.push_back(oracle::global_numbers(plan, plan.tensors[t], holds));
    if (net.tensors()[t].is_local()) continue;
    shared += static_cast<std::int64_t>(
        std::count_if(numbers[t].begin(), numbers[t].end(), [](std::int64_t n) { return n >= 0; }));
  }
  fuzz::expect(sub.size() == size && subfed::shared_parameters(sub, sub) == shared);
  const auto views = [](auto& tensors) {
    std::vector<subfed::tensor_view<float>> out;
    for (auto& t : tensors) out.push_back(t.view());
    return out;
  };
  const auto read = [](const auto& tensors) {
    std::vector<subfed::tensor_view<const float>> out;
    for (const auto& t : tensors) out.push_back(t.view());
    return out;
  };
  auto expected = [&](auto&& verb) {
    std::vector<std::vector<float>> out;
    for (std::size_t t = 0; t < numbers.size(); ++t) {
      std::vector<float> g = globals[t].elements(), l = locals[t].elements();
      verb(g, l, numbers[t]);
      g.insert(g.end(), l.begin(), l.end());
      out.push_back(g);
    }
    return out;
  };
  const auto check = [&](const std::vector<std::vector<float>>& want) {
    for (std::size_t t = 0; t < want.size(); ++t) {
      std::vector<float> found = globals[t].elements();
      const std::vector<float> l = locals[t].elements();
      found.insert(found.end(), l.begin(), l.end());
      fuzz::expect(found == want[t]);
      fuzz::expect(globals[t].rest_untouched() && locals[t].rest_untouched());
    }
  };
  const auto sliced = expected([](auto& g, auto& l, auto& n) { oracle::slice(g, n, l); });
  subfed::slice<float>(subfed::tensor_views<const float>(read(globals)), sub,
                       subfed::tensor_views<float>(views(locals)));
  check(sliced);
  for (auto& l : locals) l.fill([&](std::int64_t n) { return static_cast<float>(100 * n); });
  const auto scattered = expected([](auto& g, auto& l, auto& n) { oracle::scatter(l, n, g); });
  subfed::scatter<float>(subfed::tensor_views<const float>(read(locals)), sub,
                         subfed::tensor_views<float>(views(globals)));
  check(scattered);
  const auto added = expected([](auto& g, auto& l, auto& n) {
    for (std::size_t i = 0; i < n.size(); ++i) {
      if (n[i] >= 0) g[static_cast<std::size_t>(n[i])] += l[i];
    }
  });
  subfed::scatter_add<float>(subfed::tensor_views<const float>(read(locals)), sub,
                             subfed::tensor_views<float>(views(globals)));
  check(added);
}

const fuzz::registered any_model("model", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  model net;
  count sizes{0};
  bool layers = false;
  for (std::int64_t groups = in.below(5); groups > 0; --groups) {
    const std::int64_t extent = in.below(4) == 0 ? in.number() : in.below(9);
    const std::string name = "group " + std::to_string(net.groups().size());
    const auto decides = in.below(4) == 0 ? subfed::cut::never : subfed::cut::by_scheme;
    fuzz::expect(fuzz::refused([&] { net.group(name, extent, decides); }) == (extent < 0));
  }
  for (std::int64_t steps = 0; steps < 6 && !in.empty(); ++steps) {
    // After a layer the sum of the sizes is the library's own.
    if (in.below(3) == 0) {
      describe_layer(net, in);
      layers = true;
    } else if (!layers) {
      describe_tensor(net, in, sizes);
    }
  }
  const auto full = subfed::submodel::full(net);
  fuzz::expect(net.size() >= 0 && full.size() == net.size());
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    fuzz::expect(full[subfed::tensor_id(t)].local_extents() == net.tensors()[t].extents);
  }
  if (can_be_written_out(net)) {
    static_cast<void>(subfed::describe(net));
    check_submodel(net, in);
  }
});

}  // namespace
