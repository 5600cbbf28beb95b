#!/bin/sh
# SPDX-License-Identifier: MIT
# check-symbols.sh <nm> <object>...: fails when an object defines a strong symbol, or one in an
# unnamed namespace, inside namespace subfed.
set -eu
nm=$1
shift
symbols=$("$nm" -C --defined-only "$@")
if ! printf '%s\n' "$symbols" | grep -q ' [WV] subfed::'; then
  echo "The objects use nothing of subfed, so this check would see nothing."
  exit 1
fi
if printf '%s\n' "$symbols" | grep -E ' [TDB] subfed::| [tdb] subfed::.*\(anonymous namespace\)'; then
  echo "The symbols above are defined by a header and are not inline."
  exit 1
fi
echo "no strong symbol in namespace subfed"
