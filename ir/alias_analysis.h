// How each kind of node relates the memory of its values; fills an AliasDb.
#pragma once

#include "core/keyed_hash.h"
#include "ir/alias_db.h"

namespace wick {

class AliasAnalysis {
 public:
  explicit AliasAnalysis(AliasDb& db) : db_(db), dag_(db.dag_) {}
  // Walks the graph once.
  void run();

 private:
  using Element = MemoryDag::Element;
  Element define(const Value* v);
  const Element* find(const Value* v) const { return db_.find(v); }
  void pointTo(const Value* from, const Value* to);
  void outsideValue(const Value* v);
  void writes(const Node* node, Element e) { db_.writes_[node].elements.push_back(e); }

  void block(const Block* b);
  void node(Node* n);
  bool data(Node* n);
  bool objects(Node* n);
  void branch(Node* n);
  void loop(Node* n);
  void construct(Node* n);
  void unpack(Node* n);
  void call(Node* n, bool may_write);
  void wait(Node* n);
  void operation(Node* n, const Operator& op);
  void arguments(Node* n, const FunctionSchema& schema);
  void storeInto(Node* n, size_t container);
  void returned(Node* n, size_t i, const Operator& op);
  void result(Element e, const Type& type, std::span<const Element> sources, bool direct);
  void resultContents(Element e, const Type& type, std::span<const Element> sources);

  bool mayWrite(const Graph& graph, int depth);
  bool mayWrite(const Block* b, int depth);
  bool makesItsResults(const Graph& group);
  bool calleeMayWrite(const Node* call, int depth);

  AliasDb& db_;
  MemoryDag& dag_;
  // Alias sets of the schema at hand.
  KeyedMap<std::string, std::vector<Element>> sets_;
  std::unordered_map<const void*, bool> callee_writes_;
};

}  // namespace wick
