// SPDX-License-Identifier: MIT
/// What the trainer throws when it cannot go on.
#pragma once

#include <common/failure.hpp>

namespace trainer {

using common::failure;

}  // namespace trainer
