#include "lazy/decided_results.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "ir/call_layer.h"
#include "lazy/stand_in.h"
#include "runtime/ops/call.h"

namespace wick::lazy {
namespace {

constexpr int64_t kMostElements = int64_t{1} << 24;

using Arguments = std::vector<IValue>;

Tensor filled(const DimVector& sizes, DType dtype, int64_t number) {
  return Tensor::full(sizes, static_cast<double>(number), dtype);
}

Tensor distinct(int64_t count, DType dtype) {
  static const OperatorHandle kArange("aten::arange", "");
  return kArange(count, static_cast<int64_t>(dtype), IValue(), IValue(), IValue());
}

bool isMask(const IValue& index) {
  if (!index.isTensor()) return false;
  const Tensor t = index.toTensor();
  return t.defined() && (t.dtype() == DType::Bool || t.dtype() == DType::Byte);
}

// Returns whether a tensor of these sizes fits into memory that nobody misses.
bool isSmall(IntSpan sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) {
    if (__builtin_mul_overflow(count, size, &count) || count > kMostElements) return false;
  }
  return true;
}

// Each of these returns arguments with elements, for which `count` elements are selected; nothing for
// calls that it does not know.

std::optional<Arguments> forNonzero(const CallFrame& frame, int64_t count) {
  const Tensor self = frame.args[0].toTensor();
  if (self.dim() == 0) return std::nullopt;
  DimVector sizes(static_cast<size_t>(self.dim()), 1);
  sizes[0] = count;
  return Arguments{IValue(filled(sizes, self.dtype(), 1))};
}

std::optional<Arguments> forMaskedSelect(const CallFrame& frame, int64_t count) {
  const Tensor self = frame.args[0].toTensor();
  return Arguments{IValue(filled(DimVector{count}, self.dtype(), 0)),
                   IValue(filled(DimVector{count}, DType::Bool, 1))};
}

std::optional<Arguments> forIndex(const CallFrame& frame, int64_t count) {
  if (!frame.args[1].isList()) return std::nullopt;
  // One element is enough in dimensions that indices stand for.
  DimVector sizes(frame.args[0].toTensor().sizes());
  // The sizes of the result, or larger ones.
  std::vector<int64_t> result;
  std::vector<IValue> positions;
  bool any = false;
  size_t dim = 0;
  for (const IValue& each : frame.args[1].elements()) {
    if (!each.isTensor() || !each.toTensor().defined()) {
      positions.push_back(each);
      ++dim;
      continue;
    }
    const Tensor index = each.toTensor();
    const bool mask = isMask(each);
    any |= mask;
    // A mask stands for the positions in each of its dimensions.
    const size_t rank = mask ? static_cast<size_t>(index.dim()) : 1;
    if (rank == 0 || dim + rank > sizes.size()) return std::nullopt;
    const DimVector selected = mask ? DimVector{count} : DimVector(index.sizes());
    if (!mask) result.insert(result.end(), selected.begin(), selected.end());
    for (size_t i = 0; i < rank; ++i, ++dim) {
      sizes[dim] = 1;
      if (!isSmall(selected)) return std::nullopt;
      positions.emplace_back(filled(selected, DType::Long, 0));
    }
  }
  result.push_back(count);
  result.insert(result.end(), sizes.begin(), sizes.end());
  if (!any || !isSmall(result)) return std::nullopt;
  return Arguments{IValue(filled(sizes, frame.args[0].toTensor().dtype(), 0)),
                   IValue(makeList(frame.args[1].toList().element_type, std::move(positions)))};
}

std::optional<Arguments> forUnique(const CallFrame& frame, int64_t count) {
  const Tensor self = frame.args[0].toTensor();
  if (self.dtype() == DType::Bool) return std::nullopt;
  Arguments made(frame.args, frame.args + frame.num_args);
  made[0] = IValue(distinct(count, self.dtype()));
  return made;
}

std::optional<Arguments> forUniqueConsecutive(const CallFrame& frame, int64_t count) {
  if (frame.num_args < 4 || !frame.args[3].isNone()) return std::nullopt;
  return forUnique(frame, count);
}

std::optional<Arguments> forBincount(const CallFrame& frame, int64_t count) {
  const Tensor self = frame.args[0].toTensor();
  Arguments made{IValue(distinct(count, self.dtype())), frame.args[1], IValue(int64_t{0})};
  if (made[1].isTensor() && made[1].toTensor().defined()) {
    made[1] = IValue(filled(DimVector{count}, made[1].toTensor().dtype(), 0));
  }
  return made;
}

std::optional<Arguments> forRepeats(const CallFrame& frame, int64_t count) {
  const Tensor repeats = frame.args[0].toTensor();
  if (repeats.dim() != 1 || !frame.args[1].isNone()) return std::nullopt;
  return Arguments{IValue(filled(DimVector{count}, repeats.dtype(), 1)), IValue()};
}

std::optional<Arguments> forRepeated(const CallFrame& frame, int64_t count) {
  const Tensor self = frame.args[0].toTensor(), repeats = frame.args[1].toTensor();
  if (repeats.dim() != 1 || !frame.args[3].isNone()) return std::nullopt;
  DimVector sizes{count};
  if (!frame.args[2].isNone()) {
    sizes = DimVector(self.sizes());
    const int64_t rank = self.dim(), dim = frame.args[2].toInt();
    if (dim < -rank || dim >= rank) return std::nullopt;
    sizes[static_cast<size_t>(dim < 0 ? dim + rank : dim)] = count;
    if (!isSmall(sizes)) return std::nullopt;
  }
  return Arguments{IValue(filled(sizes, self.dtype(), 0)),
                   IValue(filled(DimVector{count}, repeats.dtype(), 1)), frame.args[2], IValue()};
}

std::optional<Arguments> forSuppression(const CallFrame& frame, int64_t count) {
  const Tensor boxes = frame.args[0].toTensor(), scores = frame.args[1].toTensor();
  // Empty boxes overlap with none.
  return Arguments{IValue(filled(DimVector{count, 4}, boxes.dtype(), 0)),
                   IValue(filled(DimVector{count}, scores.dtype(), 0)), IValue(0.5)};
}

// Each of these returns the tensor whose nonzero elements are counted; an undefined one for others.

Tensor ofFirst(const CallFrame& frame) {
  return frame.args[0].toTensor();
}

Tensor ofMask(const CallFrame& frame) {
  const Tensor self = frame.args[0].toTensor(), mask = frame.args[1].toTensor();
  return std::ranges::equal(self.sizes(), mask.sizes()) ? mask : Tensor();
}

Tensor ofIndices(const CallFrame& frame) {
  Tensor found;
  for (const IValue& each : frame.args[1].elements()) {
    if (!each.isTensor() || !each.toTensor().defined()) continue;
    if (!isMask(each) || found.defined()) return {};
    found = each.toTensor();
  }
  return found;
}

struct Known {
  std::string_view name, overload;
  std::optional<Arguments> (*arguments)(const CallFrame&, int64_t);
  Tensor (*counted)(const CallFrame&) = nullptr;
  // A result that has the sizes of the first argument where a flag, by its position, asks for it.
  int alike = -1, flag = -1;
};

constexpr Known kKnown[] = {
    {"aten::nonzero", "", forNonzero, ofFirst},
    {"aten::argwhere", "", forNonzero, ofFirst},
    {"aten::nonzero_numpy", "", forNonzero, ofFirst},
    {"aten::where", "", forNonzero, ofFirst},
    {"aten::masked_select", "", forMaskedSelect, ofMask},
    {"aten::index", "Tensor", forIndex, ofIndices},
    {"aten::_unique", "", forUnique, nullptr, 1, 2},
    {"aten::_unique2", "", forUnique, nullptr, 1, 2},
    {"aten::unique_consecutive", "", forUniqueConsecutive, nullptr, 1, 1},
    {"aten::bincount", "", forBincount},
    {"aten::repeat_interleave", "Tensor", forRepeats},
    {"aten::repeat_interleave", "self_Tensor", forRepeated},
    {"torchvision::nms", "", forSuppression},
};

const Known* findKnown(const CallFrame& frame) {
  const FunctionSchema& schema = frame.op->schema();
  for (const Known& each : kKnown) {
    if (schema.name() == each.name && schema.overload() == each.overload) return &each;
  }
  return nullptr;
}

Tensor onMeta(const Tensor& t, Device device) {
  return Tensor::emptyStrided(t.sizes(), t.strides(), t.dtype(), device);
}

// Computes the result of a write by masks, which has the layout of the old tensor. Whether the
// elements have room for the new ones is a matter of them alone.
bool computeMaskedWrite(CallFrame& frame, DecidedSizes& sizes) {
  const Tensor self = frame.args[0].toTensor();
  if (!frame.args[1].isList() || std::ranges::none_of(frame.args[1].elements(), isMask) ||
      !sizes.next(Tensor())) {
    return false;
  }
  frame.results[0] = IValue(onMeta(self, self.device()));
  return true;
}

std::optional<std::vector<IValue>> resultsFor(const Known& known, const CallFrame& frame,
                                              int64_t count) {
  const CallLayerScope none(CallLayerSlot::Lazy, nullptr);
  std::optional<Arguments> arguments = known.arguments(frame, count);
  if (!arguments || arguments->size() != frame.num_args) return std::nullopt;
  std::vector<IValue> results(frame.num_results);
  frame.op->callKernel(arguments->data(), arguments->size(), results.data(), results.size());
  return results;
}

// Compares a result for `count` with one for `count + 1`, and notes the dimensions that have that size.
// Returns the result on the device; an undefined tensor where anything else differs.
Tensor compared(const Tensor& one, const Tensor& more, int64_t count, Device device,
                DecidedSizes& sizes) {
  if (!one.defined() || !more.defined() || one.dim() != more.dim()) return {};
  Tensor made = onMeta(one, device);
  for (int64_t i = 0; i < one.dim(); ++i) {
    if (one.size(i) == more.size(i)) continue;
    if (one.size(i) != count || more.size(i) != count + 1) return {};
    sizes.note(made, static_cast<size_t>(i));
  }
  return made;
}

}  // namespace

bool computeDecided(CallFrame& frame, DecidedSizes& sizes) {
  const Known* const known = findKnown(frame);
  if (!frame.args[0].isTensor() || !frame.args[0].toTensor().defined()) return false;
  if (frame.op->schema().name() == "aten::index_put") return computeMaskedWrite(frame, sizes);
  if (!known) return false;
  if (!known->arguments(frame, 1)) return false;
  const std::optional<int64_t> count =
      sizes.next(known->counted ? known->counted(frame) : Tensor());
  if (!count || *count >= kMostElements) return false;
  const auto one = resultsFor(*known, frame, *count), more = resultsFor(*known, frame, *count + 1);
  if (!one || !more) return false;
  const Device device = standInOf(frame);
  std::vector<IValue> made;
  for (size_t i = 0; i < frame.num_results; ++i) {
    const bool alike = known->alike == static_cast<int>(i) && frame.args[known->flag].isBool() &&
                       frame.args[known->flag].toBool();
    const IValue &a = (*one)[i], &b = (*more)[i];
    if (alike) {
      made.emplace_back(
          Tensor::empty(DimVector(frame.args[0].toTensor().sizes()), DType::Long, device));
    } else if (a.isTensor() && b.isTensor()) {
      made.emplace_back(compared(a.toTensor(), b.toTensor(), *count, device, sizes));
      if (!made.back().toTensor().defined()) return false;
    } else if (a.isList() && b.isList() && a.elements().size() == b.elements().size()) {
      std::vector<IValue> elements;
      for (size_t j = 0; j < a.elements().size(); ++j) {
        elements.emplace_back(compared(a.elements()[j].toTensor(), b.elements()[j].toTensor(),
                                       *count, device, sizes));
        if (!elements.back().toTensor().defined()) return false;
      }
      made.emplace_back(makeList(a.toList().element_type, std::move(elements)));
    } else {
      return false;
    }
  }
  std::ranges::move(made, frame.results);
  return true;
}

}  // namespace wick::lazy
