#include "frontend/type_resolver.h"

#include <fmt/format.h>

#include <limits>
#include <set>
#include <unordered_map>

#include "core/budget.h"
#include "core/conform.h"
#include "core/error.h"
#include "core/native_class.h"
#include "core/stack.h"
#include "core/suggestions.h"
#include "core/wrapped.h"
#include "frontend/builtin_table.h"
#include "frontend/magic_methods.h"
#include "frontend/parser.h"
#include "frontend/schema_matching.h"
#include "frontend/sugared_value.h"

namespace wick {

namespace {

// Names of types, with and without the modules in which Python programs find them.
const std::unordered_map<std::string_view, TypePtr>& simpleTypes() {
  static const std::unordered_map<std::string_view, TypePtr> kTypes = {
      {"Tensor", types::Tensor()},
      {"torch.Tensor", types::Tensor()},
      {"torch.nn.Parameter", types::Tensor()},
      {"torch.FloatTensor", types::Tensor()},
      {"torch.DoubleTensor", types::Tensor()},
      {"torch.HalfTensor", types::Tensor()},
      {"torch.BFloat16Tensor", types::Tensor()},
      {"torch.LongTensor", types::Tensor()},
      {"torch.IntTensor", types::Tensor()},
      {"torch.ShortTensor", types::Tensor()},
      {"torch.CharTensor", types::Tensor()},
      {"torch.ByteTensor", types::Tensor()},
      {"torch.BoolTensor", types::Tensor()},
      {"int", types::Int()},
      {"float", types::Float()},
      {"complex", types::Complex()},
      {"bool", types::Bool()},
      {"str", types::String()},
      {"number", types::Number()},
      {"Number", types::Number()},
      {"torch.types.Number", unionOf({types::Int(), types::Float(), types::Bool()})},
      {"None", types::None()},
      {"NoneType", types::None()},
      {"Any", types::Any()},
      {"list", types::AnyList()},
      {"tuple", types::AnyTuple()},
      {"AnyClassType", types::AnyClass()},
      {"AnyEnumType", types::AnyEnum()},
      {"Device", types::Device()},
      {"torch.device", types::Device()},
      {"torch.dtype", types::Int()},
      {"torch.layout", types::Int()},
      {"torch.memory_format", types::Int()},
      {"torch.qscheme", types::Int()},
      {"QScheme", types::Int()},
      {"torch.Size", types::List(types::Int())},
      {"Size", types::List(types::Int())},
      {"Generator", types::Generator()},
      {"torch.Generator", types::Generator()},
      {"torch._C.Generator", types::Generator()},
      {"Stream", types::Stream()},
      {"torch.Stream", types::Stream()},
      {"Storage", types::Storage()},
      {"Capsule", types::Capsule()},
  };
  return kTypes;
}

const TypePtr* simpleTypeNamed(std::string_view name) {
  auto it = simpleTypes().find(name);
  if (it != simpleTypes().end()) return &it->second;
  // FloatTensor is torch.FloatTensor, as in programs without imports.
  if (!name.ends_with("Tensor") || name.find('.') != std::string_view::npos) return nullptr;
  it = simpleTypes().find(fmt::format("torch.{}", name));
  return it == simpleTypes().end() ? nullptr : &it->second;
}

std::string withoutTyping(std::string name);

// What is a type only together with others, and how that is written.
struct TypeConstructor {
  const char* name;
  const char* example;
};
constexpr TypeConstructor kConstructors[] = {
    {"Optional", "Optional[int]"}, {"List", "List[int]"},        {"Dict", "Dict[str, int]"},
    {"dict", "Dict[str, int]"},    {"Tuple", "Tuple[int, str]"}, {"Union", "Union[int, str]"},
    {"Future", "Future[int]"},     {"Final", "Final[int]"},      {"RRef", "RRef[int]"},
    {"Await", "Await[int]"},
};

[[noreturn]] void failUnknownType(const SourceRange& range, const std::string& name,
                                  const ResolverPtr& resolver) {
  if (resolver) resolver->checkBroken(name);
  for (const TypeConstructor& c : kConstructors) {
    if (withoutTyping(name) == c.name) {
      throwCompileError(range, "Unknown type name '{}': expected the types that it holds, as in {}",
                        name, c.example);
    }
  }
  std::set<std::string> known;
  for (const auto& [simple, type] : simpleTypes()) known.emplace(simple);
  for (const TypeConstructor& c : kConstructors) known.emplace(c.name);
  if (resolver) known.merge(resolver->knownNames());
  throwCompileError(range, "Unknown type name '{}'{}", name, didYouMean(name, known));
}

// "a.b.c" of a chain of selections; nullopt for anything else.
std::optional<std::string> dottedName(const Expr& expr) {
  if (expr.kind() == TK_VAR) return Var(expr.tree()).name().name();
  if (expr.kind() != '.') return std::nullopt;
  Select select(expr.tree());
  auto prefix = dottedName(select.value());
  if (!prefix) return std::nullopt;
  return *prefix + "." + select.selector().name();
}

std::string withoutTyping(std::string name) {
  for (std::string_view prefix : {"typing.", "typing_extensions.", "builtins.", "torch.jit.",
                                  "torch.futures.", "torch._jit_internal."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return name;
}

std::vector<Expr> typeArguments(const Subscript& subscript) {
  std::vector<Expr> out;
  List<Expr> written = subscript.subscripts();
  if (written.size() == 1 && written[0].kind() == TK_TUPLE_LITERAL) {
    for (const Expr& e : TupleLiteral(written[0].tree()).inputs()) out.push_back(e);
  } else {
    for (const Expr& e : written) out.push_back(e);
  }
  return out;
}

class Constructor {
 public:
  Constructor(const TypeResolver& types, const Subscript& subscript, const std::string& name)
      : types_(types),
        range_(subscript.range()),
        name_(name),
        arguments_(typeArguments(subscript)) {}

  // Null when `name` constructs no type.
  TypePtr build() const {
    if (name_ == "Optional") return types::Optional(only());
    if (name_ == "List" || name_ == "list") return types::List(only());
    if (name_ == "Future") return types::Future(only());
    if (name_ == "RRef") return std::make_shared<const RRefType>(only());
    if (name_ == "Await") return std::make_shared<const AwaitType>(only());
    if (name_ == "Final") return only();
    if (name_ == "Dict" || name_ == "dict") return dict();
    if (name_ == "Tuple" || name_ == "tuple") return tuple();
    if (name_ == "Union") return unionOf(all());
    return nullptr;
  }

 private:
  void expectCount(size_t count) const {
    if (arguments_.size() == count) return;
    throwCompileError(range_, "{} expects {} type argument{}, found {}", name_, count,
                      count == 1 ? "" : "s", arguments_.size());
  }
  TypePtr only() const {
    expectCount(1);
    return types_.typeOf(arguments_[0]);
  }
  std::vector<TypePtr> all() const {
    std::vector<TypePtr> out;
    for (const Expr& e : arguments_) {
      if (e.kind() == TK_DOTS) {
        throwCompileError(e.range(), "{} of any length is not supported: name every element's type",
                          name_);
      }
      out.push_back(types_.typeOf(e));
    }
    return out;
  }
  TypePtr tuple() const {
    // Tuple[()] is the empty tuple.
    if (arguments_.size() == 1 && arguments_[0].kind() == TK_TUPLE_LITERAL &&
        TupleLiteral(arguments_[0].tree()).inputs().empty()) {
      return types::Tuple({});
    }
    return types::Tuple(all());
  }
  TypePtr dict() const {
    expectCount(2);
    TypePtr key = types_.typeOf(arguments_[0]);
    checkDictKeyType(arguments_[0].range(), *key);
    return types::Dict(key, types_.typeOf(arguments_[1]));
  }

  const TypeResolver& types_;
  SourceRange range_;
  std::string name_;
  std::vector<Expr> arguments_;
};

}  // namespace

void checkDictKeyType(const SourceRange& range, const Type& key) {
  switch (key.kind()) {
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Complex:
    case TypeKind::Bool:
    case TypeKind::String:
    case TypeKind::Tensor:
    case TypeKind::Device:
    case TypeKind::Enum:
    case TypeKind::Var:
      return;
    default:
      throwCompileError(range,
                        "Cannot create dict for key type '{}', only int, float, complex, Tensor, "
                        "device and string keys are supported",
                        key.annotation());
  }
}

TypePtr TypeResolver::typeOf(const Expr& expr) const {
  constexpr size_t kStackPerLevel = 2048;
  const size_t levels = expr.tree()->height();
  if (levels > kMaxNesting) {
    throwCompileError(expr.range(), "the type is nested deeper than {} levels", kMaxNesting);
  }
  TypePtr type;
  withStack((levels + 8) * kStackPerLevel, [&] { type = typeNamedBy(expr); });
  return type;
}

TypePtr TypeResolver::typeNamedBy(const Expr& expr) const {
  switch (expr.kind()) {
    case TK_NONE:
      return types::None();
    case TK_STRINGLITERAL: {
      // A quoted type: its text is an expression of its own.
      Parser parser(StringLiteral(expr.tree()).text(), "<annotation>");
      return typeOf(parser.parseExpression());
    }
    case '|': {
      BinOp either(expr.tree());
      return unionOf({typeOf(either.lhs()), typeOf(either.rhs())});
    }
    case TK_SUBSCRIPT: {
      Subscript subscript(expr.tree());
      auto name = dottedName(subscript.value());
      if (!name) throwCompileError(expr.range(), "Subscripted type must be a type identifier");
      if (auto broadcast = broadcastingList(expr)) return broadcast->first;
      if (TypePtr type = Constructor(*this, subscript, withoutTyping(*name)).build()) return type;
      std::set<std::string> known;
      for (const TypeConstructor& c : kConstructors) known.emplace(c.name);
      if (simpleTypeNamed(withoutTyping(*name))) {
        throwCompileError(subscript.value().range(),
                          "Unknown type constructor {}: {} takes no type arguments", *name, *name);
      }
      throwCompileError(subscript.value().range(), "Unknown type constructor {}{}", *name,
                        didYouMean(withoutTyping(*name), known));
    }
    case TK_VAR:
    case '.': {
      auto name = dottedName(expr);
      if (!name) break;
      // The program's own names hide the builtin ones, as they would in Python.
      if (resolver_) {
        if (TypePtr type = resolver_->resolveType(*name, expr.range())) return type;
      }
      if (const TypePtr* type = simpleTypeNamed(withoutTyping(*name))) return *type;
      if (TypePtr type = findNativeClass(*name)) return type;
      if (TypePtr type = findNativeClass("__torch__." + *name)) return type;
      // What Python calls the classes of streams and events.
      if (name->starts_with("torch.cuda.")) {
        const std::string own = name->substr(name->rfind('.') + 1);
        if (TypePtr type = findNativeClass("__torch__.torch.classes.cuda." + own)) return type;
      }
      failUnknownType(expr.range(), *name, resolver_);
    }
    default:
      break;
  }
  throwCompileError(expr.range(), "Expression of type {} cannot be used in a type expression",
                    kindToString(expr.kind()));
}

std::optional<std::pair<TypePtr, int32_t>> TypeResolver::broadcastingList(const Expr& expr) const {
  if (expr.kind() == TK_SUBSCRIPT) {
    Subscript subscript(expr.tree());
    auto name = dottedName(subscript.value());
    if (!name) return std::nullopt;
    std::string plain = withoutTyping(*name);
    std::vector<Expr> arguments = typeArguments(subscript);
    if (plain == "Optional" && arguments.size() == 1) {
      auto inner = broadcastingList(arguments[0]);
      if (!inner) return std::nullopt;
      return std::make_pair(types::Optional(inner->first), inner->second);
    }
    constexpr std::string_view kPrefix = "BroadcastingList";
    if (!plain.starts_with(kPrefix)) return std::nullopt;
    std::string digits = plain.substr(kPrefix.size());
    if (digits.size() != 1 || digits[0] < '1' || digits[0] > '9') {
      throwCompileError(expr.range(), "Unknown type constructor {}", plain);
    }
    if (arguments.size() != 1) {
      throwCompileError(expr.range(), "{} expects 1 type argument, found {}", plain,
                        arguments.size());
    }
    TypePtr element = typeOf(arguments[0]);
    if (element->kind() != TypeKind::Int && element->kind() != TypeKind::Float) {
      throwCompileError(expr.range(), "{} holds int or float, not {}", plain,
                        element->annotation());
    }
    return std::make_pair(types::List(element), static_cast<int32_t>(digits[0] - '0'));
  }
  return std::nullopt;
}

namespace {

// Default values are constants: literals, containers of them, and names of constants.
class DefaultEvaluator {
 public:
  explicit DefaultEvaluator(const ResolverPtr& resolver) : resolver_(resolver) {}

  IValue evaluate(const Expr& expr, const TypePtr& type) const {
    const IValue value = fit(expr, eval(expr, type), type);
    if (!value.type()->isSubtypeOf(*type)) {
      throwCompileError(expr.range(), "Expected a default value of type {}, found {}",
                        type->annotation(), value.type()->annotation());
    }
    try {
      return conform(value, type);  // the elements as well
    } catch (const RuntimeError& error) {
      throwCompileError(expr.range(), "Expected a default value of type {}: {}", type->annotation(),
                        error.brief());
    }
  }

 private:
  // Numbers that Python writes where a wider type is declared, and literals of empty containers.
  IValue fit(const Expr& expr, IValue value, const TypePtr& type) const {
    if (const auto* optional = type->as<OptionalType>()) {
      return value.isNone() ? value : fit(expr, std::move(value), optional->element());
    }
    if (type->kind() == TypeKind::Float && value.isInt()) {
      return IValue(static_cast<double>(value.toInt()));
    }
    if (const auto* list = type->as<ListType>()) {
      if (!value.isList() && !value.isTuple()) return value;
      std::vector<IValue> elements;
      for (const IValue& v : value.elements()) elements.push_back(fit(expr, v, list->element()));
      return IValue(makeList(list->element(), std::move(elements)));
    }
    if (const auto* tuple = type->as<TupleType>()) {
      if (!value.isTuple() || value.elements().size() != tuple->contained().size()) return value;
      std::vector<IValue> elements;
      for (size_t i = 0; i < tuple->contained().size(); ++i) {
        elements.push_back(fit(expr, value.elements()[i], tuple->contained()[i]));
      }
      return IValue(makeTuple(std::move(elements)));
    }
    if (const auto* dict = type->as<DictType>()) {
      if (!value.isDict()) return value;
      auto out = makeRef<DictObject>(dict->key(), dict->value());
      for (auto& [k, v] : value.toDict().items()) {
        out->set(fit(expr, k, dict->key()), fit(expr, v, dict->value()));
      }
      return IValue(DictRef(out));
    }
    if (type->kind() == TypeKind::Device && value.isString()) {
      return IValue(wick::Device::parse(value.toString()));
    }
    return value;
  }

  IValue eval(const Expr& expr, const TypePtr& type) const {
    checkBudget();
    switch (expr.kind()) {
      case TK_CONST:
        return number(Const(expr.tree()), false);
      case TK_UNARY_MINUS:
        return negated(expr, UnaryOp(expr.tree()).operand(), type);
      case TK_UNARY_PLUS:
        return eval(UnaryOp(expr.tree()).operand(), type);
      case TK_TRUE:
        return IValue(true);
      case TK_FALSE:
        return IValue(false);
      case TK_NONE:
        return IValue();
      case TK_STRINGLITERAL:
        return IValue(StringLiteral(expr.tree()).text());
      case TK_LIST_LITERAL: {
        std::vector<IValue> elements;
        for (const Expr& e : ListLiteral(expr.tree()).inputs()) elements.push_back(eval(e, type));
        TypePtr element = elementTypeOf(elements, types::Tensor());
        return IValue(makeList(std::move(element), std::move(elements)));
      }
      case TK_TUPLE_LITERAL: {
        std::vector<IValue> elements;
        for (const Expr& e : TupleLiteral(expr.tree()).inputs()) elements.push_back(eval(e, type));
        return IValue(makeTuple(std::move(elements)));
      }
      case TK_DICT_LITERAL:
        return dict(DictLiteral(expr.tree()), type);
      case TK_VAR:
      case '.':
      case TK_APPLY:
        return named(expr);
      default:
        if (BinOp::isBinOp(expr.kind())) return computed(BinOp(expr.tree()), type);
        failNoConstant(expr.range());
    }
  }

  [[noreturn]] static void failNoConstant(const SourceRange& range) {
    throwCompileError(
        range,
        "expected a constant: a default value, and what stands outside of functions, must be one");
  }

  // 4 * 1024, "a" + "b"
  IValue computed(const BinOp& expr, const TypePtr& type) const {
    const BinaryOperator* found = binaryOperator(expr.kind());
    const bool searches = expr.kind() == TK_IN || expr.kind() == TK_NOTIN;
    if (!found || !found->method || searches) failNoConstant(expr.range());
    const IValue lhs = eval(expr.lhs(), type), rhs = eval(expr.rhs(), type);
    GraphFunction scratch("default", nullptr);
    InsertPointGuard guard(scratch.graph()->block());
    Graph& graph = *scratch.graph();
    const Node* node = emitBuiltin(expr.range(), graph, Symbol::aten(found->name),
                                   {graph.insertConstant(lhs), graph.insertConstant(rhs)})
                           ->node();
    const Operator* op = node->maybeOperator();
    std::vector<IValue> inputs;
    for (const Value* input : node->inputs()) {
      if (auto constant = constantOf(input)) inputs.push_back(std::move(*constant));
    }
    IValue result;
    if (!op || inputs.size() != node->inputs().size()) failNoConstant(expr.range());
    try {
      op->call(inputs.data(), inputs.size(), &result, 1);
    } catch (const RuntimeError& error) {
      throwCompileError(expr.range(), "{}", error.brief());
    }
    return result;
  }

  static IValue number(const Const& c, bool negative) {
    if (c.isInt()) return IValue(c.asInt(negative));
    if (c.isComplex()) return IValue(negative ? -c.asComplex() : c.asComplex());
    return IValue(negative ? -c.asFloat() : c.asFloat());
  }

  IValue negated(const Expr& expr, const Expr& operand, const TypePtr& type) const {
    if (operand.kind() == TK_CONST) return number(Const(operand.tree()), true);
    IValue v = eval(operand, type);
    if (v.isInt()) return IValue(wrappedProduct<int64_t>(v.toInt(), -1));
    if (v.isDouble()) return IValue(-v.toDouble());
    failNoConstant(expr.range());
  }

  IValue dict(const DictLiteral& literal, const TypePtr& type) const {
    std::vector<IValue> keys, values;
    for (size_t i = 0; i < literal.keys().size(); ++i) {
      keys.push_back(eval(literal.keys()[i], type));
      values.push_back(eval(literal.values()[i], type));
    }
    auto out = makeRef<DictObject>(elementTypeOf(keys, types::String()),
                                   elementTypeOf(values, types::Tensor()));
    for (size_t i = 0; i < keys.size(); ++i) out->set(std::move(keys[i]), std::move(values[i]));
    return IValue(DictRef(out));
  }

  // A constant of a module or an enum member, or float("inf").
  IValue named(const Expr& expr) const {
    if (expr.kind() == TK_APPLY) {
      Apply apply(expr.tree());
      auto name = dottedName(apply.callee());
      if (name == "float" && apply.inputs().size() == 1 &&
          apply.inputs()[0].kind() == TK_STRINGLITERAL) {
        const std::string& text = StringLiteral(apply.inputs()[0].tree()).text();
        constexpr double kInf = std::numeric_limits<double>::infinity();
        if (text == "inf" || text == "infinity") return IValue(kInf);
        if (text == "-inf" || text == "-infinity") return IValue(-kInf);
        if (text == "nan") return IValue(std::numeric_limits<double>::quiet_NaN());
      }
      if (name == "torch.device" && apply.inputs().size() == 1 &&
          apply.inputs()[0].kind() == TK_STRINGLITERAL) {
        return device(apply, StringLiteral(apply.inputs()[0].tree()).text());
      }
      failNoConstant(expr.range());
    }
    GraphFunction scratch("default", nullptr);
    InsertPointGuard guard(scratch.graph()->block());
    SugaredValuePtr sugared = resolve(expr, scratch);
    Value* value = sugared->asValue(expr.range(), scratch);
    if (auto constant = constantOf(value)) return *constant;
    failNoConstant(expr.range());
  }

  // torch.device("name"). The `torch` of archives knows other names for devices.
  IValue device(const Apply& apply, const std::string& name) const {
    GraphFunction scratch("default", nullptr);
    InsertPointGuard guard(scratch.graph()->block());
    const SourceRange range = apply.range();
    if (SugaredValuePtr own =
            resolver_ ? resolver_->resolveValue("torch", scratch, range) : nullptr) {
      const NamedValue text(range, scratch.graph()->insertConstant(IValue(name)));
      SugaredValuePtr made =
          own->attr(range, scratch, "device")->call(range, scratch, {text}, {}, 1);
      if (auto constant = constantOf(made->asValue(range, scratch))) return *constant;
    }
    return IValue(wick::Device::parse(name));
  }

  SugaredValuePtr resolve(const Expr& expr, GraphFunction& fn) const {
    if (expr.kind() == TK_VAR) {
      const std::string& name = Var(expr.tree()).name().name();
      SugaredValuePtr found = resolver_ ? resolver_->resolveValue(name, fn, expr.range()) : nullptr;
      if (!found) found = builtinValue(name, fn);
      if (!found) throwCompileError(expr.range(), "undefined value {}", name);
      return found;
    }
    if (expr.kind() != '.') failNoConstant(expr.range());
    Select select(expr.tree());
    return resolve(select.value(), fn)->attr(expr.range(), fn, select.selector().name());
  }

  const ResolverPtr& resolver_;
};

}  // namespace

IValue TypeResolver::constantOfType(const Expr& expr, const TypePtr& type) const {
  constexpr size_t kStackPerLevel = 4096;
  IValue value;
  withStack((expr.tree()->height() + 8) * kStackPerLevel,
            [&] { value = DefaultEvaluator(resolver_).evaluate(expr, type); });
  return value;
}

FunctionSchema TypeResolver::schemaOf(const Def& def, bool skip_self) const {
  std::vector<Argument> arguments;
  for (const Param& param : def.decl().params()) {
    if (skip_self && arguments.empty()) {
      Argument self;
      self.name = param.name().name();
      arguments.push_back(std::move(self));
      continue;
    }
    Argument argument;
    argument.name = param.name().name();
    argument.kwarg_only = param.kwargOnly();
    argument.type = types::Tensor();
    if (param.type()) {
      Expr type = param.type().get();
      if (auto broadcast = broadcastingList(type)) {
        argument.type = broadcast->first;
        argument.fixed_size = broadcast->second;
      } else {
        argument.type = typeOf(type);
      }
    }
    if (param.defaultValue()) {
      Expr value = param.defaultValue().get();
      if (argument.fixed_size && value.kind() == TK_CONST) {
        TypePtr list = argument.type;
        if (const auto* optional = list->as<OptionalType>()) list = optional->element();
        TypePtr element = list->as<ListType>()->element();
        argument.default_value =
            IValue(makeList(element, std::vector<IValue>(static_cast<size_t>(*argument.fixed_size),
                                                         constantOfType(value, element))));
      } else {
        argument.default_value = constantOfType(value, argument.type);
      }
    }
    arguments.push_back(std::move(argument));
  }
  std::vector<Argument> returns;
  if (def.decl().returnType()) {
    Argument result;
    result.type = typeOf(def.decl().returnType().get());
    returns.push_back(std::move(result));
  }
  return FunctionSchema(def.name().name(), "", std::move(arguments), std::move(returns));
}

}  // namespace wick
