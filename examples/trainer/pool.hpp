// SPDX-License-Identifier: MIT
/// The workers that train clients.
#pragma once

#include <common/pool.hpp>

namespace trainer {

using common::pool;

}  // namespace trainer
