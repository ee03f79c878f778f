#include "serialization/exported/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/error.h"
#include "ir/function.h"
#include "ir/verifier.h"
#include "runtime/module_builder.h"
#include "serialization/exported/call_text.h"
#include "serialization/exported/graph_builder.h"
#include "serialization/exported/package.h"
#include "serialization/python_names.h"

namespace wick::exported {
namespace {

constexpr const char* kClasses = "__torch__.exported.";
constexpr size_t kMaxModuleDepth = 64;
// The memory of a module and its class, its name apart.
constexpr uint64_t kModuleMemory = 1024;
constexpr const char* kModels = "models";

std::vector<std::string> split(const std::string& dotted) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t dot = dotted.find('.'); dot != std::string::npos; dot = dotted.find('.', start)) {
    parts.push_back(dotted.substr(start, dot - start));
    start = dot + 1;
  }
  parts.push_back(dotted.substr(start));
  return parts;
}

// The parts of a module: tensors and modules by name.
struct ModuleTree {
  struct Entry {
    std::string name;
    InputSpec::Kind kind;
    Tensor tensor;
  };
  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::unique_ptr<ModuleTree>>> children;
  KeyedMap<std::string, ModuleTree*> index;

  ModuleTree& child(const std::string& name) {
    auto [found, fresh] = index.try_emplace(name);
    if (fresh) {
      children.emplace_back(name, std::make_unique<ModuleTree>());
      found->second = children.back().second.get();
    }
    return *found->second;
  }

  // The builder of the module with everything below it built.
  void addTo(ModuleBuilder& builder, const std::string& path) const {
    for (const auto& [name, tree] : children) {
      const std::string below = path + "." + makeValidIdentifier(name);
      ModuleBuilder part(below);
      tree->addTo(part, below);
      builder.registerModule(name, part.build());
    }
    for (const Entry& entry : entries) {
      if (entry.kind == InputSpec::Kind::Parameter) {
        builder.registerParameter(entry.name, entry.tensor, entry.tensor.requiresGrad());
      } else if (entry.kind == InputSpec::Kind::Buffer) {
        builder.registerBuffer(entry.name, entry.tensor);
      } else {
        builder.registerAttribute(entry.name, types::Tensor(), IValue(entry.tensor));
      }
    }
  }
};

void noteNames(const std::vector<Operand>& operands, KeyedSet<std::string>& names) {
  for (const Operand& operand : operands) {
    if (operand.isName()) names.insert(operand.text);
    noteNames(operand.elements, names);
  }
}

// Makes the graph of a program, when it is compiled.
class ComputationMaker {
 public:
  ComputationMaker(std::shared_ptr<const ProgramRecord> program, DeviceMap devices,
                   std::string name, ClassTypePtr type)
      : program_(std::move(program)),
        devices_(std::move(devices)),
        name_(std::move(name)),
        type_(std::move(type)) {}

  void operator()(GraphFunction& function) const {
    const ProgramRecord& program = *program_;
    auto graph = std::make_shared<Graph>();
    const Listing listing(program.graph, name_);
    GraphBuilder builder(*graph, listing, devices_);
    KeyedMap<std::string, Value*> modules;
    modules[""] = graph->addInput("self", type_);
    bindInputs(*graph, builder, modules);
    builder.emit(program.graph);
    writeBack(*graph, builder, modules);
    std::vector<Value*> results;
    addResults(builder, results, false);
    addResults(builder, results, true);
    graph->registerOutput(graph->insertNode(graph->createTuple(results))->output());
    verify(*graph);
    function.setGraph(std::move(graph));
  }

  // The arguments and the result of the graph.
  static std::vector<Argument> arguments(const ProgramRecord& program) {
    std::vector<Argument> out;
    NameGenerator names;
    names.unique("self");
    for (const InputSpec& input : program.inputs) {
      if (input.kind != InputSpec::Kind::User || !input.value.isName()) continue;
      Argument argument;
      argument.name = names.unique(makeValidIdentifier(input.value.text));
      argument.type = typeOf(input.value);
      out.push_back(std::move(argument));
    }
    return out;
  }
  static TypePtr result(const ProgramRecord& program) {
    std::vector<TypePtr> types;
    for (const bool gradients : {false, true}) {
      for (const OutputSpec& output : program.outputs) {
        if (isGiven(output, gradients)) types.push_back(typeOf(output.value));
      }
    }
    return types::Tuple(std::move(types));
  }

 private:
  static TypePtr typeOf(const Operand& operand) {
    if (operand.kind == OperandKind::SymInt) return types::Int();
    if (operand.kind == OperandKind::SymFloat) return types::Float();
    if (operand.kind == OperandKind::SymBool) return types::Bool();
    return types::Tensor();
  }

  static bool isGiven(const OutputSpec& output, bool gradients) {
    switch (output.kind) {
      case OutputSpec::Kind::User:
      case OutputSpec::Kind::Loss:
        return !gradients && output.value.isName();
      case OutputSpec::Kind::ParameterGradient:
      case OutputSpec::Kind::InputGradient:
        return gradients;
      default:
        return false;
    }
  }

  void bindInputs(Graph& graph, GraphBuilder& builder,
                  KeyedMap<std::string, Value*>& modules) const {
    KeyedSet<std::string> used;
    for (const NodeRecord& node : program_->graph.nodes) {
      for (const NamedOperand& input : node.inputs) noteNames({input.operand}, used);
    }
    for (const OutputSpec& output : program_->outputs) noteNames({output.value}, used);
    const std::vector<Argument> names = arguments(*program_);
    size_t next = 0;
    for (const InputSpec& input : program_->inputs) {
      switch (input.kind) {
        case InputSpec::Kind::User:
          if (!input.value.isName()) break;
          builder.bind(input.value.text, graph.addInput(names[next].name, names[next].type));
          ++next;
          break;
        case InputSpec::Kind::Parameter:
        case InputSpec::Kind::Buffer:
        case InputSpec::Kind::TensorConstant:
          if (!used.contains(input.value.text)) break;
          builder.bind(input.value.text, attributeOf(graph, modules, input.target));
          break;
        case InputSpec::Kind::Token:
          builder.bind(input.value.text, graph.insertNode(graph.createNone())->output());
          break;
        case InputSpec::Kind::Object:
          builder.bindObject(input.value.text);
          break;
        case InputSpec::Kind::Constant:
          break;
      }
    }
  }

  static Value* attributeOf(Graph& graph, KeyedMap<std::string, Value*>& modules,
                            const std::string& dotted) {
    const size_t dot = dotted.rfind('.');
    if (dot == std::string::npos) {
      return graph.insertNode(graph.createGetAttr(modules.at(""), dotted))->output();
    }
    const std::string owner = dotted.substr(0, dot);
    auto found = modules.find(owner);
    if (found == modules.end()) {
      Value* module = attributeOf(graph, modules, owner);
      found = modules.emplace(owner, module).first;
    }
    return graph.insertNode(graph.createGetAttr(found->second, dotted.substr(dot + 1)))->output();
  }

  // Writes the values that the program computed in place of writing to buffers, parameters and arguments.
  void writeBack(Graph& graph, GraphBuilder& builder,
                 KeyedMap<std::string, Value*>& modules) const {
    for (const OutputSpec& output : program_->outputs) {
      Value* target = nullptr;
      switch (output.kind) {
        case OutputSpec::Kind::BufferMutation:
        case OutputSpec::Kind::ParameterMutation:
          target = attributeOf(graph, modules, output.target);
          break;
        case OutputSpec::Kind::InputMutation:
          target = builder.valueNamed(output.target);
          break;
        default:
          continue;
      }
      builder.emitCopy(target, builder.valueNamed(output.value.text));
    }
  }

  void addResults(GraphBuilder& builder, std::vector<Value*>& results, bool gradients) const {
    for (const OutputSpec& output : program_->outputs) {
      if (!isGiven(output, gradients)) continue;
      Value* value = builder.valueNamed(output.value.text);
      if (!value->type()->isSubtypeOf(*typeOf(output.value))) {
        throwCompileError({}, "{}: the result '{}' is a {}, not a {}", name_, output.value.text,
                          value->type()->annotation(), typeOf(output.value)->annotation());
      }
      results.push_back(value);
    }
  }

  std::shared_ptr<const ProgramRecord> program_;
  DeviceMap devices_;
  std::string name_;
  ClassTypePtr type_;
};

class ProgramImporter {
 public:
  ProgramImporter(std::shared_ptr<ArchiveReader> archive, const LoadOptions& options)
      : archive_(std::move(archive)), options_(options) {}

  Module import() {
    std::vector<StoredProgram> programs = readPackage(archive_, options_);
    try {
      // Dropout and the like were decided when the program was exported.
      if (programs.size() == 1) return importOne(std::move(programs[0]), "Program").eval();
      return importAll(std::move(programs)).eval();
    } catch (const UsageError& error) {
      // Names that the file gives twice or that cannot be those of attributes.
      throwLoadError("{}: {}", archive_->name(), error.what());
    }
  }

 private:
  Module importOne(StoredProgram stored, const std::string& class_name) {
    place_ = fmt::format("{}/{}", archive_->name(), stored.name);
    checkSignature(stored.program);
    const std::string path = kClasses + class_name;
    ModuleBuilder builder(path);
    makeTree(stored).addTo(builder, path);
    const CallText text = makeCallText(stored.program, place_, *archive_->budget());
    if (!text.classes.empty()) builder.compile(text.classes, place_ + "/classes");
    builder.define(text.methods, place_ + "/calls");
    auto program = std::make_shared<const ProgramRecord>(std::move(stored.program));
    builder.defineGraph(kComputation, ComputationMaker::arguments(*program),
                        ComputationMaker::result(*program),
                        ComputationMaker(program, options_.devices, place_, builder.type()));
    return builder.build(options_.compile_errors);
  }

  Module importAll(std::vector<StoredProgram> programs) {
    const std::string path = std::string(kClasses) + "Package";
    ModuleBuilder models(path + ".models");
    std::string methods;
    std::vector<std::pair<std::string, Module>> parts;
    NameGenerator names;
    for (const char* name : {"self", "training", kModels}) names.unique(name);
    ModuleBuilder package(path);
    for (StoredProgram& stored : programs) {
      const std::string name = names.unique(makeValidIdentifier(stored.name));
      const Module module = importOne(std::move(stored), "models." + name);
      models.registerModule(name, module);
      parts.emplace_back(name, module);
    }
    package.registerModule(kModels, models.build());
    for (const auto& [name, module] : parts) methods += callOf(name, module);
    package.define(methods, archive_->name() + "/calls");
    return package.build(options_.compile_errors);
  }

  // A method that calls forward of the model.
  static std::string callOf(const std::string& name, const Module& module) {
    const FunctionSchema& schema = module.method("forward").schema();
    std::string parameters = "self";
    std::vector<std::string> arguments;
    for (size_t i = 1; i < schema.arguments().size(); ++i) {
      const Argument& argument = schema.arguments()[i];
      parameters += fmt::format(", {}: {}", argument.name, argument.type->annotation());
      if (argument.default_value) parameters += " = " + argument.default_value->repr();
      arguments.push_back(argument.name);
    }
    return fmt::format("def {}({}):\n    return self.{}.{}.forward({})\n", name, parameters,
                       kModels, name, fmt::join(arguments, ", "));
  }

  // The signature names the inputs and outputs of the graph, in their order.
  void checkSignature(const ProgramRecord& program) const {
    if (program.inputs.size() != program.graph.inputs.size() ||
        program.outputs.size() != program.graph.outputs.size()) {
      throwLoadError("{}: the signature has {} inputs and {} outputs, the graph {} and {}", place_,
                     program.inputs.size(), program.outputs.size(), program.graph.inputs.size(),
                     program.graph.outputs.size());
    }
  }

  ModuleTree makeTree(const StoredProgram& stored) const {
    ModuleTree tree;
    KeyedMap<std::string, InputSpec::Kind> kinds;
    for (const InputSpec& input : stored.program.inputs) {
      if (input.kind != InputSpec::Kind::Parameter && input.kind != InputSpec::Kind::Buffer &&
          input.kind != InputSpec::Kind::TensorConstant) {
        continue;
      }
      const auto found = stored.values.find(input.target);
      if (found == stored.values.end()) {
        throwLoadError("{}: the package has no value for '{}'", place_, input.target);
      }
      if (!found->second.isTensor()) {
        throwLoadError("{}: '{}' is {}, expected a tensor", place_, input.target,
                       found->second.tagName());
      }
      std::vector<std::string> path = split(input.target);
      if (path.size() > kMaxModuleDepth) {
        throwLoadError("{}: the name '{}' has too many parts", place_, input.target.substr(0, 100));
      }
      ModuleTree* owner = &tree;
      size_t length = 0;
      for (size_t i = 0; i + 1 < path.size(); ++i) {
        length += path[i].size();
        const size_t before = owner->children.size();
        ModuleTree& part = owner->child(path[i]);
        if (owner->children.size() > before && !archive_->budget()->take(kModuleMemory + length)) {
          throwLoadError("{}: the modules take more memory than a file of this size may", place_);
        }
        owner = &part;
      }
      kinds[input.target] = input.kind;
      owner->entries.push_back({path.back(), input.kind, found->second.toTensor()});
    }
    for (const OutputSpec& output : stored.program.outputs) checkTarget(kinds, output);
    return tree;
  }

  void checkTarget(const KeyedMap<std::string, InputSpec::Kind>& kinds,
                   const OutputSpec& output) const {
    InputSpec::Kind wanted{};
    if (output.kind == OutputSpec::Kind::BufferMutation) {
      wanted = InputSpec::Kind::Buffer;
    } else if (output.kind == OutputSpec::Kind::ParameterMutation) {
      wanted = InputSpec::Kind::Parameter;
    } else {
      return;
    }
    const auto found = kinds.find(output.target);
    if (found == kinds.end() || found->second != wanted) {
      throwLoadError("{}: the program writes to '{}', which it does not have", place_,
                     output.target);
    }
  }

  std::shared_ptr<ArchiveReader> archive_;
  const LoadOptions& options_;
  std::string place_;  // of the program, for messages
};

}  // namespace

namespace {

void addUnknown(const GraphRecord& graph, std::set<std::string>& names) {
  const auto note = [&](const std::string& target) {
    if (isKnownTarget(target)) return;
    const std::optional<OperatorName> name = operatorNamed(target);
    names.insert(name ? std::string(name->symbol.qualString()) : target);
  };
  for (const NodeRecord& node : graph.nodes) {
    note(node.target);
    for (const NamedOperand& input : node.inputs) {
      if (input.operand.graph) addUnknown(*input.operand.graph, names);
      if (input.operand.kind == OperandKind::Operator) note(input.operand.text);
    }
  }
}

}  // namespace

std::set<std::string> unknownOperators(const std::shared_ptr<ArchiveReader>& archive) {
  std::set<std::string> names;
  for (const StoredProgram& stored : readPackage(archive, {})) {
    addUnknown(stored.program.graph, names);
  }
  return names;
}

Module importProgram(const std::shared_ptr<ArchiveReader>& archive, const LoadOptions& options) {
  return ProgramImporter(archive, options).import();
}

}  // namespace wick::exported
