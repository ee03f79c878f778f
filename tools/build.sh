#!/usr/bin/env bash
# Builds with Bazel, which shows its progress, and ends with the cause when that fails.
# usage: tools/build.sh GIGABYTES BAZEL_ARGUMENT...   GIGABYTES: the disk space that a build from nothing takes
set -uo pipefail
cd "$(dirname "$0")/.."
needed=$1
shift

fail() {
  echo "tools/build.sh: $*" >&2
  exit 1
}

command -v bazel >/dev/null || fail "bazel is not installed; tools/install_deps.sh installs it"
base=$(bazel info output_base 2>/dev/null)
[ -n "$base" ] || fail "Bazel does not start here: $(bazel info output_base 2>&1 | tail -1)"
megabytes_free() { df -m --output=avail "$base" | tail -1 | tr -d ' '; }
# An earlier build has its space already.
used=$(du -sm "$base/execroot" 2>/dev/null | cut -f1)
missing=$((needed * 1000 - ${used:-0} - $(megabytes_free)))
[ "$missing" -le 0 ] ||
  echo "Disk space may not suffice: the build takes about $needed GB in $base, and $missing MB are missing." >&2

bazel build "$@" && exit 0
# The cause once more at the end, where a reader looks for it.
log=$(bazel info command_log 2>/dev/null)
errors=$([ -z "$log" ] || grep -E 'error: |undefined reference|ld: ' "$log" | head -20)
[ -z "$errors" ] || echo "$errors" >&2
# A compiler that cannot write its output may say nothing, and removes it.
if [ "$(megabytes_free)" -lt 100 ] || { [ -n "$log" ] && grep -q 'No space left' "$log"; } ||
  { [ "$missing" -gt 0 ] && [ -z "$errors" ]; }; then
  fail "the disk is full: $(megabytes_free) MB are free in $base, and a build takes about $needed GB; make room and call again"
fi
memory=$(awk '/MemAvailable/ {print int($2 / 1024)}' /proc/meminfo)
[ "$memory" -ge 1000 ] || fail "the build failed, and only $memory MB of memory are free; a build on two cores takes about 4 GB"
fail "the build failed; the messages above tell why"
