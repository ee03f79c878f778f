#include "streams/time/carried.h"

#include "core/error.h"
#include "runtime/ops/common_calls.h"
#include "streams/time/rule_call.h"
#include "streams/time/steps.h"

namespace wick::streams {

namespace {

std::vector<IValue> callNode(const Node& node, std::vector<IValue>& arguments) {
  std::vector<IValue> results(node.outputs().size());
  node.getOperator().call(arguments.data(), arguments.size(), results.data(), results.size());
  return results;
}

Tensor lastStep(const Tensor& t, int64_t axis) {
  return kept(t, axis, t.size(axis) - 1, t.size(axis));
}

// cumsum, cumprod, logcumsumexp: the last result goes in front of the next piece. The operators add up in
// double precision and round each result, so the last one is kept as it was before it was rounded.
class RunningSum : public Carried {
 public:
  RunningSum(const Node& node, int64_t axis)
      : node_(node), axis_(axis), takes_dtype_(node.inputs().size() > 2) {}

  std::vector<IValue> run(std::vector<IValue> arguments, int64_t steps) override {
    Tensor x = arguments[0].toTensor();
    DType result = x.dtype();
    if (takes_dtype_) {
      if (!arguments[2].isNone()) {
        result = boxing::toDType(arguments[2]);
      } else if (isIntegral(result, true)) {
        result = DType::Long;
      }
    }
    x = x.to(result).to(wide(result));
    x = joined(last_, x, axis_);
    arguments[0] = IValue(x);
    if (takes_dtype_) arguments[2] = IValue();
    const Tensor all = callNode(node_, arguments)[0].toTensor();
    last_ = lastStep(all, axis_);
    return {IValue(all.narrow(axis_, all.size(axis_) - steps, steps).to(result))};
  }
  void reset() override { last_ = Tensor(); }
  int64_t elements() const override { return last_.defined() ? last_.numel() : 0; }

 private:
  // What the operator adds up in.
  DType wide(DType dtype) const {
    if (isFloating(dtype)) return DType::Double;
    // Logarithms of complex numbers are not widened there.
    if (isComplex(dtype)) return takes_dtype_ ? DType::ComplexDouble : dtype;
    return DType::Long;
  }

  const Node& node_;
  const int64_t axis_;
  const bool takes_dtype_;
  Tensor last_;
};

// cummax and cummin, with the indices of what they found, which count from the beginning of the stream.
class RunningExtremum : public Carried {
 public:
  RunningExtremum(const Node& node, int64_t axis) : node_(node), axis_(axis) {}

  std::vector<IValue> run(std::vector<IValue> arguments, int64_t steps) override {
    const bool goes_on = value_.defined();
    if (goes_on) arguments[0] = IValue(joined(value_, arguments[0].toTensor(), axis_));
    const std::vector<IValue> found = callNode(node_, arguments);
    const auto ofPiece = [&](const IValue& all) {
      return all.toTensor().narrow(axis_, goes_on ? 1 : 0, steps);
    };
    const Tensor values = ofPiece(found[0]);
    Tensor places = ofPiece(found[1]);
    if (goes_on) {
      // Place 0 is what was carried.
      const Tensor is_old = ops::eqScalar(places, int64_t{0});
      places = ops::where(is_old, place_, ops::addScalar(places, count_ - 1, int64_t{1}));
    }
    value_ = lastStep(values, axis_);
    place_ = lastStep(places, axis_);
    count_ += steps;
    return {IValue(values), IValue(places)};
  }
  void reset() override {
    value_ = place_ = Tensor();
    count_ = 0;
  }
  int64_t elements() const override {
    return value_.defined() ? value_.numel() + place_.numel() : 0;
  }

 private:
  const Node& node_;
  const int64_t axis_;
  Tensor value_;
  Tensor place_;
  int64_t count_ = 0;
};

// lstm, gru, rnn_tanh, rnn_relu: the last states of a piece are the first ones of the next.
class Recurrence : public Carried {
 public:
  explicit Recurrence(const Node& node) : node_(node) {}

  std::vector<IValue> run(std::vector<IValue> arguments, int64_t) override {
    if (!states_.empty()) {
      arguments[1] = arguments[1].isList() ? IValue(makeTensorList(states_)) : IValue(states_[0]);
    }
    std::vector<IValue> results = callNode(node_, arguments);
    states_.clear();
    for (size_t i = 1; i < results.size(); ++i) states_.push_back(results[i].toTensor());
    return results;
  }
  void reset() override { states_.clear(); }
  int64_t elements() const override {
    int64_t elements = 0;
    for (const Tensor& state : states_) elements += state.numel();
    return elements;
  }

 private:
  const Node& node_;
  std::vector<Tensor> states_;
};

// arange from a number on, as far as there are steps.
class Count : public Carried {
 public:
  std::vector<IValue> run(std::vector<IValue> arguments, int64_t steps) override {
    static const OperatorHandle kArange("aten::arange", "start_step");
    const size_t numbers = arguments.size() - kOptions;
    const int64_t start = numbers > 1 ? arguments[0].toInt() : 0;
    const int64_t step = numbers > 2 ? arguments[2].toInt() : 1;
    int64_t begin = 0, end = 0;
    WICK_CHECK(!__builtin_mul_overflow(step, count_, &begin) &&
                   !__builtin_add_overflow(begin, start, &begin) &&
                   !__builtin_mul_overflow(step, steps, &end) &&
                   !__builtin_add_overflow(end, begin, &end),
               "arange: the stream has more steps than can be counted");
    count_ += steps;
    std::vector<IValue> all = {IValue(begin), IValue(end), IValue(step)};
    all.insert(all.end(), arguments.end() - kOptions, arguments.end());
    std::vector<IValue> results(1);
    kArange.op().call(all.data(), all.size(), results.data(), results.size());
    return results;
  }
  void reset() override { count_ = 0; }
  int64_t elements() const override { return 0; }

 private:
  static constexpr int kOptions = 4;  // dtype, layout, device, pin_memory
  int64_t count_ = 0;
};

TimeRule scan(const RuleCall& call) {
  call.onlyFirst();
  TimeRule rule = eachStep(call.axis());
  if (call.dimension("dim") == call.axis()) rule.kind = TimeRule::Kind::Carry;
  return rule;
}

TimeRule recurrent(const RuleCall& call) {
  if (!call.has("batch_first")) call.refuse("reads packed sequences");
  call.onlyFirst();
  if (call.value("bidirectional").toBool()) {
    call.refuse("goes through time backwards, too, so it cannot run piece by piece");
  }
  if (call.value("train").toBool() && call.value("dropout").numberToDouble() > 0) {
    call.refuse("draws random numbers in training");
  }
  if (call.axis() != (call.value("batch_first").toBool() ? 1 : 0)) {
    call.refuse("has time in another dimension than the one it steps along");
  }
  TimeRule rule = eachStep(call.axis());
  rule.kind = TimeRule::Kind::Carry;
  rule.timed = 1;
  return rule;
}

}  // namespace

void addCarryRules(RuleMap& map) {
  for (const char* name :
       {"aten::cumsum", "aten::cumprod", "aten::logcumsumexp", "aten::cummax", "aten::cummin"}) {
    map.emplace(name, OperatorRule{scan});
  }
  for (const char* name : {"aten::lstm", "aten::gru", "aten::rnn_tanh", "aten::rnn_relu"}) {
    map.emplace(name, OperatorRule{recurrent});
  }
}

std::unique_ptr<Carried> carriedBy(const Node& node, int64_t axis) {
  const std::string_view name = node.kind().qualString();
  if (name == "aten::arange") return std::make_unique<Count>();
  if (name == "aten::cummax" || name == "aten::cummin") {
    return std::make_unique<RunningExtremum>(node, axis);
  }
  if (name == "aten::cumsum" || name == "aten::cumprod" || name == "aten::logcumsumexp") {
    return std::make_unique<RunningSum>(node, axis);
  }
  if (name == "aten::lstm" || name == "aten::gru" || name.starts_with("aten::rnn_")) {
    return std::make_unique<Recurrence>(node);
  }
  return nullptr;
}

}  // namespace wick::streams
