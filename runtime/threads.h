// How many threads the engine uses.
#pragma once

#include <cstddef>

#pragma GCC visibility push(default)

namespace wick {

// Threads within one operator (matrix products, convolutions, large pointwise loops): 1 to 1024.
// Holds for every run that begins afterwards, on whatever thread. Until it is called, there are as
// many as the process may use processors (core/processors.h), or as OMP_NUM_THREADS says. Fewer are
// used while other processes take the processors (core/parallel.h). Thread-safe.
void setNumThreads(int n);
int numThreads();
// Brings the calling thread in line with setNumThreads; cheap when it already is.
void applyNumThreads();

// Threads that run forked script functions. Must be called before the first fork: UsageError
// afterwards.
void setNumForkThreads(size_t n);
size_t numForkThreads();

}  // namespace wick

#pragma GCC visibility pop
