// A call goes through four steps: dtypes, shape, destination, loop.
//
// There is one loop for each compute dtype, over contiguous memory. An operand that is not
// contiguous or of another dtype is converted block by block into a small buffer in front of the
// loop, and a destination likewise behind it: a cast costs no pass over memory, and no loop exists
// twice for strides or mixed dtypes.
#include "runtime/kernels/pointwise.h"

#include "codegen/scalar/promotion.h"
#include "core/budget.h"
#include "core/memory_overlap.h"
#include "core/number_range.h"
#include "core/parallel.h"
#include "core/row_copy.h"
#include "core/stride_order.h"
#include "core/strided_layout.h"
#include "runtime/kernels/device_layers.h"

namespace wick {

namespace {

constexpr int64_t kBlock = 512;
// Elements after which the time that is left is looked at: some functions take microseconds for one.
constexpr int64_t kPiece = 8192;
constexpr int64_t kStepsAnElement = 8;  // of Pace, which looks after 65,536
constexpr int64_t kLargestItem = 16;
constexpr size_t kMaxOperands = kMaxScalarInputs + 1;

ComputeTypes chooseTypes(const ScalarDefinition& def, std::span<const Operand> operands) {
  DTypePromotion types;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (((def.mask_inputs | def.param_inputs) >> i & 1) != 0) continue;
    addTo(types, operands[i]);
  }
  bool accepted = false;
  const ComputeTypes chosen = chooseTypes(def, types, accepted);
  WICK_CHECK(accepted, "\"{}\" not implemented for '{}'", def.name, scalarTypeName(chosen.common));
  return chosen;
}

// One side of the loop: a destination or an operand.
struct Side {
  char* data = nullptr;
  DType dtype = DType::Float;   // in memory
  DType loop = DType::Float;    // in the loop
  int64_t item = 0;             // bytes in memory
  int64_t loop_item = 0;        // bytes in the loop
  RowKernel convert = nullptr;  // from memory to the loop; for the destination the other way
  alignas(16) char number[kLargestItem];  // a number operand's value, in the loop's dtype
  IntSpan sizes;
  IntSpan strides;
};

struct Dim {
  int64_t size = 1;
  std::array<int64_t, kMaxOperands> steps{};  // in bytes; the destination's first
};

struct Job {
  const ScalarDefinition::Entry* entry;
  size_t sides;
  std::array<Side, kMaxOperands> side;
  // Whether no operand changes while the destination is written.
  bool is_fresh = false;
};

using Places = std::array<char*, kMaxOperands>;
using Steps = std::array<int64_t, kMaxOperands>;

// Rows of one job with the same steps.
class RowRunner {
 public:
  RowRunner(const Job& job, const Steps& steps) : job_(job), steps_(steps) {
    for (size_t s = 0; s < job.sides; ++s) {
      const Side& side = job.side[s];
      staged_[s] = side.dtype != side.loop || steps[s] != side.loop_item;
      any_ |= staged_[s];
      if (s > 0 && staged_[s] && steps[s] == 0) spread_[s] = rowKernel(side.loop, side.loop);
    }
  }

  // Runs n elements from the given places.
  void run(const Places& at, int64_t n) {
    const void* inputs[kMaxScalarInputs] = {};
    for (size_t s = 1; s < job_.sides; ++s) inputs[s - 1] = staged_[s] ? bytes_[s] : at[s];
    if (!any_) {
      runAsItLies(at, inputs, n);
      return;
    }
    // An operand that stays the same along the row is spread over a block once.
    for (size_t s = 1; s < job_.sides; ++s) {
      if (!spread_[s] || isKept(s, at[s])) continue;
      const Side& side = job_.side[s];
      const char* one = at[s];
      alignas(16) char converted[kLargestItem];
      if (side.dtype != side.loop) {
        side.convert(converted, side.loop_item, at[s], 0, 1);
        one = converted;
      }
      spread_[s](bytes_[s], side.loop_item, one, 0, std::min(n, kBlock));
    }
    Pace pace;
    for (int64_t begin = 0; begin < n; begin += kBlock) {
      const int64_t count = std::min(kBlock, n - begin);
      pace.step(count * kStepsAnElement);
      for (size_t s = 1; s < job_.sides; ++s) {
        const char* from = at[s] + begin * steps_[s];
        if (!staged_[s]) {
          inputs[s - 1] = from;
        } else if (steps_[s] != 0 && !(n <= kBlock && isKept(s, from))) {
          const Side& side = job_.side[s];
          side.convert(bytes_[s], side.loop_item, from, steps_[s], count);
        }
      }
      char* to = at[0] + begin * steps_[0];
      if (!staged_[0]) {
        job_.entry->loop(to, inputs, count);
      } else {
        const Side& side = job_.side[0];
        job_.entry->loop(bytes_[0], inputs, count);
        side.convert(to, steps_[0], bytes_[0], side.loop_item, count);
      }
    }
  }

 private:
  // Where nothing is staged; between the pieces of a long row the time that is left is looked at.
  void runAsItLies(const Places& at, const void** inputs, int64_t n) const {
    for (int64_t begin = 0; begin < n; begin += kPiece) {
      if (begin > 0) checkBudget();
      for (size_t s = 1; s < job_.sides; ++s) inputs[s - 1] = at[s] + begin * steps_[s];
      job_.entry->loop(at[0] + begin * steps_[0], inputs, std::min(kPiece, n - begin));
    }
  }

  // Whether bytes_ holds an operand from there already, which it will from now on. All rows have
  // the same length.
  bool isKept(size_t s, const char* from) {
    if (job_.is_fresh && kept_[s] == from) return true;
    kept_[s] = from;
    return false;
  }

  const Job& job_;
  Steps steps_;
  std::array<bool, kMaxOperands> staged_{};       // whether elements go through bytes_
  std::array<const char*, kMaxOperands> kept_{};  // where what bytes_ holds lies
  std::array<RowKernel, kMaxOperands> spread_{};  // of operands that stay the same along a row
  bool any_ = false;
  alignas(64) char bytes_[kMaxOperands][kBlock * kLargestItem];
};

void runLinear(const Job& job, const Steps& steps, int64_t n) {
  parallelFor(n, kGrainSize, [&](int64_t begin, int64_t end) {
    Places at{};
    for (size_t s = 0; s < job.sides; ++s) at[s] = job.side[s].data + begin * steps[s];
    RowRunner(job, steps).run(at, end - begin);
  });
}

// dims[0] is the innermost.
void runDims(const Job& job, const std::vector<Dim>& dims) {
  const Dim& inner = dims[0];
  int64_t rows = 1;
  for (size_t d = 1; d < dims.size(); ++d) rows *= dims[d].size;
  if (rows == 1) {
    runLinear(job, inner.steps, inner.size);
    return;
  }
  parallelFor(rows, std::max<int64_t>(1, kGrainSize / inner.size), [&](int64_t begin, int64_t end) {
    RowRunner runner(job, inner.steps);
    Places at{};
    for (size_t s = 0; s < job.sides; ++s) at[s] = job.side[s].data;
    DimVector index(dims.size(), 0);
    int64_t rest = begin;
    for (size_t d = 1; d < dims.size(); ++d) {
      index[d] = rest % dims[d].size;
      rest /= dims[d].size;
      for (size_t s = 0; s < job.sides; ++s) at[s] += index[d] * dims[d].steps[s];
    }
    for (int64_t row = begin; row < end; ++row) {
      runner.run(at, inner.size);
      for (size_t d = 1; d < dims.size(); ++d) {
        const Dim& dim = dims[d];
        const bool wraps = ++index[d] == dim.size;
        const int64_t moves = wraps ? 1 - dim.size : 1;
        for (size_t s = 0; s < job.sides; ++s) at[s] += moves * dim.steps[s];
        if (!wraps) break;
        index[d] = 0;
      }
    }
  });
}

// The step of a side along dimension d of `rank` broadcast dimensions.
int64_t stepOf(const Side& side, size_t d, size_t rank, int64_t size) {
  size_t missing = rank - side.sizes.size();
  if (d < missing) return 0;
  if (side.sizes[d - missing] == 1 && size != 1) return 0;
  return side.strides[d - missing] * side.item;
}

// Dimensions from the innermost to the outermost, ordered by the steps of the first side that
// tells two of them apart, as results are laid out (core/strided_layout.h).
DimVector memoryOrder(const Job& job, IntSpan shape) {
  const size_t n = shape.size();
  DimVector order(n);
  orderDimensions(std::span<int64_t>(order.data(), n), [&](int64_t a, int64_t b) {
    for (size_t s = 0; s < job.sides; ++s) {
      int64_t x = stepOf(job.side[s], a, n, shape[a]);
      int64_t y = stepOf(job.side[s], b, n, shape[b]);
      if (x == 0 || y == 0) continue;
      if (x != y) return x < y ? -1 : 1;
      if (shape[a] > shape[b]) return 1;
    }
    return 0;
  });
  return order;
}

std::vector<Dim> planDims(const Job& job, IntSpan shape) {
  std::vector<Dim> dims;
  for (int64_t d : memoryOrder(job, shape)) {
    if (shape[d] == 1) continue;
    Dim dim;
    dim.size = shape[d];
    for (size_t s = 0; s < job.sides; ++s) {
      dim.steps[s] = stepOf(job.side[s], d, shape.size(), shape[d]);
    }
    bool merges = !dims.empty();
    for (size_t s = 0; merges && s < job.sides; ++s) {
      merges = dims.back().steps[s] * dims.back().size == dim.steps[s];
    }
    if (merges) {
      dims.back().size *= dim.size;
    } else {
      dims.push_back(dim);
    }
  }
  if (dims.empty()) dims.emplace_back();
  return dims;
}

void checkCast(DType result, DType out) {
  WICK_CHECK(canCast(result, out), "result type {} can't be cast to the desired output type {}",
             scalarTypeName(result), scalarTypeName(out));
}

// The operands' shape, and whether every tensor operand has it and lies row-major (zero-dim
// operands aside).
DimVector broadcastAll(std::span<const Operand> operands, bool& plain) {
  const Tensor* first = nullptr;
  plain = true;
  for (const Operand& o : operands) {
    if (!o.tensor || o.tensor->dim() == 0) continue;
    plain &= o.tensor->isContiguous();
    if (!first) {
      first = o.tensor;
    } else {
      plain &= std::ranges::equal(o.tensor->sizes(), first->sizes());
    }
  }
  if (!first) return {};
  DimVector shape(first->sizes());
  if (plain) return shape;
  for (const Operand& o : operands) {
    if (o.tensor && !std::ranges::equal(o.tensor->sizes(), IntSpan(shape))) {
      shape = broadcastShapes(shape, o.tensor->sizes());
    }
  }
  return shape;
}

Device commonDevice(std::span<const Operand> operands) {
  Device device;
  bool found = false;
  for (const Operand& o : operands) {
    if (!o.tensor) continue;
    // A zero-dim tensor on the CPU may join tensors of any device, as a number does.
    if (!found || (device.isCpu() && o.tensor->dim() > 0)) device = o.tensor->device();
    found = true;
  }
  for (const Operand& o : operands) {
    WICK_CHECK(!o.tensor || o.tensor->device() == device ||
                   (o.tensor->device().isCpu() && o.tensor->dim() == 0),
               "Expected all tensors to be on the same device, but found at least two devices, {} "
               "and {}!",
               device.str(), o.tensor->device().str());
  }
  return device;
}

void describeTensor(Side& side, const Tensor& t, DType loop) {
  side.data = static_cast<char*>(t.rawData());
  side.dtype = t.dtype();
  side.loop = loop;
  side.item = static_cast<int64_t>(t.itemSize());
  side.loop_item = static_cast<int64_t>(itemSize(loop));
  side.sizes = t.sizes();
  side.strides = t.strides();
}

void describeNumber(Side& side, const Scalar& n, DType common, DType loop) {
  dispatchAll(loop, [&]<class T>() {
    T value = n.to<T>();
    if constexpr (std::is_same_v<T, float>) {
      if (common == DType::Half) value = Half(value);
      if (common == DType::BFloat16) value = BFloat16(value);
    }
    std::memcpy(side.number, &value, sizeof value);
  });
  side.data = side.number;
  side.dtype = side.loop = loop;
  side.item = side.loop_item = static_cast<int64_t>(itemSize(loop));
}

// Whether the operand is a number that says something of the result's layout.
bool isBroadcastNumber(const ScalarDefinition& def, std::span<const Operand> operands, size_t i) {
  return !operands[i].tensor && (def.bare_inputs >> i & 1) == 0;
}

// Whether the strides of all dimensions, also of those with one element, are row-major ones.
bool hasRowMajorStrides(const Tensor& t) {
  int64_t expected = 1;
  for (size_t d = t.sizes().size(); d-- > 0;) {
    if (t.strides()[d] != expected) return false;
    expected *= std::max<int64_t>(t.sizes()[d], 1);
  }
  return true;
}

// Whether contiguous operands of one shape, or without dimensions, have a row-major result. Dimensions of one element may lie
// otherwise next to a number.
bool isResultRowMajor(const ScalarDefinition& def, std::span<const Operand> operands) {
  bool any_number = false, all_row_major = true;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor* const t = operands[i].tensor;
    any_number |= t ? t->dim() == 0 : isBroadcastNumber(def, operands, i);
    all_row_major &= !t || t->dim() == 0 || hasRowMajorStrides(*t);
  }
  return all_row_major || !any_number;
}

// Refuses operands that partly overlap the destination; those for which it cannot be told are
// replaced by copies, kept in `copies`.
void separate(const Tensor& out, std::span<Operand> operands, std::vector<Tensor>& copies) {
  copies.reserve(operands.size());
  for (Operand& o : operands) {
    if (!o.tensor) continue;
    switch (overlapOf(out, *o.tensor)) {
      case Overlap::None:
      case Overlap::Full:
        break;
      case Overlap::Partial:
        checkNoPartialOverlap(out, *o.tensor);
        break;
      case Overlap::Unknown:
        copies.push_back(o.tensor->clone(MemoryFormat::Contiguous));
        o.tensor = &copies.back();
        break;
    }
  }
}

// Whether the result may be written over an operand that nobody reads again: whether nobody else
// has its memory, and a new tensor for the result would look the same.
bool replaces(const Tensor& spare, std::span<const Operand> operands, IntSpan shape, bool row_major,
              DType result) {
  const TensorImpl& t = *spare.impl();
  const Storage& memory = *t.storage;
  if (t.useCount() != 1 || memory.useCount() != 1 || !memory.ownsMemory() || !memory.writable() ||
      t.dtype != result || t.requires_grad || t.is_conj || !t.contiguous ||
      !std::ranges::equal(spare.sizes(), shape) ||
      memory.bytes() != static_cast<size_t>(t.numel) * itemSize(result)) {
    return false;
  }
  if (row_major) return hasRowMajorStrides(spare);
  // The first operand decides the order in memory, except for dimensions of one element.
  return operands[0].tensor == &spare && std::ranges::find(shape, 1) == shape.end();
}

// Whether a destination is one of the operands: an in-place form.
bool isOperand(const Tensor& out, std::span<const Operand> operands) {
  for (const Operand& o : operands) {
    if (o.tensor && o.tensor->isSame(out)) return true;
  }
  return false;
}

// The usual call: row-major tensors of one shape and dtype, too small for threads, that the loop
// takes as they are. Undefined when it is another one.
Tensor pointwiseAlike(const ScalarDefinition& def, std::span<const Operand> operands,
                      const Tensor* spare) {
  if ((def.mask_inputs | def.param_inputs) != 0) return {};
  const Tensor* first = operands[0].tensor;
  const void* inputs[kMaxScalarInputs] = {};
  for (size_t i = 0; i < operands.size(); ++i) {
    const Tensor* t = operands[i].tensor;
    if (!t || !t->defined()) return {};
    const TensorImpl& impl = *t->impl();
    if (!impl.contiguous || impl.dtype != first->dtype() || impl.numel != first->numel() ||
        !impl.storage->device().isCpu() || !std::ranges::equal(t->sizes(), first->sizes())) {
      return {};
    }
    inputs[i] = t->rawData();
  }
  const DType dtype = first->dtype();
  const ScalarDefinition::Entry& entry = def.entry(dtype);
  if (isReducedFloat(dtype) || !entry.loop || first->numel() > kGrainSize ||
      (def.promotion == Promotion::Float && isIntegral(dtype, true))) {
    return {};
  }
  Tensor out;
  if (spare && replaces(*spare, operands, first->sizes(), true, entry.result)) {
    out = *spare;
    out.storage()->bumpVersion();
  } else {
    out = Tensor::empty(first->sizes(), entry.result);
  }
  if (first->numel() > 0) entry.loop(out.rawData(), inputs, first->numel());
  return out;
}

}  // namespace

Tensor emptyResult(const ScalarDefinition& def, std::span<const Operand> operands, IntSpan shape,
                   DType dtype, Device device) {
  checkedNumel(shape);  // so that no stride overflows
  std::array<StridedShape, kMaxScalarInputs> layouts;
  size_t count = 0;
  bool any_number = false;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (const Tensor* const t = operands[i].tensor) {
      layouts[count++] = {t->sizes(), t->strides()};
    } else {
      any_number |= isBroadcastNumber(def, operands, i);
    }
  }
  const DimVector strides = resultStrides(shape, std::span(layouts.data(), count), any_number);
  return Tensor::emptyStrided(shape, strides, dtype, device);
}

DType resultType(std::span<const Operand> operands) {
  DTypePromotion type;
  for (const Operand& o : operands) addTo(type, o);
  return type.get();
}

void checkWritable(const char* op, const Tensor& out) {
  WICK_CHECK(out.storage()->writable(), "{}: the destination's memory is read-only", op);
  checkNoInternalOverlap(out);
}

Tensor distinctElements(const Tensor& t) {
  if (t.numel() == 0) return t;
  Tensor out = t;
  for (int64_t d = 0; d < t.dim(); ++d) {
    if (t.strides()[d] == 0) out = out.narrow(d, 0, 1);
  }
  return out;
}

Tensor pointwise(const ScalarDefinition& def, std::span<const Operand> operands,
                 const Tensor* destination, const Tensor* spare) {
  WICK_ASSERT(operands.size() == def.num_inputs, "{}: {} operands for {} inputs", def.name,
              operands.size(), def.num_inputs);
  if (!destination) {
    Tensor out = pointwiseAlike(def, operands, spare);
    if (out.defined()) return out;
  }
  std::array<Operand, kMaxScalarInputs> list = {Scalar(), Scalar(), Scalar(), Scalar(), Scalar()};
  std::copy(operands.begin(), operands.end(), list.begin());
  std::span<Operand> inputs(list.data(), operands.size());
  for (const Operand& o : inputs) {
    WICK_CHECK(!o.tensor || o.tensor->defined(), "{}: expected a Tensor, got None", def.name);
  }

  const ComputeTypes dtypes = chooseTypes(def, inputs);
  Device device = commonDevice(inputs);
  bool plain = false;
  DimVector shape = broadcastAll(inputs, plain);

  std::vector<Tensor> copies;
  if (destination) {
    checkCast(dtypes.result, destination->dtype());
    if (!std::ranges::equal(destination->sizes(), IntSpan(shape))) {
      WICK_CHECK(!isOperand(*destination, inputs),
                 "output with shape {} doesn't match the broadcast shape {}",
                 formatInts(destination->sizes()), formatInts(shape));
      destination->resize(shape);
    }
    checkWritable(def.name, *destination);
    separate(*destination, inputs, copies);
    // The result is rounded to its own dtype before it is widened to the destination's.
    if (isReducedFloat(dtypes.result) && destination->dtype() != dtypes.result) {
      destination->copyFrom(pointwise(def, inputs, nullptr));
      return *destination;
    }
  }

  for (size_t i = 0; i < inputs.size(); ++i) {
    if ((def.param_inputs >> i & 1) == 0 || inputs[i].tensor) continue;
    const bool mask = (def.mask_inputs >> i & 1) != 0;
    checkFits(inputs[i].number, isReducedFloat(dtypes.common) ? dtypes.common
                                : mask                        ? DType::Bool
                                                              : dtypes.compute);
  }
  const bool has_layers = !device.isCpu() && device.type != DeviceType::Meta;
  if (has_layers && checkedNumel(shape) > 0) {
    Tensor result = deviceLayers(def.name, device).pointwise(def, inputs, device);
    if (!destination) return result;
    destination->copyFrom(result);
    return *destination;
  }

  Job job{&def.entry(dtypes.compute), inputs.size() + 1, {}, !destination};
  std::array<Tensor, kMaxScalarInputs> rounded;
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool mask = (def.mask_inputs >> i & 1) != 0;
    bool param = (def.param_inputs >> i & 1) != 0;
    DType loop = mask ? DType::Bool : dtypes.compute;
    Side& side = job.side[i + 1];
    if (!inputs[i].tensor) {
      describeNumber(side, inputs[i].number, param || mask ? loop : dtypes.common, loop);
      continue;
    }
    const Tensor* t = inputs[i].tensor;
    if (!mask && !param && isReducedFloat(dtypes.common) && t->dtype() != dtypes.common) {
      rounded[i] = t->to(dtypes.common);
      t = &rounded[i];
      plain &= t->dim() == 0 || t->isContiguous();
    }
    describeTensor(side, *t, loop);
  }

  Tensor out;
  const bool row_major = plain && isResultRowMajor(def, inputs);
  if (destination) {
    out = *destination;
  } else if (spare && replaces(*spare, inputs, shape, row_major, dtypes.result)) {
    out = *spare;
    out.storage()->bumpVersion();
  } else if (row_major) {
    out = Tensor::empty(shape, dtypes.result, device);
  } else {
    out = emptyResult(def, inputs, shape, dtypes.result, device);
  }
  if (out.numel() == 0 || device.type == DeviceType::Meta) return out;
  WICK_CHECK(device.isCpu() && out.device().isCpu(), "{}: no kernel for device {}", def.name,
             device.str());
  describeTensor(job.side[0], out, dtypes.written);
  for (size_t s = 0; s < job.sides; ++s) {
    Side& side = job.side[s];
    side.convert = s == 0 ? rowKernel(side.dtype, side.loop) : rowKernel(side.loop, side.dtype);
  }

  if (plain && out.isContiguous()) {
    Steps steps{};
    for (size_t s = 0; s < job.sides; ++s) {
      const Side& side = job.side[s];
      steps[s] = side.sizes.empty() && out.numel() > 1 ? 0 : side.item;
    }
    runLinear(job, steps, out.numel());
  } else {
    runDims(job, planDims(job, shape));
  }
  return out;
}

}  // namespace wick
