#!/usr/bin/env python3
"""Changes the code at random, one place at a time, and tells whether a test notices.

usage: tools/mutate.py --seed N [--count N] [--flag FLAG]... FOLDER TARGET...

For each change one operator, boolean or condition in a .cpp file of the folder becomes another one. Then the targets are
built and run, and the file is restored. What compiles and fails no test is printed with its line: a test is missing
there, or the code says more than it needs to. Run it in a clean tree: the tests must pass before anything is changed.
"""

import argparse
import glob
import os
import random
import re
import signal
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CHANGES = [
    (r" == ", " != "),
    (r" != ", " == "),
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" && ", " || "),
    (r" \|\| ", " && "),
    (r"(?<=[\w)]) \+ (?=[\w(])", " - "),
    (r"(?<=[\w)]) - (?=[\w(])", " + "),
    (r"\btrue\b", "false"),
    (r"\bfalse\b", "true"),
    (r"\bif \((?=[^;]*\) (?:\{|return|continue|break))", "if (!("),
    (r"\bcontinue;", ";"),
]
PASSED, FAILED = 0, 3  # what `bazel test` ends with when the tests were built and ran


def code_of(line):
    """The line without what stands in literals and comments, which become blanks."""
    line = re.sub(r'"(?:\\.|[^"\\])*"', lambda found: " " * len(found.group()), line)
    return re.sub(r"//.*", lambda found: " " * len(found.group()), line)


def mutated(lines, chooser):
    """A number of a line and its changed text, or none."""
    number = chooser.randrange(len(lines))
    code = code_of(lines[number])
    if code.lstrip().startswith(("#", "template", "static_assert")):
        return None
    found = [(match, new) for old, new in CHANGES for match in re.finditer(old, code)]
    if not found:
        return None
    match, new = chooser.choice(found)
    line = lines[number]
    if new.startswith("if ("):
        # The condition ends at the parenthesis that belongs to it.
        depth, end = 1, match.end()
        while end < len(code) and depth:
            depth += {"(": 1, ")": -1}.get(code[end], 0)
            end += 1
        if depth or ";" in code[match.end() : end]:
            return None
        return number, line[: match.start()] + "if (!(" + line[match.end() : end] + ")" + line[end:]
    return number, line[: match.start()] + new + line[match.end() :]


def bazel(command, flags, targets):
    return subprocess.run(
        ["bazel", command] + flags + targets, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ).returncode


def noticed(flags, targets):
    """Whether a test fails. Stops when the tests did not run, because then nobody looked."""
    code = bazel("test", flags, targets)
    if code not in (PASSED, FAILED):
        sys.exit(f"bazel test ended with {code}, expected that tests run: {' '.join(targets)}")
    return code == FAILED


def main():
    parser = argparse.ArgumentParser(description="does a test notice?")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, default=5)
    parser.add_argument("--flag", action="append", default=["--test_timeout=300"])
    parser.add_argument("folder")
    parser.add_argument("targets", nargs="+")
    options = parser.parse_args()
    # The changed file is restored then, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    if noticed(options.flag, options.targets):
        sys.exit("a test fails before anything is changed")
    chooser = random.Random(options.seed)
    files = sorted(glob.glob(os.path.join(ROOT, options.folder, "**/*.cpp"), recursive=True))
    sizes = [os.path.getsize(name) for name in files]
    tried = missed = 0
    while tried < options.count:
        name = chooser.choices(files, sizes)[0]
        before = open(name).read()
        lines = before.split("\n")
        change = mutated(lines, chooser)
        if not change:
            continue
        number, line = change
        where = f"{os.path.relpath(name, ROOT)}:{number + 1}"
        old, lines[number] = lines[number], line
        try:
            with open(name, "w") as file:
                file.write("\n".join(lines))
            if bazel("build", options.flag, options.targets):
                continue
            tried += 1
            seen = noticed(options.flag, options.targets)
        finally:
            with open(name, "w") as file:
                file.write(before)
        if seen:
            print(f"noticed: {where}: {line.strip()}", flush=True)
        else:
            missed += 1
            print(f"NOT NOTICED: {where}: {line.strip()}\n    was: {old.strip()}", flush=True)
    print(f"{tried - missed} of {tried} changes were noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
