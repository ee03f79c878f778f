#!/usr/bin/env bash
# The second of the two commands: builds everything and runs every test. Arguments go to `bazel test`
# (for example --config=asan). Ends with a line "N passed, N failed" that counts test cases.
set -uo pipefail
cd "$(dirname "$0")/.."
tools/install_deps.sh || exit 1
bazel build "$@" //... || { echo "0 passed, 1 failed"; exit 1; }
bazel test --keep_going "$@" //tests/...
status=$?
python3 tools/count_tests.py "$(bazel info "$@" bazel-testlogs 2>/dev/null)" || status=1
exit $status
