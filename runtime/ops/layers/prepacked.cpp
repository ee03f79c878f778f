// prepacked::*: layers as torch.utils.mobile_optimizer.optimize_for_mobile leaves them in modules, with
// the weights, and the bounds that cut the result, in an object of a torch.classes.xnnpack class. They
// are computed by the plain operators. An input that does not fit is an error; PyTorch's library reads
// memory beyond it. NaNs stay NaNs; PyTorch's library makes a bound of them on some processors.
#include <cmath>
#include <limits>

#include "core/native_class.h"
#include "ir/operator.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/object_state.h"

namespace wick::ops {

namespace {

#define WICK_PACKED_LINEAR "__torch__.torch.classes.xnnpack.LinearOpContext"
#define WICK_PACKED_CONV "__torch__.torch.classes.xnnpack.Conv2dOpContext"
#define WICK_PACKED_TRANSPOSED "__torch__.torch.classes.xnnpack.TransposeConv2dOpContext"

using OptionalNumber = std::optional<Scalar>;

// The interval that results are cut to.
struct Bounds {
  OptionalNumber least, most;

  // Compares as PyTorch does, in float32.
  bool ordered() const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    return (most ? most->to<float>() : kInfinity) > (least ? least->to<float>() : -kInfinity);
  }
  Tensor cut(Tensor t) const {
    if (!least && !most) return t;
    if (least && !most && least->toDouble() == 0) return ops::relu(t);
    return ops::clamp(t, valueOf(least), valueOf(most));
  }
  static IValue valueOf(const OptionalNumber& bound) {
    return bound ? bound->toIValue() : IValue();
  }
};

bool isReal(const OptionalNumber& v) {
  return !v || !v->isComplex();
}

bool isFloatOnCpu(const Tensor& t) {
  return t.defined() && t.kind() == TensorKind::Dense && t.dtype() == DType::Float &&
         t.device().isCpu();
}

// ---- linear layers ----

struct PackedLinear final : public RefCounted {
  PackedLinear(Tensor w, Tensor b, Bounds bounds) noexcept
      : weight(std::move(w)), bias(std::move(b)), bounds(bounds) {}
  const Tensor weight, bias;  // [out, in], [out] or undefined
  const Bounds bounds;
};

// Throws RuntimeError that begins with `op` for weights and bounds that make no such layer.
Ref<PackedLinear> makeLinear(const char* op, const Tensor& w, const Tensor& b,
                             const Bounds& bounds) {
  const bool fits = isFloatOnCpu(w) && w.dim() == 2 && w.numel() > 0 && !w.requiresGrad() &&
                    (!b.defined() || (isFloatOnCpu(b) && b.dim() == 1 && b.size(0) == w.size(0) &&
                                      !b.requiresGrad())) &&
                    isReal(bounds.least) && isReal(bounds.most) && bounds.ordered();
  WICK_CHECK(fits,
             "{}: XNNPACK Linear not available! Reason: The provided (weight, bias, output_min, "
             "output_max) parameters are either invalid individually or their combination is not "
             "supported by XNNPACK.",
             op);
  return makeRef<PackedLinear>(w, b, bounds);
}

const PackedLinear& linearIn(const char* op, const IValue& packed) {
  return heldBy<PackedLinear>(op, packed, "a packed linear layer");
}

IValue packLinear(const Tensor& weight, const Tensor& bias, const OptionalNumber& least,
                  const OptionalNumber& most) {
  return makeNative(WICK_PACKED_LINEAR, makeLinear("prepacked::linear_clamp_prepack", weight, bias,
                                                   Bounds{least, most}));
}

Tensor runLinear(const Tensor& x, const IValue& packed) {
  static const OperatorHandle kLinear{"aten::linear", ""};
  const char* op = "prepacked::linear_clamp_run";
  const PackedLinear& layer = linearIn(op, packed);
  WICK_CHECK(
      x.dim() >= 1 && x.dtype() == DType::Float && !x.requiresGrad(),
      "{}: XNNPACK Linear not usable! Reason: The provided input tensor is either invalid or "
      "unsupported by XNNPACK: expected float32 of one dimension or more that requires no "
      "gradient, got {}",
      op, x.describe());
  return layer.bounds.cut(kLinear(x, layer.weight, layer.bias));
}

IValue linearState(const RefCounted& self) {
  const auto& layer = static_cast<const PackedLinear&>(self);
  return IValue(
      makeTuple({IValue(layer.weight), layer.bias.defined() ? IValue(layer.bias) : IValue(),
                 Bounds::valueOf(layer.bounds.least), Bounds::valueOf(layer.bounds.most)}));
}
Ref<RefCounted> linearFrom(const IValue& value) {
  const char* what = "the state of LinearOpContext";
  const std::vector<IValue>& parts = state::elementsOf(what, value);
  return makeLinear(what, state::tensorOf(what, state::at(what, parts, 0)),
                    state::optionalTensorOf(what, state::at(what, parts, 1)),
                    Bounds{state::optionalNumberOf(what, state::at(what, parts, 2)),
                           state::optionalNumberOf(what, state::at(what, parts, 3))});
}

// ---- convolutions ----

struct PackedConv final : public RefCounted {
  struct Shape {
    DimVector stride, padding, output_padding, dilation;  // as they were given: one number or two
    int64_t groups = 1;
    bool transposed = false;
  };

  PackedConv(Tensor w, Tensor b, Shape shape, Bounds bounds) noexcept
      : weight(std::move(w)), bias(std::move(b)), shape(std::move(shape)), bounds(bounds) {}
  // [out, in / groups, h, w], of transposed ones [in, out / groups, h, w]; the bias may be undefined.
  const Tensor weight, bias;
  const Shape shape;
  const Bounds bounds;
  // Weight and bias as the operators get them: no gradient flows, and the result lies as the input does.
  Tensor row_major, added;
};

bool isConv(const char* op, const Tensor& weight, const Tensor& bias,
            const PackedConv::Shape& shape, const Bounds& bounds) {
  if (!isFloatOnCpu(weight) || weight.dim() != 4 || weight.numel() == 0) return false;
  for (const auto& [name, values, least] : {std::tuple{"stride", &shape.stride, 1},
                                            {"padding", &shape.padding, 0},
                                            {"output_padding", &shape.output_padding, 0},
                                            {"dilation", &shape.dilation, 1}}) {
    WICK_CHECK(values->size() == 1 || values->size() == 2,
               "{}: expected {} to be a single integer value or a list of 2 values to match the "
               "convolution dimensions, but got {}={}",
               op, name, name, formatInts(*values));
    for (const int64_t v : *values) {
      if (v < least || v > INT32_MAX) return false;
    }
  }
  if (shape.groups <= 0 || weight.size(0) % shape.groups != 0) return false;
  int64_t channels = weight.size(0);
  if (shape.transposed && __builtin_mul_overflow(weight.size(1), shape.groups, &channels)) {
    return false;
  }
  const bool bias_fits =
      !bias.defined() || (isFloatOnCpu(bias) && bias.dim() == 1 && bias.size(0) == channels);
  return bias_fits && isReal(bounds.least) && isReal(bounds.most) && bounds.ordered();
}

// Throws RuntimeError that begins with `op` for weights, shapes and bounds that make no such layer.
Ref<PackedConv> makeConv(const char* op, const Tensor& weight, const Tensor& bias,
                         PackedConv::Shape shape, const Bounds& bounds) {
  WICK_CHECK(isConv(op, weight, bias, shape, bounds),
             "{}: xnnpack::convolution not available! Reason: The provided (weight, bias, padding, "
             "stride, dilation, groups, transposed, output_min, output_max) parameters are either "
             "invalid individually or their combination is not supported by XNNPACK.",
             op);
  Ref<PackedConv> layer = makeRef<PackedConv>(weight, bias, std::move(shape), bounds);
  layer->row_major = weight.detach().contiguous();
  if (bias.defined()) layer->added = bias.detach();
  return layer;
}

const PackedConv& convIn(const char* op, const IValue& packed, bool transposed) {
  auto& layer = heldBy<PackedConv>(op, packed, "a packed convolution");
  if (layer.shape.transposed != transposed) {
    throwWrongNative(op, packed,
                     transposed ? "a packed transposed convolution" : "a packed convolution");
  }
  return layer;
}

IValue packConv(const Tensor& weight, const Tensor& bias, const DimVector& stride,
                const DimVector& padding, const DimVector& dilation, int64_t groups,
                const OptionalNumber& least, const OptionalNumber& most) {
  return makeNative(WICK_PACKED_CONV,
                    makeConv("prepacked::conv2d_clamp_prepack", weight, bias,
                             PackedConv::Shape{stride, padding, {0, 0}, dilation, groups, false},
                             Bounds{least, most}));
}
IValue packTransposed(const Tensor& weight, const Tensor& bias, const DimVector& stride,
                      const DimVector& padding, const DimVector& output_padding,
                      const DimVector& dilation, int64_t groups, const OptionalNumber& least,
                      const OptionalNumber& most) {
  return makeNative(
      WICK_PACKED_TRANSPOSED,
      makeConv("prepacked::conv2d_transpose_clamp_prepack", weight, bias,
               PackedConv::Shape{stride, padding, output_padding, dilation, groups, true},
               Bounds{least, most}));
}

template <bool kTransposed>
Tensor runConv(const Tensor& x, const IValue& packed) {
  static const OperatorHandle kConv{"aten::conv2d", ""};
  static const OperatorHandle kTransposedConv{"aten::conv_transpose2d", "input"};
  const char* op =
      kTransposed ? "prepacked::conv2d_transpose_clamp_run" : "prepacked::conv2d_clamp_run";
  const PackedConv& layer = convIn(op, packed, kTransposed);
  const bool usable = x.dim() == 4 && x.dtype() == DType::Float && x.size(1) > 0 && x.size(2) > 0 &&
                      x.size(3) > 0 && !x.requiresGrad();
  WICK_CHECK(usable,
             "{}: XNNPACK Convolution not usable! Reason: The provided input tensor is either "
             "invalid or unsupported by XNNPACK: expected float32 of four dimensions that requires "
             "no gradient, got {}",
             op, x.describe());
  const PackedConv::Shape& s = layer.shape;
  return layer.bounds.cut(
      kTransposed
          ? kTransposedConv(x, layer.row_major, layer.added, s.stride, s.padding, s.output_padding,
                            s.groups, s.dilation)
          : kConv(x, layer.row_major, layer.added, s.stride, s.padding, s.dilation, s.groups));
}

IValue convState(const RefCounted& self) {
  const auto& layer = static_cast<const PackedConv&>(self);
  const PackedConv::Shape& s = layer.shape;
  std::vector<IValue> parts{IValue(layer.weight),
                            layer.bias.defined() ? IValue(layer.bias) : IValue(),
                            IValue(makeIntList(s.stride)), IValue(makeIntList(s.padding))};
  if (s.transposed) parts.emplace_back(makeIntList(s.output_padding));
  parts.emplace_back(makeIntList(s.dilation));
  parts.emplace_back(s.groups);
  parts.push_back(Bounds::valueOf(layer.bounds.least));
  parts.push_back(Bounds::valueOf(layer.bounds.most));
  return IValue(makeTuple(std::move(parts)));
}
template <bool kTransposed>
Ref<RefCounted> convFrom(const IValue& value) {
  const char* what =
      kTransposed ? "the state of TransposeConv2dOpContext" : "the state of Conv2dOpContext";
  const std::vector<IValue>& parts = state::elementsOf(what, value);
  size_t read = 0;
  const auto next = [&]() -> const IValue& { return state::at(what, parts, read++); };
  const Tensor weight = state::tensorOf(what, next());
  const Tensor bias = state::optionalTensorOf(what, next());
  PackedConv::Shape shape;
  shape.transposed = kTransposed;
  shape.stride = state::intsOf(what, next());
  shape.padding = state::intsOf(what, next());
  shape.output_padding = kTransposed ? state::intsOf(what, next()) : DimVector{0, 0};
  shape.dilation = state::intsOf(what, next());
  shape.groups = state::intOf(what, next());
  Bounds bounds;
  bounds.least = state::optionalNumberOf(what, next());
  bounds.most = state::optionalNumberOf(what, next());
  return makeConv(what, weight, bias, std::move(shape), bounds);
}

// ---- sizes of packed weights ----

IValue sizesOf(const Tensor& t) {
  return t.defined() ? IValue(makeIntList(t.sizes())) : IValue();
}
IValue linearSizes(const IValue& packed) {
  const PackedLinear& layer = linearIn("prepacked::unpack_prepacked_sizes_linear", packed);
  return IValue(makeTuple({sizesOf(layer.weight), sizesOf(layer.bias)}));
}
IValue convSizes(const IValue& packed) {
  const PackedConv& layer = convIn("prepacked::unpack_prepacked_sizes_conv2d", packed, false);
  return IValue(
      makeTuple({sizesOf(layer.weight), sizesOf(layer.bias),
                 IValue(makeIntList(layer.shape.stride)), IValue(makeIntList(layer.shape.padding)),
                 IValue(makeIntList(layer.shape.dilation)), IValue(layer.shape.groups)}));
}

constexpr uint64_t kFlags = kNotDifferentiable;

const OperatorRecord kPrepackedRecords[] = {
    {"prepacked::linear_clamp_prepack(Tensor W, Tensor? B=None, Scalar? output_min=None, Scalar? "
     "output_max=None) -> " WICK_PACKED_LINEAR,
     WICK_KERNEL(packLinear), kFlags},
    {"prepacked::linear_clamp_run(Tensor X, " WICK_PACKED_LINEAR " W_prepack) -> Tensor Y",
     WICK_KERNEL(runLinear), kFlags | kNeutral},
    {"prepacked::conv2d_clamp_prepack(Tensor W, Tensor? B, int[2] stride, int[2] padding, int[2] "
     "dilation, int groups, Scalar? output_min=None, Scalar? output_max=None) -> " WICK_PACKED_CONV,
     WICK_KERNEL(packConv), kFlags},
    {"prepacked::conv2d_clamp_run(Tensor X, " WICK_PACKED_CONV " W_prepack) -> Tensor Y",
     WICK_KERNEL(runConv<false>), kFlags | kNeutral},
    {"prepacked::conv2d_transpose_clamp_prepack(Tensor W, Tensor? B, int[2] stride, int[2] "
     "padding, "
     "int[2] output_padding, int[2] dilation, int groups, Scalar? output_min=None, Scalar? "
     "output_max=None) -> " WICK_PACKED_TRANSPOSED,
     WICK_KERNEL(packTransposed), kFlags},
    {"prepacked::conv2d_transpose_clamp_run(Tensor X, " WICK_PACKED_TRANSPOSED
     " W_prepack) -> Tensor Y",
     WICK_KERNEL(runConv<true>), kFlags | kNeutral},
    {"prepacked::unpack_prepacked_sizes_linear(Any W_prepack) -> Any", WICK_KERNEL(linearSizes),
     kFlags},
    {"prepacked::unpack_prepacked_sizes_conv2d(Any W_prepack) -> Any", WICK_KERNEL(convSizes),
     kFlags},
};
const RegisterOperators kPrepackedRegistered(kPrepackedRecords);

const RegisterNativeClass kPackedLinearClass({WICK_PACKED_LINEAR, linearState, linearFrom, {}});
const RegisterNativeClass kPackedConvClass({WICK_PACKED_CONV, convState, convFrom<false>, {}});
const RegisterNativeClass kPackedTransposedClass(
    {WICK_PACKED_TRANSPOSED, convState, convFrom<true>, {}});

}  // namespace

}  // namespace wick::ops
