#include "serialization/python_calls.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/native_class.h"
#include "ir/function_capsule.h"
#include "serialization/python_constants.h"
#include "serialization/python_names.h"

namespace wick {
namespace {

bool isOut(const Argument& argument) {
  return argument.kwarg_only && argument.alias != nullptr && argument.alias->is_write;
}

// How many leading arguments must be written, and how many out arguments end the schema.
std::pair<size_t, size_t> necessaryArguments(const std::vector<Argument>& arguments,
                                             const std::vector<Value*>& actual) {
  size_t count = arguments.size();
  while (count > 0 && isOut(arguments[count - 1])) --count;
  const size_t num_out = arguments.size() - count;
  if (arguments.size() < actual.size()) return {actual.size(), num_out};
  for (; count > 0; --count) {
    const Argument& argument = arguments[count - 1];
    if (!argument.default_value) break;
    const auto value = constantOf(actual[count - 1]);
    if (!value || value->tag() != argument.default_value->tag() ||
        !value->equals(*argument.default_value)) {
      break;
    }
  }
  return {count, num_out};
}

class ExpressionPrinter {
 public:
  ExpressionPrinter(const Node& node, ExpressionContext& context)
      : node_(node), context_(context) {}

  std::string print() {
    using Form = std::string (ExpressionPrinter::*)();
    static const std::unordered_map<std::string_view, Form> forms = {
        {"prim::Constant", &ExpressionPrinter::constant},
        {"prim::Uninitialized", &ExpressionPrinter::uninitialized},
        {"prim::TupleConstruct", &ExpressionPrinter::tuple},
        {"prim::NamedTupleConstruct", &ExpressionPrinter::tuple},
        {"prim::TupleIndex", &ExpressionPrinter::tupleIndex},
        {"prim::TupleSlice", &ExpressionPrinter::tupleSlice},
        {"prim::ListConstruct", &ExpressionPrinter::list},
        {"prim::DictConstruct", &ExpressionPrinter::dict},
        {"prim::CreateObject", &ExpressionPrinter::createObject},
        {"prim::GetAttr", &ExpressionPrinter::getAttr},
        {"prim::CallFunction", &ExpressionPrinter::callFunction},
        {"prim::CallMethod", &ExpressionPrinter::callMethod},
        {"prim::unchecked_cast", &ExpressionPrinter::cast},
        {"prim::unchecked_unwrap_optional", &ExpressionPrinter::cast},
        {"aten::_unwrap_optional", &ExpressionPrinter::unwrap},
        {"prim::isinstance", &ExpressionPrinter::isInstance},
        {"prim::tolist", &ExpressionPrinter::toList},
        {"prim::EnumValue", &ExpressionPrinter::enumValue},
        {"prim::EnumName", &ExpressionPrinter::enumName},
        {"aten::ScalarImplicit", &ExpressionPrinter::annotated},
        {"aten::FloatImplicit", &ExpressionPrinter::annotated},
        {"aten::IntImplicit", &ExpressionPrinter::annotated},
        {"aten::ComplexImplicit", &ExpressionPrinter::annotated},
        {"aten::__getitem__", &ExpressionPrinter::getItem},
        {"prim::ModuleContainerIndex", &ExpressionPrinter::getItem},
        {"aten::Int", &ExpressionPrinter::pythonCall},
        {"aten::Float", &ExpressionPrinter::pythonCall},
        {"aten::Bool", &ExpressionPrinter::pythonCall},
        {"aten::str", &ExpressionPrinter::pythonCall},
        {"aten::sorted", &ExpressionPrinter::pythonCall},
        {"prim::Print", &ExpressionPrinter::pythonCall},
        {"wick::custom_function", &ExpressionPrinter::customFunction},
    };
    auto it = forms.find(node_.kind().qualString());
    return it != forms.end() ? (this->*it->second)() : call();
  }

 private:
  const std::string& use(size_t i) const { return context_.useOf(node_.input(i)); }
  std::string typeOfOutput() { return context_.typeName(*node_.output()->type()); }
  std::string all(size_t from, const char* separator, bool trailing) const {
    std::string text;
    for (size_t i = from; i < node_.inputs().size(); ++i) {
      text += use(i);
      if (trailing || i + 1 < node_.inputs().size()) text += separator;
    }
    return text;
  }

  std::string constant() {
    if (const auto* function = node_.output()->type()->as<FunctionType>()) {
      return context_.functionName(function->function());
    }
    if (!node_.hasAttribute(attr::value)) return "None";
    return context_.constant(node_.ivalue(attr::value));
  }

  std::string uninitialized() { return fmt::format("uninitialized({})", typeOfOutput()); }

  std::string tuple() {
    const auto* type = node_.output()->type()->as<TupleType>();
    const std::string name = type != nullptr && type->isNamed() ? typeOfOutput() : "";
    return fmt::format("{}({}{})", name, all(0, ", ", false),
                       node_.inputs().size() == 1 ? "," : "");
  }

  std::string tupleIndex() { return fmt::format("({})[{}]", use(0), use(1)); }

  std::string tupleSlice() {
    return fmt::format("({})[{}:{}]", use(0), node_.ivalue(Symbol::attr("beg")).toInt(),
                       node_.ivalue(Symbol::attr("end")).toInt());
  }

  std::string list() {
    const auto* type = node_.output()->type()->as<ListType>();
    std::string text = "[" + all(0, ", ", false) + "]";
    if (!node_.inputs().empty() && inferredFromElements(*type->element())) return text;
    return fmt::format("annotate({}, {})", typeOfOutput(), text);
  }

  std::string dict() {
    const auto* type = node_.output()->type()->as<DictType>();
    std::string text = "{";
    for (size_t i = 0; i + 1 < node_.inputs().size(); i += 2) {
      if (i > 0) text += ", ";
      text += use(i) + ": " + use(i + 1);
    }
    text += "}";
    if (!node_.inputs().empty() && inferredFromElements(*type->key()) &&
        inferredFromElements(*type->value())) {
      return text;
    }
    return fmt::format("annotate({}, {})", typeOfOutput(), text);
  }

  std::string createObject() {
    const std::string name = typeOfOutput();
    return fmt::format("{}.__new__({})", name, name);
  }

  std::string getAttr() {
    const std::string& field = node_.ivalue(attr::name).toString();
    if (isValidIdentifier(field)) return fmt::format("{}.{}", use(0), field);
    return fmt::format("getattr({}, {})", use(0), quotedText(field));
  }

  std::string callFunction() { return fmt::format("{}({})", use(0), all(1, ", ", true)); }

  std::string callMethod() {
    return fmt::format("({}).{}({})", use(0), node_.ivalue(attr::name).toString(),
                       all(1, ", ", true));
  }

  // The first two inputs are functions that do nothing but call one of the program.
  std::string customFunction() {
    const auto called = [&](size_t input) -> std::string {
      const auto& part = dynamic_cast<FunctionCapsule&>(
          node_.input(input)->node()->ivalue(attr::value).toCapsule());
      for (const Node* n : part.function.graph()->nodes()) {
        if (n->kind() != prim::CallFunction) continue;
        const auto* type = n->input(0)->type()->as<FunctionType>();
        if (type) return context_.functionName(type->function());
      }
      throwRuntimeError("custom_function: a function of it is gone, so it cannot be printed");
    };
    std::string text = fmt::format("ops.wick.custom_function({}, {}", called(0), called(1));
    if (node_.inputs().size() > 3) text += ", " + all(3, ", ", false);
    return text + ", non_differentiable=" + use(2) + ")";
  }

  std::string cast() { return fmt::format("unchecked_cast({}, {})", typeOfOutput(), use(0)); }

  // The type of _unwrap_optional(None) must be said.
  std::string unwrap() {
    std::string argument = use(0);
    if (node_.input(0)->type()->kind() == TypeKind::None) {
      argument = fmt::format("annotate({}, {})",
                             context_.typeName(*types::Optional(node_.output()->type())), argument);
    }
    return fmt::format("torch._unwrap_optional({})", argument);
  }

  std::string isInstance() {
    const std::vector<TypePtr>& types = node_.typesAttribute(attr::types);
    std::string text;
    for (const TypePtr& type : types) {
      if (!text.empty()) text += ", ";
      text += context_.typeName(*type);
    }
    if (types.size() != 1) text = "(" + text + ")";
    return fmt::format("isinstance({}, {})", use(0), text);
  }

  std::string toList() { return fmt::format("annotate({}, {}.tolist())", typeOfOutput(), use(0)); }
  std::string enumValue() { return fmt::format("({}).value", use(0)); }
  std::string enumName() { return fmt::format("({}).name", use(0)); }
  std::string annotated() { return fmt::format("annotate({}, {})", typeOfOutput(), use(0)); }

  std::string getItem() {
    const std::string& container = use(0);
    return isValidIdentifier(container) ? fmt::format("{}[{}]", container, use(1))
                                        : fmt::format("({})[{}]", container, use(1));
  }

  std::string pythonCall() {
    static const std::unordered_map<std::string_view, const char*> names = {
        {"aten::Int", "int"}, {"aten::Float", "float"},   {"aten::Bool", "bool"},
        {"aten::str", "str"}, {"aten::sorted", "sorted"}, {"prim::Print", "print"}};
    return fmt::format("{}({})", names.at(node_.kind().qualString()), all(0, ", ", false));
  }

  std::string operatorName() const {
    const Symbol kind = node_.kind();
    if (kind.qualString() == "aten::backward") return "torch.autograd.backward";
    if (kind.qualString() == "aten::grad") return "torch.autograd.grad";
    if (kind.isAten()) return fmt::format("torch.{}", kind.name());
    return fmt::format("ops.{}.{}", kind.ns(), kind.name());
  }

  std::string call() {
    const FunctionSchema* schema = node_.maybeSchema();
    WICK_CHECK(schema != nullptr, "print: {} has no form in source", node_.kind().qualString());
    context_.noteOperator(*schema);
    const std::vector<Argument>& arguments = schema->arguments();
    const auto [necessary, num_out] = necessaryArguments(arguments, node_.inputs());
    // Methods of native classes as they were called: others know no operator of that name.
    const auto* object =
        node_.inputs().empty() ? nullptr : node_.input(0)->type()->as<ClassType>();
    const std::string* method =
        object ? findMethodOfOperator(*object, node_.kind().qualString()) : nullptr;
    std::string text;
    auto add = [&](size_t i) {
      if (!text.empty()) text += ", ";
      if (i < arguments.size() && arguments[i].kwarg_only) text += arguments[i].name + "=";
      text += use(i);
    };
    for (size_t i = method ? 1 : 0; i < necessary; ++i) add(i);
    if (node_.inputs().size() == arguments.size()) {
      for (size_t i = arguments.size() - num_out; i < arguments.size(); ++i) add(i);
    }
    if (method) return fmt::format("({}).{}({})", use(0), *method, text);
    return fmt::format("{}({})", operatorName(), text);
  }

  const Node& node_;
  ExpressionContext& context_;
};

}  // namespace

std::string printExpression(const Node& node, ExpressionContext& context) {
  return ExpressionPrinter(node, context).print();
}

}  // namespace wick
