#!/usr/bin/python3
"""Runs the scripts of cases/ with PyTorch and writes what they give into their "# expect:" lines.

usage: record.py [CASES_DIR] [--check]

A script has a function main without arguments. Its first lines are comments:
  # expect: TEXT         a line of what Python's repr() gives for main's result
  # prints: TEXT         a line that print() writes
  # expect error: TEXT   compiling or running is refused with a message that holds TEXT
  # as Python: REASON    what PyTorch 1.13 refuses or gets wrong: the expectations are those of Python itself
  # as PyTorch 2: REASON what PyTorch 1.13 gets wrong and PyTorch 2 does not: this PyTorch is not asked
The first two are written here; the third is ours to word, and PyTorch is only asked to refuse the script as well.
With --check nothing is written, and the exit code tells whether a file would change. Needs Debian's python3-torch.
"""
import enum
import importlib.util
import math
import os
import pickle
import sys
import tempfile
import typing
import warnings

import torch

warnings.simplefilter("ignore")
PRELUDE = {"torch": torch, "math": math, "Enum": enum.Enum, "Future": torch.futures.Future}
for name in ("Any", "Dict", "List", "NamedTuple", "Optional", "Tuple", "Union"):
    PRELUDE[name] = getattr(typing, name)


def run(path, script):
    """What run_here returns, from a process of its own: PyTorch may crash."""
    with tempfile.TemporaryFile() as answer:
        child = os.fork()
        if child == 0:
            pickle.dump(run_here(path, script), answer)
            answer.flush()
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        if status != 0:
            return None, "", f"PyTorch ended with status {status}"
        answer.seek(0)
        return pickle.load(answer)


def run_here(path, script):
    """Returns (repr of the result or None, what was printed, the error's text or None)."""
    spec = importlib.util.spec_from_file_location("script_" + os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    module.__dict__.update(PRELUDE)
    sys.stdout.flush()
    saved = os.dup(1)
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 1)
        result = error = None
        try:
            spec.loader.exec_module(module)
            main = torch.jit.script(module.main) if script else module.main
            result = repr(main())
        except Exception as e:
            error = str(e) or type(e).__name__
        finally:
            sys.stdout.flush()
            os.dup2(saved, 1)
            os.close(saved)
        captured.seek(0)
        return result, captured.read().decode(), error


def main():
    check = "--check" in sys.argv
    folders = [a for a in sys.argv[1:] if not a.startswith("-")]
    root = folders[0] if folders else os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases")
    bad = 0
    for folder, _, names in sorted(os.walk(root)):
        for name in sorted(names):
            path = os.path.join(folder, name)
            if not name.endswith(".py"):
                continue
            text = open(path).read()
            lines = text.split("\n")
            start = 0
            while lines[start].startswith(("# expect", "# prints:", "# as Python:", "# as PyTorch 2:")):
                start += 1
            head = lines[:start]
            if any(line.startswith("# as PyTorch 2:") for line in head):
                continue
            as_python = [line for line in head if line.startswith("# as Python:")]
            result, printed, error = run(path, script=not as_python)
            if any(line.startswith("# expect error:") for line in head):
                if error is None:
                    print(f"{path}: {'Python' if as_python else 'PyTorch'} accepts it: {result}")
                    bad += 1
                continue
            if error is not None:
                print(f"{path}: refused: {error[-300:]}")
                bad += 1
                continue
            new = as_python + ["# expect: " + line for line in result.split("\n")]
            new += ["# prints: " + line for line in printed.split("\n")[:-1]]
            updated = "\n".join(new + lines[start:])
            if updated != text:
                print(f"{path}: {'differs' if check else 'recorded'}")
                bad += check
                if not check:
                    open(path, "w").write(updated)
    sys.exit(1 if bad else 0)


main()
