#include "tests/optimizer/check_passes.h"

#include <fmt/format.h>

#include <functional>

#include "codegen/loop/pointwise.h"
#include "codegen/loop/writes.h"
#include "core/error.h"
#include "ir/alias_db.h"
#include "ir/verifier.h"
#include "passes/common_subexpressions.h"
#include "passes/constant_pooling.h"
#include "passes/constant_propagation.h"
#include "passes/copy_loop_weights.h"
#include "passes/dead_code_elimination.h"
#include "passes/erase_shape_computations.h"
#include "passes/eval_mode.h"
#include "passes/fusion_groups.h"
#include "passes/inline_calls.h"
#include "passes/loop_invariants.h"
#include "passes/lower_tuples.h"
#include "passes/peephole.h"
#include "passes/pipeline.h"
#include "passes/propagate_types.h"
#include "passes/remove_mutation.h"
#include "passes/unroll_loops.h"
#include "passes/write_groups.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/interpreter/interpreter.h"
#include "tests/optimizer/check_types.h"
#include "tests/optimizer/random_graph.h"
#include "tests/optimizer/snapshot.h"

namespace wick {

namespace {

std::vector<IValue> results(const Code& code, std::vector<IValue> arguments) {
  defaultGenerator().seed(3);
  IValue result = runCode(code, std::move(arguments));
  return result.isTuple() && code.numOutputs() != 1 ? result.elements()
                                                    : std::vector<IValue>{result};
}

std::string observe(const std::shared_ptr<Graph>& graph, RandomGraph& source) {
  std::shared_ptr<const Code> code = Code::build(graph->copy(), "random");
  std::string text;
  for (int run = 0; run < 2; ++run) {
    std::vector<IValue> arguments = source.arguments();
    std::vector<IValue> seen;
    try {
      seen = results(*code, arguments);
    } catch (const RuntimeError& e) {
      return fmt::format("raises {}", e.what());
    }
    std::vector<IValue> outputs = seen;
    seen.insert(seen.end(), arguments.begin(), arguments.end());
    text += snapshot(seen) + fmt::format("then {}\n", defaultGenerator().next32());
    for (const IValue& v : outputs) spoil(v);
  }
  return text;
}

// ---- passes ----

using Transform = std::function<void(Graph&)>;
struct NamedTransform {
  const char* name;
  Transform run;
};

std::vector<Block*> blocksOf(Graph& graph) {
  std::vector<Block*> blocks{graph.block()};
  for (size_t i = 0; i < blocks.size(); ++i) {
    for (Node* n : blocks[i]->nodes()) {
      blocks.insert(blocks.end(), n->blocks().begin(), n->blocks().end());
    }
  }
  return blocks;
}

// Moves nodes to random positions where the alias analysis says that they may stand.
void moveNodes(Graph& graph, std::mt19937_64& random) {
  AliasDb aliases(graph);
  for (Block* b : blocksOf(graph)) {
    std::vector<Node*> nodes(b->nodes().begin(), b->nodes().end());
    for (size_t i = 0; i < nodes.size() && nodes.size() > 1; ++i) {
      Node* node = nodes[random() % nodes.size()];
      Node* point = nodes[random() % nodes.size()];
      bool before = random() % 2 != 0;
      bool could = before ? aliases.couldMoveBeforeTopologically(node, point)
                          : aliases.couldMoveAfterTopologically(node, point);
      bool moved = before ? aliases.moveBeforeTopologicallyValid(node, point)
                          : aliases.moveAfterTopologicallyValid(node, point);
      WICK_ASSERT(could == moved, "could move: {}, moved: {}", could, moved);
      WICK_ASSERT(!moved || node == point || (before ? node->next() : node->prev()) == point,
                  "the node does not stand where it should");
    }
  }
}

// What moved together stays together; no engine needs to know groups for that to be checked.
void formAndDissolveGroups(Graph& graph) {
  formFusionGroups(graph, {.kind_of = kernelKindOf});
  formWriteGroups(graph, {loop::isPointwise, loop::isPointwiseWrite});
  verify(graph);
  dissolveFusionGroups(graph);
}

// What is true of the arguments, or of some of them.
void tellTypes(Graph& graph) {
  const DimVector shapes[] = {{4, 4}, {4}, {4}};
  for (size_t i = 0; i < std::size(shapes); ++i) {
    TensorType::Facts facts;
    facts.dtype = DType::Float;
    facts.device = Device();
    facts.requires_grad = false;
    facts.dim = shapes[i].size();
    // The second vector is of an unknown size.
    if (i < 2) facts.sizes.emplace(shapes[i].begin(), shapes[i].end());
    graph.inputs()[i]->setType(TensorType::create(facts));
  }
}
template <auto pass>
void withTypes(Graph& graph) {
  tellTypes(graph);
  pass(graph);
}

const std::vector<NamedTransform>& transforms() {
  static const std::vector<NamedTransform> all = {
      {"inline_calls", inlineCalls},
      {"lower_tuples", lowerTuples},
      {"remove_list_mutation", removeListMutation},
      {"remove_tensor_mutation", removeTensorMutation},
      {"constant_propagation", propagateConstants},
      {"constant_pooling", poolConstants},
      {"peephole", simplifyPeepholes},
      {"unroll_loops", unrollLoops},
      {"loop_invariants", hoistLoopInvariants},
      {"common_subexpressions", eliminateCommonSubexpressions},
      {"dead_code_elimination", eliminateDeadCode},
      {"fusion_groups", formAndDissolveGroups},
      {"propagate_types", withTypes<static_cast<void (*)(Graph&)>(propagateTypes)>},
      {"erase_shape_computations", withTypes<eraseShapeComputations>},
      {"eval_mode", removeDropout},
      {"copy_loop_weights", [](Graph& g) { copyLoopWeights(g); }},
  };
  return all;
}

class Checker {
 public:
  explicit Checker(uint64_t seed) : seed_(seed), source_(seed), random_(seed * 31 + 1) {}

  std::string run() {
    graph_ = source_.make();
    verify(*graph_);
    expected_ = observe(graph_, source_);
    // A write to a tensor that partly overlaps another operand is refused. Whether and where such
    // an error comes may change.
    if (expected_.starts_with("raises")) return "";
    for (const NamedTransform& t : transforms()) {
      if (std::string failure = check(t.name, t.run); !failure.empty()) return failure;
    }
    if (std::string f = check("moves", [&](Graph& g) { moveNodes(g, random_); }); !f.empty()) {
      return f;
    }
    if (std::string f = check("the pipeline", [](Graph& g) { runPipeline(g); }); !f.empty()) {
      return f;
    }
    if (std::string f = sequence(); !f.empty()) return f;
    if (std::string f = types(); !f.empty()) return f;
    return sharing();
  }

 private:
  std::string report(const std::string& name, const Graph& after, const std::string& seen) const {
    return fmt::format(
        "seed {}: {} changes the result\nbefore:\n{}\nafter:\n{}\nexpected:\n{}\n"
        "got:\n{}\n",
        seed_, name, graph_->str(), after.str(), expected_, seen);
  }

  std::string check(const std::string& name, const Transform& transform) {
    std::shared_ptr<Graph> copy = graph_->copy();
    try {
      transform(*copy);
      verify(*copy);
    } catch (const Error& e) {
      return report(name, *copy, e.what());
    }
    std::string seen = observe(copy, source_);
    return seen == expected_ ? "" : report(name, *copy, seen);
  }

  std::string sequence() {
    std::string names;
    std::vector<const NamedTransform*> chosen;
    for (int i = 0; i < 6; ++i) {
      chosen.push_back(&transforms()[random_() % transforms().size()]);
      names += std::string(chosen.back()->name) + " ";
    }
    return check(names, [&](Graph& g) {
      for (const NamedTransform* t : chosen) {
        t->run(g);
        verify(g);
      }
      moveNodes(g, random_);
    });
  }

  // Runs the graph with all its tensors as outputs: they must be what their types say.
  std::string types() {
    std::shared_ptr<Graph> copy = graph_->copy();
    inlineCalls(*copy);
    tellTypes(*copy);
    SymbolicSizes sizes(lowestSymbol(*copy));
    propagateTypes(*copy, sizes);
    std::vector<std::pair<Value*, size_t>> tensors;
    for (Node* n : copy->nodes()) {
      for (Value* v : n->outputs()) {
        if (v->type()->kind() != TypeKind::Tensor) continue;
        tensors.emplace_back(v, copy->outputs().size());
        copy->registerOutput(v);
      }
    }
    std::vector<IValue> seen = results(*Code::build(copy->copy(), "random"), source_.arguments());
    TypeChecker checker(sizes);
    for (auto [v, at] : tensors) {
      std::string wrong = checker.check(*v->type(), seen[at].toTensor());
      if (!wrong.empty()) {
        return fmt::format("seed {}: %{}: {}\n{}", seed_, v->debugName(), wrong, copy->str());
      }
    }
    return "";
  }

  // Runs the graph with all its values as outputs: what shares memory must be known to.
  std::string sharing() {
    std::shared_ptr<Graph> copy = graph_->copy();
    AliasDb aliases(*copy);
    std::vector<Value*> values;
    for (Node* n : copy->nodes()) {
      for (Value* v : n->outputs()) {
        if (AliasDb::isMutable(v->type())) values.push_back(v);
      }
    }
    size_t first = copy->outputs().size();
    for (Value* v : values) copy->registerOutput(v);
    std::shared_ptr<const Code> code = Code::build(copy, "random");
    std::vector<IValue> seen = results(*code, source_.arguments());
    for (size_t i = 0; i < values.size(); ++i) {
      const IValue& a = seen[first + i];
      for (size_t k = 0; k < i; ++k) {
        const IValue& b = seen[first + k];
        bool shared = a.isTensor() && b.isTensor() ? a.toTensor().sharesStorage(b.toTensor())
                                                   : a.isCounted() && !a.isTuple() && a.isSame(b);
        if (shared && !aliases.mayAlias(values[i], values[k])) {
          return fmt::format("seed {}: %{} and %{} alias\n{}\n{}", seed_, values[i]->debugName(),
                             values[k]->debugName(), copy->str(), aliases.str());
        }
        if (shared || (holds(a, b) && !a.isTensor())) {
          if (!aliases.mayContainAlias(values[i], values[k])) {
            return fmt::format("seed {}: %{} holds what is in %{}\n{}\n{}", seed_,
                               values[i]->debugName(), values[k]->debugName(), copy->str(),
                               aliases.str());
          }
        }
      }
    }
    return "";
  }

  static bool holds(const IValue& container, const IValue& v) {
    if (container.isTensor())
      return v.isTensor() && container.toTensor().sharesStorage(v.toTensor());
    if (container.isSame(v) && container.isCounted()) return true;
    std::vector<IValue> elements;
    if (container.isList() || container.isTuple()) elements = container.elements();
    if (container.isDict()) elements = container.toDict().values();
    for (const IValue& e : elements) {
      if (holds(e, v)) return true;
    }
    return false;
  }

  uint64_t seed_;
  RandomGraph source_;
  std::mt19937_64 random_;
  std::shared_ptr<Graph> graph_;
  std::string expected_;
};

}  // namespace

std::string checkSeed(uint64_t seed) {
  return Checker(seed).run();
}

}  // namespace wick
