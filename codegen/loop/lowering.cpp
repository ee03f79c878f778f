// First every value of the body gets a shape, as far as it is the same for all sizes, and a dtype.
// Then each output asks for its number at a point of its kernel's domain, and what it is computed
// from is asked in turn: `Map` says which dimension of the domain each dimension of a value runs
// along. A kernel has one set of reduced dimensions; reductions over others end in a kernel of
// their own, or nowhere.
#include "codegen/loop/lowering.h"

#include <fmt/format.h>

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>

#include "codegen/loop/pointwise.h"
#include "codegen/scalar/promotion.h"
#include "core/error.h"

namespace wick::loop {

namespace {

// Dimensions of values are counted from the end, for so they are aligned.
struct Shape {
  int rank = 0;
  uint32_t ones = 0;
  bool isOne(int k) const { return k >= rank || (ones >> k & 1) != 0; }
  friend bool operator==(const Shape&, const Shape&) = default;
};
using Map = std::array<int8_t, kMaxRank>;

struct ReductionInfo {
  const Value* operand;
  uint32_t dims;  // bit k: the k-th dimension from the end
  bool keepdim;
};

enum class What : uint8_t {
  Argument,
  Constant,
  Pointwise,
  Sum,
  Mean,
  Max,
  Min,
  Softmax,
  LogSoftmax,
  LayerNorm
};

struct Info {
  What what = What::Constant;
  bool is_tensor = false;
  Shape shape;
  DType dtype = DType::Float;
  uint32_t argument = 0;
  uint32_t tensor = 0;  // its number among the steps' tensors
  // Pointwise.
  PointwiseCall call{};
  ComputeTypes types{};
  // Reductions and what is made of them.
  ReductionInfo reduction{};
  DType accumulate = DType::Float;  // what the arithmetic is done in
  const Value* weight = nullptr;
  const Value* bias = nullptr;
  double eps = 0;
};

const std::unordered_map<std::string, What>& reductions() {
  static const auto* table = new std::unordered_map<std::string, What>{
      {"aten::sum", What::Sum},
      {"aten::mean", What::Mean},
      {"aten::amax", What::Max},
      {"aten::amin", What::Min},
      {"aten::softmax", What::Softmax},
      {"aten::log_softmax", What::LogSoftmax},
      {"aten::layer_norm", What::LayerNorm},
  };
  return *table;
}

[[noreturn]] void refuse(std::string why) {
  throw Unsupported(std::move(why));
}

class Analysis {
 public:
  Analysis(const Graph& body, std::span<const ArgumentInfo> arguments) {
    std::vector<const Value*> values(body.inputs().begin(), body.inputs().end());
    const std::vector<const Value*> constants = tensorConstants(body);
    values.insert(values.end(), constants.begin(), constants.end());
    WICK_ASSERT(values.size() == arguments.size(), "{} arguments for a group of {}",
                arguments.size(), values.size());
    for (size_t i = 0; i < arguments.size(); ++i) argument(values[i], arguments[i]);
    for (const Node* node : body.nodes()) {
      if (node->kind() == prim::Constant || node->kind() == prim::ListConstruct) continue;
      if (isPointwise(node)) {
        pointwise(node);
      } else if (isReduction(node)) {
        reduction(node);
      } else {
        refuse(fmt::format("{} has no loop form", node->kind().qualString()));
      }
    }
  }

  const Info& of(const Value* v) const {
    auto it = infos_.find(v);
    if (it == infos_.end()) refuse(fmt::format("%{} is no tensor or number", v->debugName()));
    return it->second;
  }
  bool knows(const Value* v) const { return infos_.count(v) != 0; }
  const std::vector<SizeCheck>& checks() const { return checks_; }
  void follow(const Graph& body, Program& program) const {
    if (!all_pointwise_) return;
    program.steps = steps_;
    for (const Value* v : body.outputs()) program.output_tensors.push_back(of(v).tensor);
  }

 private:
  void argument(const Value* v, const ArgumentInfo& a) {
    Info info;
    info.what = What::Argument;
    info.argument = info.tensor = num_tensors_++;
    info.is_tensor = a.kind == ArgumentInfo::Kind::Tensor;
    if (info.is_tensor) {
      info.shape = {a.rank, a.ones};
      info.dtype = a.dtype;
    } else {
      info.dtype = a.kind == ArgumentInfo::Kind::Int    ? DType::Long
                   : a.kind == ArgumentInfo::Kind::Bool ? DType::Bool
                                                        : defaultDType();
    }
    if (isComplex(info.dtype)) refuse("complex numbers");
    if (a.rank > kMaxRank) refuse("too many dimensions");
    infos_.emplace(v, std::move(info));
  }

  void pointwise(const Node* node) {
    auto call = selectPointwise(node, [&](const Value* v) {
      const Info& info = of(v);
      return OperandType{info.is_tensor, info.dtype, info.shape.rank};
    });
    if (!call) refuse(fmt::format("{}: these types and constants", node->kind().qualString()));
    const ScalarDefinition& definition = *call->definition;
    DTypePromotion operand_types;
    Info info;
    info.what = What::Pointwise;
    info.is_tensor = true;
    bool any_tensor = false;
    for (size_t i = 0; i < call->operands.size(); ++i) {
      const Operand& operand = call->operands[i];
      bool counts = ((definition.mask_inputs | definition.param_inputs) >> i & 1) == 0;
      if (!operand.value) {
        if (counts) operand_types.addNumber(operand.number.dtype());
        continue;
      }
      const Info& from = of(operand.value);
      if (from.is_tensor) {
        DType dtype = call->cast.value_or(from.dtype);
        if (counts) operand_types.addTensor(dtype, from.shape.rank > 0);
        info.shape = any_tensor ? broadcast(info.shape, from.shape) : from.shape;
        any_tensor = true;
      } else if (counts) {
        operand_types.addNumber(from.dtype);
      }
    }
    if (!any_tensor) refuse("no tensor operand");
    bool accepted = false;
    info.types = chooseTypes(definition, operand_types, accepted);
    if (!accepted || isComplex(info.types.common) || !definition.record) {
      refuse(fmt::format("{} of {}", definition.name, wick::toString(info.types.common)));
    }
    info.dtype = info.types.result;
    info.tensor = num_tensors_++;
    PointwiseStep step;
    for (const Operand& operand : call->operands) {
      if (operand.value && of(operand.value).is_tensor) {
        step.operands.push_back(of(operand.value).tensor);
      }
    }
    steps_.push_back(std::move(step));
    info.call = std::move(*call);
    infos_.emplace(node->output(), std::move(info));
  }

  static Shape broadcast(Shape a, Shape b) {
    Shape s{std::max(a.rank, b.rank), 0};
    for (int k = 0; k < s.rank; ++k) {
      if (a.isOne(k) && b.isOne(k)) s.ones |= 1u << k;
    }
    return s;
  }

  std::optional<IValue> constant(const Node* node, std::string_view name) const {
    const FunctionSchema& schema = *node->maybeSchema();
    for (size_t i = 0; i < schema.arguments().size() && i < node->inputs().size(); ++i) {
      if (schema.arguments()[i].name != name) continue;
      return listOf(node->input(i));
    }
    return IValue();
  }
  // A constant, or a list made of constants.
  static std::optional<IValue> listOf(const Value* v) {
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

  // The dimensions that a `dim` argument names, as bits from the end.
  static uint32_t dimBits(const IValue& dim, int rank) {
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

  void reduction(const Node* node) {
    const Value* operand = node->input(0);
    const Info& from = of(operand);
    if (!from.is_tensor) refuse("a reduction of a number");
    Info info;
    info.what = reductions().at(node->maybeSchema()->name());
    info.is_tensor = true;
    auto dtype = constant(node, "dtype");
    if (!dtype) refuse("a dtype that is no constant");
    DType input = from.dtype;
    if (!dtype->isNone()) {
      auto wanted = dtypeFromNumber(dtype->toInt());
      if (!wanted || isComplex(*wanted)) refuse("the dtype");
      if (*wanted != input) refuse("a reduction with a cast");
    }
    switch (info.what) {
      case What::Softmax:
      case What::LogSoftmax:
        normalize(node, info, from);
        break;
      case What::LayerNorm:
        layerNorm(node, info, from);
        break;
      default:
        reduce(node, info, from);
    }
    info.reduction.operand = operand;
    all_pointwise_ = false;
    infos_.emplace(node->output(), std::move(info));
  }

  void reduce(const Node* node, Info& info, const Info& from) {
    auto dim = constant(node, "dim");
    auto keepdim = constant(node, "keepdim");
    if (!dim || !keepdim) refuse("dimensions that are no constants");
    info.reduction.dims = dimBits(*dim, from.shape.rank);
    info.reduction.keepdim = keepdim->isBool() && keepdim->toBool();
    bool extremum = info.what == What::Max || info.what == What::Min;
    info.dtype = from.dtype;
    if (info.what == What::Sum && isIntegral(from.dtype, true)) info.dtype = DType::Long;
    if (info.what == What::Mean && !isFloating(from.dtype)) refuse("a mean of integers");
    if (extremum && from.dtype == DType::Bool) refuse("an extremum of truth values");
    info.accumulate = isReducedFloat(info.dtype) ? DType::Float : info.dtype;
    for (int k = 0, to = 0; k < from.shape.rank; ++k) {
      bool reduced = (info.reduction.dims >> k & 1) != 0;
      if (reduced && !info.reduction.keepdim) continue;
      if (reduced || from.shape.isOne(k)) info.shape.ones |= 1u << to;
      info.shape.rank = ++to;
    }
  }

  void normalize(const Node* node, Info& info, const Info& from) {
    auto dim = constant(node, "dim");
    if (!dim || !dim->isInt() || !isFloating(from.dtype)) refuse("softmax: these arguments");
    info.reduction.dims = dimBits(*dim, from.shape.rank);
    info.shape = from.shape;
    info.dtype = from.dtype;
    info.accumulate = isReducedFloat(info.dtype) ? DType::Float : info.dtype;
  }

  void layerNorm(const Node* node, Info& info, const Info& from) {
    auto shape = constant(node, "normalized_shape");
    auto eps = constant(node, "eps");
    if (!shape || !eps || !isFloating(from.dtype)) refuse("layer_norm: these arguments");
    DimVector sizes = shape->toDims();
    const auto n = static_cast<int>(sizes.size());
    if (n == 0 || n > from.shape.rank) refuse("layer_norm: the normalized shape");
    info.reduction.dims = (1u << n) - 1;
    info.shape = from.shape;
    info.dtype = from.dtype;
    info.accumulate = isReducedFloat(info.dtype) ? DType::Float : info.dtype;
    info.eps = eps->numberToDouble();
    info.weight = affine(node, 2, from.dtype, n);
    info.bias = affine(node, 3, from.dtype, n);
    // Sizes are not part of what a kernel is made for: the caller compares those of the weight,
    // with which those of the input then agree.
    if (!info.weight || of(info.weight).what != What::Argument) refuse("layer_norm: no weight");
    for (int k = 0; k < n; ++k) {
      int64_t size = sizes[static_cast<size_t>(n - 1 - k)];
      bool one = from.shape.isOne(k);
      for (const Value* v : {info.weight, info.bias}) {
        if (!v) continue;
        if (of(v).what != What::Argument || of(v).shape.isOne(k) != one || (size == 1) != one) {
          refuse("layer_norm: the normalized shape");
        }
        checks_.push_back({of(v).argument, static_cast<uint8_t>(n - 1 - k), size});
      }
    }
  }
  const Value* affine(const Node* node, size_t i, DType dtype, int rank) const {
    const Value* v = node->input(i);
    if (auto value = constantOf(v); value && value->isNone()) return nullptr;
    const Info& info = of(v);
    if (!info.is_tensor || info.dtype != dtype || info.shape.rank != rank) {
      refuse("layer_norm: these parameters");
    }
    return v;
  }

  std::unordered_map<const Value*, Info> infos_;
  std::vector<SizeCheck> checks_;
  std::vector<PointwiseStep> steps_;
  uint32_t num_tensors_ = 0;
  bool all_pointwise_ = true;
};

// Builds one kernel.
class KernelBuilder {
 public:
  KernelBuilder(const Analysis& analysis, int rank, uint32_t reduced_from_end)
      : analysis_(analysis) {
    kernel_.rank = rank;
    for (int k = 0; k < rank; ++k) {
      if (reduced_from_end >> k & 1) kernel_.reduced |= 1u << (rank - 1 - k);
    }
  }

  Map identity(int rank) const {
    Map map;
    map.fill(-1);
    for (int k = 0; k < rank; ++k) map[static_cast<size_t>(k)] = domain(k);
    return map;
  }
  // The domain's dimensions that are not reduced, in order.
  Map kept() const {
    Map map;
    map.fill(-1);
    size_t to = 0;
    for (int d = kernel_.rank - 1; d >= 0; --d) {
      if ((kernel_.reduced >> d & 1) == 0) map[to++] = static_cast<int8_t>(d);
    }
    return map;
  }

  void store(const Value* output, uint32_t number, const Map& map) {
    const Info& info = analysis_.of(output);
    ScalarExpr value = at(output, map);
    bool per_row = kernel_.reduced != 0;
    Access access{number, info.dtype, {}};
    access.dims.fill(-1);
    for (int k = 0; k < info.shape.rank; ++k) {
      if (info.shape.isOne(k)) continue;
      auto d = static_cast<size_t>(map[static_cast<size_t>(k)]);
      access.dims[d] = static_cast<int8_t>(info.shape.rank - 1 - k);
      per_row &= (kernel_.reduced >> d & 1) == 0;
    }
    stored_.push_back(access);
    kernel_.stores.push_back({value, static_cast<uint32_t>(stored_.size() - 1), per_row});
  }

  // Accesses of stores come last, and are never those of loads, even if both look alike.
  Kernel take() {
    for (Store& store : kernel_.stores) {
      store.access += static_cast<uint32_t>(kernel_.accesses.size());
    }
    kernel_.accesses.insert(kernel_.accesses.end(), stored_.begin(), stored_.end());
    return std::move(kernel_);
  }

 private:
  int8_t domain(int from_end) const { return static_cast<int8_t>(kernel_.rank - 1 - from_end); }

  ScalarExpr at(const Value* v, Map map) {
    const Info& info = analysis_.of(v);
    // What does not vary along a dimension is the same wherever that lies.
    for (int k = 0; k < kMaxRank; ++k) {
      if (info.shape.isOne(k)) map[static_cast<size_t>(k)] = -1;
    }
    auto key = std::make_pair(v, map);
    if (auto it = done_.find(key); it != done_.end()) return it->second;
    ScalarExpr result = compute(v, info, map);
    if (!result.valid()) refuse("arithmetic that is not recorded");
    done_.emplace(key, result);
    return result;
  }

  ScalarExpr compute(const Value* v, const Info& info, const Map& map) {
    switch (info.what) {
      case What::Argument:
        return info.is_tensor ? load(info, map) : ScalarExpr();
      case What::Pointwise:
        return pointwise(info, map);
      case What::Softmax:
      case What::LogSoftmax:
        return softmax(info, map);
      case What::LayerNorm:
        return layerNorm(info, map);
      case What::Constant:
        refuse(fmt::format("%{} is a constant", v->debugName()));
      default:
        return reduced(info, map);
    }
  }

  ScalarExpr load(const Info& info, const Map& map) {
    Access access{info.argument, info.dtype, {}};
    access.dims.fill(-1);
    for (int k = 0; k < info.shape.rank; ++k) {
      int d = map[static_cast<size_t>(k)];
      if (info.shape.isOne(k)) continue;
      if (d < 0) refuse("an element that no point of the domain belongs to");
      access.dims[static_cast<size_t>(d)] = static_cast<int8_t>(info.shape.rank - 1 - k);
    }
    return kernel_.leaf({Leaf::Kind::Load, kernel_.access(access), info.dtype});
  }

  ScalarExpr number(const Info& info, DType type) {
    return kernel_.leaf({Leaf::Kind::Number, kernel_.number({info.argument, type}), type});
  }

  ScalarExpr known(const Scalar& n, DType type) {
    if (isFloating(type)) return kernel_.expression.constant(n.toDouble(), type);
    if (type == DType::Bool) return kernel_.expression.integer(n.toBool(), type);
    return kernel_.expression.integer(n.toInt(), type);
  }

  ScalarExpr pointwise(const Info& info, const Map& map) {
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
        in[i] = at(operand.value, map);
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

  // The operand of a reduction, as the domain's own points see it, in the accumulator's dtype.
  ScalarExpr operandOf(const Info& info) {
    const Info& from = analysis_.of(info.reduction.operand);
    uint32_t dims = 0;
    for (int k = 0; k < kernel_.rank; ++k) {
      if (info.reduction.dims >> k & 1) dims |= 1u << domain(k);
    }
    if (from.shape.rank != kernel_.rank || dims != kernel_.reduced) {
      refuse("reductions over different dimensions");
    }
    return kernel_.expression.convert(at(info.reduction.operand, identity(kernel_.rank)),
                                      info.accumulate);
  }
  ScalarExpr reduce(ReduceOp op, ScalarExpr operand) {
    for (size_t r = 0; r < kernel_.reductions.size(); ++r) {
      if (kernel_.reductions[r].op == op && kernel_.reductions[r].operand == operand) {
        return resultOf(r);
      }
    }
    kernel_.reductions.push_back({op, operand});
    return resultOf(kernel_.reductions.size() - 1);
  }
  ScalarExpr resultOf(size_t r) {
    DType type = kernel_.expression[kernel_.reductions[r].operand].type;
    return kernel_.leaf({Leaf::Kind::Reduction, static_cast<uint32_t>(r), type});
  }
  ScalarExpr count(DType type) { return kernel_.leaf({Leaf::Kind::Count, 0, type}); }

  // Every dimension that varies must run along the domain's own.
  void requireIdentity(const Shape& shape, const Map& map) const {
    for (int k = 0; k < shape.rank; ++k) {
      if (!shape.isOne(k) && map[static_cast<size_t>(k)] != domain(k)) {
        refuse("a reduction whose result is used in another place");
      }
    }
  }

  ScalarExpr reduced(const Info& info, const Map& map) {
    const Info& from = analysis_.of(info.reduction.operand);
    for (int k = 0, to = 0; k < from.shape.rank; ++k) {
      if ((info.reduction.dims >> k & 1) != 0) {
        to += info.reduction.keepdim ? 1 : 0;
        continue;
      }
      if (!from.shape.isOne(k) && map[static_cast<size_t>(to)] != domain(k)) {
        refuse("a reduction whose result is used in another place");
      }
      ++to;
    }
    ScalarExpr x = operandOf(info);
    ExprBuilder b(kernel_.expression, info.accumulate);
    ScalarExpr result;
    switch (info.what) {
      case What::Mean:
        result = b.div(reduce(ReduceOp::Sum, x), count(info.accumulate));
        break;
      case What::Max:
        result = reduce(ReduceOp::Max, x);
        break;
      case What::Min:
        result = reduce(ReduceOp::Min, x);
        break;
      default:
        result = reduce(ReduceOp::Sum, x);
    }
    return kernel_.expression.convert(result, info.dtype);
  }

  ScalarExpr softmax(const Info& info, const Map& map) {
    requireIdentity(info.shape, map);
    ScalarExpr x = operandOf(info);
    ExprBuilder b(kernel_.expression, info.accumulate);
    ScalarExpr shifted = b.sub(x, reduce(ReduceOp::Max, x));
    ScalarExpr power = b.exp(shifted);
    ScalarExpr sum = reduce(ReduceOp::Sum, power);
    ScalarExpr result = info.what == What::Softmax ? b.mul(power, b.div(b.constant(1), sum))
                                                   : b.sub(shifted, b.log(sum));
    return kernel_.expression.convert(result, info.dtype);
  }

  ScalarExpr layerNorm(const Info& info, const Map& map) {
    requireIdentity(info.shape, map);
    ScalarExpr x = operandOf(info);
    ExprBuilder b(kernel_.expression, info.accumulate);
    ScalarExpr n = count(info.accumulate);
    ScalarExpr mean = b.div(reduce(ReduceOp::Sum, x), n);
    ScalarExpr centered = b.sub(x, mean);
    ScalarExpr variance = b.div(reduce(ReduceOp::Sum, b.mul(centered, centered)), n);
    ScalarExpr scale = b.div(b.constant(1), b.sqrt(b.add(variance, b.constant(info.eps))));
    ScalarExpr result = b.mul(centered, scale);
    const Map points = identity(kernel_.rank);
    Expression& e = kernel_.expression;
    result = b.mul(result, e.convert(at(info.weight, points), info.accumulate));
    if (info.bias) result = b.add(result, e.convert(at(info.bias, points), info.accumulate));
    return e.convert(result, info.dtype);
  }

  const Analysis& analysis_;
  Kernel kernel_;
  std::vector<Access> stored_;
  std::map<std::pair<const Value*, Map>, ScalarExpr> done_;
};

// A kernel to be: its domain, and the outputs that it stores.
struct Domain {
  Shape shape;
  uint32_t reduced;  // bit k: from the end
  friend bool operator==(const Domain&, const Domain&) = default;
};

// The domain of the first reduction among a value's producers.
std::optional<Domain> reductionBehind(
    const Analysis& analysis, const Value* v,
    std::unordered_map<const Value*, std::optional<Domain>>& seen) {
  if (!analysis.knows(v)) return std::nullopt;
  if (auto it = seen.find(v); it != seen.end()) return it->second;
  const Info& info = analysis.of(v);
  std::optional<Domain> found;
  if (info.what == What::Pointwise) {
    for (const Operand& operand : info.call.operands) {
      if (found || !operand.value) continue;
      found = reductionBehind(analysis, operand.value, seen);
    }
  } else if (info.what != What::Argument && info.what != What::Constant) {
    found = Domain{analysis.of(info.reduction.operand).shape, info.reduction.dims};
  }
  seen.emplace(v, found);
  return found;
}

}  // namespace

bool isReduction(const Node* node) {
  const Operator* op = node->maybeOperator();
  if (!op || op->form() != Operator::Form::Base || node->outputs().size() != 1 ||
      node->output()->type()->kind() != TypeKind::Tensor ||
      reductions().count(op->schema().name()) == 0) {
    return false;
  }
  return !node->inputs().empty() && node->input(0)->type()->kind() == TypeKind::Tensor;
}

std::vector<const Value*> tensorConstants(const Graph& body) {
  std::vector<const Value*> constants;
  for (const Node* node : body.nodes()) {
    if (node->kind() != prim::Constant) continue;
    auto value = constantOf(node->output());
    if (value && value->isTensor()) constants.push_back(node->output());
  }
  return constants;
}

Program lowerGroup(const Graph& body, std::span<const ArgumentInfo> arguments) {
  Analysis analysis(body, arguments);
  std::unordered_map<const Value*, std::optional<Domain>> behind;
  Program program;
  std::vector<Domain> domains;
  std::vector<Domain> domain_of;
  // Kernels with reductions first: outputs without any may join them.
  for (const Value* output : body.outputs()) {
    const Info& info = analysis.of(output);
    if (!info.is_tensor || info.what == What::Argument) refuse("an output that is not computed");
    auto reduction = reductionBehind(analysis, output, behind);
    domain_of.push_back(reduction.value_or(Domain{info.shape, 0}));
    if (reduction && std::find(domains.begin(), domains.end(), *reduction) == domains.end()) {
      domains.push_back(*reduction);
    }
  }
  for (Domain& domain : domain_of) {
    if (domain.reduced != 0) continue;
    auto same = std::find_if(domains.begin(), domains.end(),
                             [&](const Domain& d) { return d.shape == domain.shape; });
    if (same == domains.end()) {
      domains.push_back(domain);
    } else {
      domain = *same;
    }
  }
  program.checks = analysis.checks();
  analysis.follow(body, program);
  program.outputs.resize(body.outputs().size());
  for (size_t k = 0; k < domains.size(); ++k) {
    const Domain& domain = domains[k];
    KernelBuilder builder(analysis, domain.shape.rank, domain.reduced);
    for (size_t i = 0; i < domain_of.size(); ++i) {
      if (domain_of[i] != domain) continue;
      const Value* output = body.outputs()[i];
      const Info& info = analysis.of(output);
      int kept = domain.shape.rank - __builtin_popcount(domain.reduced);
      Map map = builder.identity(domain.shape.rank);
      if (info.shape.rank != domain.shape.rank) {
        if (info.shape.rank != kept) refuse("an output of another rank than its reduction");
        map = builder.kept();
      }
      builder.store(output, static_cast<uint32_t>(i), map);
      OutputInfo& out = program.outputs[i];
      out = {info.dtype, static_cast<uint8_t>(info.shape.rank), static_cast<uint32_t>(k), {}};
      out.dims.fill(-1);
      for (int d = 0; d < info.shape.rank; ++d) {
        int from_end = info.shape.rank - 1 - d;
        if (!info.shape.isOne(from_end)) {
          out.dims[static_cast<size_t>(d)] = map[static_cast<size_t>(from_end)];
        }
      }
    }
    program.kernels.push_back(builder.take());
  }
  return program;
}

}  // namespace wick::loop
