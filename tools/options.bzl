"""Options of compilation that several rooms share."""

# For rooms without loops that are worth more: half the size. GCC 12 is wrong about memory then: it
# inlines one of a pair of functions that allocate and free, and misses the other.
SMALL = [
    "-Os",
    "-Wno-mismatched-new-delete",
]
