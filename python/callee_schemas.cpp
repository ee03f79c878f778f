#include "python/callee_schemas.h"

#include <algorithm>
#include <set>

#include "frontend/builtin_functions.h"
#include "frontend/builtin_table.h"
#include "ir/operator.h"

namespace wick::python {
namespace {

constexpr const char* kListTypes[] = {"List[int]", "List[Tensor]", "List[float]", "List[bool]",
                                      "List[str]"};

SugaredValuePtr calleeOf(CallForm form, const std::string& name, GraphFunction& scratch) {
  if (form == CallForm::Function) {
    const size_t dot = name.rfind('.');
    if (dot == std::string::npos) return nullptr;
    return builtinMember(name.substr(0, dot), name.substr(dot + 1), scratch);
  }
  if (form != CallForm::Method) return nullptr;
  SimpleValue self(scratch.graph()->addInput("x", types::Tensor()));
  if (!self.hasAttr(SourceRange(), scratch, name)) return nullptr;
  return self.attr(SourceRange(), scratch, name);
}

// The type that a schema declares for an argument of the call, or null.
const Type* declaredType(const FunctionSchema& schema, const Arguments& arguments, size_t i) {
  const auto& declared = schema.arguments();
  if (i < arguments.positional) {
    return i < declared.size() ? &withoutOptional(declared[i].type) : nullptr;
  }
  const auto found = schema.argumentIndex(arguments.nameOf(i));
  return found ? &withoutOptional(declared[*found].type) : nullptr;
}

bool isListOf(const Type& type, TypeKind element) {
  const auto* list = type.as<ListType>();
  return list && list->element()->kind() == element;
}

// Returns whether a number or a list of numbers may be what the schema wants.
bool fits(const Type& type, const IValue& value, ArgumentForm form) {
  if (form == ArgumentForm::SomeFloats) {
    return value.isInt() ? type.kind() == TypeKind::Float : isListOf(type, TypeKind::Float);
  }
  if (!value.isBool()) return isListOf(type, TypeKind::Number);
  return type.kind() == (form == ArgumentForm::Truths ? TypeKind::Float : TypeKind::Number);
}

const char* emptyListOf(TypeKind element) {
  switch (element) {
    case TypeKind::Int:
    case TypeKind::Number:
      return kListTypes[0];
    case TypeKind::Float:
      return kListTypes[2];
    case TypeKind::Bool:
      return kListTypes[3];
    case TypeKind::String:
      return kListTypes[4];
    default:
      return kListTypes[1];
  }
}

}  // namespace

const Type& withoutOptional(const TypePtr& type) {
  const auto* optional = type->as<OptionalType>();
  return optional ? *optional->element() : *type;
}

CalleeSchemas::CalleeSchemas(CallForm form, const std::string& name) {
  // A function of the library may be compiled for its schema.
  const WithoutGil others;
  GraphFunction scratch("probe", std::make_shared<Graph>());
  const SugaredValuePtr callee = calleeOf(form, name, scratch);
  if (const auto* builtin = dynamic_cast<const BuiltinFunction*>(callee.get())) {
    for (const Operator* op : OperatorRegistry::instance().overloads(builtin->symbol())) {
      schemas_.push_back(&op->schema());
    }
    for (GraphFunction* function : builtinFunctionsNamed(builtin->symbol())) {
      schemas_.push_back(&function->schema());
    }
  } else if (const auto* functions = dynamic_cast<const FunctionValue*>(callee.get())) {
    for (Function* function : functions->callees()) schemas_.push_back(&function->schema());
  }
}

// Returns which arguments may stand as the form has them: for each overload one set, as bits, that has
// any. Without schemas all that can, and each alone.
std::vector<uint64_t> CalleeSchemas::numberChoices(const Arguments& arguments,
                                                   ArgumentForm form) const {
  std::vector<uint64_t> choices;
  const auto add = [&](uint64_t choice) {
    if (choice != 0 && std::ranges::find(choices, choice) == choices.end()) {
      choices.push_back(choice);
    }
  };
  if (!schemas_.empty()) {
    for (const FunctionSchema* schema : schemas_) {
      uint64_t choice = 0;
      for (size_t i = 0; i < arguments.count; ++i) {
        if (!mayChange(arguments.values[i], form)) continue;
        const Type* type = declaredType(*schema, arguments, i);
        if (type && fits(*type, arguments.values[i], form)) choice |= uint64_t{1} << i;
      }
      // Where overloads for ints and for floats stand side by side, a boolean is neither.
      if (form == ArgumentForm::Truths && hasOverloadForInts(arguments, choice)) continue;
      add(choice);
    }
    return choices;
  }
  uint64_t all = 0;
  for (size_t i = 0; i < arguments.count; ++i) {
    if (mayChange(arguments.values[i], form)) all |= uint64_t{1} << i;
  }
  add(all);
  constexpr size_t kMostAlone = 4;
  for (size_t i = 0; i < arguments.count && choices.size() <= kMostAlone; ++i) {
    add(all & uint64_t{1} << i);
  }
  return choices;
}

bool CalleeSchemas::hasOverloadForInts(const Arguments& arguments, uint64_t choice) const {
  for (const FunctionSchema* schema : schemas_) {
    for (size_t i = 0; i < arguments.count; ++i) {
      if ((choice >> i & 1) == 0 || !arguments.values[i].isBool()) continue;
      const Type* type = declaredType(*schema, arguments, i);
      if (type && type->kind() == TypeKind::Int) return true;
    }
  }
  return false;
}

std::string CalleeSchemas::parameterOfName(const Arguments& arguments) const {
  if (arguments.named_numbers == 0 || arguments.positional == 0 ||
      arguments.positional != arguments.count) {
    return "";
  }
  const size_t last = arguments.count - 1;
  if ((arguments.named_numbers >> last & 1) == 0) return "";
  bool takes_sizes = false;
  std::string name;
  for (const FunctionSchema* schema : schemas_) {
    const Type* type = declaredType(*schema, arguments, last);
    if (!type) continue;
    takes_sizes |= isListOf(*type, TypeKind::Int);
    if (type->kind() == TypeKind::Int) name = schema->arguments()[last].name;
  }
  return takes_sizes ? name : "";
}

std::vector<Spelling> CalleeSchemas::otherSpellings(const Arguments& arguments) const {
  bool tuples = false, literals = false, ints = false, tensor_lists = false, numbers = false;
  bool some_floats = false;
  for (size_t i = 0; i < arguments.count; ++i) {
    const IValue& value = arguments.values[i];
    tuples |= PyTuple_Check(arguments.objects[i]) != 0;
    literals |= value.isNumber() || value.isString();
    ints |= value.isInt();
    tensor_lists |= value.isList() && value.toList().element_type->kind() == TypeKind::Tensor;
    numbers |= mayChange(value, ArgumentForm::Numbers);
    some_floats |= mayChange(value, ArgumentForm::SomeFloats);
  }
  std::vector<Spelling> all;
  if (tuples) all.push_back({ArgumentForm::Tuples, 0});
  if (literals) all.push_back({ArgumentForm::Literals, 0});
  if (ints) all.push_back({ArgumentForm::Floats, 0});
  if (tensor_lists) all.push_back({ArgumentForm::Optionals, 0});
  const auto addChoices = [&](ArgumentForm form) {
    for (const uint64_t chosen : numberChoices(arguments, form)) all.push_back({form, chosen});
  };
  if (numbers) addChoices(ArgumentForm::Numbers);
  if (numbers) addChoices(ArgumentForm::Truths);
  if (some_floats && !schemas_.empty()) addChoices(ArgumentForm::SomeFloats);
  return all;
}

std::vector<const char*> CalleeSchemas::emptyListTypes(const Arguments& arguments) const {
  std::set<const char*> wanted;
  for (const FunctionSchema* schema : schemas_) {
    for (size_t i = 0; i < arguments.count; ++i) {
      const Type* type =
          isEmptyList(arguments.values[i]) ? declaredType(*schema, arguments, i) : nullptr;
      const auto* list = type ? type->as<ListType>() : nullptr;
      if (list) wanted.insert(emptyListOf(withoutOptional(list->element()).kind()));
    }
  }
  if (wanted.empty() && !schemas_.empty()) return {kListTypes[1]};  // as an empty display
  std::vector<const char*> made;
  for (const char* type : kListTypes) {
    if (wanted.empty() || wanted.count(type) > 0) made.push_back(type);
  }
  return made;
}

std::vector<std::string> CalleeSchemas::outNames(size_t count) const {
  for (const FunctionSchema* schema : schemas_) {
    const auto out = schema->argumentIndex("out");
    if (out && schema->arguments()[*out].type->kind() == TypeKind::List) return {};
  }
  for (const FunctionSchema* schema : schemas_) {
    std::vector<std::string> names;
    for (const Argument& argument : schema->arguments()) {
      if (argument.kwarg_only && argument.alias && argument.alias->is_write) {
        names.push_back(argument.name);
      }
    }
    if (names.size() == count && schema->returns().size() == count) return names;
  }
  return {};
}

}  // namespace wick::python
