#!/usr/bin/env python3
"""Packs the package into a wheel, with the shared libraries that the extension module needs.

usage: make_wheel.py --version VERSION --out FILE.whl SOURCE...

A SOURCE is a file of the package; its path from the last folder called `wick` on is that in the wheel. The
libraries are Debian's; they lie in wick/lib, where the extension module looks for them first.
"""

import argparse
import base64
import hashlib
import os
import subprocess
import sys
import zipfile

# What _C.so is linked with or opens, and what these need, but for the C and C++ libraries.
LIBRARIES = [
    "libdnnl.so.2",
    "libfmt.so.9",
    "libgfortran.so.5",
    "libgomp.so.1",
    "libOpenCL.so.1",
    "libopenblas.so.0",
    "libquadmath.so.0",
    "libre2.so.9",
    "libutf8proc.so.2",
    "libzstd.so.1",
]
TAG = "cp311-cp311-linux_x86_64"
# The same for every build of the same sources.
DATE = (2020, 1, 1, 0, 0, 0)


def find_library(name):
    listing = subprocess.run(
        ["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True
    ).stdout
    for line in listing.splitlines():
        if line.strip().startswith(name + " ") and "x86-64" in line:
            return os.path.realpath(line.split("=>")[1].strip())
    sys.exit(f"make_wheel.py: {name} is not installed")


class Wheel:
    def __init__(self, path, info):
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9)
        self._info = info
        self._record = []

    def add(self, name, contents):
        entry = zipfile.ZipInfo(name, DATE)
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o755 if ".so" in name else 0o644) << 16
        self._zip.writestr(entry, contents)
        digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
        self._record.append(f"{name},sha256={digest},{len(contents)}")

    def close(self):
        self._record.append(f"{self._info}/RECORD,,")
        entry = zipfile.ZipInfo(f"{self._info}/RECORD", DATE)
        self._zip.writestr(entry, "\n".join(self._record) + "\n")
        self._zip.close()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("sources", nargs="+")
    options = parser.parse_args()
    info = f"wick-{options.version}.dist-info"
    wheel = Wheel(options.out, info)
    for source in sorted(options.sources):
        parts = source.split("/")
        inside = "/".join(parts[len(parts) - 1 - parts[::-1].index("wick") :])
        with open(source, "rb") as file:
            wheel.add(inside, file.read())
    for library in LIBRARIES:
        with open(find_library(library), "rb") as file:
            wheel.add(f"wick/lib/{library}", file.read())
    metadata = (
        "Metadata-Version: 2.1\n"
        "Name: wick\n"
        f"Version: {options.version}\n"
        "Summary: An engine for TorchScript: tensors, scripts and gradients\n"
        "Requires-Python: ==3.11.*\n"
        "Requires-Dist: numpy\n"
    )
    wheel.add(f"{info}/METADATA", metadata.encode())
    wheel.add(
        f"{info}/WHEEL",
        f"Wheel-Version: 1.0\nGenerator: wick\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode(),
    )
    wheel.close()


if __name__ == "__main__":
    main()
