#!/usr/bin/env python3
"""Runs clang-tidy with the list in .clang-tidy over C++ sources, and fails where it finds something.

usage: tools/tidy.py [--changed COMMITS] [--jobs N] [FILE...]

Without files it takes all of them, about five seconds each; with --changed those that the last COMMITS commits and the
working tree changed. Of tests it only asks whether they include what they use, by compiling them without the precompiled
header that would hide it. It needs the headers that a build generates: run `bazel build //...` before.
"""

import argparse
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TOOL = "clang-tidy-19"
COMPILER = "g++"
# These are built against an installation.
ELSEWHERE = re.compile(r"^(examples|tests/install)/")


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def sources(changed):
    names = output_of("git", "ls-files", "*.cpp").split()
    if changed is not None:
        log = output_of("git", "log", f"-{changed}", "--name-only", "--format=")
        wanted = set(log.split()) | set(output_of("git", "diff", "--name-only", "HEAD").split())
        names = [name for name in names if name in wanted]
    return [name for name in names if not ELSEWHERE.match(name) and os.path.exists(os.path.join(ROOT, name))]


def flags():
    generated = os.path.realpath(os.path.join(ROOT, "bazel-bin"))
    base = generated.split("/execroot/")[0]
    includes = [ROOT, generated, "aot/runtime"] + [os.path.join(generated, name) for name in ("aot", "aot/runtime")]
    system = [os.path.join(base, "external", name) for name in ("system", "llvm/include")]
    system += glob.glob("/usr/include/python3.*")
    return (
        ["-std=c++20", "-march=x86-64-v3", "-fopenmp", "-DNDEBUG", "-DWICK_INSIDE", '-DWICK_BUILD_VERSION=""', "-w"]
        + [f"-I{path}" for path in includes]
        + [f"-isystem{path}" for path in system]
    )


# Clang has headers of its own but for omp.h, whose attributes of allocators it does not know.
FOR_CLANG = ["-D__malloc__(...)="] + [
    f"-idirafter{path}" for path in glob.glob("/usr/lib/gcc/x86_64-linux-gnu/12/include")
]


def findings(name, arguments):
    if name.startswith("tests/"):
        command = [COMPILER, "-fsyntax-only", name] + arguments
    else:
        command = [TOOL, "--quiet", name, "--"] + arguments + FOR_CLANG
    run = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode and not run.stdout:
        return run.stderr
    return run.stdout


def main():
    parser = argparse.ArgumentParser(description="clang-tidy over the sources")
    parser.add_argument("--changed", type=int, metavar="COMMITS")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("files", nargs="*")
    options = parser.parse_args()
    try:
        names = options.files or sources(options.changed)
    except (OSError, subprocess.CalledProcessError):
        print("not a checkout with a history: sources are not checked")
        return 0
    if shutil.which(TOOL) is None:
        print(f"{TOOL} is not installed: only tests are checked")
        names = [name for name in names if name.startswith("tests/")]
    arguments = flags()
    found = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, text in zip(names, pool.map(lambda name: findings(name, arguments), names)):
            # What a header has is found in each file that includes it.
            for piece in re.split(r"(?m)^(?=\S+:\d+:\d+: (?:error|warning): )", text):
                if piece.strip() and piece not in found:
                    found[piece] = name
                    print(piece.replace(ROOT + "/", ""), end="", flush=True)
    print(f"clang-tidy: {len(names)} files, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
