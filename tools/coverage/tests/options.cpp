// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <doctest/doctest.h>

#include <common/tests/message_of.hpp>
#include <string>
#include <vector>

using coverage_tool::options;
using coverage_tool::parse_options;
using coverage_tool::parse_scheme;

namespace {

options parsed(std::vector<const char*> words) {
  words.insert(words.begin(), "coverage");
  return parse_options(static_cast<int>(words.size()), words.data()).value();
}
std::string refusal(const std::vector<const char*>& words) {
  return message_of([&] { parsed(words); });
}

}  // namespace

TEST_CASE("defaults are the income mix on 512 nodes") {
  const options o = parsed({});
  CHECK(o.on.net.groups().size() == 1);
  CHECK(o.on.net[o.on.widest].extent == 512);
  CHECK(o.schemes.size() == 3);
  CHECK(o.class_names.size() == 5);
  CHECK(o.cohort.clients == 100);
  CHECK(o.cohort.capacities == subfed::capacity_assignment::fixed);
  CHECK_FALSE(o.parameters);
}

TEST_CASE("models, mixes and schemes are read") {
  const options o =
      parsed({"--model", "pre_resnet18", "--mix", "1:0.25, 1/16:0.75", "--redraw-capacities",
              "--schemes", "rolling:step=4,random:pool=5:round=ceil", "--parameters"});
  CHECK(o.on.net.size() == 11172170);
  CHECK(o.on.net[o.on.widest].extent == 512);
  CHECK(o.cohort.mix.classes[1].capacity.value() == 1.0 / 16);
  CHECK(o.cohort.mix.classes[1].share == 0.75);
  CHECK(o.cohort.capacities == subfed::capacity_assignment::redrawn);
  CHECK(o.schemes[0].step == 4);
  CHECK(o.schemes[1].known == coverage_tool::law::unknown);
  CHECK(o.parameters);
  const options p = parsed({"--widths", "8,20,3"});
  CHECK(p.on.net[p.on.widest].extent == 20);
  CHECK(p.on.net.size() == 32 * 8 + 8 + 8 * 20 + 20 + 20 * 3 + 3 + 3 * 10 + 10);
}

TEST_CASE("a mix of two classes is known by its share of large clients") {
  const options o = parsed({"--mix", "two-class:0.25"});
  CHECK(o.class_names == std::vector<std::string>{"1", "1/16"});
  CHECK(o.cohort.mix.classes[0].share == 0.25);
  CHECK(o.cohort.mix.classes[1].share == 0.75);
  CHECK(parsed({"--mix", "two-class:0"}).class_names == std::vector<std::string>{"1/16"});
  CHECK(parsed({"--mix", "two-class:1"}).class_names == std::vector<std::string>{"1"});
}

TEST_CASE("every model has its widest group among those that are cut") {
  for (const char* name :
       {"pre_resnet18", "resnet50", "vgg9", "lenet", "char_lstm", "transformer"}) {
    const auto on = coverage_tool::find_network(name);
    CHECK(on.net[on.widest].cut == subfed::cut::by_scheme);
    for (const auto& group : on.net.groups()) {
      if (group.cut == subfed::cut::by_scheme) CHECK(group.extent <= on.net[on.widest].extent);
    }
  }
}

TEST_CASE("a scheme's options reach the scheme") {
  const subfed::draw_request where{.round = 3, .group = "g", .extent = 10, .capacity = 0.25};
  const auto first = [&](const char* text) { return parse_scheme(text).scheme(where)[0]; };
  CHECK(first("rolling") == 3);
  CHECK(first("rolling:step=2") == 6);
  CHECK(first("rolling:backward") == 7);
  CHECK(first("rolling:phase=5") == 8);
  CHECK(first("rolling:overlap=0") == 9);
  CHECK(first("static") == 0);
  CHECK(parse_scheme("static").scheme(where).size() == 2);
  CHECK(parse_scheme("static:round=ceil").scheme(where).size() == 3);
  CHECK(first("ensemble:advance=1") == 6);
  const subfed::draw_request other{
      .round = 3, .client = 9, .group = "g", .extent = 10, .capacity = 0.25};
  CHECK(parse_scheme("random:shared=1").scheme(where) ==
        parse_scheme("random:shared=1").scheme(other));
  CHECK(parse_scheme("random").scheme(where) != parse_scheme("random:per-client").scheme(where));
  CHECK(parse_scheme("mine").scheme(where).extent() == 10);
}

TEST_CASE("what cannot be meant is refused in a sentence") {
  CHECK(refusal({"--schemes", "heterofl"}) ==
        "There is no scheme \"heterofl\"; the schemes are rolling, random, static, ensemble and "
        "mine, and --help lists their options.");
  CHECK(refusal({"--schemes", "rolling:step=3:backward:step=4"}) ==
        "The scheme \"rolling:step=3:backward:step=4\" has the option \"step\" twice.");
  // Its negative, of the window that goes backward, is no number.
  CHECK(refusal({"--schemes", "rolling:step=-9223372036854775808:backward"}) ==
        "The scheme \"rolling:step=-9223372036854775808:backward\" has the option "
        "\"step=-9223372036854775808\", which is not understood; --help lists the schemes.");
  CHECK(
      refusal({"--schemes", "rolling:stepp=3"}) ==
      "The scheme \"rolling:stepp=3\" has the option \"stepp=3\", which is not understood; --help "
      "lists the schemes.");
  CHECK(refusal({"--schemes", "rolling,rolling"}) == "The scheme \"rolling\" is given twice.");
  CHECK(refusal({"--schemes", "random:pool=many"}) != "(no failure)");
  CHECK(refusal({"--model", "resnet"}) ==
        "There is no model \"resnet\"; the models are pre_resnet18, resnet50, vgg9, lenet, "
        "char_lstm, transformer.");
  CHECK(refusal({"--widths", "0"}) == "A width is 0, but 1 to 1000000 is expected.");
  CHECK(refusal({"--widths", "5x"}) == "--widths: \"5x\" is not a whole number.");
  CHECK(
      refusal({"--mix", "1,1:2:3"}) ==
      "The capacity mix \"1,1:2:3\" is none of uniform, income and two-class:RHO, and \"1:2:3\" is "
      "not a capacity with a positive weight after a colon, such as 1/16:0.9.");
  CHECK(refusal({"--mix", "two-class:1.5"}) ==
        "The capacity mix \"two-class:1.5\" has the share \"1.5\" of capacity 1, but 0 to 1 is "
        "expected.");
  CHECK(refusal({"--mix", "two-class:"}) != "(no failure)");
  CHECK(refusal({"--mix", ""}) != "(no failure)");
  CHECK(refusal({"--mix", "1:-1"}) != "(no failure)");
  CHECK(refusal({"--mix", "3/2"}) != "(no failure)");
  CHECK(refusal({"--rounds", "0"}) == "--rounds is 0, but 1 to 10^9 is expected.");
  CHECK(refusal({"--participation", "0.001"}) ==
        "subfed: cohort_model: a participation of 0.001 asks none of 100 clients");
  CHECK(refusal({"--model", "lenet", "--widths", "3"}) != "(no failure)");
}

TEST_CASE("numbers are read whole, in range, and in no locale") {
  CHECK(parsed({"--seed", "18446744073709551615"}).cohort.seed == 18446744073709551615u);
  CHECK(parsed({"--seed=0"}).cohort.seed == 0);
  CHECK(parsed({"--dropout", "0.999"}).cohort.dropout == 0.999);
  CHECK(parsed({"--dropout", "0"}).cohort.dropout == 0);
  for (const char* seed : {"-1", "18446744073709551616", "", "1.5", "1e3", "0x10", "seven", " 1"}) {
    CAPTURE(seed);
    CHECK(refusal({"--seed", seed}) ==
          "--seed is \"" + std::string(seed) +
              "\", but a whole number from 0 to 2^64 - 1 is expected.");
  }
  for (const char* option : {"--clients", "--rounds", "--times", "--repetitions", "--threads"}) {
    for (const char* text : {"9223372036854775808", "", "2x", "1,5", "nan", "1e2"}) {
      CAPTURE(option);
      CAPTURE(text);
      CHECK(refusal({option, text}) ==
            std::string(option) + " is \"" + text + "\", but a whole number is expected.");
    }
    for (const char* text : {"0", "-1", "9223372036854775807"}) {
      CAPTURE(option);
      CAPTURE(text);
      CHECK(
          refusal({option, text}).starts_with(std::string(option) + " is " + text + ", but 1 to "));
    }
  }
  for (const char* option : {"--participation", "--dropout"}) {
    for (const char* text : {"nan", "inf", "-inf", "1e400", "", "0,5", "0.5x", "half"}) {
      CAPTURE(option);
      CAPTURE(text);
      CHECK(refusal({option, text}) ==
            std::string(option) + " is \"" + text + "\", but a number such as 0.1 is expected.");
    }
  }
  CHECK(refusal({"--dropout", "1"}) ==
        "--dropout is 1, but at least 0 and less than 1 is expected.");
  CHECK(refusal({"--dropout", "-0.1"}).starts_with("--dropout is -0.1"));
  CHECK(refusal({"--participation", "0"}) ==
        "--participation is 0, but more than 0 and at most 1 is expected.");
  CHECK(refusal({"--participation", "1.5"}).starts_with("--participation is 1.5"));
  CHECK(refusal({"--out", ""}) == "--out is empty, but a folder is expected.");
}

TEST_CASE("what is more than the machine's memory is refused before it is taken") {
  CHECK(
      refusal({"--times", "100000", "--widths", "100000,100000,100000", "--threads", "64"})
          .starts_with("First covers of 100000 times for 300000 nodes and 5 classes on 64 threads "
                       "take 93603 GB of memory, but there are "));
  CHECK(parsed({"--times", "100", "--threads", "1"}).times == 100);
}
