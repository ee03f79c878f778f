#include "tests/optimizer/check_plans.h"

#include <fmt/format.h>

#include "core/error.h"
#include "ir/verifier.h"
#include "passes/bail_outs.h"
#include "passes/eliminate_guards.h"
#include "passes/guard_nodes.h"
#include "passes/inline_calls.h"
#include "passes/insert_guards.h"
#include "passes/insert_profiles.h"
#include "passes/move_guards.h"
#include "passes/pipeline.h"
#include "passes/propagate_types.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/executor/plan_profile.h"
#include "runtime/interpreter/interpreter.h"
#include "tests/optimizer/random_graph.h"
#include "tests/optimizer/snapshot.h"

namespace wick {

namespace {

// What a caller sees of a run, or "raises".
std::string observe(const Code& code, std::vector<IValue> arguments) {
  defaultGenerator().seed(3);
  std::vector<IValue> seen;
  try {
    IValue result = runCode(code, arguments);
    seen = result.isTuple() && code.numOutputs() != 1 ? result.elements()
                                                      : std::vector<IValue>{result};
  } catch (const RuntimeError&) {
    // Whether and where an error comes may change.
    return "raises";
  }
  std::vector<IValue> outputs = seen;
  seen.insert(seen.end(), arguments.begin(), arguments.end());
  std::string text = snapshot(seen) + fmt::format("then {}\n", defaultGenerator().next32());
  for (const IValue& v : outputs) spoil(v);
  return text;
}

class PlanChecker {
 public:
  explicit PlanChecker(uint64_t seed) : seed_(seed), source_(seed), random_(seed * 17 + 5) {
    graph_ = source_.make();
    plain_ = Code::build(graph_->copy(), "random");
    for (int v = 0; v < RandomGraph::kVariants; ++v) {
      expected_.push_back(observe(*plain_, source_.arguments(v)));
    }
  }

  std::string executor() {
    GraphFunction function("__torch__.random", graph_->copy());
    GraphExecutor executor(function);
    std::string history;
    for (int call = 0; call < 14; ++call) {
      // At first the same ones, so that the plan leaves its profile behind.
      int variant = call < 4 ? 0 : static_cast<int>(random_() % RandomGraph::kVariants);
      history += fmt::format(" {}", variant);
      std::vector<IValue> arguments = source_.arguments(variant);
      const Code& code = executor.codeFor(arguments);
      std::string failure = compare(variant, code, "the executor, after calls" + history);
      if (!failure.empty()) return failure;
    }
    return "";
  }

  // Guards whose types hold for variant 0, except one that never holds.
  std::string guards() {
    if (expected_[0] == "raises") return "";
    std::shared_ptr<Graph> base = graph_->copy();
    inlineCalls(*base);
    if (mayChangeTypes(*base)) return "";
    size_t values = insertProfiles(*base, ProfileChoice::Everything);
    if (values == 0) return "";
    auto profile = std::make_shared<PlanProfile>(values);
    auto profiling = Code::build(base->copy(), "profiling", std::make_shared<Profiling>(profile));
    if (std::string f = compare(0, *profiling, "profiling"); !f.empty()) return f;
    for (int round = 0; round < 3; ++round) {
      if (std::string f = guarded(*base, profile, random_() % values); !f.empty()) return f;
    }
    return "";
  }

 private:
  std::string guarded(const Graph& base, const std::shared_ptr<PlanProfile>& profile,
                      size_t failing) {
    std::shared_ptr<Graph> graph = base.copy();
    insertGuards(*graph, [&](size_t value, const TypePtr& declared) -> TypePtr {
      if (random_() % 3 == 0 && value != failing) return nullptr;
      TensorType::Facts never;
      never.dtype = DType::Bool;
      never.dim = 7;
      return value == failing ? TensorType::create(never) : profile->typeOf(value, declared);
    });
    if (random_() % 2 != 0) moveGuards(*graph);
    if (random_() % 2 != 0) coalesceGuards(*graph);
    if (random_() % 2 != 0) eliminateGuards(*graph);
    verify(*graph);
    std::shared_ptr<const BailOutPoints> points = insertBailOuts(*graph);
    propagateTypes(*graph);
    runPipeline(*graph);
    verify(*graph);
    for (size_t i = 0; i < points->points.size(); ++i) verify(*continuationAt(*points, i));
    if (points->points.empty()) return "";
    std::atomic<bool> too_many{false};
    auto outs = std::make_shared<BailOuts>(points, "random", profile, too_many);
    std::shared_ptr<const Code> code = Code::build(graph, "guarded", outs);
    for (int variant = 0; variant < RandomGraph::kVariants; ++variant) {
      std::string failure = compare(variant, *code, fmt::format("guards, value {} fails", failing));
      if (!failure.empty()) {
        return failure +
               fmt::format("profiled:\n{}\npoints in:\n{}\n", base.str(), points->graph->str());
      }
    }
    return "";
  }

  std::string compare(int variant, const Code& code, const std::string& name) {
    std::string seen = observe(code, source_.arguments(variant));
    const std::string& wanted = expected_[static_cast<size_t>(variant)];
    if (seen == wanted || wanted == "raises" || seen == "raises") {
      // An unused operation that would raise may be gone; none may be new.
      if (seen != "raises" || wanted == "raises") return "";
    }
    return fmt::format(
        "seed {}: {} changes the result for variant {}\nbefore:\n{}\nafter:\n{}\nexpected:\n{}\n"
        "got:\n{}\n",
        seed_, name, variant, graph_->str(), code.graph()->str(), wanted, seen);
  }

  uint64_t seed_;
  RandomGraph source_;
  std::mt19937_64 random_;
  std::shared_ptr<Graph> graph_;
  std::shared_ptr<const Code> plain_;
  std::vector<std::string> expected_;
};

}  // namespace

std::string checkPlansOfSeed(uint64_t seed) {
  setOptimizationLevel(OptimizationLevel::Stress);
  PlanChecker checker(seed);
  if (std::string failure = checker.executor(); !failure.empty()) return failure;
  return checker.guards();
}

}  // namespace wick
