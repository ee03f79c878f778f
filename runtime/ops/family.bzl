"""Families of operators that stand apart from //runtime/ops."""

load("//precompiled:precompiled.bzl", "cc_library")
load("//tools:options.bzl", "LOOPS")

def operator_family(name, copts = LOOPS, deps = []):
    """All C++ of a folder. Each file adds its tables when the program starts."""
    cc_library(
        name = name,
        srcs = native.glob(["*.cpp"]),
        hdrs = native.glob(["*.h"]),
        copts = copts,
        visibility = [
            "//aot:__pkg__",
            "//autograd:__subpackages__",
            "//runtime:__subpackages__",
            "//tests:__subpackages__",
        ],
        deps = [
            "//core",
            "//ir",
            "//runtime/ops",
            "@system//:fmt",
        ] + deps,
        alwayslink = 1,
    )
