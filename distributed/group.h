// The processes that compute together, as this process sees them.
//
// A thread of the group talks with the others, in the order in which it was asked, while the
// program computes. All processes must ask for the same things in the same order.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "core/tensor.h"
#include "distributed/device_reducer.h"
#include "distributed/transport.h"

#pragma GCC visibility push(default)

namespace wick::distributed {

// Thread-safe. Waiting functions look at the calling thread's limits and interrupts (core/budget.h),
// and may be called again when one of these ended them.
class Group {
 public:
  // `open` runs on the group's thread. Throws what it throws.
  explicit Group(std::function<std::unique_ptr<Transport>()> open);
  // Waits for what was begun.
  ~Group();
  Group(const Group&) = delete;
  Group& operator=(const Group&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Begins to reduce a copy of the numbers over all processes: "sum", "mean" (of floating-point and
  // complex numbers), "max" or "min" (of real ones). Returns a number to ask for the result with.
  // RuntimeError for other reductions, and for tensors that are not dense ones of numbers on the CPU or
  // on a CUDA device. The latter are reduced there: nothing waits for the device.
  int64_t beginAllReduce(const Tensor& numbers, const std::string& reduction);
  // The same for several tensors of one dtype and device, which travel together.
  int64_t beginAllReduce(std::span<const Tensor> bundle, const std::string& reduction);
  // Waits for the result, which is row-major. It can be asked for once; RuntimeError after that, and
  // when the processes could not talk.
  Tensor endAllReduce(int64_t ticket);
  // Of each tensor of a bundle its result. They lie in one block of memory, each in a part of its own.
  std::vector<Tensor> endBundle(int64_t ticket);
  // Everybody's tensor, on any device, gets the numbers of the process `root`.
  void broadcast(const Tensor& tensor, int root);
  void barrier();

 private:
  struct Job {
    std::function<void(Transport&)> work;
    bool done = false;
    std::exception_ptr error;
  };
  struct Reducing {
    std::shared_ptr<Job> job;   // null where a device does it
    Tensor numbers;             // in one row
    std::vector<Tensor> parts;  // views of them, one for each tensor
    DType dtype;                // of the results
    std::shared_ptr<DeviceReducer> reducer;
    std::unique_ptr<DeviceReducer::Work> work;
  };
  // Of a device. Made by the first call, in which all processes join.
  std::shared_ptr<DeviceReducer> reducerOf(Device device);
  int64_t keep(Reducing reducing);
  void serve(const std::function<std::unique_ptr<Transport>()>& open);
  std::shared_ptr<Job> ask(std::function<void(Transport&)> work);
  void await(const Job& job);

  int rank_ = 0, size_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool opened_ = false, closing_ = false;
  std::exception_ptr failed_;  // of the first job that did; those behind it fail too
  std::deque<std::shared_ptr<Job>> jobs_;
  std::map<std::pair<DeviceType, int>, std::shared_ptr<DeviceReducer>> reducers_;
  std::map<int64_t, Reducing> reducing_;
  int64_t next_ticket_ = 1;
  std::thread thread_;
};

// The group of this process that operators work in, or null. Thread-safe.
std::shared_ptr<Group> currentGroup();
void setCurrentGroup(std::shared_ptr<Group> group);
// RuntimeError that says what to call when there is none.
std::shared_ptr<Group> theGroup();

}  // namespace wick::distributed

#pragma GCC visibility pop
