"""Options of compilation that several rooms share.

GCC compiles a file with the options of optimization of its precompiled header and ignores the file's own. So the header is
compiled once for each set of options (//precompiled), and GCC picks the form whose macros are the file's: -Os defines a
macro, and each other set defines WICK_OPTIMIZED, also in .bazelrc. A file whose value no form has reads the header as text.
"""

# For rooms without loops that are worth more: half the size. GCC 12 is wrong about memory then: it
# inlines one of a pair of functions that allocate and free, and misses the other.
SMALL = [
    "-Os",
    "-Wno-mismatched-new-delete",
]

# GCC inlines little more in a file of more than 10,000 instructions. With this, joined sources (//precompiled) get as much
# as each alone. The library grows by it, so it is for code that every call of an operator runs.
INLINED = "--param=large-unit-insns=80000"

# For loops over elements.
LOOPS = [
    "-O3",
    "-DWICK_OPTIMIZED=loops",
]

# For loops that hold comparisons, which stay scalar as long as the compiler must suppose that somebody reads the
# processor's floating-point flags.
COMPARING_LOOPS = [
    "-O3",
    "-fno-trapping-math",
    "-Wno-mismatched-new-delete",
    "-DWICK_OPTIMIZED=comparing_loops",
]

# For an interpreter's loop: jumps that are written apart stay apart.
JUMPS = [
    "-fno-crossjumping",
    INLINED,
    "-DWICK_OPTIMIZED=jumps",
]

# For tests, which run once: less optimizing is quicker on the whole (.bazelrc says so of each).
TESTS = [
    "-O1",
    "-DWICK_OPTIMIZED=tests",
]
