// SPDX-License-Identifier: MIT
#include "bytes.hpp"

#include <subfed/capacity.hpp>
#include <subfed/philox.hpp>

#include <bit>
#include <cstddef>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace subfed_python {

namespace {

using subfed::detail::fail;

/// Little-endian words of 64 bits; texts behind their length.
class writer {
 public:
  void put(std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) out_ += static_cast<char>(value >> (8 * byte) & 0xFF);
  }
  void put(std::int64_t value) { put(static_cast<std::uint64_t>(value)); }
  void put(std::string_view text) {
    put(static_cast<std::uint64_t>(text.size()));
    out_ += text;
  }
  void magic(std::string_view text) { out_ += text; }
  std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

class reader {
 public:
  reader(const char* what, std::string_view magic, std::string_view bytes)
      : what_(what), rest_(bytes) {
    if (bytes.substr(0, magic.size()) != magic) refuse("they begin otherwise");
    rest_.remove_prefix(magic.size());
  }
  std::uint64_t word() {
    if (rest_.size() < 8) refuse("they end too early");
    std::uint64_t value = 0;
    for (int byte = 7; byte >= 0; --byte) {
      value = value << 8 | static_cast<unsigned char>(rest_[static_cast<std::size_t>(byte)]);
    }
    rest_.remove_prefix(8);
    return value;
  }
  std::int64_t integer() { return static_cast<std::int64_t>(word()); }
  /// Of things that take `least` bytes each: no more than there is room for.
  std::size_t count(std::size_t least) {
    const std::uint64_t n = word();
    if (n > rest_.size() / least) refuse("they end too early");
    return static_cast<std::size_t>(n);
  }
  std::string text() {
    const std::size_t n = count(1);
    std::string out(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return out;
  }
  void end() const {
    if (!rest_.empty()) refuse("there are more of them than expected");
  }
  [[noreturn]] void refuse(const std::string& why) const {
    fail(std::string("subfed: the bytes are not those of ") + what_ + ": " + why);
  }

 private:
  const char* what_;
  std::string_view rest_;
};

constexpr std::string_view model_magic = "subfed model 1\n";
constexpr std::string_view submodel_magic = "subfed submodel 1\n";
constexpr std::string_view set_magic = "subfed index_set 1\n";
constexpr std::uint64_t no_group = std::numeric_limits<std::uint64_t>::max();

void put_runs(writer& out, std::span<const subfed::run> runs) {
  out.put(static_cast<std::uint64_t>(runs.size()));
  for (const subfed::run& r : runs) {
    out.put(r.first);
    out.put(r.length);
  }
}
/// What runs hold together is bounded by the extent before memory is taken; a single run, as whole
/// groups and most windows are, takes none.
subfed::index_set set_of(reader& in, std::int64_t extent) {
  const std::size_t count = in.count(16);
  std::vector<std::int64_t> nodes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t first = in.integer();
    const std::int64_t length = in.integer();
    if (first < 0 || length < 1 || first > extent - length ||
        length > extent - static_cast<std::int64_t>(nodes.size())) {
      in.refuse("a run of " + std::to_string(length) + " nodes from " + std::to_string(first) +
                " on is not in a group of " + std::to_string(extent));
    }
    if (count == 1) return subfed::index_set::window(extent, first, length);
    for (std::int64_t n = 0; n < length; ++n) nodes.push_back(first + n);
  }
  return subfed::index_set(extent, nodes);
}

std::uint64_t fingerprint(const subfed::model& net) { return subfed::name_hash(model_bytes(net)); }

}  // namespace

std::string model_bytes(const subfed::model& net) {
  writer out;
  out.magic(model_magic);
  out.put(static_cast<std::uint64_t>(net.groups().size()));
  for (const auto& g : net.groups()) {
    out.put(std::string_view(g.name));
    out.put(g.extent);
    out.put(std::uint64_t{g.cut == subfed::cut::never});
  }
  out.put(static_cast<std::uint64_t>(net.tensors().size()));
  for (const auto& t : net.tensors()) {
    out.put(std::string_view(t.name));
    out.put(static_cast<std::uint64_t>(t.role));
    out.put(static_cast<std::uint64_t>(t.dimensions.size()));
    for (const subfed::dimension& d : t.dimensions) {
      out.put(static_cast<std::uint64_t>(d.parts().size()));
      for (const auto& p : d.parts()) {
        const bool bound = p.group != subfed::dimension::no_group;
        out.put(bound ? static_cast<std::uint64_t>(p.group) : no_group);
        out.put(p.whole);
        out.put(p.repeat);
        out.put(p.block);
      }
    }
  }
  return out.take();
}

subfed::model read_model(std::string_view bytes) {
  reader in("a model", model_magic, bytes);
  subfed::model net;
  for (std::size_t left = in.count(24); left > 0; --left) {
    std::string name = in.text();
    const std::int64_t extent = in.integer();
    const std::uint64_t never = in.word();
    if (never > 1) in.refuse("a group is cut in an unknown way");
    net.group(std::move(name), extent, never != 0 ? subfed::cut::never : subfed::cut::by_scheme);
  }
  for (std::size_t left = in.count(24); left > 0; --left) {
    std::string name = in.text();
    const std::uint64_t role = in.word();
    if (role > static_cast<std::uint64_t>(subfed::role::local)) {
      in.refuse("a tensor has an unknown role");
    }
    std::vector<subfed::dimension> dimensions;
    for (std::size_t rank = in.count(8); rank > 0; --rank) {
      subfed::dimension d = subfed::concat({});
      for (std::size_t parts = in.count(32); parts > 0; --parts) {
        const std::uint64_t group = in.word();
        const std::int64_t whole = in.integer();
        const std::int64_t repeat = in.integer();
        const std::int64_t block = in.integer();
        const subfed::dimension part =
            group == no_group
                ? subfed::dimension(whole)
                : subfed::dimension(subfed::group_id(static_cast<std::size_t>(group)));
        d = subfed::concat({d, part.repeat(repeat).block(block)});
      }
      dimensions.push_back(std::move(d));
    }
    net.tensor(std::move(name), dimensions, static_cast<subfed::role>(role));
  }
  in.end();
  return net;
}

std::string submodel_bytes(const subfed::submodel& sub) {
  writer out;
  out.magic(submodel_magic);
  out.put(fingerprint(sub.parent()));
  const subfed::draw_key& key = sub.origin();
  out.put(key.seed);
  out.put(key.round);
  out.put(key.client);
  out.put(std::bit_cast<std::uint64_t>(key.capacity.value()));
  for (std::size_t g = 0; g < sub.parent().groups().size(); ++g) {
    const subfed::group_id group(g);
    put_runs(out, sub[group].runs());
    put_runs(out, sub.runs(group));
  }
  return out.take();
}

subfed::submodel read_submodel(const subfed::model& net, std::string_view bytes) {
  reader in("a submodel", submodel_magic, bytes);
  if (in.word() != fingerprint(net)) {
    fail("subfed: the bytes are those of a submodel of another model");
  }
  subfed::draw_key key;
  key.seed = in.word();
  key.round = in.word();
  key.client = in.word();
  key.capacity = std::bit_cast<double>(in.word());
  std::vector<subfed::index_set> held;
  std::vector<subfed::index_set> taking_part;
  for (const auto& group : net.groups()) {
    held.push_back(set_of(in, group.extent));
    taking_part.push_back(set_of(in, group.extent));
  }
  in.end();
  subfed::submodel out(net, held, key);
  for (std::size_t g = 0; g < held.size(); ++g) {
    if (held[g] == taking_part[g]) continue;
    out = out.restricted(subfed::group_id(g), taking_part[g]);
  }
  return out;
}

std::string index_set_bytes(const subfed::index_set& set) {
  writer out;
  out.magic(set_magic);
  out.put(set.extent());
  put_runs(out, set.runs());
  return out.take();
}
subfed::index_set read_index_set(std::string_view bytes) {
  reader in("an index set", set_magic, bytes);
  const std::int64_t extent = in.integer();
  if (extent < 0) in.refuse("the extent is negative");
  subfed::index_set out = set_of(in, extent);
  in.end();
  return out;
}

}  // namespace subfed_python
