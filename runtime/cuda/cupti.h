// CUPTI, the toolkit's library that notes what devices do, as far as the engine uses it. The
// declarations are the engine's own (cupti_activity.h); of records that grow with each version only
// the beginning is declared, which all since version 9 of the toolkit share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cuda/driver.h"

namespace wick::cuda {

namespace cupti {

// Kinds of records.
inline constexpr uint32_t kCopy = 1;
inline constexpr uint32_t kFill = 2;
inline constexpr uint32_t kDriverCall = 4;
inline constexpr uint32_t kRuntimeCall = 5;
inline constexpr uint32_t kKernel = 10;  // of devices that run several at once

// Times are nanoseconds of the library's clock.
struct KernelRecord {
  uint32_t kind;
  uint8_t cache;
  uint8_t shared;
  uint16_t registers;
  uint32_t cache_requested, cache_executed;
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total;
  uint32_t correlation;
  int64_t grid_number;
  const char* name;
};
struct CopyRecord {
  uint32_t kind;
  uint8_t copy_kind;  // 1: to the device, 2: from it, 8: on it, 10: to another device
  uint8_t from, to, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t correlation;
};
struct FillRecord {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t correlation;
};
// A call that the CPU made.
struct CallRecord {
  uint32_t kind;
  uint32_t function;
  uint64_t start, end;
  uint32_t process;
  uint32_t thread;  // the lower bits of pthread_self()
  uint32_t correlation;
  uint32_t result;
};

using BufferAsked = void (*)(uint8_t** buffer, size_t* size, size_t* most_records);
using BufferFilled = void (*)(Context context, uint32_t stream, uint8_t* buffer, size_t size,
                              size_t valid_size);

}  // namespace cupti

// _(member, name in the library, parameters)
#define WICK_FORALL_CUPTI_FUNCTIONS(_)                                                             \
  _(timestamp, "cuptiGetTimestamp", (uint64_t * nanoseconds))                                      \
  _(enable, "cuptiActivityEnable", (uint32_t kind))                                                \
  _(disable, "cuptiActivityDisable", (uint32_t kind))                                              \
  _(registerCallbacks, "cuptiActivityRegisterCallbacks",                                           \
    (cupti::BufferAsked asked, cupti::BufferFilled filled))                                        \
  _(flush, "cuptiActivityFlushAll", (uint32_t flag))                                               \
  _(nextRecord, "cuptiActivityGetNextRecord", (uint8_t * buffer, size_t size, uint32_t * *record)) \
  _(resultText, "cuptiGetResultString", (Result result, const char** text))

struct Cupti {
  WICK_FORALL_CUPTI_FUNCTIONS(WICK_FUNCTION_FIELD)
};

// Opened at the first call. Throws RuntimeError, at each call, when it is absent. Thread-safe.
const Cupti& cuptiLibrary();
// Takes the library's place, for tests; null gives it back. Nothing may be recording.
void setCupti(const Cupti* functions);

}  // namespace wick::cuda
