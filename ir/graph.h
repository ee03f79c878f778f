// The intermediate representation: a Graph of Nodes in SSA form with structured control flow.
//
// A Graph owns its Blocks, Nodes and Values and hands out raw pointers that live until they are
// destroyed or the Graph is. A Node names an operator by Symbol, reads Values and defines Values;
// prim::If and prim::Loop hold sub-blocks. A Value is in scope for the rest of the block that
// defines it, including blocks nested there. Every Block has a Param node (its inputs) and a Return
// node (its outputs), which are not among nodes(). A Graph is not synchronized: one thread builds
// or changes it; afterwards any number may read it.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>

#include "core/function_schema.h"
#include "core/ivalue.h"
#include "core/keyed_hash.h"
#include "core/source_range.h"
#include "core/symbol.h"
#include "ir/operator.h"

namespace wick {

class Graph;
class Block;
class Node;
class Value;

struct Use {
  Node* user;
  size_t offset;  // which of the user's inputs
};

class Value {
 public:
  Node* node() const { return node_; }       // the definition; a Param node for block inputs
  size_t offset() const { return offset_; }  // which of the node's outputs
  const TypePtr& type() const { return type_; }
  Value* setType(TypePtr type) {
    type_ = std::move(type);
    return this;
  }
  const std::vector<Use>& uses() const { return uses_; }  // in no particular order
  bool hasUses() const { return !uses_.empty(); }
  Graph* graph() const;
  size_t id() const { return id_; }  // unique within the graph
  // The name given, else the id.
  std::string debugName() const;
  bool hasDebugName() const { return !name_.empty(); }
  // Made unique with a ".N" suffix when another value of the graph has it. Must not be a number.
  Value* setDebugName(const std::string& name);
  // The name without the suffix that made it unique.
  std::string debugNameBase() const;

  // Makes every user read `other` instead.
  void replaceAllUsesWith(Value* other);
  // Only users after `node` (in the same or a nested block).
  void replaceAllUsesAfterWith(const Node* node, Value* other);

 private:
  friend class Node;
  friend class Graph;
  Value(Node* node, size_t offset, size_t id);
  Node* node_;
  size_t offset_;
  size_t id_;
  TypePtr type_;
  std::string name_;
  std::vector<Use> uses_;
};

// A node's extra information: a constant, a type, types, or a graph.
using AttributeValue = std::variant<IValue, TypePtr, std::vector<TypePtr>, std::shared_ptr<Graph>>;

// Where an inlined node stood: the function it came from and the call that was inlined.
struct InlinedCall {
  std::shared_ptr<const InlinedCall> caller;  // outer call, or null
  std::string function;
  SourceRange call_site;
};

class Node {
 public:
  Symbol kind() const { return kind_; }
  Graph* graph() const { return graph_; }
  Block* block() const { return block_; }  // the block it is inserted in, or null
  const SourceRange& range() const { return range_; }
  Node* setRange(SourceRange range) {
    range_ = std::move(range);
    return this;
  }
  const std::shared_ptr<const InlinedCall>& inlinedFrom() const { return inlined_from_; }
  void setInlinedFrom(std::shared_ptr<const InlinedCall> call) { inlined_from_ = std::move(call); }

  const std::vector<Value*>& inputs() const { return inputs_; }
  const std::vector<Value*>& outputs() const { return outputs_; }
  const std::vector<Block*>& blocks() const { return blocks_; }
  Value* input(size_t i) const;
  Value* output(size_t i) const;
  Value* output() const;                               // the only one
  Value* namedInput(std::string_view argument) const;  // by the schema's argument name

  Node* addInput(Value* value);
  void insertInput(size_t i, Value* value);
  void replaceInput(size_t i, Value* value);
  void removeInput(size_t i);
  void removeAllInputs();
  Value* addOutput(TypePtr type = nullptr);  // Tensor unless given
  Value* insertOutput(size_t i, TypePtr type = nullptr);
  void eraseOutput(size_t i);  // must be unused
  Block* addBlock();
  void eraseBlock(size_t i);

  bool hasAttribute(Symbol name) const { return findAttribute(name) != nullptr; }
  const AttributeValue* findAttribute(Symbol name) const;
  // InternalError when it is missing or of another kind.
  const IValue& ivalue(Symbol name) const;
  const std::vector<TypePtr>& typesAttribute(Symbol name) const;
  const std::shared_ptr<Graph>& subgraph(Symbol name) const;
  Node* setAttribute(Symbol name, AttributeValue value);
  void removeAttribute(Symbol name);
  const std::vector<std::pair<Symbol, AttributeValue>>& attributes() const { return attributes_; }

  // The operator that the kind and the input types select; null for control flow and other nodes
  // that are no operators. Found once and remembered; changing inputs to other types needs
  // resetOperator().
  const Operator* maybeOperator() const;
  // maybeOperator, or an error that names the candidates.
  const Operator& getOperator() const;
  const FunctionSchema* maybeSchema() const;
  void setOperator(const Operator* op) const { operator_ = op; }
  void resetOperator() const { operator_ = nullptr; }
  bool matches(Symbol name, std::string_view overload) const;
  // Prints, raises, writes memory, draws random numbers… anything that removing would be noticed
  // by.
  bool hasSideEffects() const;
  // Whether another run gives another result: random numbers, or a leaf, whose gradient is its own.
  bool isNondeterministic() const;
  bool isControlFlow() const;

  // Position in the block's list.
  Node* next() const { return next_; }
  Node* prev() const { return prev_; }
  Node* insertBefore(Node* other);
  Node* insertAfter(Node* other);
  void moveBefore(Node* other);
  void moveAfter(Node* other);
  void removeFromList();  // stays owned by the graph, for reinsertion
  // Deletes the node and its blocks. Its outputs must be unused.
  void destroy();
  // Whether it runs before `other`; both anywhere in one graph. Amortized constant in one block.
  bool isBefore(const Node* other) const;
  bool isAfter(const Node* other) const { return other != this && !isBefore(other); }
  // The block that encloses this one's block, and so on up to the graph's.
  bool isInside(const Block* block) const;

  std::string str() const;  // one line (and blocks) of IR text

 private:
  friend class Block;
  friend class Graph;
  friend class Value;
  Node(Graph* graph, Symbol kind);
  void link(size_t input, Value* value);
  void dropUse(size_t input);
  void makeRoom() const;

  Symbol kind_;
  Graph* graph_;
  Block* block_ = nullptr;
  Node* next_ = nullptr;
  Node* prev_ = nullptr;
  mutable int64_t position_ = 0;
  std::vector<Value*> inputs_;
  std::vector<size_t> use_index_;  // where each input's uses() records this node
  std::vector<Value*> outputs_;
  std::vector<Block*> blocks_;
  std::vector<std::pair<Symbol, AttributeValue>> attributes_;
  SourceRange range_;
  std::shared_ptr<const InlinedCall> inlined_from_;
  mutable const Operator* operator_ = nullptr;
};

// Iterates over a block's nodes. Advancing reads the current node's links, so the current node must
// not be moved or destroyed while the iterator stands on it; advance first.
class NodeIterator {
 public:
  using iterator_category = std::bidirectional_iterator_tag;
  using value_type = Node*;
  using difference_type = std::ptrdiff_t;
  using pointer = Node**;
  using reference = Node*;
  NodeIterator() = default;
  explicit NodeIterator(Node* node, bool reverse = false) : node_(node), reverse_(reverse) {}
  Node* operator*() const { return node_; }
  NodeIterator& operator++() {
    node_ = reverse_ ? node_->prev() : node_->next();
    return *this;
  }
  NodeIterator operator++(int) {
    NodeIterator old = *this;
    ++*this;
    return old;
  }
  friend bool operator==(const NodeIterator& a, const NodeIterator& b) {
    return a.node_ == b.node_;
  }

 private:
  Node* node_ = nullptr;
  bool reverse_ = false;
};

struct NodeRange {
  NodeIterator first, last;
  NodeIterator begin() const { return first; }
  NodeIterator end() const { return last; }
};

class Block {
 public:
  Graph* graph() const { return graph_; }
  Node* owningNode() const { return owner_; }  // null for the graph's block
  Block* owningBlock() const { return owner_ ? owner_->block() : nullptr; }
  const std::vector<Value*>& inputs() const { return param_->outputs(); }
  const std::vector<Value*>& outputs() const { return return_->inputs(); }
  Node* paramNode() const { return param_; }
  Node* returnNode() const { return return_; }
  NodeRange nodes() const { return {NodeIterator(return_->next()), NodeIterator(return_)}; }
  NodeRange reverseNodes() const {
    return {NodeIterator(return_->prev(), true), NodeIterator(return_, true)};
  }
  bool empty() const { return return_->next() == return_; }

  Value* addInput(TypePtr type = nullptr, const std::string& name = "");
  Value* insertInput(size_t i, TypePtr type = nullptr, const std::string& name = "");
  void eraseInput(size_t i);
  size_t registerOutput(Value* value);
  void insertOutput(size_t i, Value* value) { return_->insertInput(i, value); }
  void eraseOutput(size_t i) { return_->removeInput(i); }
  void replaceOutput(size_t i, Value* value) { return_->replaceInput(i, value); }
  Node* appendNode(Node* node);
  Node* prependNode(Node* node);
  // Copies the contents of `source` to the end of this block; `map` gives the new value for each
  // value defined outside of it. Block inputs and outputs are copied too.
  void cloneFrom(const Block* source, const std::unordered_map<Value*, Value*>& map);
  void clear();  // destroys nodes and outputs

 private:
  friend class Graph;
  friend class Node;
  Block(Graph* graph, Node* owner);
  Graph* graph_;
  Node* owner_;
  Node* param_;
  Node* return_;
};

class Graph : public std::enable_shared_from_this<Graph> {
 public:
  Graph();
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Block* block() const { return block_; }
  const std::vector<Value*>& inputs() const { return block_->inputs(); }
  const std::vector<Value*>& outputs() const { return block_->outputs(); }
  NodeRange nodes() const { return block_->nodes(); }
  Node* paramNode() const { return block_->paramNode(); }
  Node* returnNode() const { return block_->returnNode(); }
  Value* addInput(const std::string& name = "", TypePtr type = nullptr) {
    return block_->addInput(std::move(type), name);
  }
  size_t registerOutput(Value* value) { return block_->registerOutput(value); }

  // Creates without inserting. New nodes take the current source range.
  Node* create(Symbol kind, size_t num_outputs = 1);
  Node* create(Symbol kind, std::span<Value* const> inputs, size_t num_outputs = 1);
  Node* create(Symbol kind, std::initializer_list<Value*> inputs, size_t num_outputs = 1) {
    return create(kind, std::span<Value* const>(inputs.begin(), inputs.size()), num_outputs);
  }
  Node* createConstant(
      IValue value);  // typed by the value; use the overload when that is not enough
  Node* createConstant(IValue value, TypePtr type);
  Node* createNone();
  Node* createUninitialized(TypePtr type);
  Node* createTuple(std::span<Value* const> elements,
                    std::shared_ptr<const TupleType> named = nullptr);
  Node* createTupleUnpack(Value* tuple);
  Node* createTupleIndex(Value* tuple, Value* index, TypePtr type);
  Node* createList(TypePtr element_type, std::span<Value* const> elements);
  Node* createListUnpack(Value* list, size_t n);
  Node* createDict(TypePtr key, TypePtr value, std::span<Value* const> keys,
                   std::span<Value* const> values);
  Node* createObject(ClassTypePtr type);
  Node* createGetAttr(Value* object, const std::string& name);
  Node* createSetAttr(Value* object, const std::string& name, Value* value);
  Node* createLoad(const std::string& name, TypePtr type);
  Node* createStore(const std::string& name, Value* value);
  // A copy with inputs mapped; sub-blocks are cloned.
  Node* createClone(const Node* node, const std::unordered_map<Value*, Value*>& map,
                    bool copy_blocks = true);

  // Inserts at the insertion point.
  Node* insertNode(Node* node) { return node->insertBefore(insert_before_); }
  Value* insertConstant(IValue value) {
    return insertNode(createConstant(std::move(value)))->output();
  }
  Value* insertConstant(IValue value, TypePtr type) {
    return insertNode(createConstant(std::move(value), std::move(type)))->output();
  }
  Value* insertFunction(Function* function);  // a constant that refers to it
  // prim::CallFunction / prim::CallMethod with arguments that match the schema already.
  Value* insertCall(Function* function, std::span<Value* const> args);
  Value* insertMethodCall(Value* object, Function* method, std::span<Value* const> args);

  // Nodes are inserted before this one (a block's Return node appends to it).
  Node* insertPoint() const { return insert_before_; }
  void setInsertPoint(Node* before) { insert_before_ = before; }
  void setInsertPoint(Block* block) { insert_before_ = block->returnNode(); }
  const SourceRange& currentRange() const { return current_range_; }
  void setCurrentRange(SourceRange range) { current_range_ = std::move(range); }

  std::shared_ptr<Graph> copy() const;
  std::string str(bool with_source = false) const;  // IR text, see ir/printer.h
  size_t nodeCount() const { return nodes_.size(); }

 private:
  friend class Block;
  friend class Node;
  friend class Value;
  Value* newValue(Node* node, size_t offset);
  void freeValue(Value* value);
  void freeNode(Node* node);
  void freeBlock(Block* block);

  std::unordered_set<Node*> nodes_;
  std::unordered_set<Value*> values_;
  std::unordered_set<Block*> blocks_;
  KeyedMap<std::string, Value*> names_;
  KeyedMap<std::string, size_t> name_suffix_;
  size_t next_id_ = 0;
  Block* block_ = nullptr;
  Node* insert_before_ = nullptr;
  SourceRange current_range_;
};

// Sets the insertion point for a scope.
class InsertPointGuard {
 public:
  explicit InsertPointGuard(Node* before) : graph_(before->graph()), old_(graph_->insertPoint()) {
    graph_->setInsertPoint(before);
  }
  explicit InsertPointGuard(Block* block) : InsertPointGuard(block->returnNode()) {}
  ~InsertPointGuard() { graph_->setInsertPoint(old_); }
  InsertPointGuard(const InsertPointGuard&) = delete;

 private:
  Graph* graph_;
  Node* old_;
};

// Sets the source range that new nodes get for a scope.
class RangeGuard {
 public:
  RangeGuard(Graph* graph, SourceRange range) : graph_(graph), old_(graph->currentRange()) {
    graph->setCurrentRange(std::move(range));
  }
  ~RangeGuard() { graph_->setCurrentRange(old_); }
  RangeGuard(const RangeGuard&) = delete;

 private:
  Graph* graph_;
  SourceRange old_;
};

// The constant that defines a value, if one does.
std::optional<IValue> constantOf(const Value* value);

// Inserts a copy of `callee`'s body at the insertion point with `inputs` for its inputs; returns
// the values of its outputs.
std::vector<Value*> inlineGraph(Graph& into, const Graph& callee, std::span<Value* const> inputs);

}  // namespace wick
