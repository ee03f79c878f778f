#include "codegen/loop/kernel_builder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"

namespace wick::loop {

namespace {

Map noMap() {
  Map map;
  map.fill(-1);
  return map;
}

}  // namespace

bool Asked::isIndexed() const {
  return std::find(map.begin(), map.end(), kAtIndex) != map.end();
}

KernelBuilder::KernelBuilder(Common& common, const Value* domain, uint32_t reduced,
                             std::set<const Value*> own)
    : common_(common), analysis_(common.analysis), domain_(domain), own_(std::move(own)) {
  kernel_.expression = Expression(common.functions);
  kernel_.rank = analysis_.of(domain).shape.rank;
  for (int k = 0; k < kernel_.rank; ++k) {
    if (reduced >> k & 1) kernel_.reduced |= 1u << (kernel_.rank - 1 - k);
  }
}

Map KernelBuilder::identity(int rank) const {
  Map map = noMap();
  for (int k = 0; k < rank; ++k) map[static_cast<size_t>(k)] = domain(k);
  return map;
}
Map KernelBuilder::kept() const {
  Map map = noMap();
  size_t to = 0;
  for (int d = kernel_.rank - 1; d >= 0; --d) {
    if ((kernel_.reduced >> d & 1) == 0) map[to++] = static_cast<int8_t>(d);
  }
  return map;
}

std::optional<Map> KernelBuilder::mapOf(const Value* output) const {
  const TensorLayout& to = analysis_.layoutOf(output);
  const TensorLayout& from = analysis_.layoutOf(domain_);
  auto fits = [&](const Map& map) {
    for (int k = 0; k < to.rank; ++k) {
      const int d = map[static_cast<size_t>(k)];
      const int64_t size = to.sizes[static_cast<size_t>(to.rank - 1 - k)];
      if (size != 1 && (d < 0 || from.sizes[static_cast<size_t>(d)] != size)) return false;
    }
    return true;
  };
  if (to.rank == kernel_.rank && fits(identity(to.rank))) return identity(to.rank);
  const int left = kernel_.rank - __builtin_popcount(kernel_.reduced);
  if (to.rank == left && fits(kept())) return kept();
  return std::nullopt;
}

void KernelBuilder::store(const Value* output, uint32_t number, const Map& map) {
  const ValueInfo& info = analysis_.of(output);
  root_ = output;
  const ScalarExpr value = at(output, map);
  Access access{number, info.dtype, {}};
  access.dims.fill(-1);
  for (int k = 0; k < info.shape.rank; ++k) {
    if (info.shape.isOne(k)) continue;
    auto d = static_cast<size_t>(map[static_cast<size_t>(k)]);
    access.dims[d] = static_cast<int8_t>(info.shape.rank - 1 - k);
  }
  store(value, access);
}
int32_t KernelBuilder::storeReshaped(const Value* output, uint32_t number) {
  const ValueInfo& to = analysis_.of(domain_);
  root_ = output;
  ViewStep reshape;
  reshape.kind = ViewStep::Kind::ReshapeAs;
  reshape.tensors = {to.tensor};
  const uint32_t step = stepOf(reshape, nullptr);
  Access access{number, analysis_.of(output).dtype, {}};
  access.dims.fill(-1);
  for (int k = 0; k < kernel_.rank; ++k) {
    const auto d = static_cast<size_t>(domain(k));
    if (!to.shape.isOne(k)) access.dims[d] = static_cast<int8_t>(d);
  }
  store(at(output, Asked{identity(kernel_.rank), {step}, to.shape}), access);
  return static_cast<int32_t>(step);
}
void KernelBuilder::store(ScalarExpr value, Access access) {
  bool per_row = kernel_.reduced != 0;
  for (int d = 0; d < kernel_.rank; ++d) {
    per_row &= !access.varies(d) || (kernel_.reduced >> d & 1) == 0;
  }
  stored_.push_back(access);
  kernel_.stores.push_back({value, static_cast<uint32_t>(stored_.size() - 1), per_row});
}

Kernel KernelBuilder::take() {
  for (Store& store : kernel_.stores) {
    store.access += static_cast<uint32_t>(kernel_.accesses.size());
  }
  kernel_.accesses.insert(kernel_.accesses.end(), stored_.begin(), stored_.end());
  return std::move(kernel_);
}

// Whether the value lies in memory, so that the kernel reads it.
bool KernelBuilder::isLoaded(const Value* v) const {
  const ValueInfo& info = analysis_.of(v);
  return isKept(v) || (info.is_tensor && info.root >= 0);
}
bool KernelBuilder::isKept(const Value* v) const {
  return v != root_ && common_.kept.count(v) != 0 && own_.count(v) == 0;
}

ScalarExpr KernelBuilder::at(const Value* v, Asked asked) {
  const ValueInfo& info = analysis_.of(v);
  if (!asked.path.empty() && info.shape.isSingle()) {
    // The one element is there wherever it is asked for.
    asked = Asked{noMap(), {}, {}, {}};
  }
  if (asked.path.empty()) asked.shape = info.shape;
  // What does not vary along a dimension is the same wherever that lies.
  for (int k = 0; k < kMaxRank; ++k) {
    if (asked.shape.isOne(k)) asked.map[static_cast<size_t>(k)] = -1;
  }
  if (!asked.isIndexed()) asked.index = {};
  Key key{v, asked.map, asked.path, asked.mask.id, asked.index.id, asked.larger};
  if (auto it = done_.find(key); it != done_.end()) return it->second;
  ScalarExpr result = isLoaded(v) ? load(v, info, asked) : compute(v, info, asked);
  if (!result.valid()) refuse("arithmetic that is not recorded");
  if (const Value* holds = isLoaded(v) ? nullptr : analysis_.requirementOf(v)) {
    check(at(holds, asked), asked.mask);
  }
  done_.emplace(std::move(key), result);
  return result;
}

ScalarExpr KernelBuilder::compute(const Value* v, const ValueInfo& info, const Asked& asked) {
  switch (info.what) {
    case What::Argument:
      return {};
    case What::Constant:
      refuse(fmt::format("%{} is a constant", v->debugName()));
    case What::Pointwise:
      return pointwise(info, asked);
    case What::View:
      return view(v, info, asked);
    case What::Flip:
      return through(v, info, asked);
    default:
      break;
  }
  // All others are asked for at the domain's own points only.
  if (!asked.path.empty()) throw NeedsKernel{v};
  switch (info.what) {
    case What::Cat:
      return cat(info, asked);
    case What::Stack:
      return stack(info, asked);
    case What::Pad:
      return pad(v, info, asked);
    case What::IndexSelect:
    case What::Embedding:
    case What::Gather:
      return indexed(v, info, asked);
    case What::Lower:
    case What::Upper:
      return triangle(info, asked);
    default:
      return reduced(v, info, asked);
  }
}

ScalarExpr KernelBuilder::load(const Value* v, const ValueInfo& info, const Asked& asked) {
  const uint32_t source = sourceOf(v, info, asked.path);
  Access access{source, info.dtype, {}};
  access.dims.fill(-1);
  access.larger = asked.larger;
  ScalarExpr offset;
  for (int k = 0; k < asked.shape.rank; ++k) {
    const int d = asked.map[static_cast<size_t>(k)];
    const int dim = asked.shape.rank - 1 - k;
    if (asked.shape.isOne(k)) continue;
    if (d < 0) refuse("an element that no point of the domain belongs to");
    if (d == kAtIndex) {
      const Number stride{source, DType::Long, Number::Kind::Stride, dim,
                          static_cast<int>(itemSize(info.dtype))};
      const ScalarExpr step =
          kernel_.leaf({Leaf::Kind::Number, kernel_.number(stride), DType::Long});
      offset = ExprBuilder(kernel_.expression, DType::Long).mul(asked.index, step);
    } else {
      access.dims[static_cast<size_t>(d)] = static_cast<int8_t>(dim);
    }
  }
  return kernel_.leaf({Leaf::Kind::Load, kernel_.access(access), info.dtype, offset, asked.mask});
}

// Of two ways to reach memory, the first is that of the example: reshapes that strides do not allow
// there need a tensor of their own.
uint32_t KernelBuilder::sourceOf(const Value* v, const ValueInfo& info,
                                 const std::vector<uint32_t>& path) {
  LoweredGroup& lowered = common_.lowered;
  Source source{info.tensor, path};
  if (isKept(v)) {
    source.output = static_cast<int32_t>(common_.kept.at(v));
  } else {
    source.argument = info.root;
  }
  auto it = std::find(lowered.sources.begin(), lowered.sources.end(), source);
  if (it != lowered.sources.end()) {
    return static_cast<uint32_t>(it - lowered.sources.begin());
  }
  TensorLayout layout = analysis_.layouts()[info.tensor];
  if (source.output >= static_cast<int32_t>(lowered.results)) layRowMajor(layout);
  for (uint32_t step : path) {
    const ViewOutcome outcome =
        applyView(lowered.views[step], analysis_.integers(), analysis_.layouts(), layout);
    if (outcome == ViewOutcome::Done) continue;
    const Value* viewed = common_.viewed[step];
    if (!viewed || common_.kept.count(viewed) != 0) {
      throw UnsupportedShapes("a view that strides cannot express");
    }
    throw NeedsKernel{viewed};
  }
  lowered.sources.push_back(std::move(source));
  return static_cast<uint32_t>(lowered.sources.size() - 1);
}

ScalarExpr KernelBuilder::number(const ValueInfo& info, DType type) {
  return kernel_.leaf({Leaf::Kind::Number, kernel_.number({info.tensor, type}), type});
}
ScalarExpr KernelBuilder::sizeOf(const Value* v, int from_end) {
  const ValueInfo& info = analysis_.of(v);
  const Number size{info.tensor, DType::Long, Number::Kind::Size, info.shape.rank - 1 - from_end,
                    0};
  return kernel_.leaf({Leaf::Kind::Number, kernel_.number(size), DType::Long});
}
ScalarExpr KernelBuilder::known(const Scalar& n, DType type) {
  if (isFloating(type)) return kernel_.expression.constant(n.toDouble(), type);
  if (type == DType::Bool) return kernel_.expression.integer(n.toBool(), type);
  return kernel_.expression.integer(n.toInt(), type);
}
ScalarExpr KernelBuilder::index(uint32_t dims) {
  Access access{Access::kIndex, DType::Long, {}};
  for (int d = 0; d < kMaxRank; ++d) {
    access.dims[static_cast<size_t>(d)] = static_cast<int8_t>((dims >> d & 1) != 0 ? 0 : -1);
  }
  return kernel_.leaf({Leaf::Kind::Index, kernel_.access(access), DType::Long});
}
ScalarExpr KernelBuilder::along(int from_end, const Asked& asked) {
  const int d = asked.map[static_cast<size_t>(from_end)];
  if (d == kAtIndex) return asked.index;
  return d < 0 ? kernel_.expression.integer(0, DType::Long) : index(1u << d);
}

ScalarExpr KernelBuilder::pointwise(const ValueInfo& info, const Asked& asked) {
  const ScalarDefinition& definition = *info.call.definition;
  const ComputeTypes& types = info.types;
  Expression& e = kernel_.expression;
  std::array<ScalarExpr, kMaxScalarInputs> in;
  for (size_t i = 0; i < info.call.operands.size(); ++i) {
    const Operand& operand = info.call.operands[i];
    bool mask = (definition.mask_inputs >> i & 1) != 0;
    bool param = (definition.param_inputs >> i & 1) != 0;
    bool rounds = !mask && !param && isReducedFloat(types.common);
    DType wanted = mask ? DType::Bool : types.compute;
    if (operand.value && analysis_.of(operand.value).is_tensor) {
      Asked inner = asked;
      if (!asked.path.empty() && analysis_.of(operand.value).shape != info.shape) {
        auto [it, added] = common_.broadcast_to.emplace(info.tensor, 0);
        if (added) {
          ViewStep broadcast;
          broadcast.kind = ViewStep::Kind::ExpandAs;
          broadcast.tensors = {info.tensor};
          it->second = stepOf(broadcast, nullptr);
        }
        inner.path = behind(it->second, asked.path);
      }
      in[i] = at(operand.value, std::move(inner));
      if (info.call.cast) in[i] = e.convert(in[i], *info.call.cast);
    } else {
      in[i] = operand.value ? number(analysis_.of(operand.value), wanted)
                            : known(operand.number, wanted);
    }
    if (rounds) in[i] = e.convert(in[i], types.common);
    in[i] = e.convert(in[i], wanted);
  }
  return e.convert(definition.record(ExprBuilder(e, types.compute), in.data()), types.result);
}

uint32_t KernelBuilder::stepOf(const ViewStep& step, const Value* viewed) {
  common_.lowered.views.push_back(step);
  common_.viewed.push_back(viewed);
  return static_cast<uint32_t>(common_.lowered.views.size() - 1);
}
std::vector<uint32_t> KernelBuilder::behind(uint32_t step,
                                            const std::vector<uint32_t>& path) const {
  std::vector<uint32_t> longer{step};
  longer.insert(longer.end(), path.begin(), path.end());
  return longer;
}

// Whether the step gives what `view` was made of: both only group the same elements anew.
bool KernelBuilder::undoes(const ViewStep& step, const ValueInfo& view) const {
  using Kind = ViewStep::Kind;
  const Kind kind = view.view.kind;
  if (step.kind != Kind::ReshapeAs || (kind != Kind::Reshape && kind != Kind::ReshapeAs &&
                                       kind != Kind::Flatten && kind != Kind::Unflatten)) {
    return false;
  }
  const TensorLayout& a = analysis_.layoutOf(view.operands[0]);
  const TensorLayout& b = analysis_.layouts()[step.tensors[0]];
  return a.rank == b.rank && std::equal(a.sizes.begin(), a.sizes.begin() + a.rank, b.sizes.begin());
}

// Views that only name dimensions anew change the map, others the path.
ScalarExpr KernelBuilder::view(const Value* v, const ValueInfo& info, const Asked& asked) {
  using Kind = ViewStep::Kind;
  const Value* operand = info.operands[0];
  const int rank = info.shape.rank, from_rank = analysis_.of(operand).shape.rank;
  auto fromEnd = [](int d, int r) { return d < 0 ? -1 - d : r - 1 - d; };
  Map map = noMap();
  auto at_k = [&](int k) { return asked.map[static_cast<size_t>(k)]; };
  bool renames = asked.path.empty();
  if (!renames && undoes(common_.lowered.views[asked.path[0]], info)) {
    Asked inner = asked;
    inner.path.erase(inner.path.begin());
    return at(operand, std::move(inner));
  }
  switch (info.view.kind) {
    case Kind::Permute:
      for (int k = 0; k < rank; ++k) {
        const ViewNumber& n = info.view.numbers[static_cast<size_t>(rank - 1 - k)];
        renames &= n.argument < 0;
        map[static_cast<size_t>(fromEnd(static_cast<int>(n.value), rank)) % kMaxRank] = at_k(k);
      }
      break;
    case Kind::Same:
      map = asked.map;
      break;
    case Kind::Swap:
    case Kind::Transpose: {
      map = asked.map;
      const bool named = info.view.kind == Kind::Swap;
      std::swap(map[static_cast<size_t>(named ? fromEnd(info.view.dim, rank) : 0)],
                map[static_cast<size_t>(named ? fromEnd(info.view.other_dim, rank) : 1)]);
      break;
    }
    case Kind::Unsqueeze:
      for (int k = 0, to = 0; k < rank; ++k) {
        if (k != fromEnd(info.view.dim, rank)) map[static_cast<size_t>(to++)] = at_k(k);
      }
      break;
    case Kind::Squeeze:
    case Kind::SqueezeAll:
      for (int k = 0, from = 0; k < from_rank; ++k) {
        const bool gone =
            analysis_.of(operand).shape.isOne(k) &&
            (info.view.kind == Kind::SqueezeAll || k == fromEnd(info.view.dim, from_rank));
        if (!gone) map[static_cast<size_t>(k)] = at_k(from++);
      }
      break;
    case Kind::Expand:
    case Kind::ExpandAs:
      std::copy_n(asked.map.begin(), from_rank, map.begin());
      break;
    default:
      renames = false;
  }
  if (renames) return at(operand, Asked{map, {}, {}, asked.mask, asked.index, asked.larger});
  return through(v, info, asked);
}

// The operand, asked for through the value's view.
ScalarExpr KernelBuilder::through(const Value* v, const ValueInfo& info, const Asked& asked) {
  const Value* operand = info.operands[0];
  auto it = common_.view_of.find(v);
  if (it == common_.view_of.end()) {
    it = common_.view_of.emplace(v, stepOf(info.view, operand)).first;
  }
  // A value that is read through several views has several ways to each tensor that it comes from, and each further value of that
  // sort multiplies their number.
  constexpr size_t kMostWays = 64;
  if (common_.lowered.sources.size() > kMostWays && !isLoaded(operand)) throw NeedsKernel{operand};
  Asked inner = asked;
  inner.path = behind(it->second, asked.path);
  return at(operand, std::move(inner));
}

// Zero on one side of a diagonal.
ScalarExpr KernelBuilder::triangle(const ValueInfo& info, const Asked& asked) {
  ExprBuilder longs(kernel_.expression, DType::Long);
  const ScalarExpr beyond = longs.sub(along(0, asked), along(1, asked));
  const ScalarExpr diagonal = kernel_.expression.integer(info.diagonal, DType::Long);
  const ScalarExpr kept =
      info.what == What::Lower ? longs.le(beyond, diagonal) : longs.le(diagonal, beyond);
  const ScalarExpr zero = known(Scalar(0), isReducedFloat(info.dtype) ? DType::Float : info.dtype);
  return ExprBuilder(kernel_.expression, info.dtype)
      .select(kept, at(info.operands[0], asked), kernel_.expression.convert(zero, info.dtype));
}

ScalarExpr KernelBuilder::both(ScalarExpr a, ScalarExpr b) {
  if (!a.valid()) return b;
  if (!b.valid()) return a;
  return ExprBuilder(kernel_.expression, DType::Bool).both(a, b);
}

// Each tensor exists only between its own ends: there it is asked for as if it were as large as all
// of them.
ScalarExpr KernelBuilder::cat(const ValueInfo& info, const Asked& asked) {
  if (info.operands.size() == 1) return at(info.operands[0], asked);
  ExprBuilder longs(kernel_.expression, DType::Long);
  ExprBuilder values(kernel_.expression, info.dtype);
  const ScalarExpr i = along(info.dim, asked);
  ScalarExpr begin = kernel_.expression.integer(0, DType::Long);
  std::vector<ScalarExpr> parts, ends;
  std::vector<uint32_t> tensors;
  for (const Value* operand : info.operands) tensors.push_back(analysis_.of(operand).tensor);
  for (size_t p = 0; p < info.operands.size(); ++p) {
    const ScalarExpr end = longs.add(begin, sizeOf(info.operands[p], info.dim));
    ScalarExpr inside = longs.lt(i, end);
    if (p > 0) inside = both(longs.le(begin, i), inside);
    ViewStep place;
    place.kind = ViewStep::Kind::Place;
    place.dim = -1 - info.dim;
    place.tensors = tensors;
    place.part = static_cast<uint32_t>(p);
    auto known_place = std::find(common_.lowered.views.begin(), common_.lowered.views.end(), place);
    const uint32_t step = known_place != common_.lowered.views.end()
                              ? static_cast<uint32_t>(known_place - common_.lowered.views.begin())
                              : stepOf(place, info.operands[p]);
    Asked inner{asked.map, {step}, info.shape, both(asked.mask, inside), asked.index, asked.larger};
    parts.push_back(at(info.operands[p], std::move(inner)));
    ends.push_back(end);
    begin = end;
  }
  ScalarExpr result = parts.back();
  for (size_t p = parts.size() - 1; p-- > 0;) {
    result = values.select(longs.lt(i, ends[p]), parts[p], result);
  }
  return result;
}

ScalarExpr KernelBuilder::stack(const ValueInfo& info, const Asked& asked) {
  ExprBuilder longs(kernel_.expression, DType::Long);
  ExprBuilder values(kernel_.expression, info.dtype);
  Map map = noMap();
  for (int k = 0, to = 0; k < info.shape.rank; ++k) {
    if (k != info.dim) map[static_cast<size_t>(to++)] = asked.map[static_cast<size_t>(k)];
  }
  const ScalarExpr i = along(info.dim, asked);
  ScalarExpr result;
  for (size_t p = info.operands.size(); p-- > 0;) {
    const ScalarExpr part =
        at(info.operands[p], Asked{map, {}, {}, asked.mask, asked.index, asked.larger});
    const ScalarExpr here =
        longs.eq(i, kernel_.expression.integer(static_cast<int64_t>(p), DType::Long));
    result = result.valid() ? values.select(here, part, result) : part;
  }
  return result;
}

ScalarExpr KernelBuilder::pad(const Value* v, const ValueInfo& info, const Asked& asked) {
  ExprBuilder longs(kernel_.expression, DType::Long);
  const Value* operand = info.operands[0];
  ScalarExpr inside = asked.mask;
  for (size_t k = 0; 2 * k < info.view.numbers.size(); ++k) {
    const ScalarExpr i = along(static_cast<int>(k), asked);
    const ScalarExpr begin =
        kernel_.expression.integer(info.view.numbers[2 * k].value, DType::Long);
    inside = both(inside, longs.le(begin, i));
    inside = both(inside, longs.lt(i, longs.add(begin, sizeOf(operand, static_cast<int>(k)))));
  }
  auto it = common_.view_of.find(v);
  if (it == common_.view_of.end()) {
    it = common_.view_of.emplace(v, stepOf(info.view, operand)).first;
  }
  const ScalarExpr value =
      at(operand, Asked{asked.map, {it->second}, info.shape, inside, asked.index, asked.larger});
  const ScalarExpr fill =
      known(info.fill.number, isReducedFloat(info.dtype) ? DType::Float : info.dtype);
  if (!inside.valid()) return value;
  return ExprBuilder(kernel_.expression, info.dtype)
      .select(inside, value, kernel_.expression.convert(fill, info.dtype));
}

void KernelBuilder::check(ScalarExpr holds, ScalarExpr mask) {
  ExprBuilder truths(kernel_.expression, DType::Bool);
  if (mask.valid()) holds = truths.either(truths.negate(mask), holds);
  if (std::find(kernel_.checks.begin(), kernel_.checks.end(), holds) == kernel_.checks.end()) {
    kernel_.checks.push_back(holds);
  }
}

// The element's position along one dimension is itself an element.
ScalarExpr KernelBuilder::indexed(const Value* v, const ValueInfo& info, const Asked& asked) {
  const Value* from = info.operands[0];
  const int index_rank = analysis_.of(info.operands[1]).shape.rank;
  const bool gathers = info.what == What::Gather, embeds = info.what == What::Embedding;
  Map map = asked.map, index_map = gathers ? asked.map : noMap();
  if (embeds) {
    for (int k = 1; k < kMaxRank; ++k) map[static_cast<size_t>(k)] = -1;
    std::copy_n(asked.map.begin() + 1, index_rank, index_map.begin());
  } else if (!gathers) {
    index_map[0] = asked.map[static_cast<size_t>(info.dim)];
  }
  map[static_cast<size_t>(info.dim)] = -1;
  Asked inner{map, {}, {}, asked.mask, {}, gathers || asked.larger};
  if (inner.isIndexed()) throw NeedsKernel{v};
  inner.map[static_cast<size_t>(info.dim)] = kAtIndex;
  ExprBuilder longs(kernel_.expression, DType::Long);
  ExprBuilder truths(kernel_.expression, DType::Bool);
  Asked index{index_map, {}, {}, asked.mask, asked.index, asked.larger};
  const ScalarExpr i =
      kernel_.expression.convert(at(info.operands[1], std::move(index)), DType::Long);
  const ScalarExpr from_first = longs.le(kernel_.expression.integer(0, DType::Long), i);
  const ScalarExpr to_last = longs.lt(i, sizeOf(from, info.dim));
  const ScalarExpr inside = truths.both(from_first, to_last);
  check(inside, asked.mask);
  inner.index = i;
  inner.mask = both(asked.mask, inside);
  return at(from, std::move(inner));
}

}  // namespace wick::loop
