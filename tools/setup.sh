#!/usr/bin/env bash
# The first of the two commands: installs the packages, builds the command line tool, and lets it read the
# shipped image of a digit with the shipped model.
set -euo pipefail
cd "$(dirname "$0")/.."
cat <<'PLAN'
Setting up Wick in three steps:
  1. install Debian's packages that are not there yet (tools/install_deps.sh): about a minute, 2 GB
  2. build torchscript-cli from source: about ten minutes on two cores, at once when nothing changed
  3. read a picture of a digit with a shipped model
PLAN
tools/install_deps.sh
tools/build.sh 1 //tools:torchscript-cli
bazel-bin/tools/torchscript-cli run examples/digits.pt --input @examples/seven.npy
echo "The command line tool is bazel-bin/tools/torchscript-cli; tools/test.sh builds the rest and runs the tests."
