// Operators whose results come from windows of steps, and those that add and leave out steps.
#include <fmt/format.h>

#include <limits>

#include "streams/time/rule_call.h"

namespace wick::streams {

namespace {

// The numbers of an argument for `count` dimensions, one for all of them or one each.
std::vector<int64_t> perDimension(const RuleCall& call, std::string_view argument, size_t count,
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
size_t spatial(const RuleCall& call, int64_t count) {
  const int64_t first = call.rank() - count;
  if (call.axis() < first) {
    call.refuse("has time as its batch or its channels, which windows go across");
  }
  return static_cast<size_t>(call.axis() - first);
}

int64_t windowOf(const RuleCall& call, int64_t size, int64_t stride, int64_t dilation) {
  int64_t window = 0;
  if (size < 1 || stride < 1 || dilation < 1) call.refuse("has an empty window");
  if (__builtin_mul_overflow(size - 1, dilation, &window) || window >= kMostSteps) {
    call.refuse("has too large a window");
  }
  return window + 1;
}

TimeRule window(const RuleCall& call, const std::vector<int64_t>& size,
                const std::vector<int64_t>& stride, std::vector<int64_t> padding,
                const std::vector<int64_t>& dilation, size_t at) {
  TimeRule rule = eachStep(call.axis());
  rule.kind = TimeRule::Kind::Window;
  rule.window = windowOf(call, size[at], stride[at], dilation[at]);
  rule.stride = stride[at];
  rule.before = rule.behind = padding[at];
  padding[at] = 0;
  rule.replaced.emplace_back(call.indexOf("padding"), IValue(makeIntList(padding)));
  return rule;
}

// Each step adds to a window of results; `stride` of them are complete with it. What is called with
// the steps that still count gives all results that they add to; only the complete ones are taken.
TimeRule spread(const RuleCall& call, const std::vector<int64_t>& size) {
  const size_t n = size.size();
  const size_t at = spatial(call, static_cast<int64_t>(n));
  const std::vector<int64_t> stride = perDimension(call, "stride", n, {1});
  std::vector<int64_t> padding = perDimension(call, "padding", n, {0});
  std::vector<int64_t> added = perDimension(call, "output_padding", n, {0});
  TimeRule rule = eachStep(call.axis());
  rule.kind = TimeRule::Kind::Spread;
  rule.window = windowOf(call, size[at], stride[at], perDimension(call, "dilation", n, {1})[at]);
  rule.stride = rule.push = stride[at];
  // The last step gives stride results, and these more when it is known to be the last.
  const int64_t more = rule.window + added[at] - padding[at] - stride[at];
  rule.before = padding[at];
  rule.beyond = std::max<int64_t>(more, 0);
  rule.behind = std::max<int64_t>(-more, 0);
  padding[at] = 0;
  const auto with = [&](int64_t output_padding) {
    added[at] = output_padding;
    return TimeRule::Replaced{{call.indexOf("padding"), IValue(makeIntList(padding))},
                              {call.indexOf("output_padding"), IValue(makeIntList(added))}};
  };
  rule.replaced_last = with(added[at]);
  rule.replaced = with(std::max<int64_t>(stride[at] - rule.window, 0));
  return rule;
}

TimeRule convolution(const RuleCall& call) {
  call.onlyFirst();
  const IValue& weight = call.value("weight");
  if (!weight.isTensor()) call.refuse("has no weight");
  if (!call.value("padding").isList()) call.refuse("names its padding by a word");
  const int64_t count = weight.toTensor().dim() - 2;
  if (count < 1) call.refuse("has an unusual weight");
  std::vector<int64_t> size;
  for (int64_t d = 0; d < count; ++d) size.push_back(weight.toTensor().size(d + 2));
  const bool transposed =
      call.has("transposed") ? call.value("transposed").toBool() : call.has("output_padding");
  if (transposed) return spread(call, size);
  const auto n = static_cast<size_t>(count);
  return window(call, size, perDimension(call, "stride", n, {1}),
                perDimension(call, "padding", n, {0}), perDimension(call, "dilation", n, {1}),
                spatial(call, count));
}

std::function<TimeRule(const RuleCall&)> pool(int64_t count, bool maximum) {
  return [count, maximum](const RuleCall& call) {
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

// Frames of some steps each, whose steps are a dimension behind all others.
TimeRule unfold(const RuleCall& call) {
  call.onlyFirst();
  TimeRule rule = eachStep(call.axis());
  if (call.dimension("dimension") != call.axis()) return rule;
  rule.kind = TimeRule::Kind::Window;
  rule.window = windowOf(call, call.value("size").toInt(), call.value("step").toInt(), 1);
  rule.stride = call.value("step").toInt();
  if (rule.stride > kMostSteps) call.refuse("has a 'step' out of range");
  return rule;
}

// What the argument `amounts` says of time; it says nothing of it in calls with a piece.
TimeRule padded(const RuleCall& call, const char* argument, TimeRule::Kind kind) {
  std::vector<int64_t> amounts = call.ints(argument);
  const auto pair = static_cast<size_t>(2 * (call.rank() - 1 - call.axis()));
  TimeRule rule = eachStep(call.axis());
  if (amounts.size() < pair + 2) return rule;
  rule.kind = kind;
  rule.before = std::exchange(amounts[pair], 0);
  rule.behind = std::exchange(amounts[pair + 1], 0);
  if (rule.before < 0 || rule.behind < 0 || rule.before > kMostSteps || rule.behind > kMostSteps) {
    call.refuse("pads time by a negative or a very large number");
  }
  rule.replaced.emplace_back(call.indexOf(argument), IValue(makeIntList(amounts)));
  return rule;
}

std::function<TimeRule(const RuleCall&)> mirror(bool repeats) {
  return [repeats](const RuleCall& call) {
    call.onlyFirst();
    TimeRule rule = padded(call, call.has("pad") ? "pad" : "padding", TimeRule::Kind::Mirror);
    rule.repeats = repeats;
    return rule;
  };
}

TimeRule pad(const RuleCall& call) {
  call.onlyFirst();
  if (call.has("mode") && call.value("mode").toString() != "constant") {
    const std::string mode(call.value("mode").toString());
    if (mode != "reflect" && mode != "replicate") call.refuse("pads with what is at the other end");
    return mirror(mode == "replicate")(call);
  }
  TimeRule rule = padded(call, "pad", TimeRule::Kind::Pad);
  const IValue& value = call.value("value");
  rule.fill = value.isNone() ? 0 : value.numberToDouble();
  return rule;
}

// Frames become frequencies; their dimension is behind these.
TimeRule stft(const RuleCall& call) {
  call.onlyFirst();
  if (call.has("center") && call.value("center").toBool()) {
    call.refuse(
        "pads with what is inside; padded before and with center=False it runs piece by piece");
  }
  const IValue& hop = call.value("hop_length");
  const int64_t size = call.value("n_fft").toInt();
  if (call.axis() != call.rank() - 1) call.refuse("has time as its batch");
  TimeRule rule = eachStep(call.rank());
  rule.kind = TimeRule::Kind::Window;
  rule.stride = hop.isNone() ? size / 4 : hop.toInt();
  rule.window = windowOf(call, size, rule.stride, 1);
  if (rule.stride > kMostSteps) call.refuse("has a 'hop_length' out of range");
  return rule;
}

// Steps that are given several times, each as often.
TimeRule nearest(const RuleCall& call) {
  call.onlyFirst();
  const int64_t count = call.rank() - 2;
  const size_t at = spatial(call, count);
  const IValue* factors = call.has("scale_factors") ? &call.value("scale_factors") : nullptr;
  if (!factors || !factors->isList() || factors->elements().size() != static_cast<size_t>(count)) {
    call.refuse("is told a length, not a factor, so it cannot run piece by piece");
  }
  const double factor = factors->elements()[at].numberToDouble();
  TimeRule rule = eachStep(call.axis());
  // The place that a result comes from is a product in float32 there, rounded down: of some whole factors
  // it lies below where it should.
  const auto whole = static_cast<int64_t>(std::clamp(factor, 0.0, 1e6));
  if (static_cast<double>(whole) != factor || whole < 1 ||
      static_cast<double>(static_cast<float>(1 / factor)) * factor < 1) {
    call.refuse(fmt::format("stretches time by {}, which does not go piece by piece", factor));
  }
  rule.push = whole;
  return rule;
}

}  // namespace

void addWindowRules(RuleMap& map) {
  for (const char* name : {"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::_convolution",
                           "aten::convolution", "wick::conv2d_fused", "aten::conv_transpose1d",
                           "aten::conv_transpose2d", "aten::conv_transpose3d"}) {
    map.emplace(name, OperatorRule{convolution});
  }
  map.emplace("aten::max_pool1d", OperatorRule{pool(1, true)});
  map.emplace("aten::max_pool2d", OperatorRule{pool(2, true)});
  map.emplace("aten::avg_pool1d", OperatorRule{pool(1, false)});
  map.emplace("aten::avg_pool2d", OperatorRule{pool(2, false)});
  map.emplace("aten::unfold", OperatorRule{unfold});
  map.emplace("aten::stft", OperatorRule{stft});
  map.emplace("aten::pad", OperatorRule{pad});
  map.emplace("aten::constant_pad_nd", OperatorRule{pad});
  for (const char* name : {"aten::reflection_pad1d", "aten::reflection_pad2d"}) {
    map.emplace(name, OperatorRule{mirror(false)});
  }
  for (const char* name : {"aten::replication_pad1d", "aten::replication_pad2d"}) {
    map.emplace(name, OperatorRule{mirror(true)});
  }
  map.emplace("aten::upsample_nearest1d", OperatorRule{nearest});
  map.emplace("aten::upsample_nearest2d", OperatorRule{nearest});
}

}  // namespace wick::streams
