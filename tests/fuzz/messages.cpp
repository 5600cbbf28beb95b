// SPDX-License-Identifier: MIT
/// Any bytes as an update message and as a partial average of a small model. What is not refused is
/// exactly what is written for what was read.
#include <fuzz/fuzz.hpp>
#include <subfed/messages.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace {

struct world {
  subfed::model net;
  subfed::group_id a = net.group("a", 6);
  subfed::group_id b = net.group("b", 3);
  subfed::tensor_id w = net.tensor("w", {a, b});
  subfed::tensor_id own = net.tensor("own", {b}, subfed::role::local);
  subfed::tensor_id n = net.tensor("n", {b}, subfed::role::counter);

  subfed::submodel held(std::uint64_t client) const {
    return {net,
            {subfed::index_set(6, {1, 4, 2}), subfed::index_set(3, {0, 2})},
            {.seed = 5, .round = 2, .client = client, .capacity = 0.5}};
  }
};

/// Bytes 0 and 1 choose; the rest changes what was written: pairs of a place and a value, or the bytes
/// themselves from a place on. The checksum is made right again, which no chance would.
std::vector<std::byte> changed(fuzz::input& in, std::vector<std::byte> all, std::size_t checksum) {
  const std::uint8_t how = in.byte();
  if (how % 8 == 0) {
    all.clear();
    for (const std::uint8_t x : in.rest()) all.push_back(std::byte{x});
  } else if (how % 8 == 1) {
    all.resize((std::min)(all.size(), std::size_t{in.byte()} * 4));
    for (const std::uint8_t x : in.rest()) all.push_back(std::byte{x});
  } else {
    while (!in.empty()) {
      const std::size_t at = in.byte() + std::size_t{in.byte()} * 256u;
      if (at < all.size()) all[at] = std::byte{in.byte()};
    }
  }
  if (all.size() >= 16 && how / 8 % 4 != 0) {
    for (std::size_t i = 0; i < 8; ++i) all[8 + i] = static_cast<std::byte>(all.size() >> (8 * i));
  }
  if (all.size() >= checksum + 8 && how / 8 % 4 != 1) {
    const std::uint64_t sum = subfed::detail::checksum_around(all, checksum);
    for (std::size_t i = 0; i < 8; ++i) {
      all[checksum + i] = static_cast<std::byte>(sum >> (8 * i) & 255);
    }
  }
  return all;
}

const fuzz::registered update_message("update_message", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  const world w;
  const std::array<float, 6> x{1, 2, 3, 4, 5, 6};
  const std::array<std::int32_t, 2> n{7, 8};
  const subfed::tensor_views<const void> tensors{
      subfed::tensor_view<const float>(x.data(), {3, 2}),
      subfed::tensor_view<const float>(nullptr, {0}),
      subfed::tensor_view<const std::int32_t>(n.data(), {2})};
  const bool keyed = in.below(2) == 0;
  const std::string_view scheme = keyed ? "rolling" : "";
  const auto all = changed(in, subfed::write_update(w.held(3), tensors, 2, scheme), 80);
  static_cast<void>(
      fuzz::refused([&] { check_front(subfed::peek_update(all), w.held(3), scheme); }));
  const auto found =
      keyed ? subfed::open_update(w.held(3), scheme, all) : subfed::open_update(w.net, all);
  fuzz::expect(subfed::write_update(found.sub, found.tensors, found.weight, scheme) == all);
});

template <class T>
void partial(fuzz::input& in, const subfed::average_options& options) {
  const world w;
  subfed::selective_average<T> mean(w.net, options);
  const std::array<float, 6> x{1, -2, 3, 4, -5, 6};
  const std::array<double, 2> counts{1, 2};
  const std::array<std::int32_t, 2> steps{7, 8};
  const std::int64_t clients = in.below(4);
  for (std::int64_t c = 0; c < clients; ++c) {
    const auto sub = w.held(static_cast<std::uint64_t>(c));
    const subfed::tensor_view<const float> first(x.data(), {3, 2}), none(nullptr, {0});
    if constexpr (std::is_void_v<T>) {
      mean.add(sub, {first, none, subfed::tensor_view<const std::int32_t>(steps.data(), {2})}, 0.5);
    } else {
      mean.template add<void>(
          sub, {first, none, subfed::tensor_view<const double>(counts.data(), {2})}, 0.5);
    }
  }
  const auto all = changed(in, subfed::write_partial_average(mean), 24);
  const auto found = subfed::read_partial_average<T>(w.net, options, all);
  fuzz::expect(subfed::write_partial_average(found) == all);
  static_cast<void>(found.held());
  std::array<float, 18> global{};
  std::array<float, 3> own{}, count{};
  std::array<std::int32_t, 3> number{};
  const subfed::tensor_view<float> to(global.data(), {6, 3}), at(own.data(), {3});
  static_cast<void>(fuzz::refused([&] {
    if constexpr (std::is_void_v<T>) {
      found.finish({to, at, subfed::tensor_view<std::int32_t>(number.data(), {3})});
    } else {
      found.finish({to, at, subfed::tensor_view<float>(count.data(), {3})});
    }
  }));
  static_cast<void>(fuzz::refused([&] { mean.merge(found); }));
}

const fuzz::registered partial_average("partial_average", [](fuzz::bytes bytes) {
  fuzz::input in(bytes);
  const std::uint8_t how = in.byte();
  subfed::average_options options;
  options.integers = how % 2 == 0 ? subfed::integer_rule::sum : subfed::integer_rule::keep;
  if (how / 2 % 2 == 0) options.sums = subfed::fixed_point{.bound = 8, .clients = 4};
  if (how / 4 % 2 == 0) options.round = 2;
  if (how / 8 % 2 == 0) options.on_non_finite = subfed::non_finite::skip_element;
  if (how / 16 % 2 == 0) {
    partial<float>(in, options);
  } else {
    partial<void>(in, options);
  }
});

}  // namespace
