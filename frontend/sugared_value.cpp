// What all sugared values refuse by default, and the callable ones.
#include "frontend/sugared_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "core/error.h"
#include "core/native_class.h"
#include "core/suggestions.h"
#include "frontend/builtin_table.h"
#include "frontend/class_definitions.h"
#include "frontend/schema_matching.h"

namespace wick {

Value* SugaredValue::asValue(const SourceRange& range, GraphFunction&) {
  throwCompileError(range, "{} cannot be used as a value", kind());
}

SugaredValuePtr SugaredValue::attr(const SourceRange& range, GraphFunction&,
                                   const std::string& field) {
  throwCompileError(range, "attribute lookup is not defined on {}: there is no '{}'", kind(),
                    field);
}

bool SugaredValue::hasAttr(const SourceRange& range, GraphFunction&, const std::string&) {
  throwCompileError(range, "hasattr is not defined on {}", kind());
}

void SugaredValue::setAttr(const SourceRange& range, GraphFunction&, const std::string&, Value*) {
  throwCompileError(range, "attribute assignment is not defined on {}", kind());
}

SugaredValuePtr SugaredValue::call(const SourceRange& range, GraphFunction&,
                                   std::vector<NamedValue>, std::vector<NamedValue>, size_t) {
  throwCompileError(range, "cannot call a {}", kind());
}

std::vector<SugaredValuePtr> SugaredValue::asTuple(const SourceRange& range, GraphFunction&,
                                                   std::optional<size_t>) {
  throwCompileError(range, "{} cannot be used as a tuple", kind());
}

SugaredValuePtr SugaredValue::getItem(const SourceRange& range, GraphFunction&, Value*, TypePtr) {
  throwCompileError(range, "'{}' object is not subscriptable", kind());
}

SugaredValuePtr SugaredValue::iterate(const SourceRange& range, GraphFunction&) {
  throwCompileError(range, "{} cannot be used as an iterable", kind());
}

Value* SugaredValue::length(const SourceRange& range, GraphFunction&) {
  throwCompileError(range, "'{}' object has no length", kind());
}

namespace {

// "{} {name}".format(x, name=y): schemas with free arguments have no keywords, so that the names go
// along as a list and their values behind the others.
Value* formatNamed(const SourceRange& range, Graph& graph, const NamedValue& text,
                   const std::vector<NamedValue>& args, const std::vector<NamedValue>& kwargs) {
  std::vector<Value*> names;
  for (const NamedValue& v : kwargs) names.push_back(graph.insertConstant(IValue(*v.name)));
  Value* list = graph.insertNode(graph.createList(types::String(), names))->output();
  std::vector<NamedValue> all{NamedValue(text.range, text.value), NamedValue(range, list)};
  for (const NamedValue& v : args) all.emplace_back(v.range, v.value);
  for (const NamedValue& v : kwargs) all.emplace_back(v.range, v.value);
  return emitBuiltinCall(range, graph, Symbol::prim("formatNamed"), all);
}

}  // namespace

SugaredValuePtr BuiltinFunction::call(const SourceRange& range, GraphFunction& fn,
                                      std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                      size_t num_binders) {
  Graph& graph = *fn.graph();
  if (symbol_ == aten::format && self_ && !kwargs.empty()) {
    return std::make_shared<SimpleValue>(formatNamed(range, graph, *self_, args, kwargs));
  }
  Value* result = emitBuiltinCall(range, graph, symbol_, args, kwargs, self_);
  // Operators whose results the schema does not count take their number from the targets.
  if (result->type()->kind() == TypeKind::Any && result->node()->kind() == symbol_) {
    const Operator* op = result->node()->maybeOperator();
    if (op && op->schema().isVarret() && num_binders > 1) {
      Node* n = result->node();
      for (size_t i = 1; i < num_binders; ++i) n->addOutput(types::Tensor());
      n->output(0)->setType(types::Tensor());
      return std::make_shared<SimpleValue>(packOutputs(graph, n->outputs()));
    }
  }
  return std::make_shared<SimpleValue>(result);
}

SugaredValuePtr BuiltinModule::attr(const SourceRange& range, GraphFunction& fn,
                                    const std::string& field) {
  if (SugaredValuePtr found = builtinMember(name_, field, fn)) return found;
  throwCompileError(range, "module '{}' has no attribute '{}'{}", name_, field,
                    suggestBuiltinMember(name_, field));
}

bool BuiltinModule::hasAttr(const SourceRange&, GraphFunction& fn, const std::string& field) {
  return builtinMember(name_, field, fn) != nullptr;
}

namespace {

// Calls to a function whose own text has an error report both positions.
const FunctionSchema& schemaForCall(Function* callee, const SourceRange& range) {
  try {
    callee->ensureDefined();
    return callee->schema();
  } catch (const CompileError& e) {
    if (e.range().valid()) throw;
    throw CompileError(range, e.brief());
  }
}

}  // namespace

SugaredValuePtr FunctionValue::call(const SourceRange& range, GraphFunction& fn,
                                    std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                    size_t) {
  Graph& graph = *fn.graph();
  std::vector<const FunctionSchema*> schemas;
  for (Function* callee : callees_) schemas.push_back(&schemaForCall(callee, range));
  auto [index, matched] = matchSchemas(schemas, range, graph, args, kwargs);
  RangeGuard at(&graph, range);
  Value* result = graph.insertCall(callees_[index], matched.inputs);
  return std::make_shared<SimpleValue>(result->setType(matched.return_types.at(0)));
}

SugaredValuePtr MethodValue::call(const SourceRange& range, GraphFunction& fn,
                                  std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                  size_t) {
  Graph& graph = *fn.graph();
  std::vector<Function*> callees;
  std::vector<const FunctionSchema*> schemas;
  for (const std::string& name : methods_) {
    Function* method = findMethodOf(self_->type(), name);
    if (!method) {
      throwCompileError(range, "{} has no method '{}'", self_->type()->annotation(), name);
    }
    callees.push_back(method);
    schemas.push_back(&schemaForCall(method, range));
  }
  args.insert(args.begin(), NamedValue(range, self_));
  auto [index, matched] = matchSchemas(schemas, range, graph, args, kwargs);
  RangeGuard at(&graph, range);
  std::vector<Value*> inputs(matched.inputs.begin() + 1, matched.inputs.end());
  Value* result = graph.insertMethodCall(matched.inputs[0], callees[index], inputs);
  return std::make_shared<SimpleValue>(result->setType(matched.return_types.at(0)));
}

SugaredValuePtr ClassValue::call(const SourceRange& range, GraphFunction& fn,
                                 std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                 size_t) {
  Function* init = type_->findMethod("__init__");
  if (!init && findNativeMethod(*type_, "__init__")) {
    RangeGuard at(fn.graph().get(), range);
    auto self = std::make_shared<SimpleValue>(
        fn.graph()->insertNode(fn.graph()->createObject(type_))->output());
    self->attr(range, fn, "__init__")->call(range, fn, std::move(args), std::move(kwargs), 1);
    return self;
  }
  if (!init) {
    checkUnreadable(*type_, "__init__");
    throwCompileError(range, "Class {} does not have an __init__ function defined",
                      readableClassName(type_->name()));
  }
  Graph& graph = *fn.graph();
  RangeGuard at(&graph, range);
  Value* self = graph.insertNode(graph.createObject(type_))->output();
  MethodValue(self, {"__init__"}).call(range, fn, std::move(args), std::move(kwargs), 1);
  return std::make_shared<SimpleValue>(self);
}

SugaredValuePtr ClassValue::attr(const SourceRange& range, GraphFunction& fn,
                                 const std::string& field) {
  if (field == "__new__") return std::make_shared<SpecialForm>(prim::CreateObject);
  if (Function* method = type_->findStaticMethod(field)) {
    return std::make_shared<FunctionValue>(method);
  }
  if (const IValue* constant = type_->findConstant(field)) {
    return std::make_shared<SimpleValue>(fn.graph()->insertConstant(*constant));
  }
  checkUnreadable(*type_, field);
  if (type_->findMethod(field)) {
    throwCompileError(range, "the method '{}' of class '{}' needs an object to be called on", field,
                      type_->name());
  }
  std::set<std::string> names;
  for (const auto& [name, value] : type_->constants()) names.insert(name);
  throw MissingMember(range,
                      fmt::format("class '{}' has no static method or constant '{}'",
                                  readableClassName(type_->name()), field),
                      field, type_, std::move(names));
}

SugaredValuePtr NamedTupleConstructor::call(const SourceRange& range, GraphFunction& fn,
                                            std::vector<NamedValue> args,
                                            std::vector<NamedValue> kwargs, size_t) {
  Graph& graph = *fn.graph();
  std::vector<Argument> arguments;
  size_t first_default = type_->fields().size() - type_->defaults().size();
  for (size_t i = 0; i < type_->fields().size(); ++i) {
    Argument a;
    a.name = type_->fields()[i];
    a.type = type_->contained()[i];
    if (i >= first_default) a.default_value = type_->defaults()[i - first_default];
    arguments.push_back(std::move(a));
  }
  Argument result;
  result.type = type_;
  FunctionSchema schema(type_->name(), "", std::move(arguments), {std::move(result)});
  MatchedSchema matched = matchSchema(schema, range, graph, args, kwargs);
  RangeGuard at(&graph, range);
  return std::make_shared<SimpleValue>(
      graph.insertNode(graph.createTuple(matched.inputs, type_))->output());
}

std::string SpecialForm::kind() const {
  std::string name(form_.name());
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
  return "builtin '" + name + "'";
}

SugaredValuePtr SpecialForm::attr(const SourceRange& range, GraphFunction& fn,
                                  const std::string& field) {
  if (form_ == Symbol::prim("dict") && field == "fromkeys") {
    return std::make_shared<SpecialForm>(Symbol::prim("fromkeys"));
  }
  return SugaredValue::attr(range, fn, field);
}

SugaredValuePtr EnumClassValue::attr(const SourceRange& range, GraphFunction& fn,
                                     const std::string& field) {
  if (const auto* found = type_->findMember(field)) {
    IValue member(makeRef<EnumObject>(type_, found->first, found->second));
    return std::make_shared<SimpleValue>(fn.graph()->insertConstant(std::move(member), type_));
  }
  std::set<std::string> names;
  for (const auto& [name, value] : type_->members()) names.insert(name);
  throwCompileError(range, "the enum '{}' has no member '{}'{}", readableClassName(type_->name()),
                    field, didYouMean(field, names));
}

SugaredValuePtr EnumClassValue::iterate(const SourceRange& range, GraphFunction& fn) {
  std::vector<Value*> members;
  for (const auto& [name, value] : type_->members()) {
    members.push_back(attr(range, fn, name)->asValue(range, fn));
  }
  Graph& graph = *fn.graph();
  return std::make_shared<SimpleValue>(
      graph.insertNode(graph.createList(type_, members))->output());
}

SugaredValuePtr ExceptionValue::call(const SourceRange& range, GraphFunction& fn,
                                     std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                     size_t) {
  if (!kwargs.empty()) throwCompileError(range, "exceptions take no keyword arguments");
  Graph& graph = *fn.graph();
  Value* message = nullptr;
  for (const NamedValue& arg : args) {
    Value* text = arg.value;
    if (text->type()->kind() != TypeKind::String) {
      text = emitBuiltinCall(range, graph, aten::str, {NamedValue(range, text)});
    }
    message = message ? emitBuiltinCall(range, graph, aten::add,
                                        {NamedValue(range, message), NamedValue(range, text)})
                      : text;
  }
  return std::make_shared<ExceptionValue>(class_name_, message);
}

SugaredValuePtr FlagDispatch::call(const SourceRange& range, GraphFunction& fn,
                                   std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                   size_t num_binders) {
  std::optional<NamedValue> flag;
  if (args.size() > position_) {
    flag = args[position_];
    args.erase(args.begin() + static_cast<ptrdiff_t>(position_));
  }
  for (size_t i = 0; i < kwargs.size(); ++i) {
    if (*kwargs[i].name != flag_) continue;
    flag = kwargs[i];
    kwargs.erase(kwargs.begin() + static_cast<ptrdiff_t>(i));
    break;
  }
  bool chosen = false;
  if (flag) {
    auto value = constantOf(flag->value);
    if (!value || !value->isBool()) {
      throwCompileError(flag->range, "the argument '{}' must be True or False when compiling",
                        flag_);
    }
    chosen = value->toBool();
  }
  return (chosen ? if_true_ : if_false_)
      ->call(range, fn, std::move(args), std::move(kwargs), num_binders);
}

SugaredValuePtr ConstantFunction::call(const SourceRange& range, GraphFunction& fn,
                                       std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                       size_t) {
  if (!args.empty() || !kwargs.empty()) throwCompileError(range, "the function takes no arguments");
  return std::make_shared<SimpleValue>(fn.graph()->insertConstant(value_));
}

SugaredValuePtr TypedTensorConstructor::call(const SourceRange& range, GraphFunction& fn,
                                             std::vector<NamedValue> args,
                                             std::vector<NamedValue> kwargs, size_t) {
  Graph& graph = *fn.graph();
  if (!kwargs.empty()) {
    throwCompileError(range, "constructors of typed tensors take no keyword arguments");
  }
  std::vector<NamedValue> options = {
      NamedValue(range, "dtype", graph.insertConstant(IValue(dtype_)))};
  if (args.size() == 1 && args[0].type()->kind() != TypeKind::Int) {
    return std::make_shared<SimpleValue>(
        emitBuiltinCall(range, graph, Symbol::aten("tensor"), args, options));
  }
  std::vector<Value*> sizes;
  for (const NamedValue& v : args) sizes.push_back(v.value);
  if (sizes.empty()) sizes.push_back(graph.insertConstant(IValue(int64_t{0})));
  Value* list = graph.insertNode(graph.createList(types::Int(), sizes))->output();
  return std::make_shared<SimpleValue>(
      emitBuiltinCall(range, graph, Symbol::aten("empty"), {NamedValue(range, list)}, options));
}

SugaredValuePtr CastValue::call(const SourceRange& range, GraphFunction& fn,
                                std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                size_t num_binders) {
  Graph& graph = *fn.graph();
  if (args.empty() && kwargs.empty()) {
    // int() is 0 and so on.
    switch (type_->kind()) {
      case TypeKind::Int:
        return std::make_shared<SimpleValue>(graph.insertConstant(IValue(int64_t{0})));
      case TypeKind::Float:
        return std::make_shared<SimpleValue>(graph.insertConstant(IValue(0.0)));
      case TypeKind::Bool:
        return std::make_shared<SimpleValue>(graph.insertConstant(IValue(false)));
      case TypeKind::String:
        return std::make_shared<SimpleValue>(graph.insertConstant(IValue("")));
      default:
        break;
    }
  }
  if (args.size() == 1 && kwargs.empty() && args[0].type()->isSubtypeOf(*type_)) {
    return std::make_shared<SimpleValue>(args[0].value);
  }
  if (type_->kind() == TypeKind::Bool && args.size() == 1 && kwargs.empty()) {
    switch (args[0].type()->kind()) {
      case TypeKind::String:
      case TypeKind::List:
      case TypeKind::Dict: {
        Value* length = emitBuiltinCall(range, graph, aten::len, args);
        Value* zero = graph.insertConstant(IValue(int64_t{0}));
        return std::make_shared<SimpleValue>(emitBuiltinCall(
            range, graph, aten::gt, {NamedValue(range, length), NamedValue(range, zero)}));
      }
      default:
        break;
    }
  }
  Value* value = BuiltinFunction::call(range, fn, std::move(args), std::move(kwargs), num_binders)
                     ->asValue(range, fn);
  return std::make_shared<SimpleValue>(value);
}

}  // namespace wick
