// SPDX-License-Identifier: MIT
#include <subfed/adapt/safetensors.hpp>

#include <doctest/doctest.h>
#include <adapt/conformance.hpp>
#include <subfed/adapt/span.hpp>
#include <subfed/average/selective.hpp>
#include <support/checks.hpp>
#include <support/file_bytes.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

using namespace std::string_literals;
using conformance::layout;
using conformance::strided;
using subfed::named_view;
using subfed::safetensors_view;
using subfed::tensor_view;
using subfed::write_safetensors;
using support::file_bytes;
using support::message_of;

std::string length_of(std::uint64_t n) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(n >> (8 * i) & 0xFF);
  return out;
}
std::string file(const std::string& header, const std::string& data = {}) {
  return length_of(header.size()) + header + data;
}

struct tensors {
  using element = float;
  static constexpr bool writable = false;
  static constexpr int least = 7;
  static bool fits(const layout& l) { return conformance::is_row_major(l); }
  template <class F>
  static void with(strided<float>& memory, F&& f) {
    const double first = 0;  // so that the tensor does not come first
    const auto bytes =
        write_safetensors({{"w", memory.view()}, {"a", tensor_view<const double>(&first, {})}});
    const safetensors_view view(bytes);
    if constexpr (support::reads_in_place) {
      f(view["w"]);
    } else {
      const auto copy = subfed::aligned_copy<float>(view["w"]);
      f(copy);
    }
  }
};

std::string refusal(const std::string& bytes) {
  return message_of([&] { const safetensors_view view(bytes); });
}
/// Of a header before 16 bytes of data.
std::string refused(const std::string& header) { return refusal(file(header, "0123456789abcdef")); }
/// Of one tensor over 16 bytes.
std::string refused_tensor(const std::string& properties) {
  return refused("{\"w\":{" + properties + "}}");
}

}  // namespace

TEST_CASE("safetensors conform") { CHECK(conformance::failures<tensors>() == ""); }

TEST_CASE("a file is written as the format's own writer does it") {
  const float w[] = {1, 2, 3, 4};
  const std::int64_t steps = 7;
  const subfed::half h[] = {subfed::half(1.0), subfed::half(2.0)};
  const tensor_view<const float> weight(w, {2, 2});
  const auto bytes =
      write_safetensors<std::string>({{"fc.weight", weight},
                                      {"h", tensor_view<const subfed::half>(h, {2})},
                                      {"steps", tensor_view<const std::int64_t>(&steps, {})}},
                                     {{"format", "pt"}});
  std::string header =
      "{\"__metadata__\":{\"format\":\"pt\"},"
      "\"steps\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
      "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[8,24]},"
      "\"h\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[24,28]}}";
  header.append((8 - header.size() % 8) % 8, ' ');
  CHECK(bytes == file(header, file_bytes<std::int64_t>({7}) + file_bytes<float>({1, 2, 3, 4}) +
                                  file_bytes<std::uint16_t>({0x3C00, 0x4000})));

  const safetensors_view view(bytes);
  CHECK(view.size() == 3);
  CHECK(view.begin()->name == "steps");
  CHECK(subfed::aligned_copy<std::int64_t>(view["steps"]).data()[0] == 7);
  if (support::reads_in_place) CHECK(tensor_view<const float>(view["fc.weight"])(1, 0) == 3);
  CHECK(static_cast<const void*>(view["fc.weight"].data()) == bytes.data() + 8 + header.size() + 8);
  CHECK(view.contains("h"));
  CHECK_FALSE(view.contains("fc"));
  REQUIRE(view.metadata().size() == 1);
  CHECK(view.metadata()[0] == std::pair("format"s, "pt"s));
}

TEST_CASE("the order in which tensors are given changes nothing") {
  const std::vector<float> a{1, 2};
  const std::vector<double> b{3};
  const std::vector<float> c{};
  const std::vector<std::uint8_t> d{4, 5, 6};
  const auto bytes =
      write_safetensors({{"a", a}, {"b", b}, {"c", c}, {"d", d}}, {{"x", "1"}, {"y", "2"}});
  CHECK(bytes ==
        write_safetensors({{"d", d}, {"c", c}, {"b", b}, {"a", a}}, {{"y", "2"}, {"x", "1"}}));
  const safetensors_view view(bytes);
  std::vector<std::string> names;
  for (const auto& entry : view) names.push_back(entry.name);
  CHECK(names == std::vector<std::string>{"b", "a", "c", "d"});
  for (const auto& entry : view) {
    CHECK((entry.tensor.data() - bytes.data()) % (entry.name == "b"   ? 8
                                                  : entry.name == "d" ? 1
                                                                      : 4) ==
          0);
  }
  const auto none = write_safetensors(std::span<const named_view>());
  CHECK(none.size() == 16);
  CHECK(safetensors_view(none).size() == 0);
}

TEST_CASE("tensors of any strides are written row-major") {
  for (const layout& l : conformance::layouts()) {
    strided<subfed::bfloat16> tensor(l);
    tensor.fill([](std::int64_t n) { return subfed::bfloat16(static_cast<double>(n)); });
    const auto bytes = write_safetensors({{"w", tensor.view()}});
    const safetensors_view view(bytes);
    CHECK(view["w"].element_type() == "bfloat16");
    const auto copy = subfed::aligned_copy<subfed::bfloat16>(view["w"]);
    CHECK(std::vector<std::int64_t>(copy.extents().begin(), copy.extents().end()) == l.extents);
    const auto elements = tensor.elements();
    CHECK(std::equal(elements.begin(), elements.end(), copy.data()));
  }
}

TEST_CASE("the tensors of a model are found by their names and averaged where they lie" *
          doctest::skip(!support::reads_in_place)) {
  subfed::model net;
  const auto hidden = net.group("hidden", 3);
  net.tensor("fc1.weight", {hidden, 2});
  net.tensor("fc1.bias", {hidden});
  const auto held = [&](std::vector<std::int64_t> nodes) {
    return subfed::submodel(net, {subfed::index_set(3, nodes)});
  };
  const std::vector<float> w{1, 2, 3, 4};
  const std::vector<float> b{5, 6};
  const auto upload = write_safetensors(
      {{"fc1.weight", tensor_view<const float>(w.data(), {2, 2})}, {"fc1.bias", b}, {"other", w}});

  std::vector<float> weight(6, 9);
  std::vector<float> bias(3, 9);
  subfed::selective_average<float> mean(net);
  mean.add(held({2, 0}), safetensors_view(upload).tensors<float>(net));
  mean.add(held({0}),
           {tensor_view<const float>(w.data(), {1, 2}), tensor_view<const float>(b.data(), {1})},
           3);
  mean.finish({tensor_view<float>(weight.data(), {3, 2}), bias});
  CHECK(weight == std::vector<float>{1.5f, 2.5f, 9, 9, 1, 2});
  CHECK(bias == std::vector<float>{5.25f, 9, 5});

  const auto part = write_safetensors({{"fc1.bias", b}});
  CHECK(message_of([&] { safetensors_view(part).tensors<float>(net); }) ==
        "subfed: safetensors: the file has no tensor 'fc1.weight'");
  CHECK(message_of([&] { safetensors_view(upload).tensors<double>(net); }) ==
        "subfed: the safetensors tensor 'fc1.weight' has elements of type float, expected double");
}

TEST_CASE("a model of mixed element types is averaged in place, too" *
          doctest::skip(!support::reads_in_place)) {
  subfed::model net;
  const auto hidden = net.group("hidden", 2);
  net.tensor("weight", {hidden});
  net.tensor("steps", {});
  std::vector<float> weight{9, 9};
  std::int64_t steps = 7;
  subfed::selective_average<void> mean(net);
  std::vector<std::vector<std::byte>> uploads;
  for (const std::int64_t count : {10, 13}) {
    const std::vector<float> w{static_cast<float>(count)};
    uploads.push_back(
        write_safetensors({{"steps", tensor_view<const std::int64_t>(&count, {})}, {"weight", w}}));
  }
  for (const auto& upload : uploads) {
    mean.add(subfed::submodel(net, {subfed::index_set(2, {1})}),
             safetensors_view(upload).tensors<void>(net));
  }
  mean.finish({weight, tensor_view<std::int64_t>(&steps, {})});
  CHECK(weight == std::vector<float>{9, 11.5f});
  CHECK(steps == 7);  // integers are kept unless the options say otherwise
}

TEST_CASE("names are JSON strings") {
  const std::string header =
      R"({"a\"\\\/\b\f\n\r\tb\u00e9\u20AC\ud83d\ude00":{"shape":[],"data_offsets":[0,1],"dtype":"U8"} } )";
  const auto bytes = file(header, "x");
  const safetensors_view view(bytes);
  const std::string name = "a\"\\/\b\f\n\r\tb\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80";
  CHECK(view.begin()->name == name);
  const auto again =
      write_safetensors({{name, tensor_view<const std::uint8_t>(view[name])}}, {{"a\x01", name}});
  CHECK(safetensors_view(again).begin()->name == name);
  CHECK(safetensors_view(again).metadata()[0] == std::pair("a\x01"s, name));
}

TEST_CASE("a length that is not there is refused before anything is read") {
  CHECK(refusal("") == "subfed: safetensors: the file has 0 bytes, at least 8 are needed");
  CHECK(refusal("1234567") == "subfed: safetensors: the file has 7 bytes, at least 8 are needed");
  CHECK(refusal(length_of(std::uint64_t{1} << 63) + "{}") ==
        "subfed: safetensors: the header should have 9223372036854775808 bytes, the maximum is "
        "100000000");
  CHECK(refusal(length_of(~std::uint64_t{0}) + "{}").find("18446744073709551615") !=
        std::string::npos);
  CHECK(refusal(length_of(100000001) + "{}").find("the maximum is") != std::string::npos);
  CHECK(refusal(length_of(3) + "{}") ==
        "subfed: safetensors: the header should have 3 bytes, but the file has only 2 more");
  CHECK(refusal(length_of(0)) == "subfed: safetensors: the header does not begin with '{'");
  CHECK(refusal(file(" {}")) == "subfed: safetensors: the header does not begin with '{'");
  CHECK(refusal(file("{}  ")) == "nothing was thrown");
}

TEST_CASE("bytes that belong to no tensor, or to two, are refused") {
  const auto two = [](const std::string& a, const std::string& b) {
    return refused(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":)" + a +
                   R"(},"b":{"dtype":"U8","shape":[8],"data_offsets":)" + b + "}}");
  };
  CHECK(two("[0,8]", "[8,16]") == "nothing was thrown");
  CHECK(two("[8,16]", "[0,8]") == "nothing was thrown");
  CHECK(two("[0,8]", "[7,15]") ==
        "subfed: safetensors: the tensor 'b' begins at byte 7, the previous one ends at 8");
  CHECK(two("[0,8]", "[0,8]") ==
        "subfed: safetensors: the tensor 'b' begins at byte 0, the previous one ends at 8");
  CHECK(two("[0,8]", "[9,17]") ==
        "subfed: safetensors: the tensor 'b' begins at byte 9, the previous one ends at 8");
  CHECK(two("[1,9]", "[9,17]") ==
        "subfed: safetensors: the tensor 'a' begins at byte 1, the previous one ends at 0");
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}})") ==
        "subfed: safetensors: the tensors end at byte 8, but 16 bytes follow the header");
  CHECK(refused(R"({"a":{"dtype":"U8","shape":[17],"data_offsets":[0,17]}})") ==
        "subfed: safetensors: the tensors end at byte 17, but 16 bytes follow the header");
  CHECK(refused("{}") ==
        "subfed: safetensors: the tensors end at byte 0, but 16 bytes follow the header");
}

TEST_CASE("a shape that does not fit its bytes is refused") {
  CHECK(refused_tensor(R"("dtype":"F32","shape":[2,2],"data_offsets":[0,16])") ==
        "nothing was thrown");
  CHECK(refused_tensor(R"("dtype":"F32","shape":[2,3],"data_offsets":[0,16])") ==
        "subfed: safetensors: the tensor 'w' of shape (2, 3) and type float is given 16 bytes");
  CHECK(refused_tensor(R"("dtype":"F32","shape":[],"data_offsets":[0,16])") ==
        "subfed: safetensors: the tensor 'w' of shape () and type float is given 16 bytes");
  CHECK(refused_tensor(
            R"("dtype":"F32","shape":[4294967296,4294967296,4294967296],"data_offsets":[0,16])")
            .find("is given 16 bytes") != std::string::npos);
  CHECK(refused_tensor(R"("dtype":"F32","shape":[4611686018427387908],"data_offsets":[0,16])")
            .find("is given 16 bytes") != std::string::npos);
  CHECK(refused_tensor(R"("dtype":"F32","shape":[4],"data_offsets":[16,0])") ==
        "subfed: safetensors: the tensor 'w' has 'data_offsets' that are not a first and a last");
  CHECK(refused_tensor(R"("dtype":"F32","shape":[4],"data_offsets":[0,16,32])") ==
        "subfed: safetensors: the tensor 'w' has 'data_offsets' that are not a first and a last");
  CHECK(refusal(file(
            R"({"w":{"dtype":"F32","shape":[9223372036854775807,0,3],"data_offsets":[0,0]}})")) ==
        "nothing was thrown");
}

TEST_CASE("every type of the format is known by its bits") {
  for (const auto& known : subfed::detail::safetensors_dtypes) {
    const int bits = known.format.bits;
    const std::string count = std::to_string(bits == 6 ? 16 : 128 / bits), name(known.name);
    const std::string bytes = std::to_string(bits == 6 ? 12 : 16);
    CAPTURE(name);
    const auto said = [&](const std::string& shape) {
      return refusal(file("{\"w\":{\"dtype\":\"" + name + "\",\"shape\":" + shape +
                              ",\"data_offsets\":[0," + bytes + "]}}",
                          std::string(std::stoul(bytes), 'x')));
    };
    CHECK(said("[" + count + "]") == "nothing was thrown");
    CHECK(said("[" + count + ",2]").find("is given " + bytes + " bytes") != std::string::npos);
  }
  // Elements that do not fill their last byte.
  CHECK(refused_tensor(R"("dtype":"F4","shape":[31],"data_offsets":[0,16])") ==
        "subfed: safetensors: the tensor 'w' of shape (31,) and type F4 is given 16 bytes");
  CHECK(refused_tensor(R"("dtype":"F6_E2M3","shape":[21],"data_offsets":[0,16])") ==
        "subfed: safetensors: the tensor 'w' of shape (21,) and type F6_E2M3 is given 16 bytes");
  CHECK(refused_tensor(R"("dtype":"F4","shape":[9223372036854775807],"data_offsets":[0,16])")
            .find("is given 16 bytes") != std::string::npos);
}

// city96/ComfyUI-GGUF#21, huggingface/candle#2875: one tensor in eight bits, and no other was read.
TEST_CASE("a tensor of a type that subfed has not is refused only when it is asked for") {
  struct example {
    std::string type, shape;
    std::int64_t bytes;
  };
  for (const example& e : {example{"F8_E4M3", "[3]", 3},
                           {"F8_E5M2", "[3]", 3},
                           {"F8_E8M0", "[2]", 2},
                           {"F4", "[2,8]", 8},
                           {"F6_E3M2", "[4]", 3},
                           {"C64", "[1]", 8},
                           {"F128", "[5,7]", 3},
                           {"f32", "[]", 0},
                           {"", "[0]", 0}}) {
    CAPTURE(e.type);
    std::string data = file_bytes<float>({0, 1, 2, 3});
    for (std::int64_t i = 0; i < e.bytes; ++i) data += static_cast<char>(16 + i);
    std::string header = R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
                         R"("s":{"dtype":")" +
                         e.type + R"(","shape":)" + e.shape + ",\"data_offsets\":[16," +
                         std::to_string(16 + e.bytes) + "]}}";
    header.append((8 - header.size() % 8) % 8, ' ');
    const std::string bytes = file(header, data);
    const safetensors_view view(bytes);
    CHECK(subfed::aligned_copy<float>(view["w"]).data()[3] == 3);

    const subfed::byte_tensor& other = view["s"];
    CHECK_FALSE(other.has_elements());
    CHECK_FALSE(other.holds<float>());
    CHECK_FALSE(other.holds<std::uint8_t>());
    CHECK_FALSE(other.holds<std::pair<int, int>>());
    CHECK(other.element_type() == e.type);
    CHECK(other.size_bytes() == e.bytes);
    CHECK(static_cast<const void*>(other.data()) == bytes.data() + bytes.size() - e.bytes);
    const std::string start =
        "subfed: the safetensors tensor 's' has elements of type '" + e.type + "', ";
    CHECK(message_of([&] { subfed::aligned_copy<float>(other); }) == start + "expected float");
    CHECK(message_of([&] { tensor_view<const float>{other}; }) == start + "expected float");
    CHECK(message_of([&] { tensor_view<const void>{other}; }) ==
          start + "which are available only as bytes");
    subfed::model net;
    net.tensor("w", {4});
    if (support::reads_in_place) CHECK(view.tensors<float>(net).size() == 1);

    // On to another file as it is.
    const auto on = write_safetensors<std::string>({{"s", other}, {"w", view["w"]}});
    const safetensors_view again(on);
    CHECK(again["s"].element_type() == e.type);
    CHECK(std::equal(again["s"].extents().begin(), again["s"].extents().end(),
                     other.extents().begin(), other.extents().end()));
    REQUIRE(again["s"].size_bytes() == e.bytes);
    CHECK(std::equal(other.data(), other.data() + e.bytes, again["s"].data()));
    CHECK(subfed::aligned_copy<float>(again["w"]).data()[3] == 3);
  }
}

TEST_CASE("so is one of more than 8 dimensions") {
  const std::string bytes =
      file(R"({"w":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,4],"data_offsets":[0,16]}})",
           std::string(16, 'x'));
  const safetensors_view view(bytes);
  CHECK(view["w"].rank() == 9);
  CHECK(view["w"].extents()[8] == 4);
  CHECK(view["w"].size_bytes() == 16);
  const std::string refused = "subfed: the safetensors tensor 'w' has the rank 9, expected 0 to 8";
  CHECK(message_of([&] { subfed::aligned_copy<float>(view["w"]); }) == refused);
  CHECK(message_of([&] { tensor_view<const float>{view["w"]}; }) == refused);
  CHECK(message_of([&] { tensor_view<const void>{view["w"]}; }) == refused);
  CHECK(write_safetensors<std::string>({{"w", view["w"]}}).find("[1,1,1,1,1,1,1,1,4]") !=
        std::string::npos);
}

TEST_CASE("a layout that cannot be is refused, whatever the types are") {
  const auto two = [](const std::string& first, const std::string& second) {
    return refused(R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":)" + first +
                   R"(},"b":{"dtype":"NEW","shape":[1],"data_offsets":)" + second + "}}");
  };
  CHECK(two("[0,8]", "[8,16]") == "nothing was thrown");
  CHECK(two("[8,16]", "[0,8]") == "nothing was thrown");
  CHECK(two("[0,8]", "[7,16]") ==
        "subfed: safetensors: the tensor 'b' begins at byte 7, the previous one ends at 8");
  CHECK(two("[0,8]", "[9,16]") ==
        "subfed: safetensors: the tensor 'b' begins at byte 9, the previous one ends at 8");
  CHECK(two("[0,8]", "[8,15]") ==
        "subfed: safetensors: the tensors end at byte 15, but 16 bytes follow the header");
}

TEST_CASE("an error about a tensor carries its name") {
  const auto carried = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const subfed::error& error) {
      return error.tensor();
    }
    return "(nothing was thrown)";
  };
  const std::string short_one =
      file(R"({"w":{"dtype":"F32","shape":[5],"data_offsets":[0,16]}})", std::string(16, 'x'));
  CHECK(carried([&] { const safetensors_view view(short_one); }) == "w");
  const std::string bytes =
      file(R"({"w":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", std::string(16, 'x'));
  const safetensors_view view(bytes);
  CHECK(carried([&] { view["v"]; }) == "v");
}

TEST_CASE("a tensor of another file is written row-major, wherever it was") {
  const std::string elements = file_bytes<float>({1, 2, 3, 4, 5, 6});
  alignas(8) std::byte memory[28];
  std::memcpy(memory + 1, elements.data(), 24);
  const subfed::byte_tensor columns("the tensor", subfed::format_of<float>(), {2, 3},
                                    subfed::byte_tensor::order::column_major, memory + 1);
  const auto bytes = write_safetensors({{"w", columns}});
  const safetensors_view view(bytes);
  const auto copy = subfed::aligned_copy<float>(view["w"]);
  CHECK(std::vector<float>(copy.data(), copy.data() + 6) == std::vector<float>{1, 3, 5, 2, 4, 6});
}

TEST_CASE("a name that occurs twice is refused") {
  const std::string w = R"("w":{"dtype":"U8","shape":[8],"data_offsets":[0,8]})";
  const std::string same = R"("\u0077":{"dtype":"U8","shape":[8],"data_offsets":[8,16]})";
  CHECK(refused("{" + w + "," + same + "}") == "subfed: safetensors: the tensor 'w' occurs twice");
  CHECK(refused(R"({"__metadata__":{},"__metadata__":{}})") ==
        "subfed: safetensors: '__metadata__' occurs twice");
  CHECK(refused_tensor(R"("dtype":"U8","dtype":"U8","shape":[16],"data_offsets":[0,16])") ==
        "subfed: safetensors: the tensor 'w' has 'dtype' twice");
  CHECK(refused_tensor(R"("dtype":"U8","shape":[16])") ==
        "subfed: safetensors: the tensor 'w' lacks 'dtype', 'shape' or 'data_offsets'");
  CHECK(refused_tensor(R"("dtype":"U8","shape":[16],"data_offsets":[0,16],"strides":[1])") ==
        "subfed: safetensors: the tensor 'w' has the unknown property 'strides'");
}

TEST_CASE("what is not the part of JSON that the format uses is refused, with the place") {
  const auto at = [](const std::string& what, int byte) {
    return "subfed: safetensors: the header has " + what + ", at byte " + std::to_string(byte);
  };
  CHECK(refused("{") == at("its end where '\"' is expected", 1));
  CHECK(refused("{}{}") == at("something after its end", 2));
  CHECK(refused("{\"a") == at("an unterminated string", 3));
  CHECK(refused("{\"a\n\":1}") == at("a control character in a string", 3));
  CHECK(refused("{\"\\x\":1}") == at("an unknown escape in a string", 3));
  CHECK(refused("{\"\\u12G4\":1}") == at("an escape without four hexadecimal digits", 6));
  CHECK(refused("{\"\\ud800\":1}") == at("half of a surrogate pair in a string", 8));
  CHECK(refused("{\"\\ud800\\u0041\":1}") == at("half of a surrogate pair in a string", 14));
  CHECK(refused("{\"\xFF\":1}") == at("bytes that are not UTF-8", 2));
  CHECK(refused("{\"\xC0\xAF\":1}") == at("bytes that are not UTF-8", 2));
  CHECK(refused("{\"\xED\xA0\x80\":1}") == at("bytes that are not UTF-8", 2));
  CHECK(refused("{\"\xF4\x90\x80\x80\":1}") == at("bytes that are not UTF-8", 2));
  CHECK(refused("{\"a\":[1]}") == at("'[' where '{' is expected", 5));
  CHECK(refused("{\"a\":{},}").find("lacks 'dtype'") != std::string::npos);
  CHECK(refused("{'a':1}") == at("''' where '\"' is expected", 1));
  CHECK(refused("{\"__metadata__\":{\"a\":1}}") == at("'1' where '\"' is expected", 21));
  CHECK(refused("{\"__metadata__\":{\"a\":{\"b\":\"c\"}}}") ==
        at("'{' where '\"' is expected", 21));
  const auto shape = [&](const std::string& text) {
    return refused_tensor("\"shape\":" + text + R"(,"dtype":"U8","data_offsets":[0,16])");
  };
  const std::string whole = "something other than a whole number from 0 to 2^63 - 1";
  CHECK(shape("[-1]") == at(whole, 15));
  CHECK(shape("[1.0]") == at("'.' where ']' is expected", 16));
  CHECK(shape("[1e3]") == at("'e' where ']' is expected", 16));
  CHECK(shape("[016]") == at("a number with leading zeros", 18));
  CHECK(shape("[9223372036854775808]") == at(whole, 15));
  CHECK(shape("[16,]") == at(whole, 18));
  CHECK(shape("[[16]]") == at(whole, 15));
  CHECK(shape("null") == at("'n' where '[' is expected", 14));
}

TEST_CASE("a deep header is refused at its second level") {
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  CHECK(refused(deep) == "subfed: safetensors: the tensor 'a' has the unknown property 'a'");
}

TEST_CASE("names that cannot be written are refused") {
  const std::vector<float> x{1};
  CHECK(message_of([&] {
          write_safetensors({{"x", x}, {"x", x}});
        }) == "subfed: safetensors: the tensor 'x' is given twice");
  CHECK(message_of([&] {
          write_safetensors({{"__metadata__", x}});
        }) == "subfed: safetensors: the tensor '__metadata__' is the format's own");
  CHECK(message_of([&] {
          write_safetensors({{"\xFF", x}});
        }).find("is not UTF-8") != std::string::npos);
  CHECK(message_of([&] {
          write_safetensors({{"x", x}}, {{"k", "1"}, {"k", "2"}});
        }) == "subfed: safetensors: the metadata key 'k' is given twice");
  CHECK(message_of([&] {
          write_safetensors({{"x", x}}, {{"k", "\x80"}});
        }) == "subfed: safetensors: the metadata of 'k' is not UTF-8");
}

TEST_CASE("a tensor at an odd address is copied, not read in place") {
  const std::string header = R"({"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                             R"("w":{"dtype":"F32","shape":[2],"data_offsets":[1,9]}})";
  const std::string bytes = file(header, '\0' + file_bytes<float>({1, 2}));
  const safetensors_view view(bytes);
  CHECK(view["w"].is_aligned<float>() ==
        (reinterpret_cast<std::uintptr_t>(view["w"].data()) % 4 == 0));
  CHECK(subfed::aligned_copy<float>(view["w"]).data()[1] == 2);
}

TEST_CASE("bytes and elements that would be gone are refused at compile time") {
  static_assert(!std::is_constructible_v<safetensors_view, std::string>);
  static_assert(std::is_constructible_v<safetensors_view, const std::string&>);
  static_assert(std::is_constructible_v<safetensors_view, std::string_view>);
  static_assert(!std::is_constructible_v<named_view, const char*, std::vector<float>>);
  static_assert(std::is_constructible_v<named_view, const char*, std::vector<float>&>);
}
