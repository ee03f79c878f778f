#include "ir/graph.h"

#include <algorithm>

#include "core/error.h"
#include "core/memory_limit.h"
#include "ir/depth.h"
#include "ir/printer.h"

namespace wick {

// ---- Value
// ----------------------------------------------------------------------------------------

Value::Value(Node* node, size_t offset, size_t id)
    : node_(node), offset_(offset), id_(id), type_(types::Tensor()) {}

Graph* Value::graph() const {
  return node_->graph();
}

std::string Value::debugName() const {
  return name_.empty() ? std::to_string(id_) : name_;
}

std::string Value::debugNameBase() const {
  size_t dot = name_.rfind('.');
  if (dot == std::string::npos || dot == 0 || dot + 1 == name_.size()) return name_;
  bool digits = std::all_of(name_.begin() + dot + 1, name_.end(),
                            [](char c) { return c >= '0' && c <= '9'; });
  return digits ? name_.substr(0, dot) : name_;
}

Value* Value::setDebugName(const std::string& name) {
  Graph* g = graph();
  if (!name_.empty()) g->names_.erase(name_);
  name_.clear();
  if (name.empty()) return this;
  WICK_ASSERT(!std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; }),
              "a value's name must not be a number: '{}'", name);
  std::string unique = name;
  if (g->names_.count(unique) != 0) {
    name_ = name;
    std::string base = debugNameBase();
    name_.clear();
    size_t& suffix = g->name_suffix_[base];
    do {
      unique = base + "." + std::to_string(++suffix);
    } while (g->names_.count(unique) != 0);
  }
  name_ = unique;
  g->names_.emplace(unique, this);
  return this;
}

void Value::replaceAllUsesWith(Value* other) {
  WICK_ASSERT(graph() == other->graph(), "values of two graphs");
  if (other == this) return;
  for (const Use& use : uses_) use.user->link(use.offset, other);
  uses_.clear();
}

void Value::replaceAllUsesAfterWith(const Node* node, Value* other) {
  std::vector<Use> kept;
  for (const Use& use : uses_) {
    // A Return node stands after everything in its block.
    if (node->isBefore(use.user)) {
      use.user->link(use.offset, other);
    } else {
      use.user->use_index_[use.offset] = kept.size();
      kept.push_back(use);
    }
  }
  uses_ = std::move(kept);
}

// ---- Node: inputs, outputs, blocks
// ----------------------------------------------------------------

Node::Node(Graph* graph, Symbol kind) : kind_(kind), graph_(graph) {}

Value* Node::input(size_t i) const {
  WICK_ASSERT(i < inputs_.size(), "{} has no input {}", kind_.qualString(), i);
  return inputs_[i];
}

Value* Node::output(size_t i) const {
  WICK_ASSERT(i < outputs_.size(), "{} has no output {}", kind_.qualString(), i);
  return outputs_[i];
}

Value* Node::output() const {
  WICK_ASSERT(outputs_.size() == 1, "{} has {} outputs", kind_.qualString(), outputs_.size());
  return outputs_[0];
}

Value* Node::namedInput(std::string_view argument) const {
  std::optional<size_t> index = getOperator().schema().argumentIndex(argument);
  WICK_ASSERT(index.has_value(), "{} has no argument {}", kind_.qualString(), argument);
  return input(*index);
}

void Node::link(size_t i, Value* value) {
  inputs_[i] = value;
  use_index_[i] = value->uses_.size();
  value->uses_.push_back({this, i});
}

Node* Node::addInput(Value* value) {
  WICK_ASSERT(value->graph() == graph_, "{}: an input of another graph", kind_.qualString());
  inputs_.push_back(nullptr);
  use_index_.push_back(0);
  link(inputs_.size() - 1, value);
  return this;
}

void Node::insertInput(size_t i, Value* value) {
  for (size_t k = i; k < inputs_.size(); ++k) ++inputs_[k]->uses_[use_index_[k]].offset;
  inputs_.insert(inputs_.begin() + i, nullptr);
  use_index_.insert(use_index_.begin() + i, 0);
  link(i, value);
}

void Node::dropUse(size_t i) {
  std::vector<Use>& uses = inputs_[i]->uses_;
  size_t at = use_index_[i];
  WICK_ASSERT(at < uses.size() && uses[at].user == this && uses[at].offset == i,
              "uses of {} out of step", inputs_[i]->debugName());
  // A constant may have as many uses as the graph has nodes: the last use takes the free place.
  const Use last = uses.back();
  uses[at] = last;
  last.user->use_index_[last.offset] = at;
  uses.pop_back();
}

void Node::replaceInput(size_t i, Value* value) {
  dropUse(i);
  link(i, value);
}

void Node::removeInput(size_t i) {
  dropUse(i);
  for (size_t k = i + 1; k < inputs_.size(); ++k) --inputs_[k]->uses_[use_index_[k]].offset;
  inputs_.erase(inputs_.begin() + i);
  use_index_.erase(use_index_.begin() + i);
}

void Node::removeAllInputs() {
  for (size_t i = 0; i < inputs_.size(); ++i) dropUse(i);
  inputs_.clear();
  use_index_.clear();
}

Value* Node::addOutput(TypePtr type) {
  Value* v = graph_->newValue(this, outputs_.size());
  if (type) v->setType(std::move(type));
  outputs_.push_back(v);
  return v;
}

Value* Node::insertOutput(size_t i, TypePtr type) {
  Value* v = graph_->newValue(this, i);
  if (type) v->setType(std::move(type));
  outputs_.insert(outputs_.begin() + i, v);
  for (size_t k = i + 1; k < outputs_.size(); ++k) outputs_[k]->offset_ = k;
  return v;
}

void Node::eraseOutput(size_t i) {
  WICK_ASSERT(!output(i)->hasUses(), "erasing the used value %{}", output(i)->debugName());
  Value* v = outputs_[i];
  outputs_.erase(outputs_.begin() + i);
  for (size_t k = i; k < outputs_.size(); ++k) outputs_[k]->offset_ = k;
  graph_->freeValue(v);
}

Block* Node::addBlock() {
  blocks_.push_back(new Block(graph_, this));
  return blocks_.back();
}

void Node::eraseBlock(size_t i) {
  Block* b = blocks_[i];
  b->clear();
  blocks_.erase(blocks_.begin() + i);
  graph_->freeBlock(b);
}

// ---- Node: attributes and operators
// ---------------------------------------------------------------

const AttributeValue* Node::findAttribute(Symbol name) const {
  for (const auto& [key, value] : attributes_) {
    if (key == name) return &value;
  }
  return nullptr;
}

namespace {
template <class T>
const T& attributeAs(const Node* node, Symbol name) {
  const AttributeValue* value = node->findAttribute(name);
  WICK_ASSERT(value && std::holds_alternative<T>(*value), "{} lacks the attribute {}",
              node->kind().qualString(), name.name());
  return std::get<T>(*value);
}
}  // namespace

const IValue& Node::ivalue(Symbol name) const {
  return attributeAs<IValue>(this, name);
}
const std::vector<TypePtr>& Node::typesAttribute(Symbol name) const {
  return attributeAs<std::vector<TypePtr>>(this, name);
}
const std::shared_ptr<Graph>& Node::subgraph(Symbol name) const {
  return attributeAs<std::shared_ptr<Graph>>(this, name);
}

Node* Node::setAttribute(Symbol name, AttributeValue value) {
  for (auto& [key, old] : attributes_) {
    if (key == name) {
      old = std::move(value);
      return this;
    }
  }
  attributes_.emplace_back(name, std::move(value));
  return this;
}

void Node::removeAttribute(Symbol name) {
  std::erase_if(attributes_, [&](const auto& entry) { return entry.first == name; });
}

namespace {

// How well a node's inputs fit an overload: every type a subtype of the formal one, variables
// bound.
bool inputsMatch(const Node* node, const FunctionSchema& schema, std::string* why) {
  const auto& formals = schema.arguments();
  size_t given = node->inputs().size();
  if (given < formals.size() || (given > formals.size() && !schema.isVararg())) {
    if (why) *why = fmt::format("expected {} inputs, found {}", formals.size(), given);
    return false;
  }
  TypeBindings bindings;
  for (size_t i = 0; i < formals.size(); ++i) {
    const TypePtr& actual = node->input(i)->type();
    std::optional<TypePtr> formal = formals[i].type;
    if (formals[i].type->hasFreeVariables()) {
      formal = matchTypeVariables(formals[i].type, actual, bindings, why);
      if (!formal) return false;
    }
    if (!actual->isSubtypeOf(**formal)) {
      if (why) {
        *why = fmt::format("argument '{}': expected {}, found {}", formals[i].name,
                           (*formal)->str(), actual->str());
      }
      return false;
    }
  }
  return true;
}

}  // namespace

const Operator* Node::maybeOperator() const {
  if (operator_) return operator_;
  for (const Operator* candidate : OperatorRegistry::instance().overloads(kind_)) {
    if (inputsMatch(this, candidate->schema(), nullptr)) {
      operator_ = candidate;
      break;
    }
  }
  return operator_;
}

const Operator& Node::getOperator() const {
  if (const Operator* op = maybeOperator()) return *op;
  std::string message = fmt::format("no operator {} for the inputs (", kind_.qualString());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    message += (i ? ", " : "") + inputs_[i]->type()->str();
  }
  message += ")";
  for (const Operator* candidate : OperatorRegistry::instance().overloads(kind_)) {
    std::string why;
    inputsMatch(this, candidate->schema(), &why);
    message += fmt::format("\n  {}: {}", candidate->schema().str(), why);
  }
  throw CompileError(range_, message);
}

const FunctionSchema* Node::maybeSchema() const {
  const Operator* op = maybeOperator();
  return op ? &op->schema() : nullptr;
}

bool Node::matches(Symbol name, std::string_view overload) const {
  if (kind_ != name) return false;
  const Operator* op = maybeOperator();
  return op && op->schema().overload() == overload;
}

bool Node::isControlFlow() const {
  return kind_ == prim::If || kind_ == prim::Loop || kind_ == prim::With;
}

bool Node::hasSideEffects() const {
  if (kind_ == prim::Constant) return false;
  static const Symbol kEffects[] = {prim::RaiseException,
                                    prim::Print,
                                    prim::SetAttr,
                                    prim::Store,
                                    prim::CallFunction,
                                    prim::CallMethod,
                                    prim::ReturnStmt,
                                    prim::BreakStmt,
                                    prim::ContinueStmt,
                                    prim::LoopContinuation,
                                    prim::Enter,
                                    prim::Exit,
                                    prim::fork,
                                    aten::wait,
                                    prim::With,
                                    Symbol::prim("profile"),
                                    Symbol::prim("JointGraph"),
                                    Symbol::prim("Guard"),
                                    Symbol::prim("BailOut")};
  for (Symbol effect : kEffects) {
    if (kind_ == effect) return true;
  }
  for (const Block* block : blocks_) {
    for (const Node* node : block->nodes()) {
      if (node->hasSideEffects()) return true;
    }
  }
  const Operator* op = kind_.isPrim() && !blocks_.empty() ? nullptr : maybeOperator();
  return op && (op->has(kSideEffects) || op->mayWrite(*this));
}

bool Node::isNondeterministic() const {
  const Operator* op = maybeOperator();
  if (!op || !op->has(kNondeterministic)) return false;
  // Attention and recurrent layers draw for their dropout alone, and a new tensor is a leaf when it is asked for: most
  // programs want neither.
  const std::vector<Argument>& arguments = op->schema().arguments();
  bool drops = false;
  for (size_t i = 0; i < arguments.size() && i < inputs().size(); ++i) {
    const std::string& name = arguments[i].name;
    const bool is_rate = name == "dropout_p" || name == "dropout";
    drops |= is_rate;
    if (!is_rate && !(drops && name == "train") && name != "requires_grad") continue;
    const std::optional<IValue> asked = constantOf(inputs()[i]);
    if (!asked) continue;
    if (is_rate ? asked->isDouble() && asked->toDouble() == 0
                : asked->isBool() && !asked->toBool()) {
      return false;
    }
  }
  return true;
}

std::string Node::str() const {
  return printNode(*this);
}

// ---- Node: order
// ----------------------------------------------------------------------------------

namespace {
// Gap between neighbouring positions of nodes that were appended.
constexpr int64_t kPositionGap = int64_t{1} << 32;
}  // namespace

// Called where no number is left between two neighbours. Spreads the shortest run of followers
// whose numbers leave room for more than its length squared (Dietz and Sleator), which costs
// O(log n) an insertion over any sequence of insertions.
void Node::makeRoom() const {
  const Node* sentinel = block_->returnNode();
  int64_t base = prev_ == sentinel ? 0 : prev_->position_;
  int64_t count = 1;
  const Node* end = next_;
  while (end != sentinel && end->position_ - base <= (count + 1) * (count + 1)) {
    end = end->next_;
    ++count;
  }
  int64_t step = end == sentinel ? kPositionGap : (end->position_ - base) / (count + 1);
  for (const Node* n = this; n != end; n = n->next_) n->position_ = (base += step);
}

Node* Node::insertBefore(Node* other) {
  WICK_ASSERT(block_ == nullptr, "{} is inserted already", kind_.qualString());
  WICK_ASSERT(other->block_ != nullptr, "inserting before a node outside of any block");
  block_ = other->block_;
  prev_ = other->prev_;
  next_ = other;
  prev_->next_ = this;
  next_->prev_ = this;
  Node* sentinel = block_->returnNode();
  int64_t before = prev_ == sentinel ? 0 : prev_->position_;
  if (next_ == sentinel) {
    position_ = before + kPositionGap;
  } else if (next_->position_ - before > 1) {
    position_ = before + (next_->position_ - before) / 2;
  } else {
    makeRoom();
  }
  return this;
}

Node* Node::insertAfter(Node* other) {
  return insertBefore(other->next_);
}

void Node::moveBefore(Node* other) {
  if (other == this) return;
  removeFromList();
  insertBefore(other);
}

void Node::moveAfter(Node* other) {
  if (other == this) return;
  removeFromList();
  insertAfter(other);
}

void Node::removeFromList() {
  WICK_ASSERT(block_ != nullptr, "{} is not inserted", kind_.qualString());
  if (graph_->insert_before_ == this) graph_->insert_before_ = next_;
  prev_->next_ = next_;
  next_->prev_ = prev_;
  block_ = nullptr;
  next_ = prev_ = nullptr;
}

void Node::destroy() {
  while (!outputs_.empty()) eraseOutput(outputs_.size() - 1);
  while (!blocks_.empty()) eraseBlock(blocks_.size() - 1);
  removeAllInputs();
  if (block_) removeFromList();
  graph_->freeNode(this);
}

bool Node::isInside(const Block* block) const {
  for (const Block* b = block_; b; b = b->owningBlock()) {
    if (b == block) return true;
  }
  return false;
}

bool Node::isBefore(const Node* other) const {
  if (this == other) return false;
  // Raise both to the innermost block that holds them.
  auto depth = [](const Node* n) {
    size_t d = 0;
    for (const Block* b = n->block_; b; b = b->owningBlock()) ++d;
    return d;
  };
  const Node* a = this;
  const Node* b = other;
  size_t depth_a = depth(a);
  size_t depth_b = depth(b);

  while (depth_a > depth_b) {
    a = a->block_->owningNode();
    --depth_a;
  }
  while (depth_b > depth_a) {
    b = b->block_->owningNode();
    --depth_b;
  }
  while (a->block_ != b->block_) {
    a = a->block_->owningNode();
    b = b->block_->owningNode();
  }
  if (a == b) {
    // One contains the other (the outer node runs first), or they are in sibling blocks of one
    // node.
    if (a == this) return true;
    if (b == other) return false;
    const Block* block_a = block_;
    while (block_a->owningNode() != a) block_a = block_a->owningBlock();
    const Block* block_b = other->block_;
    while (block_b->owningNode() != a) block_b = block_b->owningBlock();
    const auto& blocks = a->blocks();
    return std::find(blocks.begin(), blocks.end(), block_a) <
           std::find(blocks.begin(), blocks.end(), block_b);
  }
  const Block* block = a->block_;
  if (a == block->paramNode() || b == block->returnNode()) return true;
  if (b == block->paramNode() || a == block->returnNode()) return false;

  return a->position_ < b->position_;
}

// ---- Block
// ----------------------------------------------------------------------------------------

Block::Block(Graph* graph, Node* owner) : graph_(graph), owner_(owner) {
  param_ = graph->create(prim::Param, 0);
  return_ = graph->create(prim::Return, 0);
  param_->block_ = this;
  return_->block_ = this;
  return_->next_ = return_->prev_ = return_;
  // Last, for a limit of memory may end this before, and then nobody may delete the block again.
  graph->blocks_.insert(this);
}

Value* Block::addInput(TypePtr type, const std::string& name) {
  Value* v = param_->addOutput(std::move(type));
  v->setDebugName(name);
  return v;
}

Value* Block::insertInput(size_t i, TypePtr type, const std::string& name) {
  Value* v = param_->insertOutput(i, std::move(type));
  v->setDebugName(name);
  return v;
}

void Block::eraseInput(size_t i) {
  param_->eraseOutput(i);
}

size_t Block::registerOutput(Value* value) {
  return_->addInput(value);
  return outputs().size() - 1;
}

Node* Block::appendNode(Node* node) {
  return node->insertBefore(return_);
}

Node* Block::prependNode(Node* node) {
  return node->insertBefore(return_->next());
}

void Block::clear() {
  return_->removeAllInputs();
  // From the back, so that users go before what they use.
  while (return_->prev() != return_) {
    Node* last = return_->prev();
    for (Value* v : last->outputs()) {
      WICK_ASSERT(!v->hasUses(), "clearing a block whose value %{} is used outside",
                  v->debugName());
    }
    last->destroy();
  }
}

namespace {

bool sameRange(const SourceRange& a, const SourceRange& b) {
  return a.source() == b.source() && a.start() == b.start() && a.end() == b.end();
}

using ValueMap = std::unordered_map<Value*, Value*>;

// One map for the whole copy: what blocks define is added to it and never looked up outside, and
// copying the map for each block would make copies quadratic.
void cloneInto(Block* to, const Block* source, ValueMap& map);

Node* cloneNode(Graph& graph, Node* node, Node* before, ValueMap& map) {
  Node* copy = graph.createClone(node, map, /*copy_blocks=*/false)->insertBefore(before);
  for (const Block* block : node->blocks()) cloneInto(copy->addBlock(), block, map);
  for (size_t i = 0; i < node->outputs().size(); ++i) map[node->output(i)] = copy->output(i);
  return copy;
}

void cloneInto(Block* to, const Block* source, ValueMap& map) {
  for (Value* in : source->inputs()) {
    map[in] = to->addInput(in->type(), in->hasDebugName() ? in->debugName() : "");
  }
  for (Node* node : source->nodes()) cloneNode(*to->graph(), node, to->returnNode(), map);
  for (Value* out : source->outputs()) {
    auto it = map.find(out);
    to->registerOutput(it == map.end() ? out : it->second);
  }
}

}  // namespace

void Block::cloneFrom(const Block* source, const std::unordered_map<Value*, Value*>& map) {
  ValueMap all = map;
  cloneInto(this, source, all);
}

// ---- Graph
// ----------------------------------------------------------------------------------------

// What a node takes with its values, its inputs and its place in the tables of a graph, roughly.
constexpr int64_t kNodeBytes = 512;

Graph::Graph() {
  block_ = new Block(this, nullptr);
  insert_before_ = block_->returnNode();
}

Graph::~Graph() {
  noteMemory(-static_cast<int64_t>(nodes_.size()) * kNodeBytes);
  for (Node* n : nodes_) delete n;
  for (Value* v : values_) delete v;
  for (Block* b : blocks_) delete b;
}

Value* Graph::newValue(Node* node, size_t offset) {
  Value* v = new Value(node, offset, next_id_++);
  values_.insert(v);
  return v;
}

void Graph::freeValue(Value* value) {
  if (!value->name_.empty()) names_.erase(value->name_);
  values_.erase(value);
  delete value;
}

void Graph::freeNode(Node* node) {
  nodes_.erase(node);
  noteMemory(-kNodeBytes);
  delete node;
}

void Graph::freeBlock(Block* block) {
  WICK_ASSERT(block->empty(), "freeing a block that holds nodes");
  for (Node* n : {block->param_, block->return_}) {
    while (!n->outputs_.empty()) n->eraseOutput(n->outputs_.size() - 1);
    n->removeAllInputs();
    freeNode(n);
  }
  blocks_.erase(block);
  delete block;
}

Node* Graph::create(Symbol kind, size_t num_outputs) {
  checkGrowth();
  Node* n = new Node(this, kind);
  nodes_.insert(n);
  noteMemory(kNodeBytes);
  n->range_ = current_range_;
  // A pass makes a node in front of the one that it replaces, with its range: both come from one call.
  if (insert_before_ && insert_before_->inlined_from_ &&
      sameRange(insert_before_->range_, n->range_)) {
    n->inlined_from_ = insert_before_->inlined_from_;
  }
  for (size_t i = 0; i < num_outputs; ++i) n->addOutput();
  return n;
}

Node* Graph::create(Symbol kind, std::span<Value* const> inputs, size_t num_outputs) {
  Node* n = create(kind, num_outputs);
  n->inputs_.reserve(inputs.size());
  n->use_index_.reserve(inputs.size());
  for (Value* v : inputs) n->addInput(v);
  return n;
}

Node* Graph::createClone(const Node* node, const std::unordered_map<Value*, Value*>& map,
                         bool copy_blocks) {
  auto mapped = [&](Value* v) {
    auto it = map.find(v);
    return it == map.end() ? v : it->second;
  };
  Node* copy = create(node->kind(), 0);
  copy->range_ = node->range_;
  copy->inlined_from_ = node->inlined_from_;
  copy->attributes_ = node->attributes_;
  copy->operator_ = node->operator_;
  for (Value* in : node->inputs()) copy->addInput(mapped(in));
  for (Value* out : node->outputs()) {
    Value* v = copy->addOutput(out->type());
    if (out->hasDebugName()) v->setDebugName(out->debugName());
  }
  if (copy_blocks && !node->blocks().empty()) {
    ValueMap inner = map;
    for (Block* block : node->blocks()) cloneInto(copy->addBlock(), block, inner);
  }
  return copy;
}

std::shared_ptr<Graph> Graph::copy() const {
  auto out = std::make_shared<Graph>();
  withStackFor(*this, [&] { out->block()->cloneFrom(block_, {}); });
  out->setInsertPoint(out->block());
  return out;
}

std::string Graph::str(bool with_source) const {
  PrintOptions options;
  options.source_locations = with_source;
  return printGraph(*this, options);
}

std::optional<IValue> constantOf(const Value* value) {
  const Node* node = value->node();
  if (node->kind() != prim::Constant) return std::nullopt;
  if (!node->hasAttribute(attr::value)) return IValue();
  return node->ivalue(attr::value);
}

std::vector<Value*> inlineGraph(Graph& into, const Graph& callee, std::span<Value* const> inputs) {
  WICK_ASSERT(callee.inputs().size() == inputs.size(), "inlining with {} inputs for {}",
              inputs.size(), callee.inputs().size());
  std::unordered_map<Value*, Value*> map;
  for (size_t i = 0; i < inputs.size(); ++i) map[callee.inputs()[i]] = inputs[i];
  for (Node* node : callee.nodes()) cloneNode(into, node, into.insertPoint(), map);
  std::vector<Value*> results;
  for (Value* out : callee.outputs()) results.push_back(map.at(out));
  return results;
}

}  // namespace wick
