#!/usr/bin/env bash
# Runs one file of tests with the modules of this folder on the path.
set -euo pipefail
export PYTHONPATH="$PWD/tests/capture" PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 "$@" -v
