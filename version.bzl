# For the names of shared libraries and packages. core/version.cpp checks that core/version.h agrees.
WICK_VERSION = "0.1.0"

# Libraries of one such name can stand for each other. Without the patch, while the first number is 0.
WICK_SONAME_VERSION = "0.1"
