#!/usr/bin/env bash
# Runs a test of the recorded programs, by its name, with the package on the path.
set -euo pipefail
export PYTHONPATH="$PWD/python" PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "tests/exported/$1.py"
