#include "lazy/zero_results.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "autograd/formula.h"
#include "autograd/tape.h"
#include "core/grad_mode.h"
#include "core/tensor.h"
#include "ir/call_layer.h"
#include "lazy/infer.h"
#include "lazy/stand_in.h"
#include "runtime/ops/call.h"

namespace wick::lazy {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 24;

// The elements of a twin. Some operators refuse most: an inverse zeros, say.
enum class Fill : uint8_t { kZeros, kOnes, kDiagonal, kTwice };

// Writes the elements; zeros are there.
void fill(const Tensor& t, Fill with) {
  static const OperatorHandle kFill("aten::fill_", "Scalar"), kDiagonal("aten::diagonal", ""),
      kSelect("aten::select", "int");
  if (with == Fill::kZeros || t.numel() == 0) return;
  const int64_t number = with == Fill::kTwice ? 2 : 1;
  if (with == Fill::kOnes || t.dim() == 0) {
    kFill(t, number);
  } else if (t.dim() == 1 && with == Fill::kTwice && !isFloating(t.dtype())) {
    kFill(t, int64_t{1});  // positions that begin with 1
  } else if (t.dim() == 1) {
    kFill(kSelect(t, int64_t{0}, int64_t{0}), number);
  } else {
    kFill(kDiagonal(t, int64_t{0}, int64_t{-2}, int64_t{-1}), number);
  }
}

// Tensors with memory for those without.
class Twins {
 public:
  // Results that are none of the twins lie on the device.
  Twins(Fill with, Device device) : fill_(with), device_(device) {}

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
    fill(made, fill_);
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
    return Tensor::emptyStrided(t.sizes(), t.strides(), t.dtype(), device_);
  }

  const Fill fill_;
  const Device device_;
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

// Operators without a rule for sizes that refuse most fills, or that no fill tells everything about,
// whose results have sizes that follow from those of the arguments.
bool isKnown(const Operator& op) {
  static constexpr std::string_view kNames[] = {"aten::sort",
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
                                                "aten::scatter",
                                                "aten::embedding_bag",
                                                "aten::_native_multi_head_attention",
                                                "aten::_transformer_encoder_layer_fwd",
                                                "torchvision::deform_conv2d",
                                                "torchvision::ps_roi_align",
                                                "torchvision::ps_roi_pool",
                                                "torchvision::roi_align",
                                                "torchvision::roi_pool"};
  return std::ranges::find(kNames, std::string_view(op.schema().name())) != std::end(kNames);
}

void addTensors(const IValue& value, std::vector<Tensor>& to) {
  if (value.isTensor() && value.toTensor().defined()) to.push_back(value.toTensor());
  if (!value.isList()) return;
  for (const IValue& each : value.elements()) addTensors(each, to);
}

// Operators whose results have sizes that elements decide. Fills show that too, but not for all sizes of
// arguments.
bool decideByElements(std::string_view name) {
  static constexpr std::string_view kPrefixes[] = {
      "aten::nonzero",           "aten::argwhere",  "aten::masked_select", "aten::unique",
      "aten::_unique",           "aten::bincount",  "aten::_ctc_loss",     "aten::segment_reduce",
      "aten::repeat_interleave", "aten::to_sparse", "aten::_pack_padded",  "aten::_pad_pack"};
  return std::ranges::any_of(kPrefixes,
                             [&](std::string_view each) { return name.starts_with(each); });
}

// Runs the operator on twins of the arguments. Returns nothing for arguments without twins. Throws what
// the operator throws.
std::optional<std::vector<IValue>> resultsOn(Fill with, const CallFrame& frame) {
  const CallLayerScope none(CallLayerSlot::Lazy, nullptr);
  Twins made(with, standInOf(frame));
  std::vector<IValue> twins(frame.num_args);
  for (size_t i = 0; i < frame.num_args; ++i) {
    if (!made.add(frame.args[i], twins[i])) return std::nullopt;
  }
  std::vector<IValue> results(frame.num_results);
  frame.op->callKernel(twins.data(), twins.size(), results.data(), results.size());
  for (IValue& each : results) each = made.back(each);
  return results;
}

// Returns whether both are dense tensors of one layout, or lists of such.
bool isAlike(const IValue& a, const IValue& b) {
  if (a.isTensor() && b.isTensor()) {
    const Tensor x = a.toTensor(), y = b.toTensor();
    if (!x.defined() || !y.defined()) return x.defined() == y.defined();
    return x.kind() == TensorKind::Dense && y.kind() == TensorKind::Dense &&
           x.dtype() == y.dtype() && std::ranges::equal(x.sizes(), y.sizes()) &&
           std::ranges::equal(x.strides(), y.strides());
  }
  return a.isList() && b.isList() && std::ranges::equal(a.elements(), b.elements(), isAlike);
}

// That of the innermost scope of the thread.
thread_local DecidedSizes* decided_sizes = nullptr;

}  // namespace

bool computeOnTwins(CallFrame& frame) {
  if (decided_sizes && computeDecided(frame, *decided_sizes)) return true;
  const std::string_view name = frame.op->schema().name();
  const Operator& op = *frame.op;
  const std::span<const IValue> given(frame.args, frame.num_args);
  const bool known =
      op.writtenArguments() != 0 || isIndexed(op, frame) || isKnown(op) || areSizesKnown(op, given);
  if (!known &&
      (decideByElements(name) || !(name.starts_with("aten::") || name.starts_with("wick::")))) {
    return false;
  }
  std::vector<std::vector<IValue>> found;
  std::exception_ptr error;
  for (const Fill with : {Fill::kZeros, Fill::kOnes, Fill::kDiagonal, Fill::kTwice}) {
    try {
      std::optional<std::vector<IValue>> results = resultsOn(with, frame);
      if (!results) return false;
      found.push_back(std::move(*results));
    } catch (const RuntimeError&) {
      if (!error) error = std::current_exception();
      continue;
    }
    if (known) break;
  }
  if (known && found.empty()) std::rethrow_exception(error);
  // Elements that decide about sizes decide otherwise for other elements.
  if (!known && found.size() < 2) return false;
  for (const std::vector<IValue>& other : found) {
    if (!known && !std::ranges::equal(found[0], other, isAlike)) return false;
  }
  std::ranges::move(found[0], frame.results);
  return true;
}

void connectResults(std::span<const IValue> arguments, std::span<IValue> results) {
  static const OperatorHandle kAbs("aten::abs", ""), kSum("aten::sum", ""),
      kAdd("aten::add", "Tensor");
  if (!gradEnabled()) return;
  std::vector<Tensor> all, sources;
  for (const IValue& each : arguments) addTensors(each, all);
  std::ranges::copy_if(all, std::back_inserter(sources), autograd::requiresGradient);
  if (sources.empty()) return;
  for (IValue& each : results) {
    WICK_CHECK(each.isTensor(), "a list of tensors with gradients that no rule tells");
    const Tensor before = each.toTensor();
    if (!before.defined() || !(isFloating(before.dtype()) || isComplex(before.dtype()))) continue;
    Tensor made = before;
    for (const Tensor& source : sources) made = kAdd(made, kSum(kAbs(source), IValue()));
    const bool alike =
        made.dtype() == before.dtype() && std::ranges::equal(made.strides(), before.strides()) &&
        std::ranges::none_of(
            all, [&](const Tensor& argument) { return argument.sharesStorage(before); });
    WICK_CHECK(alike, "a result with a gradient that no rule tells");
    each = IValue(made);
  }
}

namespace {

// Gradients of operators that are composed of others come from these, which were not called.
bool computeAbsent(CallFrame& frame) {
  const std::vector<IValue> given(frame.args, frame.args + frame.num_args);
  if (!computeOnTwins(frame)) return false;
  if (autograd::ruleOf(*frame.op).kind() == autograd::Rule::Kind::Others) {
    connectResults(given, {frame.results, frame.num_results});
  }
  return true;
}

}  // namespace

ZeroResultsScope::ZeroResultsScope(DecidedSizes* sizes)
    : before_(exchangeAbsentKernel(computeAbsent)),
      sizes_before_(std::exchange(decided_sizes, sizes)) {}

ZeroResultsScope::~ZeroResultsScope() {
  decided_sizes = sizes_before_;
  exchangeAbsentKernel(before_);
}

}  // namespace wick::lazy
