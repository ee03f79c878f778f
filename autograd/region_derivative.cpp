#include "autograd/region_derivative.h"

#include <algorithm>
#include <mutex>

#include "autograd/anomaly.h"
#include "autograd/gradients.h"
#include "autograd/region_plan.h"
#include "autograd/saved_value.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/interpreter.h"

namespace wick::autograd {

namespace {

IValue runFunction(GraphFunction& function, std::vector<IValue> arguments) {
  const Code& code = GraphExecutor::of(function).codeFor(arguments);
  return runCodeWithin(code, std::move(arguments));
}

// A call on the tape. Its results are those of the plan's forward function, so that what is saved
// beside the body's results has derivatives of its own.
class RegionNode : public Node {
 public:
  RegionNode(std::shared_ptr<const RegionPlan> plan, const IValue* arguments)
      : plan_(std::move(plan)), saved_(plan_->saved().size()) {
    std::vector<Edge> edges;
    for (const size_t i : plan_->arguments())
      edges.push_back(gradientEdge(arguments[i].toTensor()));
    setNext(std::move(edges));
    noteHeld(saved_.capacity() * sizeof(SavedValue));
    for (size_t i = 0; i < saved_.size(); ++i) {
      const auto& [kind, index] = plan_->saved()[i];
      if (kind == RegionPlan::Saved::Kind::Argument) {
        saved_[i] = SavedValue::argument(arguments[index]);
      }
    }
  }

  void saveResults(const std::vector<IValue>& results) {
    for (size_t i = 0; i < saved_.size(); ++i) {
      const auto& [kind, index] = plan_->saved()[i];
      if (kind == RegionPlan::Saved::Kind::Result) {
        saved_[i] = SavedValue::result(results[index], static_cast<uint32_t>(index));
      }
    }
  }

  std::string name() const override { return "DifferentiableGraphBackward"; }

  std::vector<Tensor> apply(const std::vector<Tensor>& gradients) override {
    return run(gradients, /*last=*/false);
  }
  std::vector<Tensor> applyLast(const std::vector<Tensor>& gradients) override {
    return run(gradients, /*last=*/true);
  }

  void releaseSaved() override {
    std::vector<SavedValue> dropped;  // without the mutex
    std::lock_guard lock(mutex_);
    giveUp(dropped);
  }

 private:
  void giveUp(std::vector<SavedValue>& dropped) {
    for (SavedValue& s : saved_) {
      if (!s.isTensor()) continue;
      dropped.push_back(std::exchange(s, SavedValue()));
      released_ = true;
    }
  }

  std::vector<Tensor> run(const std::vector<Tensor>& gradients, bool last) {
    uint64_t defined = 0;
    for (size_t i = 0; i < gradients.size() && i < 64; ++i) {
      defined |= static_cast<uint64_t>(gradients[i].defined()) << i;
    }
    const RegionPlan::Backward& backward = plan_->backward(defined);
    std::vector<Tensor> out(plan_->arguments().size());
    if (!backward.function) return out;
    std::vector<IValue> arguments;
    {
      // The function lets go of each value when it was read for the last time.
      std::vector<SavedValue> dropped;
      std::lock_guard lock(mutex_);
      for (const auto& [kind, index] : backward.parameters) {
        if (kind == RegionPlan::Backward::Parameter::Kind::Gradient) {
          arguments.emplace_back(gradients.at(index));
          continue;
        }
        WICK_CHECK(!released_, "{}", kAlreadyReleased);
        arguments.push_back(saved_[index].unpack(*this));
      }
      if (last) giveUp(dropped);
    }
    const IValue found = runFunction(*backward.function, std::move(arguments));
    for (size_t k = 0; k < backward.found.size(); ++k) {
      out[backward.found[k]] = found.elements().at(k).toTensor();
    }
    return out;
  }

  const std::shared_ptr<const RegionPlan> plan_;
  std::mutex mutex_;  // several threads may walk here
  std::vector<SavedValue> saved_;
  bool released_ = false;
};

class RegionDerivative : public SiteDerivative {
 public:
  explicit RegionDerivative(std::shared_ptr<const Graph> body) : body_(std::move(body)) {
    std::shared_ptr<Graph> graph = body_->copy();
    const std::vector<Value*> results(graph->outputs().begin(), graph->outputs().end());
    Value* tuple = graph->insertNode(graph->createTuple(results))->output();
    while (!graph->outputs().empty()) graph->block()->eraseOutput(graph->outputs().size() - 1);
    graph->registerOutput(tuple);
    plain_ = unit_.createFunction("__torch__.region", std::move(graph));
  }

  bool computesAlone() const override { return true; }

  bool compute(const IValue* arguments, size_t num_arguments, IValue* results,
               size_t num_results) override {
    const IValue found =
        runFunction(*plain_, std::vector<IValue>(arguments, arguments + num_arguments));
    for (size_t i = 0; i < num_results; ++i) results[i] = found.elements()[i];
    return true;
  }

  bool run(const IValue* arguments, size_t num_arguments, IValue* results, size_t num_results,
           const std::function<bool()>&) override {
    // Whoever looks for the operator that makes a NaN wants each by itself.
    if (detectsAnomaly()) return false;
    const std::optional<uint64_t> mask = argumentsWithGradients(arguments, num_arguments);
    if (!mask || *mask == 0) return false;
    const std::shared_ptr<const RegionPlan> plan = planFor(arguments, num_arguments, *mask);
    if (!plan) return false;
    // What is saved is noted before the results may take the arguments' place.
    Ref<RegionNode> node = makeRef<RegionNode>(plan, arguments);
    IValue found;
    {
      const BelowRecorder below;
      found =
          runFunction(plan->forward(), std::vector<IValue>(arguments, arguments + num_arguments));
    }
    const std::vector<IValue>& all = found.elements();
    for (size_t i = 0; i < all.size(); ++i) {
      if (i < num_results && plan->needsGradient(i)) {
        setHistory(all[i].toTensor(), node);
      } else if (all[i].isTensor()) {
        node->addResult(all[i].toTensor());
      } else {
        node->addAbsentResult();
      }
    }
    node->saveResults(all);
    for (size_t i = 0; i < num_results; ++i) results[i] = all[i];
    return true;
  }

 private:
  // What a plan depends on, as words.
  static std::vector<int64_t> describe(const IValue* arguments, size_t n, uint64_t mask,
                                       uint64_t& leaves) {
    std::vector<int64_t> key{static_cast<int64_t>(mask)};
    for (size_t i = 0; i < n; ++i) {
      const IValue& a = arguments[i];
      key.push_back(static_cast<int64_t>(a.tag()));
      if (a.isTensor()) {
        const Tensor t = a.toTensor();
        key.push_back(static_cast<int64_t>(t.dtype()));
        key.push_back(t.dim());
        for (const int64_t s : t.sizes()) key.push_back(s);
        if ((mask >> i & 1) != 0 && isLeaf(t)) leaves |= uint64_t{1} << i;
      } else if (a.isInt()) {
        key.push_back(a.toInt());
      } else if (a.isBool()) {
        key.push_back(a.toBool() ? 1 : 0);
      }
    }
    key.push_back(static_cast<int64_t>(leaves));
    return key;
  }

  std::shared_ptr<const RegionPlan> planFor(const IValue* arguments, size_t n, uint64_t mask) {
    // Programs that meet more sizes at one place run the others on the tape: each plan is code.
    constexpr size_t kMost = 8;
    uint64_t leaves = 0;
    std::vector<int64_t> key = describe(arguments, n, mask, leaves);
    std::lock_guard lock(mutex_);
    for (const auto& [known, plan] : plans_) {
      if (known == key) return plan;
    }
    if (plans_.size() == kMost) return nullptr;
    std::vector<RegionPlan::Input> inputs(n);
    for (size_t i = 0; i < n; ++i) {
      if (arguments[i].isTensor()) {
        const Tensor t = arguments[i].toTensor();
        inputs[i] = {t.dtype(), DimVector(t.sizes()), std::nullopt};
      } else if (arguments[i].isInt() || arguments[i].isBool()) {
        inputs[i].constant = arguments[i];
      }
    }
    plans_.emplace_back(std::move(key), RegionPlan::make(*body_, inputs, mask, leaves));
    return plans_.back().second;
  }

  const std::shared_ptr<const Graph> body_;
  CompilationUnit unit_;
  GraphFunction* plain_ = nullptr;
  std::mutex mutex_;
  // Null: there is none.
  std::vector<std::pair<std::vector<int64_t>, std::shared_ptr<const RegionPlan>>> plans_;
};

}  // namespace

std::unique_ptr<SiteDerivative> makeRegionDerivative(std::shared_ptr<const Graph> body) {
  return std::make_unique<RegionDerivative>(std::move(body));
}

std::optional<uint64_t> argumentsWithGradients(const IValue* arguments, size_t num_arguments) {
  if (num_arguments > 64) return std::nullopt;
  uint64_t mask = 0;
  std::optional<DType> dtype;
  for (size_t i = 0; i < num_arguments; ++i) {
    const IValue& a = arguments[i];
    if (!a.isTensor()) continue;
    const Tensor t = a.toTensor();
    if (isComplex(t.dtype()) || t.kind() != TensorKind::Dense || !t.device().isCpu()) {
      return std::nullopt;
    }
    if (isFloating(t.dtype())) {
      if (dtype && *dtype != t.dtype()) return std::nullopt;
      dtype = t.dtype();
    }
    if (requiresGradient(t)) mask |= uint64_t{1} << i;
  }
  if (!dtype || isReducedFloat(*dtype)) return std::nullopt;
  return mask;
}

}  // namespace wick::autograd
