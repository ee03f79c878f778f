#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <ranges>

#include "aot/build.h"
#include "aot/data_numbers.h"
#include "aot/device.h"
#include "aot/kept_loops.h"
#include "aot/paths.h"
#include "aot/random.h"
#include "aot/recording.h"
#include "aot/refusal.h"
#include "aot/target.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/source_origin.h"
#include "ir/function.h"
#include "ir/graph.h"
#include "passes/freeze.h"
#include "passes/inline_calls.h"
#include "passes/inline_forks.h"
#include "runtime/call.h"
#include "runtime/executor/execution_plan.h"

namespace wick::aot {

namespace {

// While it lives, tensors that the program makes are made on the device "ahead".
class DefaultDevice {
 public:
  DefaultDevice() : before_(defaultDevice()) { setDefaultDevice(Device{kAhead, -1}, true); }
  ~DefaultDevice() { setDefaultDevice(before_); }
  DefaultDevice(const DefaultDevice&) = delete;
  DefaultDevice& operator=(const DefaultDevice&) = delete;

 private:
  const Device before_;
};

// The value with its tensors as constants of the recording; nullopt when it has none. Tensors of no
// dimensions stay: they join others where numbers do, and traced programs compute sizes with them.
std::optional<IValue> ahead(const IValue& value, Recording& recording, int depth = 0) {
  constexpr int kMaxDepth = 100;
  if (depth > kMaxDepth) {
    throw NotAhead(fmt::format("a constant nests deeper than {} levels", kMaxDepth));
  }
  if (value.isTensor()) {
    const Tensor t = value.toTensor();
    if (!t.defined() || t.dim() == 0) return std::nullopt;
    return IValue(recording.constant(t));
  }
  if (!value.isList() && !value.isTuple()) return std::nullopt;
  std::vector<IValue> elements;
  bool changed = false;
  for (const IValue& e : value.elements()) {
    std::optional<IValue> moved = ahead(e, recording, depth + 1);
    changed = changed || moved;
    elements.push_back(moved ? *std::move(moved) : e);
  }
  if (!changed) return std::nullopt;
  if (value.isTuple()) return IValue(makeTuple(std::move(elements), value.toTuple().named));
  return IValue(makeList(value.toList().element_type, std::move(elements)));
}

// What a call would do beside computing its result.
void refuseEffects(const Block* block) {
  for (const Node* node : block->nodes()) {
    for (const Block* inner : node->blocks()) refuseEffects(inner);
    if (node->kind() == prim::Print) {
      throw NotAhead(fmt::format("the program prints, which compiled models do not\n{}",
                                 node->range().highlight()));
    }
    if (node->kind() == prim::fork) {
      throw NotAhead(fmt::format("the program forks and does more with the future than to wait\n{}",
                                 node->range().highlight()));
    }
  }
}

bool hasTensors(const IValue& value) {
  if (value.isTensor()) return value.toTensor().defined();
  return (value.isList() || value.isTuple()) && std::ranges::any_of(value.elements(), hasTensors);
}

// Whether objects of the caller's are among what the graph uses.
bool usesObjects(const Block* block) {
  const auto isObject = [](const Value* v) { return v->type()->kind() == TypeKind::Class; };
  return std::ranges::any_of(block->inputs(), isObject) ||
         std::ranges::any_of(block->nodes(), [&](const Node* node) {
           return (node->kind() == prim::Constant && isObject(node->output())) ||
                  std::ranges::any_of(node->blocks(),
                                      [](const Block* inner) { return usesObjects(inner); });
         });
}

// Whether the node reads a tensor of a prepared module: those that nobody writes to are constants by then.
bool isKeptTensor(const Node* node) {
  if (node->kind() != prim::GetAttr || node->output()->type()->kind() != TypeKind::Tensor) {
    return false;
  }
  while (node->kind() == prim::GetAttr) node = node->input(0)->node();
  return node->kind() == prim::Constant;
}

// keeps: whether attributes that are set or written to would be seen by the next call.
void moveConstants(Block* block, bool keeps, Recording& recording) {
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) moveConstants(inner, keeps, recording);
    if (keeps && node->kind() == prim::SetAttr) {
      throw NotAhead(fmt::format(
          "the program sets the attribute '{}'; compiled models keep nothing between calls\n{}",
          node->ivalue(attr::name).toString(), node->range().highlight()));
    }
    if (keeps && isKeptTensor(node)) {
      throw NotAhead(
          fmt::format("the program may write to the attribute '{}'; compiled models keep nothing "
                      "between calls\n{}",
                      node->ivalue(attr::name).toString(), node->range().highlight()));
    }
    if (node->kind() != prim::Constant) continue;
    const std::optional<IValue> value = constantOf(node->output());
    if (!value) continue;
    if (std::optional<IValue> moved = ahead(*value, recording)) {
      // Without what was known of the other one.
      if (moved->isTensor()) node->output()->setType(types::Tensor());
      node->setAttribute(attr::value, *std::move(moved));
    }
  }
}

// Records a function with this graph, some of whose arguments or results are tensors of the device.
void recordAhead(Recording& recording, GraphFunction& function, std::shared_ptr<Graph> graph,
                 const std::vector<IValue>& arguments) {
  const FunctionSchema& schema = function.schema();
  const DefaultDevice scope;
  const bool grad = gradEnabled();
  setGradEnabled(false);
  struct Restore {
    bool grad;
    ~Restore() { setGradEnabled(grad); }
  } restore{grad};
  drawAhead(graph->block());
  moveConstants(graph->block(), usesObjects(graph->block()), recording);
  GraphFunction ahead_function(function.qualifiedName(), std::move(graph));
  ahead_function.setSchema(schema);
  const auto call = [&] {
    std::vector<IValue> given;
    for (size_t i = 0; i < arguments.size(); ++i) {
      const IValue& v = arguments[i];
      const std::string name = i < schema.arguments().size() ? schema.arguments()[i].name : "";
      if (!v.isTensor() || !v.toTensor().defined()) {
        given.push_back(ahead(v, recording).value_or(v));
        continue;
      }
      const Tensor t = v.toTensor();
      if (t.kind() != TensorKind::Dense || !t.isContiguous()) {
        throw NotAhead(fmt::format("argument '{}': expected a dense row-major tensor, got {}", name,
                                   t.describe()));
      }
      given.emplace_back(recording.addInput(name, t));
    }
    return callFunction(ahead_function, given);
  };
  // The first runs find out what plans are made for, and the one behind them makes those.
  for (size_t run = 0; run <= ExecutionPlan::kProfiledRuns; ++run) {
    recording.restart();
    try {
      call();
    } catch (const RuntimeError&) {
      // It may be what this way through the program ends with.
      if (recording.decisions().empty()) throw;
    }
  }
  recordPaths(recording, "result", call);
}

bool hasLoops(const Block* block) {
  return std::ranges::any_of(block->nodes(), [](const Node* node) {
    return node->kind() == prim::Loop || std::ranges::any_of(node->blocks(), hasLoops);
  });
}

// Tries ways to record a function, with loops run one round after the other or kept as loops.
class Recorder {
 public:
  Recorder(GraphFunction& function, const Graph& graph, const std::vector<IValue>& arguments,
           const DecidedSizes& decided)
      : function_(function), graph_(graph), arguments_(arguments), decided_(decided) {}

  Program run(bool keep_loops) {
    const bool loops = hasLoops(graph_.block());
    if (keep_loops && loops) {
      if (std::optional<Program> kept = withLoops({.all = true})) return *std::move(kept);
    }
    Recording recording;
    recording.assumeSizes(decided_);
    std::optional<Program> plain;
    try {
      recordAhead(recording, function_, graph_.copy(), arguments_);
      plain = recording.take();
      if (!loops || plain->steps.size() <= kManySteps) return *std::move(plain);
    } catch (const RuntimeError& e) {
      // Elements decide about numbers. Only such programs are changed so, because others compute with
      // numbers that are known.
      if (recording.askedForNumber()) return withNumbers();
      if (!loops) throw;
      if (!recording.isFull()) {
        // Elements may decide about the rounds of loops.
        if (std::optional<Program> kept = withLoops({})) return *std::move(kept);
        if (why_.empty()) throw;
        fail(e);
      }
    }
    // So many steps, perhaps of long loops.
    LoopChoice choice;
    for (const auto& [ordinal, rounds] : roundsOfLoops()) {
      if (rounds > kLongLoop) choice.kept.insert(ordinal);
    }
    if (std::optional<Program> kept = withLoops(choice)) return *std::move(kept);
    if (plain) return *std::move(plain);
    fail(NotAhead(fmt::format("the program computes more than {} tensors", Recording::kMostSteps)));
  }

 private:
  // A program of more steps is looked at for long loops.
  static constexpr size_t kManySteps = 256;

  Program withNumbers() {
    if (std::optional<Program> kept = withLoops({})) return *std::move(kept);
    const std::shared_ptr<Graph> graph = graph_.copy();
    numbersAsTensors(*graph);
    Recording recording;
    recording.assumeSizes(decided_);
    try {
      recordAhead(recording, function_, graph, arguments_);
    } catch (const RuntimeError& e) {
      if (why_.empty()) throw;
      fail(e);
    }
    return recording.take();
  }

  // With some loops kept; nullopt when none can be. Those that cannot are left out one after the other.
  std::optional<Program> withLoops(LoopChoice choice) {
    for (;;) {
      const std::shared_ptr<Graph> graph = graph_.copy();
      Recording recording;
      recording.assumeSizes(decided_);
      try {
        if (!keepLoops(*graph, choice)) return std::nullopt;
        numbersAsTensors(*graph);
        recordAhead(recording, function_, graph, arguments_);
        return recording.take();
      } catch (const KeptLoopError& e) {
        note(e);
        choice.unrolled.insert(e.ordinal());
      } catch (const RuntimeError& e) {
        note(e);
        const std::optional<int64_t> open = recording.openLoop();
        if (!open || !choice.unrolled.insert(*open).second) return std::nullopt;
      }
    }
  }
  // The error, and why a loop was not kept.
  [[noreturn]] void fail(const RuntimeError& e) const { throw refusalOf(e, why_); }
  void note(const RuntimeError& e) {
    if (!why_.empty()) return;
    why_ = "\nA loop cannot stay one: " + withoutDevice(e.brief());
    if (!e.frames().empty()) why_ += "\n" + userRange(e.frames().front().range).highlight();
  }

  std::map<int64_t, int64_t> roundsOfLoops() {
    const std::shared_ptr<Graph> graph = graph_.copy();
    countRounds(*graph);
    Recording recording;
    recording.assumeSizes(decided_);
    try {
      recordAhead(recording, function_, graph, arguments_);
    } catch (const RuntimeError&) {
      // What was counted so far tells enough.
    }
    return recording.roundsOfLoops();
  }

  GraphFunction& function_;
  const Graph& graph_;
  const std::vector<IValue>& arguments_;
  const DecidedSizes& decided_;
  std::string why_;  // a loop was not kept
};

// What a call raises on the device of the recording is told by the engine, in its words.
[[noreturn]] void raiseAsEngine(GraphFunction& function, const std::vector<IValue>& arguments,
                                const NotAhead& otherwise) {
  callFunction(function, arguments);
  throw otherwise;
}

Program recordOnly(GraphFunction& function, const std::vector<IValue>& arguments,
                   const RecordOptions& options) {
  const RecordFor target(options.target, {options.standalone, options.winograd});
  function.ensureDefined();
  std::shared_ptr<Graph> graph = function.graph()->copy();
  inlineCalls(*graph);
  // Attributes that forks read of a prepared module are no constants yet.
  if (!inlineForks(*graph).empty() && usesObjects(graph->block())) freezeConstants(*graph);
  refuseEffects(graph->block());
  if (options.fold && std::ranges::none_of(arguments, hasTensors) &&
      !drawsNumbers(graph->block())) {
    // All of it is known.
    Recording recording;
    GraphFunction known(function.qualifiedName(), std::move(graph));
    known.setSchema(function.schema());
    recordPaths(recording, "result", [&] { return callFunction(known, arguments); });
    return recording.take();
  }
  Program program = Recorder(function, *graph, arguments, options.decided).run(options.keep_loops);
  if (!program.asks.empty()) {
    program.again = [&function, arguments, options](const DecidedSizes& decided) {
      RecordOptions with = options;
      with.decided = decided;
      with.decided.most = options.decided.most;
      return recordOnly(function, arguments, with);
    };
  }
  return program;
}

}  // namespace

Program record(GraphFunction& function, const std::vector<IValue>& arguments,
               const RecordOptions& options) {
  std::optional<NotAhead> otherwise;
  try {
    return recordOnly(function, arguments, options);
  } catch (const RuntimeError& e) {
    if (isNotAhead(e)) throw;
    otherwise = refusalOf(e);
  }
  raiseAsEngine(function, arguments, *otherwise);
}

Family familyOf(GraphFunction& function, std::vector<Symbol> symbols,
                std::function<std::vector<IValue>(const std::vector<int64_t>&)> arguments,
                const RecordOptions& options) {
  return {std::move(symbols),
          [&function, arguments = std::move(arguments), options](
              const std::vector<int64_t>& sizes, bool keep_loops,
              const DecidedSizes& decided) -> Program {
            std::optional<NotAhead> otherwise;
            RecordOptions with = options;
            with.keep_loops = with.keep_loops || keep_loops;
            with.decided = decided;
            with.decided.most = options.decided.most;
            try {
              return recordOnly(function, arguments(sizes), with);
            } catch (const RuntimeError& e) {
              if (isNotAhead(e)) throw;
              otherwise = refusalOf(e);
            }
            raiseAsEngine(function, arguments(sizes), *otherwise);
          }};
}

}  // namespace wick::aot
