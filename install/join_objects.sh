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
# Section groups go: a program drops a group that it has itself, and with it the local symbols inside.
g++ -r -nostdlib -o "$folder/all.o" -Wl,--force-group-allocation -Wl,--whole-archive $whole -Wl,--no-whole-archive \
  -Wl,--start-group "$@" -Wl,--end-group
# Variables of inline functions and inline variables stood in groups too: the program's own wins.
nm --defined-only "$folder/all.o" | awk '$2 == "u" {print $3}' >"$folder/unique"
objcopy --weaken-symbols="$folder/unique" --strip-unneeded --wildcard --localize-hidden --localize-symbol='*4llvm*' --localize-symbol='LLVM*' \
  "$folder/all.o" "$folder/wick.o"
rm -f "$out"
ar rcsD "$out" "$folder/wick.o"
