// One call of a graph that was captured from PyTorch's tensors.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "python/torch_graph.h"

namespace wick::python {

// Keeps the memory of inputs that are the same object in each call, as parameters are. The first call
// after the object's end gives it up. The caller holds the GIL.
class KeptMemory {
 public:
  explicit KeptMemory(size_t inputs) : slots_(inputs) {}

  std::shared_ptr<const TorchMemory> of(const TorchLibrary& library, size_t input, PyObject* tensor,
                                        const TorchLayout& layout);
  // Gives up memory whose tensors are gone.
  void sweep();

 private:
  struct Slot {
    const PyObject* last = nullptr;  // an address to compare with, nothing more
    capture::Object weak;
    const void* address = nullptr;
    std::shared_ptr<const TorchMemory> memory;
  };
  std::vector<Slot> slots_;
};

// The inputs' memory and the results of one call. `inputs` and the record outlive it.
class TorchCallState {
 public:
  // Throws RuntimeError where an input that the graph writes to shares memory with another one: the
  // graph does not know of it.
  TorchCallState(const TorchRecord& record, std::span<const capture::Object> inputs,
                 KeptMemory& kept);

  const std::vector<Tensor>& tensors() const { return tensors_; }
  const TorchMemory& memory(size_t i) const { return *memories_[i]; }
  const TorchRecord& record() const { return record_; }
  PyObject* input(size_t i) const { return inputs_[i].get(); }

  // Runs the graph, and counts its writes for PyTorch.
  void run();
  // Returns whether an input has been written to.
  bool isTouched() const;

  // Returns whether a result is new memory, which it stands for: see firstOn().
  bool isFresh(size_t index) const;
  // Returns the result on the same memory that the others are views of: the largest one, among those
  // with a gradient if there are any.
  size_t firstOn(size_t index) const;
  bool needsGradient(size_t index) const;
  // Returns a result that shares memory with an input, or with `base`: what firstOn() became.
  capture::Object viewOf(size_t index, PyObject* base) const;

  std::vector<Tensor> results;

 private:
  std::optional<size_t> inputOf(const Tensor& result) const;
  void checkWritten() const;

  const TorchRecord& record_;
  const std::span<const capture::Object> inputs_;
  std::vector<std::shared_ptr<const TorchMemory>> memories_;
  std::vector<Tensor> tensors_;
};

// Switches PyTorch's gradient mode for a scope.
class TorchGradMode {
 public:
  TorchGradMode(const TorchLibrary& library, bool on);
  ~TorchGradMode();
  TorchGradMode(const TorchGradMode&) = delete;

 private:
  const TorchLibrary& library_;
  const capture::Object before_;
  const bool changed_;
};

// Returns a tensor on the same memory that comes from nowhere.
Tensor withoutHistory(const Tensor& tensor);

}  // namespace wick::python
