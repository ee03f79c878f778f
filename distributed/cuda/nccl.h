// NCCL by its symbols, so that building needs nothing of it. Each process has one GPU: its current
// device when the first tensor there is reduced.
#pragma once

#include <cstddef>

#include "runtime/cuda/driver.h"

namespace wick::distributed {

// As nccl.h has them: handles are addresses, results and kinds are ints.
struct NcclId {
  char bytes[128];
};
struct NcclFunctions {
  int (*get_id)(NcclId* id) = nullptr;
  int (*init_rank)(void** communicator, int size, NcclId id, int rank) = nullptr;
  int (*all_reduce)(const void* from, void* to, size_t count, int dtype, int op, void* communicator,
                    cuda::Stream stream) = nullptr;
  int (*async_error)(void* communicator, int* result) = nullptr;
  int (*destroy)(void* communicator) = nullptr;
  const char* (*error_text)(int result) = nullptr;
};

// Takes the library's place; null gives it back. For tests, before anything is reduced.
void setNcclFunctions(const NcclFunctions* functions);

}  // namespace wick::distributed
