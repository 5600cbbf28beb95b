// SPDX-License-Identifier: MIT
#include "options.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <common/tests/message_of.hpp>

namespace {

trainer::options parsed(std::vector<const char*> arguments) {
  arguments.insert(arguments.begin(), "subfed_trainer");
  return trainer::parse_options(static_cast<int>(arguments.size()), arguments.data()).value();
}
std::string refused(std::vector<const char*> arguments) {
  return message_of([&] { parsed(std::move(arguments)); });
}

}  // namespace

TEST_CASE("capacities are fractions or decimal numbers") {
  CHECK(trainer::parse_capacity("1").of(64) == 64);
  CHECK(trainer::parse_capacity("1/16").of(64) == 4);
  CHECK(trainer::parse_capacity("0.3").of(10) == 3);
  CHECK(trainer::parse_capacity("3/10").of(10) == 3);
}

TEST_CASE("what is no capacity is refused in words") {
  for (const char* text : {"0", "1.5", "-1/2", "1/0", "3/2", "nan", "inf", "-0.0", "1e-400"}) {
    CAPTURE(text);
    const std::string message = message_of([&] { trainer::parse_capacity(text); });
    CHECK(message.find(text) != std::string::npos);
    CHECK(message.find("more than 0 and at most 1") != std::string::npos);
  }
  for (const char* text : {"", "half", "1/", "/2", "1/2/3", "1 2", "0,5x"}) {
    CAPTURE(text);
    CHECK(message_of([&] { trainer::parse_capacity(text); }).find("is no ") != std::string::npos);
  }
}

TEST_CASE("the defaults are the protocol of the paper") {
  const trainer::options o = parsed({});
  CHECK(o.clients == 100);
  CHECK(o.participation == 0.1);
  CHECK(o.labels == 2);
  CHECK(o.local_epochs == 1);
  CHECK(o.momentum == 0.9);
  CHECK(o.weight_decay == 5e-4);
  CHECK(o.capacities.size() == 5);
  CHECK(o.methods.size() == trainer::all_methods().size());
}

TEST_CASE("lists are separated by commas") {
  const trainer::options o =
      parsed({"--methods", "heterofl, fedrolex", "--capacities", "1/2,0.25"});
  CHECK(o.methods[0].name == "heterofl");
  CHECK(o.methods[1].name == "fedrolex");
  CHECK(o.capacities[1].text == "0.25");
  CHECK(o.capacity_values()[0].value() == 0.5);
}

TEST_CASE("what cannot be meant is refused") {
  CHECK(refused({"--labels", "11"}) == "--labels is 11, but 1 to 10 is expected.");
  CHECK(refused({"--rounds", "0"}) == "--rounds is 0, but at least 1 is expected.");
  CHECK(refused({"--participation", "nan"}).starts_with("--participation is nan"));
  CHECK(refused({"--participation", "0.001"}).find("leaves every cohort empty") !=
        std::string::npos);
  CHECK(refused({"--methods", "fedavg"}).starts_with("There is no method \"fedavg\"; the methods"));
  CHECK(refused({"--methods", "heterofl,heterofl"}).find("given twice") != std::string::npos);
  CHECK(refused({"--rounds", "ten"}).find("--rounds") != std::string::npos);
  CHECK(refused({"--device", "tpu"}).find("--device") != std::string::npos);
  CHECK(refused({"--decay-at", "0.5,2"}) == "--decay-at is 2, but 0 to 1 is expected.");
}
