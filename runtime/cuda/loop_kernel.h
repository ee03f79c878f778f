// Kernels of the loop IR on CUDA devices: how a call is laid out over threads, the text for that, its
// machine code, the launch.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "codegen/cuda/kernel_text.h"
#include "runtime/cuda/device.h"
#include "runtime/fusion/group_backend.h"

namespace wick::cuda {

// Addresses from the first to before the last.
struct MemoryRange {
  intptr_t first, last;
};
// Whether any of the one and any of the other share bytes.
bool overlap(std::span<const MemoryRange> a, std::span<const MemoryRange> b);

// The layout for a walk; `touches` have the addresses.
codegen::CudaLayout chooseLayout(const loop::Kernel& kernel, const Walk& walk,
                                 std::span<const Touch> touches, int multiprocessors);

// A call of a kernel but for its code: the layout, and what a launch is given.
struct LaunchShape {
  codegen::CudaLayout layout;
  unsigned grid = 0;
  unsigned block = 0;
  // Those of the flag, where the kernel has checks, are zero.
  std::vector<int64_t> words;
};
// Nothing when there are no points.
std::optional<LaunchShape> shapeOf(const loop::Kernel& kernel, const Walk& walk,
                                   std::span<const Touch> touches, std::span<const int64_t> numbers,
                                   int multiprocessors);

// One kernel on all devices. Thread-safe.
class LoopKernel : public GroupBackend::Code {
 public:
  // Refers to the kernel.
  LoopKernel(std::string name, const loop::Kernel& kernel);

  // A launch that lacks nothing but to be queued.
  struct Ready {
    Function function = nullptr;  // null: there are no points
    unsigned grid = 0;
    unsigned block = 0;
    std::vector<int64_t> words;
    // Where launches are joined (runtime/cuda/joint_launches.h): what it reads and writes at most,
    // and its layout. Without ranges nothing is known.
    std::vector<MemoryRange> reads, writes;
    codegen::CudaLayout layout;
  };
  // Throws loop::Unsupported when the kernel cannot be compiled for this walk.
  Ready prepare(CudaDevice& device, const Walk& walk, std::span<const Touch> touches,
                std::span<const int64_t> numbers);
  // Launches it, or keeps it for a joint launch.
  void queue(Ready& ready);

  const std::string& name() const { return name_; }
  const loop::Kernel& kernel() const { return kernel_; }

 private:
  struct Found {
    Function function = nullptr;
    int64_t complaint = 0;  // the device's number for what checks find
  };
  using Place = std::pair<uint64_t, int>;  // the driver's generation, the device
  struct Compiled {
    codegen::CudaLayout layout;
    Place place;
    Found found;
    std::string error;  // where there is no function
  };
  Found functionFor(CudaDevice& device, const codegen::CudaLayout& layout);

  const std::string name_;
  const loop::Kernel& kernel_;
  std::mutex mutex_;
  std::vector<Compiled> compiled_;
};

// While it lives, what was said of the calling thread's kernels that cannot be compiled: the first.
class CompileFailures {
 public:
  CompileFailures();
  ~CompileFailures();
  CompileFailures(const CompileFailures&) = delete;
  CompileFailures& operator=(const CompileFailures&) = delete;
  // Empty when all could be.
  const std::string& first() const { return first_; }
  static void note(const std::string& error);

 private:
  std::string first_;
  CompileFailures* const outer_;
};

// The function of a text, compiled when the device has not seen it yet. Kept as long as the process.
// Throws RuntimeError. Thread-safe.
Function functionOf(CudaDevice& device, const std::string& text, const std::string& name);
// The same when it is there already; null when not.
Function knownFunction(CudaDevice& device, const std::string& text, const std::string& name);
// Queues a kernel whose only parameter is `parameters`.
void launch(Function function, unsigned grid, unsigned block, void* parameters, const char* name);
void launch(Function function, unsigned grid, unsigned block, void* parameters, const char* name,
            Stream stream);

}  // namespace wick::cuda
