// Lazy tensors: those of the device "lazy" stand for computations that have not run. A call of an
// operator on them appends to the graph of the calling thread; the graph is compiled and run when a
// value is looked at, or at a step's end. docs/lazy.md tells how.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/source_range.h"

#pragma GCC visibility push(default)

namespace wick::lazy {

// Where the data of lazy tensors are and graphs run: the CPU at first, or a CUDA device. Of the whole
// process, and to be called before there are lazy tensors: RuntimeError when one has its data elsewhere,
// or when there is no such device.
void setDevice(Device device);
Device device();

// Computes all tensors of the calling thread that are not yet. Throws what a run throws, with the
// place of the call that was recorded; what does not depend on that call is computed all the same.
void markStep();

struct Counters {
  uint64_t recorded = 0;     // calls that became steps of a graph
  uint64_t evaluations = 0;  // graphs that ran
  uint64_t compiled = 0;     // of these, graphs that nobody had run before
  uint64_t found = 0;        // those that the cache held
  uint64_t followed = 0;     // and those of frozen steps
  uint64_t rolled = 0;       // repetitions in graphs that ran as loops
  struct Count {
    std::string what;
    uint64_t times;
  };
  std::vector<Count> causes;     // why graphs ran: what asked for a value; sorted by name
  std::vector<Count> immediate;  // operators that ran at once because they cannot be recorded
};
// Of all threads, since the process began or the last reset.
Counters counters();
void resetCounters();

// Promises that the steps of the calling thread, from here to thawStep(), are all the same
// computation: the same calls with the same constants; data, sizes and learning rates may differ. To
// be called between steps. The next step is recorded as ever, those behind it are only compared with
// it. The first call that differs throws RuntimeError, and ends it: nothing is lost, the call
// may be made again. Computes what is not yet.
void freezeStep();
void thawStep();

// Whether repetitions in steps become loops, as at first; docs/lazy.md. Of the whole process.
void setRolling(bool on);

// The same for people: why graphs ran, and which operators ran at once, with the lines that asked.
std::string report();

// What was recorded on the calling thread and has not run, as text; for people.
std::string dump();
// What of it live tensors need, as text for Graphviz.
std::string dumpDot();

// Where the calling thread's program stands, for records that follow; errors name it. Calls of
// scripts know their places themselves.
void setPlace(SourceRange place);
// Whether the process ever had a lazy tensor.
bool inUse();
// Whether setPlace() would be of use now.
bool wantsPlaces();

// Graphs that the cache keeps; the one that was not used for longest is dropped. UsageError for 0.
void setCacheSize(size_t graphs);

}  // namespace wick::lazy

#pragma GCC visibility pop
