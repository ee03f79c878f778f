// The CUDA driver, as far as the engine uses it. The declarations are the engine's own, so that it is
// built the same everywhere; the library is opened when a device is first asked for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cuda/library.h"

namespace wick::cuda {

using Result = int;  // 0 is success
using DeviceNumber = int;
using Address = uint64_t;  // of a device's memory
struct ContextObject;
struct StreamObject;
struct EventObject;
struct ModuleObject;
struct FunctionObject;
struct GraphObject;
struct GraphExecutableObject;
using Context = ContextObject*;
using Stream = StreamObject*;  // null: the one that all threads share
using Event = EventObject*;
using Module = ModuleObject*;
using Function = FunctionObject*;
using Graph = GraphObject*;
using GraphExecutable = GraphExecutableObject*;

inline constexpr Result kOutOfMemory = 2;
inline constexpr Result kNotReady = 600;

// Calls that could disturb a capture are allowed: the engine refuses those that would.
inline constexpr int kRelaxedCapture = 2;

// Attributes of devices.
inline constexpr int kMaxSharedPerBlock = 97;
inline constexpr int kMultiprocessors = 16;
inline constexpr int kThreadsPerMultiprocessor = 39;
inline constexpr int kMajor = 75;
inline constexpr int kMinor = 76;

// _(member, name in the library, parameters)
#define WICK_FORALL_DRIVER_FUNCTIONS(_)                                                            \
  _(init, "cuInit", (unsigned flags))                                                              \
  _(driverVersion, "cuDriverGetVersion", (int* version))                                           \
  _(deviceCount, "cuDeviceGetCount", (int* count))                                                 \
  _(deviceName, "cuDeviceGetName", (char* name, int length, DeviceNumber device))                  \
  _(deviceAttribute, "cuDeviceGetAttribute", (int* value, int attribute, DeviceNumber device))     \
  _(deviceMemory, "cuDeviceTotalMem_v2", (size_t * bytes, DeviceNumber device))                    \
  _(retainContext, "cuDevicePrimaryCtxRetain", (Context * context, DeviceNumber device))           \
  _(setContext, "cuCtxSetCurrent", (Context context))                                              \
  _(synchronizeContext, "cuCtxSynchronize", ())                                                    \
  _(allowPeer, "cuCtxEnablePeerAccess", (Context other, unsigned flags))                           \
  _(allocate, "cuMemAlloc_v2", (Address * address, size_t bytes))                                  \
  _(free, "cuMemFree_v2", (Address address))                                                       \
  _(allocateHost, "cuMemHostAlloc", (void** memory, size_t bytes, unsigned flags))                 \
  _(freeHost, "cuMemFreeHost", (void* memory))                                                     \
  _(copyToDevice, "cuMemcpyHtoDAsync_v2",                                                          \
    (Address to, const void* from, size_t bytes, Stream stream))                                   \
  _(copyToHost, "cuMemcpyDtoHAsync_v2", (void* to, Address from, size_t bytes, Stream stream))     \
  _(copyOnDevice, "cuMemcpyDtoDAsync_v2", (Address to, Address from, size_t bytes, Stream stream)) \
  _(copyToPeer, "cuMemcpyPeerAsync",                                                               \
    (Address to, Context to_context, Address from, Context from_context, size_t bytes,             \
     Stream stream))                                                                               \
  _(setBytes, "cuMemsetD8Async", (Address to, unsigned char value, size_t bytes, Stream stream))   \
  _(createStream, "cuStreamCreate", (Stream * stream, unsigned flags))                             \
  _(createStreamWithPriority, "cuStreamCreateWithPriority",                                        \
    (Stream * stream, unsigned flags, int priority))                                               \
  _(destroyStream, "cuStreamDestroy_v2", (Stream stream))                                          \
  _(synchronizeStream, "cuStreamSynchronize", (Stream stream))                                     \
  _(queryStream, "cuStreamQuery", (Stream stream))                                                 \
  _(waitForEvent, "cuStreamWaitEvent", (Stream stream, Event event, unsigned flags))               \
  _(createEvent, "cuEventCreate", (Event * event, unsigned flags))                                 \
  _(destroyEvent, "cuEventDestroy_v2", (Event event))                                              \
  _(recordEvent, "cuEventRecord", (Event event, Stream stream))                                    \
  _(queryEvent, "cuEventQuery", (Event event))                                                     \
  _(synchronizeEvent, "cuEventSynchronize", (Event event))                                         \
  _(elapsedTime, "cuEventElapsedTime", (float* milliseconds, Event begin, Event end))              \
  _(loadModule, "cuModuleLoadData", (Module * module, const void* image))                          \
  _(findFunction, "cuModuleGetFunction", (Function * function, Module module, const char* name))   \
  _(launch, "cuLaunchKernel",                                                                      \
    (Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,       \
     unsigned block_y, unsigned block_z, unsigned shared, Stream stream, void** parameters,        \
     void** extra))                                                                                \
  _(beginCapture, "cuStreamBeginCapture_v2", (Stream stream, int mode))                            \
  _(endCapture, "cuStreamEndCapture", (Stream stream, Graph * graph))                              \
  _(graphNodes, "cuGraphGetNodes", (Graph graph, void** nodes, size_t* count))                     \
  _(destroyGraph, "cuGraphDestroy", (Graph graph))                                                 \
  _(instantiateGraph, "cuGraphInstantiateWithFlags",                                               \
    (GraphExecutable * executable, Graph graph, unsigned long long flags))                         \
  _(launchGraph, "cuGraphLaunch", (GraphExecutable executable, Stream stream))                     \
  _(destroyGraphExecutable, "cuGraphExecDestroy", (GraphExecutable executable))                    \
  _(errorName, "cuGetErrorName", (Result result, const char** name))                               \
  _(errorText, "cuGetErrorString", (Result result, const char** text))

struct Driver {
  WICK_FORALL_DRIVER_FUNCTIONS(WICK_FUNCTION_FIELD)
};

// Opened and initialized at the first call. Throws RuntimeError, at each call, when the driver is
// absent, old or broken. Thread-safe.
const Driver& driver();
// Takes the driver's place, for tests; null gives it back. No device may be in use.
void setDriver(const Driver* driver);
// How often setDriver() was called.
uint64_t driverGeneration();

// Throws RuntimeError that names what was done and the driver's error, unless it was a success.
void check(Result result, const char* what);
// "out of memory (CUDA_ERROR_OUT_OF_MEMORY)".
const char* describeError(Result result, char* buffer, size_t size);

}  // namespace wick::cuda
