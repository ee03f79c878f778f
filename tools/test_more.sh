#!/usr/bin/env bash
# The second tier of tests: what needs packages that users do not, or takes hours. tools/test.sh is the first.
#   tools/test_more.sh [STEP...]    runs all steps, or these; `tools/test_more.sh --list` names them
# A step that passed for the commit that is checked out is not run again, so an interrupted run goes on where it
# stopped. Records stand in ~/.cache/wick-test-more. It runs as root on Debian 12.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
commit=$(git rev-parse --short=12 HEAD) || exit 1
[ -z "$(git status --porcelain --untracked-files=no)" ] || commit=$commit-changed
state=$HOME/.cache/wick-test-more/$commit
chroot_folder=/var/tmp/wick-chroot

declare -A about=(
  [tidy]="clang-tidy over sources of the last ten commits; includes of tests"
  [compilers]="installed headers with clang 14 and clang 19"
  [pytorch]="script cases, optimizers and archives beside Debian's PyTorch"
  [asan]="tests of all rooms with address and undefined-behaviour sanitizers"
  [tsan]="tests of threads with the thread sanitizer"
  [random]="programs that are run by hand; thousands of random graphs, groups and gradients"
  [fuzz]="fuzz targets with libFuzzer's coverage, 10,000 inputs each"
  [browser]="pictures of graphs in Chromium"
  [chroot]="README's two commands in a bare Debian 12: as root, as a user, again, without a network, on a full disk"
)
steps=(tidy compilers pytorch browser random fuzz chroot tsan asan)

packages() {
  local package missing=()
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] || DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
}

step_tidy() {
  packages clang-tidy-19 && tools/build.sh 3 //... && python3 tools/tidy.py --changed 10
}

step_compilers() {
  packages clang-14 clang-19 &&
    bazel test --nocache_test_results --test_filter='CompilersTest.*' //tests/install:install_test
}

step_pytorch() {
  packages python3-torch &&
    /usr/bin/python3 tests/scripts/record.py --check &&
    bazel test --nocache_test_results //tests/training:training_test //tests/python:all //tests/capture:all &&
    bazel build //tests/strangers:write_modules && /usr/bin/python3 tests/strangers/with_pytorch.py --count 300 &&
    random_functions torch
}

step_browser() {
  packages chromium graphviz imagemagick || return 1
  tools/build.sh 1 //tools:torchscript-cli || return 1
  local folder
  folder=$(mktemp -d)
  bazel-bin/tools/torchscript-cli graph examples/digits.pt --method forward --svg >"$folder/graph.svg" || return 1
  chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-sync \
    --user-data-dir="$folder/profile" --window-size=1200,1200 --screenshot="$folder/graph.png" \
    "file://$folder/graph.svg" >"$folder/log" 2>&1 || { cat "$folder/log"; return 1; }
  # A blank page has one color.
  local colors
  colors=$(convert "$folder/graph.png" -unique-colors -format '%w' info:)
  echo "the picture has $colors colors"
  [ "$colors" -gt 10 ] && rm -rf "$folder"
}

step_random() {
  local programs
  programs=$(bazel query 'kind("cc_binary", //tests/...) except attr(name, libfuzzer, //tests/...)' 2>/dev/null) || return 1
  bazel build $programs || return 1
  bazel-bin/tests/optimizer/check_passes 2000 && bazel-bin/tests/optimizer/check_plans 2000 &&
    bazel-bin/tests/optimizer/check_types 500 && bazel-bin/tests/codegen/check_fusion 2000 &&
    bazel-bin/tests/codegen/check_fusion 1000 1 reductions && bazel-bin/tests/autograd/check_gradients 2000 &&
    bazel-bin/tests/native/compare_native 2000 &&
    WICK_GRAPHS_COUNT=300 bazel-bin/tests/autograd/autograd_test --gtest_filter=Graphs.AgreeOnRandomRegions &&
    WICK_WALKS_COUNT=2000 bazel-bin/tests/autograd/autograd_test --gtest_filter=Walks.EndAsOnTheTape &&
    WICK_STRANGERS_COUNT=300 bazel-bin/tests/strangers/strangers_test &&
    WICK_STRANGERS_COUNT=100 bazel-bin/tests/strangers/ahead_test &&
    WICK_LAZY_COUNT=2000 bazel-bin/tests/lazy/random_test &&
    bazel test --test_timeout=3600 --test_arg=--programs=2000 //tests/capture:resume_test &&
    random_functions wick
}

# Runs 2,000 random functions of a world, compiled and plain. PyTorch's kernels may add in another order.
random_functions() {
  local tolerance=0
  [ "$1" = torch ] && tolerance=1e-6
  local arguments=(--world "$1" --seed 50000 --count 2000 --jobs 2 --tolerance "$tolerance")
  bazel test --test_timeout=3600 "${arguments[@]/#/--test_arg=}" //tests/capture:compiled_random_test
}

step_fuzz() {
  packages clang-19 libclang-rt-19-dev libomp-19-dev || return 1
  bazel build --config=fuzz --repo_env=CC=clang-19 //tests/fuzz:all || return 1
  local target
  for target in bazel-bin/tests/fuzz/*_fuzz; do
    echo "== $target"
    # In the folder of the files that it reads.
    (program=$(realpath "$target") && cd "$target.runfiles/wick" &&
      WICK_FUZZ_COUNT=10000 ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 "$program") || return 1
  done
}

# Programs that load the library from Python, LuaJIT or another compiler's program cannot run so (CONTRIBUTING.md).
step_asan() {
  bazel test --config=asan --test_timeout=3600 --keep_going -- //tests/... -//tests/python/... -//tests/capture/... -//tests/install/... -//tests/capi:languages_test \
    -//tests/tools:readme_test
}

# Programs that grow up to a limit of memory have one thread, and need ten times as much of both here.
# Deep recursion is left out: TSan keeps the whole stack of each allocation, 100 kB each at such depths.
step_tsan() {
  bazel test --config=tsan --test_timeout=3600 --test_filter=-ExpansionTest.*:FileScope.ComputedConstants --keep_going -- //tests/runtime/... //tests/core/... //tests/training/... //tests/streams/... \
    //tests/lazy/... //tests/capi/... -//tests/capi:languages_test
}

# Runs a command inside of the bare system, as a user, from the checkout there.
inside() {
  local user=$1
  shift
  chroot "$chroot_folder" su - "$user" -c "cd ~/wick && $*"
}
# The same with no network but the loopback, which Bazel's client needs.
inside_alone() {
  unshare --net bash -c 'ip link set lo up && exec chroot "$0" su - wick -c "cd ~/wick && $1"' "$chroot_folder" "$*"
}
expect_text() { # FILE TEXT
  grep -qF "$2" "$1" || { echo "expected in the output: $2"; tail -20 "$1"; return 1; }
}

step_chroot() {
  packages debootstrap iproute2 || return 1
  local mirror log=$state/chroot.log
  mirror=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | head -1)
  mkdir -p "$chroot_folder"
  if [ ! -e "$chroot_folder/etc/debian_version" ]; then
    debootstrap --variant=minbase --include=ca-certificates,sudo bookworm "$chroot_folder" "$mirror" || return 1
  fi
  cp /etc/resolv.conf "$chroot_folder/etc/"
  cp /etc/apt/apt.conf.d/* "$chroot_folder/etc/apt/apt.conf.d/" 2>/dev/null
  trap 'umount -l "$chroot_folder"/{proc,sys,dev/shm,dev,full} 2>/dev/null' RETURN
  mount -t proc proc "$chroot_folder/proc" && mount --rbind /sys "$chroot_folder/sys" && mount --rbind /dev "$chroot_folder/dev" || return 1
  chroot "$chroot_folder" id wick >/dev/null 2>&1 || chroot "$chroot_folder" useradd -m -s /bin/bash wick
  local home
  for home in root home/wick; do
    # An earlier run left outputs, and perhaps Bazel's server.
    chroot "$chroot_folder" su - "$(basename "$home")" -c 'cd ~/wick 2>/dev/null && bazel shutdown' >/dev/null 2>&1
    rm -rf "$chroot_folder/$home"/{wick,.cache/bazel}
    git clone -q "$root" "$chroot_folder/$home/wick" || return 1
  done
  chroot "$chroot_folder" chown -R wick: /home/wick
  # At most 8 GB of memory for everything below, where the kernel lets this be said.
  local group=/sys/fs/cgroup/memory/wick-test-more
  if mkdir -p "$group" 2>/dev/null && echo 8G >"$group/memory.limit_in_bytes" 2>/dev/null; then
    echo $BASHPID >"$group/cgroup.procs"
  else
    echo "memory is not limited: this kernel takes no limit"
  fi

  echo "== root, from nothing"
  (time inside root tools/setup.sh) >"$log" 2>&1 || { tail -30 "$log"; return 1; }
  expect_text "$log" "largest at 7" || return 1
  grep real "$log"
  (time inside root tools/test.sh) >"$log" 2>&1 || { tail -30 "$log"; return 1; }
  tail -5 "$log"
  echo "== root, again"
  (time inside root tools/setup.sh) >"$log" 2>&1 && expect_text "$log" "1 process: 1 internal" || return 1
  grep real "$log"
  echo "== a user, without a network"
  (time inside_alone tools/setup.sh) >"$log" 2>&1 || { tail -30 "$log"; return 1; }
  expect_text "$log" "largest at 7" || return 1
  grep real "$log"
  echo "== a full disk"
  # Bazel keeps its files below the home folder.
  mkdir -p "$chroot_folder/full" && mount -t tmpfs -o size=400m tmpfs "$chroot_folder/full" &&
    chroot "$chroot_folder" chown wick: /full || return 1
  if inside_alone "bazel shutdown && HOME=/full tools/setup.sh" >"$log" 2>&1; then
    echo "the build passed on a disk of 400 MB"
    return 1
  fi
  expect_text "$log" "the disk is full"
}

case "${1:-}" in
--list)
  for step in "${steps[@]}"; do printf '%-10s %s\n' "$step" "${about[$step]}"; done
  exit 0
  ;;
-*)
  echo "usage: tools/test_more.sh [--list | STEP...]" >&2
  exit 2
  ;;
esac
for step in "$@"; do
  [ -n "${about[$step]:-}" ] || { echo "test_more.sh: there is no step '$step'; --list names them" >&2; exit 2; }
done
[ $# -gt 0 ] && steps=("$@")

mkdir -p "$state"
passed=0 failed=0
for step in "${steps[@]}"; do
  if [ -e "$state/$step" ]; then
    echo "$step: passed before ($(cat "$state/$step"))"
    passed=$((passed + 1))
    continue
  fi
  echo "=== $step: ${about[$step]}"
  begin=$SECONDS
  if "step_$step"; then
    echo "$(date -I), $((SECONDS - begin)) s" >"$state/$step"
    passed=$((passed + 1))
  else
    echo "$step: FAILED after $((SECONDS - begin)) s"
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
