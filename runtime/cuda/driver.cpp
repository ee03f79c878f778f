#include "runtime/cuda/driver.h"

#include <atomic>
#include <cstdio>

#include "core/error.h"
#include "runtime/cuda/library.h"

namespace wick::cuda {

namespace {

constexpr const char* kNames[] = {"libcuda.so.1", "libcuda.so"};
constexpr int kOldest = 12000;  // 12.0: what newer kernels' large parameters need

std::atomic<const Driver*> replacement{nullptr};
std::atomic<uint64_t> generation{0};

void findAll(const Library& library, Driver& functions) {
  WICK_FORALL_DRIVER_FUNCTIONS(WICK_FIND_FUNCTION)
  int version = 0;
  const Result found = functions.driverVersion(&version);
  WICK_CHECK(found == 0 && version >= kOldest,
             "CUDA: the driver is for version {}.{} and {}.{} is needed", version / 1000,
             version % 1000 / 10, kOldest / 1000, kOldest % 1000 / 10);
  const Result result = functions.init(0);
  const char* text = nullptr;
  if (result != 0) functions.errorText(result, &text);
  WICK_CHECK(result == 0, "CUDA: the driver cannot be initialized: {} (error {})",
             text ? text : "unknown error", result);
}

}  // namespace

const Driver& driver() {
  if (const Driver* fake = replacement.load(std::memory_order_acquire)) return *fake;
  // Never destroyed: storages may be freed while the process ends.
  static const auto& found = *new LibraryFunctions<Driver>(kNames, findAll);
  return found.get();
}

void setDriver(const Driver* driver) {
  replacement.store(driver, std::memory_order_release);
  generation.fetch_add(1);
}
uint64_t driverGeneration() {
  return generation.load(std::memory_order_acquire);
}

const char* describeError(Result result, char* buffer, size_t size) {
  const char* name = nullptr;
  const char* text = nullptr;
  driver().errorName(result, &name);
  driver().errorText(result, &text);
  std::snprintf(buffer, size, "%s (%s)", text ? text : "unknown error", name ? name : "no name");
  return buffer;
}

void check(Result result, const char* what) {
  if (result == 0) [[likely]]
    return;
  char buffer[256];
  throwRuntimeError("CUDA: {}: {}", what, describeError(result, buffer, sizeof buffer));
}

}  // namespace wick::cuda
