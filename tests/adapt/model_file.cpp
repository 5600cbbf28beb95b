// SPDX-License-Identifier: MIT
#include <subfed/adapt/model_file.hpp>

#include <models/char_lstm.hpp>
#include <models/lenet.hpp>
#include <models/pre_resnet18.hpp>
#include <models/resnet50.hpp>
#include <models/transformer.hpp>
#include <models/vgg9.hpp>
#include <proof/networks.hpp>
#include <support/checks.hpp>

#include <cstddef>
#include <string>

using subfed::read_model;
using subfed::write_model;
using support::message_of;

namespace {

std::string model_refusal(const std::string& text) {
  return message_of([&] { static_cast<void>(read_model(text)); });
}
/// A text with these groups and tensors.
std::string model_text(const std::string& groups, const std::string& tensors) {
  return R"({"format": "subfed model", "version": 1, "groups": [)" + groups + R"(], "tensors": [)" +
         tensors + "]}";
}
std::string model_file_error(const std::string& what) {
  return "subfed: model file: the text has " + what;
}

}  // namespace

TEST_CASE("a model file, word for word") {
  subfed::model net;
  const auto hidden = net.group("hidden", 4);
  const auto classes = net.group("classes \"A\"", 3, subfed::cut::never);
  net.tensor("lstm.weight", {hidden.repeat(4), subfed::concat({hidden, 2}).block(2)});
  net.tensor("norm.running_var", {hidden}, subfed::role::statistic);
  net.tensor("steps", {}, subfed::role::counter);
  net.tensor("fc.weight", {classes, subfed::dimension(5).repeat(2)}, subfed::role::local);
  const std::string expected = R"({
  "format": "subfed model",
  "version": 1,
  "groups": [
    {"name": "hidden", "extent": 4},
    {"name": "classes \"A\"", "extent": 3, "cut": "never"}
  ],
  "tensors": [
    {"name": "lstm.weight", "dimensions": [[{"group": "hidden", "repeat": 4}], [{"group": "hidden", "block": 2}, {"whole": 2, "block": 2}]]},
    {"name": "norm.running_var", "role": "statistic", "dimensions": [[{"group": "hidden"}]]},
    {"name": "steps", "role": "counter", "dimensions": []},
    {"name": "fc.weight", "role": "local", "dimensions": [[{"group": "classes \"A\""}], [{"whole": 5, "repeat": 2}]]}
  ]
}
)";
  CHECK(write_model(net) == expected);
  CHECK(read_model(expected) == net);
}

TEST_CASE("models are read as they were written: examples, networks of the tests, none") {
  const auto same = [](const subfed::model& net) {
    const subfed::model read = read_model(write_model(net));
    CHECK(read == net);
    CHECK(write_model(read) == write_model(net));
  };
  same({});
  same(models::describe_pre_resnet18().net);
  same(models::describe_resnet50().net);
  same(models::describe_vgg9().net);
  same(models::describe_lenet(models::lenet_options::svhn()).net);
  same(models::describe_char_lstm().net);
  same(models::describe_transformer().net);
  for (const auto& of : proof_networks::all()) same(of.net);
}

TEST_CASE("keys may come in any order, spaces anywhere") {
  const std::string text =
      R"( {"tensors":[{"dimensions":[[{"block":2,"group":"\u0067"}]],"name":"w"}],
    "groups":[ {"cut":"by scheme","extent":3,"name":"g"} ],"version":1,"format":"subfed model"} )";
  subfed::model net;
  net.tensor("w", {net.group("g", 3).block(2)});
  CHECK(read_model(text) == net);
}

TEST_CASE("what is not a model file is refused, with the place") {
  CHECK(model_refusal("") == model_file_error("its end where '{' is expected, at byte 0"));
  CHECK(model_refusal("[]") == model_file_error("'[' where '{' is expected, at byte 0"));
  CHECK(model_refusal("{}") == model_file_error("an object without the key 'format', at byte 2"));
  CHECK(model_refusal(R"({"format": "onnx"})") ==
        model_file_error("the format 'onnx', at byte 17"));
  CHECK(model_refusal(R"({"version": 2})") ==
        model_file_error("version 2, and this is for version 1, at byte 13"));
  CHECK(model_refusal(R"({"version": -1})") ==
        model_file_error("something other than a whole number from 0 to 2^63 - 1, at byte 12"));
  CHECK(model_refusal(R"({"version": 01})") ==
        model_file_error("a number with leading zeros, at byte 14"));
  CHECK(model_refusal(R"({"version": 1, "version": 1})") ==
        model_file_error("the key 'version' twice, at byte 25"));
  CHECK(model_refusal(R"({"author": "x"})") ==
        model_file_error("the unknown key 'author', at byte 10"));
  CHECK(model_refusal(model_text("", "") + "x") ==
        model_file_error("something after its end, at byte 69"));
  CHECK(model_refusal(model_text(R"({"name": "g"})", "")) ==
        model_file_error("an object without the key 'extent', at byte 65"));
  CHECK(model_refusal(model_text(R"({"name": "g", "extent": 9223372036854775808})", "")) ==
        model_file_error("something other than a whole number from 0 to 2^63 - 1, at byte 76"));
  CHECK(model_refusal(model_text(R"({"name": "g", "extent": 1, "cut": "maybe"})", "")) ==
        model_file_error("the cut 'maybe', at byte 93"));
  CHECK(model_refusal(model_text(R"({"name": "g", "extent": 1}, {"name": "g", "extent": 1})",
                                 "")) == "subfed: model: the group name 'g' is taken");
  CHECK(model_refusal(model_text("", R"({"name": "w", "dimensions": [[{"group": "g"}]]})")) ==
        "subfed: model: there is no group 'g'");
  CHECK(model_refusal(model_text("", R"({"name": "w", "dimensions": [[{}]]})")) ==
        model_file_error("a part that is not either of a group or whole, at byte 99"));
  CHECK(model_refusal(
            model_text("", R"({"name": "w", "dimensions": [[{"whole": 1, "group": "g"}]]})")) ==
        model_file_error("a part that is not either of a group or whole, at byte 123"));
  CHECK(model_refusal(model_text("", R"({"name": "w", "dimensions": [[]]})")) ==
        "subfed: model file: tensor 'w' has a dimension of no parts");
  CHECK(model_refusal(
            model_text("", R"({"name": "w", "dimensions": [[{"whole": 1, "repeat": 0}]]})")) ==
        "subfed: model: repeat is 0, expected at least 1");
  CHECK(model_refusal(model_text("", R"({"name": "w", "role": "extra", "dimensions": []})")) ==
        model_file_error("the role 'extra', at byte 96"));
  CHECK(
      model_refusal(model_text("", R"({"name": "w", "dimensions": [[{"whole": 9223372036854775807}],
                             [{"whole": 9223372036854775807}]]})")) ==
      "subfed: model: tensor 'w' has more than 2^63 - 1 elements");
  std::string nine;
  for (int r = 0; r < 9; ++r) nine += r == 0 ? R"([{"whole": 1}])" : R"(, [{"whole": 1}])";
  CHECK(model_refusal(model_text("", R"({"name": "w", "dimensions": [)" + nine + "]}"))
            .find("a tensor of a rank over 8") != std::string::npos);
}

TEST_CASE("every beginning of a model file is refused, and most changes of a byte") {
  const std::string text = write_model(proof_networks::branches().net);
  for (std::size_t n = 0; n + 2 < text.size(); ++n) {
    CHECK(model_refusal(text.substr(0, n)) != "nothing was thrown");
  }
  for (std::size_t n = 0; n < text.size(); ++n) {
    std::string changed = text;
    changed[n] = '\x01';
    CHECK(model_refusal(changed) != "nothing was thrown");
  }
}

TEST_CASE("a name that is not UTF-8 and a dimension of no parts are not written") {
  subfed::model net;
  net.group("\xFF", 1);
  CHECK(message_of([&] { static_cast<void>(write_model(net)); }) ==
        "subfed: model file: a name of 1 bytes is not UTF-8");
  subfed::model empty;
  empty.tensor("w", {subfed::concat({})});
  CHECK(message_of([&] { static_cast<void>(write_model(empty)); }) ==
        "subfed: model file: tensor 'w' has a dimension of no parts");
}
