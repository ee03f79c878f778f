#include "runtime/ops/quantized/through.h"

#include "core/counted_vector.h"

namespace wick::ops::quantized {

namespace {

// The first quantized tensor among the arguments and in lists of them.
Tensor firstQuantized(const CallFrame& frame) {
  for (size_t i = 0; i < frame.num_args; ++i) {
    const IValue& v = frame.args[i];
    if (v.isTensor() && isQuantized(v.toTensor())) return v.toTensor();
    if (!v.isList()) continue;
    for (const IValue& e : v.elements()) {
      if (e.isTensor() && isQuantized(e.toTensor())) return e.toTensor();
    }
  }
  WICK_ASSERT(false, "{} was called without a quantized tensor", frame.op->schema().name());
  return {};
}

// The arguments with each quantized tensor replaced by f(tensor).
template <class F>
std::vector<IValue> replaced(const CallFrame& frame, F&& f) {
  std::vector<IValue> args;
  args.reserve(frame.num_args);
  auto one = [&](const IValue& v) {
    return v.isTensor() && isQuantized(v.toTensor()) ? IValue(f(v.toTensor())) : v;
  };
  for (size_t i = 0; i < frame.num_args; ++i) {
    const IValue& v = frame.args[i];
    if (!v.isList() || v.toList().element_type->kind() != TypeKind::Tensor) {
      args.push_back(one(v));
      continue;
    }
    std::vector<Tensor> tensors;
    for (const IValue& e : v.elements()) tensors.push_back(one(e).toTensor());
    args.push_back(IValue(makeTensorList(tensors)));
  }
  return args;
}

// Each tensor of the results, also in lists, replaced by f(tensor).
template <class F>
void replaceResults(const CallFrame& frame, F&& f) {
  for (size_t i = 0; i < frame.num_results; ++i) {
    IValue& v = frame.results[i];
    if (v.isTensor()) {
      v = IValue(f(v.toTensor()));
    } else if (v.isList() && v.toList().element_type->kind() == TypeKind::Tensor) {
      std::vector<Tensor> tensors;
      for (const IValue& e : v.elements()) tensors.push_back(f(e.toTensor()));
      v = IValue(makeTensorList(tensors));
    }
  }
}

// Runs the dense kernel on these arguments, which it must not write over.
void callDense(const CallFrame& frame, std::vector<IValue>& args) {
  CallFrame inner{args.data(),       args.size(), frame.results,
                  frame.num_results, frame.op,    ~uint64_t{0}};
  frame.op->record().kernel(inner);
}

void runOnIntegers(CallFrame& frame, bool any_scheme) {
  const char* op = frame.op->schema().name().c_str();
  const Tensor first = firstQuantized(frame);
  WICK_CHECK(first.dtype() != DType::QUInt4x2 || any_scheme,
             "{}: not available for tensors of {}, whose elements share bytes", op,
             toString(first.dtype()));
  // The integers stand for the same numbers only where all have one quantizer.
  std::vector<IValue> args = replaced(frame, [&](const Tensor& t) {
    if (!any_scheme) perTensorQuantizerOf(op, t);
    return integersOf(t);
  });
  callDense(frame, args);
  const DType integer = integerDType(first.dtype());
  replaceResults(frame, [&](const Tensor& t) -> Tensor {
    if (!t.defined() || t.dtype() != integer) return t;
    for (size_t i = 0; i < args.size(); ++i) {
      if (args[i].isTensor() && args[i].rawObject() == t.impl()) return frame.args[i].toTensor();
    }
    return quantizedFrom(t, first.dtype(), first.form());
  });
}

Tensor steps(const char* op, const Tensor& t) {
  const Quantizer& q = perTensorQuantizerOf(op, t);
  const Tensor as_steps =
      quantizedFrom(integersOf(t), t.dtype(), Quantizer::perTensor(1, q.zeroPoint()));
  return dequantize(op, as_steps);
}

void runOnReals(CallFrame& frame, bool in_steps, bool back) {
  const char* op = frame.op->schema().name().c_str();
  const Tensor first = firstQuantized(frame);
  std::vector<IValue> args =
      replaced(frame, [&](const Tensor& t) { return in_steps ? steps(op, t) : dequantize(op, t); });
  callDense(frame, args);
  if (!back) return;
  const Quantizer& q = perTensorQuantizerOf(op, first);
  replaceResults(frame, [&](const Tensor& t) -> Tensor {
    if (!t.defined() || t.dtype() != DType::Float) return t;
    const Tensor rounded =
        quantize(op, t, {in_steps ? 1 : q.scale(), q.zeroPoint()}, first.dtype());
    return quantizedFrom(integersOf(rounded), first.dtype(), first.form());
  });
}

}  // namespace

void onIntegers(CallFrame& frame) {
  runOnIntegers(frame, false);
}
void onIntegersOfAnyScheme(CallFrame& frame) {
  runOnIntegers(frame, true);
}

void onCommonGrid(CallFrame& frame) {
  const char* op = frame.op->schema().name().c_str();
  const Tensor first = firstQuantized(frame);
  const Grid grid = gridOf(perTensorQuantizerOf(op, first));
  std::vector<IValue> args = replaced(frame, [&](const Tensor& t) {
    const Quantizer& own = perTensorQuantizerOf(op, t);
    WICK_CHECK(t.dtype() == first.dtype(), "{}: All dtypes must be the same, got {} and {}", op,
               toString(first.dtype()), toString(t.dtype()));
    const bool same = own.scale() == grid.scale && own.zeroPoint() == grid.zero_point;
    return integersOf(same ? t : quantize(op, dequantize(op, t), grid, t.dtype()));
  });
  callDense(frame, args);
  replaceResults(frame,
                 [&](const Tensor& t) { return quantizedFrom(t, first.dtype(), first.form()); });
}

void onIntegersInPlace(CallFrame& frame) {
  const Tensor self = frame.args[0].toTensor();
  perTensorQuantizerOf(frame.op->schema().name().c_str(), self);
  std::vector<IValue> args = replaced(frame, [](const Tensor& t) { return integersOf(t); });
  callDense(frame, args);
  const Tensor changed = args[0].toTensor();
  self.impl()->place(changed.storage(), self.dtype(), DimVector(changed.sizes()),
                     DimVector(changed.strides()), changed.offset());
  frame.results[0] = IValue(self);
}

void onReals(CallFrame& frame) {
  runOnReals(frame, false, false);
}
void onRealsAndBack(CallFrame& frame) {
  runOnReals(frame, false, true);
}
void onStepsAndBack(CallFrame& frame) {
  runOnReals(frame, true, true);
}

}  // namespace wick::ops::quantized
