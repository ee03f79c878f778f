// Autocast of the calls that Python makes: the state that torch.autocast sets, and the casts that it puts
// before operators. Programs in script that say it themselves get theirs from passes/autocast.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "core/dtype.h"
#include "core/tensor.h"
#include "ir/operator.h"
#include "python/object.h"

namespace wick {
class Graph;
}

namespace wick::python {

// The state of a thread.
struct AutocastMode {
  bool cpu = false, cuda = false;
  bool keeps_casts = true;  // a weight is cast once within the outermost scope
  DType cpu_dtype = DType::BFloat16, cuda_dtype = DType::Half;
  int nesting = 0;  // of scopes

  bool operator==(const AutocastMode&) const = default;
  bool any() const { return cpu || cuda; }
  // Returns the state as a number that is not negative, and the state of such a number, with or without
  // kClears.
  int64_t packed() const;
  static AutocastMode unpacked(int64_t number);
  // Says with such a number that the casts of weights are forgotten.
  static constexpr int64_t kClears = int64_t{1} << 62;
};

// Casts the arguments of operators.
class Autocast {
 public:
  virtual ~Autocast() = default;
  // Replaces the tensors among the arguments of a call that are to be cast. The casts are calls of
  // operators themselves. RuntimeError for calls that it does not know.
  virtual void cast(const Operator& op, std::span<IValue> arguments) = 0;
  // Returns the graph with casts in it; null if it needs none. Calls are inlined in it. RuntimeError as
  // above.
  virtual std::shared_ptr<Graph> castGraph(const Graph& graph) const = 0;
};

// Returns the state of the calling thread.
const AutocastMode& autocastMode();
void setAutocastMode(const AutocastMode& mode);

namespace detail {
inline constinit thread_local Autocast* active_autocast = nullptr;
}  // namespace detail

// Returns what casts the arguments of calls on this thread; null while autocast is off.
inline Autocast* activeAutocast() {
  return detail::active_autocast;
}

// Makes calls be cast by something else than Wick's own rules while the thread's state is on.
class AutocastScope {
 public:
  explicit AutocastScope(Autocast& rules);
  ~AutocastScope();
  AutocastScope(const AutocastScope&) = delete;

 private:
  Autocast* const before_;
};

// Returns the tensor in another dtype, by an operator.
Tensor castTo(const Tensor& tensor, DType dtype);

// A function that tells or changes the state, by the name that it has in PyTorch and here.
enum class AutocastCall : uint8_t {
  kCpu,
  kSetCpu,
  kCpuDType,
  kSetCpuDType,
  kCuda,
  kSetCuda,
  kCudaDType,
  kSetCudaDType,
  kKeepsCasts,
  kSetKeepsCasts,
  kEnter,
  kLeave,
  kClear,
};
struct AutocastFunction {
  const char* name;
  AutocastCall call;
};
std::span<const AutocastFunction> autocastFunctions();
// Returns the one of that name.
std::optional<AutocastCall> autocastCallOf(std::string_view name);
// Does the call. Returns its result; null where the arguments are others than PyTorch's.
Owned doAutocastCall(AutocastMode& mode, AutocastCall call, std::span<PyObject* const> given);

// Adds these functions to the module.
void addAutocast(PyObject* module);

}  // namespace wick::python
