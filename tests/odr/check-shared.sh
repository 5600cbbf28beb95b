#!/bin/sh
# SPDX-License-Identifier: MIT
# check-shared.sh <nm> <object>...: fails unless an object of the program has the engine of averages, and
# objects that include subfed/extern_templates.hpp use it from there.
set -eu
nm=$1
shift
engine=_ZN6subfed2v06detail13averaging_jobIff # averaging_job<float, float>
found=
for object; do
  case $object in
    *.o) found="$found$("$nm" "$object" | (grep -F "$engine" || true) | sed -E 's/^[0-9a-f ]*([A-Za-z]) .*/\1/')" ;;
  esac
done
echo "averaging_job<float, float> in the objects that name it (U: from another one): $found"
case $found in *W*) ;; *) exit 1 ;; esac
case $found in *U*) ;; *) exit 1 ;; esac
