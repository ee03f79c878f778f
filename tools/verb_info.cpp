#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "ir/depth.h"
#include "passes/inline_calls.h"
#include "passes/node_traits.h"
#include "serialization/tensor_files.h"
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

struct Totals {
  int64_t numbers = 0;
  double bytes = 0;
  void add(const Tensor& tensor) {
    if (!tensor.defined()) return;
    numbers += tensor.numel();
    bytes += static_cast<double>(tensor.numel()) * static_cast<double>(tensor.itemSize());
  }
};

// Counts the parameters and buffers of a module and of those within.
Totals totalsOf(const Module& module) {
  Totals totals;
  for (const auto& [name, tensor] : module.parameters()) totals.add(tensor);
  for (const auto& [name, tensor] : module.buffers()) totals.add(tensor);
  return totals;
}

// The operators in forward with all that it calls, the most frequent first: each counts once for each line that has it,
// in branches and loops as well. Empty where there is no forward that compiles.
std::vector<std::pair<std::string, size_t>> operatorsOf(const LoadedFile& program) {
  GraphFunction* forward = program.module().findMethod("forward");
  if (!forward || !program.compiles(*forward)) return {};
  std::map<std::string, size_t> counts;
  try {
    forward->ensureDefined();
    const std::shared_ptr<Graph> graph = forward->graph()->copy();
    inlineCalls(*graph);
    withStackFor(*graph, [&] {
      forEachNode(graph->block(), [&](const Node* node) {
        if (node->kind().ns() != "prim") ++counts[std::string(node->kind().qualString())];
      });
    });
  } catch (const CompileError&) {
    // Functions that do not compile are reported elsewhere.
    return {};
  }
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater<>(), &std::pair<std::string, size_t>::second);
  return sorted;
}

std::string operatorsText(const LoadedFile& program) {
  const auto operators = operatorsOf(program);
  if (operators.empty()) return "";
  std::string text = "operators of forward, with what it calls:\n";
  for (const auto& [name, count] : operators) text += fmt::format("{:>6}  {}\n", count, name);
  return text;
}

template <class Tensors>
std::string tensorList(const char* title, const Tensors& tensors) {
  Totals totals;
  std::string lines;
  for (const auto& [name, tensor] : tensors) {
    if (!tensor.defined()) {
      lines += fmt::format("  {}  None\n", name);
      continue;
    }
    totals.add(tensor);
    lines += fmt::format("  {}  {}\n", name, tensor.describe());
  }
  return fmt::format("{}: {}, {}, {}\n", title,
                     counted(static_cast<int64_t>(tensors.size()), "tensor"),
                     counted(totals.numbers, "number"), formatBytes(totals.bytes)) +
         lines;
}

std::string attributeLine(const std::string& name, const IValue& value) {
  if (value.isTensor()) return fmt::format("  {}: {}\n", name, value.toTensor().describe());
  std::string shown = value.isObject() ? "" : value.shortRepr();
  if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
  return fmt::format("  {}: {}{}\n", name, value.type()->annotation(),
                     shown.empty() ? "" : " = " + shown);
}

// Nothing where all was on the CPU.
std::string deviceLine(const LoadedFile& program) {
  const std::set<std::string>& names = program.deviceNames();
  if (names.empty() || names == std::set<std::string>{"cpu"}) return "";
  return fmt::format("devices: {}\n", fmt::join(names, ", "));
}

std::string moduleInfo(const LoadedFile& program) {
  const Module& module = program.module();
  std::string text = fmt::format("class {}\nmethods:\n", readableClassName(module.type()->name()));
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
    if (name.empty()) continue;
    const Totals totals = totalsOf(submodule);
    text += fmt::format("  {}  {}", name, readableClassName(submodule.type()->name()));
    if (totals.numbers > 0) {
      text += fmt::format("  {}, {}", counted(totals.numbers, "number"), formatBytes(totals.bytes));
    }
    text += "\n";
  }
  return text + operatorsText(program);
}

// A file of tensors without a program; nullopt when it is anything else.
std::optional<NamedTensors> tensorsWithoutProgram(const std::string& path) {
  std::error_code error;
  if (path.ends_with(".py") || !std::filesystem::is_regular_file(path, error)) return std::nullopt;
  try {
    if (isArchiveOfModule(path)) return std::nullopt;
    return loadTensors(path, {}, Device());
  } catch (const LoadError&) {
    // Loading it as a program says which kind of file it is.
    return std::nullopt;
  }
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

template <class Tensors>
nlohmann::json listOf(const Tensors& tensors) {
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
  result["devices"] = program.deviceNames();
  result["class"] = module.type()->name();
  result["training"] = module.isTraining();
  result["methods"] = nlohmann::json::array();
  for (const std::string& name : module.methodNames()) {
    result["methods"].push_back(jsonOf(program, module.method(name), 1));
  }
  result["parameters"] = listOf(module.parameters());
  result["buffers"] = listOf(module.buffers());
  result["submodules"] = nlohmann::json::array();
  for (const auto& [name, submodule] : module.modules()) {
    if (name.empty()) continue;
    const Totals totals = totalsOf(submodule);
    result["submodules"].push_back({{"name", name},
                                    {"class", submodule.type()->name()},
                                    {"numbers", totals.numbers},
                                    {"bytes", totals.bytes}});
  }
  result["operators"] = nlohmann::json::array();
  for (const auto& [name, count] : operatorsOf(program)) {
    result["operators"].push_back({{"name", name}, {"count", count}});
  }
  return result;
}

}  // namespace

void infoVerb(const Options& options) {
  const auto printJson = [](const nlohmann::json& json) {
    print(json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  };
  if (const std::optional<NamedTensors> tensors = tensorsWithoutProgram(options.file)) {
    if (!options.json) return print(tensorList(options.file.c_str(), *tensors));
    return printJson({{"file", options.file}, {"kind", "tensors"}, {"tensors", listOf(*tensors)}});
  }
  const LoadedFile program = LoadedFile::loadAsFarAsPossible(options.file);
  if (options.json) {
    printJson(jsonOf(program, options));
    program.tellErrors();
    return;
  }
  if (program.isArchive()) {
    const std::string kind = program.version() == 0
                                 ? std::string("program of torch.export")
                                 : fmt::format("archive of format version {}", program.version());
    print(fmt::format("{}: {}\n", options.file, kind) + deviceLine(program) + moduleInfo(program));
    program.tellErrors();
    return;
  }
  std::string text = fmt::format("{}: script\n", options.file);
  const std::vector<GraphFunction*> functions = program.functions({});
  if (!functions.empty()) text += "functions:\n";
  for (GraphFunction* function : functions) text += "  " + signature(program, *function, 0) + "\n";
  if (!program.unit().types().empty()) text += "types:\n";
  for (const auto& [name, type] : program.unit().types()) {
    text += fmt::format("  {}\n", readableClassName(name));
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
