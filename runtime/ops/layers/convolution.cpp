// Convolutions: the functional forms, the ones that traces record, and the fused one that passes
// make.
#include "runtime/kernels/convolution.h"

#include "runtime/ops/boxing.h"
#include "runtime/ops/call.h"
#include "runtime/ops/layers/epilogue.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {
namespace {

// Runs `params` on a batch, or on one sample without a batch dimension.
Tensor convolveBatched(const char* op, const Tensor& input, const Tensor& weight,
                       const Tensor& bias, const ConvolutionParams& params) {
  if (input.dim() + 1 == weight.dim() &&
      weight.dim() == static_cast<int64_t>(params.stride.size()) + 2) {
    return convolution(op, input.unsqueeze(0), weight, bias, params).squeeze(0);
  }
  return convolution(op, input, weight, bias, params);
}

ConvolutionParams makeParams(const char* op, size_t n, const DimVector& stride,
                             const DimVector& padding, const DimVector& dilation, int64_t groups) {
  ConvolutionParams p;
  p.stride = expandInts(op, "stride", stride, n);
  p.padding = p.padding_after = expandInts(op, "padding", padding, n);
  p.dilation = expandInts(op, "dilation", dilation, n);
  p.output_padding = DimVector(n, 0);
  p.groups = groups;
  return p;
}

Tensor convolveMode(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                    const DimVector& stride, const std::string& padding, const DimVector& dilation,
                    int64_t groups, size_t n) {
  WICK_CHECK(weight.dim() == static_cast<int64_t>(n) + 2,
             "{}: expected a {}-dimensional weight, got shape {}", op, n + 2,
             formatInts(weight.sizes()));
  ConvolutionParams p = makeParams(op, n, stride, DimVector(n, 0), dilation, groups);
  if (padding == "same") {
    for (size_t d = 0; d < n; ++d) {
      WICK_CHECK(p.stride[d] == 1, "{}: padding='same' is not supported for strided convolutions",
                 op);
      WICK_CHECK(p.dilation[d] > 0 && p.dilation[d] < INT32_MAX, "{}: dilation is out of range",
                 op);
      int64_t total = p.dilation[d] * (weight.size(2 + d) - 1);
      p.padding[d] = total / 2;
      p.padding_after[d] = total - total / 2;
    }
  } else {
    WICK_CHECK(padding == "valid", "{}: invalid padding string: '{}'", op, padding);
  }
  return convolveBatched(op, input, weight, bias, p);
}

constexpr const char* kConvNames[] = {"", "conv1d", "conv2d", "conv3d"};
constexpr const char* kTransposeNames[] = {"", "conv_transpose1d", "conv_transpose2d",
                                           "conv_transpose3d"};

template <size_t N>
Tensor conv(const Tensor& input, const Tensor& weight, const Tensor& bias, const DimVector& stride,
            const DimVector& padding, const DimVector& dilation, int64_t groups) {
  const char* op = kConvNames[N];
  return convolveBatched(op, input, weight, bias,
                         makeParams(op, N, stride, padding, dilation, groups));
}

template <size_t N>
Tensor convPadding(const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const DimVector& stride, const std::string& padding, const DimVector& dilation,
                   int64_t groups) {
  return convolveMode(kConvNames[N], input, weight, bias, stride, padding, dilation, groups, N);
}

template <size_t N>
Tensor convTranspose(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const DimVector& stride, const DimVector& padding,
                     const DimVector& output_padding, int64_t groups, const DimVector& dilation) {
  const char* op = kTransposeNames[N];
  ConvolutionParams p = makeParams(op, N, stride, padding, dilation, groups);
  p.transposed = true;
  p.output_padding = expandInts(op, "output_padding", output_padding, N);
  return convolveBatched(op, input, weight, bias, p);
}

size_t spatialDims(const char* op, const Tensor& weight) {
  WICK_CHECK(weight.dim() >= 3 && weight.dim() <= 5,
             "{}: expected a weight of 3 to 5 dimensions, got shape {}", op,
             formatInts(weight.sizes()));
  return static_cast<size_t>(weight.dim() - 2);
}

Tensor convolutionOp(const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const DimVector& stride, const DimVector& padding, const DimVector& dilation,
                     bool transposed, const DimVector& output_padding, int64_t groups) {
  const char* op = "convolution";
  size_t n = spatialDims(op, weight);
  ConvolutionParams p = makeParams(op, n, stride, padding, dilation, groups);
  p.transposed = transposed;
  if (transposed) p.output_padding = expandInts(op, "output_padding", output_padding, n);
  return convolveBatched(op, input, weight, bias, p);
}

// The flags choose among PyTorch's back ends.
template <class... Flags>
Tensor convolutionWith(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const DimVector& stride, const DimVector& padding, const DimVector& dilation,
                       bool transposed, const DimVector& output_padding, int64_t groups, Flags...) {
  return convolutionOp(input, weight, bias, stride, padding, dilation, transposed, output_padding,
                       groups);
}
Tensor convolutionMode(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const DimVector& stride, const std::string& padding,
                       const DimVector& dilation, int64_t groups) {
  const char* op = "_convolution_mode";
  return convolveMode(op, input, weight, bias, stride, padding, dilation, groups,
                      spatialDims(op, weight));
}

Tensor mkldnnConvolution(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         const DimVector& padding, const DimVector& stride,
                         const DimVector& dilation, int64_t groups) {
  return convolutionOp(input, weight, bias, stride, padding, dilation, false, {}, groups);
}

// The kernel size repeats what the weight's shape says.
template <size_t N>
Tensor slowConv(const Tensor& input, const Tensor& weight, const DimVector&, const Tensor& bias,
                const DimVector& stride, const DimVector& padding) {
  return conv<N>(input, weight, bias, stride, padding, DimVector{1}, 1);
}

template <size_t N>
Tensor slowConvDilated(const Tensor& input, const Tensor& weight, const DimVector&,
                       const Tensor& bias, const DimVector& stride, const DimVector& padding,
                       const DimVector& dilation) {
  return conv<N>(input, weight, bias, stride, padding, dilation, 1);
}

Tensor convDepthwise3d(const Tensor& input, const Tensor& weight, const DimVector&,
                       const Tensor& bias, const DimVector& stride, const DimVector& padding,
                       const DimVector& dilation) {
  int64_t channels = input.dim() == 5 ? input.size(1) : input.dim() == 4 ? input.size(0) : 0;
  WICK_CHECK(channels > 0, "conv_depthwise3d: expected 4- or 5-dimensional input, got {}",
             formatInts(input.sizes()));
  return conv<3>(input, weight, bias, stride, padding, dilation, channels);
}

template <size_t N>
Tensor slowConvTranspose(const Tensor& input, const Tensor& weight, const DimVector&,
                         const Tensor& bias, const DimVector& stride, const DimVector& padding,
                         const DimVector& output_padding, const DimVector& dilation) {
  return convTranspose<N>(input, weight, bias, stride, padding, output_padding, 1, dilation);
}

// Time, batch, channels; the weight is [kernel, C_in, C_out].
Tensor convTbc(const Tensor& self, const Tensor& weight, const Tensor& bias, int64_t pad) {
  WICK_CHECK(self.dim() == 3 && weight.dim() == 3 && bias.dim() == 1,
             "conv_tbc: expected input and weight of 3 dimensions and a bias of 1, got {}, {}, {}",
             self.describe(), weight.describe(), bias.describe());
  Tensor out = conv<1>(self.permute(DimVector{1, 2, 0}), weight.permute(DimVector{2, 1, 0}), bias,
                       DimVector{1}, DimVector{pad}, DimVector{1}, 1);
  return out.permute(DimVector{2, 0, 1}).contiguous();
}

Tensor conv2dFused(const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const Tensor& residual, const DimVector& stride, const DimVector& padding,
                   const DimVector& dilation, int64_t groups, const std::string& activation,
                   bool in_place) {
  const char* op = "conv2d_fused";
  ConvolutionParams p = makeParams(op, 2, stride, padding, dilation, groups);
  Activation act = activationFromName(activation);
  bool adds = residual.defined() && residual.dtype() == input.dtype() &&
              residual.dim() == input.dim() && input.dim() == 4 &&
              DimVector(residual.sizes()) == convolutionOutputSize(op, input, weight, bias, p);
  if (residual.defined() && !adds) {
    Tensor sum = conv2dFused(input, weight, bias, Tensor(), stride, padding, dilation, groups,
                             "none", false);
    return ops::addAndActivate(op, sum, residual, act, in_place);
  }
  if (input.dim() == 3) {
    return convolution(op, input.unsqueeze(0), weight, bias, p, Tensor(), act).squeeze(0);
  }
  return convolution(op, input, weight, bias, p, residual, act);
}

#define WICK_CONV_ARGS "Tensor input, Tensor weight, Tensor? bias, "
#define WICK_CONV_REST \
  "int[] stride, int[] padding, int[] dilation, bool transposed, int[] output_padding, int groups"

// What passes/training_layout.h puts in front of convolutions. While gradients are recorded its
// formula runs instead.
Tensor trainingLayout(const Tensor& self, const Tensor&) {
  return self;
}
Tensor channelsInnermost(const Tensor& self) {
  return self.contiguous(MemoryFormat::ChannelsLast);
}

constexpr OperatorRecord kConvolutionRecords[] = {
    {"wick::training_layout(Tensor(a) self, Tensor weight) -> Tensor(a)",
     WICK_KERNEL(trainingLayout), kNeutral, ops::shapes::likeFirst},
    {"wick::channels_innermost(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(channelsInnermost),
     kNoFlags, ops::shapes::likeFirst},
    {"aten::conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, int[1] "
     "padding=0, int[1] dilation=1, int groups=1) -> Tensor",
     WICK_KERNEL(conv<1>), kNeutral | kCastReduced | kEagerCastReduced, ops::shapes::convolution},
    {"aten::conv1d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, str "
     "padding=\"valid\", int[1] dilation=1, int groups=1) -> Tensor",
     WICK_KERNEL(convPadding<1>), kNeutral | kCastReduced | kEagerCastReduced,
     ops::shapes::convolution},
    {"aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] "
     "padding=0, int[2] dilation=1, int groups=1) -> Tensor",
     WICK_KERNEL(conv<2>), kNeutral | kCastReduced | kEagerCastReduced | kKeepsOrder,
     ops::shapes::convolution},
    {"aten::conv2d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, str "
     "padding=\"valid\", int[2] dilation=1, int groups=1) -> Tensor",
     WICK_KERNEL(convPadding<2>), kNeutral | kCastReduced | kEagerCastReduced | kKeepsOrder,
     ops::shapes::convolution},
    {"aten::conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, int[3] "
     "padding=0, int[3] dilation=1, int groups=1) -> Tensor",
     WICK_KERNEL(conv<3>), kNeutral | kCastReduced | kEagerCastReduced, ops::shapes::convolution},
    {"aten::conv3d.padding(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, str "
     "padding=\"valid\", int[3] dilation=1, int groups=1) -> Tensor",
     WICK_KERNEL(convPadding<3>), kNeutral | kCastReduced | kEagerCastReduced,
     ops::shapes::convolution},
    {"aten::conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
     "int[1] padding=0, int[1] output_padding=0, int groups=1, int[1] dilation=1) -> Tensor",
     WICK_KERNEL(convTranspose<1>), kNeutral | kCastReduced | kEagerCastFull,
     ops::shapes::convolution},
    {"aten::conv_transpose2d.input(Tensor input, Tensor weight, Tensor? bias=None, int[2] "
     "stride=1, int[2] padding=0, int[2] output_padding=0, int groups=1, int[2] dilation=1) -> "
     "Tensor",
     WICK_KERNEL(convTranspose<2>), kNeutral | kEagerCastFull, ops::shapes::convolution},
    {"aten::conv_transpose3d.input(Tensor input, Tensor weight, Tensor? bias=None, int[3] "
     "stride=1, int[3] padding=0, int[3] output_padding=0, int groups=1, int[3] dilation=1) -> "
     "Tensor",
     WICK_KERNEL(convTranspose<3>), kNeutral | kEagerCastFull, ops::shapes::convolution},
    {"aten::_convolution(" WICK_CONV_ARGS WICK_CONV_REST
     ", bool benchmark, bool deterministic, bool cudnn_enabled, bool allow_tf32) -> Tensor",
     WICK_KERNEL((convolutionWith<bool, bool, bool, bool>)),
     kOutForm | kOutAny | kNeutral | kCastReduced | kEagerCastUnknown, ops::shapes::convolution},
    {"aten::_convolution.deprecated(" WICK_CONV_ARGS WICK_CONV_REST
     ", bool benchmark, bool deterministic, bool cudnn_enabled) -> Tensor",
     WICK_KERNEL((convolutionWith<bool, bool, bool>)), kNeutral | kCastReduced | kEagerCastUnknown,
     ops::shapes::convolution},
    {"aten::_convolution_mode(" WICK_CONV_ARGS
     "int[] stride, str padding, int[] dilation, int groups) -> Tensor",
     WICK_KERNEL(convolutionMode), kNeutral, ops::shapes::convolution},
    {"aten::convolution(" WICK_CONV_ARGS WICK_CONV_REST ") -> Tensor", WICK_KERNEL(convolutionOp),
     kOutForm | kOutAny | kNeutral | kCastReduced, ops::shapes::convolution},
    {"aten::convolution_overrideable(" WICK_CONV_ARGS WICK_CONV_REST ") -> Tensor",
     WICK_KERNEL(convolutionOp), kOutForm | kNeutral, ops::shapes::convolution},
    {"aten::mkldnn_convolution(Tensor self, Tensor weight, Tensor? bias, int[] padding, int[] "
     "stride, int[] dilation, int groups) -> Tensor",
     WICK_KERNEL(mkldnnConvolution), kOutForm | kNeutral, ops::shapes::convolution},
    {"aten::thnn_conv2d(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias=None, int[2] "
     "stride=1, int[2] padding=0) -> Tensor",
     WICK_KERNEL(slowConv<2>), kOutForm | kOutSame | kNeutral},
    {"aten::_slow_conv2d_forward(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias, "
     "int[2] stride, int[2] padding) -> Tensor",
     WICK_KERNEL(slowConv<2>), kNeutral},
    {"aten::slow_conv3d(Tensor self, Tensor weight, int[3] kernel_size, Tensor? bias=None, int[3] "
     "stride=1, int[3] padding=0) -> Tensor",
     WICK_KERNEL(slowConv<3>), kOutForm | kOutSame | kNeutral},
    {"aten::slow_conv3d_forward(Tensor self, Tensor weight, int[3] kernel_size, Tensor? bias, "
     "int[3] stride, int[3] padding) -> Tensor",
     WICK_KERNEL(slowConv<3>), kNeutral},
    {"aten::slow_conv_dilated2d(Tensor self, Tensor weight, int[2] kernel_size, Tensor? bias=None, "
     "int[2] stride=1, int[2] padding=0, int[2] dilation=1) -> Tensor",
     WICK_KERNEL(slowConvDilated<2>), kOutForm | kNeutral},
    {"aten::slow_conv_dilated3d(Tensor self, Tensor weight, int[3] kernel_size, Tensor? bias=None, "
     "int[3] stride=1, int[3] padding=0, int[3] dilation=1) -> Tensor",
     WICK_KERNEL(slowConvDilated<3>), kOutForm | kNeutral},
    {"aten::conv_depthwise3d(Tensor self, Tensor weight, int[3] kernel_size, Tensor? bias, int[3] "
     "stride, int[3] padding, int[3] dilation) -> Tensor",
     WICK_KERNEL(convDepthwise3d), kOutForm | kNeutral},
    {"aten::slow_conv_transpose2d(Tensor self, Tensor weight, int[2] kernel_size, Tensor? "
     "bias=None, int[2] stride=1, int[2] padding=0, int[2] output_padding=0, int[2] dilation=1) -> "
     "Tensor",
     WICK_KERNEL(slowConvTranspose<2>), kOutForm | kOutSame | kNeutral},
    {"aten::slow_conv_transpose3d(Tensor self, Tensor weight, int[3] kernel_size, Tensor? "
     "bias=None, int[3] stride=1, int[3] padding=0, int[3] output_padding=0, int[3] dilation=1) -> "
     "Tensor",
     WICK_KERNEL(slowConvTranspose<3>), kOutForm | kNeutral},
    {"aten::conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
     WICK_KERNEL(convTbc), kOutForm | kNeutral | kCastReduced | kEagerCastReduced},
    {"wick::conv2d_fused(Tensor input, Tensor weight, Tensor? bias, Tensor? residual, int[] "
     "stride, int[] padding, int[] dilation, int groups, str activation, bool in_place) "
     "-> Tensor",
     WICK_KERNEL(conv2dFused), kNeutral, ops::shapes::fusedConvolution},
};

const RegisterOperators kConvolutionRegistered(kConvolutionRecords);

}  // namespace
}  // namespace wick
