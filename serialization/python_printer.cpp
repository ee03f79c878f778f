// The printer makes two passes over a block. The first goes backwards and finds the nodes whose
// value can stand as an expression at its only use: those that come, in the order in which the
// expression would be evaluated, directly before their user. The second goes forwards and writes
// statements; a node that was found inline only records its text for the user to pick up.
#include "serialization/python_printer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "core/natural_order.h"
#include "core/stack.h"
#include "ir/depth.h"
#include "serialization/export_names.h"
#include "serialization/format_version.h"
#include "serialization/python_calls.h"
#include "serialization/python_constants.h"
#include "serialization/python_names.h"
#include "serialization/python_nodes.h"

namespace wick {
namespace {

// No more calls than this stand inside of one another, and no more blocks: what is printed must be
// importable (kMaxNesting in frontend/parser.h), and the walks below recurse.
constexpr size_t kMaxInline = 100;
constexpr size_t kMaxBlocks = 400;

// For them.
constexpr size_t kStack = (size_t{2} << 10) * (kMaxInline + 2 * kMaxBlocks) + (size_t{256} << 10);

// Expressions from this length on (indentation included) are broken up.
constexpr size_t kLongLine = 40;

}  // namespace

class PythonPrinter::Impl : public ExpressionContext {
 public:
  std::string text;
  ConstantTable constants;
  std::vector<TypePtr> used_types;
  std::vector<Function*> used_functions;
  std::vector<SourceMark> marks;
  std::vector<std::string> own_operators;
  ExportNames names;
  int64_t version = kOldestWrittenVersion;

  void printFunction(GraphFunction& function, bool self_type);
  void printType(const Type& type);

  // ExpressionContext
  const std::string& useOf(const Value* value) const override {
    if (auto it = names_.find(value); it != names_.end()) return it->second;
    if (auto it = expressions_.find(value); it != expressions_.end()) return it->second;
    throwRuntimeError("print: value %{} is used before it is printed", value->debugName());
  }
  std::string typeName(const Type& type) override {
    noteTypes(type);
    return names.annotation(type);
  }
  std::string constant(const IValue& value) override {
    return constantText(value, constants, [this](const Type& t) { return typeName(t); });
  }
  const std::string& functionName(Function* function) override {
    if (seen_functions_.insert(function).second) used_functions.push_back(function);
    return names.of(*function);
  }
  void noteOperator(const FunctionSchema& schema) override {
    version = std::max(version, formatVersionOf(schema));
    if (schema.name().starts_with("wick::") &&
        std::ranges::find(own_operators, schema.name()) == own_operators.end()) {
      own_operators.push_back(schema.name());
    }
  }

 private:
  void noteTypes(const Type& type);
  // What is written from here on comes from origin_.
  void mark() {
    if (!marks.empty() && samePlace(marks.back().range, origin_)) return;
    marks.push_back({text.size(), origin_});
  }
  static bool samePlace(const SourceRange& a, const SourceRange& b) {
    if (a.start() != b.start() || a.end() != b.end() || a.valid() != b.valid()) return false;
    if (a.source() == b.source()) return true;
    const Source &x = *a.source(), &y = *b.source();
    return x.lineNumber(0) == y.lineNumber(0) && x.name() == y.name() && x.text() == y.text();
  }
  // Constants stand before all statements and come from wherever they are used.
  static SourceRange placeOf(const Node* node) {
    return node->kind() == prim::Constant ? SourceRange() : originOf(node->range());
  }
  // While the text of a node is written.
  class Origin {
   public:
    Origin(Impl& printer, const Node* node)
        : printer_(printer), before_(std::exchange(printer.origin_, placeOf(node))) {}
    ~Origin() { printer_.origin_ = std::move(before_); }
    Origin(const Origin&) = delete;

   private:
    Impl& printer_;
    SourceRange before_;
  };
  void line(const std::string& statement) {
    mark();
    text.append(2 * level_, ' ');
    text += statement;
    text += '\n';
  }
  void raw(const std::string& piece) {
    mark();
    text += piece;
  }

  // First pass.
  bool canInline(const Value* value) const;
  Node* scanValue(Node* block_point, const Value* value);
  Node* scanNode(Node* node);
  void scanBlock(const Block* block);
  // The results of an If or Loop by name: what is compiled again has them in that order.
  const std::vector<size_t>& orderOf(const Node* node);
  std::vector<Value*> inOrder(const Node* node, std::span<Value* const> values);

  // Second pass.
  void printBody(const Block* body);
  void collectConstants(const Block* block, std::vector<Node*>& found,
                        std::unordered_set<const Node*>& seen) const;
  void collectConstants(const Node* node, std::vector<Node*>& found,
                        std::unordered_set<const Node*>& seen) const;
  void printBlock(const Block* block, bool has_other_statements);
  void printNode(const Node* node, bool print_constants);
  void printExpressionNode(const Node* node);
  void printReturn(const Node* node);
  void printUnpack(const Node* node);
  void printIf(const Node* node);
  void printLoop(const Node* node);
  void printCountedWhile(const Node* node);
  void printFork(const Node* node);
  void printEnter(const Node* node);
  void printDefinition(const Node* node, const std::string& expression);
  void printAssignment(std::span<Value* const> left, std::span<Value* const> right);
  void printBranchResults(std::span<Value* const> left, std::span<Value* const> right);
  void nameCarried(std::span<Value* const> inputs, std::span<Value* const> outputs);
  void printAnnotatedAssignment(std::span<Value* const> left, std::span<Value* const> right);
  void printClass(const ClassType& type);
  void printNamedTuple(const TupleType& type);
  void printEnum(const EnumType& type);
  void printInterface(const InterfaceType& type);

  void assign(const Value* value, std::string expression) {
    expressions_[value] = std::move(expression);
  }
  void assignUniqueNames(std::span<Value* const> values) {
    for (const Value* v : values) names_[v] = uniqueNameFor(v);
  }
  static std::string wantedName(const Value* value) {
    return value->hasDebugName() ? makeValidIdentifier(value->debugNameBase()) : "_";
  }
  std::string uniqueNameFor(const Value* value) { return generator_.unique(wantedName(value)); }
  std::string list(std::span<Value* const> values) const {
    std::string out;
    for (const Value* v : values) {
      if (!out.empty()) out += ", ";
      out += useOf(v);
    }
    return out;
  }

  // Breaking long lines.
  bool isLong(const std::string& expression) const {
    return expression.size() + 2 * level_ >= kLongLine;
  }
  bool isInlineExpression(const Value* value) const {
    return !isFree(value->node()) && inline_.contains(value->node());
  }
  void splitLongInlines(const Value* value);
  void scanLongInlines(const Node* user, int64_t offset, std::vector<const Value*>& to_split);

  size_t level_ = 0;
  SourceRange origin_;
  NameGenerator generator_;
  std::unordered_map<const Value*, std::string> names_;
  std::unordered_map<const Value*, std::string> expressions_;
  std::unordered_set<const Node*> inline_;
  std::unordered_set<const Node*> conditions_;  // constants that If nodes read
  size_t inline_depth_ = 0;
  std::unordered_map<const Node*, int64_t> split_up_to_;
  std::unordered_map<const Node*, std::vector<size_t>> orders_;
  std::unordered_set<const Value*> annotated_;
  std::vector<size_t> with_starts_;  // how long the text was where each open `with` began
  std::unordered_set<const Type*> seen_types_;
  std::unordered_set<const Function*> seen_functions_;
};

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
  if (use.user->kind() == prim::fork) return false;
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
  const Graph& graph = *function.graph();
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

// Named types -------------------------------------------------------------------------------------

void PythonPrinter::Impl::printType(const Type& type) {
  switch (type.kind()) {
    case TypeKind::Class:
      return printClass(*type.as<ClassType>());
    case TypeKind::Tuple:
      return printNamedTuple(*type.as<TupleType>());
    case TypeKind::Enum:
      return printEnum(*type.as<EnumType>());
    case TypeKind::Interface:
      return printInterface(*type.as<InterfaceType>());
    default:
      throwRuntimeError("print: {} is no class", type.str());
  }
}

namespace {

std::string lastPart(const std::string& qualified_name) {
  return qualified_name.substr(qualified_name.rfind('.') + 1);
}

}  // namespace

void PythonPrinter::Impl::printClass(const ClassType& type) {
  line(fmt::format("class {}{}:", lastPart(type.name()), type.isModule() ? "(Module)" : ""));
  ++level_;
  auto printNames = [&](const char* variable, const std::vector<std::string>& names) {
    std::string text = std::string(variable) + " = [";
    for (const std::string& name : names) text += fmt::format("\"{}\", ", name);
    line(text + "]");
  };
  if (type.isModule()) {
    std::vector<std::string> parameters, buffers, pre_hooks, hooks;
    for (const auto& a : type.attributes()) {
      if (a.is_parameter) parameters.push_back(a.name);
      if (a.is_buffer) buffers.push_back(a.name);
    }
    for (const Function* hook : type.forwardPreHooks()) pre_hooks.push_back(hook->name());
    for (const Function* hook : type.forwardHooks()) hooks.push_back(hook->name());
    printNames("__parameters__", parameters);
    printNames("__buffers__", buffers);
    if (!pre_hooks.empty()) printNames("__forward_pre_hooks__", pre_hooks);
    if (!hooks.empty()) printNames("__forward_hooks__", hooks);
  }
  for (size_t i = 0; i < type.attributes().size(); ++i) {
    const ClassType::Attribute& a = type.attributes()[i];
    if (isValidIdentifier(a.name)) {
      line(fmt::format("{} : {}", a.name, typeName(*a.type)));
    } else {
      if (i == 0) line("__annotations__ = []");
      line(fmt::format("__annotations__[\"{}\"] = {}", a.name, typeName(*a.type)));
    }
  }
  for (const ClassType::Constant& c : type.constants()) {
    line(fmt::format("{} : Final[{}] = {}", c.name, typeName(*c.value.type()), constant(c.value)));
  }
  std::set<const Function*> printed;
  for (const auto* methods : {&type.methods(), &type.forwardHooks(), &type.forwardPreHooks()}) {
    for (Function* method : *methods) {
      if (!printed.insert(method).second) continue;
      printFunction(static_cast<GraphFunction&>(*method), true);
    }
  }
  --level_;
}

void PythonPrinter::Impl::printNamedTuple(const TupleType& type) {
  WICK_CHECK(type.isNamed(), "print: {} is no class", type.str());
  line(fmt::format("class {}(NamedTuple):", lastPart(type.name())));
  ++level_;
  const size_t first_default = type.fields().size() - type.defaults().size();
  for (size_t i = 0; i < type.fields().size(); ++i) {
    std::string field = fmt::format("{} : {}", type.fields()[i], typeName(*type.contained()[i]));
    if (i >= first_default) field += "=" + constant(type.defaults()[i - first_default]);
    line(field);
  }
  if (type.fields().empty()) line("pass");
  --level_;
}

void PythonPrinter::Impl::printEnum(const EnumType& type) {
  line(fmt::format("class {}(Enum):", lastPart(type.name())));
  ++level_;
  for (const auto& [name, value] : type.members()) line(name + " = " + constant(value));
  --level_;
}

void PythonPrinter::Impl::printInterface(const InterfaceType& type) {
  line(fmt::format("class {}({}):", lastPart(type.name()),
                   type.isModule() ? "ModuleInterface" : "Interface"));
  ++level_;
  for (const auto& method : type.methods()) {
    const FunctionSchema& schema = method->schema();
    std::string header = fmt::format("def {}(self", method->name());
    for (size_t i = 1; i < schema.arguments().size(); ++i) {
      const Argument& argument = schema.arguments()[i];
      header += fmt::format(", {}: {}", argument.name, typeName(*argument.type));
    }
    line(fmt::format("{}) -> {}:", header, typeName(*schema.returns().at(0).type)));
    line("  pass");
  }
  if (type.methods().empty()) line("pass");
  --level_;
}

// The public face ---------------------------------------------------------------------------------

PythonPrinter::PythonPrinter() : impl_(std::make_unique<Impl>()) {}
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
int64_t PythonPrinter::formatVersion() const {
  return impl_->version;
}

std::string printPython(GraphFunction& function, bool self_type) {
  PythonPrinter printer;
  printer.printFunction(function, self_type);
  return printer.text();
}

}  // namespace wick
