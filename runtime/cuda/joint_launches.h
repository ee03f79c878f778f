// Small kernels that do not depend on each other, in one launch.
//
// The updates of a training, for example, are the same few kernels for each parameter. One small kernel
// takes some two microseconds, however little it does. While a call is captured (runtime/cuda/call_graphs.h),
// kernels of the loop IR are kept for a while instead of queued; what is the same kernel over other
// memory becomes one launch of its joint form (codegen/cuda/kernel_text.h). A kernel goes before others
// only if none of these writes what it reads or writes, or reads what it writes. Whatever else is queued
// asks for the stream, and so ends the waiting (currentStream()).
//
// Only for captures: memory of these is given back to nobody while they live, no other thread waits
// for what is queued, and what the search costs is paid once.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/cuda/loop_kernel.h"

namespace wick::cuda {

// Of the calling thread while it lives. There is one at a time.
class JointLaunches {
 public:
  JointLaunches();
  // Forgets what still waits.
  ~JointLaunches();
  JointLaunches(const JointLaunches&) = delete;
  JointLaunches& operator=(const JointLaunches&) = delete;
  // Null where nothing is joined.
  static JointLaunches* current();

  void add(const LoopKernel& kernel, LoopKernel::Ready ready);
  // Queues all that waits.
  void flush();
  // Memory that a kernel which waits may use, and that would be given to another meanwhile, so that one
  // had to follow the other: it is freed when nothing waits any more. False when nothing waits.
  bool keep(Device device, void* memory, size_t bytes);
  // Compiles the joint forms that were missed, so that the next capture finds them; not to be called
  // while the thread captures. False when none was missed, or none can be compiled.
  bool compileMissing(CudaDevice& device);

 private:
  struct Waiting {
    const LoopKernel* kernel;
    LoopKernel::Ready ready;
  };
  // The same kernel over other memory; a large one stands alone.
  struct Group {
    bool large;
    std::vector<Waiting> members;
  };
  struct Missing {
    std::string name, text;
  };
  struct Kept {
    Device device;
    void* memory;
    size_t bytes;
  };
  void freeKept() noexcept;
  static bool mustFollow(const Group& group, const LoopKernel::Ready& later);
  void launchGroup(Group& group);
  bool launchTogether(std::vector<Waiting>& members);

  std::vector<Group> groups_;
  std::vector<Missing> missing_;
  size_t waiting_ = 0;
  std::vector<Kept> kept_;
  size_t kept_bytes_ = 0;
};

}  // namespace wick::cuda
