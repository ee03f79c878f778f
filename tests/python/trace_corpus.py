#!/usr/bin/env python3
"""Traces the printed code of recorded cases, runs the traces, and prints the rate.

usage: trace_corpus.py FOLDER [--match TEXT] [--limit N] [--fails N] [--at-least PERCENT]

FOLDER is as for run_corpus.py. Counted are the cases that pass there, take tensors and return some.
The tensors among the arguments are the inputs of the trace, all other arguments are constants. What
the trace returns for the same inputs must agree with the tensors among the expected values.
"""

import argparse
import collections
import json
import os
import sys
import traceback
import warnings

import wick
from printed_code import Program
from run_corpus import agree, run_case
from wick import jit, torch
from wick.jit._trace import record


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        return [t for v in value.values() for t in tensors_in(v)]
    if isinstance(value, (list, tuple)):
        return [t for v in value for t in tensors_in(v)]
    return []


def with_tensors(value, given):
    """The value with the tensors of an iterator instead of its own."""
    if isinstance(value, torch.Tensor):
        return next(given)
    if isinstance(value, dict):
        return {k: with_tensors(v, given) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(with_tensors(v, given) for v in value)
    return value


class Skip(Exception):
    """The case has nothing to trace."""


def results_of(traced):
    return list(traced) if isinstance(traced, (list, tuple)) else [traced]


def trace_case(folder):
    with open(os.path.join(folder, "case.json")) as file:
        kind = json.load(file)["kind"]
    io = wick.files.load(os.path.join(folder, "io.pt"))
    arguments = (io["args"], io.get("kwargs", {}))
    inputs = tensors_in(arguments)
    if kind == "error" or not inputs or not tensors_in(io["expected"]) or run_case(folder):
        raise Skip
    program = Program(os.path.join(folder, "module.pt"))

    def function(*tensors):
        args, kwargs = with_tensors(arguments, iter(tensors))
        method = getattr(program.main, io.get("method") or "forward")
        return tuple(tensors_in(method(*args, **kwargs)))

    with torch.set_grad_enabled(bool(io.get("grad_enabled", True))):
        torch.manual_seed(0)
        copies = [t.detach().clone().requires_grad_(t.requires_grad) for t in inputs]
        names = [f"x{i}" for i in range(len(inputs))]
        scripted = program.scripted
        if any(True for _ in (*scripted.parameters(), *scripted.buffers())):
            recording = record(function, copies, names, scripted._c, True)
            recording.method(scripted._c, "traced_here")
            traced = scripted.traced_here
        else:
            traced = jit.trace(function, tuple(copies), check_trace=False)
        torch.manual_seed(0)
        found = results_of(traced(*inputs))
    return agree(found, tensors_in(io["expected"]), kind == "random")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--match", default="")
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--fails", type=int, default=10)
    parser.add_argument("--at-least", type=float, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", jit.TracerWarning)
    names = sorted(n for n in os.listdir(options.folder) if options.match in n)
    if options.limit:
        names = names[:: max(1, len(names) // options.limit)]
    failures = collections.OrderedDict()
    skipped = 0
    for name in names:
        try:
            reason = trace_case(os.path.join(options.folder, name))
        except Skip:
            skipped += 1
            continue
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = " ".join(str(error).split())[:200]
            reason = f"{type(error).__name__}: {text} ({last.name})"
        if reason:
            failures[name] = reason
    for name, reason in list(failures.items())[: options.fails]:
        print(f"{name}: {reason}")
    counted = len(names) - skipped
    rate = 100 * (counted - len(failures)) / max(1, counted)
    print(
        f"{counted - len(failures)} of {counted} traces agree: {rate:.2f}% "
        f"({skipped} cases have nothing to trace)"
    )
    return 0 if counted and rate >= options.at_least else 1


if __name__ == "__main__":
    sys.exit(main())
