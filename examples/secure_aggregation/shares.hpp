// SPDX-License-Identifier: MIT
/// Shares of a secret, of which any `threshold` give it back and fewer say nothing: libgfshare, with the
/// checks that it leaves to its callers.
#pragma once

#include "crypto.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace secure_aggregation {

struct share {
  std::uint8_t number = 0;  ///< 1 to 255
  std::array<std::uint8_t, 32> bits = {};
};

/// Throws  failure for a number 0 or there twice, a threshold of 1 (each share would be the secret), and
///         one over the number of shares.
std::vector<share> split(const secret& whole, std::span<const std::uint8_t> numbers, int threshold);

/// The secret. That it is the right one is for the caller to check, against a public key or a hash: a
/// share with a changed bit gives another secret, not an error.
///
/// Throws  failure for fewer shares than the threshold, or one that is there twice.
secret combine(std::span<const share> shares, int threshold);

}  // namespace secure_aggregation
