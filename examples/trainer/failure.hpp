// SPDX-License-Identifier: MIT
/// What the trainer throws when it cannot continue.
#pragma once

#include <common/failure.hpp>

namespace trainer {

using common::failure;

}  // namespace trainer
