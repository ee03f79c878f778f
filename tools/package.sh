#!/usr/bin/env bash
# Makes the files that can be handed out: tools/package.sh [FOLDER] writes into FOLDER (dist by default)
#   wick-VERSION-linux-x86_64.tar.gz   a prefix: libraries, headers, command line tool, licences
#   wick_VERSION_amd64.deb             the same for Debian 12, below /usr; names the packages it needs
#   wick-VERSION-cp311-….whl           the package for Python 3.11, with the libraries it needs
#   SHA256SUMS
# The same sources and the same compiler give the same bytes.
set -euo pipefail

fail() {
  echo "package.sh: $*" >&2
  exit 1
}
case "${1:-dist}" in -*)
  echo "usage: tools/package.sh [FOLDER]" >&2
  exit 2
  ;;
esac
[ $# -le 1 ] || fail "one folder is expected"
out=$(realpath -m -- "${1:-dist}")
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$source"
# Run by a test everything that is built lies beside this; otherwise Bazel builds it.
built=$source
if [ ! -e install/libwick.so ]; then
  tools/install_deps.sh
  tools/build.sh 2 //install:files //python:wheel
  built=$source/bazel-bin
fi
mkdir -p "$out" || fail "$out cannot be made"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export SOURCE_DATE_EPOCH=1577836800 # what make_wheel.py writes, too

bash tools/install.sh "$work/prefix" >/dev/null
version=$("$work/prefix/bin/torchscript-cli" --version | awk '{print $NF}')
name=wick-$version-linux-x86_64

# Symbols of functions that nobody outside calls.
strip --strip-unneeded "$work/prefix/bin/torchscript-cli"

# The licences of libraries whose code is in these files, as Debian states them (docs/licences.md).
licences=$work/prefix/share/doc/wick/licences
mkdir -p "$licences"
for package in llvm-19-dev libcli11-dev nlohmann-json3-dev libfmt-dev libstdc++-12-dev; do
  copyright=/usr/share/doc/$package/copyright
  [ -e "$copyright" ] || fail "$copyright is missing: the licence of $package cannot be handed on"
  cp -L "$copyright" "$licences/$package.txt"
done
cp -L docs/licences.md "$licences/README.md"

# Debian's packages with the libraries that these programs are linked with, and OpenBLAS, which the engine opens.
needed() {
  readelf -d "$work/prefix/bin/torchscript-cli" "$work/prefix"/lib/libwick*.so |
    sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -v '^libwick' | sort -u
  echo libopenblas.so.0
}
depends=$(
  needed | while read -r library; do
    path=$(/sbin/ldconfig -p | awk -v name="$library" '$1 == name && /x86-64/ {print $NF; exit}')
    [ -n "$path" ] || fail "$library is not installed"
    # A library may be a link that belongs to no package, or lie in /lib, which is /usr/lib.
    owner=$(dpkg -S "$(realpath "$path")" 2>/dev/null || dpkg -S "$path" 2>/dev/null ||
      dpkg -S "*/$(basename "$(realpath "$path")")") ||
      fail "no package holds $path"
    echo "${owner%%:*}"
  done | sort -u
)
cat >"$work/prefix/share/doc/wick/README.txt" <<TEXT
Wick $version: an embeddable engine for TorchScript, for Linux on x86-64 processors with AVX2.

It needs libraries of Debian 12:
  apt-get install $(echo $depends)

bin/torchscript-cli --help      the command line tool
include/wick, lib               headers and libraries; lib/pkgconfig, lib/cmake/Wick
share/doc/wick/licences         licences of libraries whose code is in these files
No licence for Wick itself has been chosen yet.
TEXT

# Sorted, of nobody, of one date.
pack() { tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" "$@"; }
pack -C "$work" --transform "s,^prefix,$name," -cf - prefix | gzip -n >"$out/$name.tar.gz"

mkdir -p "$work/deb/DEBIAN"
cp -a "$work/prefix" "$work/deb/usr"
rm "$work/deb/usr/share/wick/installed-files" # dpkg keeps its own
cat >"$work/deb/DEBIAN/control" <<TEXT
Package: wick
Version: $version
Architecture: amd64
Maintainer: The Wick authors <wick@localhost>
Installed-Size: $(du -sk "$work/deb/usr" | cut -f1)
Depends: $(for package in $depends; do
  echo "$package (>= $(dpkg-query -W -f='${Version}' "$package" | sed 's/-[^-]*$//'))"
done | paste -sd, | sed 's/,/, /g')
Section: science
Priority: optional
Description: embeddable engine for TorchScript
 Compiles TorchScript source, loads, runs, differentiates and saves the archives of
 torch.jit.save, without libtorch and without Python. Holds the command line tool,
 libraries, and headers for C++ and C.
TEXT
find "$work/deb/usr" -exec touch -hd "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zzstd --build "$work/deb" "$out/wick_${version}_amd64.deb" >/dev/null

cp -L "$built"/python/wick-"$version"-*.whl "$out/"
chmod 644 "$out"/*.whl
(cd "$out" && sha256sum "$name.tar.gz" "wick_${version}_amd64.deb" wick-"$version"-*.whl >SHA256SUMS)
ls -lh "$out" | awk 'NR > 1 {print $5, $NF}'
