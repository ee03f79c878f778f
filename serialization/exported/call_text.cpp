#include "serialization/exported/call_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "core/ivalue.h"
#include "serialization/exported/guard_text.h"
#include "serialization/exported/size_expression.h"
#include "serialization/exported/tree_spec.h"
#include "serialization/python_names.h"

namespace wick::exported {
namespace {

constexpr const char* kIndent = "    ";
constexpr uint64_t kMaxCallText = uint64_t{4} << 20;

bool isResult(const OutputSpec& output) {
  return output.kind == OutputSpec::Kind::User || output.kind == OutputSpec::Kind::Loss;
}

bool isGradient(const OutputSpec& output) {
  return output.kind == OutputSpec::Kind::ParameterGradient ||
         output.kind == OutputSpec::Kind::InputGradient;
}

std::string typeOf(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::Int:
    case OperandKind::SymInt:
      return "int";
    case OperandKind::Float:
    case OperandKind::SymFloat:
      return "float";
    case OperandKind::Bool:
    case OperandKind::SymBool:
      return "bool";
    case OperandKind::String:
      return "str";
    case OperandKind::None:
      return "Optional[Tensor]";
    default:
      return "Tensor";
  }
}

std::string constantText(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::Int:
      return fmt::format("{}", operand.integer);
    case OperandKind::Float:
      return IValue(operand.real).repr();
    case OperandKind::Bool:
      return operand.integer != 0 ? "True" : "False";
    case OperandKind::String:
      return quoteString(operand.text);
    default:
      return "None";
  }
}

// The type of a list's or dict's elements.
std::string commonType(const std::vector<std::string>& types) {
  constexpr std::string_view kNone = "Optional[Tensor]";
  std::string common;
  bool has_none = false;
  for (const std::string& type : types) {
    if (type == kNone) {
      has_none = true;
    } else if (common.empty()) {
      common = type;
    } else if (common != type) {
      return "Any";
    }
  }
  if (common.empty()) return has_none ? std::string(kNone) : "Tensor";
  return has_none ? fmt::format("Optional[{}]", common) : common;
}

std::string join(const std::vector<std::string>& parts) {
  return fmt::format("{}", fmt::join(parts, ", "));
}

// The memory and length that the text may have. Keys and types stand in it as often as there are leaves below them.
class TextLimit {
 public:
  TextLimit(const std::string& name, LoadBudget& budget) : name_(name), budget_(budget) {}

  // Counts bytes that are about to be written. Throws LoadError when they are too many.
  void count(uint64_t bytes) {
    count_ += bytes;
    if (count_ <= kMaxCallText && budget_.take(bytes)) return;
    throwLoadError("{}: names, types and conditions of arguments and results take too much text",
                   name_);
  }
  const std::string& name() const { return name_; }

 private:
  const std::string& name_;
  LoadBudget& budget_;
  uint64_t count_ = 0;
};

// The type of each part of a tree.
class TreeTypes {
 public:
  // Leaves are those of the tree, in their order.
  TreeTypes(const Tree& tree, const std::vector<const Operand*>& leaves, TextLimit& limit)
      : leaves_(leaves), limit_(limit) {
    add(tree);
  }

  const std::string& of(const Tree& tree) const { return types_.at(&tree); }
  // Whether elements of the list or dict have several types.
  bool isMixed(const Tree& tree) const { return of(tree).ends_with("Any]"); }

 private:
  const std::string& add(const Tree& tree) {
    std::vector<std::string> types;
    for (const Tree& child : tree.children) types.push_back(add(child));
    std::string& out = types_[&tree];
    switch (tree.kind) {
      case Tree::Kind::Leaf:
        out = typeOf(*leaves_[next_++]);
        break;
      case Tree::Kind::List:
        out = fmt::format("List[{}]", commonType(types));
        break;
      case Tree::Kind::Dict:
        out = fmt::format("Dict[{}, {}]", tree.integer_keys ? "int" : "str", commonType(types));
        break;
      default:
        out = types.empty() ? "Tuple[()]" : fmt::format("Tuple[{}]", join(types));
    }
    limit_.count(out.size());
    return out;
  }

  const std::vector<const Operand*>& leaves_;
  TextLimit& limit_;
  size_t next_ = 0;
  KeyedMap<const Tree*, std::string> types_;
};

// Statements that take the leaves out of arguments and check them.
class ArgumentText {
 public:
  ArgumentText(const ProgramRecord& program, NameGenerator& names, TextLimit& limit)
      : program_(program), names_(names), limit_(limit) {
    for (const auto& [symbol, range] : program.ranges) ranges_[symbol] = range;
    for (const InputSpec& input : program.inputs) {
      if (input.kind == InputSpec::Kind::User || input.kind == InputSpec::Kind::Constant) {
        specs_.push_back(&input);
        leaves.push_back(&input.value);
      }
    }
  }

  // The types of the tree whose parts unpack() is called with.
  void setTypes(const TreeTypes& types) { types_ = &types; }

  // The argument is what `name` names; `path` is what messages call it.
  void unpack(const Tree& tree, const std::string& name, const std::string& path, bool is_any) {
    if (is_any) {
      const std::string& type = types_->of(tree);
      check(fmt::format("not isinstance({}, {})", name, type),
            fmt::format("Expected input at {} to be of type {}", path, type));
    }
    switch (tree.kind) {
      case Tree::Kind::Leaf:
        leaf(name, path);
        break;
      case Tree::Kind::Tuple:
      case Tree::Kind::NamedTuple:
        for (size_t i = 0; i < tree.children.size(); ++i) {
          part(tree.children[i], fmt::format("{}[{}]", name, i), fmt::format("{}[{}]", path, i),
               false);
        }
        break;
      case Tree::Kind::List:
        checkLength(tree, name, path);
        for (size_t i = 0; i < tree.children.size(); ++i) {
          part(tree.children[i], fmt::format("{}[{}]", name, i), fmt::format("{}[{}]", path, i),
               types_->isMixed(tree));
        }
        break;
      case Tree::Kind::Dict:
        checkLength(tree, name, path);
        for (size_t i = 0; i < tree.children.size(); ++i) {
          const std::string key = tree.integer_keys ? tree.keys[i] : quoteString(tree.keys[i]);
          const std::string part_path = fmt::format("{}[{}]", path, key);
          check(fmt::format("{} not in {}", key, name),
                fmt::format("Expected an input at {}, but the dict has no such key", part_path));
          part(tree.children[i], fmt::format("{}[{}]", name, key), part_path,
               types_->isMixed(tree));
        }
        break;
    }
  }

  // Checks the sizes that had symbols of later arguments. Throws LoadError for symbols that no size tells.
  void finishSizes() {
    // Programs need one round or two; each takes as long as there are sizes.
    constexpr int kMostRounds = 16;
    for (int round = 0; round < kMostRounds && !postponed_.empty(); ++round) {
      std::erase_if(postponed_, [&](const SymbolicSize& size) { return checkSymbolic(size); });
    }
    if (postponed_.empty()) return;
    failAtSize(postponed_[0].text, postponed_[0].path,
               "cannot be checked, for no other size tells its symbols");
  }

  // The conditions that the program was exported under.
  void addGuards(const GuardVariable& parameter) {
    for (const std::string& guard : program_.guards) {
      const std::optional<std::string> text =
          guardText(guard, [&](const GuardPath& path) { return variableOf(path, parameter); });
      if (!text) {
        throwLoadError("{}: the condition '{}' is not understood", limit_.name(),
                       guard.substr(0, 200));
      }
      check(fmt::format("not ({})", *text), "Guard failed: " + guard);
    }
  }

  std::string text;
  std::vector<std::string> inputs;  // expressions of the graph's inputs
  std::vector<const Operand*> leaves;

 private:
  void line(const std::string& statement) {
    limit_.count(statement.size());
    text += kIndent + statement + "\n";
  }

  void check(const std::string& failure, const std::string& message) {
    line(fmt::format("if {}:", failure));
    line(fmt::format("{}raise RuntimeError({})", kIndent, quoteString(message)));
  }

  // The message ends with the number that was found.
  void checkNumber(const std::string& failure, const std::string& message,
                   const std::string& found) {
    line(fmt::format("if {}:", failure));
    line(fmt::format("{}raise RuntimeError({} + str({}))", kIndent,
                     quoteString(message + ", but got "), found));
  }

  void checkLength(const Tree& tree, const std::string& name, const std::string& path) {
    checkNumber(fmt::format("len({}) != {}", name, tree.children.size()),
                fmt::format("Expected input at {} to have {} elements", path, tree.children.size()),
                fmt::format("len({})", name));
  }

  void part(const Tree& tree, const std::string& expression, const std::string& path, bool is_any) {
    const std::string name = names_.unique("_value");
    limit_.count(path.size());
    line(fmt::format("{} = {}", name, expression));
    unpack(tree, name, path, is_any);
  }

  // The parameter, or the part of one, that the path of a guard means.
  std::optional<std::string> variableOf(const GuardPath& path,
                                        const GuardVariable& parameter) const {
    if (path.steps.empty()) return std::nullopt;
    // *args are parameters of their own, args_0 and so on; **kwargs have their own names.
    for (const size_t taken : {size_t{1}, size_t{2}}) {
      if (path.steps.size() < taken) break;
      GuardPath begin;
      begin.steps.assign(path.steps.begin(),
                         path.steps.begin() + static_cast<std::ptrdiff_t>(taken));
      std::optional<std::string> name = parameter(begin);
      if (!name) continue;
      std::string key = *name;
      for (size_t i = taken; i < path.steps.size(); ++i) {
        const bool is_index =
            std::ranges::all_of(path.steps[i], [](char c) { return c >= '0' && c <= '9'; });
        key += fmt::format("[{}]", is_index ? path.steps[i] : quoteString(path.steps[i]));
      }
      const auto found = variables_.find(key);
      if (found != variables_.end()) return found->second;
    }
    return std::nullopt;
  }

  void leaf(const std::string& name, const std::string& path) {
    variables_[path] = name;
    const InputSpec& spec = *specs_[next_++];
    const Operand& operand = spec.value;
    if (spec.kind == InputSpec::Kind::User && operand.isName()) {
      inputs.push_back(name);
      if (operand.kind == OperandKind::Tensor) {
        const auto found = program_.graph.tensors.find(operand.text);
        if (found != program_.graph.tensors.end()) checkSizes(found->second, name, path);
      } else if (operand.kind == OperandKind::SymInt) {
        const auto found = program_.graph.integers.find(operand.text);
        if (found != program_.graph.integers.end()) checkSize(found->second, name, path);
      }
      return;
    }
    if (operand.kind == OperandKind::None) {
      check(fmt::format("{} is not None", name),
            fmt::format("Expected input at {} to be None", path));
    } else {
      const std::string value = constantText(operand);
      checkNumber(fmt::format("{} != {}", name, value),
                  fmt::format("Expected input at {} to be equal to {}", path, value), name);
    }
  }

  void checkSizes(const TensorMeta& meta, const std::string& name, const std::string& path) {
    checkNumber(fmt::format("{}.dim() != {}", name, meta.sizes.size()),
                fmt::format("Expected input at {} to have {} dimensions", path, meta.sizes.size()),
                fmt::format("{}.dim()", name));
    for (size_t i = 0; i < meta.sizes.size(); ++i) {
      const std::string size = fmt::format("{}.size({})", name, i);
      checkSize(meta.sizes[i], size, fmt::format("{}.shape[{}]", path, i));
    }
  }

  // A size of an argument that the program states with symbols.
  struct SymbolicSize {
    SizeExpression stated;
    std::string text;        // as the file has it
    std::string expression;  // of the size in the call
    std::string path;        // in messages
  };

  // A size that a number or an expression of the program states.
  void checkSize(const Size& size, const std::string& expression, const std::string& path) {
    if (size.number) {
      checkNumber(fmt::format("{} != {}", expression, *size.number),
                  fmt::format("Expected input at {} to be equal to {}", path, *size.number),
                  expression);
      return;
    }
    auto parsed = parseSizeExpression(size.expression);
    if (!parsed) failAtSize(size.expression, path, "is an expression that is not known here");
    const SymbolicSize symbolic{std::move(*parsed), size.expression, expression, path};
    // Symbols of later arguments are not known yet.
    if (!checkSymbolic(symbolic)) postponed_.push_back(symbolic);
  }

  // Writes the check of a size, and notes what it tells of a symbol. False when it has symbols that nothing tells yet.
  bool checkSymbolic(const SymbolicSize& size) {
    std::vector<std::string> unknown;
    for (const std::string& symbol : size.stated.symbols()) {
      if (!symbols_.contains(symbol)) unknown.push_back(symbol);
    }
    if (unknown.empty()) {
      const std::string wanted = size.stated.text(symbols_);
      line(fmt::format("if {} != {}:", size.expression, wanted));
      line(fmt::format("{}raise RuntimeError({} + str({}) + {} + str({}))", kIndent,
                       quoteString(fmt::format("Expected input at {} to be equal to ", size.path)),
                       wanted, quoteString(", but got "), size.expression));
      return true;
    }
    if (unknown.size() > 1) return false;
    if (size.stated.kind == SizeExpression::Kind::Symbol) {
      defineSymbol(unknown[0], size.expression, size.path);
      return true;
    }
    // a·s + b
    const auto linear = size.stated.linearIn(unknown[0]);
    if (!linear || linear->first == 0) return false;
    const auto [factor, rest] = *linear;
    checkNumber(fmt::format("({} - {}) % {} != 0", size.expression, rest, factor),
                fmt::format("Expected input at {} to be of the form {}*{} + {}", size.path, factor,
                            unknown[0], rest),
                size.expression);
    defineSymbol(unknown[0], fmt::format("({} - {}) // {}", size.expression, rest, factor),
                 size.path);
    return true;
  }

  [[noreturn]] void failAtSize(const std::string& expression, const std::string& path,
                               const char* why) const {
    throwLoadError("{}: the size of the input at {} {}: {}", limit_.name(), path.substr(0, 200),
                   why, expression.substr(0, 200));
  }

  void defineSymbol(const std::string& symbol, const std::string& expression,
                    const std::string& path) {
    const std::string name = names_.unique("_" + makeValidIdentifier(symbol));
    line(fmt::format("{} = {}", name, expression));
    symbols_[symbol] = name;
    const auto range = ranges_.find(symbol);
    if (range == ranges_.end()) return;
    // Sizes 0 and 1 are allowed where 2 is the least: export leaves them out only because their graphs may differ.
    if (range->second.least && *range->second.least > 2) {
      checkNumber(fmt::format("{} < {}", name, *range->second.least),
                  fmt::format("Expected input at {} to be >= {}", path, *range->second.least),
                  name);
    }
    if (range->second.most) {
      checkNumber(fmt::format("{} > {}", name, *range->second.most),
                  fmt::format("Expected input at {} to be <= {}", path, *range->second.most), name);
    }
  }

  const ProgramRecord& program_;
  NameGenerator& names_;
  TextLimit& limit_;
  KeyedMap<std::string, SizeRange> ranges_;  // by symbol
  std::vector<const InputSpec*> specs_;
  size_t next_ = 0;
  KeyedMap<std::string, std::string> symbols_;    // variables that hold them
  KeyedMap<std::string, std::string> variables_;  // of leaves, by their paths
  std::vector<SymbolicSize> postponed_;
  const TreeTypes* types_ = nullptr;
};

// The expression of a result.
class ResultText {
 public:
  ResultText(const std::vector<const Operand*>& leaves, const std::string& outputs,
             NameGenerator& names, TextLimit& limit)
      : leaves_(leaves), outputs_(outputs), names_(names), limit_(limit) {}

  struct Part {
    std::string expression;
    std::string type;
  };

  Part part(const Tree& tree) {
    Part out = tree.kind == Tree::Kind::Leaf ? leaf() : node(tree);
    limit_.count(out.expression.size() + out.type.size());
    return out;
  }

  std::string statements;
  std::string classes;

 private:
  Part node(const Tree& tree) {
    std::vector<std::string> values;
    std::vector<std::string> types;
    for (const Tree& child : tree.children) {
      Part made = part(child);
      values.push_back(std::move(made.expression));
      types.push_back(std::move(made.type));
    }
    switch (tree.kind) {
      case Tree::Kind::List:
        return typed(fmt::format("[{}]", join(values)), fmt::format("List[{}]", commonType(types)));
      case Tree::Kind::Dict: {
        for (size_t i = 0; i < values.size(); ++i) {
          const std::string key = tree.integer_keys ? tree.keys[i] : quoteString(tree.keys[i]);
          values[i] = fmt::format("{}: {}", key, values[i]);
        }
        return typed(
            fmt::format("{{{}}}", join(values)),
            fmt::format("Dict[{}, {}]", tree.integer_keys ? "int" : "str", commonType(types)));
      }
      case Tree::Kind::NamedTuple:
        return namedTuple(tree, values, types);
      default:
        if (values.empty()) return {"()", "Tuple[()]"};
        return {fmt::format("({},)", join(values)), fmt::format("Tuple[{}]", join(types))};
    }
  }

  Part leaf() {
    const Operand& operand = *leaves_[next_++];
    if (!operand.isName()) return {constantText(operand), typeOf(operand)};
    return {fmt::format("{}[{}]", outputs_, named_++), typeOf(operand)};
  }

  Part typed(const std::string& expression, const std::string& type) {
    const std::string name = names_.unique("_part");
    statements += fmt::format("{}{}: {} = {}\n", kIndent, name, type, expression);
    return {name, type};
  }

  Part namedTuple(const Tree& tree, const std::vector<std::string>& values,
                  const std::vector<std::string>& types) {
    const size_t dot = tree.type.find_last_of(".:");
    const std::string name = names_.unique(makeValidIdentifier(
        dot == std::string::npos ? tree.type : std::string_view(tree.type).substr(dot + 1)));
    classes += fmt::format("class {}(NamedTuple):\n", name);
    NameGenerator fields;
    for (size_t i = 0; i < values.size(); ++i) {
      classes += fmt::format("{}{}: {}\n", kIndent,
                             fields.unique(makeValidIdentifier(tree.keys[i])), types[i]);
    }
    if (values.empty()) return {"()", "Tuple[()]"};
    return {fmt::format("{}({})", name, join(values)), name};
  }

  const std::vector<const Operand*>& leaves_;
  const std::string outputs_;
  NameGenerator& names_;
  TextLimit& limit_;
  size_t next_ = 0;   // among the leaves
  size_t named_ = 0;  // among the graph's outputs
};

class CallWriter {
 public:
  CallWriter(const ProgramRecord& program, const std::string& name, LoadBudget& budget)
      : program_(program),
        name_(name),
        budget_(budget),
        limit_(name, budget),
        arguments_(program, names_, limit_) {}

  CallText write() {
    names_.unique("self");
    const std::string parameters = writeArguments();
    std::vector<const Operand*> results;
    bool has_gradients = false;
    for (const OutputSpec& output : program_.outputs) {
      if (isResult(output)) results.push_back(&output.value);
      has_gradients = has_gradients || isGradient(output);
    }
    const std::string outputs = names_.unique("_outputs");
    const std::string begin =
        arguments_.text + fmt::format("{}{} = self.{}({})\n", kIndent, outputs, kComputation,
                                      join(arguments_.inputs));
    ResultText result(results, outputs, names_, limit_);
    const ResultText::Part part = result.part(resultTree(results.size()));
    CallText out;
    out.classes = result.classes;
    out.methods = fmt::format("def forward({}):\n{}{}{}return {}\n", parameters, begin,
                              result.statements, kIndent, part.expression);
    if (has_gradients) {
      out.methods +=
          fmt::format("def forward_and_gradients({}):\n{}{}{}return {}, {}\n", parameters, begin,
                      result.statements, kIndent, part.expression, gradients(outputs));
    }
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& message) const {
    throwLoadError("{}: {}", name_, message);
  }

  static Tree flat(size_t count) {
    Tree tree;
    tree.kind = Tree::Kind::Tuple;
    tree.children.resize(count);
    return tree;
  }

  Tree resultTree(size_t count) const {
    if (program_.result_tree.empty()) return count == 1 ? Tree() : flat(count);
    Tree tree = parseTree(program_.result_tree, name_ + ": the tree of results",
                          program_.named_tuple_fields, budget_);
    if (tree.countLeaves() != count) {
      fail(fmt::format("the tree of results has {} leaves, and the graph gives {}",
                       tree.countLeaves(), count));
    }
    return tree;
  }

  // A tuple of positional arguments and a dict of others.
  Tree argumentTree(size_t count) const {
    if (program_.argument_tree.empty()) {
      Tree tree = flat(2);
      tree.children[0] = flat(count);
      tree.children[1].kind = Tree::Kind::Dict;
      return tree;
    }
    Tree tree = parseTree(program_.argument_tree, name_ + ": the tree of arguments",
                          program_.named_tuple_fields, budget_);
    if (tree.kind != Tree::Kind::Tuple || tree.children.size() != 2 ||
        tree.children[0].kind != Tree::Kind::Tuple || tree.children[1].kind != Tree::Kind::Dict ||
        tree.children[1].integer_keys) {
      fail(
          "the tree of arguments is no tuple of arguments by position and a dict of those by name");
    }
    if (tree.countLeaves() != count) {
      fail(fmt::format("the tree of arguments has {} leaves, and the graph takes {}",
                       tree.countLeaves(), count));
    }
    return tree;
  }

  // Returns the list of parameters; the text that takes them apart is in arguments_.
  std::string writeArguments() {
    const Tree tree = argumentTree(arguments_.leaves.size());
    struct Parameter {
      const Tree* tree;
      std::string original;  // the name in Python
      std::string name;
      std::string text;
    };
    std::vector<Parameter> parameters;
    const TreeTypes types(tree, arguments_.leaves, limit_);
    arguments_.setTypes(types);
    size_t leaf = 0;
    const auto add = [&](const Tree& argument, const std::string& name) {
      const std::string unique = names_.unique(makeValidIdentifier(name));
      std::string text = fmt::format("{}: {}", unique, types.of(argument));
      if (argument.kind == Tree::Kind::Leaf && !arguments_.leaves[leaf]->isName()) {
        text += " = " + constantText(*arguments_.leaves[leaf]);
      }
      leaf += argument.countLeaves();
      parameters.push_back({&argument, name, unique, std::move(text)});
    };
    const std::vector<Tree>& by_position = tree.children[0].children;
    for (size_t i = 0; i < by_position.size(); ++i) {
      add(by_position[i], i < program_.argument_names.size() ? program_.argument_names[i]
                                                             : fmt::format("arg_{}", i));
    }
    for (size_t i = 0; i < tree.children[1].children.size(); ++i) {
      add(tree.children[1].children[i], tree.children[1].keys[i]);
    }
    // Only arguments behind which all others have a default may have one.
    bool keeps = true;
    for (auto it = parameters.rbegin(); it != parameters.rend(); ++it) {
      const size_t equals = it->text.find(" = ");
      if (equals == std::string::npos) keeps = false;
      if (!keeps) it->text = it->text.substr(0, equals);
    }
    std::string list = "self";
    for (const Parameter& parameter : parameters) {
      list += ", " + parameter.text;
      arguments_.unpack(*parameter.tree, parameter.name, parameter.name, false);
    }
    arguments_.finishSizes();
    KeyedMap<std::string, std::string> by_original;
    for (const Parameter& parameter : parameters) {
      by_original.try_emplace(parameter.original, parameter.name);
    }
    arguments_.addGuards([&](const GuardPath& path) -> std::optional<std::string> {
      const bool is_one = path.steps.size() == 1;
      auto found = by_original.find(is_one ? path.steps[0] : path.steps[0] + "_" + path.steps[1]);
      if (found == by_original.end() && !is_one) found = by_original.find(path.steps[1]);
      return found == by_original.end() ? std::nullopt : std::optional(found->second);
    });
    return list;
  }

  // A dict of gradients by the names of parameters and inputs.
  std::string gradients(const std::string& outputs) const {
    std::vector<std::string> entries;
    size_t index = 0;
    for (const OutputSpec& output : program_.outputs) {
      if (isResult(output) && output.value.isName()) ++index;
    }
    for (const OutputSpec& output : program_.outputs) {
      if (!isGradient(output)) continue;
      entries.push_back(fmt::format("{}: {}[{}]", quoteString(output.target), outputs, index++));
    }
    return fmt::format("{{{}}}", join(entries));
  }

  const ProgramRecord& program_;
  const std::string& name_;
  LoadBudget& budget_;
  NameGenerator names_;
  TextLimit limit_;
  ArgumentText arguments_;
};

}  // namespace

CallText makeCallText(const ProgramRecord& program, const std::string& name, LoadBudget& budget) {
  return CallWriter(program, name, budget).write();
}

}  // namespace wick::exported
