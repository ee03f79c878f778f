#!/usr/bin/env bash
# Installs the engine: tools/install.sh PREFIX makes a folder with
#   include/wick/…                     public headers; #include <wick/wick.h>, for C <wick/capi/wick.h>
#   lib/libwick.so, lib/libwick-core.so, the same as lib/libwick.a and lib/libwick-core.a, lib/cmake/Wick, lib/pkgconfig
#   lib/libwick-aot.a, include/wick/aot/…  the runtime of models that were compiled ahead of time
#   bin/torchscript-cli, and its completions for bash, zsh and fish
# The folder must not exist, or be empty, or hold nothing but an earlier installation, which is
# replaced. Whatever goes wrong, what was there before stays.
set -euo pipefail

fail() {
  echo "install.sh: $*" >&2
  exit 1
}
[ $# -eq 1 ] && [ "${1#-}" = "$1" ] && [ -n "$1" ] || {
  echo "usage: tools/install.sh PREFIX" >&2
  exit 2
}
prefix=$(realpath -m -- "$1")
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
manifest=share/wick/installed-files

# Before anything is built: whether the prefix can be had.
parent=$(dirname "$prefix")
while [ ! -e "$parent" ]; do parent=$(dirname "$parent"); done
[ -d "$parent" ] || fail "$parent is not a folder"
[ -w "$parent" ] || fail "$parent cannot be written"
if [ -e "$prefix" ] && [ ! -d "$prefix" ]; then fail "$prefix exists and is not a folder"; fi
if [ -d "$prefix" ] && [ -n "$(ls -A "$prefix")" ]; then
  [ -f "$prefix/$manifest" ] ||
    fail "$prefix exists and holds files that are no installation of Wick; choose a folder that is new or empty"
  foreign=$(cd "$prefix" && find . ! -type d -printf '%P\n' | sort | comm -23 - <(sort "$manifest") | head -1)
  [ -z "$foreign" ] ||
    fail "$prefix holds $foreign, which is not of the installation there; move it away, or choose another folder"
fi

# Run by a test everything that is built lies beside this; otherwise Bazel builds it.
built=$source
if [ ! -e "$source/install/libwick.so" ]; then
  cd "$source"
  tools/install_deps.sh
  tools/build.sh 2 //install:files || fail "the build failed"
  built=$source/bazel-bin
fi
# A file, made or written.
file() {
  if [ -e "$source/$1" ]; then echo "$source/$1"; else echo "$built/$1"; fi
}
cli=$built/tools/torchscript-cli
version=$("$cli" --version | awk '{print $NF}')
soname_version=${version%.*}

mkdir -p "$(dirname "$prefix")"
new=$(mktemp -d "$prefix.new.XXXXXX") || fail "$(dirname "$prefix") cannot be written"
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"

# The headers that others include, and those that these include. Names in quotes become relative, so
# that no other project's core/… is meant, and within a folder they are the file's name alone, so that the compiler's
# messages name short paths.
declare -A seen=()
install_header() {
  local header=$1 included
  [ -z "${seen[$header]:-}" ] || return 0
  seen[$header]=1
  local from folder up
  from=$(file "$header")
  [ -f "$from" ] || fail "$header is missing"
  folder=$(dirname "$header")/ up=
  if [ "$folder" = ./ ]; then folder=; else up=$(sed 's,[^/]\+,..,g' <<<"$folder"); fi
  mkdir -p "$new/include/wick/$folder"
  sed "s,^#include \"\(\.\./\)\?\([^\"]*\)\",#include \"$up\2\",
    s,^#include \"$up$folder\([^/\"]*\)\",#include \"\1\"," "$from" >"$new/include/wick/$header"
  while read -r included; do install_header "$included"; done \
    < <(sed -n 's,^#include "\(\.\./\)\?\([^"]*\)".*,\2,p' "$from")
}
for header in wick.h wick_ops.h capi/wick.h lazy/lazy.h distributed/gradient_exchange.h distributed/init.h; do
  install_header "$header"
done

# What models that were compiled ahead of time include and link.
mkdir -p "$new/include/wick/aot" "$new/lib"
for header in aot/runtime/wick_aot.h aot/runtime/wick_aot_onednn.h aot/runtime/wick_aot_cuda.h aot/runtime/wick_aot_loops.h \
  aot/runtime/wick_aot_elements.h aot/runtime/wick_aot_lapack.h aot/runtime/wick_aot_layers.h aot/runtime/wick_aot_random.h aot/runtime/wick_aot_numbers.h aot/runtime/wick_aot_convolution.h \
  aot/runtime/wick_aot_complex.h aot/runtime/wick_aot_fourier.h \
  aot/small_gemm_blocks.h aot/engine_parts.h aot/fourier_runs.h; do
  cp -L "$(file "$header")" "$new/include/wick/aot/"
done
cp -L "$(ls "$built"/aot/runtime/libwick-aot*.a | head -1)" "$new/lib/libwick-aot.a"
chmod 644 "$new/include/wick/aot"/*.h "$new/lib/libwick-aot.a"

# Shared libraries that programs name when they link a static library of Wick.
core_needs="-ldnnl -lfmt -lz -lgomp -lpthread -ldl -lstdc++ -lm"
whole_needs="-lre2 -lutf8proc -lzstd $core_needs"
substitute() { # TEMPLATE [NAME DESCRIPTION LIBRARY NEEDS]
  sed "s,@VERSION@,$version,g; s,@SONAME_VERSION@,$soname_version,g; s,@NAME@,${2:-},g; s,@DESCRIPTION@,${3:-},g
    s,@LIBRARY@,${4:-},g; s,@PRIVATE@,${5:-},g; s,@PRIVATE_WICK@,$whole_needs,g; s,@PRIVATE_CORE@,$core_needs,g" \
    "$(file "install/$1")"
}
mkdir -p "$new/lib/cmake/Wick" "$new/lib/pkgconfig" "$new/bin" "$new/share/wick" \
  "$new/share/bash-completion/completions" "$new/share/zsh/site-functions" "$new/share/fish/vendor_completions.d"
for name in wick wick-core; do
  cp -L "$built/install/lib$name.so" "$new/lib/lib$name.so.$version"
  chmod 755 "$new/lib/lib$name.so.$version"
  ln -s "lib$name.so.$version" "$new/lib/lib$name.so.$soname_version"
  ln -s "lib$name.so.$soname_version" "$new/lib/lib$name.so"
  cp -L "$built/install/lib$name.a" "$new/lib/"
  chmod 644 "$new/lib/lib$name.a"
done
package_texts() { # NAME DESCRIPTION NEEDS
  substitute wick.pc.in "$1" "$2" "$1" "$3" >"$new/lib/pkgconfig/$1.pc"
  substitute wick-static.pc.in "$1-static" "$2" "$1" "$3" >"$new/lib/pkgconfig/$1-static.pc"
}
package_texts wick "An engine for TorchScript" "$whole_needs"
package_texts wick-core "An engine for TorchScript without compiler for machine code" "$core_needs"
substitute WickConfig.cmake.in >"$new/lib/cmake/Wick/WickConfig.cmake"
substitute WickConfigVersion.cmake.in >"$new/lib/cmake/Wick/WickConfigVersion.cmake"
cp -L "$cli" "$new/bin/torchscript-cli"
chmod 755 "$new/bin/torchscript-cli"
"$cli" completions bash >"$new/share/bash-completion/completions/torchscript-cli"
"$cli" completions zsh >"$new/share/zsh/site-functions/_torchscript-cli"
"$cli" completions fish >"$new/share/fish/vendor_completions.d/torchscript-cli.fish"
cp -L "$(file CHANGELOG.md)" "$new/share/wick/CHANGELOG.md"
: >"$new/$manifest"
(cd "$new" && find . ! -type d -printf '%P\n' | sort) >"$new/.files" && mv "$new/.files" "$new/$manifest"
sed -i '/^\.files$/d' "$new/$manifest"

# Two renames: until the first the old installation stands, behind the second the new one.
old=
if [ -e "$prefix" ]; then
  old=$prefix.old.$$
  mv -T "$prefix" "$old" || fail "$prefix cannot be replaced"
fi
if ! mv -T "$new" "$prefix"; then
  [ -z "$old" ] || mv -T "$old" "$prefix"
  fail "$prefix cannot be made"
fi
trap - EXIT
[ -z "$old" ] || rm -rf "$old"
echo "installed Wick $version in $prefix"
