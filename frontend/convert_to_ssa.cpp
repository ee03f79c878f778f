// Four steps, each a walk over the blocks:
//
//   1. Carry variables through control flow. What a branch or a loop body stores becomes an output
//   of the
//      If or Loop: a Load of the variable at the end of the block, a Store of the output behind the
//      node. Loops also take the variable in: a Load before the node, a Store of the block input at
//      the top. A variable that was only narrowed by conditions is what it was before, and stays.
//   2. Turn break and continue into prim::LoopContinuation(condition, carried…): the condition is
//   False for
//      a break and a copy of the loop's condition for a continue; the carried values are Loads at
//      that place.
//   3. Copy the condition block of a while loop to before the loop and to the end of the body.
//   4. Replace every Load by the value that the innermost preceding Store gave the variable.
//
//   while i < 3:            %i.2 : int = prim::Loop(%max, %start, %i.1)
//     i = i + 1       →       block0(%n : int, %i : int):
//                               %i.3 : int = aten::add(%i, %1)
//                               %again : bool = aten::lt(%i.3, %3)
//                               -> (%again, %i.3)
#include "frontend/convert_to_ssa.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <unordered_map>

#include "core/error.h"
#include "core/natural_order.h"
#include "frontend/carried_values.h"
#include "frontend/scoped_map.h"
#include "ir/depth.h"

namespace wick {

namespace {

std::string variableOf(const Node* node) {
  return node->ivalue(attr::name).toString();
}

TypePtr unified(const Node* node, const std::string& name, const TypePtr& a, const TypePtr& b) {
  std::optional<TypePtr> type = unifyTypes(a, b, /*default_to_union=*/true);
  if (!type) {
    throwCompileError(node->range(),
                      "the variable '{}' has the type {} on one path and {} on another", name,
                      a->annotation(), b->annotation());
  }
  return *type;
}

// Step 1.
class VariableCarrier {
 public:
  explicit VariableCarrier(Graph& graph) : graph_(graph), nodes_(graph.nodeCount()) {}

  void run() { block(graph_.block()); }

 private:
  // In the order of names, which printed source keeps when it is compiled again.
  struct Variable {
    TypePtr type;
    // The block has only narrowed the type of what the variable was at its start.
    bool only_refined = false;
  };
  using Defined = std::map<std::string, Variable, NaturalLess>;

  // Returns what the block itself stores, with the types at its end.
  Defined block(Block* b) {
    scopes_.push();
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      if (node->kind() == prim::Store) {
        const std::string name = variableOf(node);
        const Variable* before = scopes_.findInScope(name);
        const bool only_refined =
            isRefinement(node->input(0), name) && (!before || before->only_refined);
        scopes_.set(name, {node->input(0)->type(), only_refined});
      } else if (node->kind() == prim::If) {
        branch(node);
      } else if (node->kind() == prim::Loop) {
        loop(node);
      } else {
        for (Block* sub : node->blocks()) block(sub);
      }
    }
    Defined defined;
    for (auto& [name, variable] : scopes_.pop()) defined.emplace(name, std::move(variable));
    return defined;
  }

  void store(Node* after, const std::string& name, Value* value) {
    Node* store = graph_.createStore(name, value);
    store->insertAfter(after);
    scopes_.set(name, {value->type()});
  }

  static bool isRefinement(const Value* value, const std::string& name) {
    if (value->node()->kind() != prim::unchecked_cast) return false;
    const Node* of = value->node()->input(0)->node();
    return of->kind() == prim::Load && variableOf(of) == name;
  }

  Value* loadAt(Block* b, const std::string& name, const TypePtr& type) {
    return b->appendNode(graph_.createLoad(name, type))->output();
  }

  TypePtr typeOutside(const std::string& name) const {
    const Variable* found = scopes_.find(name);
    return found ? found->type : nullptr;
  }

  void branch(Node* node) {
    Defined in_true = block(node->blocks().at(0));
    Defined in_false = block(node->blocks().at(1));
    auto typeIn = [&](const Defined& defined, const std::string& name) {
      auto it = defined.find(name);
      return it == defined.end() ? typeOutside(name) : it->second.type;
    };
    auto isChanged = [](const Defined& defined, const std::string& name) {
      auto it = defined.find(name);
      return it != defined.end() && !it->second.only_refined;
    };
    std::set<std::string, NaturalLess> names;
    for (const auto& [name, variable] : in_true) names.insert(name);
    for (const auto& [name, variable] : in_false) names.insert(name);
    Node* after = node;
    for (const std::string& name : names) {
      TypePtr a = typeIn(in_true, name);
      TypePtr b = typeIn(in_false, name);
      if (!a || !b) continue;  // defined on one path only: not visible afterwards
      TypePtr type = unified(node, name, a, b);
      const TypePtr outer = typeOutside(name);
      if (!isChanged(in_true, name) && !isChanged(in_false, name) && outer &&
          sameType(type, outer)) {
        continue;
      }
      counted_.add(1, nodes_, node->range());
      node->blocks()[0]->registerOutput(loadAt(node->blocks()[0], name, a));
      node->blocks()[1]->registerOutput(loadAt(node->blocks()[1], name, b));
      Value* out = node->addOutput(std::move(type));
      store(after, name, out);
      after = after->next();
    }
  }

  void loop(Node* node) {
    Block* body = node->blocks().at(0);
    Defined in_body = block(body);
    if (node->blocks().size() > 1) block(node->blocks()[1]);
    Node* after = node;
    Node* first =
        body->nodes().begin() == body->nodes().end() ? body->returnNode() : *body->nodes().begin();
    for (const auto& [name, variable] : in_body) {
      const TypePtr& type = variable.type;
      TypePtr outer = typeOutside(name);
      if (!outer) continue;  // local to one iteration
      TypePtr carried = unified(node, name, outer, type);
      if (variable.only_refined && sameType(carried, outer)) continue;
      counted_.add(1, nodes_, node->range());
      Node* before = graph_.createLoad(name, outer);
      before->insertBefore(node);
      node->addInput(before->output());
      Value* inside = body->addInput(carried);
      Node* enter = graph_.createStore(name, inside);
      enter->insertBefore(first);
      body->registerOutput(loadAt(body, name, type));
      store(after, name, node->addOutput(carried));
      after = after->next();
      carried_[node].push_back(name);
    }
  }

  Graph& graph_;
  const size_t nodes_;
  CarriedValues counted_;
  ScopedMap<Variable> scopes_;

 public:
  // For each loop, the variables it carries in the order of its outputs.
  std::unordered_map<const Node*, std::vector<std::string>> carried_;
};

// Copies the condition block to before `at`; returns the condition.
Value* copyCondition(Graph& graph, const Block* condition, Node* at) {
  std::unordered_map<Value*, Value*> map;
  for (Node* node : condition->nodes()) {
    Node* copy = graph.createClone(node, map);
    copy->insertBefore(at);
    for (size_t i = 0; i < node->outputs().size(); ++i) map[node->output(i)] = copy->output(i);
  }
  Value* result = condition->outputs().at(0);
  auto it = map.find(result);
  return it == map.end() ? result : it->second;
}

// Step 2.
class ContinuationMaker {
 public:
  ContinuationMaker(Graph& graph, const VariableCarrier& carrier)
      : graph_(graph), carrier_(carrier), nodes_(graph.nodeCount()) {}

  void run() { block(graph_.block(), nullptr); }

 private:
  void block(Block* b, Node* loop) {
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      if (node->kind() == prim::Loop) {
        block(node->blocks().at(0), node);
      } else if (node->kind() == prim::Closure) {
        for (Block* sub : node->blocks()) block(sub, nullptr);
      } else if (node->kind() == prim::BreakStmt || node->kind() == prim::ContinueStmt) {
        WICK_ASSERT(loop != nullptr, "{} outside of a loop", node->kind().qualString());
        replace(node, loop);
      } else {
        for (Block* sub : node->blocks()) block(sub, loop);
      }
    }
  }

  void replace(Node* node, Node* loop) {
    InsertPointGuard guard(node);
    RangeGuard range(&graph_, node->range());
    Node* exit = graph_.create(prim::LoopContinuation, 0);
    if (node->kind() == prim::BreakStmt) {
      exit->addInput(graph_.insertConstant(IValue(false)));
    } else if (loop->blocks().size() > 1) {
      const size_t before = graph_.nodeCount();
      exit->addInput(copyCondition(graph_, loop->blocks()[1], node));
      counted_.add(graph_.nodeCount() - before, nodes_, node->range());
    } else {
      exit->addInput(graph_.insertConstant(IValue(true)));
    }
    auto it = carrier_.carried_.find(loop);
    if (it != carrier_.carried_.end()) {
      counted_.add(it->second.size(), nodes_, node->range());
      for (size_t i = 0; i < it->second.size(); ++i) {
        TypePtr type = loop->outputs().at(loop->outputs().size() - it->second.size() + i)->type();
        Node* load = graph_.insertNode(graph_.createLoad(it->second[i], type));
        exit->addInput(load->output());
      }
    }
    graph_.insertNode(exit);
    node->destroy();
  }

  Graph& graph_;
  const VariableCarrier& carrier_;
  const size_t nodes_;
  CarriedValues counted_;
};

// Step 3.
void inlineLoopConditions(Graph& graph, Block* b) {
  for (Node* node : b->nodes()) {
    for (Block* sub : node->blocks()) inlineLoopConditions(graph, sub);
    if (node->kind() != prim::Loop || node->blocks().size() < 2) continue;
    Block* condition = node->blocks()[1];
    node->insertInput(1, copyCondition(graph, condition, node));
    Block* body = node->blocks()[0];
    // The Loads that step 1 appended read the same variables before or after the condition, which
    // stores nothing.
    body->insertOutput(0, copyCondition(graph, condition, body->returnNode()));
    node->eraseBlock(1);
  }
}

// Step 4.
class LoadEraser {
 public:
  void run(Block* b) {
    variables_.push();
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      if (node->kind() == prim::Store) {
        std::string name = variableOf(node);
        Value* v = node->input(0);
        // What a block hands on is the variable; other values got their names when assigned.
        const bool handed_on = v->node()->kind() == prim::Param || !v->node()->blocks().empty();
        if (!v->hasDebugName() && handed_on && isMeaningfulName(name)) v->setDebugName(name);
        variables_.set(name, v);
        node->destroy();
      } else if (node->kind() == prim::Load) {
        node->output()->replaceAllUsesWith(find(node));
        node->destroy();
      } else {
        for (Block* sub : node->blocks()) run(sub);
      }
    }
    variables_.pop();
  }

 private:
  Value* find(const Node* load) const {
    std::string name = variableOf(load);
    if (Value* const* found = variables_.find(name)) return *found;
    throwCompileError(load->range(), "the variable '{}' is used before it is defined", name);
  }

  ScopedMap<Value*> variables_;
};

}  // namespace

void convertToSSA(const std::shared_ptr<Graph>& graph) {
  withStackFor(*graph, [&] {
    VariableCarrier carrier(*graph);
    carrier.run();
    ContinuationMaker(*graph, carrier).run();
    inlineLoopConditions(*graph, graph->block());
    LoadEraser().run(graph->block());
  });
}

bool isMeaningfulName(const std::string& name) {
  auto isSpelled = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  };
  return !name.empty() && std::all_of(name.begin(), name.end(), isSpelled) &&
         (name[0] != '_' || name.find_first_not_of("0123456789", 1) != std::string::npos);
}

}  // namespace wick
