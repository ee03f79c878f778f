#include "runtime/cuda/convolution.h"

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <vector>

#include "core/error.h"
#include "core/product_precision.h"
#include "runtime/cuda/dnn.h"
#include "runtime/ops/layers/util.h"

namespace wick::cuda {

namespace {

using dnn::Attribute;
using dnn::Descriptor;
using dnn::Kind;
using dnn::Plan;
using dnn::ValueType;

// Which of the three tensors of a convolution is computed from the other two.
enum class Wanted { Results, Images, Weights };

struct Problem {
  const char* op;
  Wanted wanted;
  Tensor images, weights, results;
  // One an entry a spatial dimension.
  DimVector padding, stride, dilation;
  // Behind the results; undefined where there is none.
  Tensor bias, residual;
  bool relu = false;
};

// Names of the tensors in a graph.
constexpr int64_t kImages = 1, kWeights = 2, kResults = 3, kBias = 4, kResidual = 5,
                  kIntermediate = 6;

int64_t alignmentOf(const Tensor& t) {
  const auto bits = reinterpret_cast<uintptr_t>(t.rawData());
  return std::min<int64_t>(16, bits == 0 ? 16 : int64_t{1} << std::countr_zero(bits));
}

void checkSizes(const char* op, const Tensor& t) {
  for (const int64_t n : t.sizes()) {
    WICK_CHECK(n <= INT32_MAX, "{}: a size of {} is too large", op, n);
  }
}

// What the choice of an engine depends on.
std::vector<int64_t> keyOf(const Problem& p) {
  std::vector<int64_t> key = {static_cast<int64_t>(p.wanted),
                              static_cast<int64_t>(p.images.dtype()),
                              static_cast<int64_t>(allowedTf32()), p.relu};
  const auto add = [&](IntSpan values) {
    key.push_back(static_cast<int64_t>(values.size()));
    key.insert(key.end(), values.begin(), values.end());
  };
  for (const Tensor* t : {&p.images, &p.weights, &p.results, &p.bias, &p.residual}) {
    key.push_back(t->defined() ? alignmentOf(*t) : 0);
    if (!t->defined()) continue;
    add(t->sizes());
    add(t->strides());
  }
  add(p.padding);
  add(p.stride);
  add(p.dilation);
  return key;
}

Descriptor convolutionOf(const Problem& p, int precision) {
  Descriptor convolution(p.op, Kind::Convolution);
  const auto dims = static_cast<int64_t>(p.padding.size());
  constexpr int kCrossCorrelation = 1;
  convolution.set(Attribute::ConvolutionPrecision, ValueType::DataType, 1, &precision);
  convolution.set(Attribute::ConvolutionMode, ValueType::ConvolutionMode, 1, &kCrossCorrelation);
  convolution.set(Attribute::ConvolutionDimensions, ValueType::Int, 1, &dims);
  convolution.set(Attribute::ConvolutionPaddingBefore, p.padding);
  convolution.set(Attribute::ConvolutionPaddingAfter, p.padding);
  convolution.set(Attribute::ConvolutionStrides, p.stride);
  convolution.set(Attribute::ConvolutionDilations, p.dilation);
  convolution.finalize();
  return convolution;
}

// The operation of the convolution itself. Its attributes follow each other: alpha, beta, the
// convolution, weights, images, results.
Descriptor callOf(const Problem& p, const Descriptor& convolution, bool wide,
                  const Descriptor& images, const Descriptor& weights, const Descriptor& results) {
  const bool forward = p.wanted == Wanted::Results, for_images = p.wanted == Wanted::Images;
  const Attribute first = forward      ? Attribute::ForwardAlpha
                          : for_images ? Attribute::ImagesAlpha
                                       : Attribute::WeightsAlpha;
  const auto at = [&](int offset) {
    return static_cast<Attribute>(static_cast<int>(first) + offset);
  };
  Descriptor call(p.op, forward      ? Kind::ConvolutionForward
                        : for_images ? Kind::ConvolutionImages
                                     : Kind::ConvolutionWeights);
  const float one = 1, zero = 0;
  const double wide_one = 1, wide_zero = 0;
  const ValueType type = wide ? ValueType::Double : ValueType::Float;
  call.set(at(0), type, 1, wide ? static_cast<const void*>(&wide_one) : &one);
  call.set(at(1), type, 1, wide ? static_cast<const void*>(&wide_zero) : &zero);
  call.set(at(2), convolution);
  call.set(at(3), weights);
  call.set(at(4), images);
  call.set(at(5), results);
  call.finalize();
  return call;
}

Descriptor pointwiseOf(const char* op, int mode, int precision, const Descriptor& x,
                       const Descriptor* b, const Descriptor& y) {
  Descriptor pointwise(op, Kind::Pointwise);
  pointwise.set(Attribute::PointwiseMode, ValueType::PointwiseMode, 1, &mode);
  pointwise.set(Attribute::PointwisePrecision, ValueType::DataType, 1, &precision);
  pointwise.finalize();
  Descriptor call(op, Kind::PointwiseCall);
  call.set(Attribute::PointwiseDescriptor, pointwise);
  call.set(Attribute::PointwiseX, x);
  if (b) call.set(Attribute::PointwiseB, *b);
  call.set(Attribute::PointwiseY, y);
  call.finalize();
  return call;
}

std::unique_ptr<Plan> planFor(const Problem& p, dnn::Handle& handle) {
  const char* op = p.op;
  const DType dtype = p.images.dtype();
  const int type = dnn::typeOf(op, dtype);
  const bool wide = dtype == DType::Double;
  const int precision = dnn::typeOf(op, wide ? DType::Double : DType::Float);
  const auto held = [&](int64_t id, const Tensor& t) {
    return dnn::describe(op, id, type, t.sizes(), t.strides(), alignmentOf(t), false);
  };
  // What lies between two operations is never in memory.
  int64_t next = kIntermediate;
  int steps = p.bias.defined() + p.residual.defined() + p.relu;
  const auto resultOfStep = [&] {
    if (steps-- == 0) return held(kResults, p.results);
    return dnn::describe(op, next++, precision, p.results.sizes(), p.results.strides(), 16, true);
  };
  const Descriptor convolution = convolutionOf(p, precision);
  const Descriptor images = held(kImages, p.images), weights = held(kWeights, p.weights);
  std::vector<Descriptor> tensors, operations;
  tensors.reserve(8);
  tensors.push_back(resultOfStep());
  operations.push_back(callOf(p, convolution, wide, images, weights, tensors.back()));
  const auto addTensor = [&](int64_t id, const Tensor& t) {
    const size_t x = tensors.size() - 1;
    tensors.push_back(held(id, t));
    tensors.push_back(resultOfStep());
    operations.push_back(
        pointwiseOf(op, dnn::kAdd, precision, tensors[x], &tensors[x + 1], tensors[x + 2]));
  };
  if (p.residual.defined()) addTensor(kResidual, p.residual);
  if (p.bias.defined()) addTensor(kBias, p.bias);
  if (p.relu) {
    const size_t x = tensors.size() - 1;
    tensors.push_back(resultOfStep());
    operations.push_back(
        pointwiseOf(op, dnn::kRelu, precision, tensors[x], nullptr, tensors[x + 1]));
  }
  std::vector<const Descriptor*> list;
  for (const Descriptor& d : operations) list.push_back(&d);
  // Float32 stays float32 unless somebody asked otherwise.
  return Plan::make(op, handle, list, isReducedFloat(dtype) || allowedTf32() != Tf32::Off);
}

// False where no engine is fit.
bool compute(const Problem& p) {
  for (const Tensor* t : {&p.images, &p.weights, &p.results}) checkSizes(p.op, *t);
  CudaDevice& device = enter(p.images.device());
  dnn::Handle& handle = dnn::handleOf(p.op, device);
  // Calls with other sizes have other plans; those of a program that never repeats itself go.
  constexpr size_t kMostPlans = 512;
  static auto& plans =
      *new std::map<std::pair<const CudaDevice*, std::vector<int64_t>>, std::unique_ptr<Plan>>;
  static std::mutex& mutex = *new std::mutex;  // of the plans of all devices
  std::lock_guard lock(mutex);
  std::lock_guard with_handle(handle.mutex);
  const auto key = std::pair(&std::as_const(device), keyOf(p));
  auto it = plans.find(key);
  if (it == plans.end()) {
    if (plans.size() >= kMostPlans) plans.clear();
    it = plans.emplace(key, planFor(p, handle)).first;
  }
  if (!it->second) return false;
  std::vector<int64_t> ids = {kImages, kWeights, kResults};
  std::vector<void*> pointers = {p.images.rawData(), p.weights.rawData(), p.results.rawData()};
  if (p.bias.defined()) {
    ids.push_back(kBias);
    pointers.push_back(p.bias.rawData());
  }
  if (p.residual.defined()) {
    ids.push_back(kResidual);
    pointers.push_back(p.residual.rawData());
  }
  it->second->run(p.op, handle, p.images.device(), ids, pointers);
  return true;
}

// cuDNN takes no other results than those whose sizes follow from the images'. Where a transposed convolution pads its output
// by its stride or more, there is room for further ones, which are zeros.
Tensor withRoom(const Tensor& results, const Problem& p) {
  DimVector sizes(results.sizes());
  for (size_t d = 0; d < p.padding.size(); ++d) {
    const int64_t window = p.dilation[d] * (p.weights.sizes()[d + 2] - 1) + 1;
    sizes[d + 2] = (p.images.sizes()[d + 2] + 2 * p.padding[d] - window) / p.stride[d] + 1;
  }
  return ops::paddedAtEnd(results, sizes).contiguous(results.suggestMemoryFormat());
}

DimVector widenedSize(IntSpan size) {
  DimVector sizes(size);
  if (sizes.size() == 3) sizes.insert(2, 1);
  return sizes;
}

void setParams(Problem& p, const ConvolutionParams& params) {
  p.padding = forImages(params.padding, 0);
  p.stride = forImages(params.stride, 1);
  p.dilation = forImages(params.dilation, 1);
  // How far apart the points of a kernel are means nothing where there is one; cuDNN 9.14 divides by zero while it looks for an
  // engine of such convolutions in three dimensions.
  for (size_t d = 0; d < p.dilation.size(); ++d) {
    if (p.weights.sizes()[d + 2] == 1) p.dilation[d] = 1;
  }
}

[[noreturn]] void throwNoEngine(const char* op, const Tensor& input, const Tensor& weight) {
  throwRuntimeError("{}: cuDNN has no engine for {} and {}", op, input.describe(),
                    weight.describe());
}

}  // namespace

Tensor asImages(const Tensor& t) {
  return t.dim() == 3 ? t.unsqueeze(2) : t;
}
DimVector forImages(const DimVector& v, int64_t before) {
  if (v.size() != 1) return v;
  return DimVector{before, v[0]};
}
MemoryFormat formatFor(const Tensor& given, bool channels_last) {
  return !channels_last || given.dim() == 3 ? MemoryFormat::Contiguous
         : given.dim() == 4                 ? MemoryFormat::ChannelsLast
                                            : MemoryFormat::ChannelsLast3d;
}

Tensor convolve(const char* op, const Tensor& given_input, const Tensor& given_weight,
                const ConvolutionParams& params, IntSpan output_size, bool channels_last) {
  dnn::typeOf(op, given_input.dtype());
  const MemoryFormat format = formatFor(given_input, channels_last);
  const Tensor input = asImages(given_input).contiguous(format);
  const Tensor weight = asImages(given_weight).contiguous(format);
  const Tensor out = Tensor::empty(widenedSize(output_size), input.dtype(), input.device(), format);
  const auto result = [&] { return given_input.dim() == 3 ? out.squeeze(2) : out; };
  if (out.numel() == 0) return result();
  if (input.numel() == 0 || weight.numel() == 0) {
    out.fill(0);
    return result();
  }
  // A transposed convolution is the gradient of the images of an ordinary one.
  Problem p{
      op, params.transposed ? Wanted::Images : Wanted::Results, {}, weight, {}, {}, {}, {}, {}, {}};
  p.images = params.transposed ? out : input;
  p.results = params.transposed ? input : out;
  setParams(p, params);
  if (params.transposed) p.results = withRoom(input, p);
  if (!compute(p)) throwNoEngine(op, input, weight);
  return result();
}

std::optional<Tensor> convolveAndFinish(const char* op, const Tensor& given_input,
                                        const Tensor& given_weight, const ConvolutionParams& params,
                                        IntSpan output_size, bool channels_last, const Tensor& bias,
                                        const Tensor& residual, bool relu) {
  if (params.transposed || given_input.dim() == 3 || given_input.numel() == 0 ||
      given_weight.numel() == 0 ||
      (residual.defined() && !std::ranges::equal(residual.sizes(), output_size))) {
    return std::nullopt;
  }
  dnn::typeOf(op, given_input.dtype());
  const MemoryFormat format = formatFor(given_input, channels_last);
  const Tensor input = given_input.contiguous(format), weight = given_weight.contiguous(format);
  Tensor out = Tensor::empty(output_size, input.dtype(), input.device(), format);
  if (out.numel() == 0) return std::nullopt;
  Problem p{op, Wanted::Results, input, weight, out, {}, {}, {}, {}, {}, relu};
  setParams(p, params);
  if (bias.defined()) {
    const int64_t channels = bias.numel();
    DimVector sizes(static_cast<size_t>(out.dim()), 1), strides(sizes.size(), channels);
    sizes[1] = channels;
    strides[1] = 1;
    const Tensor dense = bias.contiguous();
    p.bias = Tensor::fromStorage(dense.storage(), dense.dtype(), sizes, strides, dense.offset());
  }
  if (residual.defined()) p.residual = residual.contiguous(format);
  if (!compute(p)) return std::nullopt;
  return out;
}

Tensor convolutionWeightGradient(const char* op, const Tensor& given_grad,
                                 const Tensor& given_input, IntSpan weight_size,
                                 const ConvolutionParams& params) {
  const bool last =
      given_input.dim() >= 4 && given_input.suggestMemoryFormat() != MemoryFormat::Contiguous;
  const MemoryFormat format = formatFor(given_input, last);
  const Tensor input = asImages(given_input).contiguous(format);
  const Tensor grad = asImages(given_grad).contiguous(format);
  const Tensor out = Tensor::empty(widenedSize(weight_size), input.dtype(), input.device(), format);
  Problem p{op, Wanted::Weights, input, out, grad, {}, {}, {}, {}, {}};
  setParams(p, params);
  if (!compute(p)) throwNoEngine(op, input, grad);
  return (given_input.dim() == 3 ? out.squeeze(2) : out).contiguous();
}

}  // namespace wick::cuda
