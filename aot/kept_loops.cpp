//   %y, %n = prim::Loop(%max, %true, %x, %zero)      = wick::loop_carry(%x)
//     block0(%i, %p, %m):                            = wick::loop_carry(%zero)
//       %q = aten::mul(%p, %i)                       %once : int = wick::loop_begin(%max, %false, 0)
//       %c = …                                        = prim::Loop(%once, %true)
//       -> (%true, %q, %c)                   →         block0(%0):
//                                                        %i : int = wick::loop_index()
//                                                        %p = wick::loop_value(0)
//                                                        …
//                                                        = wick::loop_next(%q, 0)
//                                                        = wick::loop_next(%c, 1)
//                                                        -> (%true)
//                                                      = wick::loop_end()
//                                                     %y = wick::loop_result(0)
//                                                     %n : int = wick::loop_result(1)
//
// That it stays a prim::Loop matters: what is optimized holds for any number of rounds. A condition becomes two
// that have one side each, so that no pass takes what one side computed for the other:
//
//   %z = prim::If(%c)                      %t : bool = wick::branch_begin(%c)
//     block0: … -> (%a)                     = prim::If(%t)
//     block1: … -> (%b)             →         block0: …  = wick::branch_keep(%a, 0)
//                                          %e : bool = wick::branch_else()
//                                           = prim::If(%e)
//                                             block0: …  = wick::branch_keep(%b, 0)
//                                           = wick::branch_end()
//                                          %z = wick::branch_result(0)
//
// Tuples are taken apart first. A list of tensors that lives outside and whose elements are set in a round stays the list that it
// is: wick::loop_carry_list(%l) in front of the loop lets its elements be what the loop carries, wick::loop_next_list(%l) at the end of
// the round looks at what they are then, and wick::loop_result_list(%l) puts the results into it. A list that is replaced in
// each round becomes such a list, whose elements are set at the end of the round:
//
//   %h = prim::Loop(%max, %true, %g)         %l = aten::list(%g)
//     block0(%i, %k):                         = prim::Loop(%max, %true)
//       %n = prim::ListConstruct(…)    →       block0(%i):
//       -> (%true, %n)                           %n = prim::ListConstruct(…)
//                                                 = wick::loop_set_list(%l, %n)
#include "aot/kept_loops.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "aot/kept_containers.h"
#include "aot/number_marks.h"
#include "aot/recording.h"
#include "ir/graph.h"
#include "ir/operator.h"
#include "passes/node_traits.h"

namespace wick::aot {

namespace {

const Symbol& ordinalName() {
  static const Symbol kName = Symbol::attr("ordinal");
  return kName;
}

std::vector<Node*> loopsOf(const Block* block) {
  std::vector<Node*> loops;
  for (Node* node : block->nodes()) {
    if (node->kind() == prim::Loop) loops.push_back(node);
    for (const Block* inner : node->blocks()) {
      const std::vector<Node*> more = loopsOf(inner);
      loops.insert(loops.end(), more.begin(), more.end());
    }
  }
  return loops;
}

bool isUninitialized(const Value* v) {
  return v->node()->kind() == prim::Uninitialized;
}

class Keeper {
 public:
  Keeper(Graph& graph, const LoopChoice& choice) : graph_(graph), choice_(choice) {}

  bool run() {
    takeTuplesApart(graph_);
    int64_t ordinal = 0;
    for (Node* loop : loopsOf(graph_.block())) {
      loop->setAttribute(ordinalName(), IValue(ordinal++));
    }
    bool any = false;
    // What is kept makes more numbers those of the compiled model.
    for (bool changed = true; changed;) {
      const NumberMarks marks(graph_);
      changed = keepIn(graph_.block(), marks, nullptr);
      any = any || changed;
    }
    for (Node* loop : loopsOf(graph_.block())) loop->removeAttribute(ordinalName());
    return any;
  }

 private:
  // Keeps one loop or condition; false when there is none left. `around` is the loop that is kept around the block.
  bool keepIn(Block* block, const NumberMarks& marks, const Node* around) {
    for (Node* node : block->nodes()) {
      const bool kept = node->kind() == prim::Loop && isKept(node);
      if (node->kind() == prim::Loop && !kept && wants(node, marks)) {
        keepLoop(node);
        return true;
      }
      if (around && node->kind() == prim::If && marks.contains(node->input(0))) {
        keepBranch(node, around);
        return true;
      }
      for (Block* inner : node->blocks()) {
        if (keepIn(inner, marks, kept ? node : around)) return true;
      }
    }
    return false;
  }

  static int64_t ordinalOf(const Node* loop) { return loop->ivalue(ordinalName()).toInt(); }
  static bool isKept(const Node* loop) {
    return nameOf(loop->input(0)->node()) == "wick::loop_begin";
  }
  bool wants(const Node* loop, const NumberMarks& marks) const {
    const int64_t ordinal = ordinalOf(loop);
    if (choice_.none || choice_.unrolled.contains(ordinal)) return false;
    if (choice_.kept.contains(ordinal) || marks.contains(loop->input(0)) ||
        marks.contains(loop->input(1)) || marks.contains(loop->blocks()[0]->outputs()[0])) {
      return true;
    }
    const std::optional<int64_t> rounds = constantInt(loop->input(0));
    const bool counted = rounds && constantBool(loop->input(1)).value_or(false) &&
                         constantBool(loop->blocks()[0]->outputs()[0]).value_or(false);
    return (choice_.all && !counted) || (counted && *rounds > kLongLoop);
  }

  [[noreturn]] static void fail(const Node* loop, const Node* at, const std::string& why) {
    throw KeptLoopError(fmt::format("{}\n{}", why, at->range().highlight()), ordinalOf(loop));
  }

  // ---- what may be in a region that is recorded once ----

  using Lists = std::vector<Value*>;

  // Nothing that lives outside is changed, but elements of tensors, and those of lists of tensors, which are
  // gathered.
  static void check(const Block* region, const Block* block, const Node* loop, Lists& lists) {
    for (const Node* node : block->nodes()) {
      for (const Block* inner : node->blocks()) check(region, inner, loop, lists);
      if (block == region && nameOf(node) == "wick::loop_append") continue;
      if (node->kind() == prim::SetAttr) {
        fail(loop, node, "an attribute is set in a loop that stays one");
      }
      const Operator* const op = node->maybeOperator();
      const uint64_t written = op ? op->writtenArguments(*node) : 0;
      for (size_t i = 0; i < node->inputs().size() && i < 64; ++i) {
        const Value* const v = node->input(i);
        if ((written >> i & 1) == 0 || v->type()->kind() == TypeKind::Tensor) continue;
        const bool inside = v->node()->isInside(region);
        if (inside && makesFreshList(v->node())) continue;
        if (!inside && isTensorList(v)) {
          if (std::ranges::find(lists, v) == lists.end()) lists.push_back(node->input(i));
          continue;
        }
        fail(loop, node,
             fmt::format("a {} is changed in a loop that stays one", v->type()->annotation()));
      }
    }
  }

  // ---- nodes ----

  Node* insert(Node* before, const std::string& name, std::initializer_list<Value*> inputs,
               TypePtr type = nullptr) {
    const RangeGuard range(&graph_, before->range());
    Node* node = graph_.create(Symbol::fromQualString(name), inputs, type ? 1 : 0);
    node->insertBefore(before);
    if (type) node->output()->setType(std::move(type));
    return node;
  }
  Value* constant(Node* before, IValue value) {
    Node* node = graph_.createConstant(std::move(value));
    node->insertBefore(before);
    return node->output();
  }
  Value* constant(Node* before, size_t value) {
    return constant(before, IValue(static_cast<int64_t>(value)));
  }
  Value* none(Node* before) {
    Node* node = graph_.createNone();
    node->insertBefore(before);
    return node->output();
  }
  static bool isPlain(const Value* v) {
    return v->type()->kind() == TypeKind::Tensor || isNumber(v);
  }
  static TypePtr typeOf(const Value* v) {
    return v->type()->kind() == TypeKind::Tensor ? types::Tensor() : v->type();
  }

  // What a path never reads has no value; a number gets one, because tensors stand for numbers.
  Value* valueOf(Node* before, Value* v) { return isUninitialized(v) ? none(before) : v; }

  // ---- loops ----

  void keepLoop(Node* loop) {
    Block* const body = loop->blocks()[0];
    // In lists that grow by the same in each round the elements of all rounds are put afterwards.
    keepAppends(loop);
    dropInvariants(loop);
    setReplacedLists(loop);
    Lists lists;
    check(body, body, loop, lists);
    const size_t count = loop->outputs().size();
    for (size_t i = 0; i < count; ++i) {
      if (isPlain(body->inputs()[i + 1])) continue;
      fail(loop, loop,
           fmt::format("a loop that stays one carries a {}",
                       body->inputs()[i + 1]->type()->annotation()));
    }
    for (size_t i = 0; i < count; ++i) {
      insert(loop, "wick::loop_carry", {valueOf(loop, loop->input(i + 2))});
    }
    const bool conditional = !constantBool(loop->input(1)).value_or(false) ||
                             !constantBool(body->outputs()[0]).value_or(false);
    if (conditional) insert(loop, "wick::loop_carry", {loop->input(1)});
    for (Value* list : lists) insert(loop, "wick::loop_carry_list", {list});
    Node* const begin = insert(loop, "wick::loop_begin",
                               {loop->input(0), constant(loop, IValue(conditional)),
                                constant(loop, IValue(ordinalOf(loop)))},
                               types::Int());
    Node* const first = *body->nodes().begin();
    if (body->inputs()[0]->hasUses()) {
      body->inputs()[0]->replaceAllUsesWith(
          insert(first, "wick::loop_index", {}, types::Int())->output());
    }
    for (size_t i = 0; i < count; ++i) {
      Value* const v = body->inputs()[i + 1];
      if (!v->hasUses()) continue;
      v->replaceAllUsesWith(
          insert(first, "wick::loop_value", {constant(first, i)}, typeOf(v))->output());
    }
    Node* const end = body->returnNode();
    for (size_t i = 0; i < count; ++i) {
      insert(end, "wick::loop_next", {valueOf(end, body->outputs()[i + 1]), constant(end, i)});
    }
    if (conditional) {
      insert(end, "wick::loop_next", {body->outputs()[0], constant(end, count)});
    }
    for (Value* list : lists) insert(end, "wick::loop_next_list", {list});
    body->replaceOutput(0, constant(end, IValue(true)));
    Node* const after = loop->next();
    insert(after, "wick::loop_end", {});
    for (Value* list : lists) insert(after, "wick::loop_result_list", {list});
    for (size_t i = 0; i < count; ++i) {
      Value* const v = loop->output(i);
      if (!v->hasUses()) continue;
      v->replaceAllUsesWith(
          insert(after, "wick::loop_result", {constant(after, i)}, typeOf(v))->output());
    }
    loop->replaceInput(0, begin->output());
    loop->replaceInput(1, constant(begin, IValue(true)));
    for (size_t i = count; i-- > 0;) {
      body->eraseOutput(i + 1);
      body->eraseInput(i + 1);
      loop->removeInput(i + 2);
      loop->eraseOutput(i);
    }
  }

  // Values that no round changes are no values of the loop.
  static void dropInvariants(Node* loop) {
    Block* const body = loop->blocks()[0];
    for (size_t i = loop->outputs().size(); i-- > 0;) {
      if (body->outputs()[i + 1] != body->inputs()[i + 1]) continue;
      Value* const v = loop->input(i + 2);
      body->inputs()[i + 1]->replaceAllUsesWith(v);
      loop->output(i)->replaceAllUsesWith(v);
      body->eraseOutput(i + 1);
      body->eraseInput(i + 1);
      loop->removeInput(i + 2);
      loop->eraseOutput(i);
    }
  }

  static bool isWritten(const Value* list) {
    return std::ranges::any_of(list->uses(), [](const wick::Use& use) {
      const Operator* const op = use.user->maybeOperator();
      return op && use.offset < 64 && (op->writtenArguments(*use.user) >> use.offset & 1) != 0;
    });
  }
  // Lists of tensors that are other ones after each round become lists whose elements are set at its end.
  void setReplacedLists(Node* loop) {
    Block* const body = loop->blocks()[0];
    Node* const end = body->returnNode();
    const auto isCarried = [&](const Value* v) {
      return std::ranges::find(body->inputs(), v) != body->inputs().end();
    };
    std::vector<std::pair<Value*, Value*>> sets;
    for (size_t i = loop->outputs().size(); i-- > 0;) {
      Value* const inner = body->inputs()[i + 1];
      Value* const next = body->outputs()[i + 1];
      if (!isTensorList(inner)) continue;
      const bool fresh =
          isCarried(next) || (next->node()->isInside(body) && makesFreshList(next->node()));
      // That two names are one list must not matter.
      if (!fresh || isWritten(inner) || isWritten(loop->output(i))) {
        fail(loop, loop, "a loop that stays one carries a list that has another name too");
      }
      Value* const list = insert(loop, "aten::list", {loop->input(i + 2)}, inner->type())->output();
      inner->replaceAllUsesWith(list);
      loop->output(i)->replaceAllUsesWith(list);
      // `next` may have been the input of the body.
      Value* const copy =
          insert(end, "aten::list", {body->outputs()[i + 1]}, inner->type())->output();
      sets.emplace_back(list, copy);
      body->eraseOutput(i + 1);
      body->eraseInput(i + 1);
      loop->removeInput(i + 2);
      loop->eraseOutput(i);
    }
    for (const auto& [list, next] : sets) insert(end, "wick::loop_set_list", {list, next});
  }

  // list.append(x) in each round, of lists of tensors that are made in front of the loop and not read in it.
  void keepAppends(Node* loop) {
    Block* const body = loop->blocks()[0];
    std::vector<Node*> nodes(body->nodes().begin(), body->nodes().end());
    for (Node* node : nodes) {
      if (nameOf(node) != "aten::append" || node->input(1)->type()->kind() != TypeKind::Tensor ||
          node->output()->hasUses()) {
        continue;
      }
      Value* const list = node->input(0);
      const Node* const made = list->node();
      const bool own =
          made->kind() == prim::ListConstruct && made->block() == loop->block() &&
          std::ranges::all_of(list->uses(), [&](const wick::Use& use) {
            return isAppend(use) || (!use.user->isInside(body) && use.user != body->returnNode() &&
                                     use.user->isAfter(loop));
          });
      if (!own) continue;
      insert(node, "wick::loop_append", {list, node->input(1)});
      node->destroy();
      joinAtOnce(list);
    }
  }
  // What joins the elements of all rounds need not look at one after the other.
  void joinAtOnce(Value* list) {
    const std::vector<wick::Use> uses = list->uses();
    for (const wick::Use& use : uses) {
      Node* const join = use.user;
      const std::string_view name = nameOf(join);
      if ((name != "aten::stack" && name != "aten::cat") || join->inputs().size() != 2) continue;
      Value* const joined =
          insert(join, name == "aten::cat" ? "wick::loop_cat" : "wick::loop_stack",
                 {list, join->input(1)}, types::Tensor())
              ->output();
      join->output()->replaceAllUsesWith(joined);
      join->destroy();
    }
  }
  static bool isAppend(const wick::Use& use) {
    const std::string_view name = nameOf(use.user);
    return use.offset == 0 && (name == "aten::append" || name == "wick::loop_append");
  }

  // ---- conditions ----

  void keepBranch(Node* branch, const Node* loop) {
    Lists lists;
    for (const Block* side : branch->blocks()) check(side, side, loop, lists);
    for (const Value* v : branch->outputs()) {
      if (isPlain(v) || !v->hasUses()) continue;
      fail(loop, branch,
           fmt::format("a condition in a loop that stays one gives a {}", v->type()->annotation()));
    }
    Node* const begin = insert(branch, "wick::branch_begin", {branch->input(0)}, types::Bool());
    for (Value* list : lists) {
      insert(branch, "wick::branch_list", {list, constant(branch, branch->outputs().size())});
    }
    keepSide(branch, branch->blocks()[0], begin->output(), lists);
    Node* const otherwise = insert(branch, "wick::branch_else", {}, types::Bool());
    for (Value* list : lists) insert(branch, "wick::branch_restore_list", {list});
    keepSide(branch, branch->blocks()[1], otherwise->output(), lists);
    insert(branch, "wick::branch_end", {});
    for (Value* list : lists) insert(branch, "wick::branch_result_list", {list});
    for (size_t i = 0; i < branch->outputs().size(); ++i) {
      Value* const v = branch->output(i);
      if (!v->hasUses()) continue;
      const bool unread = isUninitialized(branch->blocks()[0]->outputs()[i]) &&
                          isUninitialized(branch->blocks()[1]->outputs()[i]);
      if (unread) {
        Node* const nothing = graph_.createUninitialized(v->type());
        nothing->insertBefore(branch);
        v->replaceAllUsesWith(nothing->output());
        continue;
      }
      v->replaceAllUsesWith(
          insert(branch, "wick::branch_result", {constant(branch, i)}, typeOf(v))->output());
    }
    branch->destroy();
  }

  void keepSide(Node* branch, const Block* side, Value* condition, const Lists& lists) {
    Node* const only = insert(branch, "prim::If", {condition});
    Block* const block = only->addBlock();
    only->addBlock();
    block->cloneFrom(side, {});
    Node* const end = block->returnNode();
    for (size_t i = block->outputs().size(); i-- > 0;) {
      Value* const v = block->outputs()[i];
      if (isPlain(v) && !isUninitialized(v) && branch->output(i)->hasUses()) {
        insert(end, "wick::branch_keep", {v, constant(end, i)});
      }
      block->eraseOutput(i);
    }
    for (Value* list : lists) insert(end, "wick::branch_keep_list", {list});
    noteRaises(block);
  }
  // What raises ends the call, and the recording goes on.
  void noteRaises(Block* block) {
    std::vector<Node*> nodes(block->nodes().begin(), block->nodes().end());
    for (Node* node : nodes) {
      for (Block* inner : node->blocks()) noteRaises(inner);
      if (node->kind() != prim::RaiseException) continue;
      insert(node, "wick::branch_raise", {node->input(0)});
      node->destroy();
    }
  }

  Graph& graph_;
  const LoopChoice& choice_;
};

}  // namespace

bool keepLoops(Graph& graph, const LoopChoice& choice) {
  return Keeper(graph, choice).run();
}

void countRounds(Graph& graph) {
  int64_t ordinal = 0;
  for (Node* loop : loopsOf(graph.block())) {
    Node* const number = graph.createConstant(IValue(ordinal++));
    number->insertBefore(loop);
    Node* const count = graph.create(Symbol::fromQualString("wick::loop_rounds"),
                                     {loop->input(0), number->output()});
    count->insertBefore(loop);
    count->output()->setType(types::Int());
    loop->replaceInput(0, count->output());
  }
}

}  // namespace wick::aot
