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
  cmake git luajit openmpi-bin pkgconf
)

is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }
not_installed() {
  local package
  for package in "$@"; do is_installed "$package" || echo "$package"; done
}
mapfile -t missing < <(not_installed "${packages[@]}")
[ ${#missing[@]} -eq 0 ] && exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || {
    echo "install_deps.sh: these packages are missing, and there is no sudo: ask root to install ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -q
"${as_root[@]}" apt-get install -y -q --no-install-recommends "${missing[@]}"
