#!/bin/sh
# SPDX-License-Identifier: MIT
# check-once.sh <nm> <object>...: fails unless one object of a program that includes
# subfed/extern_templates.hpp everywhere has compiled the engine of averages, and another one uses it.
set -eu
nm=$1
shift
engine=_ZN6subfed2v06detail13averaging_jobIff # averaging_job<float, float>
found=$("$nm" -A "$@" | grep -F "$engine" | sed -E 's/^[^:]*:[0-9a-f ]*([A-Za-z]) .*/\1/' | sort | uniq -c)
printf 'The engine of floats, objects and how they have it (U: from another):\n%s\n' "$found"
test "$(printf '%s\n' "$found" | sed -n 's/^ *\([0-9]*\) [WV]$/\1/p')" = 1
printf '%s\n' "$found" | grep -q ' U$'
