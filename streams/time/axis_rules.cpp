#include "streams/time/axis_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <unordered_map>

#include "core/error_types.h"
#include "ir/shape_facts.h"
#include "runtime/fusion/form_groups.h"

namespace wick::streams {

namespace {

constexpr int64_t kMostSteps = int64_t{1} << 31;

class Call {
 public:
  Call(const Node& node, const std::vector<IValue>& arguments, const std::vector<int64_t>& axes)
      : node_(node), arguments_(arguments), axes_(axes) {}

  const Node& node() const { return node_; }
  std::string name() const { return std::string(node_.kind().qualString()); }
  [[noreturn]] void refuse(const std::string& why) const {
    throw UsageError(fmt::format("{} {}", name(), why));
  }

  size_t indexOf(std::string_view argument) const {
    const auto& declared = node_.getOperator().schema().arguments();
    for (size_t i = 0; i < declared.size(); ++i) {
      if (declared[i].name == argument) return i;
    }
    refuse(fmt::format("has no argument '{}', so it is not known how it goes over time", argument));
  }
  bool has(std::string_view argument) const {
    const auto& declared = node_.getOperator().schema().arguments();
    return std::ranges::any_of(declared, [&](const Argument& a) { return a.name == argument; });
  }
  const IValue& value(std::string_view argument) const { return arguments_[indexOf(argument)]; }

  int64_t axis() const { return axes_[0]; }
  // Of the tensor with time, or of the elements of the list.
  int64_t rank() const {
    const IValue& first = arguments_[0];
    if (first.isTensor()) return first.toTensor().dim();
    if (first.isList() && !first.elements().empty() && first.elements()[0].isTensor()) {
      return first.elements()[0].toTensor().dim();
    }
    refuse("is no tensor");
  }
  // Only the first argument has time.
  void onlyFirst() const {
    for (size_t i = 1; i < axes_.size(); ++i) {
      if (axes_[i] >= 0) refuse("reads time in more than its first argument");
    }
    if (axes_.empty() || axes_[0] < 0) refuse("reads time elsewhere than in its first argument");
  }
  int64_t dimension(const IValue& value, int64_t rank) const {
    const int64_t d = value.toInt();
    return d < 0 ? d + rank : d;
  }
  int64_t dimension(std::string_view argument) const { return dimension(value(argument), rank()); }
  void notOverTime(int64_t dim) const {
    if (dim == axis()) refuse("works over all of the time, so it cannot run piece by piece");
  }
  std::vector<int64_t> ints(std::string_view argument) const {
    const IValue& v = value(argument);
    if (v.isNone()) return {};
    const DimVector dims = v.toDims();
    return {dims.begin(), dims.end()};
  }
  const std::vector<IValue>& arguments() const { return arguments_; }
  const std::vector<int64_t>& axes() const { return axes_; }

 private:
  const Node& node_;
  const std::vector<IValue>& arguments_;
  const std::vector<int64_t>& axes_;
};

using Rule = std::function<TimeRule(const Call&)>;

TimeRule each(int64_t axis) {
  TimeRule rule;
  rule.axis = axis;
  return rule;
}

// Time stays where it is; the argument that names a dimension must name another.
Rule along(const char* argument) {
  return [argument](const Call& call) {
    call.onlyFirst();
    if (argument) call.notOverTime(call.dimension(argument));
    return each(call.axis());
  };
}

TimeRule reduce(const Call& call) {
  call.onlyFirst();
  const int64_t rank = call.rank();
  const IValue dim = call.has("dim") ? call.value("dim") : IValue();
  if (dim.isNone()) call.refuse("works over all of the time, so it cannot run piece by piece");
  std::vector<int64_t> dims;
  if (dim.isInt()) {
    dims.push_back(dim.toInt());
  } else {
    dims = call.ints("dim");
  }
  if (dims.empty()) call.refuse("works over all of the time, so it cannot run piece by piece");
  int64_t before = 0;
  for (int64_t d : dims) {
    d = d < 0 ? d + rank : d;
    call.notOverTime(d);
    if (d < call.axis()) ++before;
  }
  const bool keeps = call.has("keepdim") && call.value("keepdim").toBool();
  return each(keeps ? call.axis() : call.axis() - before);
}

TimeRule transpose(const Call& call) {
  call.onlyFirst();
  const int64_t a = call.dimension("dim0"), b = call.dimension("dim1");
  const int64_t axis = call.axis();
  return each(axis == a ? b : axis == b ? a : axis);
}

TimeRule permute(const Call& call) {
  call.onlyFirst();
  const std::vector<int64_t> dims = call.ints("dims");
  for (size_t i = 0; i < dims.size(); ++i) {
    if ((dims[i] < 0 ? dims[i] + call.rank() : dims[i]) == call.axis()) {
      return each(static_cast<int64_t>(i));
    }
  }
  call.refuse("loses the dimension of time");
}

TimeRule unsqueeze(const Call& call) {
  call.onlyFirst();
  const int64_t dim = call.dimension(call.value("dim"), call.rank() + 1);
  return each(call.axis() + (dim <= call.axis() ? 1 : 0));
}

// select and squeeze of one dimension.
TimeRule dropOne(const Call& call) {
  call.onlyFirst();
  if (!call.has("dim")) call.refuse("without a dimension may lose that of time");
  const int64_t dim = call.dimension("dim");
  call.notOverTime(dim);
  const bool drops =
      call.name() != "aten::squeeze" || call.arguments()[0].toTensor().size(dim) == 1;
  return each(call.axis() - (drops && dim < call.axis() ? 1 : 0));
}

TimeRule slice(const Call& call) {
  call.onlyFirst();
  if (call.dimension("dim") != call.axis()) return each(call.axis());
  const IValue& start = call.value("start");
  const IValue& end = call.value("end");
  TimeRule rule = each(call.axis());
  rule.kind = TimeRule::Kind::Cut;
  rule.before = start.isNone() ? 0 : start.toInt();
  const int64_t last = end.isNone() ? std::numeric_limits<int64_t>::max() : end.toInt();
  const bool to_end = last == std::numeric_limits<int64_t>::max();
  rule.behind = to_end ? 0 : -last;
  if (rule.before < 0 || rule.behind < 0 || call.value("step").toInt() != 1) {
    call.refuse("cuts time elsewhere than some steps off its beginning and end");
  }
  if (rule.before > kMostSteps || rule.behind > kMostSteps) call.refuse("cuts off too much");
  return rule;
}

// The numbers of an argument for `count` dimensions, one for all of them or one each.
std::vector<int64_t> perDimension(const Call& call, std::string_view argument, size_t count,
                                  const std::vector<int64_t>& otherwise) {
  std::vector<int64_t> list = call.ints(argument);
  if (list.empty()) list = otherwise;
  if (list.size() == 1) list.assign(count, list[0]);
  if (list.size() != count) call.refuse(fmt::format("has an unusual '{}'", argument));
  for (int64_t n : list) {
    if (n < 0 || n > kMostSteps) call.refuse(fmt::format("has a '{}' out of range", argument));
  }
  return list;
}

// The dimension among those behind batch and channels.
size_t spatial(const Call& call, int64_t count) {
  const int64_t first = call.rank() - count;
  if (call.axis() < first) {
    call.refuse("has time as its batch or its channels, which windows go across");
  }
  return static_cast<size_t>(call.axis() - first);
}

TimeRule window(const Call& call, std::vector<int64_t> size, const std::vector<int64_t>& stride,
                std::vector<int64_t> padding, const std::vector<int64_t>& dilation, size_t at) {
  TimeRule rule = each(call.axis());
  rule.kind = TimeRule::Kind::Window;
  if (size[at] < 1 || stride[at] < 1 || dilation[at] < 1) call.refuse("has an empty window");
  if (__builtin_mul_overflow(size[at] - 1, dilation[at], &rule.window) ||
      rule.window >= kMostSteps) {
    call.refuse("has too large a window");
  }
  ++rule.window;
  rule.stride = stride[at];
  rule.before = rule.behind = padding[at];
  padding[at] = 0;
  rule.replaced = call.indexOf("padding");
  rule.replacement = std::move(padding);
  return rule;
}

TimeRule convolution(const Call& call) {
  call.onlyFirst();
  const IValue& weight = call.value("weight");
  if (!weight.isTensor()) call.refuse("has no weight");
  if (call.has("transposed") && call.value("transposed").toBool()) {
    call.refuse("is transposed, which has no windows");
  }
  if (!call.value("padding").isList()) call.refuse("names its padding by a word");
  const int64_t count = weight.toTensor().dim() - 2;
  if (count < 1) call.refuse("has an unusual weight");
  const auto n = static_cast<size_t>(count);
  const size_t at = spatial(call, count);
  std::vector<int64_t> size;
  for (int64_t d = 0; d < count; ++d) size.push_back(weight.toTensor().size(d + 2));
  return window(call, size, perDimension(call, "stride", n, {1}),
                perDimension(call, "padding", n, {0}), perDimension(call, "dilation", n, {1}), at);
}

Rule pool(int64_t count, bool maximum) {
  return [count, maximum](const Call& call) {
    call.onlyFirst();
    const auto n = static_cast<size_t>(count);
    const std::vector<int64_t> size = perDimension(call, "kernel_size", n, {});
    const std::vector<int64_t> dilation =
        maximum ? perDimension(call, "dilation", n, {1}) : std::vector<int64_t>(n, 1);
    if (call.value("ceil_mode").toBool()) call.refuse("rounds up, which depends on the length");
    const size_t at = spatial(call, count);
    TimeRule rule = window(call, size, perDimension(call, "stride", n, size),
                           perDimension(call, "padding", n, {0}), dilation, at);
    if (maximum) {
      rule.fill = -std::numeric_limits<double>::infinity();
    } else if (rule.before > 0 && !call.value("count_include_pad").toBool()) {
      call.refuse("does not count its padding, so its ends differ from its middle");
    }
    return rule;
  };
}

TimeRule pad(const Call& call) {
  call.onlyFirst();
  if (call.has("mode") && call.value("mode").toString() != "constant") {
    call.refuse("pads with what is inside");
  }
  std::vector<int64_t> amounts = call.ints("pad");
  const auto pair = static_cast<size_t>(2 * (call.rank() - 1 - call.axis()));
  TimeRule rule = each(call.axis());
  if (amounts.size() < pair + 2) return rule;
  rule.kind = TimeRule::Kind::Pad;
  rule.before = std::exchange(amounts[pair], 0);
  rule.behind = std::exchange(amounts[pair + 1], 0);
  if (rule.before < 0 || rule.behind < 0 || rule.before > kMostSteps || rule.behind > kMostSteps) {
    call.refuse("pads time by a negative or a very large number");
  }
  const IValue& value = call.value("value");
  rule.fill = value.isNone() ? 0 : value.numberToDouble();
  rule.replaced = call.indexOf("pad");
  rule.replacement = std::move(amounts);
  return rule;
}

TimeRule layerNorm(const Call& call) {
  call.onlyFirst();
  const auto normalized = static_cast<int64_t>(call.ints("normalized_shape").size());
  if (call.axis() >= call.rank() - normalized) {
    call.refuse("works over all of the time, so it cannot run piece by piece");
  }
  return each(call.axis());
}

TimeRule batchNorm(const Call& call) {
  call.onlyFirst();
  call.notOverTime(1);
  if (call.value("training").toBool()) call.refuse("in training works over all of the time");
  return each(call.axis());
}

// x @ w with w a matrix that does not depend on time, and linear layers.
TimeRule product(const Call& call) {
  call.onlyFirst();
  if (call.has("weight") || call.arguments()[1].toTensor().dim() <= 2) {
    call.notOverTime(call.rank() - 1);
    return each(call.axis());
  }
  call.refuse("with batches of matrices may go across time");
}

TimeRule embedding(const Call& call) {
  if (call.axes().size() < 2 || call.axes()[0] >= 0 || call.axes()[1] < 0) {
    call.refuse("reads time elsewhere than in its indices");
  }
  return each(call.axes()[1]);
}

// Operands meet with their last dimensions; time must be the same one of all, and those without
// time must have one element there, or nothing.
TimeRule pointwise(const Call& call) {
  int64_t rank = 0;
  for (const IValue& v : call.arguments()) {
    if (v.isTensor() && v.toTensor().defined()) rank = std::max(rank, v.toTensor().dim());
  }
  std::optional<int64_t> axis;
  for (size_t i = 0; i < call.axes().size(); ++i) {
    if (call.axes()[i] < 0) continue;
    const int64_t here = rank - call.arguments()[i].toTensor().dim() + call.axes()[i];
    if (axis && *axis != here) call.refuse("meets time with another dimension");
    axis = here;
  }
  for (size_t i = 0; i < call.axes().size(); ++i) {
    const IValue& v = call.arguments()[i];
    if (call.axes()[i] >= 0 || !v.isTensor() || !v.toTensor().defined()) continue;
    const int64_t at = *axis - (rank - v.toTensor().dim());
    if (at >= 0 && v.toTensor().size(at) != 1) {
      call.refuse("meets time with a tensor of a fixed length");
    }
  }
  return each(*axis);
}

const std::unordered_map<std::string_view, Rule>& rules() {
  static const auto* const kRules = [] {
    auto* map = new std::unordered_map<std::string_view, Rule>();
    const auto add = [&](std::initializer_list<const char*> names, const Rule& rule) {
      for (const char* name : names) map->emplace(name, rule);
    };
    add({"aten::contiguous", "aten::clone", "aten::detach", "aten::dropout", "aten::to",
         "aten::alias", "aten::feature_dropout", "aten::type_as"},
        along(nullptr));
    add({"aten::softmax", "aten::log_softmax", "aten::glu", "aten::chunk", "aten::split",
         "aten::split_with_sizes", "aten::cumsum", "aten::narrow", "aten::cat"},
        along("dim"));
    add({"aten::sum", "aten::mean", "aten::amax", "aten::amin", "aten::argmax", "aten::argmin",
         "aten::var", "aten::std", "aten::logsumexp", "aten::norm", "aten::all", "aten::any"},
        reduce);
    add({"aten::transpose"}, transpose);
    add({"aten::permute"}, permute);
    add({"aten::unsqueeze"}, unsqueeze);
    add({"aten::select", "aten::squeeze"}, dropOne);
    add({"aten::slice"}, slice);
    add({"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::_convolution", "aten::convolution",
         "wick::conv2d_fused"},
        convolution);
    add({"aten::max_pool1d"}, pool(1, true));
    add({"aten::max_pool2d"}, pool(2, true));
    add({"aten::avg_pool1d"}, pool(1, false));
    add({"aten::avg_pool2d"}, pool(2, false));
    add({"aten::pad", "aten::constant_pad_nd"}, pad);
    add({"aten::layer_norm"}, layerNorm);
    add({"aten::batch_norm"}, batchNorm);
    add({"aten::linear", "wick::linear_fused", "aten::matmul"}, product);
    add({"aten::embedding"}, embedding);
    return map;
  }();
  return *kRules;
}

}  // namespace

TimeRule timeRuleOf(const Node& node, const std::vector<IValue>& arguments,
                    const std::vector<int64_t>& axes) {
  const Call call(node, arguments, axes);
  const auto rule = rules().find(node.kind().qualString());
  if (rule != rules().end()) return rule->second(call);
  const Operator* op = node.maybeOperator();
  if (op && (op->record().scalar || kernelKindOf(&node) == FusionKind::Pointwise) &&
      node.outputs().size() == 1) {
    return pointwise(call);
  }
  call.refuse("has no form that runs piece by piece");
}

}  // namespace wick::streams
