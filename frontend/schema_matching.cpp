#include "frontend/schema_matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "core/error.h"
#include "core/suggestions.h"
#include "frontend/builtin_functions.h"

namespace wick {

namespace {

TypePtr withoutOptional(const TypePtr& type) {
  const auto* optional = type->as<OptionalType>();
  return optional ? optional->element() : type;
}

bool isTensor(const TypePtr& type) {
  return type->kind() == TypeKind::Tensor;
}

// Whether every element of the tuple fits into the list.
bool convertibleToList(const TypePtr& type, const TypePtr& list_type) {
  const auto* list = list_type->as<ListType>();
  const auto* tuple = type->as<TupleType>();
  if (!list || !tuple) return false;
  for (const TypePtr& t : tuple->contained()) {
    if (!t->isSubtypeOf(*list->element())) return false;
  }
  return true;
}

std::vector<Value*> unpackTuple(Graph& graph, Value* tuple) {
  return graph.insertNode(graph.createTupleUnpack(tuple))->outputs();
}

Value* insertUnary(Graph& graph, Symbol kind, Value* input, const TypePtr& type) {
  Node* n = graph.insertNode(graph.create(kind, {input}));
  return n->output()->setType(type);
}

// A tensor of one element where a number is wanted.
Value* implicitTensorToNumber(Graph& graph, const TypePtr& type, Value* value) {
  switch (type->kind()) {
    case TypeKind::Int:
      return insertUnary(graph, Symbol::aten("IntImplicit"), value, type);
    case TypeKind::Float:
      return insertUnary(graph, Symbol::aten("FloatImplicit"), value, type);
    case TypeKind::Complex:
      return insertUnary(graph, Symbol::aten("ComplexImplicit"), value, type);
    case TypeKind::Number:
      return insertUnary(graph, Symbol::aten("ScalarImplicit"), value, type);
    default:
      return value;
  }
}

Value* implicitNumberTo(Graph& graph, const TypePtr& type, Value* value) {
  switch (type->kind()) {
    case TypeKind::Int:
      return insertUnary(graph, aten::Int, value, type);
    case TypeKind::Float:
      return insertUnary(graph, aten::Float, value, type);
    case TypeKind::Complex:
      return insertUnary(graph, aten::Complex, value, type);
    default:
      return value;
  }
}

// An empty list literal whose element type nobody has stated yet.
bool isEmptyListLiteral(const Value* value) {
  const Node* n = value->node();
  return n->kind() == prim::ListConstruct && n->inputs().empty() &&
         n->hasAttribute(Symbol::attr("empty_literal"));
}

constexpr const char* kEmptyListHint =
    "\nEmpty lists default to List[Tensor]. Annotate the variable to create an empty list of "
    "another type";

bool isTensorList(const TypePtr& type) {
  const auto* list = type->as<ListType>();
  return list && isTensor(list->element());
}

// Why a schema does not fit, and how well its arguments did: two points for each, one for those
// that would have been converted.
struct Failure {
  size_t fitted;
  std::string text;
};
using Failures = std::vector<Failure>;

// The candidates that came closest are the first.
std::string describe(Failures failures) {
  std::ranges::stable_sort(failures, std::greater<>(), &Failure::fitted);
  std::string out;
  for (const Failure& f : failures) out += f.text;
  return out;
}

// One attempt to fit a call to a schema.
class Matcher {
 public:
  Matcher(const FunctionSchema& schema, const SourceRange& range, Graph& graph,
          const std::vector<NamedValue>& args, const std::vector<NamedValue>& kwargs,
          const std::optional<NamedValue>& self, bool allow_conversions, Failures* failures)
      : schema_(schema),
        range_(range),
        graph_(graph),
        args_(args),
        kwargs_(kwargs),
        self_(self),
        allow_conversions_(allow_conversions),
        failures_(failures) {}

  std::optional<MatchedSchema> run() {
    used_kwargs_.assign(kwargs_.size(), false);
    MatchedSchema out;
    for (size_t i = 0; i < schema_.arguments().size(); ++i) {
      Value* value = fill(i);
      if (!value) return std::nullopt;
      out.inputs.push_back(value);
      has_tensor_list_ = has_tensor_list_ || isTensorList(value->type());
      fitted_ += std::exchange(converted_, false) ? 1 : 2;
    }
    if (self_) return fail("Provided self argument not used in schema.");
    if (schema_.isVararg()) {
      for (; used_args_ < args_.size(); ++used_args_) out.inputs.push_back(args_[used_args_].value);
    }
    if (used_args_ < args_.size()) {
      return fail(fmt::format("Expected at most {} argument{} but found {} positional argument{}.",
                              used_args_, used_args_ == 1 ? "" : "s", args_.size(),
                              args_.size() == 1 ? "" : "s"));
    }
    for (size_t i = 0; i < kwargs_.size(); ++i) {
      if (used_kwargs_[i]) continue;
      if (schema_.argumentIndex(parameterOf(kwargs_[i]))) {
        return fail(fmt::format("Argument {} specified twice.", *kwargs_[i].name));
      }
      return fail("K" + unknownKeyword(*kwargs_[i].name).substr(1));
    }
    size_t named = 0;
    for (const Argument& r : schema_.returns()) {
      auto type = substituteTypeVariables(r.type, bindings_);
      if (!type)
        return fail(fmt::format("The result type {} is not determined.", r.type->annotation()));
      out.return_types.push_back(*type);
      out.return_names.push_back(r.name);
      named += r.name.empty() ? 0 : 1;
    }
    if (named != out.return_names.size()) out.return_names.clear();
    return out;
  }

 private:
  std::nullopt_t fail(const std::string& reason) {
    if (failures_) {
      failures_->push_back({fitted_, fmt::format("\n{}:\n{}\n", schema_.str(), reason)});
    }
    return std::nullopt;
  }

  // Operators call `self` what programs may call `input` as well.
  const std::string& parameterOf(const NamedValue& keyword) const {
    static const std::string kSelf = "self";
    const std::string& name = *keyword.name;
    const bool is_alias =
        name == "input" && !schema_.argumentIndex(name) && schema_.name().starts_with("aten::");
    return is_alias ? kSelf : name;
  }

  std::string unknownKeyword(const std::string& name) const {
    std::set<std::string> names;
    for (const Argument& argument : schema_.arguments()) names.insert(argument.name);
    std::string hint = didYouMean(name, names);
    return fmt::format("keyword argument {} unknown{}", name, hint.empty() ? "." : hint);
  }

  Value* fill(size_t index) {
    const Argument& argument = schema_.arguments()[index];
    if (argument.name == "self" && self_) {
      NamedValue self = *self_;
      self_.reset();
      return fit(argument, self.value);
    }
    if (!argument.kwarg_only && used_args_ < args_.size()) {
      if (takesRestAsList(index)) {
        const TypePtr& actual = args_[used_args_].type();
        const TypePtr& list = argument.type;
        if (actual->kind() != TypeKind::List && !convertibleToList(actual, list)) {
          return listOfRest(argument, list->as<ListType>()->element());
        }
      }
      return fit(argument, args_[used_args_++].value);
    }
    if (const std::optional<size_t> i = keywordFor(argument.name)) {
      used_kwargs_[*i] = true;
      return fit(argument, kwargs_[*i].value);
    }
    if (argument.default_value) return insertDefault(argument);
    if (!failures_) return nullptr;
    KeyedSet<std::string_view> known;
    for (const Argument& a : schema_.arguments()) known.insert(a.name);
    const std::string* unknown = nullptr;
    for (const NamedValue& v : kwargs_) {
      if (!known.contains(parameterOf(v))) unknown = &*v.name;
    }
    fail(fmt::format("Argument {} not provided{}", argument.name,
                     unknown ? "; " + unknownKeyword(*unknown) : "."));
    return nullptr;
  }

  // The first keyword argument for this parameter.
  std::optional<size_t> keywordFor(const std::string& parameter) {
    constexpr size_t kMany = 8;
    if (kwargs_.size() < kMany) {
      for (size_t i = 0; i < kwargs_.size(); ++i) {
        if (parameterOf(kwargs_[i]) == parameter) return i;
      }
      return std::nullopt;
    }
    if (keywords_.empty()) {
      for (size_t i = 0; i < kwargs_.size(); ++i) keywords_.emplace(parameterOf(kwargs_[i]), i);
    }
    const auto found = keywords_.find(parameter);
    if (found == keywords_.end()) return std::nullopt;
    return found->second;
  }

  Value* insertDefault(const Argument& argument) {
    const IValue& value = *argument.default_value;
    if (value.isNone()) return graph_.insertConstant(IValue(), types::None());
    TypePtr type = withoutOptional(argument.type);
    switch (type->kind()) {
      case TypeKind::Float:
        if (value.isInt()) return graph_.insertConstant(IValue(value.numberToDouble()));
        break;
      case TypeKind::List:
        if (value.isInt() || value.isDouble() || value.isBool()) {
          // int[2] padding=0
          size_t n = static_cast<size_t>(argument.fixed_size.value_or(1));
          return graph_.insertConstant(
              IValue(makeList(type->as<ListType>()->element(), std::vector<IValue>(n, value))),
              type);
        }
        return graph_.insertConstant(value, type);
      case TypeKind::Dict:
        return graph_.insertConstant(value, type);
      default:
        break;
    }
    return graph_.insertConstant(value);
  }

  // f(1, 2, 3) for f(int[] sizes): only the last positional argument, and not one for which a
  // single value already stands for a list.
  bool takesRestAsList(size_t index) const {
    const auto& arguments = schema_.arguments();
    const Argument& argument = arguments[index];
    bool last = index + 1 == arguments.size() || arguments[index + 1].kwarg_only;
    const auto* list = argument.type->as<ListType>();
    if (!last || !list || argument.fixed_size) return false;
    // Sizes are so often written one by one that view(6) means them at once, though its overload
    // for dtypes would take the int without any conversion.
    return allow_conversions_ ? list->element()->kind() != TypeKind::Var
                              : list->element()->kind() == TypeKind::Int;
  }

  Value* listOfRest(const Argument& argument, const TypePtr& element) {
    Argument each = argument;
    each.type = element;
    each.fixed_size.reset();
    std::vector<Value*> elements;
    // For a single value that is not an element, messages say that a list is expected.
    if (args_.size() - used_args_ == 1) shown_type_ = argument.type;
    for (; used_args_ < args_.size(); ++used_args_) {
      Value* v = fit(each, args_[used_args_].value);
      if (!v) return nullptr;
      elements.push_back(v);
    }
    shown_type_ = nullptr;
    return graph_.insertNode(graph_.createList(element, elements))->output();
  }

  // A single number for int[2]: repeated.
  bool isRepeated(const Argument& argument, const Value* value) const {
    if (!argument.fixed_size) return false;
    TypePtr type = withoutOptional(argument.type);
    const auto* list = type->as<ListType>();
    if (!list) return false;
    TypeKind kind = value->type()->kind();
    if (kind != TypeKind::Int && kind != TypeKind::Float && kind != TypeKind::Bool) return false;
    return *value->type() == *list->element();
  }

  Value* fit(const Argument& argument, Value* value) {
    if (isRepeated(argument, value)) {
      std::vector<Value*> repeated(static_cast<size_t>(*argument.fixed_size), value);
      value = graph_.insertNode(graph_.createList(value->type(), repeated))->output();
    }
    std::string why;
    TypePtr formal = argument.type;
    if (formal->hasFreeVariables()) {
      const TypePtr& actual = value->type();
      auto matched = matchTypeVariables(formal, actual, bindings_, &why);
      if (!matched) {
        bool defaulted = formal->kind() == TypeKind::Var && has_tensor_list_;
        fail(fmt::format("Could not match type {} to {} in argument '{}': {}.{}",
                         actual->annotation(), formal->annotation(), argument.name, why,
                         defaulted ? kEmptyListHint : ""));
        return nullptr;
      }
      formal = *matched;
    }
    const Value* given = value;
    value = tryConvertToType(
        range_, graph_, formal, value,
        allow_conversions_ ? ImplicitConversions::All : ImplicitConversions::TuplesToLists);
    converted_ = converted_ || value != given;
    if (!value->type()->isSubtypeOf(*formal, &why)) {
      bool defaulted =
          isTensorList(value->type()) && withoutOptional(formal)->kind() == TypeKind::List;
      fail(
          fmt::format("Expected a value of type '{}' for argument '{}' but instead found type "
                      "'{}'.{}",
                      (shown_type_ ? shown_type_ : formal)->annotation(), argument.name,
                      value->type()->annotation(), defaulted ? kEmptyListHint : ""));
      return nullptr;
    }
    return value;
  }

  const FunctionSchema& schema_;
  const SourceRange& range_;
  Graph& graph_;
  const std::vector<NamedValue>& args_;
  const std::vector<NamedValue>& kwargs_;
  std::optional<NamedValue> self_;
  bool allow_conversions_;
  Failures* failures_;
  size_t fitted_ = 0;
  bool converted_ = false;
  bool has_tensor_list_ = false;
  TypePtr shown_type_;  // in messages, instead of an argument's own
  size_t used_args_ = 0;
  std::vector<bool> used_kwargs_;
  KeyedMap<std::string_view, size_t> keywords_;  // of kwargs_, when there are many
  TypeBindings bindings_;
};

// A match that fails leaves nothing behind in the graph.
std::optional<MatchedSchema> tryMatch(const FunctionSchema& schema, const SourceRange& range,
                                      Graph& graph, const std::vector<NamedValue>& args,
                                      const std::vector<NamedValue>& kwargs,
                                      const std::optional<NamedValue>& self, bool allow_conversions,
                                      Failures* failures) {
  Node* before = graph.insertPoint()->prev();
  RangeGuard at(&graph, range);
  auto matched =
      Matcher(schema, range, graph, args, kwargs, self, allow_conversions, failures).run();
  if (!matched) {
    while (graph.insertPoint()->prev() != before) graph.insertPoint()->prev()->destroy();
  }
  return matched;
}

std::string describeCall(const std::vector<NamedValue>& args, const std::vector<NamedValue>& kwargs,
                         const std::optional<NamedValue>& self) {
  std::string out;
  auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (self) add(self->type()->annotation());
  for (const NamedValue& a : args) add(a.type()->annotation());
  for (const NamedValue& a : kwargs) add(*a.name + "=" + a.type()->annotation());
  return "(" + out + ")";
}

// What narrows the types of a call that fits nothing.
std::string refinementHint(const std::vector<NamedValue>& args,
                           const std::vector<NamedValue>& kwargs) {
  for (const auto* values : {&args, &kwargs}) {
    for (const NamedValue& v : *values) {
      switch (v.type()->kind()) {
        case TypeKind::Optional:
          return "\nA value of type Optional may be None: check `is not None` first.";
        case TypeKind::Union:
        case TypeKind::Any:
          return fmt::format("\nTo use a value of type {}, check its type by isinstance first.",
                             v.type()->annotation());
        default:
          break;
      }
    }
  }
  return "";
}

}  // namespace

Value* tryConvertToType(const SourceRange& range, Graph& graph, const TypePtr& type, Value* value,
                        ImplicitConversions allowed) {
  RangeGuard at(&graph, range);
  if (const auto* optional = type->as<OptionalType>()) {
    TypeKind kind = value->type()->kind();
    if (kind != TypeKind::Optional && kind != TypeKind::None) {
      return tryConvertToType(range, graph, optional->element(), value, allowed);
    }
    return value;
  }
  if (const auto* list = type->as<ListType>(); list && isEmptyListLiteral(value)) {
    return graph.insertNode(graph.createList(list->element(), {}))->output();
  }
  if (const auto* tuple = value->type()->as<TupleType>()) {
    if (allowed != ImplicitConversions::EmptyLists && convertibleToList(value->type(), type)) {
      std::vector<Value*> elements = unpackTuple(graph, value);
      return graph.insertNode(graph.createList(type->as<ListType>()->element(), elements))
          ->output();
    }
    const auto* wanted = type->as<TupleType>();
    if (wanted && !tuple->isSubtypeOf(*wanted) &&
        wanted->contained().size() == tuple->contained().size()) {
      std::vector<Value*> converted;
      for (size_t i = 0; Value * element : unpackTuple(graph, value)) {
        converted.push_back(
            tryConvertToType(range, graph, wanted->contained()[i++], element, allowed));
      }
      return graph.insertNode(graph.createTuple(converted))->output();
    }
  }
  if (allowed != ImplicitConversions::All) return value;
  if (isTensor(value->type())) return implicitTensorToNumber(graph, type, value);
  if (value->type()->kind() == TypeKind::Number) return implicitNumberTo(graph, type, value);
  if (value->type()->kind() == TypeKind::String && type->kind() == TypeKind::Device) {
    return insertUnary(graph, Symbol::aten("device"), value, type);
  }
  return value;
}

MatchedSchema matchSchema(const FunctionSchema& schema, const SourceRange& range, Graph& graph,
                          const std::vector<NamedValue>& args,
                          const std::vector<NamedValue>& kwargs,
                          const std::optional<NamedValue>& self) {
  Failures failures;
  if (auto matched = tryMatch(schema, range, graph, args, kwargs, self, true, &failures)) {
    return std::move(*matched);
  }
  throw CompileError(range, describe(std::move(failures)));
}

std::pair<size_t, MatchedSchema> matchSchemas(const std::vector<const FunctionSchema*>& schemas,
                                              const SourceRange& range, Graph& graph,
                                              const std::vector<NamedValue>& args,
                                              const std::vector<NamedValue>& kwargs,
                                              const std::optional<NamedValue>& self) {
  if (schemas.size() == 1) {
    return {0, matchSchema(*schemas[0], range, graph, args, kwargs, self)};
  }
  // Conversions only where nothing fits without: add(int, int) before add(Scalar, Scalar).
  Failures failures;
  for (bool allow_conversions : {false, true}) {
    failures.clear();
    for (size_t i = 0; i < schemas.size(); ++i) {
      auto matched = tryMatch(*schemas[i], range, graph, args, kwargs, self, allow_conversions,
                              allow_conversions ? &failures : nullptr);
      if (matched) return {i, std::move(*matched)};
    }
  }
  throwCompileError(range,
                    "Arguments for call are not valid: no overload of {} takes {}.{}\n"
                    "The following variants are available:\n{}",
                    schemas.empty() ? "the function" : schemas[0]->name(),
                    describeCall(args, kwargs, self), refinementHint(args, kwargs),
                    describe(std::move(failures)));
}

Value* emitBuiltin(const SourceRange& range, Graph& graph, Symbol name,
                   const std::vector<Value*>& args) {
  std::vector<NamedValue> named;
  for (Value* v : args) named.emplace_back(range, v);
  return emitBuiltinCall(range, graph, name, named);
}

bool isBuiltinOperator(Symbol name) {
  return !OperatorRegistry::instance().overloads(name).empty() ||
         !builtinFunctionsNamed(name).empty();
}

Value* packOutputs(Graph& graph, std::vector<Value*> values,
                   const std::vector<std::string>& names) {
  if (values.size() == 1) return values[0];
  if (values.empty()) return graph.insertConstant(IValue(), types::None());
  std::shared_ptr<const TupleType> named;
  if (!names.empty()) {
    std::vector<TypePtr> element_types;
    for (Value* v : values) element_types.push_back(v->type());
    named = std::make_shared<const TupleType>("", names, std::move(element_types),
                                              std::vector<IValue>());
  }
  return graph.insertNode(graph.createTuple(values, named))->output();
}

namespace {

Value* emitOperator(const SourceRange& range, Graph& graph, const Operator& op,
                    MatchedSchema&& matched) {
  RangeGuard at(&graph, range);
  Node* n = graph.insertNode(graph.create(op.symbol(), matched.inputs, 0));
  for (const TypePtr& type : matched.return_types) n->addOutput(type);
  // A result list of unknown length is typed by whoever unpacks it.
  if (op.schema().isVarret() && matched.return_types.empty()) return n->addOutput(types::Any());
  n->setOperator(&op);
  return packOutputs(graph, n->outputs(), matched.return_names);
}

[[noreturn]] void failUnknown(const SourceRange& range, Symbol name) {
  std::set<std::string> known;
  for (const std::string& n : OperatorRegistry::instance().names()) {
    size_t colon = n.rfind("::");
    known.insert(colon == std::string::npos ? n : n.substr(colon + 2));
  }
  throwCompileError(range, "Unknown builtin op: {}{}", name.qualString(),
                    didYouMean(std::string(name.name()), known));
}

}  // namespace

Value* emitBuiltinCall(const SourceRange& range, Graph& graph, Symbol name,
                       const std::vector<NamedValue>& args, const std::vector<NamedValue>& kwargs,
                       const std::optional<NamedValue>& self) {
  const auto& operators = OperatorRegistry::instance().overloads(name);
  std::vector<GraphFunction*> functions = builtinFunctionsNamed(name);
  if (operators.empty() && functions.empty()) failUnknown(range, name);
  std::vector<const FunctionSchema*> schemas;
  for (const Operator* op : operators) schemas.push_back(&op->schema());
  for (GraphFunction* f : functions) schemas.push_back(&f->schema());
  auto [index, matched] = matchSchemas(schemas, range, graph, args, kwargs, self);
  if (index < operators.size()) {
    return emitOperator(range, graph, *operators[index], std::move(matched));
  }
  // Script functions behind operators are small, and nobody wants to see them in a graph.
  GraphFunction* function = functions[index - operators.size()];
  defineBuiltinFunction(*function);
  RangeGuard at(&graph, range);
  return packOutputs(graph, inlineGraph(graph, *function->graph(), matched.inputs));
}

}  // namespace wick
