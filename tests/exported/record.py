#!/usr/bin/env python3
"""Records exported programs with the PyTorch that runs this (2.11), for exported_test.py.

usage: record.py OUTPUT.tar.xz [--match TEXT] [--kinds features,operators,core] [--jobs N]

Each case is a folder: module.pt2 and io.pt, which holds "calls", a list of {"args", "kwargs", "expected"} (or {"raises": text}),
and "after", the state after the calls. The test skips nothing: what a case holds must come out.
"""
import argparse
import concurrent.futures
import io
import itertools
import multiprocessing
import os
import sys
import tarfile
import tempfile
import warnings

import torch
import torch.utils._pytree as pytree

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from record_core import core_cases
from record_features import feature_cases
from record_operators import operator_cases

warnings.simplefilter("ignore")
SMALL = 400_000


def plain(value):
    """The value with containers of its own classes as dicts and tuples."""
    if isinstance(value, torch.Tensor):
        if value.dtype == torch.complex32:
            return value.to(torch.complex64)
        return value.detach().cpu().clone() if value.numel() < SMALL else value.detach()
    if isinstance(value, tuple):
        return tuple(plain(v) for v in value)
    if isinstance(value, list):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if value is None or isinstance(value, (int, float, bool, str)):
        return value
    if hasattr(value, "__dataclass_fields__"):
        fields = {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
        return {name: field for name, field in fields.items() if field is not None}
    raise TypeError(f"{type(value)}")


class Recorder:
    """The programs that one process has recorded."""

    def __init__(self):
        self.made = []
        self.failed = []

    def add(self, name, package, content):
        buffer = io.BytesIO()
        torch.save(content, buffer)
        if len(package) + len(buffer.getvalue()) > SMALL:
            self.failed.append((name, "too large"))
        else:
            self.made.append((name, package, buffer.getvalue()))


def saved(program):
    with tempfile.NamedTemporaryFile(suffix=".pt2") as f:
        torch.export.save(program, f.name)
        f.seek(0)
        return open(f.name, "rb").read()


def record(recorder, case):
    """A case: name, module, calls (args, kwargs), dynamic shapes, forms."""
    try:
        torch.manual_seed(0)
        args, kwargs = case.calls[0]
        program = torch.export.export(case.module, args, kwargs or None, dynamic_shapes=case.dynamic, strict=False)
    except Exception as e:
        recorder.failed.append((case.name, f"export: {type(e).__name__}: {str(e)[:100]}"))
        return
    for form in case.forms:
        try:
            made = program if form == "training" else program.run_decompositions()
            package = saved(made)  # before calls change the state
            recorder.add(f"{case.name}.{form}", package, content_of(case, made.module()))
        except Exception as e:
            recorder.failed.append((f"{case.name}.{form}", f"{type(e).__name__}: {str(e)[:100]}"))


def content_of(case, module):
    """The calls of a case with the results of the module, and its state afterwards."""
    calls = []
    for args, kwargs in case.calls:
        given = plain((args, kwargs))
        call = {"args": list(given[0]), "kwargs": given[1]}
        try:
            call["expected"] = plain(module(*args, **kwargs))
        except Exception as e:
            call["raises"] = str(e)[:200]
        calls.append(call)
    after = {k: v.detach().clone() for k, v in module.state_dict().items()} if case.stateful else {}
    return {"calls": calls, "after": after, "tolerance": case.tolerance}


def record_part(part, parts, match, kinds):
    """The cases whose turn it is."""
    torch.set_num_threads(1)
    recorder = Recorder()
    sources = {"features": feature_cases, "operators": operator_cases, "core": core_cases}
    cases = itertools.chain.from_iterable(make() for kind, make in sources.items() if kind in kinds)
    for i, case in enumerate(cases):
        if i % parts == part and match in case.name:
            case.record(recorder, record, saved, plain)
    return recorder


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--match", default="")
    parser.add_argument("--kinds", default="features,operators,core")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    with concurrent.futures.ProcessPoolExecutor(options.jobs, multiprocessing.get_context("spawn")) as pool:
        parts = list(pool.map(record_part, range(options.jobs), *(itertools.repeat(x, options.jobs) for x in (options.jobs, options.match, options.kinds))))
    with tarfile.open(options.output, "w:xz") as out:
        for name, package, content in sorted(made for part in parts for made in part.made):
            for file, data in (("module.pt2", package), ("io.pt", content)):
                info = tarfile.TarInfo(f"{name}/{file}")
                info.size = len(data)
                out.addfile(info, io.BytesIO(data))
    print(f"{sum(len(part.made) for part in parts)} programs")
    for name, why in sorted(failed for part in parts for failed in part.failed):
        print(f"  left out {name}: {why}")


if __name__ == "__main__":
    main()
