#include "runtime/ops/quantized/through.h"

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
  // The tensor of an out= form is not among the arguments here.
  throw RuntimeError(fmt::format("{}: out= is quantized, but no argument is",
                                 std::string(frame.op->schema().name())));
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

// Along which dimension a call of an operator with a `dim`, or of hsplit, vsplit or dsplit, cuts.
int64_t cutDimension(const CallFrame& frame, const Tensor& self) {
  const FunctionSchema& schema = frame.op->schema();
  if (const std::optional<size_t> at = schema.argumentIndex("dim")) {
    return wrapDim(frame.args[*at].toInt(), self.dim());
  }
  if (schema.name() == "aten::vsplit") return 0;
  return schema.name() == "aten::dsplit" ? 2 : std::min<int64_t>(self.dim() - 1, 1);
}

// What is left of the parameters of a tensor's channels. One channel is a tensor quantized as a
// whole.
Ref<RefCounted> partQuantizer(const Tensor& scales, const Tensor& zero_points, int64_t axis) {
  if (scales.numel() != 1) {
    return Quantizer::perChannel(scales.flatten(), zero_points.flatten(), axis);
  }
  return Quantizer::perTensor(scales.flatten().select(0, 0).to(DType::Double).item<double>(),
                              zero_points.flatten().select(0, 0).to(DType::Long).item<int64_t>());
}

}  // namespace

void onParts(CallFrame& frame) {
  const char* op = frame.op->schema().name().c_str();
  const Tensor self = frame.args[0].toTensor();
  const Quantizer& q = quantizerOf(op, self);
  if (q.isPerTensor()) return runOnIntegers(frame, false);
  WICK_CHECK(self.dtype() != DType::QUInt4x2,
             "{}: not available for tensors of {}, whose elements share bytes", op,
             toString(self.dtype()));
  // Views of other sizes keep the parameters that they do not fit.
  WICK_CHECK(q.axis() < self.dim() && self.size(q.axis()) == q.scales().numel(),
             "{}: length of scales must equal to channel: there are {} scales, for dimension {} of "
             "sizes {}",
             op, q.scales().numel(), q.axis(), formatInts(self.sizes()));
  const std::vector<IValue> args = replaced(frame, integersOf);
  std::vector<IValue> dense = args;
  callDense(frame, dense);
  const int64_t dim = cutDimension(frame, self);
  // The same cut is made of the parameters, laid out along the axis.
  auto cut = [&](const Tensor& parameters) {
    DimVector sizes(static_cast<size_t>(self.dim()), 1);
    sizes[static_cast<size_t>(q.axis())] = parameters.numel();
    const Tensor along = parameters.view(sizes);
    if (dim != q.axis()) return IValue(along);
    std::vector<IValue> inputs = args;
    inputs[0] = IValue(along);
    IValue result;
    CallFrame inner{inputs.data(), inputs.size(), &result, 1, frame.op, ~uint64_t{0}};
    frame.op->record().kernel(inner);
    return result;
  };
  const IValue scales = cut(q.scales()), zero_points = cut(q.zeroPoints());
  auto part = [](const IValue& v, size_t i) {
    return v.isList() ? v.elements()[i].toTensor() : v.toTensor();
  };
  size_t i = 0;
  replaceResults(frame, [&](const Tensor& t) {
    const bool dropped = t.dim() < self.dim() && dim < q.axis();
    const int64_t axis = q.axis() - static_cast<int64_t>(dropped);
    const Ref<RefCounted> quantizer = partQuantizer(part(scales, i), part(zero_points, i), axis);
    ++i;
    return quantizedFrom(t, self.dtype(), quantizer);
  });
}

void onSqueezed(CallFrame& frame) {
  const char* op = frame.op->schema().name().c_str();
  const Tensor self = frame.args[0].toTensor();
  const Quantizer& q = quantizerOf(op, self);
  runOnIntegers(frame, true);
  if (q.isPerTensor() || q.axis() >= self.dim()) return;
  const bool one = frame.num_args > 1;
  const int64_t only = one ? wrapDim(frame.args[1].toInt(), self.dim()) : 0;
  int64_t axis = q.axis();
  for (int64_t d = 0; d <= q.axis(); ++d) {
    if (self.size(d) != 1 || (one && d != only)) continue;
    WICK_CHECK(d != q.axis(),
               "{}: Squeeze is only possible on non-axis dimension for Per-Channel Quantized "
               "Tensors.",
               op);
    --axis;
  }
  if (axis == q.axis()) return;
  const Tensor squeezed = frame.results[0].toTensor();
  squeezed.impl()->become(TensorKind::Quantized,
                          Quantizer::perChannel(q.scales(), q.zeroPoints(), axis));
}

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
  for (size_t i = 0; i < frame.num_args; ++i) {
    if (!frame.args[i].isList()) continue;
    for (const IValue& e : frame.args[i].elements()) {
      // What joins them has no number of its own for the grid.
      if (e.isTensor()) perTensorQuantizerOf(op, e.toTensor());
    }
  }
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
