#include "codegen/loop/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "codegen/loop/writes.h"
#include "codegen/scalar/definition.h"
#include "core/error.h"
#include "core/number_range.h"

namespace wick::loop {

namespace {

// What has a loop form besides views, casts and pointwise operators.
const std::unordered_map<std::string, What>& forms() {
  static const auto* table = new std::unordered_map<std::string, What>{
      {"aten::sum", What::Sum},
      {"aten::sum.dim_IntList", What::Sum},
      {"aten::mean", What::Mean},
      {"aten::mean.dim", What::Mean},
      {"aten::prod", What::Prod},
      {"aten::prod.dim_int", What::Prod},
      {"aten::amax", What::Max},
      {"aten::amin", What::Min},
      {"aten::max", What::Max},
      {"aten::min", What::Min},
      {"aten::max.dim", What::Max},
      {"aten::min.dim", What::Min},
      {"aten::any", What::Any},
      {"aten::any.dim", What::Any},
      {"aten::all", What::All},
      {"aten::all.dim", What::All},
      {"aten::argmax", What::ArgMax},
      {"aten::argmin", What::ArgMin},
      {"aten::var", What::Variance},
      {"aten::var.dim", What::Variance},
      {"aten::var.correction", What::Variance},
      {"aten::std", What::Deviation},
      {"aten::std.dim", What::Deviation},
      {"aten::std.correction", What::Deviation},
      {"aten::var_mean", What::Variance},
      {"aten::var_mean.dim", What::Variance},
      {"aten::var_mean.correction", What::Variance},
      {"aten::norm.Scalar", What::Norm},
      {"aten::norm.ScalarOpt_dim", What::Norm},
      {"aten::linalg_vector_norm", What::Norm},
      {"aten::logsumexp", What::LogSumExp},
      {"aten::softmax.int", What::Softmax},
      {"aten::log_softmax.int", What::LogSoftmax},
      {"aten::layer_norm", What::LayerNorm},
      {"aten::cat", What::Cat},
      {"aten::concat", What::Cat},
      {"aten::stack", What::Stack},
      {"aten::constant_pad_nd", What::Pad},
      {"aten::index_select", What::IndexSelect},
      {"aten::embedding", What::Embedding},
      {"aten::gather", What::Gather},
      {"aten::flip", What::Flip},
      {"aten::tril", What::Lower},
      {"aten::triu", What::Upper},
  };
  return *table;
}

// Which vector norm; None stands for the second.
std::optional<double> orderOf(const Node* node) {
  const auto p = constantOf(node->input(1));
  if (!p || (!p->isNone() && (!p->isNumber() || p->isComplex()))) return std::nullopt;
  const double order = p->isNone() ? 2 : p->numberToDouble();
  return std::isnan(order) ? std::nullopt : std::optional(order);
}

std::optional<What> formOf(const Node* node) {
  const Operator* op = node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base || node->inputs().empty()) return std::nullopt;
  std::string name = op->schema().name();
  if (!op->schema().overload().empty()) name += "." + std::string(op->schema().overload());
  auto it = forms().find(name);
  if (it == forms().end()) return std::nullopt;
  for (const Value* v : node->outputs()) {
    if (v->type()->kind() != TypeKind::Tensor) return std::nullopt;
  }
  if (it->second == What::Norm && !orderOf(node)) return std::nullopt;
  return it->second;
}

// A constant, or a list made of constants.
std::optional<IValue> knownValue(const Value* v) {
  if (auto value = constantOf(v)) return value;
  if (v->node()->kind() != prim::ListConstruct) return std::nullopt;
  std::vector<IValue> elements;
  for (const Value* e : v->node()->inputs()) {
    auto value = constantOf(e);
    if (!value) return std::nullopt;
    elements.push_back(*value);
  }
  return IValue(makeList(types::Int(), std::move(elements)));
}
// The argument of this name; None when the operator has none.
std::optional<IValue> knownArgument(const Node* node, std::string_view name) {
  const FunctionSchema& schema = *node->maybeSchema();
  for (size_t i = 0; i < schema.arguments().size() && i < node->inputs().size(); ++i) {
    if (schema.arguments()[i].name == name) return knownValue(node->input(i));
  }
  return IValue();
}

DType accumulatorOf(DType type) {
  return isReducedFloat(type) ? DType::Float : type;
}

// The dimensions that a `dim` argument names, as bits from the end.
uint32_t dimBits(const IValue& dim, int rank) {
  if (rank == 0) refuse("a reduction of a zero-dim tensor");
  uint32_t all = (1u << rank) - 1;
  if (dim.isNone()) return all;
  DimVector dims = dim.toDims();
  if (dims.empty()) return all;
  uint32_t bits = 0;
  for (int64_t d : dims) {
    if (d < -rank || d >= rank) refuse("a dimension out of range");
    uint32_t bit = 1u << (d < 0 ? -1 - d : rank - 1 - d);
    if (bits & bit) refuse("a dimension named twice");
    bits |= bit;
  }
  return bits;
}

}  // namespace

void refuse(std::string why) {
  throw Unsupported(why);
}

bool isReduction(const Node* node) {
  auto what = formOf(node);
  return what && isReduced(*what) && node->input(0)->type()->kind() == TypeKind::Tensor;
}
bool isJoin(const Node* node) {
  auto what = formOf(node);
  if (!what || !isJoined(*what)) return false;
  if (*what == What::Pad) {
    const auto pads = node->input(1)->node()->kind();
    return pads == prim::ListConstruct || pads == prim::Constant;
  }
  return node->input(0)->node()->kind() == prim::ListConstruct;
}
bool isIndexed(const Node* node) {
  auto what = formOf(node);
  return what && (isGathered(*what) || isPlaced(*what));
}

Analysis::Analysis(Graph& body, std::span<const ArgumentInfo> arguments) {
  std::vector<const Value*> values(body.inputs().begin(), body.inputs().end());
  const std::vector<const Value*> constants = tensorConstants(body);
  values.insert(values.end(), constants.begin(), constants.end());
  WICK_ASSERT(values.size() == arguments.size(), "{} arguments for a group of {}", arguments.size(),
              values.size());
  for (size_t i = 0; i < arguments.size(); ++i) argument(values[i], arguments[i]);
  num_arguments_ = arguments.size();
  Facts facts;
  facts.of = [&](const Value* v) { return factsOf(v); };
  facts.is_channels_last = [&](const Value* v) {
    const bool channels_last = loop::isChannelsLast(layoutOf(v));
    formats_.push_back({of(v).tensor, channels_last});
    if (of(v).what != What::Argument) plain_ = false;
    return channels_last;
  };
  facts.truth = [&](const Value* v) -> std::optional<bool> {
    if (const auto value = constantOf(v)) return value->toBool();
    auto it = infos_.find(v);
    if (it == infos_.end() || it->second.what != What::Argument || it->second.is_tensor ||
        it->second.dtype != DType::Bool) {
      return std::nullopt;
    }
    return integers_[it->second.tensor] != 0;
  };
  facts.lay_row_major = [&](const Value* v) { row_major_.insert(v); };
  facts.require = [&](const Value* v, const Value* holds) { requirements_.emplace(v, holds); };
  facts.write = [&](const Value* v, Value* result) {
    if (v->node()->kind() != prim::Param) refuse("a write to what is made inside");
    written_.push_back(static_cast<uint32_t>(v->offset()));
    body.registerOutput(result);
  };
  facts.keep_apart = [&](const Value* v) { apart_.insert(v); };
  const Node* const end = body.block()->returnNode();
  for (Node* n = end->next(); n != end;) {
    if (!isComposite(n)) {
      node(n);
      n = n->next();
      continue;
    }
    const Node* before = n->prev();
    decompose(n, facts);
    n = before->next();
  }
}

void Analysis::argument(const Value* v, const ArgumentInfo& a) {
  ValueInfo info;
  info.what = What::Argument;
  info.tensor = static_cast<uint32_t>(layouts_.size());
  info.is_tensor = a.kind == ArgumentInfo::Kind::Tensor;
  if (info.is_tensor) {
    info.shape = {a.rank, a.ones};
    info.dtype = a.dtype;
    info.root = static_cast<int32_t>(info.tensor);
  } else {
    info.dtype = a.kind == ArgumentInfo::Kind::Int    ? DType::Long
                 : a.kind == ArgumentInfo::Kind::Bool ? DType::Bool
                                                      : defaultDType();
  }
  if (isComplex(info.dtype)) refuse("complex numbers");
  if (a.rank > kMaxRank) refuse("too many dimensions");
  layouts_.push_back(a.layout);
  integers_.push_back(a.number);
  infos_.emplace(v, std::move(info));
}

void Analysis::node(const Node* node) {
  if (node->kind() == prim::Constant || node->kind() == prim::ListConstruct) return;
  const std::optional<What> what = formOf(node);
  if (what && isReduced(*what)) {
    reduction(node, *what);
  } else if (what && isGathered(*what)) {
    indexed(node, *what);
  } else if (what && isPlaced(*what)) {
    placed(node, *what);
  } else if (what) {
    *what == What::Pad ? pad(node) : join(node, *what);
  } else if (isView(node)) {
    // The list of views that a prim::ListUnpack takes apart comes with that.
    const bool lists =
        node->outputs().size() == 1 && node->output()->type()->kind() == TypeKind::List;
    if (!lists) view(node);
  } else if (isCast(node)) {
    cast(node);
  } else if (isPointwise(node)) {
    pointwise(node);
  } else {
    refuse(fmt::format("{} has no loop form", node->kind().qualString()));
  }
}

const ValueInfo& Analysis::of(const Value* v) const {
  auto it = infos_.find(v);
  if (it == infos_.end()) refuse(fmt::format("%{} is not a tensor or number", v->debugName()));
  return it->second;
}
const ValueInfo& Analysis::tensorInfo(const Value* v) const {
  const ValueInfo& info = of(v);
  if (!info.is_tensor) refuse(fmt::format("%{} is not a tensor", v->debugName()));
  return info;
}
OperandType Analysis::typeOf(const Value* v) const {
  const ValueInfo& info = of(v);
  return {info.is_tensor, info.dtype, info.shape.rank};
}
ValueFacts Analysis::factsOf(const Value* v) const {
  auto it = infos_.find(v);
  if (it == infos_.end() || !it->second.is_tensor) return {};
  return {true, it->second.dtype, layouts_[it->second.tensor]};
}
int32_t Analysis::argument(const Value* integer) const {
  auto it = infos_.find(integer);
  if (it == infos_.end() || it->second.what != What::Argument || it->second.is_tensor ||
      it->second.dtype != DType::Long) {
    return -1;
  }
  return static_cast<int32_t>(it->second.tensor);
}

void Analysis::add(const Value* v, ValueInfo info, ShapeStep step) {
  if (!learnShape(step, integers_, layouts_)) {
    throw UnsupportedShapes(fmt::format("%{}: these sizes or strides", v->debugName()));
  }
  info.is_tensor = true;
  info.tensor = static_cast<uint32_t>(layouts_.size() - 1);
  info.shape = {step.rank, step.ones};
  steps_.push_back(std::move(step));
  infos_.emplace(v, std::move(info));
}

// Operators whose results are row-major, whatever order the operands lie in.
bool Analysis::laysRowMajor(const Value* output) const {
  if (row_major_.contains(output)) return true;
  const Node* node = output->node();
  if (node->hasAttribute(standsForWrite())) return false;
  static const Symbol kMaskedFill = Symbol::aten("masked_fill"), kPow = Symbol::aten("pow");
  return node->kind() == kMaskedFill || (node->kind() == kPow && !typeOf(node->input(0)).is_tensor);
}

void Analysis::pointwise(const Node* node) {
  auto selected = selectPointwise(node, [&](const Value* v) { return typeOf(v); });
  if (!selected) refuse(fmt::format("{}: these types and constants", node->kind().qualString()));
  call(node->output(), std::move(*selected));
}

void Analysis::call(const Value* output, PointwiseCall call) {
  const ScalarDefinition& definition = *call.definition;
  DTypePromotion operand_types;
  ValueInfo info;
  info.what = What::Pointwise;
  ShapeStep step;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& operand = call.operands[i];
    bool counts = ((definition.mask_inputs | definition.param_inputs) >> i & 1) == 0;
    const bool is_tensor = operand.value && of(operand.value).is_tensor;
    step.has_number |= !is_tensor && (definition.bare_inputs >> i & 1) == 0;
    if (!operand.value) {
      if (counts) operand_types.addNumber(operand.number.dtype());
      continue;
    }
    const ValueInfo& from = of(operand.value);
    if (from.is_tensor) {
      DType dtype = call.cast.value_or(from.dtype);
      if (counts) operand_types.addTensor(dtype, from.shape.rank > 0);
      step.operands.push_back(from.tensor);
    } else if (counts) {
      operand_types.addNumber(from.dtype);
    }
  }
  if (step.operands.empty()) refuse("no tensor operand");
  bool accepted = false;
  info.types = chooseTypes(definition, operand_types, accepted);
  if (!accepted || isComplex(info.types.common) || !definition.record) {
    refuse(fmt::format("{} of {}", definition.name, wick::toString(info.types.common)));
  }
  info.dtype = info.types.result;
  step.row_major = laysRowMajor(output);
  if (call.is_cast) step.kind = ShapeStep::Kind::Like;
  checkNumbers(call, info.types);
  info.call = std::move(call);
  add(output, std::move(info), std::move(step));
}

// Numbers that the operator refuses, or would when the kernel is launched. It converts parameters
// to what it computes in.
void Analysis::checkNumbers(const PointwiseCall& call, const ComputeTypes& types) {
  const auto check = [&](const Value* number, DType dtype, bool number_only) {
    const NumberCheck added{of(number).tensor, dtype, number_only};
    if (std::find(number_checks_.begin(), number_checks_.end(), added) == number_checks_.end()) {
      number_checks_.push_back(added);
    }
  };
  for (const RangeCheck& range : call.ranges) check(range.number, range.dtype, range.number_only);
  const DType dtype = isReducedFloat(types.common) ? types.common : types.compute;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& operand = call.operands[i];
    if ((call.definition->param_inputs >> i & 1) == 0) continue;
    if (!operand.value) {
      if (!holdsNumber(dtype, operand.number)) refuse("a number that the dtype does not hold");
    } else if (!of(operand.value).is_tensor && dtype != DType::Double) {
      check(operand.value, dtype, false);
    }
  }
}

void Analysis::cast(const Node* node) {
  const Value* operand = node->input(0);
  const DType from = tensorInfo(operand).dtype;
  auto dtype = castOf(node, [&](const Value* v) { return typeOf(v); });
  if (!dtype || isComplex(*dtype)) refuse(fmt::format("{}: the dtype", node->kind().qualString()));
  if (*dtype != from) return call(node->output(), castTo(operand, *dtype));
  plain_ = false;
  ViewStep same;
  same.kind = ViewStep::Kind::Same;
  view(node->output(), operand, same);
}

void Analysis::view(const Node* node) {
  plain_ = false;
  auto steps = viewsOf(node, *this);
  if (!steps) refuse(fmt::format("{}: arguments that are computed", node->kind().qualString()));
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    view(node->output(i), viewOperand(node), (*steps)[i]);
  }
}
void Analysis::view(const Value* output, const Value* operand, const ViewStep& view) {
  const ValueInfo& from = tensorInfo(operand);
  ValueInfo info;
  info.what = What::View;
  info.dtype = from.dtype;
  info.operands = {operand};
  info.view = view;
  ShapeStep step;
  step.kind = ShapeStep::Kind::View;
  step.operands = {from.tensor};
  step.view = view;
  const int32_t root = from.root;
  add(output, std::move(info), std::move(step));
  if (!steps_.back().copied) infos_.at(output).root = root;
}

int Analysis::fromEnd(const IValue& dim, int rank) {
  if (!dim.isInt()) refuse("a dimension that is not a number");
  const int64_t d = dim.toInt();
  if (d < -rank || d >= rank) refuse("a dimension out of range");
  return static_cast<int>(d < 0 ? -1 - d : rank - 1 - d);
}

void Analysis::join(const Node* node, What what) {
  plain_ = false;
  const Node* list = node->input(0)->node();
  auto dim = knownArgument(node, "dim");
  if (list->kind() != prim::ListConstruct || list->inputs().empty() || !dim) {
    refuse("a join of tensors that are not listed");
  }
  ValueInfo info;
  info.what = what;
  ShapeStep step;
  step.kind = what == What::Cat ? ShapeStep::Kind::Cat : ShapeStep::Kind::Stack;
  for (const Value* v : list->inputs()) {
    const ValueInfo& from = tensorInfo(v);
    if (!info.operands.empty() && from.dtype != info.dtype) refuse("a join of several dtypes");
    info.dtype = from.dtype;
    info.operands.push_back(v);
    step.operands.push_back(from.tensor);
  }
  const int rank = of(info.operands[0]).shape.rank + (what == What::Stack);
  info.dim = fromEnd(*dim, rank);
  step.dim = rank - 1 - info.dim;
  add(node->output(), std::move(info), std::move(step));
}

void Analysis::pad(const Node* node) {
  plain_ = false;
  const ValueInfo& from = tensorInfo(node->input(0));
  ValueInfo info;
  info.what = What::Pad;
  info.dtype = from.dtype;
  info.operands = {node->input(0)};
  info.view.kind = ViewStep::Kind::Pad;
  auto pads = knownArgument(node, "pad");
  if (!pads) refuse("padding that is not a constant");
  for (int64_t n : pads->toDims()) info.view.numbers.push_back({n, -1});
  auto fill = constantOf(node->input(2));
  if (!fill || !fill->isNumber() || fill->isComplex())
    refuse("a padding value that is not a constant");
  info.fill = Scalar::fromIValue(*fill);
  // Whether an integer dtype holds the value is for the operator to say.
  if (isIntegral(info.dtype, true) && info.fill.number.toDouble() != 0) {
    refuse("integers padded with a value");
  }
  ShapeStep step;
  step.kind = ShapeStep::Kind::View;
  step.operands = {from.tensor};
  step.view = info.view;
  add(node->output(), std::move(info), std::move(step));
}

void Analysis::indexed(const Node* node, What what) {
  plain_ = false;
  const bool embeds = what == What::Embedding;
  const Value* index = node->input(embeds ? 1 : 2);
  const ValueInfo& from = tensorInfo(node->input(0));
  const ValueInfo& at = tensorInfo(index);
  ValueInfo info;
  info.what = what;
  info.dtype = from.dtype;
  info.operands = {node->input(0), index};
  if (at.dtype != DType::Long && (at.dtype != DType::Int || what == What::Gather)) {
    refuse("indices of another dtype");
  }
  ShapeStep step;
  step.kind = embeds                      ? ShapeStep::Kind::Embedding
              : what == What::IndexSelect ? ShapeStep::Kind::IndexSelect
                                          : ShapeStep::Kind::Gather;
  step.operands = {from.tensor, at.tensor};
  if (!embeds) {
    auto dim = knownArgument(node, "dim");
    if (!dim || from.shape.rank == 0) refuse("a dimension that is not a constant");
    info.dim = fromEnd(*dim, from.shape.rank);
    step.dim = from.shape.rank - 1 - info.dim;
  } else {
    info.dim = 1;
    if (from.shape.rank != 2) refuse("an embedding that is not a matrix");
  }
  add(node->output(), std::move(info), std::move(step));
}

void Analysis::placed(const Node* node, What what) {
  plain_ = false;
  const ValueInfo& from = tensorInfo(node->input(0));
  ValueInfo info;
  info.what = what;
  info.dtype = from.dtype;
  info.operands = {node->input(0)};
  ShapeStep step;
  step.operands = {from.tensor};
  auto argument = knownValue(node->input(1));
  if (!argument) refuse("positions that are not constants");
  if (what == What::Flip) {
    if (from.shape.rank == 0) refuse("a flip of a zero-dim tensor");
    info.view.kind = ViewStep::Kind::Flip;
    for (int64_t d : argument->toDims()) info.view.numbers.push_back({d, -1});
    step.kind = ShapeStep::Kind::View;
    step.view = info.view;
  } else {
    if (from.shape.rank < 2) refuse("a triangle of a vector");
    info.diagonal = argument->toInt();
    step.kind = ShapeStep::Kind::RowMajor;
  }
  add(node->output(), std::move(info), std::move(step));
}

void Analysis::reduction(const Node* node, What what) {
  reduced(node, node->output(0), what);
  if (node->outputs().size() == 1) return;
  // var_mean gives the mean too, max and min the positions.
  reduced(node, node->output(1),
          what == What::Variance ? What::Mean
          : what == What::Max    ? What::ArgMax
                                 : What::ArgMin);
}

void Analysis::reduced(const Node* node, const Value* output, What what) {
  ValueInfo info;
  info.what = what;
  ValueInfo from = tensorInfo(node->input(0));
  auto dtype = knownArgument(node, "dtype");
  if (!dtype) refuse("a dtype that is not a constant");
  if (!dtype->isNone()) {
    auto wanted = dtypeFromNumber(dtype->toInt());
    if (!wanted || isComplex(*wanted)) refuse("the dtype");
    if (*wanted != from.dtype && what == What::Norm) refuse("a norm with a cast");
    info.cast = from.dtype = *wanted;
  }
  info.operands = {node->input(0)};
  ShapeStep step;
  if (what == What::Softmax || what == What::LogSoftmax) {
    normalize(node, info, from);
    step.kind = ShapeStep::Kind::RowMajor;
  } else if (what == What::LayerNorm) {
    layerNorm(node, info, from);
    step.kind = ShapeStep::Kind::RowMajor;
  } else {
    dimensions(node, info, from);
    step.kind = ShapeStep::Kind::Reduce;
    step.dims = info.dims;
    step.keepdim = info.keepdim;
  }
  step.operands = {from.tensor};
  add(output, std::move(info), std::move(step));
}

// Reductions that leave a dimension out or keep it with size one.
void Analysis::dimensions(const Node* node, ValueInfo& info, const ValueInfo& from) {
  auto dim = knownArgument(node, "dim");
  auto keepdim = knownArgument(node, "keepdim");
  if (!dim || !keepdim) refuse("dimensions that are not constants");
  info.dims = dimBits(*dim, from.shape.rank);
  info.keepdim = keepdim->isBool() && keepdim->toBool();
  info.dtype = from.dtype;
  const bool floats = isFloating(from.dtype);
  switch (info.what) {
    case What::Sum:
    case What::Prod:
      if (isIntegral(from.dtype, true) && !info.cast) info.dtype = DType::Long;
      break;
    case What::Max:
    case What::Min:
      if (from.dtype == DType::Bool) info.what = info.what == What::Max ? What::Any : What::All;
      break;
    case What::Any:
    case What::All:
      if (from.dtype != DType::Byte) info.dtype = DType::Bool;
      break;
    case What::ArgMax:
    case What::ArgMin:
      if (from.dtype == DType::Bool) refuse("positions of booleans");
      info.accumulate = accumulatorOf(from.dtype);
      info.dtype = DType::Long;
      return;
    case What::Variance:
    case What::Deviation: {
      auto unbiased = knownArgument(node, "unbiased");
      auto correction = knownArgument(node, "correction");
      if (!unbiased || !correction) refuse("a correction that is not a constant");
      const double given = unbiased->isBool()       ? unbiased->toBool()
                           : correction->isInt()    ? static_cast<double>(correction->toInt())
                           : correction->isDouble() ? correction->toDouble()
                                                    : 1;
      if (!(std::abs(given) < 0x1p53) || given != std::floor(given)) {
        refuse("a correction that is no whole number");
      }
      info.correction = static_cast<int64_t>(given);
      break;
    }
    case What::Norm:
      info.order = *orderOf(node);
      break;
    default:
      break;
  }
  const bool integers_too = info.what == What::Sum || info.what == What::Prod ||
                            info.what == What::Max || info.what == What::Min ||
                            info.what == What::Any || info.what == What::All;
  if (!floats && !integers_too) refuse("a reduction of integers");
  info.accumulate = accumulatorOf(info.dtype);
}

void Analysis::normalize(const Node* node, ValueInfo& info, const ValueInfo& from) {
  auto dim = knownArgument(node, "dim");
  if (!dim || !dim->isInt() || !isFloating(from.dtype)) refuse("softmax: these arguments");
  info.dims = dimBits(*dim, from.shape.rank);
  info.dtype = from.dtype;
  info.accumulate = accumulatorOf(info.dtype);
}

void Analysis::layerNorm(const Node* node, ValueInfo& info, const ValueInfo& from) {
  auto shape = knownArgument(node, "normalized_shape");
  auto eps = knownArgument(node, "eps");
  if (!shape || !eps || !isFloating(from.dtype)) refuse("layer_norm: these arguments");
  DimVector sizes = shape->toDims();
  const auto n = static_cast<int>(sizes.size());
  if (n == 0 || n > from.shape.rank) refuse("layer_norm: the normalized shape");
  info.dims = (1u << n) - 1;
  info.dtype = from.dtype;
  info.accumulate = accumulatorOf(info.dtype);
  info.eps = eps->numberToDouble();
  info.weight = affine(node, 2, from.dtype, n);
  info.bias = affine(node, 3, from.dtype, n);
  std::vector<const Value*> checked;
  for (const Value* v : {info.weight, info.bias}) {
    if (v) checked.push_back(v);
  }
  // With a weight it is enough to compare its sizes: those of the input agree, or nothing runs.
  if (!info.weight) checked.push_back(node->input(0));
  for (const Value* v : checked) {
    const ValueInfo& parameter = of(v);
    for (int k = 0; k < n; ++k) {
      const int64_t size = sizes[static_cast<size_t>(n - 1 - k)];
      const auto at = static_cast<size_t>(parameter.shape.rank - 1 - k);
      if (layouts_[parameter.tensor].sizes[at] != size || from.shape.isOne(k) != (size == 1)) {
        throw UnsupportedShapes("layer_norm: the normalized shape");
      }
      checks_.push_back({parameter.tensor, static_cast<uint8_t>(at), size});
    }
    if (parameter.what != What::Argument) plain_ = false;
  }
}
const Value* Analysis::affine(const Node* node, size_t i, DType dtype, int rank) const {
  const Value* v = node->input(i);
  if (auto value = constantOf(v); value && value->isNone()) return nullptr;
  const ValueInfo& info = tensorInfo(v);
  if (info.dtype != dtype || info.shape.rank != rank) refuse("layer_norm: these parameters");
  return v;
}

}  // namespace wick::loop
