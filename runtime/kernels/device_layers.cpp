#include "runtime/kernels/device_layers.h"

#include <algorithm>
#include <atomic>

#include "core/device_backend.h"
#include "core/error.h"

namespace wick {

namespace {

std::atomic<DeviceLayers*> cuda_layers{nullptr}, other_layers{nullptr};  // of aot/

MemoryFormat formatOf(const Tensor& t) {
  return t.dim() >= 4 ? t.suggestMemoryFormat() : MemoryFormat::Contiguous;
}

// Results with the sizes, strides and dtypes that those of the CPU have.
class MetaLayers : public DeviceLayers {
 public:
  Tensor batchedProduct(const char*, const Tensor& a, const Tensor& b) override {
    return make({std::max(a.size(0), b.size(0)), a.size(1), b.size(2)}, a);
  }
  Tensor linearProduct(const char*, const Tensor& x, const Tensor& weight, const Tensor&,
                       const Epilogue&) override {
    return make({x.size(0), weight.size(0)}, x);
  }
  Tensor convolution(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias,
                     const ConvolutionParams& params, const Tensor&, Activation) override {
    const DimVector size = convolutionOutputSize(op, input, weight, bias, params);
    MemoryFormat format = formatOf(input);
    if (params.transposed) {
      if (!params.keeps_layout) format = MemoryFormat::Contiguous;
    } else if (format == MemoryFormat::Contiguous) {
      format = formatOf(weight);
    }
    return make(size, input, format);
  }
  pooling::MaxResult maxPool(const char*, const Tensor& x, const pooling::Axes& axes,
                             bool want_indices) override {
    pooling::MaxResult result{pooled(x, axes), Tensor()};
    if (want_indices) {
      result.indices = Tensor::emptyLike(result.values, DType::Long);
    }
    return result;
  }
  Tensor averagePool(const char*, const Tensor& x, const pooling::Axes& axes, bool,
                     std::optional<int64_t>) override {
    return pooled(x, axes);
  }
  Tensor convolutionWeightGradient(const char*, const Tensor&, const Tensor& input,
                                   IntSpan weight_size, const ConvolutionParams&) override {
    return make(weight_size, input);
  }
  void weightedRows(const char*, const Tensor&, const Tensor&, int64_t, int64_t,
                    const WeightedRows&) override {}
  void lstmStep(const LstmStep&) override {}
  void lstmStepGradient(const LstmStepGradient&) override {}
  Tensor pointwise(const ScalarDefinition& definition, std::span<const Operand>,
                   Device device) override {
    throwRuntimeError("{}: not available on device {}", definition.name, device.str());
  }

 private:
  static Tensor make(IntSpan sizes, const Tensor& like,
                     MemoryFormat format = MemoryFormat::Contiguous) {
    return Tensor::empty(sizes, like.dtype(), like.device(), format);
  }
  static Tensor pooled(const Tensor& x, const pooling::Axes& axes) {
    DimVector sizes{x.size(0), x.size(1)};
    for (int64_t d = 2; d < x.dim(); ++d) {
      sizes.push_back(axes[static_cast<size_t>(3 - x.dim() + d)].size());
    }
    return make(sizes, x, formatOf(x));
  }
};

}  // namespace

WeightedRows WeightedRows::transposed(int64_t rows) const {
  WeightedRows back;
  back.start.assign(static_cast<size_t>(rows) + 1, 0);
  for (const int64_t at : place) ++back.start[static_cast<size_t>(at) + 1];
  for (size_t i = 1; i < back.start.size(); ++i) back.start[i] += back.start[i - 1];
  back.place.resize(place.size());
  back.weight.resize(weight.size());
  CountedVector<int64_t> next(back.start);
  for (size_t row = 0; row + 1 < start.size(); ++row) {
    for (int64_t e = start[row]; e < start[row + 1]; ++e) {
      const auto from = static_cast<size_t>(e);
      const auto to = static_cast<size_t>(next[static_cast<size_t>(place[from])]++);
      back.place[to] = static_cast<int64_t>(row);
      if (!weight.empty()) back.weight[to] = weight[from];
    }
  }
  return back;
}

DeviceLayers& deviceLayers(const char* op, Device device) {
  static MetaLayers meta;
  if (device.type == DeviceType::Meta) return meta;
  auto& layers = device.isCuda() ? cuda_layers : other_layers;
  const bool none = device.isCpu() || device.type == kLazy;
  DeviceLayers* found = none ? nullptr : layers.load(std::memory_order_acquire);
  WICK_CHECK(found, "{}: not available on device {}", op, device.str());
  return *found;
}
void setDeviceLayers(DeviceType type, DeviceLayers* layers) {
  WICK_ASSERT(type != DeviceType::CPU && type != DeviceType::Meta && type != kLazy,
              "no layers are kept for this type of device");
  (type == DeviceType::CUDA ? cuda_layers : other_layers).store(layers, std::memory_order_release);
}

}  // namespace wick
