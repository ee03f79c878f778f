#include "python/autocast.h"

#include <algorithm>

#include "core/error.h"
#include "passes/autocast.h"
#include "python/fake_recording.h"
#include "python/plain_types.h"
#include "runtime/ops/call.h"

namespace wick::python {
namespace {

constexpr AutocastFunction kFunctions[] = {
    {"is_autocast_cpu_enabled", AutocastCall::kCpu},
    {"set_autocast_cpu_enabled", AutocastCall::kSetCpu},
    {"get_autocast_cpu_dtype", AutocastCall::kCpuDType},
    {"set_autocast_cpu_dtype", AutocastCall::kSetCpuDType},
    {"is_autocast_enabled", AutocastCall::kCuda},
    {"set_autocast_enabled", AutocastCall::kSetCuda},
    {"get_autocast_gpu_dtype", AutocastCall::kCudaDType},
    {"set_autocast_gpu_dtype", AutocastCall::kSetCudaDType},
    {"is_autocast_cache_enabled", AutocastCall::kKeepsCasts},
    {"set_autocast_cache_enabled", AutocastCall::kSetKeepsCasts},
    {"autocast_increment_nesting", AutocastCall::kEnter},
    {"autocast_decrement_nesting", AutocastCall::kLeave},
    {"clear_autocast_cache", AutocastCall::kClear},
};

bool isReduced(DType dtype) {
  return dtype == DType::Half || dtype == DType::BFloat16;
}

// The rules of Wick's own tensors: those of scripts.
class OwnRules : public Autocast {
 public:
  void cast(const Operator& op, std::span<IValue> arguments) override {
    const CastPolicy policy = castPolicyOf(op);
    if (policy == CastPolicy::None || op.schema().isMutable()) return;
    const bool weak = policy == CastPolicy::FullOnCuda || policy == CastPolicy::FullUnlessTold;
    if (weak && saysDType(op, arguments)) return;
    if (policy == CastPolicy::Widest && std::ranges::none_of(arguments, isFloat)) return;
    for (IValue& each : arguments) {
      if (!each.isTensor() || !each.toTensor().defined()) continue;
      const Tensor tensor = each.toTensor();
      if (!isOn(tensor, policy == CastPolicy::FullOnCuda)) continue;
      if (policy != CastPolicy::Reduced) {
        if (isReduced(tensor.dtype())) each = IValue(castTo(tensor, DType::Float));
      } else if (tensor.dtype() == DType::Float) {
        const AutocastMode& mode = autocastMode();
        each = IValue(
            castTo(tensor, deviceSeenOn(tensor).isCuda() ? mode.cuda_dtype : mode.cpu_dtype));
      }
    }
  }
  std::shared_ptr<Graph> castGraph(const Graph& graph) const override {
    const AutocastMode& mode = autocastMode();
    std::shared_ptr<Graph> copy = graph.copy();
    insertAutocastsWithin(*copy, {mode.cuda, mode.cpu, mode.cuda_dtype, mode.cpu_dtype});
    return copy;
  }

 private:
  static bool isFloat(const IValue& v) {
    return v.isTensor() && v.toTensor().defined() && v.toTensor().dtype() == DType::Float;
  }
  static bool saysDType(const Operator& op, std::span<const IValue> arguments) {
    const std::optional<size_t> i = op.schema().argumentIndex("dtype");
    return i && *i < arguments.size() && !arguments[*i].isNone();
  }
  // Returns whether the state casts tensors of this device.
  static bool isOn(const Tensor& tensor, bool on_cuda_alone) {
    const AutocastMode& mode = autocastMode();
    const Device device = deviceSeenOn(tensor);
    if (device.isCuda()) return mode.cuda;
    return mode.cpu && !on_cuda_alone && device.isCpu();
  }
};

struct ThreadState {
  AutocastMode mode;
  Autocast* rules = nullptr;  // null: Wick's own
};
thread_local ThreadState thread_state;

// Notes the rules of the calling thread where calls look for them.
void refresh() {
  static OwnRules& own = *new OwnRules;
  Autocast* const rules = thread_state.rules ? thread_state.rules : &own;
  detail::active_autocast = thread_state.mode.any() ? rules : nullptr;
}

template <AutocastCall kCall>
PyObject* function(PyObject*, PyObject* const* given, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    AutocastMode mode = autocastMode();
    Owned result = doAutocastCall(mode, kCall, std::span(given, static_cast<size_t>(count)));
    if (!result) {
      raise(PyExc_TypeError, "a state of autocast is True, False, or a dtype of floats");
    }
    setAutocastMode(mode);
    return result.leak();
  });
}

template <AutocastCall kCall>
PyMethodDef entry() {
  return {kFunctions[static_cast<size_t>(kCall)].name,
          reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function<kCall>)),
          METH_FASTCALL, nullptr};
}

PyMethodDef functions[] = {
    entry<AutocastCall::kCpu>(),        entry<AutocastCall::kSetCpu>(),
    entry<AutocastCall::kCpuDType>(),   entry<AutocastCall::kSetCpuDType>(),
    entry<AutocastCall::kCuda>(),       entry<AutocastCall::kSetCuda>(),
    entry<AutocastCall::kCudaDType>(),  entry<AutocastCall::kSetCudaDType>(),
    entry<AutocastCall::kKeepsCasts>(), entry<AutocastCall::kSetKeepsCasts>(),
    entry<AutocastCall::kEnter>(),      entry<AutocastCall::kLeave>(),
    entry<AutocastCall::kClear>(),      {nullptr, nullptr, 0, nullptr},
};

constexpr int kBitsOfDType = 8;

}  // namespace

int64_t AutocastMode::packed() const {
  int64_t number = nesting;
  number = number << kBitsOfDType | static_cast<int64_t>(cuda_dtype);
  number = number << kBitsOfDType | static_cast<int64_t>(cpu_dtype);
  return number << 3 | static_cast<int64_t>(keeps_casts) << 2 | static_cast<int64_t>(cuda) << 1 |
         static_cast<int64_t>(cpu);
}

AutocastMode AutocastMode::unpacked(int64_t number) {
  constexpr int64_t kMask = (1 << kBitsOfDType) - 1;
  AutocastMode mode;
  mode.cpu = number & 1;
  mode.cuda = number >> 1 & 1;
  mode.keeps_casts = number >> 2 & 1;
  number >>= 3;
  mode.cpu_dtype = static_cast<DType>(number & kMask);
  mode.cuda_dtype = static_cast<DType>(number >> kBitsOfDType & kMask);
  constexpr int64_t kNestingMask = 0xFFFFFF;
  mode.nesting = static_cast<int>(number >> 2 * kBitsOfDType & kNestingMask);
  return mode;
}

const AutocastMode& autocastMode() {
  return thread_state.mode;
}

void setAutocastMode(const AutocastMode& mode) {
  thread_state.mode = mode;
  refresh();
}

AutocastScope::AutocastScope(Autocast& rules) : before_(thread_state.rules) {
  thread_state.rules = &rules;
  refresh();
}

AutocastScope::~AutocastScope() {
  thread_state.rules = before_;
  refresh();
}

Tensor castTo(const Tensor& tensor, DType dtype) {
  static const OperatorHandle kTo("aten::to", "dtype");
  return kTo(tensor, static_cast<int64_t>(dtype), false, false, IValue());
}

std::span<const AutocastFunction> autocastFunctions() {
  return kFunctions;
}

std::optional<AutocastCall> autocastCallOf(std::string_view name) {
  for (const AutocastFunction& each : kFunctions) {
    if (each.name == name) return each.call;
  }
  return std::nullopt;
}

Owned doAutocastCall(AutocastMode& mode, AutocastCall call, std::span<PyObject* const> given) {
  PyObject* const last = given.size() == 1 ? given[0] : nullptr;
  const auto tell = [&](bool on) {
    return given.empty() ? Owned::share(on ? Py_True : Py_False) : Owned();
  };
  const auto tellDType = [&](DType dtype) {
    return given.empty() ? Owned::share(dtypeObject(dtype)) : Owned();
  };
  const auto set = [&](bool& on) {
    if (last != Py_True && last != Py_False) return Owned();
    on = last == Py_True;
    return Owned::share(Py_None);
  };
  const auto setDType = [&](DType& to) {
    const std::optional<int64_t> number =
        last && isNamedNumber(last) ? numberOf(last) : std::nullopt;
    if (!number) return Owned();
    const std::optional<DType> dtype = dtypeOf(last);
    if (!dtype || !isFloating(*dtype)) return Owned();
    to = *dtype;
    return Owned::share(Py_None);
  };
  const auto count = [&](int by) {
    if (!given.empty() || mode.nesting + by < 0) return Owned();
    mode.nesting += by;
    return checked(PyLong_FromLong(mode.nesting));
  };
  switch (call) {
    case AutocastCall::kCpu:
      return tell(mode.cpu);
    case AutocastCall::kSetCpu:
      return set(mode.cpu);
    case AutocastCall::kCpuDType:
      return tellDType(mode.cpu_dtype);
    case AutocastCall::kSetCpuDType:
      return setDType(mode.cpu_dtype);
    case AutocastCall::kCuda:
      return tell(mode.cuda);
    case AutocastCall::kSetCuda:
      return set(mode.cuda);
    case AutocastCall::kCudaDType:
      return tellDType(mode.cuda_dtype);
    case AutocastCall::kSetCudaDType:
      return setDType(mode.cuda_dtype);
    case AutocastCall::kKeepsCasts:
      return tell(mode.keeps_casts);
    case AutocastCall::kSetKeepsCasts:
      return set(mode.keeps_casts);
    case AutocastCall::kEnter:
      return count(1);
    case AutocastCall::kLeave:
      return count(-1);
    case AutocastCall::kClear:
      return given.empty() ? Owned::share(Py_None) : Owned();
  }
  return {};
}

void addAutocast(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace wick::python
