#!/usr/bin/env python3
"""Times a program alone and beside one busy process, and prints how many times slower it is then.

usage: tests/bench/neighbour.py [--cli PATH] [--rounds N] [--cores LIST] FILE [arguments of `bench`...]

    tests/bench/neighbour.py examples/digits.pt --input 64x1x28x28xf32 --threads 2

--cores confines both to these processors (as taskset does), so that a large machine shows what two cores do.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cli", default="bazel-bin/tools/torchscript-cli")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cores")
    parser.add_argument("file")
    options, rest = parser.parse_known_args()
    if options.cores:
        os.sched_setaffinity(0, {int(core) for core in options.cores.split(",")})

    def milliseconds():
        command = [options.cli, "bench", options.file, "--duration", "2", "--json", *rest]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return json.loads(done.stdout)["median_ms"]

    alone, crowded = [], []
    for _ in range(options.rounds):
        alone.append(milliseconds())
        busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            crowded.append(milliseconds())
        finally:
            busy.kill()
            busy.wait()
    quiet, loud = statistics.median(alone), statistics.median(crowded)
    print(f"{quiet:.3f} ms alone, {loud:.3f} ms beside a busy process: {loud / quiet:.2f} times")


main()
