// The printer makes two passes over a block. The first goes backwards and finds the nodes whose
// value can stand as an expression at its only use: those that come, in the order in which the
// expression would be evaluated, directly before their user. The second goes forwards and writes
// statements; a node that was found inline only records its text for the user to pick up.
#include "serialization/python_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/natural_order.h"
#include "core/stack.h"
#include "ir/depth.h"
#include "passes/restore_operators.h"
#include "serialization/python_nodes.h"
#include "serialization/python_printer_state.h"

namespace wick {
namespace {

// No more calls than this stand inside of one another, and no more blocks: what is printed must be
// importable (kMaxNesting in frontend/parser.h), and the walks below recurse.
constexpr size_t kMaxInline = 100;
constexpr size_t kMaxBlocks = 400;

// For them.
constexpr size_t kStack = (size_t{2} << 10) * (kMaxInline + 2 * kMaxBlocks) + (size_t{256} << 10);

bool isCheckpoint(const Node* node) {
  static const Symbol kKind = Symbol::fromQualString("wick::checkpoint");
  return node->kind() == kKind && node->hasAttribute(attr::Subgraph);
}

}  // namespace

// Types -------------------------------------------------------------------------------------------

void PythonPrinter::Impl::noteTypes(const Type& type) {
  if (ExportNames::isNamed(type) && seen_types_.insert(&type).second) {
    names.of(type);
    used_types.push_back(type.shared_from_this());
  }
  for (const TypePtr& part : type.contained()) noteTypes(*part);
}

// First pass --------------------------------------------------------------------------------------

bool PythonPrinter::Impl::canInline(const Value* value) const {
  const Node* node = value->node();
  if (node->outputs().size() != 1 || value->uses().size() != 1 || !node->blocks().empty()) {
    return false;
  }
  const Use& use = value->uses()[0];
  // Someone named it, so it was a variable; but returning a variable needs no name.
  if (value->hasDebugName() && use.user->kind() != prim::Return) return false;
  // Loop-carried values would move past the evaluation of the condition.
  if (use.user->kind() == prim::Loop && use.offset >= 2) return false;
  // The forked function may use it more than once.
  if (use.user->kind() == prim::fork || isCheckpoint(use.user)) return false;
  // An isinstance in a condition would refine types again.
  return node->kind() != prim::isinstance;
}

Node* PythonPrinter::Impl::scanValue(Node* block_point, const Value* value) {
  Node* node = value->node();
  if (node == block_point && !isFree(node) && canInline(value) && inline_depth_ < kMaxInline) {
    ++inline_depth_;
    block_point = scanNode(block_point);
    --inline_depth_;
    inline_.insert(node);
  } else if (isFree(node) && !inline_.contains(node) && !conditions_.contains(node)) {
    // Looked at once: constants may have thousands of uses.
    (isCondition(value) ? conditions_ : inline_).insert(node);
  }
  return block_point;
}

Node* PythonPrinter::Impl::scanNode(Node* node) {
  if (inline_.contains(node)) return node;
  for (const Block* block : node->blocks()) scanBlock(block);
  Node* block_point = previousStatement(node);
  size_t first = 0;
  const Node* receiver = node->kind() == prim::Return ? receiverOf(node->block(), first) : nullptr;
  if (receiver == nullptr) {
    for (size_t i = node->inputs().size(); i-- > 0;) {
      block_point = scanValue(block_point, node->inputs()[i]);
    }
    return block_point;
  }
  const std::vector<size_t>& order = orderOf(receiver);
  for (size_t i = order.size(); i-- > 0;) {
    block_point = scanValue(block_point, node->inputs()[first + order[i]]);
  }
  if (first != 0) block_point = scanValue(block_point, node->inputs()[0]);
  return block_point;
}

const std::vector<size_t>& PythonPrinter::Impl::orderOf(const Node* node) {
  auto [it, fresh] = orders_.try_emplace(node);
  std::vector<size_t>& order = it->second;
  if (!fresh) return order;
  std::vector<std::string> wanted;
  for (const Value* output : node->outputs()) {
    order.push_back(order.size());
    wanted.push_back(wantedName(output));
  }
  std::ranges::stable_sort(order,
                           [&](size_t a, size_t b) { return NaturalLess()(wanted[a], wanted[b]); });
  return order;
}

std::vector<Value*> PythonPrinter::Impl::inOrder(const Node* node, std::span<Value* const> values) {
  std::vector<Value*> sorted;
  for (size_t i : orderOf(node)) sorted.push_back(values[i]);
  return sorted;
}

void PythonPrinter::Impl::scanBlock(const Block* block) {
  scanNode(block->returnNode());
  for (Node* node : block->reverseNodes()) scanNode(node);
}

// Second pass -------------------------------------------------------------------------------------

void PythonPrinter::Impl::printFunction(GraphFunction& function, bool self_type) {
  const FunctionSchema& schema = function.schema();
  function.ensureDefined();
  std::shared_ptr<Graph> printed = function.graph();
  rewritten = rewritten || wick::isRewritten(*printed);
  if (!options_.own_operators && hasOwnOperators(*printed)) {
    printed = printed->copy();
    restoreOperators(*printed);
    rewritten = true;
  }
  const Graph& graph = *printed;
  generator_.clear();
  names_.clear();
  expressions_.clear();
  inline_.clear();
  conditions_.clear();
  split_up_to_.clear();
  orders_.clear();
  annotated_.clear();
  std::string header = std::string(2 * level_, ' ') + "def " + function.name() + "(";
  WICK_ASSERT(schema.arguments().size() == graph.inputs().size(),
              "{}: the schema has {} arguments, the graph {}", function.qualifiedName(),
              schema.arguments().size(), graph.inputs().size());
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const Argument& argument = schema.arguments()[i];
    const Value* parameter = graph.inputs()[i];
    std::string name = generator_.unique(argument.name);
    if (i != 0) header += ",\n    ";
    header += name;
    const auto* object = argument.type->as<ClassType>();
    const bool is_self =
        i == 0 && object && function.qualifiedName() == object->name() + "." + function.name();
    if (self_type || !is_self) {
      header += ": " + typeName(*argument.type);
      annotated_.insert(parameter);
    }
    // Calls are printed with all arguments: keyword parameters without defaults may follow.
    const bool is_last =
        std::ranges::all_of(std::span(schema.arguments()).subspan(i),
                            [](const Argument& a) { return a.default_value.has_value(); });
    if (is_last) header += "=" + constant(*argument.default_value);
    names_[parameter] = std::move(name);
  }
  raw(header + ") -> " + typeName(*schema.returns().at(0).type) + ":\n");
  printBody(graph.block());
}

void PythonPrinter::Impl::collectConstants(const Node* node, std::vector<Node*>& found,
                                           std::unordered_set<const Node*>& seen) const {
  for (const Value* input : node->inputs()) {
    // Functions of checkpoints and the like are printed where they are called.
    if (input->type()->kind() == TypeKind::Capsule) continue;
    if (input->node()->kind() == prim::Constant && seen.insert(input->node()).second) {
      found.push_back(input->node());
    }
  }
  for (const Block* block : node->blocks()) collectConstants(block, found, seen);
}

void PythonPrinter::Impl::collectConstants(const Block* block, std::vector<Node*>& found,
                                           std::unordered_set<const Node*>& seen) const {
  for (const Node* node : block->nodes()) collectConstants(node, found, seen);
  collectConstants(block->returnNode(), found, seen);
}

void PythonPrinter::Impl::printBody(const Block* body) {
  // Constants first, so that long ones get a name that every block can see.
  std::vector<Node*> found;
  std::unordered_set<const Node*> seen;
  collectConstants(body, found, seen);
  WICK_CHECK(level_ + blockDepth(*body->graph()) <= kMaxBlocks,
             "print: blocks that nest deeper than {} levels cannot be written as source",
             kMaxBlocks);
  ++level_;
  scanBlock(body);
  for (const Node* node : found) printNode(node, true);
  printBlock(body, !body->returnNode()->inputs().empty());
  printNode(body->returnNode(), true);
  --level_;
}

void PythonPrinter::Impl::printBlock(const Block* block, bool has_other_statements) {
  if (!has_other_statements && block->empty()) line("pass");
  for (const Node* node : block->nodes()) printNode(node, false);
}

void PythonPrinter::Impl::printNode(const Node* node, bool print_constants) {
  const Symbol kind = node->kind();
  if (kind == prim::Constant && !print_constants) return;
  if (kind == prim::Uninitialized) {
    if (node->output()->hasUses()) assign(node->output(), printExpression(*node, *this));
    return;
  }
  for (const Value* output : node->outputs()) noteTypes(*output->type());
  const Origin origin(*this, originNode(node));
  if (kind == prim::Return) {
    printReturn(node);
  } else if (kind == prim::If) {
    printIf(node);
  } else if (kind == prim::Loop) {
    printLoop(node);
  } else if (kind == prim::TupleUnpack || kind == prim::ListUnpack) {
    printUnpack(node);
  } else if (kind == prim::SetAttr) {
    line(fmt::format("{}.{} = {}", useOf(node->input(0)), node->ivalue(attr::name).toString(),
                     useOf(node->input(1))));
  } else if (kind == prim::fork) {
    printFork(node);
  } else if (isCheckpoint(node)) {
    printCheckpoint(node);
  } else if (kind == prim::Enter) {
    printEnter(node);
  } else if (kind == prim::Exit) {
    if (text.size() == with_starts_.back()) line("pass");
    with_starts_.pop_back();
    --level_;
  } else {
    printExpressionNode(node);
  }
}

void PythonPrinter::Impl::printReturn(const Node* node) {
  if (node->inputs().empty()) return;
  line("return " + list(node->inputs()));
}

void PythonPrinter::Impl::printExpressionNode(const Node* node) {
  std::string expression = printExpression(*node, *this);
  const bool long_constant = node->kind() == prim::Constant && isLong(expression);
  if (!inline_.contains(node) || long_constant) {
    printDefinition(node, expression);
    return;
  }
  const bool split = isLong(expression);
  assign(node->output(), std::move(expression));
  if (split) splitLongInlines(node->output());
}

void PythonPrinter::Impl::printDefinition(const Node* node, const std::string& expression) {
  const Origin origin(*this, node);
  assignUniqueNames(node->outputs());
  if (node->outputs().empty()) return line(expression);
  std::string left = list(node->outputs());
  // The type of an element taken from a module container by index is not that of the element.
  if (node->outputs().size() == 1 && node->output()->type()->kind() == TypeKind::Interface) {
    left += " : " + typeName(*node->output()->type());
  }
  line(left + " = " + expression);
}

// The trailing comma unpacks a single element.
void PythonPrinter::Impl::printUnpack(const Node* node) {
  assignUniqueNames(node->outputs());
  if (node->outputs().empty()) return line(useOf(node->input(0)));
  line(fmt::format("{}, = {}", list(node->outputs()), useOf(node->input(0))));
}

void PythonPrinter::Impl::printAssignment(std::span<Value* const> left,
                                          std::span<Value* const> right) {
  if (left.empty()) return;
  std::string targets = list(left);
  // Python has no annotations in an assignment to several names.
  if (left.size() == 1 && hasUnionType(left[0]) && annotated_.insert(left[0]).second) {
    targets += " : " + typeName(*left[0]->type());
  }
  line(targets + " = " + list(right));
}

void PythonPrinter::Impl::printAnnotatedAssignment(std::span<Value* const> left,
                                                   std::span<Value* const> right) {
  for (size_t i = 0; i < left.size(); ++i) {
    const bool annotate = hasUnionType(left[i]) ? annotated_.insert(left[i]).second
                                                : !sameType(left[i]->type(), right[i]->type());
    line(fmt::format("{}{} = {}", useOf(left[i]), annotate ? ": " + typeName(*left[i]->type()) : "",
                     useOf(right[i])));
  }
}

// Branches may give different types of a union or classes of an interface: both say what it is.
void PythonPrinter::Impl::printBranchResults(std::span<Value* const> left,
                                             std::span<Value* const> right) {
  std::vector<Value*> plain, values;
  for (size_t i = 0; i < left.size(); ++i) {
    const TypePtr& type = left[i]->type();
    if (type->kind() != TypeKind::Union && type->kind() != TypeKind::Interface) {
      plain.push_back(left[i]);
      values.push_back(right[i]);
      continue;
    }
    annotated_.insert(left[i]);
    line(fmt::format("{} : {} = {}", useOf(left[i]), typeName(*type), useOf(right[i])));
  }
  printAssignment(plain, values);
}

void PythonPrinter::Impl::printIf(const Node* node) {
  const std::vector<Value*> outputs = inOrder(node, node->outputs());
  assignUniqueNames(outputs);
  line("if " + useOf(node->input(0)) + ":");
  for (size_t i = 0; i < 2; ++i) {
    const Block* block = node->blocks()[i];
    if (i == 1) line("else:");
    ++level_;
    printBlock(block, !node->outputs().empty());
    printBranchResults(outputs, inOrder(node, block->outputs()));
    --level_;
  }
}

// What a loop carries is one variable, which is annotated where it begins.
void PythonPrinter::Impl::nameCarried(std::span<Value* const> inputs,
                                      std::span<Value* const> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    names_[inputs[i]] = useOf(outputs[i]);
    annotated_.insert(inputs[i]);
  }
}

// Neither a `for` nor a `while`: a `for` with a `break`, after its translation. Written as a
// `while` whose condition counts.
void PythonPrinter::Impl::printCountedWhile(const Node* node) {
  const Block* body = node->blocks()[0];
  const std::vector<Value*> outputs = inOrder(node, node->outputs());
  const std::vector<Value*> carried = inOrder(node, std::span(body->inputs()).subspan(1));
  const std::vector<Value*> initial = inOrder(node, std::span(node->inputs()).subspan(2));
  const std::vector<Value*> next = inOrder(node, std::span(body->outputs()).subspan(1));
  const std::span<Value* const> counter = std::span(body->inputs()).first(1);
  const std::string limit = generator_.unique("_limit");
  const std::string again = generator_.unique("_again");
  line(fmt::format("{} = {}", limit, useOf(node->input(0))));
  line(fmt::format("{} = torch.__and__(torch.gt({}, 0), {})", again, limit, useOf(node->input(1))));
  assignUniqueNames(outputs);
  nameCarried(carried, outputs);
  printAnnotatedAssignment(outputs, initial);
  assignUniqueNames(counter);
  const std::string& trip = useOf(counter[0]);
  line(fmt::format("{} = 0", trip));
  line(fmt::format("while {}:", again));
  ++level_;
  printBlock(body, true);
  // The condition first: it may read what the assignments change.
  line(fmt::format("{} = torch.__and__(torch.lt(torch.add({}, 1), {}), {})", again, trip, limit,
                   useOf(body->outputs()[0])));
  printAssignment(carried, next);
  line(fmt::format("{0} = torch.add({0}, 1)", trip));
  --level_;
}

void PythonPrinter::Impl::printLoop(const Node* node) {
  const Block* body = node->blocks()[0];
  const auto max_trips = constantOf(node->input(0));
  const auto first = constantOf(node->input(1));
  const auto next = constantOf(body->outputs()[0]);
  const bool always =
      first && next && first->isBool() && first->toBool() && next->isBool() && next->toBool();
  const bool counted = !max_trips || max_trips->toInt() != INT64_MAX;
  if (!always && counted) return printCountedWhile(node);
  const bool is_for = always && counted;
  const std::vector<Value*> outputs = inOrder(node, node->outputs());
  std::vector<Value*> carried = inOrder(node, std::span(body->inputs()).subspan(1));
  std::vector<Value*> results = inOrder(node, std::span(body->outputs()).subspan(1));
  const std::span<Value* const> counter = std::span(body->inputs()).first(1);
  assignUniqueNames(outputs);
  nameCarried(carried, outputs);
  printAnnotatedAssignment(outputs, inOrder(node, std::span(node->inputs()).subspan(2)));
  assignUniqueNames(counter);
  if (is_for) {
    line(fmt::format("for {} in range({}):", useOf(counter[0]), useOf(node->input(0))));
  } else {
    // A while loop has no use for the trip count; its name holds the condition.
    printAssignment(counter, std::span(node->inputs()).subspan(1, 1));
    line(fmt::format("while {}:", useOf(counter[0])));
    carried.insert(carried.begin(), counter[0]);
    results.insert(results.begin(), body->outputs()[0]);
  }
  ++level_;
  printBlock(body, !carried.empty());
  printAssignment(carried, results);
  --level_;
}

void PythonPrinter::Impl::printFork(const Node* node) {
  const std::string name = generator_.unique("__forked_function");
  const std::shared_ptr<Graph>& graph = node->subgraph(attr::Subgraph);
  line("def " + name + "():");
  for (size_t i = 0; i < node->inputs().size(); ++i) {
    assign(graph->inputs().at(i), useOf(node->inputs()[i]));
  }
  printBody(graph->block());
  printDefinition(node, "fork(" + name + ")");
}

// Its inputs are the part, whether random numbers are drawn again, and what the part captures.
void PythonPrinter::Impl::printCheckpoint(const Node* node) {
  const std::string name = generator_.unique("__checkpointed_function");
  const std::shared_ptr<Graph>& graph = node->subgraph(attr::Subgraph);
  line("def " + name + "():");
  for (size_t i = 2; i < node->inputs().size(); ++i) {
    assign(graph->inputs().at(i - 2), useOf(node->inputs()[i]));
  }
  printBody(graph->block());
  printDefinition(node, fmt::format("ops.wick.checkpoint({}, preserve_rng_state={})", name,
                                    useOf(node->input(1))));
}

void PythonPrinter::Impl::printEnter(const Node* node) {
  std::string statement = "with " + useOf(node->input(0));
  if (node->output()->hasUses()) {
    names_[node->output()] = uniqueNameFor(node->output());
    statement += " as " + useOf(node->output());
  }
  line(statement + ":");
  with_starts_.push_back(text.size());
  ++level_;
}

void PythonPrinter::Impl::splitLongInlines(const Value* value) {
  const Use& use = value->uses().at(0);
  std::vector<const Value*> to_split;
  scanLongInlines(use.user, static_cast<int64_t>(use.offset), to_split);
  // Found from the last argument to the first; definitions go in the order of evaluation.
  for (size_t i = to_split.size(); i-- > 0;) {
    const Value* v = to_split[i];
    std::string expression = useOf(v);
    printDefinition(v->node(), expression);
  }
}

// The arguments up to `offset` that stand inline and precede the value in evaluation: they are
// already printed as text, and naming them all keeps their order.
void PythonPrinter::Impl::scanLongInlines(const Node* user, int64_t offset,
                                          std::vector<const Value*>& to_split) {
  auto it = split_up_to_.find(user);
  const bool present = it != split_up_to_.end();
  for (int64_t i = offset; i >= (present ? it->second + 1 : 0); --i) {
    const Value* argument = user->input(static_cast<size_t>(i));
    if (isInlineExpression(argument)) to_split.push_back(argument);
  }
  split_up_to_[user] = offset;
  if (!present && inline_.contains(user)) {
    const Use& use = user->output()->uses().at(0);
    // The use itself is still being written and cannot be split.
    scanLongInlines(use.user, static_cast<int64_t>(use.offset) - 1, to_split);
  }
}

// The public face ---------------------------------------------------------------------------------

PythonPrinter::PythonPrinter(const SourceOptions& options)
    : impl_(std::make_unique<Impl>(options)) {}
PythonPrinter::~PythonPrinter() = default;

void PythonPrinter::printFunction(GraphFunction& function, bool self_type) {
  withStack(kStack, [&] { impl_->printFunction(function, self_type); });
}
void PythonPrinter::printType(const Type& type) {
  withStack(kStack, [&] { impl_->printType(type); });
}
const std::string& PythonPrinter::text() const {
  return impl_->text;
}
const std::vector<IValue>& PythonPrinter::constants() const {
  return impl_->constants.values();
}
const std::vector<TypePtr>& PythonPrinter::usedTypes() const {
  return impl_->used_types;
}
const std::vector<Function*>& PythonPrinter::usedFunctions() const {
  return impl_->used_functions;
}

std::string PythonPrinter::nameOf(const Type& type) {
  return impl_->names.of(type);
}
std::string PythonPrinter::nameOf(const Function& function) {
  return impl_->names.of(function);
}
std::string PythonPrinter::typeName(const Type& type) {
  return impl_->typeName(type);
}
const std::vector<SourceMark>& PythonPrinter::marks() const {
  return impl_->marks;
}
const std::vector<std::string>& PythonPrinter::ownOperators() const {
  return impl_->own_operators;
}
bool PythonPrinter::isRewritten() const {
  return impl_->rewritten;
}
int64_t PythonPrinter::formatVersion() const {
  return impl_->version;
}

std::string printPython(GraphFunction& function, bool self_type) {
  PythonPrinter printer;
  printer.printFunction(function, self_type);
  return printer.text();
}

}  // namespace wick
