// Calls that are repeated as CUDA graphs.
//
// A call that only computes results from its arguments queues the same work each time when its
// arguments have the same dtypes, sizes, strides and numbers. The third such call is captured: what
// it queues goes into a graph, which later calls launch as a whole, without running the program.
//
//   call 1, 2     run by the interpreter; kernels are compiled, libraries choose their ways
//   call 3        captured on a stream of its own, then launched
//   call 4, …     launched; results are copied out of the graph's memory
//
// The graph reads the arguments where they lay when it was captured. When a call comes whose tensors
// lie elsewhere, it is captured once more, with copies of its own that later calls fill first. What
// lies between is memory of the capture's stream, which all graphs of a stream share, because they
// run one behind the other there. Steps of a training (training/repeated_step.h) read their gradients
// where the graph left them, without copies.
//
// What a call finds besides its arguments (GroupBackend::Call::state), the tensors of a module for
// example, the graph reads and writes where it lies; with other values, or tensors elsewhere, it is
// another call.
//
// Not repeated: what waits for the device, copies from or to the CPU, draws random numbers, writes to
// its arguments or changes more of what it finds than elements of tensors; graphs of a launch or two,
// and results of more bytes than copying them is worth.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/fusion/group_backend.h"

namespace wick::cuda {

class CudaDevice;

// As GroupBackend::repeat(). Thread-safe; while one thread is in here for a device, others run their
// calls there.
// Always nothing with the environment variable WICK_CUDA_GRAPHS=off.
std::optional<IValue> repeatCall(const GroupBackend::Call& call);

// Forgets all graphs of the device, which was entered, so that their memory can be given back. False when
// there were none, or another thread uses them. Waits for the device.
bool dropCallGraphs(CudaDevice& device);

// Of all devices.
struct CallGraphStatistics {
  uint64_t captured = 0;
  uint64_t launched = 0;
  uint64_t refused = 0;  // calls that were captured in vain
};
CallGraphStatistics callGraphStatistics();

}  // namespace wick::cuda
