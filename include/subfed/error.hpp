// SPDX-License-Identifier: MIT
/// The one error type, and the hook that replaces it in builds without exceptions.
#pragma once

#include <subfed/config.hpp>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace subfed::inline v0 {

/// What an error is about, in addition to its text; empty where it concerns no client, tensor or
/// group.
struct error_subject {
  std::optional<std::uint64_t> client = {};
  std::string tensor = {};
  std::string group = {};

  friend bool operator==(const error_subject&, const error_subject&) = default;
};

/// Wrong data from the caller. The message says what is wrong, what was expected and what was found.
///
/// Numerics  Thrown before the first write: nothing has been changed.
class error : public std::runtime_error {
 public:
  explicit error(const std::string& message, error_subject about = {})
      : std::runtime_error(message),
        about_(std::make_shared<const error_subject>(std::move(about))) {}

  /// The client whose update is wrong.
  std::optional<std::uint64_t> client() const noexcept { return about_->client; }
  /// The tensor's name, or "".
  const std::string& tensor() const noexcept { return about_->tensor; }
  /// The group's name, or "".
  const std::string& group() const noexcept { return about_->group; }

 private:
  std::shared_ptr<const error_subject> about_;  // copies of an error must not throw
};

/// Called with the message instead of a throw where exceptions are off (-fno-exceptions). It must
/// not return; if it does, the program aborts. All translation units of a program must agree on
/// whether exceptions are on.
using error_handler = void (*)(const char* message);

namespace detail {

inline void print_error(const char* message) { std::fprintf(stderr, "%s\n", message); }

inline error_handler& current_error_handler() noexcept {
  static error_handler handler = &print_error;
  return handler;
}

/// Every error of the library is raised here. It does not return, so that checks cost a branch.
[[noreturn]] inline void fail(const std::string& message, error_subject about = {}) {
#if SUBFED_EXCEPTIONS
  throw error(message, std::move(about));
#else
  static_cast<void>(about);
  current_error_handler()(message.c_str());
  std::abort();
#endif
}

/// Decimal text of an integer or a floating-point number, for messages only.
template <class T>
std::string text(T value) {
  if constexpr (requires { std::to_string(value); }) {
    if constexpr (static_cast<T>(0.5) != T{}) {
      const auto wide = static_cast<double>(value);
      const std::uint64_t magnitude = std::bit_cast<std::uint64_t>(wide) & 0x7FFFFFFFFFFFFFFFu;
      if (magnitude > 0x7FF0000000000000u) return "NaN";  // C libraries differ in what they print
      char buffer[40];
      std::snprintf(buffer, sizeof buffer, "%.9g", wide);
      return buffer;
    } else {
      return std::to_string(value);
    }
  } else {
    return std::string(std::string_view(value));
  }
}

/// "(64, 3, 3, 3)": the form of shapes in every message.
inline std::string shape_text(std::span<const std::int64_t> extents) {
  std::string out = "(";
  for (std::size_t r = 0; r < extents.size(); ++r) {
    if (r != 0) out += ", ";
    out += std::to_string(extents[r]);
  }
  return out + (extents.size() == 1 ? ",)" : ")");
}

}  // namespace detail

/// Replaces the error handler of builds without exceptions and returns the previous one. Null
/// restores the default, which prints to stderr. With exceptions on it is never called.
inline error_handler set_error_handler(error_handler handler) noexcept {
  const error_handler before = detail::current_error_handler();
  detail::current_error_handler() = handler != nullptr ? handler : &detail::print_error;
  return before;
}

}  // namespace subfed::inline v0
