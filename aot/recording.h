// Recording: what a call of a function computes, as a Program.
//
// The function runs once, on tensors of the device "ahead" (aot/device.h), whose elements
// nobody knows: sizes, lists, numbers and conditions that depend on them are computed as always, and
// what would compute elements is noted instead. It arrives by the ways that computations for other
// devices take: kernels of fusion groups and of single operators (runtime/fusion/group_backend.h),
// products, convolutions and pooling (runtime/kernels/device_layers.h), copies
// (core/device_backend.h).
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "aot/program.h"
#include "core/error_types.h"
#include "runtime/fusion/walk.h"

namespace wick::aot {

// Something cannot be compiled ahead of time.
class NotAhead : public RuntimeError {
 public:
  using RuntimeError::RuntimeError;
};

// One at a time on a thread, which is the current one while it lives.
class Recording {
 public:
  Recording();
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  // The calling thread's; NotAhead when there is none.
  static Recording& current();

  // A tensor that stands for argument number `inputs()`, with the sizes, dtype and strides of
  // `example`, which must be dense.
  Tensor addInput(const std::string& name, const Tensor& example);
  // The tensor with the same elements on the device; equal ones share a buffer.
  Tensor constant(const Tensor& on_cpu);
  void addOutput(const std::string& name, const Tensor& result);
  // Copies into a tensor of the device, whose contents other steps may write as well.
  void assign(const Tensor& to, const Tensor& from);
  // Forgets arguments and results, and keeps constants, for another call. Of the steps those are kept
  // that compute what optimized graphs hold as constants. Where the program
  // asks for an element of a boolean tensor, it gets these answers, and then true.
  void restart(std::vector<bool> assumed = {});
  // What the program asked for, and was told, in order.
  struct Decision {
    size_t position;  // the number of steps before
    Place place;
    bool value;
  };
  static constexpr size_t kMostDecisions = 64;
  // The compiled model raises the message where an element of a boolean tensor is false.
  void require(const Tensor& holds, const std::string& message);
  // Whether the program has asked for an element that is not a boolean one.
  bool askedForNumber() const { return asked_for_number_; }
  const std::vector<Decision>& decisions() const { return decisions_; }
  // The steps since restart(), which the recording has no longer.
  std::vector<Step> takeSteps() { return std::exchange(program_.steps, {}); }
  void setSteps(std::vector<Step> steps) { program_.steps = std::move(steps); }
  // What was recorded. The recording is empty then.
  Program take();

  // For the seams.
  void* allocate(size_t bytes);
  void clear(const void* memory);
  void copy(const Tensor& to, const Tensor& from);
  void kernel(const std::string& name, const std::shared_ptr<const loop::Kernel>& kernel,
              codegen::CppWalk walk, const std::vector<int64_t>& addresses,
              std::vector<uint64_t> numbers);
  void add(const std::string& name, decltype(Step::what) what);
  Place placeOf(const Tensor& t) const;
  // Notes that the memory is read or written from now on.
  void touch(const Place& place, bool writes);
  // The contents of a tensor whose buffer is constant; undefined for others.
  Tensor known(const Tensor& t) const;

 private:
  uint32_t bufferAt(int64_t address) const;
  bool decide(const Place& place);
  Recording* const before_;
  Program program_;
  std::vector<Step> earlier_;  // of the calls before
  std::vector<bool> assumed_;
  std::vector<Decision> decisions_;
  std::map<const void*, Tensor> constants_;  // by storage on the CPU
  std::vector<Tensor> held_;
  bool asked_for_number_ = false;
};

// How a kernel goes over memory, as its text wants to know it.
codegen::CppWalk wayOf(const loop::Kernel& kernel, const Walk& walk);

}  // namespace wick::aot
