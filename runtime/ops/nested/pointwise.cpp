// Pointwise operators on nested tensors: part by part, at once where the parts lie side by side.
#include <algorithm>

#include "core/budget.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/nested/nested.h"

namespace wick::ops::nested {

namespace {

// `self` with its elements through `f`, which keeps shapes.
Tensor mapElements(std::string_view op, const Tensor& self,
                   const std::function<Tensor(const Tensor&)>& f) {
  const NestedForm& form = nestedFormOf(op, self);
  if (!form.isPacked()) return mapParts(op, self, f);
  return makePackedNested(f(form.buffer).contiguous(), sizesOfParts(form));
}

// What stands in place of the first argument goes through the called operator; in place it is
// written itself.
void onElements(CallFrame& frame) {
  const std::string op(frame.op->schema().name());
  const Tensor self = frame.args[0].toTensor();
  const bool in_place = op.ends_with('_') && frame.op->writtenArguments() != 0;
  const Operator& applied = in_place ? *frame.op : baseOf(*frame.op);
  const auto apply = [&](const Tensor& t) {
    std::vector<IValue> args(frame.args, frame.args + frame.num_args);
    args[0] = IValue(t);
    IValue result;
    applied.call(args.data(), args.size(), &result, 1);
    return result.toTensor();
  };
  if (in_place) {
    const NestedForm& form = nestedFormOf(op, self);
    if (form.isPacked()) {
      apply(form.buffer.detach());
    } else {
      for (const Tensor& part : form.parts) apply(part.detach());
    }
    frame.results[0] = IValue(self);
    return;
  }
  frame.results[0] = IValue(mapElements(op, self, apply));
}

// ---- two operands ----

void checkBoth(const std::string& op, const Tensor& a, const Tensor& b) {
  WICK_CHECK(isNested(a) && isNested(b),
             "{}: Expected both self and other to be nested, but got a {} self and {} other", op,
             isNested(a) ? "nested" : "non-nested", isNested(b) ? "nested" : "non-nested");
  WICK_CHECK(sameNestedSizes(a, b), "{}: does not support broadcasting when given a NestedTensor",
             op);
}

// Numbers as tensors of no dimension go with every element.
bool isNumber(const Tensor& t) {
  return !isNested(t) && t.kind() == TensorKind::Dense && t.dim() == 0;
}

void onPairs(CallFrame& frame) {
  const std::string op(frame.op->schema().name());
  const Tensor self = frame.args[0].toTensor(), other = frame.args[1].toTensor();
  const auto apply = [&](const Operator& called, const Tensor& a, const Tensor& b) {
    std::vector<IValue> args(frame.args, frame.args + frame.num_args);
    args[0] = IValue(a);
    args[1] = IValue(b);
    IValue result;
    called.call(args.data(), args.size(), &result, 1);
    return result.toTensor();
  };
  const bool in_place = op.ends_with('_') && frame.op->writtenArguments() != 0;
  if (!isNumber(self) && !isNumber(other)) checkBoth(op, self, other);
  if (in_place) {
    const NestedForm& form = nestedFormOf(op, self);
    for (size_t i = 0; i < form.parts.size(); ++i) {
      const Tensor b = isNumber(other) ? other : nestedFormOf(op, other).parts[i];
      apply(*frame.op, form.parts[i].detach(), b);
    }
    frame.results[0] = IValue(self);
    return;
  }
  const Operator& called = baseOf(*frame.op);
  if (isNumber(other)) {
    frame.results[0] =
        IValue(mapElements(op, self, [&](const Tensor& t) { return apply(called, t, other); }));
    return;
  }
  if (isNumber(self)) {
    frame.results[0] =
        IValue(mapElements(op, other, [&](const Tensor& t) { return apply(called, self, t); }));
    return;
  }
  const NestedForm& a = nestedFormOf(op, self);
  const NestedForm& b = nestedFormOf(op, other);
  if (a.isPacked() && b.isPacked()) {
    frame.results[0] =
        IValue(makePackedNested(apply(called, a.buffer, b.buffer).contiguous(), sizesOfParts(a)));
    return;
  }
  CountedVector<Tensor> parts;
  Pace pace;
  for (size_t i = 0; i < a.parts.size(); ++i) {
    pace.step();
    parts.push_back(apply(called, a.parts[i], b.parts[i]));
  }
  frame.results[0] = IValue(makeNested(std::move(parts), self.dtype(), a.part_dim));
}

// Names with their in-place forms.
#define WICK_UNARY(name)           \
  {"aten::" name, &onElements}, {  \
    "aten::" name "_", &onElements \
  }

constexpr KindKernel kPointwiseKernels[] = {
    WICK_UNARY("relu"),
    WICK_UNARY("gelu"),
    WICK_UNARY("silu"),
    WICK_UNARY("tanh"),
    WICK_UNARY("sigmoid"),
    WICK_UNARY("abs"),
    WICK_UNARY("neg"),
    WICK_UNARY("exp"),
    WICK_UNARY("sin"),
    WICK_UNARY("cos"),
    WICK_UNARY("sgn"),
    WICK_UNARY("dropout"),
    {"aten::zero_", &onElements},
    {"aten::fill_.Scalar", &onElements},
    {"aten::isnan", &onElements},
    {"aten::isinf", &onElements},
    {"aten::mul.Scalar", &onElements},
    {"aten::mul_.Scalar", &onElements},
    {"aten::add.Scalar", &onElements},
    {"aten::add_.Scalar", &onElements},
    {"aten::sub.Scalar", &onElements},
    {"aten::div.Scalar", &onElements},
    {"aten::to.dtype", &onElements},
    {"aten::add.Tensor", &onPairs},
    {"aten::add_.Tensor", &onPairs},
    {"aten::sub.Tensor", &onPairs},
    {"aten::sub_.Tensor", &onPairs},
    {"aten::mul.Tensor", &onPairs},
    {"aten::mul_.Tensor", &onPairs},
    {"aten::div.Tensor", &onPairs},
    {"aten::div_.Tensor", &onPairs},
};
const RegisterKindKernels kPointwiseKernelsRegistered(TensorKind::Nested, kPointwiseKernels);

}  // namespace

}  // namespace wick::ops::nested
