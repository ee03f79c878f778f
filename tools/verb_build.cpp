#include <fmt/format.h>

#include <cctype>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>

#include "aot/build.h"
#include "aot/cuda/target.h"
#include "codegen/llvm/jit.h"
#include "core/error.h"
#include "core/output_file.h"
#include "runtime/call.h"
#include "runtime/inference.h"
#include "tools/child_program.h"
#include "tools/named_sizes.h"
#include "tools/report.h"
#include "tools/verbs.h"

namespace wick::cli {
namespace {

namespace fs = std::filesystem;

// A name for C from the file's, or what --name says.
std::string nameOf(const Options& options) {
  if (!options.name.empty()) return options.name;
  std::string name = fs::path(options.file).stem().string();
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0]))) name = "model_" + name;
  return name;
}

void checkName(const std::string& name) {
  bool good = !name.empty() && !std::isdigit(static_cast<unsigned char>(name[0]));
  for (char c : name) good = good && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  if (!good) {
    throw CommandLineError("--name: expected letters, digits and _, got '" + name + "'");
  }
}

// Runs the command in a folder; its messages go to standard error.
void compileIn(const std::string& folder, const std::vector<std::string>& words,
               const std::string& emit) {
  const ChildEnd end = runChild(words, [&](posix_spawn_file_actions_t* actions) {
    posix_spawn_file_actions_addchdir_np(actions, folder.c_str());
  });
  WICK_CHECK(end.error == 0, "--emit {}: the compiler {} cannot be started: {}", emit, words[0],
             std::strerror(end.error));
  WICK_CHECK(end.succeeded, "--emit {}: {} failed", emit, words[0]);
}

std::vector<IValue> boundArguments(const Options& options, const LoadedFile& program,
                                   GraphFunction& function) {
  Arguments arguments = argumentsFor(options, program, function);
  return bindArguments(function.schema(), std::move(arguments.positional),
                       std::move(arguments.named), program.numBound());
}

// What the options call, for the arguments that they give: for those of many sizes when inputs have names of
// sizes. `program` lives until the entry is built.
aot::Entry recorded(const Options& options, const LoadedFile& program, const std::string& method,
                    const aot::RecordOptions& recording) {
  GraphFunction& declared = program.function(options);
  std::shared_ptr<GraphFunction> prepared;
  if (program.isArchive()) {
    if (const char* reason = program.unpreparable(options)) {
      throw CommandLineError(fmt::format("build: {}, so it cannot be compiled", reason));
    }
    prepared = program.prepared(options, declared);
  }
  GraphFunction& function = prepared ? *prepared : declared;
  const std::vector<aot::Symbol> symbols =
      namedSizes(options.inputs, options.ranges, options.fixed_sizes);
  aot::Entry entry;
  entry.method = method;
  if (symbols.empty()) {
    entry.program = aot::record(function, boundArguments(options, program, declared), recording);
    entry.holds = prepared;
    return entry;
  }
  const auto argumentsOf = [&program, &declared, options,
                            symbols](const std::vector<int64_t>& sizes) {
    Options sized = options;
    sized.inputs = withSizes(options.inputs, symbols, sizes);
    return boundArguments(sized, program, declared);
  };
  aot::Family family = aot::familyOf(function, symbols, argumentsOf, recording);
  // The entry keeps the prepared function, which nobody else holds.
  entry.family = {family.symbols,
                  [prepared, record = std::move(family.record)](
                      const std::vector<int64_t>& sizes, bool keep,
                      const aot::DecidedSizes& decided) { return record(sizes, keep, decided); }};
  return entry;
}

// The options of a further call, "encode 1x16xi64 3".
Options alsoOptions(const Options& options, const LoadedFile& program, const std::string& call) {
  std::istringstream words(call);
  Options also = options;
  std::string method;
  if (!(words >> method)) throw CommandLineError("--also: expected a method's name, got ''");
  (program.isArchive() ? also.method : also.function) = method;
  also.inputs_file.clear();
  also.inputs.assign(std::istream_iterator<std::string>(words), {});
  return also;
}

// The call of the options is NAME_forward whatever the method's name is; further ones are called by
// their own.
std::vector<aot::Entry> entriesOf(const Options& options, const LoadedFile& program,
                                  const aot::RecordOptions& recording) {
  const auto name = [&](const Options& o) { return program.function(o).schema().name(); };
  std::vector<aot::Entry> entries;
  entries.push_back(recorded(options, program, "forward", recording));
  std::vector<std::string> inputs = options.inputs;
  for (const std::string& call : options.also) {
    const Options also = alsoOptions(options, program, call);
    entries.push_back(
        recorded(also, program, name(also) == name(options) ? "forward" : name(also), recording));
    inputs.insert(inputs.end(), also.inputs.begin(), also.inputs.end());
  }
  checkNames(inputs, options.ranges, options.fixed_sizes);
  return entries;
}

// What the model runs on; null: the CPU.
std::unique_ptr<aot::Target> targetOf(const Options& options) {
  if (options.device != "cuda") {
    if (options.architectures.empty()) return nullptr;
    throw CommandLineError("--arch is for models that run on CUDA devices: --device cuda");
  }
  if (options.standalone) throw CommandLineError("--standalone is for models that run on the CPU");
  if (options.winograd) throw CommandLineError("--winograd is for models that run on the CPU");
  try {
    return aot::cudaTarget(aot::parseArchitectures(
        options.architectures.empty() ? aot::kUsualArchitectures : options.architectures));
  } catch (const RuntimeError& e) {
    throw CommandLineError("--arch: " + e.brief());
  }
}

// As a shell reads it back: in quotes, unless nothing in it means anything there.
std::string forShell(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

}  // namespace

void buildVerb(const Options& given) {
  const std::unique_ptr<aot::Target> target = targetOf(given);
  // While it is built nothing is on a device.
  Options options = given;
  options.device.clear();
  applySettings(options);
  const std::string name = nameOf(options);
  checkName(name);
  const LoadedFile program = LoadedFile::load(options.file);
  if (program.isArchive()) program.module().eval();
  aot::BuildOptions build;
  build.name = name;
  build.embed_weights = options.embed_weights;
  build.vector_bits = codegen::vectorBits();
  build.target = target.get();
  aot::RecordOptions recording;
  recording.target = target.get();
  recording.standalone = options.standalone;
  recording.winograd = options.winograd;
  std::vector<aot::Entry> entries = entriesOf(options, program, recording);

  const fs::path folder(options.output_folder);
  std::error_code error;
  fs::create_directories(folder, error);
  WICK_CHECK(!error, "--output {}: the folder cannot be made: {}", folder.string(),
             error.message());
  std::optional<OutputFile> weights;
  const aot::BuildResult result = aot::build(std::move(entries), build, [&](std::string_view part) {
    if (!weights) weights.emplace((folder / (name + ".weights")).string());
    weights->write(part);
  });
  if (weights) weights->commit();
  for (const aot::File& file : result.files) writeFile((folder / file.name).string(), file.text);

  std::string text =
      fmt::format("{}: {} steps, {} kernels, {} calls of {}; {} of memory, {} of weights\n",
                  (folder / name).string(), result.steps, result.kernels, result.primitives,
                  target ? "cuBLASLt and cuDNN" : "oneDNN",
                  formatBytes(static_cast<double>(result.memory_bytes)),
                  formatBytes(static_cast<double>(result.weights_bytes)));
  const char* chosen = std::getenv("CXX");
  const std::string compiler = chosen && *chosen ? chosen : "g++";
  const std::vector<std::string> command = aot::compileCommand(result, name, compiler);
  if (options.emit == "library") {
    compileIn(folder.string(), command, options.emit);
    text += fmt::format("{}\n", (folder / ("lib" + name + ".so")).string());
  } else if (options.emit == "object") {
    const aot::ObjectCommands commands = aot::objectCommands(result, name, compiler);
    compileIn(folder.string(), commands.compile, options.emit);
    compileIn(folder.string(), commands.join, options.emit);
    for (const std::string& object : commands.objects) fs::remove(folder / object, error);
    const fs::path object = folder / (name + ".o");
    fs::rename(folder / commands.joined, object, error);
    WICK_CHECK(!error, "--emit object: {}: {}", object.string(), error.message());
    text += fmt::format("{}\n", object.string());
  } else {
    text += fmt::format("compile it with:\n  cd {} &&", forShell(folder.string()));
    for (const std::string& word : command) text += " " + forShell(word);
    text += "\n";
  }
  print(text);
}

}  // namespace wick::cli
