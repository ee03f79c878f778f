#!/usr/bin/env python3
"""Which lines the tests run, by room.

usage: tools/coverage.py [--lines FILE... | --throws]

Run the tests first, with counters:

  bazel test --config=coverage --keep_going //tests/...

Each program adds its counters to those in /tmp/wick-coverage (`.bazelrc`), so remove that folder before. This reads
them and prints a table. A line counts when some program ran it. Tests and headers of other projects do not count;
`runtime/cuda` and `codegen/cuda`, which a GPU runs, have rows of their own. With --lines it prints the lines of these
files that nothing ran, with --throws all of them that throw.
"""

import argparse
import collections
import concurrent.futures
import glob
import json
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Rooms that are counted apart from the one that they stand in.
INNER = ("runtime/cuda", "runtime/ops", "codegen/cuda")
COUNTERS = "/tmp/wick-coverage/bazel-out/k8-opt/bin"
OTHERS = ("tests/", "external/", "bazel-out/", "third_party/", "/")


def room_of(path):
    for room in INNER:
        if path.startswith(room + "/"):
            return room
    return path.split("/")[0]


def counters(objects):
    """Lines that the objects were made of, by file: {path: {line: count}}."""
    texts = []
    for name in objects:
        run = subprocess.run(
            ["gcov", "--json-format", "--stdout", name], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd="/tmp"
        )
        texts += run.stdout.decode().splitlines()
    lines = collections.defaultdict(dict)
    for text in texts:
        for source in json.loads(text)["files"]:
            path = source["file"]
            if path.startswith(OTHERS):
                continue
            of_file = lines[path]
            for line in source["lines"]:
                number = line["line_number"]
                of_file[number] = of_file.get(number, 0) + line["count"]
    return {path: dict(counts) for path, counts in lines.items()}


def all_counters(jobs):
    folder = os.path.realpath(os.path.join(ROOT, "bazel-bin"))
    if not os.path.isdir(COUNTERS):
        sys.exit(f"coverage: {COUNTERS} is not there; run the tests with --config=coverage")
    # gcov wants an object's counters beside what the compiler said of it. Where no program ran an object it counts zeros.
    objects = []
    for found in sorted(glob.glob(folder + "/**/_objs/**/*.gcno", recursive=True)):
        name = os.path.relpath(found, folder)
        if name.startswith(("tests/", "external/")):
            continue
        objects.append(os.path.join(COUNTERS, name))
        os.makedirs(os.path.dirname(objects[-1]), exist_ok=True)
        shutil.copyfile(found, objects[-1])
    lines = collections.defaultdict(dict)
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        for some in pool.map(counters, [objects[i : i + 20] for i in range(0, len(objects), 20)]):
            for path, counts in some.items():
                of_file = lines[path]
                for number, count in counts.items():
                    of_file[number] = of_file.get(number, 0) + count
    return lines


def print_table(lines):
    rooms = collections.defaultdict(lambda: [0, 0])
    for path, counts in lines.items():
        row = rooms[room_of(path)]
        row[0] += len(counts)
        row[1] += sum(count > 0 for count in counts.values())
    print("| room | lines | run | share |\n| --- | ---: | ---: | ---: |")
    for room, (all_lines, run) in sorted(rooms.items()):
        if all_lines == 0:
            continue
        print(f"| `{room}` | {all_lines} | {run} | {100 * run / all_lines:.1f} % |")


def print_lines(lines, names, wanted=""):
    for name in names:
        if name not in lines:
            sys.exit(f"coverage: no counters of {name}")
        text = open(os.path.join(ROOT, name)).read().splitlines()
        for number in sorted(n for n, count in lines[name].items() if count == 0):
            line = text[number - 1] if number <= len(text) else ""
            if re.search(wanted, line):
                print(f"{name}:{number}: {line}")


def main():
    parser = argparse.ArgumentParser(description="lines that tests run, by room")
    parser.add_argument("--lines", nargs="+", metavar="FILE", default=[])
    parser.add_argument("--throws", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    lines = all_counters(options.jobs)
    if options.throws:
        print_lines(lines, sorted(lines), r"\bthrow\b")
    elif options.lines:
        print_lines(lines, options.lines)
    else:
        print_table(lines)


if __name__ == "__main__":
    main()
