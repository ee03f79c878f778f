// A walk that knows, for each block, whether it has hit an exit that leaves it: surely (Will),
// perhaps (Might, a bool value tells), not (Wont), or never gets past because it raises (Throws).
//
// After a node that might exit, the rest of the block moves into an If on "has exited"; after one
// that surely exits or raises, the rest is dead and deleted. Exit values travel outwards as extra
// outputs of Ifs and Loops until the block that the exit targets takes them as its outputs. Values
// that a path never reads are prim::Uninitialized.
//
//   while i < 5:               %go, … = Loop(…)
//     if i == 3: continue        %exited, %again = If(%is3)  # True, i < 5 | False, uninitialized
//     i += 2              →      %again.2, %i.2 = If(%exited)
//                                  -> (%again, %i)   |   i + 2 …
//
// Loop continuations are removed first, then returns. While the walk runs, `with` bodies are blocks
// of prim::With nodes, so that an exit inside still runs the Exit node.
#include "frontend/exit_transforms.h"

#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "frontend/carried_values.h"
#include "ir/depth.h"

namespace wick {

namespace {

enum class Status { Will, Might, Wont, Throws };

struct Exit {
  Status status = Status::Wont;
  Value* has_exited = nullptr;  // for Might
  std::vector<Value*> values;   // for Will and Might
};

[[noreturn]] void failDepth(const SourceRange& range) {
  throwCompileError(range,
                    "the rest of the function nests deeper than {} levels behind its early exits: "
                    "split it into several functions",
                    kMaxBlockDepth);
}

class ExitTransformer {
 public:
  ExitTransformer(Graph& graph, Symbol exit_kind)
      : graph_(graph), exit_kind_(exit_kind), nodes_(graph.nodeCount()) {}

  void run() { block(graph_.block()); }

 private:
  Value* constant(bool v, Node* before) {
    InsertPointGuard guard(before);
    return graph_.insertConstant(IValue(v));
  }
  Value* uninitialized(const TypePtr& type, Block* b) {
    InsertPointGuard guard(b);
    return graph_.insertNode(graph_.createUninitialized(type))->output();
  }
  Node* firstOf(Block* b) { return b->returnNode()->next(); }

  bool isTarget(const Block* b) const {
    const Node* owner = b->owningNode();
    if (exit_kind_ == prim::LoopContinuation) return owner && owner->kind() == prim::Loop;
    return owner == nullptr || owner->kind() == prim::Closure;
  }

  Exit block(Block* b) {
    // The nodes that might exit and have others behind them, and the status at the block's end.
    std::vector<std::pair<Node*, Exit>> guarded;
    Exit exit;
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      exit = transform(node);
      if (exit.status == Status::Will || exit.status == Status::Throws) {
        deleteAfter(b, *it);
        break;
      }
      if (exit.status != Status::Might) continue;
      if (it == end) break;
      guarded.emplace_back(node, std::move(exit));
      if (guarded.size() > kMaxBlockDepth) failDepth(node->range());
      exit = Exit();
    }
    // From the back, so that each node moves into the guard before it once.
    for (auto g = guarded.rbegin(); g != guarded.rend(); ++g) {
      exit = guardRest(b, std::move(g->second), g->first, std::move(exit));
    }
    if (!isTarget(b)) return exit;
    if (exit.status == Status::Will) {
      replaceOutputs(b, exit.values);
    } else if (exit.status == Status::Might) {
      Node* select = insertIf(b->returnNode(), exit.has_exited);
      std::vector<Value*> outputs(b->outputs());
      replaceOutputs(b, addOutputs(select, exit.values, outputs));
    }
    return Exit();  // an exit reaches no further than its target
  }

  // The exit status once `node` has run. Exit nodes themselves are removed.
  Exit transform(Node* node) {
    if (node->kind() == prim::RaiseException) return Exit{Status::Throws, nullptr, {}};
    if (node->kind() == exit_kind_) {
      Exit exit{Status::Will, nullptr, node->inputs()};
      node->destroy();
      return exit;
    }
    // The other kind of exit also ends the block; its values are dealt with by its own walk.
    if (node->kind() == prim::If) return branch(node);
    if (node->kind() == prim::Loop) return loop(node);
    if (node->kind() == prim::With) return block(node->blocks().at(0));
    for (Block* sub : node->blocks()) block(sub);
    return Exit();
  }

  void deleteAfter(Block* b, Node* first) {
    while (b->returnNode() != first) {
      Node* last = b->returnNode()->prev();
      bool done = last == first;
      for (Value* v : last->outputs()) {
        if (v->hasUses()) v->replaceAllUsesWith(uninitializedBefore(v->type(), last));
      }
      last->destroy();
      if (done) return;
    }
  }
  Value* uninitializedBefore(const TypePtr& type, Node* before) {
    // In front of the whole dead tail, where it stays.
    InsertPointGuard guard(firstOf(before->block()));
    return graph_.insertNode(graph_.createUninitialized(type))->output();
  }

  Node* insertIf(Node* before, Value* condition) {
    Node* node = graph_.create(prim::If, {condition}, 0);
    node->addBlock();
    node->addBlock();
    return node->insertBefore(before);
  }

  // Adds a pair of block outputs for each value; returns the outputs of the If.
  std::vector<Value*> addOutputs(Node* node, const std::vector<Value*>& in_true,
                                 const std::vector<Value*>& in_false) {
    carried_.add(in_true.size(), nodes_, node->range());
    std::vector<Value*> outputs;
    for (size_t i = 0; i < in_true.size(); ++i) {
      node->blocks()[0]->registerOutput(in_true[i]);
      node->blocks()[1]->registerOutput(in_false[i]);
      std::optional<TypePtr> type =
          unifyTypes(in_true[i]->type(), in_false[i]->type(), /*default_to_union=*/true);
      if (!type) {
        throwCompileError(node->range(), "the paths that exit here give {} and {}",
                          in_true[i]->type()->annotation(), in_false[i]->type()->annotation());
      }
      outputs.push_back(node->addOutput(*type));
    }
    return outputs;
  }

  void replaceOutputs(Block* b, const std::vector<Value*>& values) {
    WICK_ASSERT(values.size() == b->outputs().size(), "an exit with {} values for {} outputs",
                values.size(), b->outputs().size());
    for (size_t i = 0; i < values.size(); ++i) b->replaceOutput(i, values[i]);
  }

  // What a branch that does not exit gives for the exit values of the other one.
  std::vector<Value*> placeholders(const std::vector<Value*>& like, Block* b) {
    std::vector<Value*> out;
    for (Value* v : like) out.push_back(uninitialized(v->type(), b));
    return out;
  }

  Exit branch(Node* node) {
    Exit a = block(node->blocks().at(0));
    Exit b = block(node->blocks().at(1));
    return join(node, std::move(a), std::move(b));
  }

  // The status behind an If whose blocks end with these.
  Exit join(Node* node, Exit a, Exit b) {
    if (a.status == Status::Throws && b.status == Status::Throws) return a;
    auto leaves = [](const Exit& e) {
      return e.status == Status::Will || e.status == Status::Might;
    };
    if (!leaves(a) && !leaves(b)) return Exit();
    if (!leaves(a)) a.values = placeholders(b.values, node->blocks()[0]);
    if (!leaves(b)) b.values = placeholders(a.values, node->blocks()[1]);
    bool surely_a = a.status == Status::Will || a.status == Status::Throws;
    bool surely_b = b.status == Status::Will || b.status == Status::Throws;
    Exit out{Status::Will, nullptr, addOutputs(node, a.values, b.values)};
    if (surely_a && surely_b) return out;
    out.status = Status::Might;
    out.has_exited =
        addOutputs(node, {exitedIn(a, node->blocks()[0])}, {exitedIn(b, node->blocks()[1])})[0];
    return out;
  }

  Value* exitedIn(const Exit& e, Block* b) {
    if (e.status == Status::Might) return e.has_exited;
    return constant(e.status != Status::Wont, b->returnNode());
  }

  Exit loop(Node* node) {
    Block* body = node->blocks().at(0);
    Exit exit = block(body);
    // The body may not run at all, so a body that always raises decides nothing.
    if (exit.status == Status::Wont || exit.status == Status::Throws) return Exit();
    Value* exited = exitedIn(exit, body);
    // Do not go round again after an exit.
    Node* again = insertIf(body->returnNode(), exited);
    Value* stop = constant(false, again->blocks()[0]->returnNode());
    body->replaceOutput(0, addOutputs(again, {stop}, {body->outputs()[0]})[0]);
    Exit out{Status::Might, nullptr, {}};
    auto carry = [&](Value* inside, Value* start) {
      node->addInput(start);
      body->addInput(inside->type());
      body->registerOutput(inside);
      return node->addOutput(inside->type());
    };
    out.has_exited = carry(exited, constant(false, node));
    for (Value* v : exit.values) {
      InsertPointGuard guard(node);
      out.values.push_back(
          carry(v, graph_.insertNode(graph_.createUninitialized(v->type()))->output()));
    }
    return out;
  }

  // Moves all that follows `node`, which might exit, into the else branch of an If on
  // exit.has_exited. `rest_exit` is the status with which that ends; where it surely exits, nothing
  // need be left of it.
  Exit guardRest(Block* b, Exit exit, Node* node, Exit rest_exit) {
    RangeGuard range(&graph_, node->range());
    Node* guard = insertIf(node->next(), exit.has_exited);
    Block* exited = guard->blocks()[0];
    Block* rest = guard->blocks()[1];
    while (guard->next() != b->returnNode()) guard->next()->moveBefore(rest->returnNode());
    // The block's ordinary outputs come out of the guard: nobody reads them after an exit.
    carried_.add(b->outputs().size(), nodes_, node->range());
    for (size_t i = 0; i < b->outputs().size(); ++i) {
      Value* out = b->outputs()[i];
      exited->registerOutput(uninitialized(out->type(), exited));
      rest->registerOutput(out);
      b->replaceOutput(i, guard->addOutput(out->type()));
    }
    exit.status = Status::Will;
    return join(guard, std::move(exit), std::move(rest_exit));
  }

  Graph& graph_;
  Symbol exit_kind_;
  const size_t nodes_;
  CarriedValues carried_;
};

// Moves what stands between Enter and its Exit into block 0 of a prim::With, the Exit into block 1.
// Values of the body that are read behind it become outputs.
void formWithBlocks(Graph& graph, Block* b) {
  std::unordered_set<const Node*> matched;
  for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
    Node* node = *it;
    ++it;
    for (Block* sub : node->blocks()) formWithBlocks(graph, sub);
    if (node->kind() != prim::Exit) continue;
    // Bodies nest, so the nearest Enter before it on the same object is its own.
    Node* enter = node->prev();
    while (enter->kind() != prim::Enter || enter->input(0) != node->input(0) ||
           matched.count(enter) != 0) {
      enter = enter->prev();
      WICK_ASSERT(enter != b->returnNode(), "an Exit without Enter");
    }
    matched.insert(enter);
    Node* with = graph.create(prim::With, 0);
    with->setRange(node->range());
    Block* body = with->addBlock();
    Block* leave = with->addBlock();
    with->insertAfter(node);
    while (enter->next() != node) enter->next()->moveBefore(body->returnNode());
    node->moveBefore(leave->returnNode());
    for (Node* inner : body->nodes()) {
      for (Value* v : inner->outputs()) {
        std::vector<Use> outside;
        for (const Use& use : v->uses()) {
          if (!use.user->isInside(body)) outside.push_back(use);
        }
        if (outside.empty()) continue;
        Value* out = with->addOutput(v->type());
        for (const Use& use : outside) use.user->replaceInput(use.offset, out);
        body->registerOutput(v);
      }
    }
    it = NodeIterator(with->next());
  }
}

void dissolveWithBlocks(Block* b) {
  for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
    Node* node = *it;
    if (node->kind() == prim::With) {
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        node->output(i)->replaceAllUsesWith(node->blocks()[0]->outputs()[i]);
      }
      Node* first = nullptr;
      for (Block* sub : node->blocks()) {
        while (!sub->empty()) {
          Node* moved = *sub->nodes().begin();
          if (!first) first = moved;
          moved->moveBefore(node);
        }
        sub->returnNode()->removeAllInputs();
      }
      it = NodeIterator(first ? first : node->next());  // what was moved may hold With nodes too
      node->destroy();
      continue;
    }
    ++it;
    for (Block* sub : node->blocks()) dissolveWithBlocks(sub);
  }
}

}  // namespace

void transformExits(const std::shared_ptr<Graph>& graph) {
  withStackFor(*graph, [&] { formWithBlocks(*graph, graph->block()); });
  for (Symbol exit_kind : {prim::LoopContinuation, prim::ReturnStmt}) {
    withStackFor(*graph, [&] { ExitTransformer(*graph, exit_kind).run(); });
    if (blockDepth(*graph) > kMaxBlockDepth) failDepth(graph->currentRange());
  }
  withStackFor(*graph, [&] { dissolveWithBlocks(graph->block()); });
}

}  // namespace wick
