// SPDX-License-Identifier: MIT
/// Macros that headers of platforms define (Windows, POSIX, <complex.h>, <ctype.h>): the headers of the
/// library are included after them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <charconv>
#include <cmath>
#include <complex>
#include <concepts>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>
#include <version>
#define small char
#define near
#define far
#define interface struct
#define IN
#define OUT
#define ERROR 0
#define DELETE 1
#define NO_ERROR 0
#define STRICT 1
#define I 1i
#define _N 1
#define _C 2
#define B0 0
#define unix 1
#define linux 1
#define min(a, b) (((a) < (b)) ? (a) : (b))
#define max(a, b) (((a) > (b)) ? (a) : (b))
#define complex _Complex
