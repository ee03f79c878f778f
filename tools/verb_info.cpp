#include <fmt/format.h>

#include "tools/report.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

std::string signature(GraphFunction& function, size_t num_bound) {
  const FunctionSchema& schema = function.schema();
  std::string returns = "None";
  if (schema.returns().size() == 1) returns = schema.returns()[0].type->annotation();
  return fmt::format("{}({}) -> {}", function.name(), describeArguments(schema, num_bound),
                     returns);
}

std::string tensorList(const char* title, const Module::Named<Tensor>& tensors) {
  int64_t numbers = 0;
  double bytes = 0;
  std::string lines;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) {
      lines += fmt::format("  {}  None\n", name);
      continue;
    }
    numbers += tensor.numel();
    bytes += static_cast<double>(tensor.numel()) * static_cast<double>(tensor.itemSize());
    lines += fmt::format("  {}  {}\n", name, tensor.describe());
  }
  return fmt::format("{}: {} tensors, {} numbers, {}\n", title, tensors.size(), numbers,
                     formatBytes(bytes)) +
         lines;
}

std::string attributeLine(const std::string& name, const IValue& value) {
  if (value.isTensor()) return fmt::format("  {}: {}\n", name, value.toTensor().describe());
  std::string shown = value.isObject() ? "" : value.shortRepr();
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  return fmt::format("  {}: {}{}\n", name, value.type()->annotation(),
                     shown.empty() ? "" : " = " + shown);
}

std::string moduleInfo(const Module& module) {
  std::string text = fmt::format("class {}\nmethods:\n", module.type()->name());
  for (const std::string& name : module.methodNames()) {
    text += "  " + signature(module.method(name), 1) + "\n";
  }
  text += tensorList("parameters", module.parameters());
  text += tensorList("buffers", module.buffers());
  // Tensors and submodules are listed above and below.
  std::string attributes;
  for (const ClassType::Attribute& attribute : module.type()->attributes()) {
    const IValue& value = module.attr(attribute.name);
    const bool is_module = value.isObject() && value.toObject().type()->isModule();
    if (!attribute.is_parameter && !attribute.is_buffer && !is_module) {
      attributes += attributeLine(attribute.name, value);
    }
  }
  if (!attributes.empty()) text += "attributes:\n" + attributes;
  const Module::Named<Module> modules = module.modules();
  if (modules.size() > 1) text += fmt::format("submodules: {}\n", modules.size() - 1);
  for (const auto& [name, submodule] : modules) {
    if (!name.empty()) text += fmt::format("  {}  {}\n", name, submodule.type()->name());
  }
  return text;
}

}  // namespace

void infoVerb(const Options& options) {
  const Program program = Program::load(options.file);
  if (program.isArchive()) {
    print(fmt::format("{}: archive of format version {}\n", options.file, program.version()) +
          moduleInfo(program.module()));
    return;
  }
  std::string text = fmt::format("{}: script\n", options.file);
  const std::vector<GraphFunction*> functions = program.functions({});
  if (!functions.empty()) text += "functions:\n";
  for (GraphFunction* function : functions) text += "  " + signature(*function, 0) + "\n";
  if (!program.unit().types().empty()) text += "types:\n";
  for (const auto& [name, type] : program.unit().types()) {
    text += fmt::format("  {}\n", name);
    if (const ClassType* class_type = type->as<ClassType>()) {
      for (const ClassType::Attribute& attribute : class_type->attributes()) {
        text += fmt::format("    {}: {}\n", attribute.name, attribute.type->annotation());
      }
    }
  }
  print(text);
}

}  // namespace wick::cli
