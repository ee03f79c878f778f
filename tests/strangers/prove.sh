#!/usr/bin/env bash
# Proves that the random modules find faults: applies each patch of faults/, which puts a wrong result back that was mended
# once, builds, and expects the program that its first line names to fail within 2,000 modules. Takes each patch back, also
# when it is interrupted.
#   tests/strangers/prove.sh [PATCH...]    all without arguments
set -uo pipefail
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- tests/strangers/faults/*.patch
missed=0
for patch in "$@"; do
  git apply "$patch" || exit 1
  trap 'git apply -R "$patch"' EXIT
  bazel build //tests/strangers:strangers_test //tests/strangers:write_modules || exit 1
  case "$(head -1 "$patch")" in
  *with_pytorch*) passes() { /usr/bin/python3 tests/strangers/with_pytorch.py --count 2000 --stop; } ;;
  *) passes() { WICK_STRANGERS_COUNT=2000 bazel-bin/tests/strangers/strangers_test; } ;;
  esac
  if found=$(passes 2>&1); then
    echo "not found: $patch"
    missed=$((missed + 1))
  else
    echo "found: $patch, with $(grep -o -m 1 'seed [0-9]*' <<<"$found")"
  fi
  git apply -R "$patch"
  trap - EXIT
done
exit "$missed"
