#!/usr/bin/env bash
# Runs one file of tests with the package on the path.
set -euo pipefail
export PYTHONPATH="$PWD/python:$PWD/tests/python" PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "$1" -v
