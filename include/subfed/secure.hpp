// SPDX-License-Identifier: MIT
/// All of subfed/secure/: sums of updates that nobody sees alone.
#pragma once

#include <subfed/secure/mask_key.hpp>
#include <subfed/secure/masked_sum.hpp>
#include <subfed/secure/masked_update.hpp>
#include <subfed/secure/secure_options.hpp>
#include <subfed/secure/secure_round.hpp>
#include <subfed/secure/survivors.hpp>
