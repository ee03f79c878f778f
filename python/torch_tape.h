// Backward passes of graphs that were captured from PyTorch's tensors.
#pragma once

#include <memory>
#include <vector>

#include "autograd/tape.h"
#include "python/torch_call.h"

namespace wick::python {

// The tape behind some results that PyTorch knows. The caller holds the GIL.
class TorchTape {
 public:
  // `results` are those of the component that have gradients in this call; `given` are what PyTorch gets for them.
  TorchTape(const TorchCallState& call, const TorchComponent& component,
            const std::vector<size_t>& results, const std::vector<capture::Object>& given);

  // Returns whether a second walk must raise, unless the first one retained the graph.
  bool saves() const { return saves_; }
  // Returns the gradients of the leaves, None for those that nothing depends on. `gradients` are those
  // of the results, None where there is none.
  capture::Object backward(PyObject* gradients);
  // Does the same, and returns the tape of the walk itself, whose leaves are those of this tape and
  // then the gradients that were given. `differentiable` says which gradients are its results.
  std::shared_ptr<TorchTape> recordedBackward(PyObject* gradients, capture::Object& all,
                                              std::vector<bool>& differentiable);

 private:
  // A tensor whose memory may be saved, and its count of writes when PyTorch was asked last.
  struct Watched {
    capture::Object detached;
    Ref<Storage> own;
    int64_t version = 0;
  };
  struct Walk {
    std::vector<Tensor> gradients, given;
    std::vector<TorchMemory> memories;  // of those that were given
  };

  explicit TorchTape(const TorchLibrary& library) : library_(library) {}
  void watch(capture::Object detached, const Tensor& own);
  void noteForeignWrites();
  Walk walk(PyObject* gradients, bool recorded);
  capture::Object torchGradient(Tensor gradient) const;

  const TorchLibrary& library_;
  bool saves_ = true;
  std::vector<autograd::Edge> leaves_;
  std::vector<Tensor> results_;
  std::vector<Watched> watched_;
};

// A call whose results have gradients, on its way through torch.autograd.Function: once for each
// component, whose backward passes are independent.
class TorchRun {
 public:
  explicit TorchRun(TorchCallState& call) : call_(&call) {}

  // Returns the tape of a component; `given` gets its results. The first call runs the graph.
  std::shared_ptr<TorchTape> forward(size_t component, std::vector<capture::Object>& given);
  void end() { call_ = nullptr; }
  bool isOver() const { return call_ == nullptr; }

  std::vector<size_t> results;  // those that went through, in this order

 private:
  TorchCallState* call_;
};

}  // namespace wick::python
