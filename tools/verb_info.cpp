#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "tools/report.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

std::string signature(const LoadedFile& program, GraphFunction& function, size_t num_bound) {
  if (!program.compiles(function)) return function.name() + " does not compile";
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

std::string moduleInfo(const LoadedFile& program) {
  const Module& module = program.module();
  std::string text = fmt::format("class {}\nmethods:\n", module.type()->name());
  for (const std::string& name : module.methodNames()) {
    text += "  " + signature(program, module.method(name), 1) + "\n";
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

// The same as JSON.
nlohmann::json jsonOf(const LoadedFile& program, GraphFunction& function, size_t num_bound) {
  if (!program.compiles(function)) return {{"name", function.name()}, {"compiles", false}};
  const FunctionSchema& schema = function.schema();
  nlohmann::json arguments = nlohmann::json::array();
  for (size_t i = num_bound; i < schema.arguments().size(); ++i) {
    const Argument& argument = schema.arguments()[i];
    nlohmann::json entry = {{"name", argument.name}, {"type", argument.type->annotation()}};
    if (argument.default_value) entry["default"] = argument.default_value->repr();
    arguments.push_back(std::move(entry));
  }
  const bool one = schema.returns().size() == 1;
  return {{"name", function.name()},
          {"arguments", std::move(arguments)},
          {"returns", one ? schema.returns()[0].type->annotation() : "None"}};
}

nlohmann::json jsonOf(const Module::Named<Tensor>& tensors) {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [name, tensor] : tensors) {
    nlohmann::json entry = {{"name", name}, {"dtype", nullptr}, {"size", nullptr}};
    if (tensor.defined()) {
      entry["dtype"] = toString(tensor.dtype());
      entry["size"] = std::vector<int64_t>(tensor.sizes().begin(), tensor.sizes().end());
    }
    list.push_back(std::move(entry));
  }
  return list;
}

nlohmann::json jsonOf(const LoadedFile& program, const Options& options) {
  nlohmann::json result = {{"file", options.file}, {"kind", "script"}};
  if (!program.isArchive()) {
    result["functions"] = nlohmann::json::array();
    for (GraphFunction* function : program.functions({})) {
      result["functions"].push_back(jsonOf(program, *function, 0));
    }
    result["types"] = nlohmann::json::array();
    for (const auto& [name, type] : program.unit().types()) result["types"].push_back(name);
    return result;
  }
  const Module& module = program.module();
  result["kind"] = "archive";
  result["format_version"] = program.version();
  result["class"] = module.type()->name();
  result["training"] = module.isTraining();
  result["methods"] = nlohmann::json::array();
  for (const std::string& name : module.methodNames()) {
    result["methods"].push_back(jsonOf(program, module.method(name), 1));
  }
  result["parameters"] = jsonOf(module.parameters());
  result["buffers"] = jsonOf(module.buffers());
  result["submodules"] = nlohmann::json::array();
  for (const auto& [name, submodule] : module.modules()) {
    if (name.empty()) continue;
    result["submodules"].push_back({{"name", name}, {"class", submodule.type()->name()}});
  }
  return result;
}

}  // namespace

void infoVerb(const Options& options) {
  const LoadedFile program = LoadedFile::loadAsFarAsPossible(options.file);
  if (options.json) {
    print(jsonOf(program, options).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) +
          "\n");
    program.tellErrors();
    return;
  }
  if (program.isArchive()) {
    print(fmt::format("{}: archive of format version {}\n", options.file, program.version()) +
          moduleInfo(program));
    program.tellErrors();
    return;
  }
  std::string text = fmt::format("{}: script\n", options.file);
  const std::vector<GraphFunction*> functions = program.functions({});
  if (!functions.empty()) text += "functions:\n";
  for (GraphFunction* function : functions) text += "  " + signature(program, *function, 0) + "\n";
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
  program.tellErrors();
}

}  // namespace wick::cli
