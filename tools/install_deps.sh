#!/usr/bin/env bash
# Installs what building and testing need on Debian 12. Runs apt-get as root, or through sudo.
set -euo pipefail

packages=(
  # the build
  bazel-bootstrap bazel-platforms bazel-rules-java bazel-rules-proto g++ python3
  # libraries
  libbenchmark-dev libcli11-dev libdnnl-dev libfmt-dev libgmock-dev libgtest-dev libopenblas-dev
  libre2-dev libutf8proc-dev libzstd-dev llvm-19-dev nlohmann-json3-dev zlib1g-dev
  # the package for Python and its tests
  pybind11-dev python3-dev python3-numpy python3-venv
  # tests of what is installed
  cmake luajit openmpi-bin pkgconf
)

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
done
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
