// The rest of a graph behind a guard, from the inside outwards:
//
//   %r = prim::Loop(%n, %true, %x)                graph(%g, %i, %n, %true, %x.., …):
//     block0(%i, %c):                               %b = aten::mul(%g, %g)       (rest of the
//     iteration)
//       %a = aten::relu(%c)                         %left = %n - %i - 1
//       %g = prim::Guard[…](%a)            →        %r = prim::Loop(%left, %true, %b)
//       %b = aten::mul(%g, %g)                        block0(%k, %c):
//       -> (%true, %b)                                  … the whole body, with %k + %i + 1 for %i
//   return (%r)                                     return (%r)
#include "passes/bail_outs.h"

#include <limits>
#include <unordered_set>

#include "ir/shape_facts.h"
#include "passes/guard_nodes.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

std::vector<Node*> guardsOf(const Graph& graph) {
  std::vector<Node*> guards;
  forEachNode(graph.block(), [&](Node* n) {
    if (n->kind() == guardKind()) guards.push_back(n);
  });
  return guards;
}

// Maps the values of a copy to those of the graph that it was made of.
void pair(const Block* copy, const Block* block, std::unordered_map<const Value*, Value*>& map) {
  auto values = [&](const std::vector<Value*>& a, const std::vector<Value*>& b) {
    for (size_t i = 0; i < a.size(); ++i) map[a[i]] = b[i];
  };
  values(copy->inputs(), block->inputs());
  auto it = block->nodes().begin();
  for (const Node* n : copy->nodes()) {
    const Node* other = *it;
    ++it;
    values(n->outputs(), other->outputs());
    for (size_t i = 0; i < n->blocks().size(); ++i) pair(n->blocks()[i], other->blocks()[i], map);
  }
}

// What is known of tensors may follow from guards that are gone.
void forgetTypes(Block* b) {
  auto forget = [](Value* v) { v->setType(unshapedType(v->type())); };
  for (Value* v : b->inputs()) forget(v);
  for (Node* n : b->nodes()) {
    for (Block* sub : n->blocks()) forgetTypes(sub);
    if (n->kind() == guardKind()) continue;
    for (Value* v : n->outputs()) forget(v);
  }
}

// ---- what the rest of a graph reads ----

class LiveValues {
 public:
  BailOutPoints::Point behind(Node* guard) {
    for (size_t i = 0; i < guard->outputs().size(); ++i) {
      read(guard->input(i));
      inside_.insert(guard->output(i));
    }
    rest(guard->block(), guard->next());
    return {guard, std::move(live_), std::move(constants_)};
  }

 private:
  void read(Value* v) {
    if (inside_.count(v) != 0 || !seen_.insert(v).second) return;
    Symbol kind = v->node()->kind();
    bool constant = kind == prim::Constant || kind == prim::Uninitialized;
    (constant ? constants_ : live_).push_back(v);
  }
  void define(const std::vector<Value*>& values) { inside_.insert(values.begin(), values.end()); }

  void rest(Block* b, Node* from) {
    for (Node* n = from; n != b->returnNode(); n = n->next()) node(n);
    for (Value* v : b->outputs()) read(v);
    Node* owner = b->owningNode();
    if (!owner) return;
    if (owner->kind() == prim::Loop) {
      read(owner->input(0));
      read(b->inputs()[0]);
      body(b);
    }
    define(owner->outputs());
    rest(owner->block(), owner->next());
  }

  // The whole body, which defines anew what the iteration that was left has defined already.
  void body(Block* b) {
    LiveValues whole;
    whole.block(b);
    for (Value* v : whole.live_) read(v);
    for (Value* v : whole.constants_) read(v);
  }

  void block(Block* b) {
    define(b->inputs());
    for (Node* n : b->nodes()) node(n);
    for (Value* v : b->outputs()) read(v);
  }

  void node(Node* n) {
    for (Value* v : n->inputs()) read(v);
    for (Block* sub : n->blocks()) block(sub);
    define(n->outputs());
  }

  std::vector<Value*> live_;
  std::vector<Value*> constants_;
  std::unordered_set<const Value*> seen_;
  std::unordered_set<const Value*> inside_;
};

// ---- the rest as a graph ----

class Continuation {
 public:
  using Map = std::unordered_map<Value*, Value*>;

  std::shared_ptr<Graph> build(const BailOutPoints::Point& point) {
    for (Value* v : point.live) {
      Value* in = graph_->addInput(v->hasDebugName() ? v->debugNameBase() : "", v->type());
      map_[v] = in;
    }
    for (Value* v : point.constants) {
      map_[v] = graph_->insertNode(graph_->createClone(v->node(), map_))->output();
    }
    for (size_t i = 0; i < point.guard->outputs().size(); ++i) {
      map_[point.guard->output(i)] = map_.at(point.guard->input(i));
    }
    rest(point.guard->block(), point.guard->next());
    for (Node* guard : guardsOf(*graph_)) removeGuard(guard);
    forgetTypes(graph_->block());
    return graph_;
  }

 private:
  Value* at(Value* v) const {
    auto it = map_.find(v);
    WICK_ASSERT(it != map_.end(), "%{} is not live at the guard", v->debugName());
    return it->second;
  }

  void rest(Block* b, Node* from) {
    for (Node* n = from; n != b->returnNode(); n = n->next()) {
      Node* copy = graph_->insertNode(graph_->createClone(n, map_));
      for (size_t i = 0; i < n->outputs().size(); ++i) map_[n->output(i)] = copy->output(i);
    }
    Node* owner = b->owningNode();
    if (!owner) {
      for (Value* v : b->outputs()) graph_->registerOutput(at(v));
      return;
    }
    if (owner->kind() == prim::Loop) {
      remainingTurns(owner, b);
    } else {
      for (size_t i = 0; i < owner->outputs().size(); ++i) {
        map_[owner->output(i)] = at(b->outputs()[i]);
      }
    }
    rest(owner->block(), owner->next());
  }

  Value* integer(Symbol kind, Value* a, Value* b) {
    Node* n = graph_->insertNode(graph_->create(kind, {a, b}));
    n->output()->setType(types::Int());
    return n->output();
  }

  void remainingTurns(Node* loop, Block* body) {
    RangeGuard range(graph_.get(), loop->range());
    Value* next =
        integer(aten::add, at(body->inputs()[0]), graph_->insertConstant(IValue(int64_t{1})));
    // Lowering knows the largest number as a loop that does not count.
    bool counts = intOf(loop->input(0)) != std::numeric_limits<int64_t>::max();
    Value* left = counts ? integer(aten::sub, at(loop->input(0)), next) : at(loop->input(0));
    Node* rest = graph_->insertNode(graph_->create(prim::Loop, {left}, 0));
    rest->setInlinedFrom(loop->inlinedFrom());
    for (Value* v : body->outputs()) rest->addInput(at(v));
    Block* copy = rest->addBlock();
    Map map = map_;
    Value* turn = copy->addInput(types::Int());
    for (size_t i = 1; i < body->inputs().size(); ++i) {
      map[body->inputs()[i]] = copy->addInput(body->inputs()[i]->type());
    }
    {
      InsertPointGuard guard(copy);
      map[body->inputs()[0]] = integer(aten::add, turn, next);
      for (Node* n : body->nodes()) {
        Node* made = graph_->insertNode(graph_->createClone(n, map));
        for (size_t i = 0; i < n->outputs().size(); ++i) map[n->output(i)] = made->output(i);
      }
    }
    for (Value* v : body->outputs()) {
      auto it = map.find(v);
      WICK_ASSERT(it != map.end(), "%{} is not live at the guard", v->debugName());
      copy->registerOutput(it->second);
    }
    for (Value* v : loop->outputs()) map_[v] = rest->addOutput(v->type());
  }

  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  Map map_;
};

}  // namespace

std::shared_ptr<const BailOutPoints> insertBailOuts(Graph& graph) {
  std::vector<Node*> guards = guardsOf(graph);
  if (guards.size() > kMaxBailOuts) {
    for (; guards.size() > kMaxBailOuts; guards.pop_back()) removeGuard(guards.back());
    forgetTypes(graph.block());
  }
  auto points = std::make_shared<BailOutPoints>();
  if (guards.empty()) return points;
  points->graph = graph.copy();
  std::vector<Node*> kept = guardsOf(*points->graph);
  std::unordered_map<const Value*, Value*> original;  // of values of the copy
  pair(points->graph->block(), graph.block(), original);
  for (size_t i = 0; i < guards.size(); ++i) {
    points->points.push_back(LiveValues().behind(kept[i]));
    Node* guard = guards[i];
    Node* made = graph.create(bailOutKind(), guard->inputs(), 0)->insertBefore(guard);
    made->setRange(guard->range());
    made->setInlinedFrom(guard->inlinedFrom());
    made->setAttribute(Symbol::attr("index"), IValue(static_cast<int64_t>(i)));
    for (const auto& [name, value] : guard->attributes()) made->setAttribute(name, value);
    for (Value* v : points->points.back().live) made->addInput(original.at(v));
    for (size_t k = 0; k < guard->outputs().size(); ++k) {
      Value* out = made->addOutput(guard->output(k)->type());
      original[kept[i]->output(k)] = out;
      guard->output(k)->replaceAllUsesWith(out);
    }
    guard->destroy();
  }
  return points;
}

std::shared_ptr<Graph> continuationAt(const BailOutPoints& points, size_t index) {
  return Continuation().build(points.points.at(index));
}

}  // namespace wick
