"""Options of compilation that several rooms share.

GCC compiles a file with the options of optimization of its precompiled header, whatever the file's own say. So there is
a header for each of these (//precompiled), and GCC finds it by its macros. -Os has one of its own; a file with other
options defines WICK_OPTIMIZED, also in .bazelrc. Where no header has its value, GCC reads the text.
"""

# For rooms without loops that are worth more: half the size. GCC 12 is wrong about memory then: it
# inlines one of a pair of functions that allocate and free, and misses the other.
SMALL = [
    "-Os",
    "-Wno-mismatched-new-delete",
]

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

# For tests, which run once: less optimizing is quicker on the whole (.bazelrc says so of each).
TESTS = [
    "-O1",
    "-DWICK_OPTIMIZED=tests",
]
