#!/usr/bin/env bash
# The first of the two commands: installs the packages, builds the command line tool, and lets it read the
# shipped image of a digit with the shipped model.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/install_deps.sh
bazel build //tools:torchscript-cli
bazel-bin/tools/torchscript-cli run examples/digits.pt --input @examples/seven.npy
