// SPDX-License-Identifier: MIT
#include <subfed/cuda/detail/copy_plan.hpp>

#include <doctest/doctest.h>
#include <cuda/alignments.hpp>
#include <cuda/emulation.hpp>
#include <oracle.hpp>
#include <subfed/slice.hpp>
#include <support/cohorts.hpp>
#include <support/far_memory.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kernels = subfed::cuda::detail;
using emulation::order;
using kernels::direction;
using subfed::tensor_views;
using support::seeded;

namespace {

/// Values that no two elements share.
template <class T>
T numbered(std::int64_t n) {
  return T(static_cast<double>(n % 1021));
}

/// Two runs of so many nodes each.
subfed::index_set two_runs(std::int64_t extent, std::int64_t a, std::int64_t b,
                           std::int64_t length) {
  std::vector<std::int64_t> nodes;
  for (const std::int64_t first : {a, b}) {
    for (std::int64_t i = 0; i < length; ++i) nodes.push_back(first + i);
  }
  return subfed::index_set(extent, nodes);
}

/// All tensors row-major in one buffer, each at a multiple of 16 bytes.
template <class T>
struct packed {
  struct alignas(16) block {
    T values[16 / sizeof(T)];
  };
  std::vector<block> buffer;
  std::vector<subfed::tensor_view<T>> views;

  explicit packed(const std::vector<std::vector<std::int64_t>>& shapes) {
    constexpr std::int64_t each = 16 / sizeof(T);
    std::vector<std::int64_t> starts;
    std::int64_t size = 0;
    for (const auto& s : shapes) {
      starts.push_back(size);
      size += (support::elements_of(s) + each - 1) / each;
    }
    buffer.resize(static_cast<std::size_t>(size + 1));
    for (std::size_t t = 0; t < shapes.size(); ++t) {
      views.emplace_back(buffer[static_cast<std::size_t>(starts[t])].values, shapes[t]);
    }
  }
  std::vector<T> elements(std::size_t t) const {
    return {views[t].data_handle(), views[t].data_handle() + views[t].size()};
  }
};

}  // namespace

TEST_CASE_TEMPLATE("every thread of a slice together gives what the dense loop gives, any layouts",
                   T, float, subfed::half) {
  using E = kernels::kernel_element_t<T>;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed ", seed);
    seeded random(seed);
    std::int64_t n = 0;
    const auto value = [&](seeded&) { return numbered<T>(n++); };
    const auto one = [](seeded&) { return 1.0; };
    support::cohort<T> group{random, support::random_network(random), 3, value, one};
    kernels::copy_plan<direction::slice, E, E> plan(group.net);
    const tensor_views<const T> globals(group.global_views());
    std::vector<std::vector<support::strided<T>>> locals;
    for (const auto& c : group.clients) {
      locals.emplace_back();
      for (const auto& t : group.plan.tensors) {
        locals.back().emplace_back(
            support::random_layout(random, oracle::local_shape(group.plan, t, c.holds)));
        locals.back().back().fill([](std::int64_t) { return T(-1.0); });
      }
    }
    for (std::size_t c = 0; c < locals.size(); ++c) {
      std::vector<subfed::tensor_view<T>> views;
      for (auto& t : locals[c]) views.push_back(t.view());
      plan.add(group.clients[c].sub, globals, tensor_views<T>(views));
    }
    const kernels::copy_call call = plan.finish();
    emulation::launch<E, E>(call, plan.bytes(), kernels::assign{},
                            seed % 2 == 0 ? order::forwards : order::backwards);
    for (std::size_t c = 0; c < locals.size(); ++c) {
      for (std::size_t t = 0; t < locals[c].size(); ++t) {
        const auto numbers =
            oracle::global_numbers(group.plan, group.plan.tensors[t], group.clients[c].holds);
        std::vector<T> expected(numbers.size(), T(-1.0));
        oracle::slice(group.globals[t].elements(), numbers, expected);
        CHECK(support::same_bits(locals[c][t].elements(), expected));
        CHECK(locals[c][t].rest_untouched());
      }
    }
  }
}

TEST_CASE_TEMPLATE("scatter and scatter_add put a client's tensors back as the dense loop does", T,
                   float, subfed::half) {
  using E = kernels::kernel_element_t<T>;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    INFO("seed ", seed);
    seeded random(500 + seed);
    std::int64_t n = 0;
    const auto value = [&](seeded&) { return numbered<T>(n++); };
    const auto one = [](seeded&) { return 1.0; };
    support::cohort<T> group{random, support::random_network(random), 1, value, one};
    const auto& client = group.clients[0];
    const auto before = group.elements();
    const bool adds = seed % 2 == 0;
    kernels::copy_plan<direction::scatter, E, E> plan(group.net);
    plan.add(client.sub, tensor_views<T>(group.global_views()),
             tensor_views<const T>(client.views()));
    const kernels::copy_call call = plan.finish();
    if (adds) {
      emulation::launch<E, E>(call, plan.bytes(), kernels::add{}, order::backwards);
    } else {
      emulation::launch<E, E>(call, plan.bytes(), kernels::assign{}, order::forwards);
    }
    CHECK(group.rest_untouched());
    for (std::size_t t = 0; t < before.size(); ++t) {
      const auto numbers = oracle::global_numbers(group.plan, group.plan.tensors[t], client.holds);
      const auto local = client.tensors[t].elements();
      auto expected = before[t];
      if (adds) {
        for (std::size_t l = 0; l < numbers.size(); ++l) {
          if (numbers[l] < 0) continue;
          T& x = expected[static_cast<std::size_t>(numbers[l])];
          x = oracle::nearest<T>(oracle::value_of(x) + oracle::value_of(local[l]));
        }
      } else {
        oracle::scatter(local, numbers, expected);
      }
      CHECK(support::same_bits(group.globals[t].elements(), expected));
    }
  }
}

TEST_CASE_TEMPLATE("wide packs are used where runs and tensors are aligned, and nowhere else", T,
                   float, subfed::half) {
  using E = kernels::kernel_element_t<T>;
  subfed::model net;
  const auto rows = net.group("rows", 24);
  const auto columns = net.group("columns", 64);
  net.tensor("matrix", {rows, columns});
  net.tensor("kernel", {columns, rows, 4, 4});
  net.tensor("whole", {16, 8});
  const std::vector<std::pair<subfed::index_set, std::int64_t>> cases = {
      {subfed::index_set::window(64, 0, 32), 3},   // a prefix
      {subfed::index_set::window(64, 48, 32), 3},  // wraps at multiples of 16
      {subfed::index_set::window(64, 16, 32), 3},  // begins at one
      {subfed::index_set::window(64, 1, 32), 2},  // the kernel's columns are no innermost dimension
      {subfed::index_set(64, {5, 3, 40}), 2},
      {two_runs(64, 1, 33, 16), 2},  // only the runs' first nodes are not aligned
      {two_runs(64, 16, 33, 4), 2},
      {two_runs(64, 16, 40, 8), 3},
      {two_runs(64, 16, 40, 9), 2},  // nor the second run's position
  };
  for (const auto& [set, wide] : cases) {
    const subfed::submodel sub(net, {subfed::index_set(24, {1, 4, 9, 17}), set});
    std::vector<std::vector<std::int64_t>> shapes, local_shapes;
    for (std::size_t t = 0; t < 3; ++t) {
      shapes.push_back(net.tensors()[t].extents);
      local_shapes.push_back(sub.extents(subfed::tensor_id(t)));
    }
    packed<T> globals(shapes), locals(local_shapes);
    for (std::size_t t = 0; t < 3; ++t) {
      for (std::int64_t i = 0; i < globals.views[t].size(); ++i) {
        globals.views[t].data_handle()[i] = numbered<T>(i);
      }
    }
    kernels::copy_plan<direction::slice, E, E> plan(net);
    plan.add(sub, tensor_views<const T>(globals.views), tensor_views<T>(locals.views));
    const kernels::copy_call call = plan.finish();
    CHECK(emulation::wide_jobs<kernels::copy_job>(plan.bytes(), call.jobs, 3) == wide);
    emulation::launch<E, E>(call, plan.bytes(), kernels::assign{}, order::forwards);
    for (std::size_t t = 0; t < 3; ++t) {
      std::vector<T> expected(static_cast<std::size_t>(locals.views[t].size()));
      const subfed::tensor_view<T> view(expected.data(), local_shapes[t]);
      subfed::slice<T>(globals.views[t], sub[subfed::tensor_id(t)], view);
      CHECK(support::same_bits(locals.elements(t), expected));
    }
  }
}

TEST_CASE("where runs or tensors are not aligned no element is lost and no pack is misaligned") {
  std::int64_t wide = 0;
  // All rows, or the second one alone.
  for (const std::int64_t first_row : {0, 1}) {
    const std::int64_t taking_part = first_row == 0 ? alignments::rows : 1;
    subfed::model net;
    const auto nodes = net.group("nodes", alignments::extent);
    const auto rows = net.group("rows", alignments::rows);
    net.tensor("x", {rows, nodes});
    for (const auto& f : alignments::all()) {
      INFO(taking_part, " rows, ", f.text());
      const auto sub = subfed::submodel(net, {subfed::index_set(alignments::extent, f.held),
                                              subfed::index_set::full(alignments::rows)})
                           .restricted(nodes, subfed::index_set(alignments::extent, f.taking_part))
                           .restricted(rows, subfed::index_set::window(3, first_row, taking_part));
      alignments::floats global(alignments::rows * f.global_stride + 4);
      alignments::floats local(alignments::rows * f.local_stride + 4, -1, 0);
      std::vector<float> expected = local.elements();
      for (std::int64_t r = first_row; r < first_row + taking_part; ++r) {
        for (std::int64_t p = 0; p < f.size(); ++p) {
          const std::int64_t node = f.held[static_cast<std::size_t>(p)];
          if (!f.takes_part(node)) continue;
          expected[static_cast<std::size_t>(f.local_at + r * f.local_stride + p)] =
              static_cast<float>(f.global_at + r * f.global_stride + node);
        }
      }
      kernels::copy_plan<direction::slice, float, float> plan(net);
      plan.add(sub,
               tensor_views<const float>{{global.data() + f.global_at,
                                          {alignments::rows, alignments::extent},
                                          {f.global_stride, 1}}},
               tensor_views<float>{
                   {local.data() + f.local_at, {alignments::rows, f.size()}, {f.local_stride, 1}}});
      const kernels::copy_call call = plan.finish();
      const auto packs = emulation::wide_jobs<kernels::copy_job>(plan.bytes(), call.jobs, 1);
      CHECK(packs == (f.is_aligned ? 1 : 0));
      wide += packs;
      emulation::launch<float, float>(call, plan.bytes(), kernels::assign{}, order::forwards);
      CHECK(local.elements() == expected);
    }
  }
  CHECK(wide == 2);
}

TEST_CASE("a job has the blocks that its packs fill, and each block is its own") {
  for (const std::int64_t before : {0, 1, 5}) {
    for (std::int64_t packs = 0; packs < 14; ++packs) {
      kernels::block_list blocks;
      blocks.add(before, 4);
      const std::int64_t first = blocks.add(packs, 4);
      std::int64_t count = 0;
      while (4 * count < packs) ++count;
      CHECK(first == (before + 3) / 4);
      CHECK(std::count(blocks.jobs().begin(), blocks.jobs().end(), 1) == count);
      CHECK(blocks.jobs().size() == static_cast<std::size_t>(first + count));
    }
  }
}

TEST_CASE("elements more than 2^31 apart are copied") {
  constexpr std::int64_t apart = (std::int64_t{1} << 31) + 64;
  const support::far_memory memory(static_cast<std::uint64_t>(4 * apart) * sizeof(float));
  if (memory.data() == nullptr) return;
  float* const global = reinterpret_cast<float*>(memory.data());
  float* const local = global + 2 * apart;
  subfed::model net;
  const auto nodes = net.group("nodes", 4);
  net.tensor("x", {2, nodes});
  const subfed::submodel sub(net, {subfed::index_set(4, {3, 1})});
  global[apart + 1] = 5;
  global[apart + 3] = 6;
  kernels::copy_plan<direction::slice, float, float> plan(net);
  plan.add(sub, tensor_views<const float>{{global, {2, 4}, {apart, 1}}},
           tensor_views<float>{{local, {2, 2}, {apart, 1}}});
  const auto call = plan.finish();
  emulation::launch<float, float>(call, plan.bytes(), kernels::assign{}, order::forwards);
  CHECK(local[apart] == 6);
  CHECK(local[apart + 1] == 5);
}

TEST_CASE("a dimension of 2^31 nodes is cut in one run, and refused in several" *
          doctest::skip(!support::has_far_addresses)) {
  constexpr std::int64_t extent = std::int64_t{1} << 31;
  subfed::model net;
  const auto nodes = net.group("nodes", extent);
  net.tensor("far", {nodes});
  float element = 0;  // plans look at no element
  const auto message_of = [&](const subfed::index_set& set) -> std::string {
    kernels::copy_plan<direction::slice, float, float> plan(net);
    try {
      plan.add(subfed::submodel(net, {set}), tensor_views<const float>{{&element, {extent}}},
               tensor_views<float>{{&element, {set.size()}}});
    } catch (const subfed::error& error) {
      return error.what();
    }
    return "nothing was thrown";
  };
  CHECK(message_of(subfed::index_set::window(extent, extent - 2, 2)) == "nothing was thrown");
  CHECK(message_of(subfed::index_set(extent, {0, extent - 1})) ==
        "subfed: cuda: tensor 'far' has a cut dimension of 2147483648 elements, expected at most "
        "2^31 - 1");
}

TEST_CASE("more blocks than a launch can have are refused") {
  kernels::block_list blocks;
  blocks.add(3, 1);
  CHECK_THROWS_WITH_AS(blocks.add(std::int64_t{1} << 62, 1),
                       "subfed: cuda: one launch would have more than 2^31 - 1 blocks",
                       subfed::error);
  CHECK(blocks.jobs().size() == 3);
}

TEST_CASE("one submodel of many clients is described once") {
  subfed::model net;
  const auto hidden = net.group("hidden", 40);
  net.tensor("a", {hidden, hidden});
  net.tensor("b", {hidden});
  const auto size_for = [&](std::size_t clients) {
    kernels::copy_plan<direction::slice, float, float> plan(net);
    packed<float> globals({{40, 40}, {40}}), locals({{20, 20}, {20}});
    const subfed::submodel sub(net, {subfed::index_set::window(40, 30, 20)});
    for (std::size_t c = 0; c < clients; ++c) {
      plan.add(sub, tensor_views<const float>(globals.views), tensor_views<float>(locals.views));
    }
    plan.finish();
    return plan.bytes().size();
  };
  const std::size_t a_client = size_for(3) - size_for(2);
  CHECK(size_for(12) - size_for(2) <= 10 * a_client + 16);
  CHECK(a_client <= 2 * sizeof(kernels::copy_job) + 32);
}

TEST_CASE("a launch of many blocks copies a long tensor") {
  subfed::model net;
  const std::int64_t length = 3 * kernels::copy_call::packs_a_block * 4 + 7;
  const auto nodes = net.group("nodes", length);
  net.tensor("x", {nodes});
  const subfed::submodel sub(net, {subfed::index_set::window(length, length / 2, length - 5)});
  std::vector<float> global(static_cast<std::size_t>(length)), local(global.size() - 5);
  for (std::size_t i = 0; i < global.size(); ++i) global[i] = static_cast<float>(i);
  kernels::copy_plan<direction::slice, float, float> plan(net);
  plan.add(sub, tensor_views<const float>{{global.data(), {length}}},
           tensor_views<float>{{local.data(), {length - 5}}});
  const auto call = plan.finish();
  CHECK(call.blocks == 13);
  emulation::launch<float, float>(call, plan.bytes(), kernels::assign{}, order::backwards);
  bool right = true;
  for (std::int64_t p = 0; p < length - 5; ++p) {
    right = right &&
            local[static_cast<std::size_t>(p)] == static_cast<float>((length / 2 + p) % length);
  }
  CHECK(right);
}
