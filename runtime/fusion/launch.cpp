#include "runtime/fusion/launch.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/number_range.h"
#include "core/scalar.h"

namespace wick {

namespace {

int64_t bitsOf(const IValue& number, DType type) {
  int64_t bits = 0;
  const Scalar n = Scalar::fromIValue(number);
  dispatchAll(type, [&]<class T>() {
    T value = n.to<T>();
    std::memcpy(&bits, &value, std::min(sizeof value, sizeof bits));
  });
  return bits;
}

// Whether no two elements share memory, as far as steps that grow from dimension to dimension say.
bool hasDistinctElements(const TensorImpl& t) {
  std::array<size_t, loop::kMaxRank> order;
  size_t n = 0;
  for (size_t d = 0; d < t.sizes.size(); ++d) {
    if (t.sizes[d] != 1) order[n++] = d;
  }
  std::stable_sort(order.begin(), order.begin() + n,
                   [&](size_t a, size_t b) { return t.strides[a] < t.strides[b]; });
  int64_t reach = 1;
  for (size_t i = 0; i < n; ++i) {
    if (t.strides[order[i]] < reach) return false;
    reach = t.strides[order[i]] * t.sizes[order[i]];
  }
  return true;
}

// Whether some reduction has no result of no elements.
bool hasExtremum(const loop::Kernel& kernel) {
  return std::ranges::any_of(kernel.reductions, [](const loop::Reduction& r) {
    return r.op == loop::ReduceOp::Min || r.op == loop::ReduceOp::Max;
  });
}

// The access whose elements are most of the domain's, of those that read tensors.
size_t largestLoad(const loop::Kernel& kernel, const Launch& launch) {
  size_t largest = 0;
  int64_t most = 0;
  for (size_t a = 0; a < kernel.accesses.size() - kernel.stores.size(); ++a) {
    if (kernel.accesses[a].isIndex()) continue;
    int64_t size = 1;
    for (size_t d = 0; d < static_cast<size_t>(kernel.rank); ++d) {
      if (launch.touches[a].steps[d] != 0) size *= launch.sizes[d];
    }
    if (size > most) {
      most = size;
      largest = a;
    }
  }
  return largest;
}

}  // namespace

loop::TensorLayout layoutOf(const TensorImpl& t) {
  loop::TensorLayout layout;
  layout.rank = static_cast<int>(t.sizes.size());
  std::copy(t.sizes.begin(), t.sizes.end(), layout.sizes.begin());
  std::copy(t.strides.begin(), t.strides.end(), layout.strides.begin());
  layout.offset = t.offset;
  return layout;
}

loop::ArgumentInfo argumentInfo(const IValue& argument) {
  using Kind = loop::ArgumentInfo::Kind;
  if (argument.isTensor()) {
    const auto& t = static_cast<const TensorImpl&>(*argument.rawObject());
    return loop::ArgumentInfo::tensor(t.dtype, layoutOf(t));
  }
  loop::ArgumentInfo info;
  info.kind = argument.isInt() ? Kind::Int : argument.isBool() ? Kind::Bool : Kind::Float;
  if (argument.isInt()) info.number = argument.toInt();
  if (argument.isBool()) info.number = argument.toBool();
  return info;
}

void placeOutputs(const loop::Kernel& kernel, Launch& launch, const std::vector<Tensor>& outputs) {
  for (size_t a = 0; a < kernel.accesses.size(); ++a) {
    if (launch.output_of[a] < 0) continue;
    const Tensor& output = outputs[static_cast<size_t>(launch.output_of[a])];
    launch.touches[a].base =
        reinterpret_cast<char*>(reinterpret_cast<intptr_t>(output.rawData()) +
                                reinterpret_cast<intptr_t>(launch.touches[a].base));
  }
}

bool GroupCall::numbersFit(const loop::LoweredGroup& group) const {
  for (const loop::NumberCheck& check : group.number_checks) {
    const Scalar number = Scalar::fromIValue(*arguments_[check.argument]);
    if (!holdsNumber(check.dtype, number)) return false;
    if (check.number_only && std::isnan(number.toDouble())) return false;
  }
  return true;
}

bool GroupCall::follow(const loop::LoweredGroup& group) {
  followed_ = group.follow || !ordered_;
  tensors_.clear();
  if (followed_) {
    tensors_.reserve(arguments_.size() + group.steps.size());
    integers_.assign(arguments_.size(), 0);
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (arguments_[i]->isInt()) integers_[i] = arguments_[i]->toInt();
      tensors_.push_back(arguments_[i]->isTensor() ? layoutOf(tensor(i)) : loop::TensorLayout());
    }
    for (const loop::ShapeStep& step : group.steps) {
      if (!loop::followShape(step, integers_, tensors_)) return false;
    }
  }
  for (const loop::SizeCheck& check : group.checks) {
    const int64_t size =
        followed_ ? tensors_[check.tensor].sizes[check.dim] : tensor(check.tensor).sizes[check.dim];
    if (size != check.size) return false;
  }
  for (const loop::FormatCheck& check : group.formats) {
    const bool channels_last =
        loop::isChannelsLast(followed_ ? tensors_[check.tensor] : layoutOf(tensor(check.tensor)));
    if (channels_last != check.channels_last) return false;
  }
  return true;
}

// The layout of what a kernel reads, and where it begins.
bool GroupCall::placeOf(const loop::LoweredGroup& group, uint32_t source, Place& place) const {
  const loop::Source& from = group.sources[source];
  place.layout = followed_ ? tensors_[from.tensor] : layoutOf(tensor(from.tensor));
  place.output = from.output;
  place.base = nullptr;
  if (from.output >= 0) {
    place.layout.offset = 0;
    if (static_cast<size_t>(from.output) >= group.results) loop::layRowMajor(place.layout);
  }
  for (uint32_t step : from.path) {
    if (loop::applyView(group.views[step], integers_, tensors_, place.layout) !=
        loop::ViewOutcome::Done) {
      return false;
    }
  }
  if (from.argument >= 0) {
    place.base = static_cast<char*>(tensor(static_cast<size_t>(from.argument)).storage->data());
  }
  return true;
}

bool GroupCall::placeLoad(const loop::LoweredGroup& group, const loop::Kernel& kernel, size_t a,
                          Launch& launch) const {
  const loop::Access& access = kernel.accesses[a];
  Touch& touch = launch.touches[a];
  launch.output_of[a] = -1;
  if (access.isIndex()) return true;
  const auto item = static_cast<int64_t>(itemSize(access.dtype));
  const bool is_argument = access.argument < arguments_.size();
  Place place;
  const int64_t* sizes;
  const int64_t* strides;
  if (is_argument) {
    const TensorImpl& t = tensor(access.argument);
    touch.base = static_cast<char*>(t.storage->data()) + t.offset * item;
    sizes = t.sizes.data();
    strides = t.strides.data();
  } else {
    if (!placeOf(group, access.argument, place)) return false;
    launch.output_of[a] = place.output;
    // What is placed beyond an end begins where nothing is read.
    touch.base = reinterpret_cast<char*>(reinterpret_cast<intptr_t>(place.base) +
                                         place.layout.offset * item);
    sizes = place.layout.sizes.data();
    strides = place.layout.strides.data();
  }
  for (size_t d = 0; d < static_cast<size_t>(kernel.rank); ++d) {
    const int from = access.dims[d];
    if (from < 0) {
      touch.steps[d] = 0;
      continue;
    }
    if (launch.sizes[d] != sizes[from] && !(access.larger && sizes[from] > launch.sizes[d])) {
      // Sizes of one are never loaded along a dimension, so one says: not seen yet.
      if (followed_ || launch.sizes[d] != 1) return false;
      launch.sizes[d] = sizes[from];
    }
    touch.steps[d] = strides[from] * item;
  }
  return true;
}

bool GroupCall::placeStore(const loop::LoweredGroup& group, const loop::Kernel& kernel, size_t a,
                           Launch& launch) const {
  const loop::Access& access = kernel.accesses[a];
  const loop::OutputInfo& output = group.outputs[access.argument];
  // Row-major unless another layout is known.
  const bool given = followed_ && access.argument < group.results;
  const auto item = static_cast<int64_t>(itemSize(output.dtype));
  std::array<int64_t, loop::kMaxRank> strides;
  int64_t next = item;
  for (size_t i = output.rank; i-- > 0;) {
    strides[i] = given ? tensors_[output.tensor].strides[i] * item : next;
    if (output.dims[i] >= 0) next *= launch.sizes[static_cast<size_t>(output.dims[i])];
  }
  if (output.into >= 0) {
    const TensorImpl& written = tensor(static_cast<size_t>(output.into));
    for (size_t i = 0; i < output.rank; ++i) strides[i] = written.strides[i] * item;
  }
  if (output.view >= 0) {
    loop::TensorLayout viewed = tensors_[output.tensor];
    if (!given) loop::layRowMajor(viewed);
    if (loop::applyView(group.views[static_cast<size_t>(output.view)], integers_, tensors_,
                        viewed) != loop::ViewOutcome::Done) {
      return false;
    }
    for (size_t d = 0; d < static_cast<size_t>(viewed.rank); ++d) {
      strides[d] = viewed.strides[d] * item;
    }
  }
  Touch& touch = launch.touches[a];
  touch.base = nullptr;
  touch.steps.fill(0);
  launch.output_of[a] = static_cast<int32_t>(access.argument);
  for (size_t d = 0; d < static_cast<size_t>(kernel.rank); ++d) {
    if (access.dims[d] >= 0) touch.steps[d] = strides[static_cast<size_t>(access.dims[d])];
  }
  return true;
}

int64_t GroupCall::number(const loop::LoweredGroup& group, const loop::Number& number) const {
  const auto dim = static_cast<size_t>(number.dim);
  switch (number.kind) {
    case loop::Number::Kind::Size:
      return tensors_[number.argument].sizes[dim];
    case loop::Number::Kind::Stride: {
      Place place;
      if (!placeOf(group, number.argument, place)) return 0;
      return place.layout.strides[dim] * number.item_size;
    }
    default:
      return bitsOf(*arguments_[number.argument], number.type);
  }
}

bool GroupCall::place(const loop::LoweredGroup& group, size_t k, Launch& launch) const {
  const loop::Kernel& kernel = group.kernels[k];
  const size_t first_store = kernel.accesses.size() - kernel.stores.size();
  if (followed_) {
    launch.sizes = tensors_[group.domains[k]].sizes;
  } else {
    launch.sizes.fill(1);
  }
  for (size_t a = 0; a < first_store; ++a) {
    if (!placeLoad(group, kernel, a, launch)) return false;
  }
  for (size_t a = 0; a < first_store; ++a) {
    const loop::Access& access = kernel.accesses[a];
    if (!access.isIndex()) continue;
    Touch& touch = launch.touches[a];
    touch.base = nullptr;
    touch.steps.fill(0);
    int64_t next = 1;
    for (auto d = static_cast<size_t>(kernel.rank); d-- > 0;) {
      if (!access.varies(static_cast<int>(d))) continue;
      touch.steps[d] = next;
      next *= launch.sizes[d];
    }
  }
  for (size_t a = first_store; a < kernel.accesses.size(); ++a) {
    if (!placeStore(group, kernel, a, launch)) return false;
  }
  for (size_t i = 0; i < kernel.numbers.size(); ++i) {
    launch.numbers[i] = number(group, kernel.numbers[i]);
  }
  return true;
}

bool GroupCall::planWalk(const loop::LoweredGroup& group, size_t k, Launch& launch) const {
  const loop::Kernel& kernel = group.kernels[k];
  const auto isReduced = [&](int d) { return (kernel.reduced >> d & 1) != 0; };
  // What is stored for each point of an empty row may be needed all the same: it may not vary along
  // the dimension that is empty.
  const bool fills_rows = std::ranges::all_of(kernel.stores, &loop::Store::per_row);
  double elements = 1;
  for (int d = 0; d < kernel.rank; ++d) {
    const int64_t size = launch.sizes[static_cast<size_t>(d)];
    if (isReduced(d) && size == 0 && (device_.isCpu() || hasExtremum(kernel) || !fills_rows)) {
      return false;
    }
    elements *= static_cast<double>(std::max<int64_t>(size, 1));
  }
  // Operands may be expanded to more than any tensor has.
  if (elements > static_cast<double>(kMaxElements)) return false;
  std::array<int, loop::kMaxRank> order;
  for (int i = 0; i < kernel.rank; ++i) order[static_cast<size_t>(i)] = kernel.rank - 1 - i;
  const std::span<const Touch> touches(launch.touches.data(), kernel.accesses.size());
  if (followed_) {
    // As the result has them; rows as the largest tensor that is read, because they are read in
    // several passes.
    const size_t stores = kernel.accesses.size() - kernel.stores.size();
    const Touch& main = touches[kernel.reduced == 0 ? stores : largestLoad(kernel, launch)];
    const auto stepOf = [&](int d) {
      const int64_t step = std::abs(main.steps[static_cast<size_t>(d)]);
      return kernel.reduced != 0 && step == 0 ? INT64_MAX : step;
    };
    std::stable_sort(order.begin(), order.begin() + kernel.rank, [&](int a, int b) {
      if (isReduced(a) != isReduced(b)) return isReduced(a);
      return stepOf(a) < stepOf(b);
    });
  }
  wick::planWalk(kernel, launch.sizes, touches,
                 std::span<const int>(order.data(), static_cast<size_t>(kernel.rank)), launch.walk);
  // Compiled code does not look at the budget within a row.
  constexpr int64_t kMostPoints = 1 << 25;
  return kernel.reduced == 0 || launch.walk.pointsOfRow() <= kMostPoints || !currentBudget();
}

Tensor GroupCall::spareFor(const loop::OutputInfo& output, IntSpan sizes, uint64_t& dying) const {
  // Larger tensors whose rows are written, read and written again are faster in memory of their
  // own.
  constexpr size_t kCached = 8 << 20;
  for (uint32_t argument : output.over) {
    if ((dying >> argument & 1) == 0) continue;
    const TensorImpl& t = tensor(argument);
    const Storage& memory = *t.storage;
    // Where the interpreter has it; the argument is borrowed from there.
    constexpr size_t kHolders = 1;
    if (t.useCount() != kHolders || memory.useCount() != 1 || !memory.ownsMemory() ||
        !memory.writable() || t.requires_grad || t.dtype != output.dtype || t.offset != 0 ||
        memory.bytes() != static_cast<size_t>(t.numel) * itemSize(t.dtype) ||
        (output.waits && memory.bytes() > kCached) ||
        !std::equal(sizes.begin(), sizes.end(), t.sizes.begin(), t.sizes.end())) {
      continue;
    }
    bool same = followed_ || t.contiguous;
    for (size_t d = 0; followed_ && d < sizes.size(); ++d) {
      same = same && (sizes[d] == 1 || tensors_[output.tensor].strides[d] == t.strides[d]);
    }
    if (!same) continue;
    dying &= ~(uint64_t{1} << argument);
    t.storage->bumpVersion();
    return arguments_[argument]->toTensor();
  }
  return {};
}

DimVector GroupCall::sizesOf(const loop::OutputInfo& output,
                             std::span<const Launch> launches) const {
  DimVector sizes(output.rank, 1);
  for (size_t d = 0; d < output.rank; ++d) {
    if (output.view >= 0) {
      sizes[d] = tensors_[output.tensor].sizes[d];
    } else if (output.dims[d] >= 0) {
      sizes[d] = launches[output.kernel].sizes[static_cast<size_t>(output.dims[d])];
    }
  }
  return sizes;
}

bool GroupCall::mayWrite(const loop::LoweredGroup& group, std::span<const Launch> launches) const {
  for (size_t i = group.results - group.written; i < group.results; ++i) {
    const loop::OutputInfo& output = group.outputs[i];
    const TensorImpl& t = tensor(static_cast<size_t>(output.into));
    const DimVector sizes = sizesOf(output, launches);
    if (!t.storage->writable() || !hasDistinctElements(t) ||
        !std::equal(sizes.begin(), sizes.end(), t.sizes.begin(), t.sizes.end())) {
      return false;
    }
    for (size_t a = 0; a < arguments_.size(); ++a) {
      const bool other = a != static_cast<size_t>(output.into) && arguments_[a]->isTensor();
      if (other && tensor(a).storage->data() == t.storage->data()) return false;
    }
  }
  return true;
}

std::vector<Tensor> GroupCall::makeOutputs(const loop::LoweredGroup& group,
                                           std::span<const Launch> launches, uint64_t dying) const {
  std::vector<Tensor> outputs;
  outputs.reserve(group.outputs.size());
  for (const loop::OutputInfo& output : group.outputs) {
    if (output.into >= 0) dying &= ~(uint64_t{1} << output.into);
  }
  for (size_t i = 0; i < group.outputs.size(); ++i) {
    const loop::OutputInfo& output = group.outputs[i];
    if (output.into >= 0) {
      const auto argument = static_cast<size_t>(output.into);
      tensor(argument).storage->bumpVersion();
      outputs.push_back(arguments_[argument]->toTensor());
      continue;
    }
    const DimVector sizes = sizesOf(output, launches);
    // On other devices the points of a row run at the same time.
    const bool in_order = device_.isCpu() || group.kernels[output.kernel].reduced == 0;
    if (Tensor spare = in_order ? spareFor(output, sizes, dying) : Tensor(); spare.defined()) {
      outputs.push_back(std::move(spare));
    } else if (followed_ && i < group.results) {
      IntSpan strides(tensors_[output.tensor].strides.data(), output.rank);
      outputs.push_back(Tensor::emptyStrided(sizes, strides, output.dtype, device_));
    } else {
      outputs.push_back(Tensor::empty(sizes, output.dtype, device_));
    }
  }
  return outputs;
}

}  // namespace wick
