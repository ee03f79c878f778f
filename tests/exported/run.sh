#!/usr/bin/env bash
# Runs the recorded programs with the package on the path.
set -euo pipefail
export PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 tests/exported/exported_test.py
