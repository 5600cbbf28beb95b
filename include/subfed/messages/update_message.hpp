// SPDX-License-Identifier: MIT
/// A client's update as bytes: what it is an update of, its weight, and its tensors.
#pragma once

#include <subfed/average/cohort.hpp>
#include <subfed/capacity.hpp>
#include <subfed/cost/traffic.hpp>
#include <subfed/detail/element_format.hpp>
#include <subfed/detail/loop_nest.hpp>
#include <subfed/detail/sizes.hpp>
#include <subfed/detail/tensor_checks.hpp>
#include <subfed/element_format.hpp>
#include <subfed/error.hpp>
#include <subfed/messages/detail/fields.hpp>
#include <subfed/messages/fingerprint.hpp>
#include <subfed/messages/submodel_bytes.hpp>
#include <subfed/model.hpp>
#include <subfed/submodel.hpp>
#include <subfed/tensor_view.hpp>
#include <subfed/tensor_views.hpp>
#include <subfed/untyped_view.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace subfed::inline v0 {

/// What stands in the first update_front_bytes of a message.
struct update_front {
  std::uint64_t model = 0;  ///< its fingerprint
  draw_key key;             ///< for which the client's submodel was drawn
  double weight = 0;
  std::uint64_t bytes = 0;       ///< of the whole message
  std::uint32_t head_bytes = 0;  ///< up to the first tensor
  std::uint32_t tensors = 0;
  std::uint32_t scheme_bytes = 0;  ///< of the scheme's text; 0: the sets are in the message
  std::uint64_t checksum = 0;

  friend bool operator==(const update_front&, const update_front&) = default;
};

inline constexpr std::size_t update_front_bytes = 96;

namespace detail {

inline constexpr const char* update_message_name = "update message";
inline constexpr std::size_t checksum_of_update = 80;  ///< where it stands
inline constexpr std::size_t tensor_alignment = 16;
inline constexpr std::size_t longest_scheme = 4096;
inline constexpr std::array<number_kind, 5> kinds_by_code = {
    number_kind::signed_integer, number_kind::unsigned_integer, number_kind::floating,
    number_kind::brain, number_kind::boolean};

/// 16 times one more than the number of the kind, plus the binary logarithm of the bytes.
inline std::uint8_t format_code(element_format format) {
  const auto kind = std::find(kinds_by_code.begin(), kinds_by_code.end(), format.kind);
  const auto number = static_cast<unsigned>(kind - kinds_by_code.begin());
  const auto size = static_cast<unsigned>(std::countr_zero(static_cast<unsigned>(format.bits / 8)));
  return static_cast<std::uint8_t>(16 * (number + 1) + size);
}
/// A format of no kind where there is no such code.
inline element_format format_of_code(std::uint8_t code) noexcept {
  const std::size_t number = code / 16u;
  const unsigned size = code % 16u;
  if (number < 1 || number > kinds_by_code.size() || size > 3) return {};
  const element_format out{kinds_by_code[number - 1], 8 << size};
  const bool known = is_integer(out) ? out.kind != number_kind::boolean || size == 0
                     : out.kind == number_kind::brain ? size == 1
                                                      : size >= 1;
  return known ? out : element_format{};
}

/// Elements of a client's tensor.
///
/// Throws  error when a machine cannot address them.
inline std::uint64_t elements_of(const submodel& sub, std::size_t t) {
  std::uint64_t n = 1;
  for (const std::int64_t e : sub.extents(tensor_id(t))) n *= static_cast<std::uint64_t>(e);
  return n;
}

inline void check_byte_order(element_format format) {
  if (std::endian::native == std::endian::little || format.bits == 8) return;
  fail("subfed: update message: elements of " + std::to_string(format.bits) +
       " bits are little-endian in a message, and this machine is not");
}

/// Appends the elements of any view, row-major.
template <class E>
void append_elements(field_writer& out, const tensor_view<const E>& tensor) {
  const auto raw = [](const E* from, std::int64_t count) {
    return std::as_bytes(std::span<const E>(from, static_cast<std::size_t>(count)));
  };
  if (tensor.size() == 0) return;
  if (tensor.is_row_major()) return out.bytes(raw(tensor.data_handle(), tensor.size()));
  for_each_offset(tensor, [&](std::int64_t o) { out.bytes(raw(tensor.data_handle() + o, 1)); });
}

/// Whether the client of this submodel takes part with all nodes that it holds.
inline bool is_restricted(const submodel& sub) {
  for (std::size_t g = 0; g < sub.parent().groups().size(); ++g) {
    const auto held = sub[group_id(g)].runs();
    const auto taking_part = sub.runs(group_id(g));
    if (!std::equal(taking_part.begin(), taking_part.end(), held.begin(), held.end())) return true;
  }
  return false;
}

}  // namespace detail

/// The most bytes that a message of a submodel's update has, for a scheme's text of so many bytes.
/// This is known before anything is received.
inline std::uint64_t most_update_bytes(const submodel& sub, std::size_t scheme_bytes = 0) {
  const std::size_t tensors = sub.parent().tensors().size();
  std::uint64_t out = update_front_bytes + scheme_bytes + 17 * tensors + 16;
  if (scheme_bytes == 0) out += write_sets(sub).size();
  for (std::size_t t = 0; t < tensors; ++t) {
    if (sub.parent().tensors()[t].is_local()) continue;
    const std::uint64_t elements = detail::elements_of(sub, t);
    constexpr std::uint64_t most = (std::numeric_limits<std::uint64_t>::max)();
    if (elements > (most - out) / 8) return most;
    out += 8 * elements;
  }
  return out;
}

/// Bytes of an update's message besides its elements: front, scheme or sets, types, and what aligns the
/// tensors. For traffic_options::framing_bytes; the element sizes are those of the options.
inline std::int64_t update_framing(const submodel& sub, std::string_view scheme = {},
                                   const traffic_options& options = {}) {
  const auto tensors = sub.parent().tensors();
  const auto aligned = [](std::uint64_t n) {
    return (n + detail::tensor_alignment - 1) / detail::tensor_alignment * detail::tensor_alignment;
  };
  std::uint64_t out = aligned(update_front_bytes + scheme.size() + tensors.size() +
                              (scheme.empty() ? write_sets(sub).size() : 0));
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    if (tensors[t].is_local()) continue;
    const auto width = static_cast<std::uint64_t>(options.tensor_element_bytes.empty()
                                                      ? options.element_bytes
                                                      : options.tensor_element_bytes[t]);
    const std::uint64_t bytes = detail::elements_of(sub, t) * width;
    out += aligned(bytes) - bytes;
  }
  return static_cast<std::int64_t>(out);
}

/// An update as bytes. `scheme`: the name of the scheme and its parameters in words on which both ends
/// agree, "rolling step=1"; the other end derives the sets. "": the sets themselves are sent, two
/// bytes a run and more. Tensors that stay with the client (role::local) are not sent. The layout is
/// in docs/messages.md.
///
/// Shapes  tensor t is sub.extents(tensor_id(t)); any strides, element types of any files.
/// Throws  error for a wrong number or shape of tensors, a weight that is negative or not finite, a
///         submodel that is restricted (restrict it where it is received), and a scheme's text of
///         more than 4096 bytes.
/// Cost    Reads each element once. One allocation of the message's size.
template <class T>
std::vector<std::byte> write_update(const submodel& sub, const tensor_views<const T>& tensors,
                                    double weight = 1, std::string_view scheme = {}) {
  const model& net = sub.parent();
  detail::check_update<T>(detail::update_message_name, net, sub, tensors, weight);
  if (scheme.size() > detail::longest_scheme) {
    detail::fail("subfed: update message: the scheme's text has " + std::to_string(scheme.size()) +
                 " bytes, expected at most " + std::to_string(detail::longest_scheme));
  }
  if (detail::is_restricted(sub)) {
    detail::fail("subfed: update message: the submodel of client " +
                     std::to_string(sub.origin().client) + " is restricted",
                 {.client = sub.origin().client});
  }
  std::vector<element_format> formats;
  std::uint64_t size = update_front_bytes + scheme.size() + 17 * tensors.size() + 16;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    formats.push_back(detail::format_of_view(tensors[t]));
    if (net.tensors()[t].is_local()) continue;
    detail::check_byte_order(formats.back());
    size += detail::elements_of(sub, t) * static_cast<std::uint64_t>(formats.back().bits / 8);
  }
  const std::vector<std::byte> sets = scheme.empty() ? write_sets(sub) : std::vector<std::byte>();
  detail::field_writer out;
  out.all().reserve(static_cast<std::size_t>(size + sets.size()));
  const draw_key& key = sub.origin();
  const capacity::parts share = key.capacity.to_parts();
  const std::size_t named = update_front_bytes + scheme.size() + sets.size() + tensors.size();
  const std::size_t head =
      (named + detail::tensor_alignment - 1) / detail::tensor_alignment * detail::tensor_alignment;
  out.text("SFU");
  out.u8(1);
  out.u32(static_cast<std::uint32_t>(head));
  out.u64(0);  // the size
  out.u64(fingerprint(net));
  out.u64(key.seed);
  out.u64(key.round);
  out.u64(key.client);
  out.f64(share.value);
  out.f64(share.relative_error);
  out.u32(static_cast<std::uint32_t>(share.numerator));
  out.u32(static_cast<std::uint32_t>(share.denominator));
  out.f64(weight);
  out.u64(0);  // the checksum
  out.u32(static_cast<std::uint32_t>(scheme.size()));
  out.u32(static_cast<std::uint32_t>(tensors.size()));
  out.text(scheme);
  out.bytes(sets);
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    out.u8(net.tensors()[t].is_local() ? std::uint8_t{0} : detail::format_code(formats[t]));
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    out.pad_to(detail::tensor_alignment);
    if (net.tensors()[t].is_local()) continue;
    detail::with_type(tensors[t], [&]<class E>(const tensor_view<const E>& tensor) {
      detail::append_elements(out, tensor);
    });
  }
  out.pad_to(detail::tensor_alignment);
  out.put_u64(8, out.size());
  out.put_u64(detail::checksum_of_update,
              detail::checksum_around(out.all(), detail::checksum_of_update));
  return std::move(out.all());
}

/// The front of a message, of which the first update_front_bytes suffice.
///
/// Throws  error for what is no update message of this version. The numbers may still be anything.
/// Cost    Allocates nothing.
inline update_front peek_update(std::span<const std::byte> first) {
  detail::field_reader in(first, detail::update_message_name);
  update_front out;
  in.magic("SFU", 1);
  out.head_bytes = in.u32();
  out.bytes = in.u64();
  out.model = in.u64();
  out.key.seed = in.u64();
  out.key.round = in.u64();
  out.key.client = in.u64();
  capacity::parts share{};
  share.value = in.f64();
  share.relative_error = in.f64();
  share.numerator = in.u32();
  share.denominator = in.u32();
  out.key.capacity = capacity::from_parts(share);
  out.weight = in.f64();
  out.checksum = in.u64();
  out.scheme_bytes = in.u32();
  out.tensors = in.u32();
  if (out.head_bytes % detail::tensor_alignment != 0 || out.head_bytes > out.bytes) {
    in.refuse("a head of " + std::to_string(out.head_bytes) + " bytes in a message of " +
              std::to_string(out.bytes));
  }
  detail::check_weight(detail::update_message_name, out.weight,
                       "client " + std::to_string(out.key.client), {.client = out.key.client});
  return out;
}

/// Checks that a message is the one that is expected of a client before the rest of it is received:
/// of the model, the key (seed, round, client, capacity) and the kind of sets, and not too long.
///
/// Throws  error that names what differs, with the expected and the found.
inline void check_front(const update_front& front, const submodel& expected,
                        std::string_view scheme = {}) {
  const draw_key& key = expected.origin();
  const auto refuse = [&](const std::string& what, const std::string& found,
                          const std::string& wanted) {
    detail::fail("subfed: update message: " + what + " is " + found + ", expected " + wanted,
                 {.client = key.client});
  };
  const auto check = [&](const char* what, std::uint64_t found, std::uint64_t wanted) {
    if (found != wanted) refuse(what, std::to_string(found), std::to_string(wanted));
  };
  check("the model's fingerprint", front.model, fingerprint(expected.parent()));
  check("the client", front.key.client, key.client);
  check("the round", front.key.round, key.round);
  check("the seed", front.key.seed, key.seed);
  if (!(front.key.capacity == key.capacity)) {
    refuse("the capacity", detail::text(front.key.capacity.value()),
           detail::text(key.capacity.value()));
  }
  check("the number of tensors", front.tensors, expected.parent().tensors().size());
  check("the size of the scheme's text", front.scheme_bytes, scheme.size());
  const std::uint64_t most = most_update_bytes(expected, scheme.size());
  if (front.bytes > most) {
    refuse("the size", std::to_string(front.bytes) + " bytes", "at most " + std::to_string(most));
  }
}

namespace detail {

/// The update after a head whose sets are known: views of the bytes. `in` stands at the types.
inline update<void> tensors_of_message(field_reader& in, const update_front& front,
                                       std::span<const std::byte> message, submodel sub) {
  const model& net = sub.parent();
  const std::uint64_t client = front.key.client;
  const auto codes = in.bytes(net.tensors().size());
  in.skip_padding(tensor_alignment);
  if (in.at() != front.head_bytes) in.refuse("its head has another size than it says");
  std::vector<tensor_view<const void>> views;
  views.reserve(net.tensors().size());
  for (std::size_t t = 0; t < net.tensors().size(); ++t) {
    const auto& info = net.tensors()[t];
    const auto code = std::to_integer<std::uint8_t>(codes[t]);
    if (info.is_local()) {
      if (code != 0) {
        in.refuse("it has tensor '" + info.name + "', which stays with the client",
                  {.client = client, .tensor = info.name});
      }
      static constexpr float nothing = 0;
      views.emplace_back(tensor_view<const float>(&nothing, {0}));
      continue;
    }
    const element_format format = format_of_code(code);
    if (format.kind == number_kind::other) {
      in.refuse("tensor '" + info.name + "' has elements of an unknown type, code " +
                    std::to_string(code),
                {.client = client, .tensor = info.name});
    }
    check_byte_order(format);
    const std::uint64_t elements = elements_of(sub, t);
    const auto width = static_cast<std::uint64_t>(format.bits / 8);
    if (elements > in.left() / width) {
      in.refuse("tensor '" + info.name + "' of client " + std::to_string(client) + " has " +
                    std::to_string(elements) + " elements of " + format_text(format) + ", but " +
                    std::to_string(in.left()) + " bytes are left",
                {.client = client, .tensor = info.name});
    }
    const auto data = in.bytes(elements * width);
    in.skip_padding(tensor_alignment);
    with_format(format, [&]<class E>() {
      if (!is_aligned<E>(data.data())) {
        in.refuse("the bytes begin at an address that is no multiple of " +
                  std::to_string(alignof(E)) + ", for elements of " + format_text(format));
      }
      if constexpr (std::is_same_v<E, bool>) {
        for (const std::byte b : data) {
          if (std::to_integer<unsigned>(b) > 1) {
            in.refuse("a flag of tensor '" + info.name + "' is neither 0 nor 1",
                      {.client = client, .tensor = info.name});
          }
        }
      }
      const auto* const first = static_cast<const E*>(static_cast<const void*>(data.data()));
      views.emplace_back(tensor_view<const E>(first, sub.extents(tensor_id(t))));
    });
  }
  in.end();
  if (checksum_around(message, checksum_of_update) != front.checksum) {
    in.refuse("the checksum of client " + std::to_string(client) + " is wrong", {.client = client});
  }
  return {std::move(sub), tensor_views<const void>(views), front.weight};
}

inline update_front front_of_whole(std::span<const std::byte> message) {
  const update_front front = peek_update(message);
  if (front.bytes == message.size()) return front;
  fail("subfed: update message: it has " + std::to_string(message.size()) + " bytes, expected " +
           std::to_string(front.bytes),
       {.client = front.key.client});
}

}  // namespace detail

/// The update in a message of which the receiver knows what it is of: `expected` is the submodel that
/// was sent to the client, with its key as its origin(). The tensors are views of the bytes, which must
/// stay; nothing is copied:
///
///   const auto sent = draw(net, rolling{}, key_of(client));
///   const auto arrived = open_update(sent, "rolling", bytes);
///   mean.add(arrived.sub, arrived.tensors, arrived.weight);        // selective_average<void>, or
///   mean.add<void>(arrived.sub, arrived.tensors, arrived.weight);  // of any T
///
/// Pre     The bytes begin at a multiple of 8 (those of a std::vector or of new do).
/// Throws  error for a message of another model, key or scheme, of another size than expected, or with
///         a wrong checksum. The checksum finds accidents, not forgeries.
/// Cost    Reads the bytes once. Allocates a view for each tensor.
inline update<void> open_update(const submodel& expected, std::string_view scheme,
                                std::span<const std::byte> message) {
  const update_front front = detail::front_of_whole(message);
  check_front(front, expected, scheme);
  detail::field_reader in(message, detail::update_message_name);
  in.bytes(update_front_bytes);
  if (scheme.empty()) {
    const std::vector<std::byte> sets = write_sets(expected);
    const auto found = in.bytes((std::min)(sets.size(), in.left()));
    if (!std::equal(found.begin(), found.end(), sets.begin(), sets.end())) {
      in.refuse(
          "the sets of client " + std::to_string(front.key.client) + " are others than expected",
          {.client = front.key.client});
    }
  } else if (const std::string_view found = in.text(scheme.size()); found != scheme) {
    in.refuse("the scheme is '" + std::string(found) + "', expected '" + std::string(scheme) + "'",
              {.client = front.key.client});
  }
  return detail::tensors_of_message(in, front, message, expected);
}

/// The same for sets that the client chose: they are read from the message.
///
/// Throws  error as above, and for a message that names a scheme instead.
/// Cost    Memory in proportion to the bytes.
inline update<void> open_update(const model& net, std::span<const std::byte> message) {
  const update_front front = detail::front_of_whole(message);
  detail::field_reader in(message, detail::update_message_name);
  in.bytes(update_front_bytes);
  if (front.scheme_bytes != 0) in.refuse("it names a scheme, and has no sets");
  if (front.model != fingerprint(net)) {
    in.refuse("the model's fingerprint is " + std::to_string(front.model) + ", expected " +
              std::to_string(fingerprint(net)));
  }
  if (front.tensors != net.tensors().size()) in.refuse("the number of tensors is another");
  // Sets end where the head has room for the types alone.
  std::size_t read = 0;
  submodel sub =
      detail::read_sets_in_front(net, message.subspan(update_front_bytes), front.key, read);
  in.bytes(read);
  return detail::tensors_of_message(in, front, message, std::move(sub));
}

}  // namespace subfed::inline v0
