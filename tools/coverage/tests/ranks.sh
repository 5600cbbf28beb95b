#!/bin/sh
# SPDX-License-Identifier: MIT
# ranks.sh <mpirun> <subfed> <folder>: what one process prints and writes, 1, 2 and 4 ranks do too.
set -eu
rm -rf "$3"
mkdir -p "$3"
cd "$3"
simulate() {
  "$@" coverage --model lenet --clients 400 --participation 0.3 --rounds 5 --repetitions 3 --times 2 \
    --schemes random,rolling --mix 1/2:3,1/8 --threads 2 --dropout 0.1 --parameters --out out \
    >printed 2>errors || { cat errors; exit 1; }
  rm -f out/*.gp out/*.svg
}
simulate "$2"
mv out expected
mv printed expected-printed
for ranks in 1 2 4; do
  simulate "$1" -n "$ranks" "$2"
  diff expected-printed printed
  diff -r expected out
  rm -r out
done
echo "the same on 1, 2 and 4 ranks"
