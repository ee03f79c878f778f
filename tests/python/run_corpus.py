#!/usr/bin/env python3
"""Runs the printed code of recorded cases as ordinary Python and prints the rate.

usage: run_corpus.py FOLDER [--match TEXT] [--limit N] [--fails N] [--at-least PERCENT]
                     [--device lazy]

FOLDER holds a folder for each case, with module.pt (an archive), io.pt (torch.save of a dict with
method, args, kwargs, and expected or error) and case.json ({"kind": "value", "random" or "error"}).
A value must agree in dtype, shape, structure and number (1e-4, 1e-5; 1e-2 for reduced precision), a
random one in all but the numbers; an error must be raised. With --device tensors that come in and those
that the code makes are there, also where it names the CPU.
"""

import argparse
import contextlib
import json
import math
import os
import sys
import traceback

import wick
from printed_code import Program, on_device
from wick import torch


class Skip(Exception):
    """The case has nothing to run."""


def reason_of(error):
    last = traceback.extract_tb(error.__traceback__)[-1]
    text = " ".join(str(error).split())[:200]
    return f"{type(error).__name__}: {text} ({last.name})"


def agree(found, expected, random):
    """None, or what differs."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(found, torch.Tensor):
            return f"a {type(found).__name__}, not a Tensor"
        if (found.dtype, found.shape) != (expected.dtype, expected.shape):
            return f"{found.dtype}{list(found.shape)}, not {expected.dtype}{list(expected.shape)}"
        if found.layout is not expected.layout:
            return "another layout"
        if random or expected.numel() == 0:
            return None
        if found.is_quantized:
            found, expected = found.int_repr(), expected.int_repr()
        if found.layout is not torch.strided:
            found, expected = found.to_dense(), expected.to_dense()
        reduced = expected.dtype in (torch.float16, torch.bfloat16)
        wide = torch.complex128 if expected.dtype.is_complex else torch.float64
        a, b = found.detach().to(wide), expected.detach().to(wide)
        tolerance = (1e-2, 1e-2) if reduced else (1e-4, 1e-5)
        return None if torch.allclose(a, b, *tolerance, True) else "other numbers"
    if isinstance(expected, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(expected):
            return f"{found!r:.80}, not a sequence of {len(expected)}"
        for each, other in zip(found, expected):
            if reason := agree(each, other, random):
                return reason
        return None
    if isinstance(expected, dict):
        if not isinstance(found, dict) or list(found) != list(expected):
            return "another dict"
        return next(filter(None, (agree(found[k], expected[k], random) for k in expected)), None)
    if isinstance(expected, float) and type(found) in (int, float):
        if random or math.isclose(found, expected, rel_tol=1e-4, abs_tol=1e-5):
            return None
        return None if math.isnan(found) and math.isnan(expected) else f"{found}, not {expected}"
    if isinstance(found, (wick.dtype, wick.layout)):
        return None  # carried as ints
    same = random or found == expected or str(found) == str(expected)
    return None if same else f"{found!r:.80}, not {expected!r:.80}"


@contextlib.contextmanager
def made_on(device):
    """Tensors are made there, also by code that names the CPU."""
    wick._C._set_default_device(device, device != "cpu")
    try:
        yield
    finally:
        wick._C._set_default_device("cpu")


def run_case(folder, device="cpu"):
    """None when it passes, else what went wrong."""
    with open(os.path.join(folder, "case.json")) as file:
        kind = json.load(file)["kind"]
    io = wick.files.load(os.path.join(folder, "io.pt"))
    try:
        torch.manual_seed(0)
        program = Program(os.path.join(folder, "module.pt"), device)
        with torch.set_grad_enabled(bool(io.get("grad_enabled", True))), made_on(device):
            method = getattr(program.main, io.get("method") or "forward")
            args, kwargs = on_device((io["args"], io.get("kwargs", {})), device)
            found = method(*args, **kwargs)
        found = on_device(found, "cpu")
    except Exception as error:
        if kind == "error":
            return None
        return reason_of(error)
    if kind == "error":
        return "no error"
    return agree(found, io["expected"], kind == "random")


def options_of(description):
    parser = argparse.ArgumentParser(description=description.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--match", default="")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--fails", type=int, default=10)
    parser.add_argument("--at-least", type=float, default=0)
    return parser


def run_all(options, run, done, left_out=""):
    """Runs `run` for the folder of each case, which gives None or what went wrong, or raises Skip. Prints the
    rate with the words for what was done; the exit code."""
    names = sorted(n for n in os.listdir(options.folder) if options.match in n)
    if options.limit:
        names = names[:: max(1, len(names) // options.limit)]
    failures = []
    skipped = 0
    for name in names:
        try:
            reason = run(os.path.join(options.folder, name))
        except Skip:
            skipped += 1
            continue
        if reason:
            failures.append(f"{name}: {reason}")
    for failure in failures[: options.fails]:
        print(failure)
    counted = len(names) - skipped
    rate = 100 * (counted - len(failures)) / max(1, counted)
    passed = f"{counted - len(failures)} of {counted} {done}: {rate:.2f}%"
    print(passed + (f" ({skipped} {left_out})" if left_out else ""))
    return 0 if counted and rate >= options.at_least else 1


def main():
    parser = options_of(__doc__)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    return run_all(options, lambda folder: run_case(folder, options.device), "cases pass")


if __name__ == "__main__":
    sys.exit(main())
