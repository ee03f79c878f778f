// How named types print: classes, named tuples, enums, interfaces.
#include <fmt/format.h>

#include <set>

#include "serialization/python_printer_state.h"

namespace wick {

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
      throwRuntimeError("print: {} is not a class", type.str());
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
  WICK_CHECK(type.isNamed(), "print: {} is not a class", type.str());
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

}  // namespace wick
