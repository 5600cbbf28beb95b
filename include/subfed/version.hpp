// SPDX-License-Identifier: MIT
/// The version of the library; the build and every other mention follow this file.
#pragma once

#define SUBFED_VERSION_MAJOR 0
#define SUBFED_VERSION_MINOR 1
#define SUBFED_VERSION_PATCH 0

/// One number to compare: 0.1.0 is 100, 1.2.3 is 10203.
#define SUBFED_VERSION \
  (SUBFED_VERSION_MAJOR * 10000 + SUBFED_VERSION_MINOR * 100 + SUBFED_VERSION_PATCH)
