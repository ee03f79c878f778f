#!/usr/bin/env python3
"""Traces the printed code of recorded cases, runs the traces, and prints the rate.

usage: trace_corpus.py FOLDER [--match TEXT] [--limit N] [--fails N] [--at-least PERCENT]

FOLDER is as for run_corpus.py. Counted are the cases that pass there, take tensors and return some.
The tensors among the arguments are the inputs of the trace, all other arguments are constants. What
the trace returns for the same inputs must agree with the tensors among the expected values.
"""

import json
import os
import sys
import warnings

import wick
from printed_code import Program
from run_corpus import Skip, agree, options_of, reason_of, run_all, run_case
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


def run(folder):
    try:
        return trace_case(folder)
    except Skip:
        raise
    except Exception as error:
        return reason_of(error)


def main():
    options = options_of(__doc__).parse_args()
    warnings.simplefilter("ignore", jit.TracerWarning)
    return run_all(options, run, "traces agree", "cases have nothing to trace")


if __name__ == "__main__":
    sys.exit(main())
