#!/usr/bin/env python3
"""Writes inputs to start libFuzzer from: one folder for each target under DIR.

usage: make_seeds.py DIR

They come from the data of the tests and from the programs under tests/scripts; calls of operators
are random bytes; the first two choose the operator.
"""
import os
import random
import subprocess
import sys
import tempfile
import zipfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")


def files(folder, ending):
    for where, _, names in os.walk(os.path.join(ROOT, folder)):
        for name in sorted(names):
            if name.endswith(ending):
                yield os.path.join(where, name)


def exported_programs():
    """Programs of torch.export, as exported_fuzz reads them."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "programs")
        make = os.path.join(ROOT, "fuzz", "make_exported.py")
        subprocess.run([sys.executable, make, os.path.join(ROOT, "exported", "kit.tar.xz"), path], check=True)
        with open(path, "rb") as file:
            return file.read().split(b"\n####\n")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    counts = {}

    def write(target, data):
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        number = counts[target] = counts.get(target, 0) + 1
        with open(os.path.join(folder, f"{number:04}"), "wb") as out:
            out.write(data)

    for path in files("serialization/data", ".pt"):
        with open(path, "rb") as file:
            data = file.read()
        for target in ("zip", "archive", "load_and_run"):
            write(target, data)
        if not zipfile.is_zipfile(path):
            continue
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".pkl"):
                    write("pickle", archive.read(name))
                elif name.endswith(".py"):
                    for target in ("source_import", "printer"):
                        write(target, archive.read(name))
    for path in files("scripts/cases", ".py"):
        with open(path, "rb") as file:
            write("source", file.read())
    for program in exported_programs():
        write("exported_program", program)
    generator = random.Random(1)
    for operator in range(4096):
        write("operator_call", operator.to_bytes(2, "big") + generator.randbytes(120))
    for target, count in sorted(counts.items()):
        print(f"{target}: {count}")


if __name__ == "__main__":
    main()
