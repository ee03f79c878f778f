#include "python/torch_autocast.h"

#include <algorithm>

#include "autograd/tape.h"
#include "capture/bytecode/frame_hook.h"
#include "core/error.h"
#include "passes/node_traits.h"
#include "python/fake_recording.h"
#include "python/plain_types.h"
#include "python/torch_library.h"

namespace wick::python {
namespace {

using capture::Object;

// ---- the rules ----

// How eager calls on the CPU treat their tensors in PyTorch 1.13 (kEagerCast… in ir/operator.h). Scripts have rules of
// their own (passes/autocast.h).
enum class TorchRule : uint8_t {
  kNone,
  kReduced,     // casts to the dtype of autocast
  kFull,        // casts to float32
  kWidest,      // casts to float32 if a tensor is of that, else to the dtype of autocast
  kFullWithin,  // is composed of operators that cast to float32, and of others
  kUnknown,     // is composed of operators that cast, in a way that depends on its arguments
  kInner,       // is a product, unless one of them has no dimension
  kPadding,     // depends on the mode of padding
};

TorchRule listedRuleOf(const Operator& op) {
  constexpr std::pair<OperatorFlags, TorchRule> kRules[] = {
      {kEagerCastReduced, TorchRule::kReduced}, {kEagerCastFull, TorchRule::kFull},
      {kEagerCastWidest, TorchRule::kWidest},   {kEagerCastFullWithin, TorchRule::kFullWithin},
      {kEagerCastUnknown, TorchRule::kUnknown}, {kEagerCastInner, TorchRule::kInner},
      {kEagerCastPadding, TorchRule::kPadding}};
  const auto* const found =
      std::ranges::find_if(kRules, [&](const auto& each) { return op.has(each.first); });
  return found == std::end(kRules) ? TorchRule::kNone : found->second;
}

template <class F>
void forEachTensor(std::span<const IValue> values, F&& f) {
  for (const IValue& each : values) {
    if (each.isTensor()) {
      if (each.toTensor().defined()) f(each.toTensor());
    } else if (each.isList()) {
      for (const IValue& element : each.elements()) {
        if (element.isTensor() && element.toTensor().defined()) f(element.toTensor());
      }
    }
  }
}

bool holds(std::span<const IValue> values, DType dtype) {
  bool any = false;
  forEachTensor(values, [&](const Tensor& each) { any |= each.dtype() == dtype; });
  return any;
}

// Returns the rule of padding: that of the operator for its mode and number of dimensions, if there is
// one in the lists.
TorchRule ruleOfPadding(std::span<const IValue> arguments) {
  if (arguments.size() < 3 || !arguments[1].isList() || !arguments[2].isString()) {
    return TorchRule::kUnknown;
  }
  const std::string& mode = arguments[2].toString();
  const size_t ends = arguments[1].elements().size();
  if (mode == "replicate" || (mode == "reflect" && ends <= 4)) return TorchRule::kFull;
  return TorchRule::kNone;
}

TorchRule ruleOf(const Operator& op, std::span<const IValue> arguments) {
  const TorchRule rule = listedRuleOf(op);
  switch (rule) {
    case TorchRule::kInner: {
      bool products = true;
      forEachTensor(arguments, [&](const Tensor& each) { products &= each.dim() > 0; });
      return products ? TorchRule::kReduced : TorchRule::kNone;
    }
    case TorchRule::kPadding:
      return ruleOfPadding(arguments);
    case TorchRule::kFullWithin:
      return holds(arguments, DType::BFloat16) ? TorchRule::kUnknown : TorchRule::kNone;
    case TorchRule::kUnknown:
    case TorchRule::kNone:
      return rule;
    default:
      break;
  }
  // Operators that write are not listed.
  if (op.schema().isMutable()) return TorchRule::kNone;
  return op.schema().overload() == "tensor_qparams" ? TorchRule::kNone : rule;
}

}  // namespace

void TorchRules::cast(const Operator& op, std::span<IValue> arguments) {
  const AutocastMode& mode = autocastMode();
  if (!mode.cpu) return;
  if (holds(arguments, DType::Half)) {
    throwRuntimeError("{} of float16 within torch.autocast on the CPU", op.symbol().qualString());
  }
  switch (ruleOf(op, arguments)) {
    case TorchRule::kReduced:
      return castAll(arguments, mode.cpu_dtype);
    case TorchRule::kFull:
      return castAll(arguments, DType::Float);
    case TorchRule::kWidest:
      return castAll(arguments, holds(arguments, DType::Float) ? DType::Float : mode.cpu_dtype);
    case TorchRule::kNone:
      return;
    default:
      throwRuntimeError("{} within torch.autocast, which is made of several operators",
                        op.symbol().qualString());
  }
}

std::shared_ptr<Graph> TorchRules::castGraph(const Graph& graph) const {
  if (!autocastMode().cpu) return nullptr;
  anyNode(graph.block(), [](const Node* node) {
    const Operator* const op = node->maybeOperator();
    WICK_CHECK(!op || listedRuleOf(*op) == TorchRule::kNone,
               "{} within a function that cannot be taken apart, within torch.autocast",
               node->kind().qualString());
    return false;
  });
  return nullptr;
}

void TorchRules::castAll(std::span<IValue> arguments, DType dtype) {
  for (IValue& each : arguments) each = casted(each, dtype);
}

IValue TorchRules::casted(const IValue& value, DType dtype) {
  if (value.isTensor()) {
    return value.toTensor().defined() ? IValue(castedTensor(value.toTensor(), dtype)) : value;
  }
  if (!value.isList() || !std::ranges::any_of(value.elements(), &IValue::isTensor)) return value;
  std::vector<IValue> elements;
  for (const IValue& each : value.elements()) elements.push_back(casted(each, dtype));
  return IValue(makeList(value.toList().element_type, std::move(elements)));
}

Tensor TorchRules::castedTensor(const Tensor& tensor, DType dtype) {
  if (!isFloating(tensor.dtype()) || tensor.dtype() == DType::Double || tensor.dtype() == dtype) {
    return tensor;
  }
  const AutocastMode& mode = autocastMode();
  if (!mode.keeps_casts || dtype != mode.cpu_dtype || tensor.dtype() != DType::Float ||
      !tensor.requiresGrad() || !autograd::isLeaf(tensor)) {
    return castTo(tensor, dtype);
  }
  auto& [weight, cast] = kept_[tensor.impl()];
  if (!cast.defined()) {
    cast = castTo(tensor, dtype);
    weight = tensor;
  }
  return cast;
}

Object composedOf(PyObject* function) {
  static const Object& kAll = forever([] {
    const capture::PauseHook pause;
    return Object::checked(PyImport_ImportModule("wick._torch_composed"));
  }());
  if (!PyCFunction_Check(function) && !PyFunction_Check(function)) return {};
  static constexpr std::string_view kNames[] = {"einsum",   "gru",           "gru_cell",
                                                "lstm",     "lstm_cell",     "rnn_relu_cell",
                                                "rnn_relu", "rnn_tanh_cell", "rnn_tanh"};
  const std::string qualified = nameOfFunction(function);
  const std::string name = qualified.substr(qualified.rfind('.') + 1);
  if (std::ranges::find(kNames, name) == std::end(kNames)) return {};
  return Object::checked(PyObject_GetAttrString(kAll.get(), name.c_str()));
}

// ---- the state ----

TorchAutocast::TorchAutocast(PyObject* module) {
  for (const AutocastFunction& each : autocastFunctions()) {
    functions_.push_back(Object::own(PyObject_GetAttrString(module, each.name)));
    if (!functions_.back()) PyErr_Clear();
    if (functions_.back()) calls_.emplace(functions_.back().get(), each.call);
  }
}

std::optional<AutocastCall> TorchAutocast::callOf(PyObject* function) const {
  const auto found = calls_.find(function);
  return found == calls_.end() ? std::nullopt : std::optional(found->second);
}

bool TorchAutocast::isComplete() const {
  return std::ranges::all_of(functions_,
                             [](const Object& each) { return static_cast<bool>(each); });
}

bool TorchAutocast::isOn() const {
  const Object& asked = function(AutocastCall::kCpu);
  return asked && TorchLibrary::call(asked).get() == Py_True;
}

std::optional<AutocastMode> TorchAutocast::mode(const TorchLibrary& library) const {
  AutocastMode mode;
  if (!isComplete()) return isOn() ? std::nullopt : std::optional(mode);
  const auto is = [&](AutocastCall call) {
    return TorchLibrary::call(function(call)).get() == Py_True;
  };
  mode.cpu = is(AutocastCall::kCpu);
  mode.cuda = is(AutocastCall::kCuda);
  mode.keeps_casts = is(AutocastCall::kKeepsCasts);
  const auto cpu = library.dtypeOf(TorchLibrary::call(function(AutocastCall::kCpuDType)).get());
  const auto cuda = library.dtypeOf(TorchLibrary::call(function(AutocastCall::kCudaDType)).get());
  if (!cpu || !cuda) return std::nullopt;
  mode.cpu_dtype = *cpu;
  mode.cuda_dtype = *cuda;
  // Nothing else tells the number of scopes.
  TorchLibrary::call(function(AutocastCall::kEnter));
  const Object nesting = TorchLibrary::call(function(AutocastCall::kLeave));
  mode.nesting = static_cast<int>(PyLong_AsLong(nesting.get()));
  return mode;
}

std::vector<std::pair<Object, Object>> TorchAutocast::changes(const TorchLibrary& library,
                                                              const AutocastMode& before,
                                                              const AutocastMode& after) const {
  std::vector<std::pair<Object, Object>> calls;
  const auto set = [&](AutocastCall call, bool from, bool to) {
    if (from != to) calls.emplace_back(function(call), Object::share(to ? Py_True : Py_False));
  };
  const auto setDType = [&](AutocastCall call, DType from, DType to) {
    if (from != to) calls.emplace_back(function(call), library.fromOwn(dtypeObject(to)));
  };
  set(AutocastCall::kSetCpu, before.cpu, after.cpu);
  set(AutocastCall::kSetCuda, before.cuda, after.cuda);
  set(AutocastCall::kSetKeepsCasts, before.keeps_casts, after.keeps_casts);
  setDType(AutocastCall::kSetCpuDType, before.cpu_dtype, after.cpu_dtype);
  setDType(AutocastCall::kSetCudaDType, before.cuda_dtype, after.cuda_dtype);
  return calls;
}

void TorchAutocast::set(const TorchLibrary& library, const AutocastMode& before,
                        const AutocastMode& after, bool clear) const {
  for (const auto& [function, argument] : changes(library, before, after)) {
    TorchLibrary::call(function, argument.get());
  }
  for (int i = before.nesting; i < after.nesting; ++i) {
    TorchLibrary::call(function(AutocastCall::kEnter));
  }
  for (int i = before.nesting; i > after.nesting; --i) {
    TorchLibrary::call(function(AutocastCall::kLeave));
  }
  if (clear) TorchLibrary::call(function(AutocastCall::kClear));
}

TorchAutocastScope::TorchAutocastScope(const TorchLibrary& library, const AutocastMode& mode)
    : library_(library), before_(library.autocast().mode(library)) {
  if (before_ && !(*before_ == mode)) library.autocast().set(library, *before_, mode, false);
}

TorchAutocastScope::~TorchAutocastScope() {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  try {
    const std::optional<AutocastMode> now = library_.autocast().mode(library_);
    if (before_ && now && !(*now == *before_)) {
      library_.autocast().set(library_, *now, *before_, false);
    }
  } catch (const capture::PythonError&) {
    PyErr_Clear();
  }
  PyErr_Restore(type, value, traceback);
}

}  // namespace wick::python
