// One call of a group: shapes of what its kernels ask for, and each kernel's way over memory.
#pragma once

#include <span>
#include <vector>

#include "codegen/loop/lowering.h"
#include "core/ivalue.h"
#include "runtime/fusion/split_walk.h"

namespace wick {

loop::TensorLayout layoutOf(const TensorImpl& t);
// An argument as lowering looks at it; anything but tensors, integers, floats and booleans is
// an error of the caller.
loop::ArgumentInfo argumentInfo(const IValue& argument);

// Where one kernel goes in a call.
struct Launch {
  loop::KernelFunction* function;
  // When threads share rows: the kernel's stages, and the code of each instead of `function`.
  const loop::SplitRows* split = nullptr;
  RowCut cut;
  std::vector<loop::KernelFunction*> stages;
  std::array<int64_t, loop::kMaxRank> sizes;
  // Addresses within outputs count from their beginning until the outputs exist.
  std::array<Touch, kMaxAccesses> touches;
  std::array<int32_t, kMaxAccesses> output_of;  // -1: no output
  std::array<int64_t, kMaxAccesses> numbers;
  Walk walk;
};

// Adds the addresses of outputs to those of the kernel's accesses.
void placeOutputs(const loop::Kernel& kernel, Launch& launch, const std::vector<Tensor>& outputs);

// Refers to the arguments and to the group.
class GroupCall {
 public:
  // `ordered`: all tensors' dimensions lie in memory as they stand. Outputs are made on `device`.
  GroupCall(std::span<const IValue* const> arguments, bool ordered, Device device = {})
      : arguments_(arguments), ordered_(ordered), device_(device) {}

  // Whether the group's numbers are what its kernels are for.
  bool numbersFit(const loop::LoweredGroup& group) const;
  // Finds the shapes of the group's tensors. False when they are not what it was made for.
  bool follow(const loop::LoweredGroup& group);
  // Everything but code and addresses of outputs; false as above.
  bool place(const loop::LoweredGroup& group, size_t k, Launch& launch) const;
  // False when there is nothing to reduce, which is for the operators; on other devices than the CPU
  // only where that raises an error.
  bool planWalk(const loop::LoweredGroup& group, size_t k, Launch& launch) const;
  // Whether the arguments that the group writes may be written like that: their memory is nobody
  // else's among the arguments, and they have the sizes of what is stored. To be asked when all
  // kernels are placed.
  bool mayWrite(const loop::LoweredGroup& group, std::span<const Launch> launches) const;
  // Makes the outputs. `launches` are those of all kernels; bit i of `dying`: argument i is
  // borrowed from a place that nobody reads any more, so that an output may take its memory.
  std::vector<Tensor> makeOutputs(const loop::LoweredGroup& group, std::span<const Launch> launches,
                                  uint64_t dying) const;

 private:
  struct Place {
    loop::TensorLayout layout;
    char* base;
    int32_t output;
  };
  bool placeOf(const loop::LoweredGroup& group, uint32_t source, Place& place) const;
  bool placeLoad(const loop::LoweredGroup& group, const loop::Kernel& kernel, size_t access,
                 Launch& launch) const;
  bool placeStore(const loop::LoweredGroup& group, const loop::Kernel& kernel, size_t access,
                  Launch& launch) const;
  int64_t number(const loop::LoweredGroup& group, const loop::Number& number) const;
  DimVector sizesOf(const loop::OutputInfo& output, std::span<const Launch> launches) const;
  // An argument that the output may be written over; undefined when there is none.
  Tensor spareFor(const loop::OutputInfo& output, IntSpan sizes, uint64_t& dying) const;
  const TensorImpl& tensor(size_t argument) const {
    return static_cast<const TensorImpl&>(*arguments_[argument]->rawObject());
  }

  std::span<const IValue* const> arguments_;
  const bool ordered_;
  const Device device_;
  bool followed_ = false;
  std::vector<loop::TensorLayout> tensors_;  // by number, when they are followed
  std::vector<int64_t> integers_;
};

}  // namespace wick
