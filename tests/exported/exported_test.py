"""Runs the programs that record.py recorded with PyTorch 2.11 and compares results, errors and states.

A program may be refused only if `REFUSED` lists why, by the name of what Wick lacks: docs/exported.md has the same list.
"""
import argparse
import collections
import os
import re
import sys
import tarfile
import tempfile
import zipfile

import wick
from comparison import difference
from wick import torch

# Parts of the messages of refused programs, and how many programs of the kit each refuses.
REFUSED = {
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "uint16": 1,
    "complex32": 2,
    "complex numbers of half precision": 2,
    "record::scale": 1,
}
# Programs whose results are those of PyTorch 1.13 here.
OLDER = {"op_aminmax_1.training": "a dimension that a tensor without dimensions never had is kept"}
# Operators of core ATen that no program of the kit has: what PyTorch writes in their place.
ABSENT = {"atan2.out": "atan2.default", "sym_numel": "products of sizes", "sym_stride.int": "products of sizes"}


def targets(path):
    """The operators that a package names."""
    with zipfile.ZipFile(path) as archive:
        texts = [archive.read(name) for name in archive.namelist() if "/models/" in name and name.endswith(".json")]
    return {target.decode() for text in texts for target in re.findall(rb'"target": *"torch\.ops\.aten\.([^"]+)"', text)}


def absent_operators(seen):
    """Operators of core ATen, which core_operators.txt lists, that are not among the targets."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "core_operators.txt")) as file:
        core = file.read().split()
    return {name for name in core if (name if "." in name else name + ".default") not in seen}


def check(folder, package=None):
    """Why a program fails; None where it does not. `package` is a file in place of the recorded one."""
    content = torch.load(os.path.join(folder, "io.pt"))
    extra = {name: "" for name in content.get("extra", {})}
    module = wick.jit.load(package or os.path.join(folder, "module.pt2"), _extra_files=extra)
    for name, text in content.get("extra", {}).items():
        if extra[name] != text and extra[name] != text.encode():
            return f"the extra file {name} is {extra[name]!r}"
    for i, call in enumerate(content["calls"]):
        function = getattr(module, call.get("method", "forward"))
        try:
            result = function(*call["args"], **call["kwargs"])
        except Exception as error:
            if "raises" in call:
                continue
            raise
        if "raises" in call:
            return f"call {i} raises nothing, but PyTorch: {call['raises']}"
        why = difference(result, call["expected"], content["tolerance"])
        if why:
            return f"call {i}: {why}"
    state = module.state_dict()
    for name, value in content["after"].items():
        why = "is not there" if name not in state else difference(state[name], value, content["tolerance"], name)
        if why:
            return f"after the calls: {why}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("kit", nargs="?", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "kit.tar.xz"))
    parser.add_argument("--match", default="")
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    counts = collections.Counter()
    refused = collections.Counter()
    seen = set()
    with tempfile.TemporaryDirectory() as folder, tarfile.open(options.kit) as kit:
        kit.extractall(folder)
        for name in sorted(os.listdir(folder)):
            if options.match not in name or name in OLDER:
                continue
            seen |= targets(os.path.join(folder, name, "module.pt2"))
            try:
                why = check(os.path.join(folder, name))
                verdict = "failed" if why else "passed"
            except Exception as error:
                why = str(error)
                reason = next((part for part in REFUSED if part in why), None)
                verdict = "refused" if reason else "failed"
                refused[reason] += 1 if reason else 0
            counts[verdict] += 1
            if verdict == "failed" and counts["failed"] <= options.show:
                print(f"{name}: {' '.join(why.split())[:300]}", flush=True)
    for reason, count in REFUSED.items():
        if not options.match and refused[reason] != count:
            print(f"{refused[reason]} programs are refused for '{reason}', and the list says {count}")
            counts["failed"] += 1
    if not options.match and absent_operators(seen) != set(ABSENT):
        print(f"the kit has no program with {sorted(absent_operators(seen))}, and the list says {sorted(ABSENT)}")
        counts["failed"] += 1
    print(f"{counts['passed']} passed, {counts['refused']} refused, {counts['failed']} failed")
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
