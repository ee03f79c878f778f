#!/usr/bin/env bash
# Proves that strangers_test finds faults: applies each patch of faults/, which puts a wrong result back that was mended once,
# builds, and expects a failure within 2,000 modules. Takes each patch back, also when it is interrupted.
set -uo pipefail
cd "$(dirname "$0")/../.."
missed=0
for patch in tests/strangers/faults/*.patch; do
  git apply "$patch" || exit 1
  trap 'git apply -R "$patch"' EXIT
  bazel build //tests/strangers:strangers_test || exit 1
  if WICK_STRANGERS_COUNT=2000 bazel-bin/tests/strangers/strangers_test >/dev/null 2>&1; then
    echo "not found: $patch"
    missed=$((missed + 1))
  else
    echo "found: $patch"
  fi
  git apply -R "$patch"
  trap - EXIT
done
exit "$missed"
