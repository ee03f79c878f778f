#include "lazy/zero_results.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "ir/call_layer.h"
#include "lazy/infer.h"

namespace wick::lazy {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 24;

// Tensors of zeros for those without memory.
class Zeros {
 public:
  // Returns false for values without a twin: other devices and layouts, too many elements.
  bool add(const IValue& v, IValue& twin) {
    if (v.isTensor()) {
      const Tensor t = v.toTensor();
      return add(t, twin);
    }
    const bool list = v.isList() && std::ranges::any_of(
                                        v.elements(), [](const IValue& e) { return e.isTensor(); });
    if (!list) {
      twin = v.isDevice() && v.toDevice().type == DeviceType::Meta ? IValue(Device()) : v;
      return true;
    }
    std::vector<IValue> elements;
    for (const IValue& e : v.elements()) {
      if (!add(e, elements.emplace_back())) return false;
    }
    twin = IValue(makeList(v.toList().element_type, std::move(elements)));
    return true;
  }

  // Returns the result on the device "meta".
  IValue back(const IValue& result) const {
    if (result.isTensor()) return IValue(back(result.toTensor()));
    if (!result.isList()) return result;
    std::vector<IValue> elements;
    for (const IValue& e : result.elements()) elements.push_back(back(e));
    return IValue(makeList(result.toList().element_type, std::move(elements)));
  }

 private:
  bool add(const Tensor& t, IValue& twin) {
    if (!t.defined() || t.kind() != TensorKind::Dense) return false;
    if (t.device().isCpu()) {
      twin = IValue(t);
      return true;
    }
    if (t.device().type != DeviceType::Meta) return false;
    // The memory that strides reach may be far larger than the elements.
    int64_t reach = 1;
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (t.size(d) == 0) reach = 0;
      if (t.size(d) < 2 || reach == 0) continue;
      if (t.stride(d) > kMostElements || t.size(d) > kMostElements) return false;
      reach += (t.size(d) - 1) * t.stride(d);
      if (reach > kMostElements) return false;
    }
    elements_ += reach;
    if (elements_ > kMostElements) return false;
    const Tensor made = Tensor::emptyStrided(t.sizes(), t.strides(), t.dtype());
    const Storage& memory = *made.impl()->storage;
    if (memory.bytes() > 0) std::memset(memory.data(), 0, memory.bytes());
    pairs_.emplace_back(t, made);
    twin = IValue(made);
    return true;
  }

  Tensor back(const Tensor& t) const {
    if (!t.defined()) return t;
    for (const auto& [meta, twin] : pairs_) {
      if (twin.isSame(t)) return meta;
    }
    for (const auto& [meta, twin] : pairs_) {
      if (!twin.sharesStorage(t)) continue;
      return Tensor::fromStorage(meta.impl()->storage, t.dtype(), t.sizes(), t.strides(),
                                 meta.impl()->offset + t.impl()->offset);
    }
    return Tensor::emptyStrided(t.sizes(), t.strides(), t.dtype(), Device{DeviceType::Meta, -1});
  }

  std::vector<std::pair<Tensor, Tensor>> pairs_;
  int64_t elements_ = 0;
};

// Reads and writes by index tensors, whose sizes only masks decide.
bool isIndexed(const Operator& op, const CallFrame& frame) {
  const std::string_view name = op.schema().name();
  if (name != "aten::index" && name != "aten::index_put" && name != "aten::index_put_" &&
      name != "aten::_index_put_impl_" && name != "aten::_unsafe_index") {
    return false;
  }
  for (size_t i = 0; i < frame.num_args; ++i) {
    if (!frame.args[i].isList()) continue;
    for (const IValue& e : frame.args[i].elements()) {
      if (e.isTensor() &&
          (e.toTensor().dtype() == DType::Bool || e.toTensor().dtype() == DType::Byte)) {
        return false;
      }
    }
  }
  return true;
}

// Operators without a rule for sizes whose results have sizes that follow from those of the arguments.
bool isKnown(const Operator& op) {
  static constexpr std::string_view kNames[] = {
      "aten::sort",
      "aten::topk",
      "aten::kthvalue",
      "aten::median",
      "aten::uniform",
      "aten::normal",
      "aten::native_batch_norm",
      "aten::native_dropout",
      "aten::random",
      "aten::bernoulli",
      "aten::exponential",
      "aten::cumsum",
      "aten::cumprod",
      "aten::randperm",
      "aten::multinomial",
      "aten::mode",
      "aten::dropout",
      "aten::alpha_dropout",
      "aten::feature_dropout",
      "aten::feature_alpha_dropout",
      "aten::_native_multi_head_attention",
      "aten::_transformer_encoder_layer_fwd",

  };
  return std::ranges::find(kNames, std::string_view(op.schema().name())) != std::end(kNames);
}

bool computeOnZeros(CallFrame& frame) {
  const Operator& op = *frame.op;
  const std::span<const IValue> given(frame.args, frame.num_args);
  const bool written = op.writtenArguments() != 0;
  if (!written && !isIndexed(op, frame) && !isKnown(op) && !areSizesKnown(op, given)) return false;
  Zeros zeros;
  std::vector<IValue> twins(frame.num_args);
  for (size_t i = 0; i < frame.num_args; ++i) {
    if (!zeros.add(frame.args[i], twins[i])) return false;
  }
  std::vector<IValue> results(frame.num_results);
  {
    const CallLayerScope none(CallLayerSlot::Lazy, nullptr);
    op.callKernel(twins.data(), twins.size(), results.data(), results.size());
  }
  for (size_t i = 0; i < frame.num_results; ++i) frame.results[i] = zeros.back(results[i]);
  return true;
}

}  // namespace

ZeroResultsScope::ZeroResultsScope() : before_(exchangeAbsentKernel(computeOnZeros)) {}

ZeroResultsScope::~ZeroResultsScope() {
  exchangeAbsentKernel(before_);
}

}  // namespace wick::lazy
