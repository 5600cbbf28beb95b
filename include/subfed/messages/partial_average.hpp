// SPDX-License-Identifier: MIT
/// A streaming average as bytes: what one machine has added, to be merged by another.
#pragma once

#include <subfed/average/detail/fixed_terms.hpp>
#include <subfed/average/detail/holder_list.hpp>
#include <subfed/average/detail/tensor_sums.hpp>
#include <subfed/average/options.hpp>
#include <subfed/average/selective.hpp>
#include <subfed/detail/arithmetic.hpp>
#include <subfed/detail/float_mode.hpp>
#include <subfed/detail/internals.hpp>
#include <subfed/detail/memory_size.hpp>
#include <subfed/index_set.hpp>
#include <subfed/messages/detail/fields.hpp>
#include <subfed/messages/fingerprint.hpp>
#include <subfed/messages/submodel_bytes.hpp>
#include <subfed/messages/update_message.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

namespace detail {

inline constexpr const char* partial_average_name = "partial average";
inline constexpr std::size_t checksum_of_partial = 24;
inline constexpr std::int64_t most_counted = std::int64_t{1} << 50;

/// Whether the message has the sums of floating-point tensors, and their weights.
enum class sums_are { included, elsewhere };

/// Options as bytes: they are to be the same at both ends. Of late_weight, whether it is set.
inline void append_options(field_writer& out, const average_options& options) {
  out.u8(static_cast<std::uint8_t>(options.divide_by));
  out.u8(static_cast<std::uint8_t>(options.content));
  out.u8(static_cast<std::uint8_t>(options.on_non_finite));
  out.u8(static_cast<std::uint8_t>(options.integers));
  out.u8(static_cast<std::uint8_t>(options.on_late));
  out.u8(static_cast<std::uint8_t>(options.on_repeated));
  out.u8(static_cast<std::uint8_t>((options.round ? 1 : 0) | (options.late_weight ? 2 : 0) |
                                   (options.sums ? 4 : 0)));
  const fixed_point sums = options.sums.value_or(fixed_point{.bound = 0, .clients = 0});
  out.u8(static_cast<std::uint8_t>(sums.on_out_of_bound));
  out.f64(options.step);
  out.u64(options.round.value_or(0));
  out.f64(sums.bound);
  out.i64(sums.clients);
  out.f64(sums.total_weight);
}

/// A submodel with the nodes that take part alone: in a sum nothing else matters.
inline submodel taking_part(const submodel& sub) {
  std::vector<index_set> sets;
  for (std::size_t g = 0; g < sub.parent().groups().size(); ++g) {
    sets.push_back(index_set::from_runs(sub.parent().groups()[g].extent, sub.runs(group_id(g))));
  }
  return {sub.parent(), std::move(sets)};
}

inline void append_report(field_writer& out, const model& net, const average_report& report) {
  for (const std::int64_t count :
       {report.clients, report.refused_clients, report.skipped_clients, report.late_clients,
        report.repeated_clients, report.skipped_elements, report.clipped_elements}) {
    out.i64(count);
  }
  out.u64(report.left_out.size());
  for (const update_outcome& left : report.left_out) {
    out.u64(static_cast<std::uint64_t>(left.fate));
    out.u64(left.client);
    out.u64(left.round);
    out.f64(left.weight);
    out.u64(left.tensor.empty() ? 0 : net.find_tensor(left.tensor).number() + 1);
    out.i64(left.element);
  }
}

inline average_report read_report(field_reader& in, const model& net) {
  average_report out;
  for (std::int64_t* count :
       {&out.clients, &out.refused_clients, &out.skipped_clients, &out.late_clients,
        &out.repeated_clients, &out.skipped_elements, &out.clipped_elements}) {
    *count = in.i64();
    if (*count < 0 || *count > most_counted) in.refuse("a count of " + std::to_string(*count));
  }
  const std::uint64_t listed = in.u64();
  if (listed > average_report::most_listed || listed > in.left() / 48) {
    in.refuse("a list of " + std::to_string(listed) + " updates that were left out");
  }
  for (std::uint64_t i = 0; i < listed; ++i) {
    update_outcome left;
    const std::uint64_t fate_number = in.u64();
    if (fate_number < 1 || fate_number > static_cast<std::uint64_t>(fate::out_of_bound)) {
      in.refuse("a fate with the number " + std::to_string(fate_number));
    }
    left.fate = static_cast<fate>(fate_number);
    left.client = in.u64();
    left.round = in.u64();
    left.weight = in.f64();
    const std::uint64_t tensor = in.u64();
    if (tensor > net.tensors().size()) in.refuse("tensor number " + std::to_string(tensor - 1));
    if (tensor != 0) left.tensor = net.tensors()[static_cast<std::size_t>(tensor - 1)].name;
    left.element = in.i64();
    out.left_out.push_back(std::move(left));
  }
  return out;
}

/// What a partial average may contain.
struct partial_limits {
  const average_options& options;
  double cohort_weight;
  double largest_sum;  ///< in fixed point, in quanta

  partial_limits(const average_options& of, double weight, std::int64_t clients)
      : options(of), cohort_weight(weight), largest_sum(0) {
    if (!of.sums) return;
    largest_sum = scaled(weight * of.sums->bound, -of.sums->exponent()) * (1 + 0x1p-20) +
                  static_cast<double>(clients);
  }
  /// A sum of weights, of which the cohort's is the largest.
  bool allows(double weight) const noexcept {
    if (!is_finite_double(weight) || weight < 0) return false;
    if (!options.sums) return true;
    return weight <= cohort_weight && weight <= options.sums->most() &&
           fixed_weight(weight, *options.sums) == weight;
  }
};

/// Doubles, or 64-bit integers, one for each element.
template <class Numbers>
void append_numbers(field_writer& out, const Numbers& from) {
  using Number = typename Numbers::value_type;
  if constexpr (std::endian::native == std::endian::little) {
    out.bytes(std::as_bytes(std::span<const Number>(from)));
  } else {
    for (const Number& x : from) out.u64(std::bit_cast<std::uint64_t>(x));
  }
}
template <class Numbers>
Numbers read_numbers(field_reader& in, std::size_t count) {
  using Number = typename Numbers::value_type;
  if (count > in.left() / 8) {
    in.refuse("there are " + std::to_string(in.left()) + " bytes left for " +
              std::to_string(count) + " numbers");
  }
  Numbers out(count);
  if constexpr (std::endian::native == std::endian::little) {
    const auto from = in.bytes(8 * count);
    if (count != 0) std::memcpy(out.data(), from.data(), from.size());
  } else {
    for (Number& x : out) x = std::bit_cast<Number>(in.u64());
  }
  return out;
}

inline void append_state(field_writer& out, const tensor_sums& of, bool with_sums) {
  const std::uint8_t kind = !with_sums ? 0 : !of.sums.empty() ? 1 : !of.fixed_sums.empty() ? 2 : 0;
  const bool has_weights = with_sums && !of.weights.empty();
  const bool has_integers = !of.integers.elements().empty();
  const bool has_counters = !of.counters.elements().empty();
  out.u8(of.format ? format_code(*of.format) : std::uint8_t{0});
  out.u8(kind);
  out.u8(static_cast<std::uint8_t>((has_weights ? 1 : 0) | (has_integers ? 2 : 0) |
                                   (has_counters ? 4 : 0)));
  out.pad_to(8);
  out.i64(of.range.low);
  out.i64(of.range.high);
  out.i64(of.range.exponent);
  out.f64(of.largest);
  if (kind == 1) append_numbers(out, of.sums);
  if (kind == 2) append_numbers(out, of.fixed_sums);
  if (has_weights) append_numbers(out, of.weights);
  of.integers.elements().for_each([&](bool held, const wide_integer& value) {
    out.u64(held ? 1 : 0);
    out.i64(value.high);
    out.u64(value.low);
  });
  of.counters.elements().for_each([&](bool held, const counter_value& value) {
    out.u64((held ? 1u : 0u) | (value.finite ? 2u : 0u));
    out.f64(value.x);
  });
}

/// The state of one tensor. Where clients have been added it has sums, unless it is a counter.
inline tensor_sums read_state(field_reader& in, const model::tensor_info& info, bool typed,
                              bool with_sums, sums_are sums, bool with_weights,
                              const partial_limits& limits) {
  const auto refuse = [&](const std::string& why) {
    in.refuse("tensor '" + info.name + "': " + why, {.tensor = info.name});
  };
  tensor_sums out;
  const std::uint8_t code = in.u8();
  const std::uint8_t kind = in.u8();
  const std::uint8_t has = in.u8();
  in.skip_padding(8);
  if (code != 0) {
    out.format = format_of_code(code);
    if (out.format->kind == number_kind::other) refuse("elements of an unknown type");
  }
  const bool is_number = typed ? code == 0 : code != 0 && is_floating(*out.format);
  const bool is_counter = info.role == role::counter;
  const bool is_sum = sums == sums_are::included && with_sums && is_number && !is_counter;
  const std::size_t count = info.is_local() ? 0 : memory_size<double>(info.extents);
  if (typed && code != 0) refuse("it has a type of its own");
  if (with_sums && !typed && !info.is_local() && code == 0) refuse("it has no type");
  if (kind != (!is_sum || count == 0 ? 0 : limits.options.sums ? 2 : 1)) {
    refuse("sums of kind " + std::to_string(kind));
  }
  const bool keeps = limits.options.integers == integer_rule::keep;
  if (has > 7 || ((has & 1) != 0 && kind == 0) || ((has & 1) == 0 && kind != 0 && with_weights) ||
      ((has & 2) != 0 && (keeps || is_number || count == 0 || !with_sums)) ||
      ((has & 4) != 0 && (keeps || !is_number || !is_counter || count == 0 || !with_sums))) {
    refuse("parts of kind " + std::to_string(has));
  }
  out.range = {in.i64(), in.i64(), in.i64()};
  out.largest = in.f64();
  const auto is_usual = [](std::int64_t x) { return x >= -4000 && x <= 4000; };
  product_range chosen = out.range;
  const bool is_empty = out.range == product_range{};
  if (!is_usual(out.range.low) || !is_usual(out.range.high) || !is_usual(out.range.exponent) ||
      (!is_empty && ((kind != 1 && count != 0) || out.range.empty())) || !chosen.choose() ||
      chosen != out.range || !(out.largest >= 0)) {
    refuse("the range of its products");
  }
  if (kind == 1) out.sums = read_numbers<sum_memory<double>>(in, count);
  if (kind == 2) out.fixed_sums = read_numbers<sum_memory<std::int64_t>>(in, count);
  for (const std::int64_t sum : out.fixed_sums) {
    if (std::fabs(static_cast<double>(sum)) > limits.largest_sum) {
      refuse("a sum of " + std::to_string(sum) + " quanta, which its weights and bound exclude");
    }
  }
  if ((has & 1) != 0) out.weights = read_numbers<std::vector<double>>(in, count);
  for (const double weight : out.weights) {
    if (!limits.allows(weight)) refuse("an element's weight is " + text(weight));
  }
  if ((has & 2) != 0) {
    if (count > in.left() / 24) refuse("there are too few bytes for its integers");
    out.integers.elements().assign(count, [&](wide_integer& value) {
      const std::uint64_t held = in.u64();
      value.high = in.i64();
      value.low = in.u64();
      if (held > 1 || (held == 0 && (value.high != 0 || value.low != 0))) refuse("an integer");
      return held == 1;
    });
  }
  if ((has & 4) != 0) {
    if (count > in.left() / 16) refuse("there are too few bytes for its counters");
    out.counters.elements().assign(count, [&](counter_value& value) {
      const std::uint64_t flags = in.u64();
      value.x = in.f64();
      value.finite = (flags & 2) != 0;
      const bool is_nothing = flags == 2 && std::bit_cast<std::uint64_t>(value.x) == 0;
      if (flags > 3 || ((flags & 1) == 0 && !is_nothing)) refuse("a counter");
      return (flags & 1) != 0;
    });
  }
  return out;
}

template <class T>
std::vector<std::byte> write_average(const selective_average<T>& mean, sums_are sums) {
  field_writer out;
  internals::open(mean, [&](const model& net, const average_options& options, const auto& state,
                            const auto& holders, bool dense, const auto& seen, double cohort_weight,
                            const average_report& report) {
    out.text("SFP");
    out.u8(1);
    out.pad_to(8);
    out.u64(0);  // the size
    out.u64(fingerprint(net));
    out.u64(0);  // the checksum
    append_options(out, options);
    out.u64((std::is_void_v<T> ? 0u : 1u) | (dense ? 2u : 0u));
    out.f64(cohort_weight);
    append_report(out, net, report);
    out.u64(seen.size());
    for (const auto& [round, client] : seen) {
      out.u64(round);
      out.u64(client);
    }
    holder_list distinct;
    for (const auto& e : holders.entries()) distinct.add(taking_part(e.sub), e.weight);
    out.u64(distinct.entries().size());
    for (const auto& e : distinct.entries()) {
      const std::vector<std::byte> sets = write_sets(e.sub);
      out.f64(e.weight);
      out.u64(sets.size());
      out.bytes(sets);
    }
    out.pad_to(8);
    const bool with_sums = sums == sums_are::included && (dense || !distinct.entries().empty());
    for (const tensor_sums& of : state) append_state(out, of, with_sums);
  });
  out.put_u64(8, out.size());
  out.put_u64(checksum_of_partial, checksum_around(out.all(), checksum_of_partial));
  return std::move(out.all());
}

template <class T>
selective_average<T> read_average(const model& net, const average_options& options,
                                  std::span<const std::byte> message, sums_are sums) {
  const float_mode mode;
  selective_average<T> mean(net, options);
  field_reader in(message, partial_average_name);
  in.magic("SFP", 1);
  in.skip_padding(8);
  const std::uint64_t size = in.u64();
  if (size != message.size()) {
    in.refuse("it has " + std::to_string(message.size()) + " bytes, expected " +
              std::to_string(size));
  }
  if (const std::uint64_t found = in.u64(); found != fingerprint(net)) {
    in.refuse("the model's fingerprint is " + std::to_string(found) + ", expected " +
              std::to_string(fingerprint(net)));
  }
  const std::uint64_t checksum = in.u64();  // before it is compared: there may be fewer bytes
  if (checksum_around(message, checksum_of_partial) != checksum) {
    in.refuse("the checksum is wrong");
  }
  field_writer own;
  append_options(own, options);
  const auto found = in.bytes(own.size());
  if (!std::equal(found.begin(), found.end(), own.all().begin(), own.all().end())) {
    in.refuse("it was made with other options");
  }
  const std::uint64_t flags = in.u64();
  if (flags > 3 || (flags & 1) != (std::is_void_v<T> ? 0u : 1u)) {
    in.refuse(std::is_void_v<T> ? "it is of an average of one type, expected one of mixed types"
                                : "it is of an average of mixed types, expected one of one type");
  }
  internals::open(
      mean, [&](const model&, const average_options&, auto& state, auto& holders, bool& dense,
                auto& seen, double& cohort_weight, average_report& report) {
        dense = (flags & 2) != 0;
        cohort_weight = in.f64();
        check_weight(partial_average_name, cohort_weight, "a partial average's cohort");
        report = read_report(in, net);
        const partial_limits limits(options, cohort_weight, report.clients);
        if (!limits.allows(cohort_weight)) {
          in.refuse("the weight of its cohort is " + text(cohort_weight));
        }
        const std::uint64_t known = in.u64();
        if (known > in.left() / 16 || (known != 0 && !options.round)) {
          in.refuse("a list of " + std::to_string(known) + " clients");
        }
        for (std::uint64_t i = 0; i < known; ++i) {
          const std::uint64_t round = in.u64();
          const std::pair key(round, in.u64());
          if (!seen.empty() && !(*seen.rbegin() < key)) in.refuse("clients that are not in order");
          seen.insert(seen.end(), key);
        }
        const std::uint64_t entries = in.u64();
        if (entries > in.left() / 16 || (entries != 0 && dense)) {
          in.refuse("a list of " + std::to_string(entries) + " submodels");
        }
        for (std::uint64_t i = 0; i < entries; ++i) {
          const double weight = in.f64();
          if (!limits.allows(weight) || !(weight > 0)) {
            in.refuse("the weight of a submodel is " + text(weight));
          }
          const std::uint64_t bytes = in.u64();
          holders.add(read_sets(net, in.bytes(bytes)), weight);
          if (holders.entries().size() != i + 1) in.refuse("a submodel twice");
        }
        in.skip_padding(8);
        const bool with_sums = dense || entries != 0;
        for (std::size_t t = 0; t < net.tensors().size(); ++t) {
          state[t] =
              read_state(in, net.tensors()[t], !std::is_void_v<T>, with_sums, sums, dense, limits);
        }
        in.end();
      });
  return mean;
}

}  // namespace detail

/// All that a streaming average has added, as bytes: sums, weights or holders, counts. Another machine
/// merges it, to the same bits as here:
///
///   send(write_partial_average(mean));                                       // on each worker
///   mean.merge(read_partial_average<float>(net, options, bytes));            // on the server
///
/// The layout is in docs/messages.md.
template <class T>
std::vector<std::byte> write_partial_average(const selective_average<T>& mean) {
  return detail::write_average(mean, detail::sums_are::included);
}

/// The average that was written, to be merged into another one of the same model and options. A
/// late_weight does not travel; both ends have their own.
///
/// Throws  error for bytes of another version, model or options, for another kind of T (void or not),
///         for a wrong checksum, and for what no average contains.
/// Cost    Memory in proportion to the bytes.
template <class T>
selective_average<T> read_partial_average(const model& net, const average_options& options,
                                          std::span<const std::byte> message) {
  return detail::read_average<T>(net, options, message, detail::sums_are::included);
}

}  // namespace subfed::inline v0
