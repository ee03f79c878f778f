#include "tools/device_work.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "core/device_backend.h"
#include "core/error_types.h"
#include "ir/call_layer.h"
#include "runtime/fusion/elements.h"
#include "runtime/ops/common_calls.h"

namespace wick::cli {
namespace {

double numbersOf(const Tensor& t) {
  return t.defined() ? static_cast<double>(t.numel()) : 0;
}

// What the formulas need of a call; arguments may be gone when it is over.
struct Shapes {
  double first = 0, second = 0;  // elements of the first two tensors
  double first_rows = 0;         // of the first, all but the last dimension
  double second_outer = 0;       // size of the second's first dimension
  double second_last = 0;        // and of its last
  double second_rows = 0;        // and of the one before
};

using Count = double (*)(const Shapes& shapes, double results);

double ofProduct(const Shapes& s, double results) {
  return s.first_rows > 0 ? 2 * results * s.first / s.first_rows : 0;
}
// The bias comes first.
double ofAddedProduct(const Shapes& s, double results) {
  return 2 * results * s.second_last;
}
double ofConvolution(const Shapes& s, double results) {
  return s.second_outer > 0 ? 2 * results * s.second / s.second_outer : 0;
}
double ofTransposedConvolution(const Shapes& s, double) {
  return s.second_outer > 0 ? 2 * s.first * s.second / s.second_outer : 0;
}
// Weights and their sums: queries against keys, then against values.
double ofAttention(const Shapes& s, double results) {
  const double keys = s.second_rows;
  return 2 * s.first * keys + 2 * results * keys;
}

// By the operator's name; the operators that these call are part of them.
const std::unordered_map<std::string, Count>& counts() {
  static const auto& all = *new std::unordered_map<std::string, Count>{
      {"aten::mm", ofProduct},
      {"aten::bmm", ofProduct},
      {"aten::mv", ofProduct},
      {"aten::dot", ofProduct},
      {"aten::matmul", ofProduct},
      {"aten::linear", ofProduct},
      {"wick::linear_fused", ofProduct},
      {"wick::mm_weight", ofProduct},
      {"aten::addmm", ofAddedProduct},
      {"aten::baddbmm", ofAddedProduct},
      {"aten::addmv", ofAddedProduct},
      {"aten::conv1d", ofConvolution},
      {"aten::conv2d", ofConvolution},
      {"aten::conv3d", ofConvolution},
      {"aten::_convolution", ofConvolution},
      {"aten::convolution", ofConvolution},
      {"wick::conv2d_fused", ofConvolution},
      {"aten::conv_transpose1d", ofTransposedConvolution},
      {"aten::conv_transpose2d", ofTransposedConvolution},
      {"aten::conv_transpose3d", ofTransposedConvolution},
      {"aten::scaled_dot_product_attention", ofAttention},
  };
  return all;
}

Shapes shapesOf(const LayerCall& call) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < call.num_args && tensors.size() < 3; ++i) {
    if (call.args[i].isTensor()) tensors.push_back(call.args[i].toTensor());
  }
  Shapes s;
  const auto last = [](const Tensor& t) {
    return t.dim() > 0 ? static_cast<double>(t.size(t.dim() - 1)) : 1;
  };
  if (!tensors.empty()) {
    s.first = numbersOf(tensors[0]);
    s.first_rows = last(tensors[0]) > 0 ? s.first / last(tensors[0]) : 0;
  }
  if (tensors.size() > 1) {
    const Tensor& t = tensors[1];
    s.second = numbersOf(t);
    s.second_outer = t.dim() > 0 ? static_cast<double>(t.size(0)) : 0;
    s.second_last = last(t);
    s.second_rows = t.dim() > 1 ? static_cast<double>(t.size(t.dim() - 2)) : 1;
  }
  return s;
}

class Counter : public CallLayer {
 public:
  void call(const LayerCall& call) override {
    const auto it = counts().find(call.op.schema().name());
    if (it == counts().end()) return callBelow(CallLayerSlot::Observe, call);
    const Shapes shapes = shapesOf(call);
    {
      const CallLayerScope alone(CallLayerSlot::Observe, nullptr);
      callBelow(CallLayerSlot::Observe, call);
    }
    if (call.num_results > 0 && call.results[0].isTensor()) {
      operations_ += it->second(shapes, numbersOf(call.results[0].toTensor()));
    }
  }
  double operations() const { return operations_; }

 private:
  double operations_ = 0;
};

// Adds the memory of all tensors in a value, each once.
class Memory {
 public:
  void add(const IValue& value) {
    allElements(value, [&](const IValue& v) {
      const Tensor t = v.isTensor() ? v.toTensor() : Tensor();
      if (t.defined() && t.isStrided() && seen_.insert(t.impl()).second) {
        bytes_ += numbersOf(t) * static_cast<double>(t.itemSize());
      }
      return true;
    });
  }
  double bytes() const { return bytes_; }

 private:
  std::unordered_set<const void*> seen_;
  double bytes_ = 0;
};

// The shortest of some runs, in seconds.
double secondsOf(Device device, const std::function<void()>& f) {
  using Clock = std::chrono::steady_clock;
  DeviceBackend& backend = deviceBackend(device.type);
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 6; ++i) {
    backend.synchronize(device);
    const Clock::time_point begin = Clock::now();
    for (int k = 0; k < 4; ++k) f();
    backend.synchronize(device);
    const double took = std::chrono::duration<double>(Clock::now() - begin).count() / 4;
    if (i > 0) best = std::min(best, took);  // the first chooses its way
  }
  return best;
}

}  // namespace

DeviceWork workOf(std::span<const IValue> given, const std::function<IValue()>& call) {
  Counter counter;
  Memory memory;
  for (const IValue& v : given) memory.add(v);
  {
    const CallLayerScope scope(CallLayerSlot::Observe, &counter);
    memory.add(call());
  }
  return {counter.operations(), memory.bytes()};
}

DeviceLimits limitsOf(Device device, DType dtype) {
  static const OperatorHandle kProduct{"aten::mm", ""};
  DeviceLimits limits;
  try {
    constexpr int64_t kBytes = int64_t{256} << 20;
    const Tensor from = Tensor::zeros({kBytes}, DType::Byte, device);
    const Tensor to = Tensor::zeros({kBytes}, DType::Byte, device);
    limits.bytes_per_s = 2.0 * kBytes / secondsOf(device, [&] { to.copyFrom(from); });
    constexpr int64_t kSize = 4096;
    // Random numbers: with zeros devices draw less power, and are faster.
    const Tensor a = ops::uniformInto(Tensor::zeros({kSize, kSize}, dtype, device));
    const double seconds = secondsOf(device, [&] { kProduct(a, a); });
    limits.operations_per_s = 2.0 * kSize * kSize * kSize / seconds;
  } catch (const Error&) {
    // What could not be measured stays zero.
  }
  return limits;
}

}  // namespace wick::cli
