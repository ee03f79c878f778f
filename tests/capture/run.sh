#!/usr/bin/env bash
# Runs one file of tests with the modules of this folder, and the package if it is there, on the path.
set -euo pipefail
export PYTHONPATH="$PWD/tests/capture:$PWD/python" PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "$@" -v
