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

# What checks use where it is there, and what may be missing in other releases.
optional=(clang-tidy-19)

is_installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'install ok installed'; }
not_installed() {
  local package
  for package in "$@"; do is_installed "$package" || echo "$package"; done
}
mapfile -t missing < <(not_installed "${packages[@]}")
mapfile -t wanted < <(not_installed "${optional[@]}")
[ $((${#missing[@]} + ${#wanted[@]})) -eq 0 ] && exit 0

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo)
export DEBIAN_FRONTEND=noninteractive
install() { "${as_root[@]}" apt-get install -y -q --no-install-recommends "$@"; }
if [ ${#missing[@]} -gt 0 ]; then
  "${as_root[@]}" apt-get update -q
  install "${missing[@]}"
fi
# Without a password: nobody is asked for what is not needed.
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
[ ${#wanted[@]} -eq 0 ] || install "${wanted[@]}" || echo "not installed: ${wanted[*]}; its checks are left out"
