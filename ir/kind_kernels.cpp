#include "ir/kind_kernels.h"

#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "ir/device_kernels.h"

namespace wick {

namespace {

struct Table {
  std::unordered_map<std::string_view, KindKernels> kernels;
};

// Tables are added before main(), so it is made on first use.
Table& table() {
  static Table made;
  return made;
}

// "aten::add.Tensor" of "aten::add.Tensor(Tensor self, …".
std::string_view nameOf(const char* schema) {
  const std::string_view text(schema);
  return text.substr(0, text.find('('));
}

// A dense destination of a dense result is written where it lies, because it may be a view; any
// other takes over what the result consists of.
void writeTo(const Tensor& destination, const Tensor& result, bool may_resize) {
  if (destination.kind() != TensorKind::Dense || result.kind() != TensorKind::Dense) {
    destination.impl()->takeOver(*result.impl());
    return;
  }
  WICK_CHECK(destination.storage()->writable(), "the destination's memory is read-only");
  WICK_CHECK(canCast(result.dtype(), destination.dtype()),
             "result type {} can't be cast to the desired output type {}", toString(result.dtype()),
             toString(destination.dtype()));
  if (!std::ranges::equal(destination.sizes(), result.sizes())) {
    WICK_CHECK(may_resize, "the output of shape {} does not match the broadcast shape {}",
               formatInts(destination.sizes()), formatInts(result.sizes()));
    destination.resize(result.sizes());
  }
  destination.copyFrom(result);
}

TensorKind kindOf(const IValue& v) {
  if (v.isTensor()) return static_cast<const TensorImpl*>(v.rawObject())->kind;
  TensorKind kind = TensorKind::Dense;
  if (!v.isList()) return kind;
  for (const IValue& e : v.elements()) {
    if (e.isTensor()) kind = std::max(kind, kindOf(e));
  }
  return kind;
}

}  // namespace

RegisterKindKernels::RegisterKindKernels(TensorKind kind, std::span<const KindKernel> kernels) {
  for (const KindKernel& k : kernels) {
    Kernel& slot = table().kernels[k.op][static_cast<size_t>(kind)];
    WICK_ASSERT(!slot, "{} has two kernels for {} tensors", k.op, toString(kind));
    slot = k.kernel;
  }
}

const KindKernels* findKindKernels(std::string_view op) {
  const auto found = table().kernels.find(op);
  return found == table().kernels.end() ? nullptr : &found->second;
}

const Operator& baseOf(const Operator& op) {
  if (op.form() == Operator::Form::Base) return op;
  const std::string_view schema(op.record().schema);
  const std::string_view full = schema.substr(0, schema.find('('));
  const size_t dot = full.find('.');
  const std::string_view overload = dot == std::string_view::npos ? "" : full.substr(dot + 1);
  const Operator* found = OperatorRegistry::instance().find(
      Symbol::fromQualString(std::string(full.substr(0, dot))), overload);
  WICK_ASSERT(found, "{} has no base form", op.schema().str());
  return *found;
}

std::vector<std::string> namesWithKindKernels() {
  std::vector<std::string> names;
  for (const auto& [name, kernels] : table().kernels) names.emplace_back(name);
  std::ranges::sort(names);
  return names;
}

void Operator::findKernelsOfKinds() {
  base_kernels_ = findKindKernels(nameOf(record_.schema));
  own_kernels_ = base_kernels_;
  if (form_ != Form::Base) {
    std::string own(schema_.name());
    if (!schema_.overload().empty()) own += "." + std::string(schema_.overload());
    own_kernels_ = findKindKernels(own);
  }
}

TensorKind Operator::kindOfArguments(const IValue* args, size_t num_args) const {
  TensorKind kind = TensorKind::Dense;
  for (uint64_t rest = tensors_; rest != 0; rest &= rest - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(rest));
    if (i < num_args) kind = std::max(kind, kindOf(args[i]));
  }
  return kind;
}

void Operator::callForKind(TensorKind kind, IValue* args, size_t num_args, IValue* results,
                           size_t num_results, uint64_t borrowed) const {
  // Kernels of kinds read memory.
  const DeviceType type = deviceOfArguments(*this, args, num_args);
  if (deviceRecorder(type)) {
    CallFrame frame{args, num_args, results, num_results, this, borrowed};
    return deviceRecorder(type)(frame);
  }
  WICK_CHECK(type == DeviceType::CPU,
             "{}: {} tensors exist on the CPU only, and so must all others of the call, but one is "
             "on {}",
             schema_.name(), toString(kind), Device{type, -1}.str());
  const auto k = static_cast<size_t>(kind);
  if (own_kernels_ && (*own_kernels_)[k]) {
    CallFrame frame{args, num_args, results, num_results, this, borrowed};
    (*own_kernels_)[k](frame);
    return;
  }
  Kernel base = base_kernels_ ? (*base_kernels_)[k] : nullptr;
  if (!base && has(kAnyKind)) base = record_.kernel;
  if (form_ != Form::Base && base) {
    const Tensor destination = args[form_ == Form::Inplace ? 0 : num_args - 1].toTensor();
    WICK_CHECK(destination.defined(), "{}: expected a tensor to write to, got None",
               schema_.name());
    const size_t num_taken = form_ == Form::Out ? num_args - 1 : num_args;
    CallFrame frame{args, num_taken, results, num_results, this, borrowed};
    base(frame);
    const Tensor result = results[0].toTensor();
    if (!result.isSame(destination)) writeTo(destination, result, form_ == Form::Out);
    results[0] = destination;
    return;
  }
  if (base) {
    CallFrame frame{args, num_args, results, num_results, this, borrowed};
    base(frame);
    return;
  }
  throwRuntimeError("{}: not available for {} tensors", schema_.name(), toString(kind));
}

}  // namespace wick
