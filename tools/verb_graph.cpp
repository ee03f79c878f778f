#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>

#include "core/output_file.h"
#include "ir/dot.h"
#include "ir/printer.h"
#include "passes/inline_calls.h"
#include "passes/pipeline.h"
#include "passes/propagate_types.h"
#include "runtime/call.h"
#include "runtime/executor/execution_plan.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/inference.h"
#include "runtime/native/native_compiler.h"
#include "tools/graphviz.h"
#include "tools/kernel_text.h"
#include "tools/module_picture.h"
#include "tools/verbs.h"

namespace wick::cli {

namespace {

// What --stage may name besides passes and phases of the pipeline.
constexpr const char* kSource = "source";  // as the front end made it
constexpr const char* kFusion = "fusion";  // with groups for kernels
constexpr const char* kLoops = "loops";    // the loop IR of the groups
constexpr const char* kCode = "code";      // the instructions that run
constexpr const char* kLlvm = "llvm";      // the instructions, and the groups, as LLVM modules
constexpr const char* kAssembly = "asm";   // and as machine code
constexpr const char* kCuda = "cuda";      // the groups as CUDA C
constexpr const char* kPtx = "ptx";        // these compiled, with registers and shared memory
constexpr const char* kSass = "sass";      // the same as the device's instructions
constexpr const char* kInference = "inference";  // prepared by optimizeForInference
// The plan for the arguments that --input gives, after enough calls with them.
constexpr const char* kSpecialized = "specialized";

bool isCode(const std::string& stage) {
  return stage == kCode || stage == kLoops || stage == kLlvm || stage == kAssembly ||
         stage == kCuda || stage == kPtx || stage == kSass;
}

std::string textOf(const Code& code, const std::string& stage) {
  if (stage == kLoops) return kernelText(code, KernelText::Loops);
  if (stage == kCuda) return kernelText(code, KernelText::Cuda);
  if (stage == kPtx) return kernelText(code, KernelText::Ptx);
  if (stage == kSass) return kernelText(code, KernelText::Sass);
  if (stage == kLlvm) return native::llvmText(code) + kernelText(code, KernelText::Llvm);
  if (stage == kAssembly) {
    return native::assemblyText(code) + kernelText(code, KernelText::Assembly);
  }
  return code.str();
}

bool isPass(const std::string& name) {
  for (Phase phase : kPhases) {
    if (toString(phase) == name) return true;
  }
  for (const PipelinePass& pass : pipelinePasses()) {
    if (pass.name == name) return true;
  }
  return false;
}

std::string listStages() {
  std::string list = kSource;
  for (Phase phase : kPhases) {
    for (const PipelinePass& pass : passesOf(phase)) list += fmt::format(", {}", pass.name);
    list += fmt::format(", {}", toString(phase));
  }
  for (const char* stage :
       {kSpecialized, kFusion, kLoops, kCode, kLlvm, kAssembly, kCuda, kPtx, kSass, kInference}) {
    list += fmt::format(", {}", stage);
  }
  return list;
}

std::shared_ptr<Graph> graphAt(const std::string& stage, const LoadedFile& program,
                               GraphFunction& function) {
  if (stage == kInference) {
    if (!program.isArchive()) {
      throw CommandLineError("--stage inference: a script has no module to prepare");
    }
    return optimizeForInference(program.module().object(), function)->graph();
  }
  std::shared_ptr<Graph> graph = function.graph()->copy();
  if (isPass(stage)) runPipeline(*graph, stage);
  if (stage == kFusion) {
    runPipeline(*graph);
    formKernelGroups(*graph);
  }
  return graph;
}

// What runs for the arguments of the command line, or for all when there are none.
const Code& codeFor(const Options& options, const LoadedFile& program, GraphFunction& function,
                    bool needs_arguments) {
  GraphExecutor& executor = GraphExecutor::of(function);
  if (!needs_arguments && options.inputs.empty() && options.inputs_file.empty()) {
    return executor.code();
  }
  Arguments arguments = argumentsFor(options, program, function);
  for (size_t i = 0; i <= ExecutionPlan::kProfiledRuns; ++i) {
    program.call(options, function, arguments.positional, arguments.named);
  }
  std::vector<IValue> bound = bindArguments(function.schema(), std::move(arguments.positional),
                                            std::move(arguments.named), program.numBound());
  if (program.isArchive()) bound.insert(bound.begin(), IValue(program.module().object()));
  return executor.codeFor(bound);
}

// Tells the graph of the arguments of the command line, and of the module's tensors, so that types
// with sizes follow.
void describeInputs(Graph& graph, const Options& options, const LoadedFile& program,
                    GraphFunction& function) {
  Arguments arguments = argumentsFor(options, program, function);
  std::vector<IValue> bound = bindArguments(function.schema(), std::move(arguments.positional),
                                            std::move(arguments.named), program.numBound());
  const size_t first = graph.inputs().size() - bound.size();
  for (size_t i = 0; i < bound.size(); ++i) {
    if (bound[i].isTensor()) graph.inputs()[first + i]->setType(typeOfTensor(bound[i].toTensor()));
  }
  if (program.isArchive()) {
    std::unordered_map<const Value*, Module> modules = {{graph.inputs()[0], program.module()}};
    for (Node* node : graph.nodes()) {
      if (node->kind() != prim::GetAttr) continue;
      const auto module = modules.find(node->input(0));
      if (module == modules.end()) continue;
      const IValue& value = module->second.attr(node->ivalue(attr::name).toString());
      if (value.isTensor()) {
        node->output()->setType(typeOfTensor(value.toTensor()));
      } else if (value.isObject() && value.toObject().type()->isModule()) {
        modules.emplace(node->output(), value.to<Module>());
      }
    }
  }
  propagateTypes(graph);
}

// --depth: how deep modules are opened; none for as deep as fits, SIZE_MAX for operators.
std::optional<size_t> depthOf(const Options& options) {
  if (options.depth.empty()) return std::nullopt;
  if (options.depth == "all") return SIZE_MAX;
  size_t depth = 0;
  const char* end = options.depth.data() + options.depth.size();
  const auto [stop, error] = std::from_chars(options.depth.data(), end, depth);
  if (error != std::errc() || stop != end || depth == 0 || depth == SIZE_MAX) {
    throw CommandLineError("--depth: expected a number of levels from 1 on, or all, got " +
                           options.depth);
  }
  return depth;
}

std::shared_ptr<Graph> drawnGraph(const Options& options, const std::string& stage,
                                  const LoadedFile& program, GraphFunction& function) {
  if (stage == kSpecialized) {
    return codeFor(options, program, function, /*needs_arguments=*/true).graph()->copy();
  }
  std::shared_ptr<Graph> graph = graphAt(stage, program, function);
  // A prepared function may be shared.
  if (stage == kInference) graph = graph->copy();
  if (options.stage.empty()) inlineCalls(*graph);
  return graph;
}

// Graphviz text.
std::string pictureOf(const Options& options, const std::string& stage, const LoadedFile& program,
                      GraphFunction& function) {
  const std::optional<size_t> depth = depthOf(options);
  const std::shared_ptr<Graph> graph = drawnGraph(options, stage, program, function);
  leaveOutChecks(*graph);
  const bool is_written = stage != kSpecialized && stage != kInference;
  if (is_written && (!options.inputs.empty() || !options.inputs_file.empty())) {
    describeInputs(*graph, options, program, function);
  }
  if (depth != SIZE_MAX) {
    ModulePicture picture{depth, {}};
    if (program.isArchive()) picture.self = program.module();
    std::string text = modulePicture(*graph, function, picture);
    if (!text.empty()) return text;
  }
  DotOptions dot;
  if (program.isArchive() && is_written) dot.self = program.module().object().get();
  return printDot(*graph, dot);
}

// The stage's name; CommandLineError for one that is not there, or cannot be drawn.
std::string stageOf(const Options& options, bool draws) {
  const std::string stage = options.stage.empty() ? kSource : options.stage;
  if (stage != kSource && !isCode(stage) && stage != kInference && stage != kSpecialized &&
      stage != kFusion && !isPass(stage)) {
    throw CommandLineError(
        fmt::format("--stage: there is no stage {}; there are {}", stage, listStages()));
  }
  if (draws && isCode(stage)) {
    throw CommandLineError(
        fmt::format("--stage {}: a picture shows graphs, not instructions", stage));
  }
  if (!draws && !options.depth.empty()) {
    throw CommandLineError(
        "--depth is for pictures: --svg, --dot, or --output with such an ending");
  }
  return stage;
}

// Refuses --output with the end of a form that is not written (.png).
void checkOutput(const std::string& path) {
  static constexpr std::string_view kForms[] = {"",    ".svg", ".dot", ".gv",  ".txt", ".ir",
                                                ".ll", ".s",   ".cu",  ".ptx", ".sass"};
  const std::string end = std::filesystem::path(path).extension().string();
  if (std::ranges::find(kForms, end) != std::end(kForms)) return;
  throw CommandLineError(
      "--output: expected a name that ends in .svg, .dot or .gv for a picture, or in .txt, .ir, "
      ".ll, .s, .cu, .ptx or .sass for text, got " +
      path);
}

// The text of all functions, those that do not compile by name.
std::string textOfAll(const Options& options, const std::string& stage, const LoadedFile& program,
                      const std::vector<GraphFunction*>& functions) {
  std::string text;
  for (GraphFunction* function : functions) {
    if (functions.size() > 1 && !program.compiles(*function)) {
      text += fmt::format("# {} does not compile\n", function->qualifiedName());
      continue;
    }
    function->ensureDefined();
    if (functions.size() > 1) text += fmt::format("# {}\n", function->qualifiedName());
    if (isCode(stage)) {
      text += textOf(codeFor(options, program, *function, /*needs_arguments=*/false), stage);
      continue;
    }
    std::shared_ptr<const Graph> graph;
    if (stage == kSpecialized) {
      graph = codeFor(options, program, *function, /*needs_arguments=*/true).graph();
    } else {
      graph = graphAt(stage, program, *function);
    }
    text += printGraph(*graph, {.source_locations = true, .location = [&](const Node& node) {
                                  return placeOf(*function, node);
                                }});
  }
  return text;
}

}  // namespace

void graphVerb(const Options& options) {
  const std::string& path = options.output_file;
  checkOutput(path);
  const bool svg = options.svg || (!options.dot && path.ends_with(".svg"));
  const bool draws = svg || options.dot || path.ends_with(".dot") || path.ends_with(".gv");
  const std::string stage = stageOf(options, draws);
  applySettings(options);
  const LoadedFile program = LoadedFile::loadAsFarAsPossible(options.file);
  std::string text;
  if (draws) {
    // One method, as all verbs choose it.
    GraphFunction& function = program.function(options);
    function.ensureDefined();
    text = pictureOf(options, stage, program, function);
    if (svg) text = renderSvg(text);
  } else {
    std::vector<GraphFunction*> functions = program.functions(options);
    // Instead of a function that does not compile, all that do.
    if (functions.size() == 1 && options.method.empty() && options.function.empty() &&
        !program.compiles(*functions[0])) {
      text = fmt::format("# {} does not compile\n", functions[0]->qualifiedName());
      functions.clear();
      for (const auto& function : program.unit().functions()) {
        if (function->isDefined() && program.compiles(*function)) {
          functions.push_back(function.get());
        }
      }
    }
    text += textOfAll(options, stage, program, functions);
  }
  if (path.empty()) {
    print(text);
  } else {
    writeFile(path, text);
  }
  program.tellErrors();
}

}  // namespace wick::cli
