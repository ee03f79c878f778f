"""Loads random modules that Wick wrote (plain, frozen, frozen and optimized), runs them in PyTorch and compares. Modules of one
method are also run as Python, because an archive holds operators as Wick chose them.

  bazel build //tests/strangers:write_modules
  /usr/bin/python3 tests/strangers/with_pytorch.py [--first SEED] [--count N] [--stop]

Exits with 1 when results, dtypes, sizes or errors differ.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import typing

import torch

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../bazel-bin/tests/strangers/write_modules")
TOGETHER = 100


def difference(got, want):
    """Returns how two tensors differ, or None. Numbers are compared relative to the largest one, because sums may cancel."""
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{want.dtype} {tuple(want.shape)} instead of {got.dtype} {tuple(got.shape)}"
    got, want = got.detach().double(), want.double()
    finite = got[torch.isfinite(got)].abs()
    largest = float(finite.max()) if finite.numel() else 0.0
    if not torch.allclose(want, got, rtol=1e-3, atol=2e-3 * largest + 1e-30, equal_nan=True):
        return f"{want.flatten()[:6].tolist()} instead of {got.flatten()[:6].tolist()}"
    return None


def helped(x, w):
    """Does what the function does that modules fork."""
    return torch.tanh(x) * w


def as_python(module, source):
    """Returns the function of a module's source, which reads its attributes from the loaded archive."""
    names = {"torch": torch, "helped": helped, "Tensor": torch.Tensor, "Tuple": typing.Tuple, "List": typing.List}
    exec(source, names)  # pylint: disable=exec-used
    return lambda x: names["forward"](module, x)


def fault(path, source, inputs, results, raised):
    """Returns how a run in PyTorch differs from Wick's, or None: an archive's, or with `source` the text's."""
    try:
        module = torch.jit.load(path)
    except Exception as error:  # pylint: disable=broad-except
        return f"PyTorch does not load it: {error}"
    if source:
        module = as_python(module, source)
    for i, x in enumerate(inputs):
        try:
            got = module(x.clone())
        except Exception as error:  # pylint: disable=broad-except
            return None if raised and i == len(results) else f"call {i} raises in PyTorch alone: {error}"
        if i >= len(results):
            return f"call {i} raises in Wick alone"
        different = difference(got, results[i])
        if different:
            return f"call {i}: {different}"
    return None


def compare(folder, seed):
    """Returns how many runs of a seed were compared and how many differ, which it prints."""
    values = os.path.join(folder, f"{seed}.values.pt")
    if not os.path.exists(values):
        return 0, 0
    inputs, results, raised = torch.load(values)
    with open(os.path.join(folder, f"{seed}.txt"), encoding="utf-8") as file:
        source = file.read()
    runs = [(form, form, "") for form in ("plain", "frozen", "optimized")]
    if source.count("def ") == 1:
        runs += [(f"{form} as Python", form, source) for form in ("plain", "leaf")]
    compared = faults = 0
    for name, form, text in runs:
        path = os.path.join(folder, f"{seed}.{form}.pt")
        if not os.path.exists(path):
            continue
        compared += 1
        found = fault(path, text, inputs, results, raised)
        if found:
            faults += 1
            print(f"seed {seed}, {name}: {found}\nx: {tuple(inputs[0].shape)}\n{source}", flush=True)
    return compared, faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--stop", action="store_true", help=f"stop after {TOGETHER} modules among which is a fault")
    options = parser.parse_args()
    torch.set_num_threads(1)
    modules = archives = faults = 0
    for first in range(options.first, options.first + options.count, TOGETHER):
        count = min(TOGETHER, options.first + options.count - first)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([PROGRAM, folder, str(first), str(count)], check=True)
            for seed in range(first, first + count):
                compared, found = compare(folder, seed)
                modules += compared > 0
                archives += compared
                faults += found
        if faults and options.stop:
            break
    print(f"{modules} modules, {archives} runs, {faults} faults")
    return 1 if faults or not modules else 0


if __name__ == "__main__":
    sys.exit(main())
