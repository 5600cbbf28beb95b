#!/bin/sh
# SPDX-License-Identifier: MIT
# build.sh <pkg-config> <prefix> <version> <compiler> <folder>: builds and runs the consumer without
# CMake, from a copy of the installed tree, since an installed package may be moved.
set -eu
pkg_config=$1 prefix=$2 version=$3 compiler=$4 folder=$5

rm -rf "$folder"
mkdir -p "$folder"
cp -R "$prefix" "$folder/moved"
export PKG_CONFIG_PATH="$folder/moved/share/pkgconfig"
found=$("$pkg_config" --modversion subfed)
if [ "$found" != "$version" ]; then
  echo "pkg-config says version $found, the header says $version"
  exit 1
fi
flags=$("$pkg_config" --cflags subfed)
case $flags in
  *"$folder/moved"*) ;;
  *) echo "pkg-config points elsewhere: $flags"; exit 1 ;;
esac
# shellcheck disable=SC2086  # the flags are several words
"$compiler" -std=c++20 $flags "$(dirname "$0")/../main.cpp" -o "$folder/consumer"
"$folder/consumer"
