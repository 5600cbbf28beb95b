// SPDX-License-Identifier: MIT
/// Which values options can have, alone and together.
#pragma once

#include "options.hpp"

namespace trainer {

/// Throws  failure that names the option and what is expected.
void check_options(const options& o);

}  // namespace trainer
