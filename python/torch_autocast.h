// Autocast of PyTorch's tensors: its state, and the casts that PyTorch 1.13 makes on the CPU.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capture/world.h"
#include "python/autocast.h"

namespace wick::python {

class TorchLibrary;

// PyTorch's functions that tell and change the state of the calling thread.
class TorchAutocast {
 public:
  // `module` is torch. Functions that this version of PyTorch lacks are left out.
  explicit TorchAutocast(PyObject* module);

  // Returns the call that a function of PyTorch's is.
  std::optional<AutocastCall> callOf(PyObject* function) const;
  const std::vector<capture::Object>& functions() const { return functions_; }
  // Returns the function, null if this version lacks it.
  const capture::Object& function(AutocastCall call) const {
    return functions_[static_cast<size_t>(call)];
  }
  // Returns whether tensors of the CPU are cast.
  bool isOn() const;
  // Returns the state; nothing where PyTorch's is one that Wick does not have.
  std::optional<AutocastMode> mode(const TorchLibrary& library) const;
  // Sets the state from `before`, and forgets the casts of weights if `clear`.
  void set(const TorchLibrary& library, const AutocastMode& before, const AutocastMode& after,
           bool clear) const;
  // Returns the calls with arguments that change the state so, but for the number of scopes.
  std::vector<std::pair<capture::Object, capture::Object>> changes(const TorchLibrary& library,
                                                                   const AutocastMode& before,
                                                                   const AutocastMode& after) const;

 private:
  bool isComplete() const;

  std::vector<capture::Object> functions_;  // by AutocastCall
  std::unordered_map<PyObject*, AutocastCall> calls_;
};

// Returns the function of wick._torch_composed that calls, one by one, the operators that PyTorch composes
// the function of; null for others.
capture::Object composedOf(PyObject* function);

// Sets PyTorch's state for a scope.
class TorchAutocastScope {
 public:
  TorchAutocastScope(const TorchLibrary& library, const AutocastMode& mode);
  ~TorchAutocastScope();
  TorchAutocastScope(const TorchAutocastScope&) = delete;

 private:
  const TorchLibrary& library_;
  const std::optional<AutocastMode> before_;
};

// The rules of PyTorch's tensors, for the recording of one graph. Casts of weights are made once.
class TorchRules : public Autocast {
 public:
  void cast(const Operator& op, std::span<IValue> arguments) override;
  std::shared_ptr<Graph> castGraph(const Graph& graph) const override;
  // Forgets the casts of weights.
  void clear() { kept_.clear(); }

 private:
  void castAll(std::span<IValue> arguments, DType dtype);
  IValue casted(const IValue& value, DType dtype);
  Tensor castedTensor(const Tensor& tensor, DType dtype);

  // By weight, which is kept so that no other tensor has its address.
  std::unordered_map<const TensorImpl*, std::pair<Tensor, Tensor>> kept_;
};

}  // namespace wick::python
