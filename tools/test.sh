#!/usr/bin/env bash
# The second of the two commands: builds everything and runs every test. Arguments go to Bazel
# (for example --config=asan). Ends with a line "N passed, N failed" that counts test cases.
set -uo pipefail
cd "$(dirname "$0")/.."
tools/install_deps.sh || exit 1
if ! tools/build.sh 3 "$@" //...; then
  echo "0 passed, 1 failed"
  exit 1
fi
bazel test --keep_going "$@" //tests/...
status=$?
# Words that CONTRIBUTING.md asks to avoid and subjects of commits; what documents say of the sources; options of the
# compiler; the picture of docs/overview.md.
python3 tests/tools/check_prose_test.py && python3 tools/check_prose.py || status=1
python3 tests/tools/check_docs_test.py && python3 tools/check_docs.py || status=1
python3 tests/tools/options_test.py || status=1
python3 docs/draw_architecture.py --check || status=1
python3 docs/draw_architecture.py --sizes >/dev/null || status=1  # a room that has grown too large
python3 tools/count_tests.py "$(bazel info "$@" bazel-testlogs 2>/dev/null)" || status=1
exit $status
