// SPDX-License-Identifier: MIT
/// A client's program.
#pragma once

#include "crypto.hpp"
#include "protocol.hpp"
#include "task.hpp"

#include <cstdint>

namespace secure_aggregation {

/// Where a client leaves, or what it does wrong: to try out what happens then.
enum class behaviour {
  honest,
  leaves_before_keys,
  leaves_before_shares,
  leaves_before_upload,
  uploads_late,  ///< after the survivors are fixed
  leaves_before_agreeing,
  leaves_before_opening,
  changes_a_share,
};

/// One round; returns when the client has done its part or has left.
///
/// Throws  failure or subfed::error for whatever the server may not say.
void run_client(const task& about, const registry& known, const signing_key& own,
                std::uint64_t round, std::uint64_t client, std::uint16_t port, behaviour does);

/// The same update without masks.
void run_plain_client(const task& about, std::uint64_t round, std::uint64_t client,
                      std::uint16_t port);

}  // namespace secure_aggregation
