#include "autograd/recorder.h"

#include <algorithm>

#include "autograd/anomaly.h"
#include "autograd/formula.h"
#include "autograd/gradients.h"
#include "autograd/saved_value.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/tensor_kind.h"
#include "ir/device_kernels.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/ops/common_calls.h"

namespace wick::autograd {

namespace {

using Source = GradientFunction::Source;

bool isDifferentiable(const Tensor& t) {
  return t.defined() && (isFloating(t.dtype()) || isComplex(t.dtype()));
}

IValue partOf(const Tensor& t, Source::Part part) {
  switch (part) {
    case Source::Part::Size:
      return IValue(makeIntList(t.sizes()));
    case Source::Part::Stride:
      return IValue(makeIntList(t.strides()));
    case Source::Part::Offset:
      return IValue(t.offset());
    case Source::Part::DType:
      return IValue(static_cast<int64_t>(t.dtype()));
    case Source::Part::Value:
      break;
  }
  return IValue(t);
}

// Of a tensor, of each in a list, or None.
IValue partOf(const IValue& value, Source::Part part) {
  if (!value.isList()) return value.isTensor() ? partOf(value.toTensor(), part) : IValue();
  std::vector<IValue> parts;
  for (const IValue& e : value.elements()) parts.push_back(partOf(e.toTensor(), part));
  return IValue(makeList(std::make_shared<const ListType>(types::Int()), std::move(parts)));
}

bool holdsComplex(const IValue& value) {
  if (value.isTensor()) {
    const Tensor t = value.toTensor();
    return t.defined() && isComplex(t.dtype());
  }
  return value.isList() && std::ranges::any_of(value.elements(), holdsComplex);
}

// A call of an operator with a formula.
class FormulaNode : public Node {
 public:
  FormulaNode(const Rule& rule, const GradientFunction& gradients)
      : rule_(rule), gradients_(gradients) {}

  std::string name() const override { return tapeName(rule_.op()); }

  // Of each argument that gets a gradient, in order: its edges.
  void addEdges(std::vector<Edge> edges) {
    counts_.push_back(edges.size());
    for (Edge& e : edges) edges_.push_back(std::move(e));
  }
  void finishEdges() {
    noteHeld(counts_.capacity() * sizeof(counts_[0]));
    setNext(std::move(edges_));
  }
  // An argument that requires a gradient for which there is no formula.
  void addMissing(size_t argument) { missing_ = argument; }

  // Before the kernel runs. `in_place`: it will write to this argument.
  void saveArguments(const IValue* args, size_t num_args, std::optional<size_t> in_place) {
    saved_.resize(gradients_.sources.size());
    noteHeld(saved_.bytes());
    for (size_t i = 0; i < saved_.size(); ++i) {
      const Source& source = gradients_.sources[i];
      if (source.kind != Source::Kind::Argument) continue;
      const IValue value = source.index < num_args ? args[source.index] : IValue();
      if (source.part != Source::Part::Value) {
        saved_.set(i, SavedValue::argument(partOf(value, source.part)));
      } else if (in_place == source.index && value.isTensor()) {
        const Tensor t = value.toTensor();
        saved_.set(i, SavedValue::argument(IValue(withHistory(copyOf(t), gradientEdge(t)))));
      } else {
        saved_.set(i, SavedValue::argument(value));
      }
    }
  }

  void saveResults(const IValue* results) {
    for (size_t i = 0; i < saved_.size(); ++i) {
      const Source& source = gradients_.sources[i];
      if (source.kind != Source::Kind::Result) continue;
      const IValue& value = results[source.index];
      saved_.set(i, source.part == Source::Part::Value
                        ? SavedValue::result(value, static_cast<uint32_t>(source.index))
                        : SavedValue::argument(partOf(value.toTensor(), source.part)));
    }
  }

  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) override {
    if (missing_) {
      throwRuntimeError("derivative for {} with respect to '{}' is not implemented",
                        rule_.op().schema().name(),
                        rule_.op().schema().arguments()[*missing_].name);
    }
    std::vector<IValue> arguments;
    saved_.read(*this, [&](const auto& saved) {
      for (size_t i = 0; i < gradients_.sources.size(); ++i) {
        const Source& source = gradients_.sources[i];
        const bool is_saved =
            source.kind == Source::Kind::Argument || source.kind == Source::Kind::Result;
        arguments.push_back(is_saved ? saved(i) : gradientFor(source, gradients));
      }
    });
    const bool real = gradients_.of_reals && std::ranges::none_of(arguments, holdsComplex);
    GraphFunction& function = real ? *gradients_.of_reals : *gradients_.function;
    const Code& code = GraphExecutor::of(function).codeFor(arguments);
    const IValue found = runCodeWithin(code, std::move(arguments));
    std::vector<Tensor> out;
    for (size_t i = 0; i < counts_.size(); ++i) {
      const IValue& value = found.elements().at(i);
      if (value.isList()) {
        WICK_CHECK(value.elements().size() == counts_[i], "{}: {} gradients for {} tensors", name(),
                   value.elements().size(), counts_[i]);
        for (const IValue& e : value.elements()) out.push_back(e.toTensor());
      } else {
        WICK_CHECK(value.isNone() || counts_[i] == 1, "{}: one gradient for {} tensors", name(),
                   counts_[i]);
        if (counts_[i] == 1) {
          out.push_back(value.toTensor());
        } else {
          out.resize(out.size() + counts_[i]);
        }
      }
    }
    return out;
  }

  void releaseSaved() override { saved_.release(); }

 private:
  IValue gradientFor(const Source& source, const std::vector<Tensor>& gradients) const {
    if (source.kind == Source::Kind::Gradient) {
      const Tensor& g = gradients.at(source.index);
      if (g.defined()) return IValue(g);
      return source.optional ? IValue() : IValue(zerosFor(shapes()[source.index]));
    }
    std::vector<IValue> all;
    for (size_t k = 0; k < gradients.size(); ++k) {
      all.emplace_back(gradients[k].defined() ? gradients[k] : zerosFor(shapes()[k]));
    }
    return IValue(makeList(types::Tensor(), std::move(all)));
  }

  const Rule& rule_;
  const GradientFunction& gradients_;
  SavedValues saved_;  // as many as the function has parameters
  std::vector<Edge> edges_;
  std::optional<size_t> missing_;
  std::vector<size_t> counts_;  // of each argument with gradients: its tensors
};

// An operator without a formula: its results require gradients, which nobody can compute.
class MissingNode : public Node {
 public:
  // `argument` requires a gradient.
  MissingNode(const Rule& rule, size_t argument) : rule_(rule), argument_(argument) {}
  std::string name() const override { return tapeName(rule_.op()); }
  std::vector<Tensor> apply(const std::vector<Tensor>&) override {
    const FunctionSchema& schema = rule_.op().schema();
    throwRuntimeError("derivative for {} is not implemented; it is needed for argument '{}'{}{}",
                      schema.name(), schema.arguments()[argument_].name,
                      rule_.reason().empty() ? "" : ": ", rule_.reason());
  }

 private:
  const Rule& rule_;
  const size_t argument_;
};

template <class F>
void forEachTensor(const IValue& value, F&& f) {
  if (value.isTensor()) {
    f(value.toTensor());
  } else if (value.isList()) {
    for (const IValue& e : value.elements()) {
      if (e.isTensor()) f(e.toTensor());
    }
  }
}

// The argument that a call writes to and returns. What it writes to besides are statistics, which
// have no gradients.
std::optional<size_t> replacedArgument(const Operator& op) {
  const auto& returns = op.schema().returns();
  const bool returned = returns.empty() || (returns[0].alias && returns[0].alias->is_write);
  const uint64_t written = op.writtenArguments();
  if (written == 0 || !returned) return std::nullopt;
  return static_cast<size_t>(std::countr_zero(written));
}

class Recording {
 public:
  Recording(const Operator& op, const Rule& rule, IValue* args, size_t num_args)
      : op_(op), rule_(rule), args_(args), num_args_(num_args), written_(replacedArgument(op)) {
    for (size_t i = 0; i < num_args && i < 64; ++i) {
      if ((op.tensorArguments() >> i & 1) == 0) continue;
      const bool matters = written_ == i || !rule.ignores(i);
      forEachTensor(args[i], [&](const Tensor& t) {
        if (matters && requiresGradient(t)) needed_ |= uint64_t{1} << i;
      });
      // The kernel may move out of its arguments.
      kept_.push_back(args[i]);
    }
  }

  bool isNeeded() const { return needed_ != 0; }

  // RuntimeError when the tensor that would be written to requires a gradient.
  void refuse() const {
    WICK_CHECK(!written_ || (needed_ >> *written_ & 1) == 0, "{}", rule_.reason());
  }

  void run(IValue* results, size_t num_results, uint64_t borrowed) {
    if (written_) forEachTensor(args_[*written_], [](const Tensor& t) { checkMayWrite(t); });
    prepareNode();
    {
      const BelowRecorder below;
      op_.callKernel(args_, num_args_, results, num_results, borrowed);
    }
    for (size_t i = 0; i < num_results; ++i) {
      if (results[i].isTensor()) {
        addResult(results[i].toTensor(), i, false);
      } else if (results[i].isList()) {
        forEachTensor(results[i], [&](const Tensor& t) { addResult(t, i, true); });
      } else if (node_) {
        node_->addAbsentResult();
      }
    }
    if (formula_node_) formula_node_->saveResults(results);
    if (detectsAnomaly()) [[unlikely]]
      noteRecorded(*node_);
  }

  // When no gradients are wanted: views may be written to later.
  void noteViews(const IValue* results, size_t num_results) const {
    for (size_t i = 0; i < num_results; ++i) {
      const bool list = results[i].isList();
      forEachTensor(results[i], [&](const Tensor& t) { noteView(t, list); });
    }
  }

 private:
  void prepareNode() {
    uint64_t covered = 0;
    for (uint64_t rest = needed_; rest != 0; rest &= rest - 1) {
      const auto i = static_cast<size_t>(std::countr_zero(rest));
      if (rule_.kind() == Rule::Kind::Formula && rule_.covers(i)) covered |= uint64_t{1} << i;
    }
    if (rule_.kind() != Rule::Kind::Formula) {
      node_ = makeRef<MissingNode>(rule_, static_cast<size_t>(std::countr_zero(needed_)));
      addAllEdges();
      return;
    }
    // What was there before a write is replaced by it, or goes on where the formula says so.
    if (written_ && rule_.covers(*written_)) covered |= uint64_t{1} << *written_;
    if (covered == 0) {
      node_ = makeRef<MissingNode>(rule_, static_cast<size_t>(std::countr_zero(needed_)));
      addAllEdges();
      return;
    }
    WICK_CHECK(!written_ || (covered >> *written_ & 1) != 0,
               "{}: the derivative of a write is not implemented", op_.schema().name());
    const GradientFunction& gradients = rule_.gradients(covered);
    Ref<FormulaNode> node = makeRef<FormulaNode>(rule_, gradients);
    for (const size_t i : gradients.arguments) {
      if (written_ == i) first_ = edges_;
      std::vector<Edge> edges;
      if (args_[i].isList()) {
        for (const IValue& e : args_[i].elements()) {
          edges.push_back(e.isTensor() ? gradientEdge(e.toTensor()) : Edge());
        }
      } else {
        edges.push_back(args_[i].isTensor() ? gradientEdge(args_[i].toTensor()) : Edge());
      }
      edges_ += edges.size();
      node->addEdges(std::move(edges));
    }
    node->finishEdges();
    for (uint64_t rest = needed_ & ~covered; rest != 0; rest &= rest - 1) {
      node->addMissing(static_cast<size_t>(std::countr_zero(rest)));
    }
    node->saveArguments(args_, num_args_, written_);
    formula_node_ = node.get();
    node_ = node;
  }

  void addAllEdges() {
    std::vector<Edge> edges;
    for (const IValue& value : kept_) {
      forEachTensor(value, [&](const Tensor& t) { edges.push_back(gradientEdge(t)); });
    }
    node_->setNext(std::move(edges));
  }

  void addResult(const Tensor& t, size_t number, bool list) {
    if (!node_) return;
    const bool has_gradient =
        isDifferentiable(t) && rule_.hasGradient(number) && !(isArgument(t) && !written_);
    if (!has_gradient) {
      node_->addResult(t);
      noteView(t, list);
    } else if (written_ && !(op_.has(kChangesMetadata) && baseOf(t).defined())) {
      rebaseHistory(t, node_, first_);
    } else {
      // Also a view that looks at its base in another way from now on: no element was written.
      noteView(t, list);
      setHistory(t, node_);
    }
  }

  // Returns whether the operator makes its results one by one, as PyTorch's composite ones do, so that
  // each may be written to.
  bool makesViewsApart() const {
    static const Symbol kApart[] = {Symbol::aten("tensor_split"), Symbol::aten("hsplit"),
                                    Symbol::aten("vsplit"), Symbol::aten("dsplit")};
    return std::ranges::find(kApart, op_.symbol()) != std::end(kApart);
  }

  void noteView(const Tensor& t, bool list) const {
    if (!op_.makesViews() || isArgument(t)) return;
    for (const IValue& value : kept_) {
      if (value.isTensor() && value.toTensor().sharesStorage(t)) {
        setViewOf(t, value.toTensor(),
                  !gradEnabled()               ? ViewOrigin::Unrecorded
                  : list && !makesViewsApart() ? ViewOrigin::Several
                                               : ViewOrigin::Plain);
        return;
      }
    }
  }

  bool isArgument(const Tensor& t) const {
    for (const IValue& value : kept_) {
      if (value.isTensor() && value.rawObject() == t.impl()) return true;
    }
    return false;
  }

  const Operator& op_;
  const Rule& rule_;
  IValue* const args_;
  const size_t num_args_;
  uint64_t needed_ = 0;
  std::optional<size_t> written_;
  std::vector<IValue> kept_;
  Ref<Node> node_;
  FormulaNode* formula_node_ = nullptr;
  size_t edges_ = 0;
  size_t first_ = 0;  // in the node's edges: the written argument's
};

bool holdsNested(const Operator& op, const IValue* args, size_t num_args) {
  for (uint64_t rest = op.tensorArguments(); rest != 0; rest &= rest - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(rest));
    if (i >= num_args || !args[i].isTensor()) continue;
    const auto& tensor = *static_cast<const TensorImpl*>(args[i].rawObject());
    if (tensor.kind == TensorKind::Nested) return true;
  }
  return false;
}

bool anyRequiresGradient(const Operator& op, const IValue* args, size_t num_args) {
  for (uint64_t rest = op.tensorArguments(); rest != 0; rest &= rest - 1) {
    const auto i = static_cast<size_t>(std::countr_zero(rest));
    if (i >= num_args) break;
    if (args[i].isTensor() && requiresGradient(args[i].toTensor())) return true;
    if (!args[i].isList()) continue;
    for (const IValue& e : args[i].elements()) {
      if (e.isTensor() && requiresGradient(e.toTensor())) return true;
    }
  }
  return false;
}

// An operator whose kernel calls others, which record themselves. A kernel that a device has for it
// as a whole would not be recorded.
void callOthers(const Operator& op, IValue* args, size_t num_args, IValue* results,
                size_t num_results, uint64_t borrowed) {
  const auto hasKernelsOfItsOwn = [&] {
    const auto device = deviceOfArguments(op, args, num_args);
    return device == DeviceType::CUDA || device == DeviceType::Meta;
  };
  const bool in_parts = kindsInUse() && gradEnabled() && op.form() == Operator::Form::Base &&
                        op.writtenArguments() == 0 && hasKernelsOfItsOwn() &&
                        anyRequiresGradient(op, args, num_args);
  if (!in_parts) return op.callKernel(args, num_args, results, num_results, borrowed);
  CallFrame frame{args, num_args, results, num_results, &op, borrowed};
  op.record().kernel(frame);
}

// The operator as it is made of others, which record themselves.
void runScript(const Rule& rule, const IValue* args, size_t num_args, IValue* results,
               size_t num_results) {
  GraphFunction& function = rule.script();
  const std::optional<size_t> written = replacedArgument(rule.op());
  std::vector<IValue> arguments;
  for (const auto& source : rule.scriptSources()) {
    const bool is_written = written == source.index;
    IValue value = source.index < num_args ? args[source.index] : IValue();
    if (is_written) {
      // What the script keeps of it must not change when the result is written there.
      const Tensor t = value.toTensor();
      value = IValue(withHistory(copyOf(t), gradientEdge(t)));
    }
    arguments.push_back(std::move(value));
  }
  const Code& code = GraphExecutor::of(function).codeFor(arguments);
  IValue result = runCodeWithin(code, std::move(arguments));
  if (written) {
    const Tensor self = args[*written].toTensor();
    results[0] = IValue(ops::copyInto(self, result.toTensor(), false));
  } else if (num_results == 1) {
    results[0] = std::move(result);
  } else {
    for (size_t i = 0; i < num_results; ++i) results[i] = result.elements().at(i);
  }
}

}  // namespace

std::string tapeName(const Operator& op) {
  // "aten::add_" -> "AddBackward0".
  std::string out;
  bool upper = true;
  for (const char c : op.schema().name().substr(op.schema().name().find("::") + 2)) {
    if (c == '_') {
      upper = true;
    } else {
      out += upper ? static_cast<char>(std::toupper(c)) : c;
      upper = false;
    }
  }
  return out + "Backward0";
}

void record(const Operator& op, IValue* args, size_t num_args, IValue* results, size_t num_results,
            uint64_t borrowed) {
  const Rule& rule = holdsNested(op, args, num_args) ? nestedRuleOf(op) : ruleOf(op);
  const auto plainly = [&] { op.callKernel(args, num_args, results, num_results, borrowed); };
  if (rule.kind() == Rule::Kind::Ignored) return plainly();
  if (rule.kind() == Rule::Kind::Others) {
    return callOthers(op, args, num_args, results, num_results, borrowed);
  }
  if (rule.kind() == Rule::Kind::None) {
    const BelowRecorder below;
    return plainly();
  }
  Recording recording(op, rule, args, num_args);
  if (!gradEnabled()) {
    plainly();
    recording.noteViews(results, num_results);
    return;
  }
  if (!recording.isNeeded()) {
    {
      const BelowRecorder below;
      plainly();
    }
    recording.noteViews(results, num_results);
    return;
  }
  if (rule.kind() == Rule::Kind::Refused) {
    recording.refuse();
    return plainly();
  }
  WICK_CHECK(rule.kind() != Rule::Kind::Out,
             "{}(): functions with out=... arguments don't support automatic differentiation, but "
             "one of the arguments requires grad.",
             op.schema().name());
  if (rule.kind() == Rule::Kind::Script)
    return runScript(rule, args, num_args, results, num_results);
  recording.run(results, num_results, borrowed);
}

namespace {

const bool installed = [] {
  Operator::setRecorder(record);
  return true;
}();

}  // namespace

}  // namespace wick::autograd
