#!/bin/sh
# Joins archives to a static library of one object: join_objects.sh OUT.a WHOLE.a... -- CALLED.a...
# The objects of WHOLE are all taken; those of CALLED where another one needs them. Symbols that are
# hidden, and those of libraries that are not Wick's, become local: a program may link other versions.
set -eu
out=$1
shift
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
whole=
while [ "$1" != -- ]; do
  whole="$whole $1"
  shift
done
shift
# shellcheck disable=SC2086  # lists of paths without spaces
g++ -r -nostdlib -o "$folder/all.o" -Wl,--whole-archive $whole -Wl,--no-whole-archive \
  -Wl,--start-group "$@" -Wl,--end-group
objcopy --strip-unneeded --wildcard --localize-hidden --localize-symbol='*4llvm*' --localize-symbol='LLVM*' \
  "$folder/all.o" "$folder/wick.o"
rm -f "$out"
ar rcsD "$out" "$folder/wick.o"
