"""Programs of libFuzzer, which need clang (--config=fuzz, docs/security.md)."""

def libfuzzer_target(name, header, target, deps):
    """A program that gives libFuzzer's inputs to `target`, a function of `header`."""
    native.cc_binary(
        name = name,
        testonly = True,
        srcs = ["libfuzzer_main.cpp"],
        local_defines = [
            "WICK_FUZZ_HEADER=\\\"tests/fuzz/%s\\\"" % header,
            "WICK_FUZZ_TARGET=%s" % target,
        ],
        linkopts = ["-fsanitize=fuzzer"],
        tags = ["manual"],
        deps = [":targets"] + deps,
    )
