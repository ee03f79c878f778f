// What PythonPrinter consists of; only for its own files.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/error.h"
#include "serialization/export_names.h"
#include "serialization/format_version.h"
#include "serialization/python_calls.h"
#include "serialization/python_constants.h"
#include "serialization/python_names.h"
#include "serialization/python_nodes.h"
#include "serialization/python_printer.h"

namespace wick {

// Expressions from this length on (indentation included) are broken up.
inline constexpr size_t kLongLine = 40;

class PythonPrinter::Impl : public ExpressionContext {
 public:
  explicit Impl(const SourceOptions& options) : options_(options) {}

  std::string text;
  ConstantTable constants;
  std::vector<TypePtr> used_types;
  std::vector<Function*> used_functions;
  std::vector<SourceMark> marks;
  std::vector<std::string> own_operators;
  ExportNames names;
  int64_t version = kOldestWrittenVersion;
  bool rewritten = false;

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
  SourceOptions options_;
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
  void printCheckpoint(const Node* node);
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

}  // namespace wick
