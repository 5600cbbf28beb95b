// SPDX-License-Identifier: MIT
/// Numbers are read whole and in no locale.
#include <doctest/doctest.h>
#include <common/text.hpp>

#include <clocale>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "message_of.hpp"
#include "temporary_folder.hpp"

using common::number;
using common::parse_capacity;

namespace {

/// A locale with a decimal comma for a test case, made where none is installed.
class comma_locale {
 public:
  comma_locale() {
    const char* const found = std::setlocale(LC_ALL, "de_DE.UTF-8");
    if (found == nullptr) {
      const std::string made = (folder_.path() / "de_DE.UTF-8").string();
      setenv("LOCPATH", folder_.path().c_str(), 1);
      const std::string command = "localedef -i de_DE -f UTF-8 " + made + " >/dev/null 2>&1";
      if (std::system(command.c_str()) == 0) std::setlocale(LC_ALL, "de_DE.UTF-8");
    }
    is_set_ = std::strtod("0,75", nullptr) == 0.75;
  }
  ~comma_locale() {
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
  }
  comma_locale(const comma_locale&) = delete;
  comma_locale& operator=(const comma_locale&) = delete;
  bool is_set() const { return is_set_; }

 private:
  temporary_folder folder_;
  bool is_set_ = false;
};

void check_numbers() {
  CHECK(number<double>("0.75") == 0.75);
  CHECK(number<double>("-1e-3") == -0.001);
  CHECK(number<std::int64_t>("-17") == -17);
  CHECK(number<std::uint64_t>("18446744073709551615") == 18446744073709551615u);
  for (const char* const text : {"", " ", "2,5", "2.5x", " 2", "2 ", "+2", "inf", "nan", "-inf",
                                 "1e999", "0x10", "1.2.3", "1_000"}) {
    CAPTURE(text);
    CHECK_FALSE(number<double>(text));
  }
  for (const char* const text :
       {"", "2.0", "2,", "9223372036854775808", "-9223372036854775809", "1e3", "--1"}) {
    CAPTURE(text);
    CHECK_FALSE(number<std::int64_t>(text));
  }
  CHECK_FALSE(number<std::uint64_t>("-1"));
  CHECK_FALSE(number<std::uint64_t>("18446744073709551616"));

  CHECK(parse_capacity("0.5") == subfed::capacity(0.5));
  CHECK(parse_capacity("1/2") == subfed::capacity::ratio(1, 2));
  CHECK(parse_capacity("1") == subfed::capacity(1.0));
}

}  // namespace

TEST_CASE("a number is the whole text, and a point is a point") { check_numbers(); }

// skystrife/cpptoml#45: a program that had called setlocale read 0.75 as 0.
TEST_CASE("also where the locale has a comma") {
  const comma_locale locale;
  if (!locale.is_set()) {
    MESSAGE("left out: there is no locale de_DE.UTF-8, and localedef cannot make it");
    return;
  }
  check_numbers();
}

TEST_CASE("what is no capacity is refused with a sentence that quotes it") {
  const std::string rule =
      "; a capacity is a fraction such as 1/4 or a decimal number, more than 0 and at most 1.";
  CHECK(message_of([] { parse_capacity("0,5"); }) == "The capacity \"0,5\" is not a number" + rule);
  CHECK(message_of([] { parse_capacity(""); }) == "The capacity \"\" is not a number" + rule);
  CHECK(message_of([] { parse_capacity("nan"); }) == "The capacity \"nan\" is not a number" + rule);
  CHECK(message_of([] { parse_capacity("1/2/3"); }) ==
        "The capacity \"1/2/3\" is not a fraction of whole numbers" + rule);
  CHECK(message_of([] { parse_capacity("1/"); }) ==
        "The capacity \"1/\" is not a fraction of whole numbers" + rule);
  for (const std::string text : {"0", "1.5", "-0.5", "1/0", "3/2", "0/5"}) {
    CHECK(message_of([&] { parse_capacity(text); }) ==
          "The capacity \"" + text + "\" is out of range" + rule);
  }
}
