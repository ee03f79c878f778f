// Work on a stream beside the thread's own: what scripts fork (GroupBackend::SideWork).
//
// Each stream has a few others beside it, which wait for nobody but where it is said. In a capture they
// become branches of the graph.
#pragma once

#include <memory>

#include "runtime/cuda/device.h"
#include "runtime/fusion/group_backend.h"

namespace wick::cuda {

// Null within such work.
std::unique_ptr<GroupBackend::SideWork> beginSideWork(Device device);
bool isInSideWork();

// One of the streams beside another. Thread-safe.
Stream streamBeside(CudaDevice& device, Stream stream);
// A point in what was queued on the stream; the caller destroys it.
Event recordOn(Stream stream);
// Lets what is queued on `later` from now on wait for what is queued on `earlier` so far.
void order(Stream earlier, Stream later);

// The memory of streams beside one that captures stays as that of the stream itself does
// (Allocator::pin); until this is called.
void unpinBeside(CudaDevice& device, Stream stream);

}  // namespace wick::cuda
