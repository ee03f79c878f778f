#!/usr/bin/env bash
# Runs a file of tests with the package on the path.
set -euo pipefail
export PYTHONPATH="$PWD/python:$PWD/tests/exported" PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "$1"
