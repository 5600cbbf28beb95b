// SPDX-License-Identifier: MIT
/// doctest with RapidCheck, and the messages of errors.
#pragma once

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <subfed/error.hpp>

#include <sstream>
#include <string>
#include <utility>

namespace support {

/// Runs a RapidCheck property (use RC_ASSERT in it); the test case fails with the counterexample.
/// The seed is that of RC_PARAMS, otherwise a new one, which the failure names.
template <class Property>
void for_all(const std::string& what, Property&& property) {
  rc::detail::TestMetadata named;
  named.id = what;
  named.description = what;
  const auto result = rc::detail::checkTestable(std::forward<Property>(property), named);
  const bool holds = result.template is<rc::detail::SuccessResult>();
  std::ostringstream text;
  if (!holds) rc::detail::printResultMessage(result, text);
  CHECK_MESSAGE(holds, what << ": " << text.str());
}

/// The message of the subfed::error that a call throws; says so in the place of one when it throws
/// nothing.
template <class F>
std::string message_of(F&& call) {
  try {
    std::forward<F>(call)();
  } catch (const subfed::error& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace support
