// SPDX-License-Identifier: MIT
/// All of subfed/messages/: updates and partial averages as bytes.
#pragma once

#include <subfed/messages/fingerprint.hpp>
#include <subfed/messages/partial_average.hpp>
#include <subfed/messages/submodel_bytes.hpp>
#include <subfed/messages/update_message.hpp>
