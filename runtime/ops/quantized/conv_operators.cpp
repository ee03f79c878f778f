// quantized::conv*: prepacking, computing, and asking packed weights what they are.
#include "ir/operator.h"
#include "runtime/ops/quantized/conv.h"
#include "runtime/ops/quantized/record_flags.h"

namespace wick::ops::quantized {

namespace {

// The first number counts: PyTorch's own layers give two for a padding that they computed before.
DimVector ofTwo(const char* op, const char* what, const DimVector& values, int64_t first) {
  WICK_CHECK(!values.empty(), "{}: expected a {} of one number, got none", op, what);
  return {first, values[0]};
}

// ---- prepacking ----

template <bool kTransposed>
IValue prepacked(const char* op, int64_t dims, const Tensor& weight, const Tensor& bias,
                 const DimVector& stride, const DimVector& padding, const DimVector& output_padding,
                 const DimVector& dilation, int64_t groups) {
  quantizerOf(op, weight);
  WICK_CHECK(weight.dim() == dims + 2, "{}: Weights are expected to have {} dimensions, got {}", op,
             dims + 2, weight.describe());
  ConvParams::Shape shape{stride, padding, output_padding, dilation, groups, kTransposed};
  Tensor packed = weight;
  if (dims == 1) {
    shape = {ofTwo(op, "stride", stride, 1),
             ofTwo(op, "padding", padding, 0),
             ofTwo(op, "output_padding", output_padding, 0),
             ofTwo(op, "dilation", dilation, 1),
             groups,
             kTransposed};
    packed = weight.unsqueeze(2);
    const Quantizer& q = quantizerOf(op, weight);
    WICK_CHECK(q.isPerTensor() || q.axis() < 2,
               "{}: expected a weight quantized along its "
               "channels, got one along dimension {}",
               op, q.axis());
  }
  return makeNative(dims == 3 ? kConv3dClass : kConv2dClass,
                    makeRef<ConvParams>(op, packed, bias, std::move(shape)));
}

template <int kDims>
IValue prepack(const Tensor& weight, const Tensor& bias, const DimVector& stride,
               const DimVector& padding, const DimVector& dilation, int64_t groups) {
  return prepacked<false>("quantized::conv_prepack", kDims, weight, bias, stride, padding,
                          DimVector(static_cast<size_t>(kDims), 0), dilation, groups);
}
template <int kDims>
IValue prepackTransposed(const Tensor& weight, const Tensor& bias, const DimVector& stride,
                         const DimVector& padding, const DimVector& output_padding,
                         const DimVector& dilation, int64_t groups) {
  return prepacked<true>("quantized::conv_transpose_prepack", kDims, weight, bias, stride, padding,
                         output_padding, dilation, groups);
}

template <bool kLine>
std::tuple<Tensor, Tensor> unpack(const IValue& packed) {
  const ConvParams& layer = convOf("quantized::conv_unpack", packed);
  if (!kLine) return {layer.weight, layer.bias};
  const Tensor& w = layer.weight;
  WICK_CHECK(w.size(2) == 1,
             "quantized::conv1d_unpack: expected the weights of a convolution over "
             "one dimension, got {}",
             w.describe());
  return {w.squeeze(2), layer.bias};
}
IValue unpackSizes(const IValue& packed) {
  const ConvParams& layer = convOf("quantized::conv2d_unpack_sizes", packed);
  const auto sizes = [](const Tensor& t) { return IValue(makeIntList(t.sizes())); };
  return IValue(
      makeTuple({sizes(layer.weight), layer.bias.defined() ? sizes(layer.bias) : IValue()}));
}

// ---- questions ----

DimVector stride(const IValue& packed) {
  return convOf("quantized::conv_stride", packed).shape.stride;
}
DimVector padding(const IValue& packed) {
  return convOf("quantized::conv_padding", packed).shape.padding;
}
DimVector outputPadding(const IValue& packed) {
  return convOf("quantized::conv_output_padding", packed).shape.output_padding;
}
DimVector dilation(const IValue& packed) {
  return convOf("quantized::conv_dilation", packed).shape.dilation;
}
int64_t groups(const IValue& packed) {
  return convOf("quantized::conv_groups", packed).shape.groups;
}
int64_t transposed(const IValue& packed) {
  return convOf("quantized::conv_transpose", packed).shape.transposed ? 1 : 0;
}
Tensor weightOf(const IValue& packed) {
  return convOf("packed_class::conv_weight", packed).weight;
}
Tensor biasOf(const IValue& packed) {
  return convOf("packed_class::conv_bias", packed).bias;
}

// ---- computing ----

template <int kDims, bool kTransposed, bool kRelu>
Tensor conv(const Tensor& qx, const IValue& packed, double scale, int64_t zero_point) {
  const char* op = kTransposed ? "quantized::conv_transpose" : "quantized::conv";
  const ConvParams& layer = convOf(op, packed);
  WICK_CHECK(layer.shape.transposed == kTransposed,
             "{}: the weights are those of a convolution that is{} transposed", op,
             kTransposed ? " not" : "");
  return convOnGrid(op, qx, layer, {scale, zero_point}, kRelu, kDims == 1);
}
template <int kDims, bool kTransposed>
Tensor dynamic(const Tensor& x, const IValue& packed, bool reduce_range) {
  const char* op = kTransposed ? "quantized::conv_transpose_dynamic" : "quantized::conv_dynamic";
  const ConvParams& layer = convOf(op, packed);
  WICK_CHECK(layer.shape.transposed == kTransposed,
             "{}: the weights are those of a convolution that is{} transposed", op,
             kTransposed ? " not" : "");
  return convDynamic(op, x, layer, reduce_range, kDims == 1);
}
// What older programs say besides is in the packed weights.
template <int kDims, bool kRelu>
Tensor convOld(const Tensor& qx, const IValue& packed, const DimVector&, const DimVector&,
               const DimVector&, int64_t, double scale, int64_t zero_point) {
  return conv<kDims, false, kRelu>(qx, packed, scale, zero_point);
}

#define WICK_2D "__torch__.torch.classes.quantized.Conv2dPackedParamsBase"
#define WICK_3D "__torch__.torch.classes.quantized.Conv3dPackedParamsBase"

#define WICK_CONV(name, type, ...)                                               \
  {                                                                              \
    name "(Tensor qx, " type                                                     \
         " packed_weight, float output_scale, int output_zero_point) -> Tensor", \
        WICK_CPU_KERNEL((conv<__VA_ARGS__>)), kPlain                             \
  }
#define WICK_CONV_OLD(name, type, ...)                                                            \
  {                                                                                               \
    name "(Tensor qx, " type                                                                      \
         " weight, int[] stride, int[] padding, int[] dilation, int groups, float output_scale, " \
         "int output_zero_point) -> Tensor",                                                      \
        WICK_CPU_KERNEL((convOld<__VA_ARGS__>)), kPlain                                           \
  }
#define WICK_DYNAMIC(name, type, ...)                                              \
  {                                                                                \
    name "(Tensor qx, " type " packed_weight, bool reduce_range=False) -> Tensor", \
        WICK_CPU_KERNEL((dynamic<__VA_ARGS__>)), kPlain                            \
  }
#define WICK_PREPACK(name, type, dims)                                                             \
  {                                                                                                \
    name "(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] dilation, int groups) " \
         "-> " type,                                                                               \
        WICK_CPU_KERNEL(prepack<dims>), kPlain                                                     \
  }
#define WICK_PREPACK_TRANSPOSED(name, type, dims)                                                  \
  {                                                                                                \
    name "(Tensor weight, Tensor? bias, int[] stride, int[] padding, int[] output_padding, int[] " \
         "dilation, int groups) -> " type,                                                         \
        WICK_CPU_KERNEL(prepackTransposed<dims>), kPlain                                           \
  }
#define WICK_UNPACK(name, type, line)                                                \
  {                                                                                  \
    name "(" type " packed_weights) -> (Tensor unpacked_weights, Tensor? B_origin)", \
        WICK_CPU_KERNEL(unpack<line>), kPlain                                        \
  }
#define WICK_QUESTIONS(name, type)                                                               \
  {name "_stride(" type " packed_weights) -> int[]", WICK_CPU_KERNEL(stride), kPlain},           \
      {name "_padding(" type " packed_weights) -> int[]", WICK_CPU_KERNEL(padding), kPlain},     \
      {name "_output_padding(" type " packed_weights) -> int[]", WICK_CPU_KERNEL(outputPadding), \
       kPlain},                                                                                  \
      {name "_dilation(" type " packed_weights) -> int[]", WICK_CPU_KERNEL(dilation), kPlain},   \
      {name "_groups(" type " packed_weights) -> int", WICK_CPU_KERNEL(groups), kPlain}, {       \
    name "_transpose(" type " packed_weights) -> int", WICK_CPU_KERNEL(transposed), kPlain       \
  }

const OperatorRecord kConvOperatorsRecords[] = {
    WICK_CONV("quantized::conv1d", WICK_2D, 1, false, false),
    WICK_CONV("quantized::conv1d_relu", WICK_2D, 1, false, true),
    WICK_CONV("quantized::conv2d.new", WICK_2D, 2, false, false),
    WICK_CONV("quantized::conv2d_relu.new", WICK_2D, 2, false, true),
    WICK_CONV("quantized::conv3d.new", WICK_3D, 3, false, false),
    WICK_CONV("quantized::conv3d_relu.new", WICK_3D, 3, false, true),
    WICK_CONV("quantized::conv_transpose1d", WICK_2D, 1, true, false),
    WICK_CONV("quantized::conv_transpose2d", WICK_2D, 2, true, false),
    WICK_CONV("quantized::conv_transpose3d", WICK_3D, 3, true, false),
    WICK_CONV("_quantized::conv2d", WICK_2D, 2, false, false),
    WICK_CONV("_quantized::conv2d_relu", WICK_2D, 2, false, true),
    WICK_CONV("_quantized::conv3d", WICK_3D, 3, false, false),
    WICK_CONV("_quantized::conv3d_relu", WICK_3D, 3, false, true),
    WICK_CONV("_quantized::conv_transpose1d", WICK_2D, 1, true, false),
    WICK_CONV("_quantized::conv_transpose2d", WICK_2D, 2, true, false),
    WICK_CONV_OLD("quantized::conv2d", WICK_2D, 2, false),
    WICK_CONV_OLD("quantized::conv2d_relu", WICK_2D, 2, true),
    WICK_CONV_OLD("quantized::conv3d", WICK_3D, 3, false),
    WICK_CONV_OLD("quantized::conv3d_relu", WICK_3D, 3, true),
    WICK_DYNAMIC("quantized::conv1d_dynamic", WICK_2D, 1, false),
    WICK_DYNAMIC("quantized::conv2d_dynamic", WICK_2D, 2, false),
    WICK_DYNAMIC("quantized::conv3d_dynamic", WICK_3D, 3, false),
    WICK_DYNAMIC("quantized::conv_transpose1d_dynamic", WICK_2D, 1, true),
    WICK_DYNAMIC("quantized::conv_transpose2d_dynamic", WICK_2D, 2, true),
    WICK_DYNAMIC("quantized::conv_transpose3d_dynamic", WICK_3D, 3, true),

    WICK_PREPACK("quantized::conv_prepack", WICK_2D, 2),
    WICK_PREPACK("quantized::conv1d_prepack", WICK_2D, 1),
    WICK_PREPACK("quantized::conv2d_prepack", WICK_2D, 2),
    WICK_PREPACK("quantized::conv3d_prepack", WICK_3D, 3),
    WICK_PREPACK("_quantized::conv2d_prepack", WICK_2D, 2),
    WICK_PREPACK("_quantized::conv3d_prepack", WICK_3D, 3),
    WICK_PREPACK_TRANSPOSED("quantized::conv_transpose1d_prepack", WICK_2D, 1),
    WICK_PREPACK_TRANSPOSED("quantized::conv_transpose2d_prepack", WICK_2D, 2),
    WICK_PREPACK_TRANSPOSED("quantized::conv_transpose3d_prepack", WICK_3D, 3),
    WICK_PREPACK_TRANSPOSED("_quantized::conv_transpose1d_prepack", WICK_2D, 1),
    WICK_PREPACK_TRANSPOSED("_quantized::conv_transpose2d_prepack", WICK_2D, 2),
    WICK_PREPACK_TRANSPOSED("_quantized::conv_transpose3d_prepack", WICK_3D, 3),
    WICK_UNPACK("quantized::conv_unpack", WICK_2D, false),
    WICK_UNPACK("quantized::conv1d_unpack", WICK_2D, true),
    WICK_UNPACK("quantized::conv2d_unpack", WICK_2D, false),
    WICK_UNPACK("quantized::conv3d_unpack", WICK_3D, false),
    WICK_UNPACK("quantized::conv_transpose1d_unpack", WICK_2D, true),
    WICK_UNPACK("quantized::conv_transpose2d_unpack", WICK_2D, false),
    WICK_UNPACK("quantized::conv_transpose3d_unpack", WICK_3D, false),
    {"quantized::conv2d_unpack_sizes(Any packed_weights) -> Any", WICK_CPU_KERNEL(unpackSizes),
     kPlain},
    WICK_QUESTIONS("quantized::conv2d", WICK_2D),
    WICK_QUESTIONS("quantized::conv3d", WICK_3D),
    WICK_QUESTIONS("quantized::conv_transpose2d", WICK_2D),
    WICK_QUESTIONS("quantized::conv_transpose3d", WICK_3D),

    // Methods of the classes that are no operators of PyTorch's.
    {"packed_class::conv2d_weight(" WICK_2D " packed_weights) -> Tensor", WICK_CPU_KERNEL(weightOf),
     kPlain},
    {"packed_class::conv2d_bias(" WICK_2D " packed_weights) -> Tensor?", WICK_CPU_KERNEL(biasOf),
     kPlain},
    {"packed_class::conv3d_weight(" WICK_3D " packed_weights) -> Tensor", WICK_CPU_KERNEL(weightOf),
     kPlain},
    {"packed_class::conv3d_bias(" WICK_3D " packed_weights) -> Tensor?", WICK_CPU_KERNEL(biasOf),
     kPlain},
};
const RegisterOperators kConvOperatorsRegistered(kConvOperatorsRecords);

}  // namespace

}  // namespace wick::ops::quantized
