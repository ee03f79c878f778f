// Which values of a graph may be the same memory, and which nodes write it.
//
// Built once for a graph from the alias annotations of operators' schemas, in time linear in its
// size (loops and branches included); a query costs a comparison of two small sorted sets. The
// answers hold for every order in which the graph's nodes may run, so they survive moving nodes;
// values and nodes that a pass adds or removes are reported with the functions at the end. "May"
// errs to the safe side. The rules are in ir/alias_analysis.cpp, the sets in ir/memory_dag.h.
//
// Not synchronized; the graph must outlive it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"
#include "ir/memory_dag.h"

namespace wick {

class AliasDb {
 public:
  using Location = MemoryDag::Location;
  using Values = std::span<Value* const>;

  explicit AliasDb(Graph& graph);
  AliasDb(const AliasDb&) = delete;
  AliasDb& operator=(const AliasDb&) = delete;

  // Whether values of the type can change, or hold something that can.
  static bool isMutable(const TypePtr& type) { return memoryKindsOf(*type) != kNoMemory; }

  // Whether the two may be (views of) the same memory. What they hold does not count: a list and a
  // tensor in it do not alias.
  bool mayAlias(const Value* a, const Value* b) const;
  bool mayAlias(Values a, Values b) const;  // any of one, any of the other
  // The same for what can be got out of the values, through any number of containers, as well.
  bool mayContainAlias(const Value* a, const Value* b) const;
  bool mayContainAlias(Values a, Values b) const;

  // Whether any node may write the value's memory; not what it holds.
  bool hasWriters(const Value* v) const;
  // Whether any node may write what the node reads (inputs and what they hold, also in its blocks)
  // or what its outputs are. If not, the node gives the same result wherever it stands.
  bool hasWriters(const Node* node) const;
  // Whether the node, or one in its blocks, writes any memory.
  bool writes(const Node* node) const;
  // Whether it may write memory that exists before the graph runs or that others may see.
  bool writesOutside(const Node* node) const;

  // Whether the value or something in it may be seen outside of the graph: it comes from there, is
  // stored there, or is in an output.
  bool escapesScope(const Value* v) const;
  // Whether `a` and `b`, equal now, may become one object: nobody writes either, and at most one
  // is seen outside.
  bool safeToChangeAliasing(const Value* a, const Value* b) const;

  // Whether running the node has an effect other than writing memory of the graph's values, in an
  // order that others notice: printing, raising, waiting, drawing random numbers, calling what is
  // not known.
  bool hasOrderedEffects(const Node* node) const;

  // Moving within a block. A move is valid when no value is read before it is made, all writes to
  // any memory keep their order, no read passes a write of what it reads, and nodes with ordered
  // effects keep their order. Nodes that `node` must stay before (or behind) move along. Errors
  // that nodes raise may then come in another order. Cost: linear in the distance.
  //
  // Moves `node` right behind (in front of) `point`; false, and nothing is changed, when no valid
  // move does that. Both must be in one block.
  bool moveAfterTopologicallyValid(Node* node, Node* point);
  bool moveBeforeTopologicallyValid(Node* node, Node* point);
  // Whether the moves would succeed.
  bool couldMoveAfterTopologically(Node* node, Node* point);
  bool couldMoveBeforeTopologically(Node* node, Node* point);

  // Upkeep: a value that a pass adds is new memory, or is whatever another value is; `kept`, equal
  // to `dropped`, takes over its users; a node is about to be destroyed (always report that, for a
  // new node may come to stand at its address).
  void addFresh(const Value* v);
  void addAlias(const Value* v, const Value* of);
  void takesOver(const Value* kept, const Value* dropped);
  void removeNode(const Node* node);

  // For passes that follow memory themselves. Locations are small numbers below numLocations().
  MemoryDag::Locations reachable(const Value* v) const;
  MemoryDag::Locations locations(const Value* v) const;
  size_t numLocations() const { return dag_.numLocations(); }
  bool isOutside(Location l) const { return l < outside_.size() && outside_[l]; }
  // Nodes that write a location of the graph's own values; those that may write everything outside
  // are not listed (see writesOutside).
  std::span<Node* const> writersOf(Location l) const;

  // A line a value with its locations, a line a node that writes.
  std::string str() const;

 private:
  friend class AliasAnalysis;
  using Element = MemoryDag::Element;
  struct Writes {
    std::vector<Element> elements;
    bool outside = false;  // everything that is visible outside
  };
  struct CachedAnswer {
    uint32_t generation = 0;
    bool value = false;
  };

  const Element* find(const Value* v) const;
  void indexWrites();
  bool isWritten(Location l) const;
  bool anyWritten(MemoryDag::Locations locations, uint32_t handle) const;
  void collectWrites(const Node* node, std::vector<Location>& out) const;
  // Returns whether the node may read all memory.
  bool collectReads(const Node* node, std::vector<Location>& out) const;
  enum class Side { Before, After };
  bool tryMove(Node* node, Node* point, Side side, bool dry_run);
  friend class WorkingSet;

  Graph& graph_;
  MemoryDag dag_;
  std::unordered_map<const Value*, Element> elements_;
  std::unordered_map<const Node*, Writes> writes_;
  std::unordered_map<Location, std::vector<Node*>> writers_;
  size_t outside_writers_ = 0;
  std::vector<bool> outside_;  // by location
  std::vector<bool> escaping_;
  uint32_t generation_ = 1;  // of written locations; cached answers of older ones are void
  mutable std::unordered_map<uint32_t, CachedAnswer> written_cache_;
};

// Whether running the node calls script code that the graph does not show: sorting objects calls
// their __lt__.
bool callsScript(const Node* node);

}  // namespace wick
