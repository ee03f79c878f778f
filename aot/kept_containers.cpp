// lowerTuples() takes those apart that are constructed where they enter a loop or leave a side. Others are unpacked and
// constructed there first.
#include "aot/kept_containers.h"

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <vector>

#include "core/type.h"
#include "ir/graph.h"
#include "passes/lower_tuples.h"

namespace wick::aot {

namespace {

// Tuples in tuples.
constexpr int kMostDepth = 8;

std::shared_ptr<const TupleType> tupleType(const Value* v) {
  return std::dynamic_pointer_cast<const TupleType>(v->type());
}

// The tuple as one that is constructed in front of the node.
Value* constructed(Value* v, Node* before) {
  const std::shared_ptr<const TupleType> type = tupleType(v);
  const Symbol kind = v->node()->kind();
  if (kind == prim::TupleConstruct || kind == prim::NamedTupleConstruct) return v;
  Graph* const graph = before->graph();
  std::vector<Value*> elements;
  if (kind == prim::Uninitialized) {
    for (const TypePtr& element : type->contained()) {
      elements.push_back(graph->createUninitialized(element)->insertBefore(before)->output());
    }
  } else {
    Node* const unpack = graph->createTupleUnpack(v)->insertBefore(before);
    elements.assign(unpack->outputs().begin(), unpack->outputs().end());
  }
  Node* const tuple =
      graph->createTuple(elements, type->isNamed() ? type : nullptr)->insertBefore(before);
  tuple->output()->setType(v->type());
  return tuple->output();
}

// Whether there are any.
bool constructIn(Block* block) {
  bool any = false;
  for (Node* node : std::vector<Node*>(block->nodes().begin(), block->nodes().end())) {
    for (Block* inner : node->blocks()) any |= constructIn(inner);
    const bool loop = node->kind() == prim::Loop;
    if (!loop && node->kind() != prim::If) continue;
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      if (!tupleType(node->output(i))) continue;
      any = true;
      if (loop) node->replaceInput(i + 2, constructed(node->input(i + 2), node));
      for (Block* inner : node->blocks()) {
        const size_t at = loop ? i + 1 : i;
        if (!tupleType(inner->outputs()[at])) continue;
        inner->replaceOutput(at, constructed(inner->outputs()[at], inner->returnNode()));
      }
    }
  }
  return any;
}

}  // namespace

void takeTuplesApart(Graph& graph) {
  for (int depth = 0; depth < kMostDepth && constructIn(graph.block()); ++depth) {
    if (!lowerTuples(graph)) return;
  }
}

bool isTensorList(const Value* v) {
  const auto list = std::dynamic_pointer_cast<const ListType>(v->type());
  return list && list->element()->kind() == TypeKind::Tensor;
}

bool makesFreshList(const Node* node) {
  static constexpr std::array<std::string_view, 5> kCopies = {
      "aten::list", "aten::copy", "aten::slice", "aten::add", "aten::mul"};
  if (node->kind() == prim::ListConstruct || node->kind() == prim::DictConstruct) return true;
  if (std::ranges::find(kCopies, std::string_view(node->kind().qualString())) != kCopies.end()) {
    return true;
  }
  // An operator of tensors and numbers alone, as aten::unbind.
  return node->maybeOperator() && node->blocks().empty() &&
         std::ranges::all_of(node->inputs(), [](const Value* v) {
           const TypeKind kind = v->type()->kind();
           return kind == TypeKind::Tensor || kind == TypeKind::Int || kind == TypeKind::Float ||
                  kind == TypeKind::Bool;
         });
}

}  // namespace wick::aot
