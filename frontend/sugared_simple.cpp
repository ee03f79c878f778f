// SimpleValue: attributes, calls, elements and iteration of first-class values, by their type.
#include <fmt/format.h>

#include <set>

#include "core/error.h"
#include "core/native_class.h"
#include "core/suggestions.h"
#include "frontend/builtin_functions.h"
#include "frontend/builtin_table.h"
#include "frontend/class_definitions.h"
#include "frontend/schema_matching.h"
#include "frontend/sugared_value.h"

namespace wick {

namespace {

SugaredValuePtr simple(Value* value) {
  return std::make_shared<SimpleValue>(value);
}

// x.float(): a conversion to one dtype.
class TensorCast : public SugaredValue {
 public:
  TensorCast(Value* self, int64_t dtype) : self_(self), dtype_(dtype) {}
  std::string kind() const override { return "tensor cast"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& fn, std::vector<NamedValue> args,
                       std::vector<NamedValue> kwargs, size_t) override {
    if (!args.empty()) {
      throwCompileError(range, "casting methods of tensors take no positional arguments");
    }
    Graph& graph = *fn.graph();
    return simple(emitBuiltinCall(
        range, graph, Symbol::aten("to"),
        {NamedValue(range, self_), NamedValue(range, graph.insertConstant(IValue(dtype_)))},
        kwargs));
  }

 private:
  Value* self_;
  int64_t dtype_;
};

// Whether some overload of the operator takes this type as `self`.
bool acceptsSelf(Symbol name, const TypePtr& type) {
  auto fits = [&](const FunctionSchema& schema) {
    auto index = schema.argumentIndex("self");
    if (!index) return false;
    const TypePtr& formal = schema.arguments()[*index].type;
    TypeBindings bindings;
    auto matched = matchTypeVariables(formal, type, bindings);
    return matched && type->isSubtypeOf(**matched);
  };
  for (const Operator* op : OperatorRegistry::instance().overloads(name)) {
    if (fits(op->schema())) return true;
  }
  for (GraphFunction* f : builtinFunctionsNamed(name)) {
    if (fits(f->schema())) return true;
  }
  return false;
}

// A method of the engine's own class: an operator whose first argument is the object, whatever the
// schema calls it.
class NativeMethodValue : public SugaredValue {
 public:
  NativeMethodValue(Symbol op, Value* object) : op_(op), object_(object) {}
  std::string kind() const override { return "method"; }
  SugaredValuePtr call(const SourceRange& range, GraphFunction& fn, std::vector<NamedValue> args,
                       std::vector<NamedValue> kwargs, size_t num_binders) override {
    args.insert(args.begin(), NamedValue(range, object_));
    return BuiltinFunction(op_).call(range, fn, std::move(args), std::move(kwargs), num_binders);
  }

 private:
  Symbol op_;
  Value* object_;
};

SugaredValuePtr classAttribute(Value* object, const ClassType& type, const SourceRange& range,
                               GraphFunction& fn, const std::string& field) {
  Graph& graph = *fn.graph();
  if (const std::string* op = findNativeMethod(type, field)) {
    return std::make_shared<NativeMethodValue>(Symbol::fromQualString(*op), object);
  }
  // As PyTorch names what reads a property of such a class.
  if (const std::string* op = findNativeMethod(type, field + "_getter")) {
    return NativeMethodValue(Symbol::fromQualString(*op), object).call(range, fn, {}, {}, 1);
  }
  if (!type.findAttribute(field)) ensureInitialized(type);
  if (type.findMethod(field)) {
    return std::make_shared<MethodValue>(object, std::vector<std::string>{field});
  }
  if (type.findAttribute(field)) {
    RangeGuard at(&graph, range);
    return simple(graph.insertNode(graph.createGetAttr(object, field))->output());
  }
  if (const IValue* constant = type.findConstant(field)) {
    RangeGuard at(&graph, range);
    return simple(graph.insertConstant(*constant));
  }
  if (const ClassType::Property* property = type.findProperty(field)) {
    return MethodValue(object, {property->getter->name()}).call(range, fn, {}, {}, 1);
  }
  if (Function* method = type.findStaticMethod(field)) {
    return std::make_shared<FunctionValue>(method);
  }
  return nullptr;
}

// An element of a ModuleList or ModuleDict, chosen while running: the annotation says what all of
// its elements have in common.
SugaredValuePtr containerItem(const SourceRange& range, Graph& graph, Value* container,
                              Value* index, const TypePtr& type) {
  if (type->kind() != TypeKind::Interface) {
    throwCompileError(
        range,
        "an element of a module container needs the annotation of an interface, found "
        "{}",
        type->annotation());
  }
  if (index->type()->kind() != TypeKind::Int && index->type()->kind() != TypeKind::String) {
    throwCompileError(range, "the index of a module container is an int or a str, found {}",
                      index->type()->annotation());
  }
  Node* n = graph.create(Symbol::prim("ModuleContainerIndex"), {container, index});
  n->setRange(range);
  n->output()->setType(type);
  return simple(graph.insertNode(n)->output());
}

std::set<std::string> membersOf(const TypePtr& type) {
  std::set<std::string> names;
  if (const auto* object = type->as<ClassType>()) {
    for (const auto& a : object->attributes()) names.insert(a.name);
    for (const auto& [name, value] : object->constants()) names.insert(name);
    std::set<std::string> accessors;
    for (const ClassType::Property& p : object->properties()) {
      names.insert(p.name);
      accessors.insert(p.getter->name());
      if (p.setter) accessors.insert(p.setter->name());
    }
    for (const Function* m : object->methods()) {
      if (!accessors.contains(m->name()) && !isUnreadable(*m)) names.insert(m->name());
    }
  } else if (const auto* interface = type->as<InterfaceType>()) {
    for (const auto& m : interface->methods()) names.insert(m->name());
  } else if (const auto* tuple = type->as<TupleType>()) {
    for (const std::string& f : tuple->fields()) names.insert(f);
  } else {
    names = builtinAttributes(type->kind());
    for (const std::string& name : OperatorRegistry::instance().names()) {
      if (!name.starts_with("aten::")) continue;
      if (acceptsSelf(Symbol::fromQualString(name), type)) names.insert(name.substr(6));
    }
  }
  return names;
}

[[noreturn]] void failAttribute(const TypePtr& type, const SourceRange& range,
                                const std::string& field) {
  std::string message =
      fmt::format("'{}' object has no attribute or method '{}'", type->annotation(), field);
  if (const auto* object = type->as<ClassType>()) {
    checkUnreadable(*object, field);
    message += ". Did you forget to initialize an attribute in __init__()?";
    throw MissingMember(range, message, field, object->shared(), membersOf(type));
  }
  throwCompileError(range, "{}{}", message, didYouMean(field, membersOf(type)));
}

}  // namespace

std::string SimpleValue::kind() const {
  return "value of type '" + value_->type()->annotation() + "'";
}

SugaredValuePtr SimpleValue::attr(const SourceRange& range, GraphFunction& fn,
                                  const std::string& field) {
  const TypePtr& type = value_->type();
  Graph& graph = *fn.graph();
  if (Symbol property = propertyOperator(type->kind(), field)) {
    return simple(emitBuiltin(range, *fn.graph(), property, {value_}));
  }
  switch (type->kind()) {
    case TypeKind::Tensor:
      if (auto dtype = castMethodDType(field)) return std::make_shared<TensorCast>(value_, *dtype);
      if (field == "tolist") return std::make_shared<SpecialForm>(prim::tolist, value_);
      break;
    case TypeKind::Tuple:
      if (auto index = type->as<TupleType>()->fieldIndex(field)) {
        RangeGuard at(&graph, range);
        Value* i = graph.insertConstant(IValue(static_cast<int64_t>(*index)));
        return simple(
            graph.insertNode(graph.createTupleIndex(value_, i, type->contained()[*index]))
                ->output());
      }
      break;
    case TypeKind::Class:
      if (auto found = classAttribute(value_, *type->as<ClassType>(), range, fn, field))
        return found;
      failAttribute(type, range, field);
    case TypeKind::Interface:
      if (type->as<InterfaceType>()->findMethod(field)) {
        return std::make_shared<MethodValue>(value_, std::vector<std::string>{field});
      }
      failAttribute(type, range, field);
    case TypeKind::Enum:
      if (field == "name" || field == "value") {
        Node* n = graph.create(Symbol::prim(field == "name" ? "EnumName" : "EnumValue"), {value_});
        n->setRange(range);
        n->output()->setType(field == "name" ? types::String() : type->as<EnumType>()->valueType());
        return simple(graph.insertNode(n)->output());
      }
      break;
    case TypeKind::Optional:
      throwCompileError(range,
                        "'{}' object has no attribute or method '{}': it may be None. Check "
                        "`is not None` first",
                        type->annotation(), field);
    default:
      break;
  }
  NamedValue self(range, "self", value_);
  if (field == "type" && type->kind() == TypeKind::Tensor) {
    return std::make_shared<BuiltinFunction>(Symbol::aten("to"), self);
  }
  // Python spells some operators as methods.
  static const std::pair<const char*, const char*> kMethodOperators[] = {
      {"__len__", "len"},
      {"__getitem__", "__getitem__"},
      {"__contains__", "__contains__"},
      {"__add__", "add"},
      {"__sub__", "sub"},
      {"__mul__", "mul"},
      {"__truediv__", "div"},
      {"__neg__", "neg"},
      {"__eq__", "eq"},
      {"__ne__", "ne"},
      {"__lt__", "lt"},
      {"__le__", "le"},
      {"__gt__", "gt"},
      {"__ge__", "ge"},
      {"__pow__", "pow"},
      {"__mod__", "remainder"},
      {"__matmul__", "matmul"},
      {"__abs__", "abs"},
      {"__floordiv__", "floordiv"}};
  Symbol name = Symbol::aten(field);
  if (acceptsSelf(name, type)) return std::make_shared<BuiltinFunction>(name, self);
  for (const auto& [method, op] : kMethodOperators) {
    if (field != method) continue;
    return std::make_shared<BuiltinFunction>(Symbol::aten(op), NamedValue(range, value_));
  }
  failAttribute(type, range, field);
}

bool SimpleValue::hasAttr(const SourceRange& range, GraphFunction&, const std::string& field) {
  const TypePtr& type = value_->type();
  if (const auto* object = type->as<ClassType>()) {
    ensureInitialized(*object);
    if (object->findMethod(field) || object->findAttribute(field) || object->findConstant(field) ||
        object->findProperty(field) || object->findStaticMethod(field) ||
        findNativeMethod(*object, field)) {
      return true;
    }
    checkUnreadable(*object, field);
    return false;
  }
  if (const auto* interface = type->as<InterfaceType>()) {
    return interface->findMethod(field) != nullptr;
  }
  if (const auto* tuple = type->as<TupleType>()) return tuple->fieldIndex(field).has_value();
  if (type->kind() == TypeKind::Tensor) {
    return propertyOperator(type->kind(), field) || castMethodDType(field) ||
           acceptsSelf(Symbol::aten(field), type);
  }
  throwCompileError(range, "hasattr's first argument must be a object or NamedTuple, found {}",
                    type->annotation());
}

void SimpleValue::setAttr(const SourceRange& range, GraphFunction& fn, const std::string& field,
                          Value* new_value) {
  Graph& graph = *fn.graph();
  if (value_->type()->kind() == TypeKind::Tensor) {
    if (field == "requires_grad" || field == "data" || field == "grad") {
      throwCompileError(range, "assigning to the attribute '{}' of a tensor is not supported",
                        field);
    }
  }
  const ClassType* type = value_->type()->as<ClassType>();
  if (!type) {
    throwCompileError(range, "Tried to set an attribute: {} on a non-class: {}", field,
                      value_->type()->annotation());
  }
  auto slot = type->findAttribute(field);
  if (!slot && fn.name() != "__init__") {
    ensureInitialized(*type);
    slot = type->findAttribute(field);
  }
  if (!slot) {
    if (const ClassType::Property* property = type->findProperty(field)) {
      if (!property->setter) {
        throwCompileError(range, "Tried to set read-only attribute: {}", field);
      }
      MethodValue(value_, {property->setter->name()})
          .call(range, fn, {NamedValue(range, new_value)}, {}, 0);
      return;
    }
    // Attributes come into being in __init__, where each has one type.
    bool in_init = fn.name() == "__init__" && !fn.graph()->inputs().empty() &&
                   fn.graph()->inputs()[0]->type() == value_->type();
    if (!in_init) {
      checkUnreadable(*type, field);
      std::set<std::string> names;
      for (const auto& a : type->attributes()) names.insert(a.name);
      throwCompileError(range,
                        "Tried to set nonexistent attribute: {}. Did you forget to "
                        "initialize it in __init__()?{}",
                        field, didYouMean(field, names));
    }
    if (type->findMethod(field) || type->findConstant(field)) {
      throwCompileError(range, "'{}' is a method or constant of '{}' and cannot be assigned", field,
                        type->annotation());
    }
    if (new_value->node()->block() != fn.graph()->block() &&
        graph.insertPoint()->block() != fn.graph()->block()) {
      throwCompileError(range,
                        "First assignment to self.{} cannot be in a control-flow block: an "
                        "attribute must always exist",
                        field);
    }
    slot = type->shared()->addAttribute(field, unshapedType(new_value->type()));
  }
  TypePtr expected = type->attributes()[*slot].type;
  new_value = tryConvertToType(range, graph, expected, new_value, ImplicitConversions::EmptyLists);
  std::string why;
  if (!new_value->type()->isSubtypeOf(*expected, &why)) {
    throwCompileError(range, "Wrong type for attribute assignment. Expected {} but got {}",
                      expected->annotation(), new_value->type()->annotation());
  }
  RangeGuard at(&graph, range);
  graph.insertNode(graph.createSetAttr(value_, field, new_value));
}

SugaredValuePtr SimpleValue::call(const SourceRange& range, GraphFunction& fn,
                                  std::vector<NamedValue> args, std::vector<NamedValue> kwargs,
                                  size_t num_binders) {
  const TypePtr& type = value_->type();
  if (const auto* function = type->as<FunctionType>()) {
    return FunctionValue(function->function())
        .call(range, fn, std::move(args), std::move(kwargs), num_binders);
  }
  // A module is called by its forward method, an object by __call__.
  for (const char* method : {"forward", "__call__"}) {
    if (!findMethodOf(type, method)) continue;
    bool module = type->kind() == TypeKind::Interface ? type->as<InterfaceType>()->isModule()
                                                      : type->as<ClassType>()->isModule();
    if ((std::string_view(method) == "forward") != module) continue;
    return MethodValue(value_, {method})
        .call(range, fn, std::move(args), std::move(kwargs), num_binders);
  }
  throwCompileError(range, "'{}' object is not callable", type->annotation());
}

std::vector<SugaredValuePtr> SimpleValue::asTuple(const SourceRange& range, GraphFunction& fn,
                                                  std::optional<size_t> size_hint) {
  Graph& graph = *fn.graph();
  RangeGuard at(&graph, range);
  Node* unpacked = nullptr;
  switch (value_->type()->kind()) {
    case TypeKind::Tuple:
      unpacked = graph.insertNode(graph.createTupleUnpack(value_));
      break;
    case TypeKind::String: {
      if (!size_hint) break;
      Value* characters = emitBuiltin(range, *fn.graph(), Symbol::aten("list"), {value_});
      unpacked = graph.insertNode(graph.createListUnpack(characters, *size_hint));
      break;
    }
    case TypeKind::List:
      if (!size_hint) {
        throwCompileError(range,
                          "Provided list cannot be used as a tuple because its size is not "
                          "statically known");
      }
      unpacked = graph.insertNode(graph.createListUnpack(value_, *size_hint));
      break;
    case TypeKind::Any:
      throwCompileError(range,
                        "Provided value of type Any cannot be used as a tuple: refine it "
                        "with isinstance first");
    case TypeKind::Tensor: {
      if (!size_hint) break;
      // Rows of a tensor.
      Value* rows = emitBuiltin(range, *fn.graph(), Symbol::aten("unbind"),
                                {value_, graph.insertConstant(IValue(int64_t{0}))});
      unpacked = graph.insertNode(graph.createListUnpack(rows, *size_hint));
      break;
    }
    default:
      break;
  }
  if (!unpacked) {
    throwCompileError(range, "{} cannot be used as a tuple", kind());
  }
  std::vector<SugaredValuePtr> out;
  for (Value* v : unpacked->outputs()) out.push_back(simple(v));
  return out;
}

SugaredValuePtr SimpleValue::getItem(const SourceRange& range, GraphFunction& fn, Value* index,
                                     TypePtr type_hint) {
  Graph& graph = *fn.graph();
  const TypePtr& type = value_->type();
  switch (type->kind()) {
    case TypeKind::Tensor:
      return simple(emitBuiltin(range, *fn.graph(), aten::select,
                                {value_, graph.insertConstant(IValue(int64_t{0})), index}));
    case TypeKind::Tuple: {
      const auto& elements = type->contained();
      if (index->type()->kind() != TypeKind::Int) {
        throwCompileError(range, "tuple index must be an integer, found {}",
                          index->type()->annotation());
      }
      int64_t size = static_cast<int64_t>(elements.size());
      TypePtr element;
      if (auto constant = constantOf(index)) {
        int64_t i = constant->toInt();
        if (i < -size || i >= size) {
          throwCompileError(range, "Tuple index out of range. Tuple is length {} and index is {}",
                            size, i);
        }
        element = elements[static_cast<size_t>(i < 0 ? i + size : i)];
      } else {
        for (const TypePtr& t : elements) {
          if (sameType(t, elements[0])) continue;
          throwCompileError(range,
                            "Cannot index into a {} with a non-integer literal because we "
                            "cannot resolve the output type",
                            type->annotation());
        }
        if (elements.empty()) throwCompileError(range, "an empty tuple has no elements");
        element = elements[0];
      }
      RangeGuard at(&graph, range);
      return simple(graph.insertNode(graph.createTupleIndex(value_, index, element))->output());
    }
    case TypeKind::Class:
      if (!findMethodOf(type, "__getitem__")) {
        if (type->as<ClassType>()->isModule() && type_hint) {
          return containerItem(range, graph, value_, index, type_hint);
        }
        throwCompileError(range, "'{}' object is not subscriptable: it has no __getitem__",
                          type->annotation());
      }
      return MethodValue(value_, {"__getitem__"})
          .call(range, fn, {NamedValue(range, index)}, {}, 1);
    case TypeKind::List:
    case TypeKind::Dict:
    case TypeKind::String:
      return simple(emitBuiltin(range, *fn.graph(), aten::__getitem__, {value_, index}));
    default:
      throwCompileError(range, "'{}' object is not subscriptable", type->annotation());
  }
}

SugaredValuePtr SimpleValue::iterate(const SourceRange& range, GraphFunction& fn) {
  switch (value_->type()->kind()) {
    case TypeKind::List:
    case TypeKind::String:
    case TypeKind::Tensor:
      return shared_from_this();
    case TypeKind::Dict:
      return simple(emitBuiltin(range, *fn.graph(), Symbol::aten("keys"), {value_}));
    case TypeKind::Tuple:
      return std::make_shared<SugaredTuple>(asTuple(range, fn, std::nullopt));
    default:
      throwCompileError(range, "'{}' object is not iterable", value_->type()->annotation());
  }
}

Value* SimpleValue::length(const SourceRange& range, GraphFunction& fn) {
  switch (value_->type()->kind()) {
    case TypeKind::List:
    case TypeKind::String:
    case TypeKind::Tensor:
    case TypeKind::Dict:
      return emitBuiltin(range, *fn.graph(), aten::len, {value_});
    case TypeKind::Tuple:
      return fn.graph()->insertConstant(
          IValue(static_cast<int64_t>(value_->type()->contained().size())));
    default:
      throwCompileError(range, "'{}' object has no length", value_->type()->annotation());
  }
}

}  // namespace wick
