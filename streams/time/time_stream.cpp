// The nodes of the program in their order, each a step of the engine. Those that do not depend on
// time ran once, when the engine was made. In each round every step takes what its inputs gave in
// this round, if anything, and gives at most one tensor.
#include "streams/time/time_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/budget.h"
#include "core/error.h"
#include "runtime/ops/common_calls.h"
#include "streams/balance.h"
#include "streams/time/axis_rules.h"
#include "streams/time/carried.h"
#include "streams/time/specialize.h"
#include "streams/time/steps.h"

namespace wick::streams {

namespace {

Tensor filled(const Tensor& like, int64_t axis, int64_t steps, double value) {
  DimVector sizes(like.sizes());
  sizes[static_cast<size_t>(axis)] = steps;
  return Tensor::full(sizes, value, like.dtype(), like.device());
}

// What a step keeps; undefined when it keeps nothing.
Tensor heldTensor(const IValue& held) {
  return held.isTensor() ? held.toTensor() : Tensor();
}

bool isList(const Node& node) {
  return node.kind() == prim::ListConstruct || node.kind() == prim::TupleConstruct;
}

// Of an input of a step that is no argument of its node: only its number of steps counts.
constexpr size_t kNoArgument = SIZE_MAX;

}  // namespace

class TimeStream::Engine {
 public:
  Engine(const std::shared_ptr<GraphFunction>& program, const std::vector<IValue>& example,
         int64_t axis, const PlaceOf& place_of)
      : program_(program), place_of_(place_of) {
    program->ensureDefined();
    if (program->graph()->inputs().size() != example.size() || example.empty() ||
        !example[0].isTensor()) {
      throw UsageError(
          fmt::format("a stream over time needs {} arguments, the first a tensor, found {}",
                      std::max<size_t>(program->graph()->inputs().size(), 1), example.size()));
    }
    const Tensor& first = example[0].toTensor();
    axis_ = axis < 0 ? axis + first.dim() : axis;
    if (axis_ < 0 || axis_ >= first.dim()) {
      throw UsageError(
          fmt::format("expected a dimension of {} as time, found {}", first.describe(), axis));
    }
    like_ = filled(first, axis_, 0, 0);
    graph_ = specializedOverTime(*program, example, axis_);
    Graph& graph = *graph_;
    for (size_t i = 0; i < example.size(); ++i) values_[graph.inputs()[i]] = example[i];
    axes_[graph.inputs()[0]] = axis_;
    input_ = graph.inputs()[0];
    stream_.name = program->name();
    stream_.inputs.push_back({nameOf(*input_), "Tensor"});
    addAll(graph);
    output_ = graph.outputs().at(0);
    checkKnown(*graph.returnNode());
    if (graph.outputs().size() != 1 || axisOf(output_) < 0 || !values_.at(output_).isTensor()) {
      throw UsageError("the result of the program is no tensor that depends on time");
    }
    stream_.outputs.push_back({nameOf(*output_), "Tensor"});
    holdLess();
    findLastReaders();
    for (const Step& step : steps_) describe(step);
    stream_.root = arrange(stream_);
    validate(stream_);
    balance(stream_);  // refuses branches of different rates
    result_axis_ = axisOf(output_);
    // Of the example nothing is kept but what does not depend on time.
    for (const auto& [value, where] : axes_) values_.erase(value);
    for (const auto& [value, by] : known_late_) values_.erase(value);
    reset();
  }

  const StreamGraph& graph() const { return stream_; }
  int64_t resultAxis() const { return result_axis_; }

  void reset() {
    ended_ = false;
    for (Step& step : steps_) {
      step.held.assign(step.held.size(), IValue());
      const TimeRule::Kind kind = step.rule.kind;
      const bool cuts = kind == TimeRule::Kind::Cut || kind == TimeRule::Kind::Spread;
      step.drop = cuts ? step.rule.before : 0;
      step.steps = 0;
      step.begun = false;
      if (step.carried) step.carried->reset();
    }
  }

  std::optional<Tensor> round(const Tensor* piece) {
    WICK_CHECK(!ended_, "the stream has ended");
    if (piece) check(*piece);
    ended_ = piece == nullptr;
    now_.clear();
    if (piece && piece->size(axis_) > 0) now_[input_] = IValue(*piece);
    for (Step& step : steps_) {
      checkBudget();
      run(step);
      for (const Value* value : step.last_reads) now_.erase(value);
    }
    const auto found = now_.find(output_);
    std::optional<Tensor> result;
    if (found != now_.end()) result = found->second.toTensor();
    now_.clear();
    return result;
  }

  int64_t heldElements() const {
    int64_t elements = 0;
    for (const Step& step : steps_) {
      for (const IValue& held : step.held) {
        if (held.isTensor()) elements += held.toTensor().numel();
      }
      if (step.carried) elements += step.carried->elements();
    }
    return elements;
  }

 private:
  struct Input {
    const Value* value;
    size_t argument;  // of the node, or kNoArgument
  };
  struct Step {
    const Node* node;
    TimeRule rule;
    std::vector<Input> inputs;  // those with time
    std::vector<IValue> held;   // what each of these keeps, or None
    std::unique_ptr<Carried> carried;
    std::vector<const Value*> last_reads;  // what nobody reads behind it
    int64_t drop = 0;                      // steps that are still to be left out
    int64_t steps = 0;                     // how many more a Limit may give
    bool begun = false;
  };

  int64_t axisOf(const Value* value) const {
    const auto axis = axes_.find(value);
    return axis == axes_.end() ? -1 : axis->second;
  }

  static std::string nameOf(const Value& value) {
    std::string name = value.debugName();
    std::ranges::replace_if(
        name, [](unsigned char c) { return !std::isalnum(c) && c != '_' && c != '.'; }, '_');
    return name;
  }

  [[noreturn]] void refuse(const Node& node, const std::string& why) const {
    const std::string place = place_of_ ? place_of_(node) : node.range().location();
    throw UsageError(place.empty() ? why : fmt::format("{} ({})", why, place));
  }

  // In their order. A branch or a loop that does not depend on time is replaced by what it does.
  void addAll(Graph& graph) {
    for (Node* node = graph.returnNode()->next(); node != graph.returnNode();) {
      checkBudget();
      Node* const before = node->prev();
      const bool is_if = node->kind() == prim::If, is_loop = node->kind() == prim::Loop;
      if (!(is_if && takeBranch(node)) && !(is_loop && unrollHere(graph, node))) {
        add(node);
        forget(*node);
      }
      // What was put in its place comes next.
      node = is_if || is_loop ? before->next() : node->next();
    }
  }

  // Of the example's values over time those that the node was the last to read: a long example through
  // many layers would take much memory otherwise.
  void forget(const Node& node) {
    for (const Value* input : node.inputs()) {
      if (axisOf(input) >= 0 && ++reads_[input] == input->uses().size()) values_.erase(input);
    }
  }

  void findLastReaders() {
    std::unordered_set<const Value*> read = {output_};
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      for (const Value* output : step->node->outputs()) {
        if (!read.contains(output)) step->last_reads.push_back(output);
      }
      for (const Input& input : step->inputs) {
        if (read.insert(input.value).second) step->last_reads.push_back(input.value);
      }
    }
  }

  // Whether the value is the same whatever the length of time.
  bool isFixed(const Value* value) const {
    return values_.contains(value) && axisOf(value) < 0 && lengths_.of(value).empty() &&
           !known_late_.contains(value);
  }

  bool takeBranch(Node* node) {
    if (!isFixed(node->input(0))) return false;
    Block* const taken = node->blocks()[valueOf(node->input(0)).toBool() ? 0 : 1];
    while (!taken->empty()) (*taken->nodes().begin())->moveBefore(node);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      node->output(i)->replaceAllUsesWith(taken->outputs()[i]);
    }
    node->destroy();
    return true;
  }

  bool unrollHere(Graph& graph, Node* node) {
    if (!isFixed(node->input(0)) || !isFixed(node->input(1))) return false;
    const InsertPointGuard guard(node);
    for (const size_t i : {size_t{0}, size_t{1}}) {
      const IValue known = valueOf(node->input(i));
      Value* const constant = graph.insertConstant(known);
      values_[constant] = known;
      node->replaceInput(i, constant);
    }
    return unrollOverTime(node);
  }

  // What is left out at the end need not be waited for: where it is what padding behind gives, there is
  // less padding instead. Between the two may be what computes each step by itself.
  void holdLess() {
    std::unordered_map<const Value*, Step*> givers;
    for (Step& step : steps_) {
      for (const Value* output : step.node->outputs()) givers[output] = &step;
      if (step.rule.kind != TimeRule::Kind::Cut) continue;
      const Value* value = step.inputs[0].value;
      while (value && value->uses().size() == 1) {
        const auto giver = givers.find(value);
        if (giver == givers.end()) break;
        Step& from = *giver->second;
        const bool pads = from.rule.kind == TimeRule::Kind::Pad ||
                          (from.rule.kind == TimeRule::Kind::Window && from.rule.stride == 1);
        if (pads) {
          const int64_t less = std::min(from.rule.behind, step.rule.behind);
          from.rule.behind -= less;
          step.rule.behind -= less;
        }
        const bool each = from.rule.kind == TimeRule::Kind::Each && from.rule.push == 1 &&
                          from.inputs.size() == 1 && from.node->outputs().size() == 1;
        value = each ? from.inputs[0].value : nullptr;
      }
    }
  }

  // Whether all that it writes to is a list that the program makes, of what is the same for all lengths of
  // time. Such nodes run once, in the program's order, when the stream is made.
  bool writesOwnList(const Node& node) const {
    static const Symbol kWriting[] = {Symbol::aten("append"), Symbol::aten("insert"),
                                      Symbol::aten("extend"), aten::_set_item};
    return std::ranges::find(kWriting, node.kind()) != std::end(kWriting) &&
           node.input(0)->node()->kind() == prim::ListConstruct &&
           std::ranges::all_of(node.inputs(), [&](const Value* v) { return isFixed(v); });
  }

  // Refuses what reads something that is known at the end alone.
  void checkKnown(const Node& node) const {
    for (const Value* input : node.inputs()) {
      const auto late = known_late_.find(input);
      if (late == known_late_.end()) continue;
      refuse(*late->second,
             fmt::format("the last state of {} is known at the end alone, and is read",
                         late->second->kind().qualString()));
    }
  }

  // Runs the node on the example, and makes a step of it when it depends on time.
  void add(const Node* node) {
    if (node->kind() == prim::Constant) {
      values_[node->output()] = *constantOf(node->output());
      return;
    }
    if (node->kind() == prim::Uninitialized) {
      values_[node->output()] = IValue();  // what a branch that is not taken would have given
      return;
    }
    checkKnown(*node);
    const std::string name(node->kind().qualString());
    // A condition that depends on time was refused where it is computed.
    WICK_ASSERT(node->kind() != prim::If, "a condition that is not known is a step over time");
    if (node->kind() == prim::Loop) {
      refuse(*node,
             "the number of iterations of the loop is not known beforehand, so it cannot run piece "
             "by piece");
    }
    // Recurrent layers draw for their dropout alone, which their own rule refuses.
    const FunctionSchema* const schema = node->maybeSchema();
    const bool draws = node->isNondeterministic() && !(schema && schema->argumentIndex("dropout"));
    if (!writesOwnList(*node) &&
        (!node->blocks().empty() || node->kind() == prim::CallMethod ||
         node->kind() == prim::CallFunction || node->hasSideEffects() || draws)) {
      refuse(*node, name + " has no form that runs piece by piece");
    }
    TimeArguments arguments;
    bool over_time = false;
    for (const Value* input : node->inputs()) {
      arguments.values.push_back(valueOf(input));
      arguments.axes.push_back(axisOf(input));
      arguments.lengths.push_back(lengths_.of(input));
      over_time |= arguments.axes.back() >= 0 || !arguments.lengths.back().empty();
    }
    const std::vector<IValue> results = call(*node, arguments.values);
    for (size_t i = 0; i < node->outputs().size(); ++i) values_[node->output(i)] = results[i];
    if (!over_time || follow(*node, arguments.values)) return;
    Step step{node, ruleFor(*node, arguments), {}, {}, nullptr, {}};
    const TimeRule& rule = step.rule;
    for (size_t i = 0; i < node->inputs().size(); ++i) {
      if (arguments.axes[i] >= 0) step.inputs.push_back({node->input(i), i});
    }
    if (rule.steps_of) step.inputs.push_back({rule.steps_of, kNoArgument});
    const bool by_itself = rule.kind == TimeRule::Kind::Each || rule.kind == TimeRule::Kind::Carry;
    if (rule.kind == TimeRule::Kind::Spread) {
      step.held.resize(2);  // steps, and results that the end may take back
    } else if (!by_itself || step.inputs.size() > 1) {
      step.held.resize(step.inputs.size());
    }
    if (rule.kind == TimeRule::Kind::Carry) step.carried = carriedBy(*node, arguments.axes[0]);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      const Value* const output = node->output(i);
      if (i >= rule.timed) {
        known_late_[output] = node;
        continue;
      }
      const IValue& result = values_.at(output);
      const bool tensors = result.isTensor() || result.isList() || result.isTuple();
      if (!tensors) refuse(*node, name + " asks about all of the time");
      axes_[output] = rule.axis;
    }
    steps_.push_back(std::move(step));
  }

  bool follow(const Node& node, const std::vector<IValue>& arguments) {
    try {
      return lengths_.follow(node, arguments, [&](const Value* v) { return axisOf(v); });
    } catch (const UsageError& e) {
      refuse(node, e.message());
    }
  }

  TimeRule ruleFor(const Node& node, const TimeArguments& arguments) {
    if (isList(node) || node.kind() == prim::ListUnpack || node.kind() == prim::TupleUnpack) {
      TimeRule rule;
      rule.axis = -1;
      for (const int64_t axis : arguments.axes) {
        if (axis < 0 || (rule.axis >= 0 && axis != rule.axis)) {
          refuse(node, "a list joins what has time in different places, or not at all");
        }
        rule.axis = axis;
      }
      return rule;
    }
    try {
      return timeRuleOf(node, arguments);
    } catch (const UsageError& e) {
      refuse(node, e.message());
    }
  }

  const IValue& valueOf(const Value* value) const {
    const auto found = values_.find(value);
    WICK_CHECK(found != values_.end(), "{} is not initialized", value->debugName());
    return found->second;
  }

  static std::vector<IValue> call(const Node& node, std::vector<IValue> arguments) {
    if (node.kind() == prim::ListConstruct) {
      const auto* type = node.output()->type()->as<ListType>();
      WICK_CHECK(type, "prim::ListConstruct makes no list");
      return {IValue(makeRef<ListObject>(type->element(), std::move(arguments)))};
    }
    if (node.kind() == prim::TupleConstruct) return {IValue(makeTuple(std::move(arguments)))};
    if (node.kind() == prim::ListUnpack || node.kind() == prim::TupleUnpack) {
      const std::vector<IValue>& elements = arguments[0].elements();
      WICK_CHECK(elements.size() == node.outputs().size(), "expected {} elements, found {}",
                 node.outputs().size(), elements.size());
      return elements;
    }
    std::vector<IValue> results(node.outputs().size());
    const Operator* op = node.maybeOperator();
    if (!op) {
      throw UsageError(
          fmt::format("{} has no form that runs piece by piece", node.kind().qualString()));
    }
    op->call(arguments.data(), arguments.size(), results.data(), results.size());
    return results;
  }

  // The step as a filter of the stream graph.
  void describe(const Step& step) {
    const Node& node = *step.node;
    Filter filter;
    filter.kind = node.kind().name();
    filter.name = fmt::format("{}_{}", filter.kind, stream_.filters.size());
    const TimeRule& rule = step.rule;
    for (const Input& input : step.inputs) {
      Port port{nameOf(*input.value), ""};
      if (rule.kind == TimeRule::Kind::Window) {
        port.rate = rule.stride;
        port.peek = std::max(rule.window, rule.stride);
      } else if (rule.kind == TimeRule::Kind::Spread) {
        port.peek = (rule.window - 1) / rule.stride + 1;
      }
      filter.inputs.push_back(std::move(port));
    }
    for (size_t i = 0; i < std::min(rule.timed, node.outputs().size()); ++i) {
      const Value& output = *node.output(i);
      filter.outputs.push_back({nameOf(output), output.type()->annotation(), rule.push, rule.push});
    }
    // Reads a value twice: one channel each.
    if (rule.before != 0) filter.options.emplace_back("before", std::to_string(rule.before));
    if (rule.behind != 0) filter.options.emplace_back("behind", std::to_string(rule.behind));
    if (rule.beyond != 0) filter.options.emplace_back("beyond", std::to_string(rule.beyond));
    filter.stateful = !step.held.empty() || step.carried;
    stream_.filters.push_back(std::move(filter));
  }

  void check(const Tensor& piece) const {
    bool fits = piece.defined() && piece.dim() == like_.dim() && piece.dtype() == like_.dtype();
    for (int64_t d = 0; fits && d < piece.dim(); ++d) {
      fits = d == axis_ || piece.size(d) == like_.size(d);
    }
    WICK_CHECK(fits, "expected a piece like {} with any length along dimension {}, found {}",
               like_.describe(), axis_, piece.defined() ? piece.describe() : "no tensor");
  }

  // What an input gave in this round.
  const IValue* news(const Step& step, size_t which) const {
    const auto found = now_.find(step.inputs[which].value);
    return found == now_.end() ? nullptr : &found->second;
  }

  void give(const Step& step, std::vector<IValue> results) {
    for (size_t i = 0; i < std::min(results.size(), step.rule.timed); ++i) {
      now_[step.node->output(i)] = std::move(results[i]);
    }
  }

  // Calls the node with these for its inputs with time.
  std::vector<IValue> resultsOf(const Step& step, const std::vector<IValue>& with_time,
                                const TimeRule::Replaced& replaced) {
    std::vector<IValue> arguments;
    for (const Value* input : step.node->inputs()) {
      arguments.push_back(axisOf(input) >= 0 ? IValue() : valueOf(input));
    }
    int64_t steps = 0;
    for (size_t i = 0; i < with_time.size(); ++i) {
      const Input& input = step.inputs[i];
      if (with_time[i].isTensor()) steps = with_time[i].toTensor().size(axisOf(input.value));
      if (input.argument != kNoArgument) arguments[input.argument] = with_time[i];
    }
    for (const auto& [argument, value] : replaced) arguments[argument] = value;
    if (const auto& sized = step.rule.sized) {
      DimVector sizes = arguments[sized->first].toDims();
      sizes[sized->second] = steps;
      arguments[sized->first] = IValue(makeIntList(sizes));
    }
    if (step.carried) return step.carried->run(std::move(arguments), steps);
    return call(*step.node, std::move(arguments));
  }
  void compute(const Step& step, const std::vector<IValue>& with_time) {
    give(step, resultsOf(step, with_time, step.rule.replaced));
  }

  void run(Step& step) {
    switch (step.rule.kind) {
      case TimeRule::Kind::Each:
      case TimeRule::Kind::Carry:
        return step.inputs.size() < 2 ? runEach(step) : runTogether(step);
      case TimeRule::Kind::Window:
        return runWindow(step);
      case TimeRule::Kind::Spread:
        return runSpread(step);
      case TimeRule::Kind::Pad:
        return runPad(step);
      case TimeRule::Kind::Mirror:
        return runMirror(step);
      case TimeRule::Kind::Cut:
        return runCut(step);
      case TimeRule::Kind::Limit:
        return runLimit(step);
    }
  }

  void runEach(Step& step) {
    if (const IValue* piece = news(step, 0)) compute(step, {*piece});
  }

  int64_t axisOfInput(const Step& step, size_t which) const {
    return axisOf(step.inputs[which].value);
  }

  // As many steps as all inputs have; the rest waits.
  void runTogether(Step& step) {
    int64_t ready = INT64_MAX;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const int64_t axis = axisOfInput(step, i);
      if (const IValue* piece = news(step, i)) {
        if (!piece->isTensor()) refuse(*step.node, "joins lists over time");
        step.held[i] = step.held[i].isTensor()
                           ? IValue(joined(step.held[i].toTensor(), piece->toTensor(), axis))
                           : *piece;
      }
      ready = std::min(ready, step.held[i].isTensor() ? step.held[i].toTensor().size(axis) : 0);
    }
    if (ready > 0) {
      std::vector<IValue> taken;
      for (size_t i = 0; i < step.inputs.size(); ++i) {
        const int64_t axis = axisOfInput(step, i);
        const Tensor all = step.held[i].toTensor();
        taken.emplace_back(all.narrow(axis, 0, ready));
        step.held[i] =
            all.size(axis) == ready ? IValue() : IValue(kept(all, axis, ready, all.size(axis)));
      }
      compute(step, taken);
    }
    if (!ended_) return;
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      WICK_CHECK(
          !step.held[i].isTensor(), "{}: its inputs have different lengths, one has {} steps more",
          step.node->kind().qualString(), step.held[i].toTensor().size(axisOfInput(step, i)));
    }
  }

  // The piece of this round behind what is held, with padding at both ends; undefined when there is
  // nothing at all.
  Tensor withPadding(Step& step) {
    const int64_t axis = axisOfInput(step, 0);
    Tensor all = heldTensor(step.held[0]);
    if (const IValue* piece = news(step, 0)) {
      const Tensor& t = piece->toTensor();
      if (!std::exchange(step.begun, true) && step.rule.before > 0) {
        all = filled(t, axis, step.rule.before, step.rule.fill);
      }
      all = joined(all, t, axis);
    }
    if (ended_ && step.begun && step.rule.behind > 0) {
      all = joined(all, filled(all, axis, step.rule.behind, step.rule.fill), axis);
    }
    return all;
  }

  void runWindow(Step& step) {
    const int64_t axis = axisOfInput(step, 0);
    Tensor all = withPadding(step);
    if (!all.defined()) return;
    if (step.drop > 0) {
      const int64_t gone = std::min(step.drop, all.size(axis));
      step.drop -= gone;
      all = all.narrow(axis, gone, all.size(axis) - gone);
    }
    const int64_t length = all.size(axis);
    const int64_t window = step.rule.window, stride = step.rule.stride;
    if (length < window) {
      step.held[0] = IValue(kept(all, axis, 0, length));
      return;
    }
    const int64_t results = (length - window) / stride + 1;
    const int64_t next = results * stride;  // where the next window begins
    step.drop = std::max<int64_t>(next - length, 0);
    step.held[0] = IValue(kept(all, axis, std::min(next, length), length));
    compute(step, {IValue(all.narrow(axis, 0, (results - 1) * stride + window))});
  }

  void runPad(Step& step) {
    const Tensor all = withPadding(step);
    if (!all.defined()) return;
    // Remembers the other dimensions, for the end.
    step.held[0] = IValue(kept(all, axisOfInput(step, 0), 0, 0));
    if (all.size(axisOfInput(step, 0)) > 0) compute(step, {IValue(all)});
  }

  // Waits for the steps that are added in front, and keeps those that may be added behind.
  void runMirror(Step& step) {
    const int64_t axis = axisOfInput(step, 0), before = step.rule.before, behind = step.rule.behind;
    // The last steps of `t`, or the first ones, without the outermost, in reverse; or that one alone.
    const auto mirrored = [&](const Tensor& t, int64_t steps, bool front) {
      const int64_t last = t.size(axis) - 1;
      if (step.rule.repeats) {
        DimVector sizes(t.sizes());
        sizes[static_cast<size_t>(axis)] = steps;
        return t.narrow(axis, front ? 0 : last, 1).expand(sizes);
      }
      const Tensor part = t.narrow(axis, front ? 1 : last - steps, steps);
      return ops::flip(part, IntSpan(DimVector{axis}));
    };
    const IValue* const piece = news(step, 0);
    Tensor fresh = piece ? piece->toTensor() : Tensor();
    Tensor all = heldTensor(step.held[0]);
    if (fresh.defined()) all = joined(all, fresh, axis);
    if (!all.defined()) return;
    const int64_t length = all.size(axis);
    const auto needs = [&](int64_t steps) { return step.rule.repeats ? 1 : steps + 1; };
    if (!step.begun) {
      WICK_CHECK(!ended_ || length >= std::max(needs(before), needs(behind)),
                 "{}: expected more than {} steps, found {}", step.node->kind().qualString(),
                 std::max(before, behind), length);
      if (length < std::max(needs(before), needs(behind))) {
        step.held[0] = IValue(kept(all, axis, 0, length));
        return;
      }
      fresh = before > 0 ? joined(mirrored(all, before, true), all, axis) : all;
      step.begun = true;
    }
    if (ended_ && behind > 0) {
      const Tensor back = mirrored(all, behind, false);
      fresh = fresh.defined() ? joined(fresh, back, axis) : back;
    }
    step.held[0] = IValue(kept(all, axis, length - std::min(length, needs(behind)), length));
    if (fresh.defined() && fresh.size(axis) > 0) compute(step, {IValue(fresh)});
  }

  // Of what comes behind what `held` is: without the steps that are left out in front, and without
  // those behind that the end may leave out, which stay held. Undefined when nothing is left.
  static Tensor cut(Step& step, IValue& held, const Tensor& fresh, int64_t axis) {
    Tensor all = heldTensor(held);
    if (fresh.defined()) all = joined(all, fresh, axis);
    if (!all.defined()) return all;
    const int64_t gone = std::min(step.drop, all.size(axis));
    step.drop -= gone;
    const int64_t ready = all.size(axis) - gone - step.rule.behind;
    if (ready <= 0) {
      held = IValue(kept(all, axis, gone, all.size(axis)));
      return {};
    }
    held = IValue(kept(all, axis, gone + ready, all.size(axis)));
    return all.narrow(axis, gone, ready);
  }

  void runCut(Step& step) {
    const IValue* const piece = news(step, 0);
    const Tensor ready =
        cut(step, step.held[0], piece ? piece->toTensor() : Tensor(), axisOfInput(step, 0));
    if (ready.defined()) give(step, {IValue(ready)});
  }

  // Keeps the steps that still add to coming results, not the sums so far: each result is added up in one
  // call, as in a call with all of the time.
  void runSpread(Step& step) {
    const int64_t axis = axisOfInput(step, 0), to = step.rule.axis, stride = step.rule.stride;
    const int64_t kept_steps = std::max<int64_t>((step.rule.window - 1) / stride, 1);
    Tensor all = heldTensor(step.held[0]);
    const int64_t before = all.defined() ? all.size(axis) : 0;
    Tensor results;
    if (const IValue* piece = news(step, 0)) {
      all = joined(all, piece->toTensor(), axis);
      const int64_t steps = all.size(axis);
      results = resultsOf(step, {IValue(all)}, step.rule.replaced)[0].toTensor();
      results = results.narrow(to, before * stride, (steps - before) * stride);
      all = kept(all, axis, std::max<int64_t>(steps - kept_steps, 0), steps);
      step.held[0] = IValue(all);
    }
    if (ended_ && all.defined() && step.rule.beyond > 0) {
      const Tensor last = resultsOf(step, {IValue(all)}, step.rule.replaced_last)[0].toTensor();
      results = joined(results, last.narrow(to, all.size(axis) * stride, step.rule.beyond), to);
    }
    const Tensor ready = cut(step, step.held[1], results, to);
    if (ready.defined()) give(step, {IValue(ready)});
  }

  // As many steps as the other input has; at the end the rest is left out.
  void runLimit(Step& step) {
    const int64_t axis = axisOfInput(step, 0);
    Tensor all = heldTensor(step.held[0]);
    if (const IValue* piece = news(step, 0)) all = joined(all, piece->toTensor(), axis);
    if (const IValue* other = news(step, 1)) {
      step.steps += other->toTensor().size(axisOfInput(step, 1));
    }
    if (!all.defined()) return;
    const int64_t length = all.size(axis), ready = std::min(length, step.steps);
    step.steps -= ready;
    step.held[0] = IValue(kept(all, axis, ready, length));
    if (ready > 0) give(step, {IValue(all.narrow(axis, 0, ready))});
  }

  const std::shared_ptr<GraphFunction> program_;
  const PlaceOf place_of_;
  std::shared_ptr<Graph> graph_;
  int64_t axis_ = 0;
  Tensor like_;  // of no steps
  const Value* input_ = nullptr;
  const Value* output_ = nullptr;
  int64_t result_axis_ = 0;
  std::unordered_map<const Value*, IValue> values_;  // what does not depend on time
  std::unordered_map<const Value*, int64_t> axes_;   // where time is in what does
  Lengths lengths_;
  std::unordered_map<const Value*, const Node*> known_late_;  // at the end alone
  std::unordered_map<const Value*, size_t> reads_;  // by nodes that the example went through
  std::vector<Step> steps_;
  StreamGraph stream_;
  std::unordered_map<const Value*, IValue> now_;  // pieces of this round
  bool ended_ = false;
};

TimeStream::TimeStream(const std::shared_ptr<GraphFunction>& program,
                       const std::vector<IValue>& example, int64_t axis, const PlaceOf& place_of)
    : engine_(std::make_unique<Engine>(program, example, axis, place_of)) {}

TimeStream::~TimeStream() = default;

const StreamGraph& TimeStream::graph() const {
  return engine_->graph();
}

int64_t TimeStream::resultAxis() const {
  return engine_->resultAxis();
}

std::optional<Tensor> TimeStream::push(const Tensor& piece) {
  return engine_->round(&piece);
}

std::optional<Tensor> TimeStream::finish() {
  return engine_->round(nullptr);
}

void TimeStream::reset() {
  engine_->reset();
}

int64_t TimeStream::heldElements() const {
  return engine_->heldElements();
}

}  // namespace wick::streams
