/* What the two sources of models for CUDA share. */
#ifndef WICK_AOT_CUDA_INSIDE_H
#define WICK_AOT_CUDA_INSIDE_H

#include "wick_aot_cuda.h"

typedef uint64_t wick_cuda_address;

/* The driver's functions, by its own names and types. */
#define WICK_CUDA_DRIVER(_)                                                                       \
  _(cuInit, (unsigned))                                                                           \
  _(cuDriverGetVersion, (int*))                                                                   \
  _(cuDeviceGetCount, (int*))                                                                     \
  _(cuDeviceGetName, (char*, int, int))                                                           \
  _(cuDeviceGetAttribute, (int*, int, int))                                                       \
  _(cuDevicePrimaryCtxRetain, (void**, int))                                                      \
  _(cuDevicePrimaryCtxRelease_v2, (int))                                                          \
  _(cuCtxGetCurrent, (void**))                                                                    \
  _(cuCtxSetCurrent, (void*))                                                                     \
  _(cuCtxGetDevice, (int*))                                                                       \
  _(cuCtxSynchronize, (void))                                                                     \
  _(cuMemAlloc_v2, (wick_cuda_address*, size_t))                                                  \
  _(cuMemFree_v2, (wick_cuda_address))                                                            \
  _(cuMemHostAlloc, (void**, size_t, unsigned))                                                   \
  _(cuMemFreeHost, (void*))                                                                       \
  _(cuMemcpyHtoDAsync_v2, (wick_cuda_address, const void*, size_t, void*))                        \
  _(cuMemcpyDtoHAsync_v2, (void*, wick_cuda_address, size_t, void*))                              \
  _(cuMemcpyDtoDAsync_v2, (wick_cuda_address, wick_cuda_address, size_t, void*))                  \
  _(cuMemsetD8Async, (wick_cuda_address, unsigned char, size_t, void*))                           \
  _(cuMemsetD32Async, (wick_cuda_address, unsigned, size_t, void*))                               \
  _(cuPointerGetAttributes, (unsigned, int*, void**, wick_cuda_address))                          \
  _(cuStreamCreate, (void**, unsigned))                                                           \
  _(cuStreamDestroy_v2, (void*))                                                                  \
  _(cuStreamSynchronize, (void*))                                                                 \
  _(cuStreamIsCapturing, (void*, int*))                                                           \
  _(cuStreamBeginCapture_v2, (void*, int))                                                        \
  _(cuStreamEndCapture, (void*, void**))                                                          \
  _(cuGraphDestroy, (void*))                                                                      \
  _(cuGraphInstantiateWithFlags, (void**, void*, unsigned long long))                             \
  _(cuGraphLaunch, (void*, void*))                                                                \
  _(cuGraphExecDestroy, (void*))                                                                  \
  _(cuModuleLoadData, (void**, const void*))                                                      \
  _(cuModuleUnload, (void*))                                                                      \
  _(cuModuleGetFunction, (void**, void*, const char*))                                            \
  _(cuLaunchKernel, (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                     void*, void**, void**))                                                      \
  _(cuGetErrorName, (int, const char**))                                                          \
  _(cuGetErrorString, (int, const char**))

#define WICK_CUDA_MEMBER(name, parameters) int(*name) parameters;
typedef struct wick_cuda_driver {
  WICK_CUDA_DRIVER(WICK_CUDA_MEMBER)
} wick_cuda_driver;

/* Prepared primitives, by description. */
struct wick_cuda_prepared;

/* What a state of the runtime has behind `library`. */
typedef struct wick_cuda_state {
  const wick_cuda_driver* driver;
  struct wick_cuda_shared* shared;
  void* context;
  int device;
  void* own; /* streams: of the state, of captures, of the call that runs */
  void* capture;
  void* given;
  void* stream;
  wick_cuda_address memory; /* what calls compute, then copies of tensors of the host */
  uint64_t staging;         /* where those begin */
  wick_cuda_address workspace;
  size_t workspace_bytes;
  int workspace_is_captured;     /* whether graphs of the caller have its address */
  wick_cuda_address* workspaces; /* earlier ones that they have */
  size_t num_workspaces;
  int64_t* flag; /* in the host's memory, which kernels see */
  wick_aot_tensor* tensors;
  struct wick_cuda_graph* graphs;
  uint32_t next_graph;
  int no_graphs;
  int capturing;
  int captured; /* by the caller: the call that runs */
  /* of wick_aot_cuda_libraries.c */
  struct wick_cuda_prepared* prepared;
  struct wick_cuda_prepared** by_index;
  void* multiplier; /* handles of cuBLASLt and cuDNN */
  void* convolver;
} wick_cuda_state;

/* Notes an error, with its arguments as printf has them. */
int wick_cuda_fail(wick_aot_state* state, int code, const char* format, ...)
    __attribute__((format(printf, 3, 4)));
/* WICK_AOT_OK for a success of the driver; otherwise notes what was done and the driver's error. */
int wick_cuda_check(wick_aot_state* state, int result, const char* what);
/* Opens one of the libraries, which ends with null; null and an error when there is none. */
void* wick_cuda_open(wick_aot_state* state, const char* const* names);
/* Gives the workspace at least that size. A workspace whose address graphs of the caller have is kept until the state is
   freed. An error while the caller captures. */
int wick_cuda_reserve(wick_aot_state* state, size_t bytes);

int wick_cuda_open_libraries(wick_aot_state* state);
/* Prepares all primitives that have descriptions. */
int wick_cuda_prepare(wick_aot_state* state);
void wick_cuda_close_libraries(wick_aot_state* state);

#endif
