// SPDX-License-Identifier: MIT
/// Clients that send something else than what they trained, and what the server does against it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <subfed/model.hpp>
#include <vector>

#include "local_training.hpp"
#include "options.hpp"

namespace trainer {

/// Whether the client is one of options::liars of them, which the seed decides.
bool is_liar(std::uint64_t client, const options& settings);

/// Changes what liars have trained: their difference to what they were sent times the factor, or minus
/// it. Networks that are elsewhere are left out.
void tell_lies(std::span<local_training> cohort, const tensor_list& sent, const options& settings);

/// Clips every client's difference to what it was sent, with every defense.
void clip(std::span<local_training> cohort, const tensor_list& sent, const options& settings);

}  // namespace trainer
