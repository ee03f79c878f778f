#!/usr/bin/env python3
"""Tells whether the PyTorch that runs this (2.8 or later) reads programs that Wick has written, and computes the same.

usage: check_written.py FOLDER

FOLDER holds NAME.pt2 and, beside each, NAME.io.pt: a dict with "args" and "expected", or a list of such dicts.
"""
import glob
import os
import sys
import warnings

import torch

warnings.simplefilter("ignore")


def close(got, want):
    if isinstance(want, torch.Tensor):
        if got.shape != want.shape or got.dtype != want.dtype:
            return False
        bound = 1e-3 * want.double().abs().max() + 1e-5 if want.numel() else 0
        return bool(((got.double() - want.double()).abs() <= bound).all())
    if isinstance(want, (list, tuple)):
        return len(got) == len(want) and all(close(g, w) for g, w in zip(got, want))
    if isinstance(want, dict):
        return list(got) == list(want) and all(close(got[key], want[key]) for key in want)
    return got == want


def main():
    files = sorted(glob.glob(os.path.join(sys.argv[1], "*.pt2")))
    good = 0
    for file in files:
        name = os.path.basename(file)[:-4]
        try:
            calls = torch.load(file[:-4] + ".io.pt", weights_only=False)
            module = torch.export.load(file).module()
            wrong = [i for i, call in enumerate(calls if isinstance(calls, list) else [calls]) if not close(module(*call["args"]), call["expected"])]
            if wrong:
                print(f"{name}: call {wrong[0]} gives other numbers")
            good += not wrong
        except Exception as error:
            print(f"{name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    print(f"{good} of {len(files)} agree")
    sys.exit(0 if good == len(files) else 1)


main()
