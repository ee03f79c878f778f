// Queries over the sets that AliasAnalysis and MemoryDag computed. Writes are indexed by location,
// so that "is it written" costs one look at each location of a value.
#include "ir/alias_db.h"

#include <algorithm>

#include "core/error.h"
#include "ir/alias_analysis.h"

namespace wick {

AliasDb::AliasDb(Graph& graph) : graph_(graph) {
  AliasAnalysis(*this).run();
  dag_.finish();
  outside_.assign(dag_.numLocations(), false);
  for (Location l : dag_.reachable(dag_.anyExternal())) outside_[l] = true;
  escaping_ = outside_;
  for (const Value* v : graph.outputs()) {
    for (Location l : reachable(v)) escaping_[l] = true;
  }
  indexWrites();
}

void AliasDb::indexWrites() {
  // In the order of the graph, so that what passes do does not depend on addresses.
  std::vector<const Block*> blocks{graph_.block()};
  while (!blocks.empty()) {
    const Block* b = blocks.back();
    blocks.pop_back();
    for (Node* n : b->nodes()) {
      blocks.insert(blocks.end(), n->blocks().begin(), n->blocks().end());
      auto it = writes_.find(n);
      if (it == writes_.end()) continue;
      outside_writers_ += it->second.outside;
      for (Element e : it->second.elements) {
        for (Location l : dag_.locations(e)) {
          std::vector<Node*>& writers = writers_[l];
          if (writers.empty() || writers.back() != n) writers.push_back(n);
        }
      }
    }
  }
}

const AliasDb::Element* AliasDb::find(const Value* v) const {
  auto it = elements_.find(v);
  return it == elements_.end() ? nullptr : &it->second;
}

MemoryDag::Locations AliasDb::reachable(const Value* v) const {
  const Element* e = find(v);
  return e ? dag_.reachable(*e) : MemoryDag::Locations();
}

MemoryDag::Locations AliasDb::locations(const Value* v) const {
  const Element* e = find(v);
  return e ? dag_.locations(*e) : MemoryDag::Locations();
}

std::span<Node* const> AliasDb::writersOf(Location l) const {
  auto it = writers_.find(l);
  return it == writers_.end() ? std::span<Node* const>() : it->second;
}

// ---- aliasing ----

bool AliasDb::mayAlias(const Value* a, const Value* b) const {
  MemoryKinds common = memoryKindsOf(*a->type()) & memoryKindsOf(*b->type()) & ~kTupleMemory;
  if (common == kNoMemory) return false;
  return a == b || MemoryDag::intersect(locations(a), locations(b));
}

bool AliasDb::mayAlias(Values a, Values b) const {
  for (const Value* x : a) {
    for (const Value* y : b) {
      if (mayAlias(x, y)) return true;
    }
  }
  return false;
}

bool AliasDb::mayContainAlias(const Value* a, const Value* b) const {
  return MemoryDag::intersect(reachable(a), reachable(b));
}

bool AliasDb::mayContainAlias(Values a, Values b) const {
  for (const Value* x : a) {
    for (const Value* y : b) {
      if (mayContainAlias(x, y)) return true;
    }
  }
  return false;
}

// ---- writes ----

bool AliasDb::isWritten(Location l) const {
  if (outside_writers_ > 0 && isOutside(l)) return true;
  return !writersOf(l).empty();
}

bool AliasDb::anyWritten(MemoryDag::Locations locations, uint32_t handle) const {
  CachedAnswer& answer = written_cache_[handle];
  if (answer.generation != generation_) {
    answer.generation = generation_;
    answer.value =
        std::any_of(locations.begin(), locations.end(), [&](Location l) { return isWritten(l); });
  }
  return answer.value;
}

bool AliasDb::hasWriters(const Value* v) const {
  const Element* e = find(v);
  return e && anyWritten(dag_.locations(*e), dag_.locationsHandle(*e));
}

bool AliasDb::hasWriters(const Node* node) const {
  auto contentsWritten = [&](const Value* v) {
    const Element* e = find(v);
    return e && anyWritten(dag_.reachable(*e), dag_.reachableHandle(*e));
  };
  if (std::any_of(node->inputs().begin(), node->inputs().end(), contentsWritten)) return true;
  for (const Value* v : node->outputs()) {
    if (hasWriters(v)) return true;
  }
  for (const Block* b : node->blocks()) {
    for (const Node* n : b->nodes()) {
      if (hasWriters(n)) return true;
    }
    if (hasWriters(b->returnNode())) return true;
  }
  return false;
}

bool AliasDb::writes(const Node* node) const {
  if (writes_.count(node) != 0) return true;
  for (const Block* b : node->blocks()) {
    for (const Node* n : b->nodes()) {
      if (writes(n)) return true;
    }
  }
  return false;
}

bool AliasDb::writesOutside(const Node* node) const {
  std::vector<Location> written;
  collectWrites(node, written);
  return std::any_of(written.begin(), written.end(), [&](Location l) { return isOutside(l); });
}

void AliasDb::collectWrites(const Node* node, std::vector<Location>& out) const {
  if (auto it = writes_.find(node); it != writes_.end()) {
    for (Element e : it->second.elements) {
      out.insert(out.end(), dag_.locations(e).begin(), dag_.locations(e).end());
    }
    if (it->second.outside) {
      MemoryDag::Locations all = dag_.reachable(dag_.anyExternal());
      out.insert(out.end(), all.begin(), all.end());
    }
  }
  for (const Block* b : node->blocks()) {
    for (const Node* n : b->nodes()) collectWrites(n, out);
  }
}

bool AliasDb::collectReads(const Node* node, std::vector<Location>& out) const {
  static const Symbol kGrad = Symbol::aten("grad"), kBackward = Symbol::aten("backward");
  for (const Value* v : node->inputs()) {
    out.insert(out.end(), reachable(v).begin(), reachable(v).end());
  }
  // A walk back reads what the operators kept that it comes through: any tensor's memory.
  bool all = node->kind() == kGrad || node->kind() == kBackward;
  for (const Block* b : node->blocks()) {
    for (const Node* n : b->nodes()) all |= collectReads(n, out);
    all |= collectReads(b->returnNode(), out);
  }
  return all;
}

bool AliasDb::hasOrderedEffects(const Node* node) const {
  static const std::unordered_set<Symbol> kEffects = {prim::RaiseException,
                                                      prim::Print,
                                                      prim::CallFunction,
                                                      prim::CallMethod,
                                                      prim::Enter,
                                                      prim::Exit,
                                                      prim::fork,
                                                      aten::wait,
                                                      prim::With,
                                                      prim::Store,
                                                      prim::Load,
                                                      prim::ReturnStmt,
                                                      prim::BreakStmt,
                                                      prim::ContinueStmt,
                                                      prim::Closure,
                                                      Symbol::prim("profile"),
                                                      Symbol::prim("JointGraph"),
                                                      Symbol::prim("Guard"),
                                                      Symbol::prim("BailOut")};
  if (kEffects.count(node->kind()) != 0) return true;
  const auto anyIn = [&](const Block* block) {
    return std::ranges::any_of(block->nodes(), [&](const Node* n) { return hasOrderedEffects(n); });
  };
  if (std::ranges::any_of(node->blocks(), anyIn)) return true;
  // It may draw random numbers.
  if (node->kind() == prim::DifferentiableGraph) {
    return anyIn(node->subgraph(attr::Subgraph)->block());
  }
  const Operator* op = node->blocks().empty() ? node->maybeOperator() : nullptr;
  return op && (op->has(kSideEffects) || node->isNondeterministic() || callsScript(node));
}

// ---- escaping ----

bool AliasDb::escapesScope(const Value* v) const {
  MemoryDag::Locations held = reachable(v);
  return std::any_of(held.begin(), held.end(),
                     [&](Location l) { return l < escaping_.size() && escaping_[l]; });
}

bool AliasDb::safeToChangeAliasing(const Value* a, const Value* b) const {
  if (hasWriters(a) || hasWriters(b)) return false;
  return !(escapesScope(a) && escapesScope(b));
}

// ---- upkeep ----

void AliasDb::addFresh(const Value* v) {
  if (!isMutable(v->type())) return;
  elements_[v] = dag_.addFresh(memoryKindsOf(*v->type()));
}

void AliasDb::addAlias(const Value* v, const Value* of) {
  const Element* e = find(of);
  if (e) elements_[v] = *e;
}

void AliasDb::takesOver(const Value* kept, const Value* dropped) {
  if (!escapesScope(dropped)) return;
  for (Location l : reachable(kept)) {
    if (l >= escaping_.size()) escaping_.resize(dag_.numLocations());
    escaping_[l] = true;
  }
}

void AliasDb::removeNode(const Node* node) {
  for (const Block* b : node->blocks()) {
    for (const Node* n : b->nodes()) removeNode(n);
    for (const Value* v : b->inputs()) elements_.erase(v);
  }
  for (const Value* v : node->outputs()) elements_.erase(v);
  auto it = writes_.find(node);
  if (it == writes_.end()) return;
  outside_writers_ -= it->second.outside;
  for (Element e : it->second.elements) {
    for (Location l : dag_.locations(e)) {
      auto writers = writers_.find(l);
      if (writers == writers_.end()) continue;
      std::erase(writers->second, node);
      if (writers->second.empty()) writers_.erase(writers);
    }
  }
  writes_.erase(it);
  ++generation_;
}

// ---- text ----

std::string AliasDb::str() const {
  std::string out;
  auto locationsText = [&](MemoryDag::Locations locations) {
    std::string text;
    for (Location l : locations) {
      text += fmt::format("{}{}{}", text.empty() ? "" : ", ", isOutside(l) ? "outside#" : "#", l);
    }
    return "{" + text + "}";
  };
  auto value = [&](const Value* v) {
    const Element* e = find(v);
    if (!e) return;
    out += fmt::format("%{} is {}", v->debugName(), locationsText(dag_.locations(*e)));
    if (dag_.kinds(*e) & kContainerMemory) {
      out += fmt::format(" reaches {}", locationsText(dag_.reachable(*e)));
    }
    out += "\n";
  };
  auto walk = [&](const Block* b, auto&& self) -> void {
    for (const Value* v : b->inputs()) value(v);
    for (const Node* n : b->nodes()) {
      for (const Block* sub : n->blocks()) self(sub, self);
      for (const Value* v : n->outputs()) value(v);
      if (writes_.count(n) == 0) continue;
      std::vector<Location> written;
      collectWrites(n, written);
      std::sort(written.begin(), written.end());
      written.erase(std::unique(written.begin(), written.end()), written.end());
      out += fmt::format("{} writes {}\n", n->kind().qualString(), locationsText(written));
    }
  };
  walk(graph_.block(), walk);
  return out;
}

}  // namespace wick
