#include "streams/time/axis_rules.h"

#include <algorithm>

#include "core/error_types.h"
#include "runtime/fusion/form_groups.h"
#include "streams/time/rule_call.h"

namespace wick::streams {

namespace {

using Rule = std::function<TimeRule(const RuleCall&)>;

// Time stays where it is; the argument that names a dimension must name another.
Rule along(const char* argument) {
  return [argument](const RuleCall& call) {
    call.onlyFirst();
    if (argument) call.notOverTime(call.dimension(argument));
    return eachStep(call.axis());
  };
}

TimeRule reduce(const RuleCall& call) {
  call.onlyFirst();
  const int64_t rank = call.rank();
  const IValue dim = call.has("dim") ? call.value("dim") : IValue();
  if (dim.isNone()) call.refuseAllOfTime();
  std::vector<int64_t> dims;
  if (dim.isInt()) {
    dims.push_back(dim.toInt());
  } else {
    dims = call.ints("dim");
  }
  if (dims.empty()) call.refuseAllOfTime();
  int64_t before = 0;
  for (int64_t d : dims) {
    d = d < 0 ? d + rank : d;
    call.notOverTime(d);
    if (d < call.axis()) ++before;
  }
  const bool keeps = call.has("keepdim") && call.value("keepdim").toBool();
  return eachStep(keeps ? call.axis() : call.axis() - before);
}

TimeRule transpose(const RuleCall& call) {
  call.onlyFirst();
  const int64_t a = call.dimension("dim0"), b = call.dimension("dim1");
  const int64_t axis = call.axis();
  return eachStep(axis == a ? b : axis == b ? a : axis);
}

TimeRule permute(const RuleCall& call) {
  call.onlyFirst();
  const std::vector<int64_t> dims = call.ints("dims");
  for (size_t i = 0; i < dims.size(); ++i) {
    if ((dims[i] < 0 ? dims[i] + call.rank() : dims[i]) == call.axis()) {
      return eachStep(static_cast<int64_t>(i));
    }
  }
  // The call with the example has shown that all dimensions are there.
  throw InternalError(__FILE__, __LINE__, "permute without the dimension of time");
}

TimeRule unsqueeze(const RuleCall& call) {
  call.onlyFirst();
  const int64_t dim = call.dimension(call.value("dim"), call.rank() + 1);
  return eachStep(call.axis() + (dim <= call.axis() ? 1 : 0));
}

// select and squeeze of one dimension.
TimeRule dropOne(const RuleCall& call) {
  call.onlyFirst();
  if (!call.has("dim")) call.refuse("without a dimension may lose that of time");
  const int64_t dim = call.dimension("dim");
  call.notOverTime(dim);
  const bool drops = call.name() != "aten::squeeze" || call.values()[0].toTensor().size(dim) == 1;
  return eachStep(call.axis() - (drops && dim < call.axis() ? 1 : 0));
}

// One dimension between `start_dim` and `end_dim` of all that are joined.
TimeRule flatten(const RuleCall& call) {
  call.onlyFirst();
  const int64_t start = call.dimension("start_dim"), end = call.dimension("end_dim");
  const int64_t axis = call.axis();
  if (start != end && axis >= start && axis <= end) call.refuse("joins time with other dimensions");
  return eachStep(axis > end ? axis - (end - start) : axis);
}

TimeRule unflatten(const RuleCall& call) {
  call.onlyFirst();
  const int64_t dim = call.dimension("dim");
  call.notOverTime(dim);
  const auto made = static_cast<int64_t>(call.ints("sizes").size());
  return eachStep(call.axis() + (dim < call.axis() ? made - 1 : 0));
}

// The last dimension holds real and imaginary parts.
TimeRule pairs(const RuleCall& call) {
  call.onlyFirst();
  call.notOverTime(call.rank() - 1);
  return eachStep(call.axis());
}

// Slopes are one, or one for each channel.
TimeRule prelu(const RuleCall& call) {
  call.onlyFirst();
  if (call.values()[1].toTensor().numel() != 1) call.notOverTime(call.rank() > 1 ? 1 : 0);
  return eachStep(call.axis());
}

// Takes its dtype from the second argument, which may have time or not.
TimeRule converted(const RuleCall& call) {
  if (call.axis() < 0) call.refuse("reads time elsewhere than in its first argument");
  return eachStep(call.axis());
}

TimeRule layerNorm(const RuleCall& call) {
  call.onlyFirst();
  const auto normalized = static_cast<int64_t>(call.ints("normalized_shape").size());
  if (call.axis() >= call.rank() - normalized) call.refuseAllOfTime();
  return eachStep(call.axis());
}

TimeRule batchNorm(const RuleCall& call) {
  call.onlyFirst();
  call.notOverTime(1);
  if (call.value("training").toBool()) call.refuse("in training works over all of the time");
  return eachStep(call.axis());
}

// x @ w or w @ x with w a matrix that does not depend on time, and linear layers.
TimeRule product(const RuleCall& call) {
  if (call.axis() < 0 && !call.has("weight") && call.axes().size() == 2) {
    const int64_t rank = call.values()[1].toTensor().dim(), axis = call.axes()[1];
    if (call.values()[0].toTensor().dim() != 2 || rank < 2 || axis == rank - 2) {
      call.refuse("adds over time, or multiplies batches of matrices");
    }
    return eachStep(axis);
  }
  call.onlyFirst();
  if (call.has("weight") || call.values()[1].toTensor().dim() <= 2) {
    call.notOverTime(call.rank() - 1);
    return eachStep(call.axis());
  }
  call.refuse("with batches of matrices may go across time");
}

TimeRule embedding(const RuleCall& call) {
  if (call.axes().size() < 2 || call.axes()[0] >= 0 || call.axes()[1] < 0) {
    call.refuse("reads time elsewhere than in its indices");
  }
  return eachStep(call.axes()[1]);
}

// Operands meet with their last dimensions; time must be the same one of all, and those without
// time must have one element there, or nothing.
TimeRule pointwise(const RuleCall& call) {
  int64_t rank = 0;
  for (const IValue& v : call.values()) {
    if (v.isTensor() && v.toTensor().defined()) rank = std::max(rank, v.toTensor().dim());
  }
  std::optional<int64_t> axis;
  for (size_t i = 0; i < call.axes().size(); ++i) {
    if (call.axes()[i] < 0) continue;
    const int64_t here = rank - call.values()[i].toTensor().dim() + call.axes()[i];
    if (axis && *axis != here) call.refuse("meets time with another dimension");
    axis = here;
  }
  for (size_t i = 0; i < call.axes().size(); ++i) {
    const IValue& v = call.values()[i];
    if (call.axes()[i] >= 0 || !v.isTensor() || !v.toTensor().defined()) continue;
    const int64_t at = *axis - (rank - v.toTensor().dim());
    if (at >= 0 && v.toTensor().size(at) != 1) {
      call.refuse("meets time with a tensor of a fixed length");
    }
  }
  return eachStep(*axis);
}

// The largest and the smallest, of two tensors or along a dimension.
TimeRule extremum(const RuleCall& call) {
  return call.has("other") ? pointwise(call) : reduce(call);
}

const RuleMap& rules() {
  static const auto* const kRules = [] {
    auto* map = new RuleMap();
    addAxisRules(*map);
    addWindowRules(*map);
    addLengthRules(*map);
    addCarryRules(*map);
    return map;
  }();
  return *kRules;
}

}  // namespace

void addAxisRules(RuleMap& map) {
  const auto add = [&](std::initializer_list<const char*> names, const Rule& rule) {
    for (const char* name : names) map.emplace(name, OperatorRule{rule});
  };
  add({"aten::contiguous", "aten::clone", "aten::detach", "aten::dropout", "aten::alias",
       "aten::feature_dropout", "aten::zeros_like", "aten::ones_like", "aten::full_like",
       "aten::__getitem__"},
      along(nullptr));
  add({"aten::to", "aten::type_as"}, converted);
  add({"aten::softmax", "aten::log_softmax", "aten::glu", "aten::chunk", "aten::split",
       "aten::split_with_sizes", "aten::narrow", "aten::cat"},
      along("dim"));
  add({"aten::sum", "aten::mean", "aten::amax", "aten::amin", "aten::argmax", "aten::argmin",
       "aten::var", "aten::std", "aten::logsumexp", "aten::norm", "aten::all", "aten::any",
       "aten::prod", "aten::var_mean", "aten::std_mean", "aten::linalg_vector_norm"},
      reduce);
  add({"aten::max", "aten::min"}, extremum);
  add({"aten::transpose"}, transpose);
  add({"aten::permute"}, permute);
  add({"aten::unsqueeze", "aten::stack"}, unsqueeze);
  add({"aten::select", "aten::squeeze", "aten::unbind"}, dropOne);
  add({"aten::flatten"}, flatten);
  add({"aten::unflatten"}, unflatten);
  add({"aten::prelu"}, prelu);
  add({"aten::expand_as", "aten::complex", "aten::polar"}, pointwise);
  add({"aten::view_as_real"}, along(nullptr));
  add({"aten::view_as_complex"}, pairs);
  add({"aten::layer_norm"}, layerNorm);
  add({"aten::batch_norm"}, batchNorm);
  add({"aten::linear", "wick::linear_fused", "aten::matmul"}, product);
  add({"aten::embedding"}, embedding);
}

TimeRule timeRuleOf(const Node& node, const TimeArguments& arguments) {
  const RuleCall call(node, arguments);
  const auto found = rules().find(node.kind().qualString());
  if (call.anyLengths() && (found == rules().end() || !found->second.takes_lengths)) {
    call.refuse("needs the length of all of the time, so it cannot run piece by piece");
  }
  if (found != rules().end()) return found->second.make(call);
  const Operator* op = node.maybeOperator();
  if (op && (op->record().scalar || kernelKindOf(&node) == FusionKind::Pointwise) &&
      node.outputs().size() == 1) {
    return pointwise(call);
  }
  call.refuse("has no form that runs piece by piece");
}

}  // namespace wick::streams
