// The files of a compiled model.
#include "aot/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "aot/pack_weights.h"
#include "aot/plan.h"
#include "aot/program_text.h"
#include "aot/recording.h"
#include "core/error.h"
#include "core/version.h"

namespace wick::aot {

namespace {

// The sources of the runtime.
File runtimeFile(std::string_view name) {
  static constexpr std::pair<const char*, const char*> kTexts[] = {
#include "aot/runtime_texts.inc"
  };
  const auto* const found =
      std::ranges::find(kTexts, name, [](const auto& text) { return text.first; });
  WICK_ASSERT(found != std::end(kTexts), "the runtime has no file {}", name);
  return {found->first, found->second};
}

constexpr size_t kWeightsHeader = 64;
constexpr uint32_t kFormatVersion = 6;

// FNV-1a, over words where there are some.
class Fingerprint {
 public:
  void add(const void* data, size_t bytes) {
    const auto* p = static_cast<const unsigned char*>(data);
    for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t), p += sizeof(uint64_t)) {
      uint64_t word;
      std::memcpy(&word, p, sizeof word);
      mix(word);
    }
    for (size_t i = 0; i < bytes; ++i) mix(p[i]);
  }
  void add(std::string_view text) { add(text.data(), text.size()); }
  uint64_t value() const { return hash_; }

 private:
  void mix(uint64_t word) {
    hash_ = (hash_ ^ word) * 0x100000001b3u;
    hash_ ^= hash_ >> 29;
  }
  uint64_t hash_ = 0xcbf29ce484222325u;
};

std::string describeSlots(const char* what, const std::vector<TensorSlot>& slots,
                          const std::vector<std::vector<std::string>>& sizes) {
  std::string text;
  for (size_t i = 0; i < slots.size(); ++i) {
    std::vector<std::string> of = sizes[i];
    for (size_t d = 0; d < of.size(); ++d) {
      if ((slots[i].decided >> d & 1) != 0) of[d] = "up to " + of[d];
    }
    text += fmt::format(" *     {}[{}] {}: {}[{}]\n", what, i, slots[i].name,
                        toString(slots[i].dtype), fmt::join(of, ", "));
  }
  return text;
}

// "N from 1 to 64"
std::string describeSymbols(const Family& family) {
  std::string text;
  for (const Symbol& s : family.symbols) {
    text += fmt::format(" *     {} from {} to {}", s.name, s.minimum, s.maximum);
    text += s.step == 1 ? "\n" : fmt::format(" by {}\n", s.step);
  }
  return text;
}

// The signatures of one method, which stand side by side.
struct Method {
  std::string name;
  size_t first, count;
};
std::vector<Method> methodsOf(const std::vector<Entry>& entries) {
  std::vector<Method> methods;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i == 0 || entries[i].method != methods.back().name) {
      methods.push_back({entries[i].method, i, 0});
    }
    ++methods.back().count;
  }
  return methods;
}

std::string headerText(const std::vector<Entry>& entries,
                       const std::vector<WrittenProgram>& written, const BuildOptions& options,
                       const std::string& more) {
  std::string guard;
  for (char c : options.name)
    guard += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  std::string about, declarations;
  for (const Method& method : methodsOf(entries)) {
    for (size_t i = method.first; i < method.first + method.count; ++i) {
      const WrittenProgram& w = written[i];
      about += fmt::format(" *   {}_{}\n{}{}{}", options.name, method.name,
                           describeSlots("inputs", w.inputs, w.input_sizes),
                           describeSlots("outputs", w.outputs, w.output_sizes),
                           entries[i].family ? describeSymbols(*entries[i].family) : "");
    }
    declarations += fmt::format(
        "int {0}_{1}(wick_aot_state* state, const wick_aot_tensor* inputs,\n"
        "    wick_aot_tensor* outputs);\n"
        "/* Writes dtypes, ranks and sizes of the outputs that such inputs lead to. */\n"
        "int {0}_{1}_outputs(wick_aot_state* state, const wick_aot_tensor* inputs,\n"
        "    wick_aot_tensor* outputs);\n",
        options.name, method.name);
  }
  return fmt::format(
      "/* {0}, compiled ahead of time by torchscript-cli {1}. Tensors are row-major:\n{2}"
      " * Outputs must not overlap inputs. See wick_aot.h. */\n"
      "#ifndef WICK_AOT_MODEL_{3}_H\n#define WICK_AOT_MODEL_{3}_H\n\n#include \"wick_aot.h\"\n\n"
      "#if WICK_AOT_VERSION != {4}\n#error \"{0} was written for version {4} of "
      "wick_aot.h\"\n#endif\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "/* Names, dtypes and sizes of inputs and outputs. */\n"
      "const wick_aot_model* {0}_model(void);\n"
      "/* `weights` is the path of {0}.weights. */\n"
      "int {0}_init(wick_aot_state* state, const char* weights);\n{5}"
      "void {0}_free(wick_aot_state* state);\n\n"
      "#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
      options.name, version(), about, guard, kFormatVersion, declarations + more);
}

// The source; the model's fingerprint belongs between the two parts.
struct Source {
  std::string before, after;
};
Source sourceText(const std::vector<Entry>& entries, const std::vector<WrittenProgram>& written,
                  const ProgramText& text, int64_t memory_bytes, int64_t weights_bytes,
                  const BuildOptions& options, const Target::Parts& parts, bool draws) {
  Source source;
  const bool library = text.primitives > 0, embeds = options.embed_weights && weights_bytes > 0;
  const Target* const target = options.target;
  std::string signatures;
  for (size_t i = 0; i < entries.size(); ++i) {
    const WrittenProgram& p = written[i];
    const auto table = [&](const char* name, const std::vector<TensorSlot>& slots) {
      return slots.empty() ? "nullptr" : fmt::format("{}_{}", name, i);
    };
    const bool sized = p.sized;
    signatures +=
        fmt::format("    {{\"{}\", {}, {}, {}, {}, {}, {}, {}}},\n", entries[i].method,
                    table("inputs", p.inputs), table("outputs", p.outputs), p.inputs.size(),
                    p.outputs.size(), sized ? fmt::format("symbols_{}", i) : "nullptr",
                    sized ? entries[i].family->symbols.size() : 0,
                    sized ? fmt::format("shape_{}", i) : "nullptr");
  }
  source.before = fmt::format(
      "// {0}, compiled ahead of time by torchscript-cli {1}.\n"
      "#include \"{0}.h\"\n\n{2}\n{3}"
      "const wick_aot_signature signatures[] = {{\n{4}}};\n\n"
      "}}  // namespace\n\n{5}",
      options.name, version(), text.includes, text.definitions, signatures, parts.definitions);
  if (embeds) {
    source.before += fmt::format(
        "asm(\".pushsection .rodata\\n\"\n"
        "    \".balign 64\\n\"\n"
        "    \"wick_aot_weights_of_{0}: .incbin \\\"{0}.weights\\\", {1}\\n\"\n"
        "    \".popsection\\n\");\n"
        "extern \"C\" const unsigned char wick_aot_weights_of_{0}[];\n\n",
        options.name, kWeightsHeader);
  }
  source.before += fmt::format(
      "static const wick_aot_model model = {{\n    WICK_AOT_VERSION, \"{}\", ", options.name);
  source.after = fmt::format(
      "u, {0}, {1},\n    signatures, {2},\n    {3}, {4}, {5}, {6}, {7}, {10}}};\n\n"
      "const wick_aot_model* {8}_model(void) {{ return &model; }}\n\n"
      "int {8}_init(wick_aot_state* state, const char* weights) {{\n"
      "  return wick_aot_init(&model, state, weights);\n}}\n\n"
      "void {8}_free(wick_aot_state* state) {{ wick_aot_free(state); }}\n{9}",
      // Of a device the memory is its own.
      weights_bytes, target ? 0 : memory_bytes, entries.size(),
      embeds ? "wick_aot_weights_of_" + options.name : "nullptr",
      target    ? parts.library
      : library ? "&wick_aot_onednn"
                : "nullptr",
      library && !target ? "primitives" : "nullptr", target ? 0 : text.primitives,
      target ? parts.program : "nullptr", options.name, parts.functions, draws ? 1 : 0);
  if (draws) {
    source.after += fmt::format(
        "\nvoid {0}_seed(wick_aot_state* state, uint64_t seed) {{ wick_aot_seed(state, seed); }}\n",
        options.name);
  }
  for (const Method& method : methodsOf(entries)) {
    std::string cases;
    for (size_t i = method.first; i < method.first + method.count; ++i) {
      const std::string call =
          target ? fmt::format("return {};\n", target->callText(fmt::format("run_{}", i)))
                 : fmt::format("return run_{}(state, inputs, outputs{});\n", i,
                               written[i].sized ? ", sizes" : "");
      cases += i + 1 < method.first + method.count
                   ? fmt::format("  if (signature == {}) {}", i, call)
                   : "  " + call;
    }
    source.after += fmt::format(
        "\nint {0}_{1}(wick_aot_state* state, const wick_aot_tensor* inputs,\n"
        "    wick_aot_tensor* outputs) {{\n"
        "  int32_t signature = 0;\n"
        "  int64_t sizes[WICK_AOT_MAX_SYMBOLS];\n"
        "  const int code =\n"
        "      wick_aot_select(state, {2}, {3}, inputs, outputs, &signature, sizes);\n"
        "  if (code != WICK_AOT_OK) return code;\n{4}}}\n"
        "\nint {0}_{1}_outputs(wick_aot_state* state, const wick_aot_tensor* inputs,\n"
        "    wick_aot_tensor* outputs) {{\n"
        "  return wick_aot_outputs(state, {2}, {3}, inputs, outputs);\n}}\n",
        options.name, method.name, method.first, method.count, cases);
  }
  return source;
}

// Signatures of one method side by side, the method of the first one in front. Names are fit for C and
// none that the model has already.
void sortByMethod(std::vector<Entry>& entries, bool for_device) {
  std::vector<Entry> sorted;
  for (Entry& entry : entries) {
    const auto same = [&](const Entry& other) { return other.method == entry.method; };
    const auto last = std::find_if(sorted.rbegin(), sorted.rend(), same);
    sorted.insert(last == sorted.rend() ? sorted.end() : last.base(), std::move(entry));
  }
  for (Entry& entry : sorted) {
    for (char& c : entry.method) {
      if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
    }
    for (const char* taken : {"init", "free", "model", "seed"}) {
      if (entry.method == taken) entry.method += "_";
    }
    for (const char* taken : {"set_stream", "wait"}) {
      if (for_device && entry.method == taken) entry.method += "_";
    }
  }
  entries = std::move(sorted);
}

void compareSignatures(const std::vector<Entry>& entries,
                       const std::vector<WrittenProgram>& written) {
  for (size_t i = 1; i < entries.size(); ++i) {
    const size_t before = written[i - 1].inputs.size(), here = written[i].inputs.size();
    if (entries[i].method == entries[i - 1].method && before != here) {
      throw NotAhead(fmt::format(
          "signatures of {} with {} and with {} tensors; those of one method have equally many",
          entries[i].method, before, here));
    }
  }
}

}  // namespace

BuildResult build(std::vector<Entry> entries, const BuildOptions& options,
                  const std::function<void(std::string_view)>& write_weights) {
  sortByMethod(entries, options.target != nullptr);
  BuildResult result;
  Weights weights;
  const Target* const target = options.target;
  const std::unique_ptr<StepWriter> steps =
      target ? target->writer() : cpuStepWriter(options.vector_bits);
  ProgramWriter writer(*steps);
  std::vector<WrittenProgram> written;
  for (Entry& entry : entries) {
    try {
      if (!entry.program.asks.empty()) {
        entry.family = {
            {},
            [again = entry.program.again](const std::vector<int64_t>&, bool,
                                          const DecidedSizes& decided) { return again(decided); }};
      }
      if (entry.family) {
        written.push_back(writer.add(*entry.family, weights));
      } else {
        if (!target) packWeights(entry.program);
        const Plan plan = makePlan(entry.program, weights);
        written.push_back(writer.add(entry.program, plan));
      }
    } catch (const codegen::NoCppText& e) {
      throw NotAhead(e.what());
    }
    result.memory_bytes = std::max(result.memory_bytes, written.back().memory_bytes);
    result.steps += written.back().steps;
  }
  compareSignatures(entries, written);
  const ProgramText text = writer.finish();
  result.weights_bytes = weights.bytes();
  Target::Parts parts;
  if (target) parts = target->parts(*steps, options.name, text, result.memory_bytes);
  const Source source = sourceText(entries, written, text, result.memory_bytes,
                                   result.weights_bytes, options, parts, steps->draws());
  Fingerprint fingerprint;
  for (const File& file : parts.files) fingerprint.add(file.text);
  fingerprint.add(source.before);
  fingerprint.add(source.after);
  for (const Tensor& piece : weights.pieces()) {
    fingerprint.add(piece.rawData(), static_cast<size_t>(piece.numel()));
  }
  if (result.weights_bytes > 0) {
    result.weights_file = options.name + ".weights";
    std::string header(kWeightsHeader, '\0');
    const uint32_t numbers[] = {kFormatVersion, static_cast<uint32_t>(kWeightsHeader)};
    const uint64_t words[] = {fingerprint.value(), static_cast<uint64_t>(result.weights_bytes)};
    std::memcpy(header.data(), "WICKAOT\n", 8);
    std::memcpy(header.data() + 8, numbers, sizeof numbers);
    std::memcpy(header.data() + 16, words, sizeof words);
    write_weights(header);
    for (const Tensor& piece : weights.pieces()) {
      const auto bytes = static_cast<size_t>(piece.numel());
      write_weights({static_cast<const char*>(piece.rawData()), bytes});
      constexpr size_t kAlignment = 64;
      write_weights(std::string((kAlignment - bytes % kAlignment) % kAlignment, '\0'));
    }
  }
  const std::string seed =
      steps->draws() ? fmt::format(
                           "/* Lets random numbers begin anew, as torch.manual_seed() does. */\n"
                           "void {}_seed(wick_aot_state* state, uint64_t seed);\n",
                           options.name)
                     : "";
  result.files = {
      {options.name + ".h", headerText(entries, written, options, parts.declarations + seed)},
      {options.name + ".cpp",
       source.before + fmt::format("{:#x}", fingerprint.value()) + source.after}};
  const auto add = [&](std::initializer_list<const char*> names) {
    for (const char* name : names) result.files.push_back(runtimeFile(name));
  };
  add({"wick_aot.h", "wick_aot.c", "wick_aot_onednn.h", "wick_aot_numbers.h"});
  result.sources = {options.name + ".cpp", "wick_aot.c"};
  if (target) {
    result.for_device = true;
    result.files.insert(result.files.end(), parts.files.begin(), parts.files.end());
    result.sources.insert(result.sources.end(), parts.sources.begin(), parts.sources.end());
    result.kernels = parts.kernels;
    result.primitives = text.primitives;
    return result;
  }
  add({"wick_aot_loops.h", "wick_aot_elements.h", "wick_aot_layers.h", "wick_aot_random.h",
       "wick_aot_convolution.h", "wick_aot_winograd.h", "engine_parts.h", "small_gemm_blocks.h"});
  const auto includes = [&](const char* name) {
    return text.includes.find(name) != std::string::npos;
  };
  result.needs_lapack = includes("wick_aot_lapack.h");
  result.needs_onednn = text.primitives > 0;
  if (result.needs_lapack) add({"wick_aot_lapack.h"});
  if (includes("wick_aot_complex.h")) add({"wick_aot_complex.h"});
  if (includes("wick_aot_fourier.h")) add({"wick_aot_fourier.h", "fourier_runs.h"});
  if (result.needs_onednn) {
    add({"wick_aot_onednn.c"});
    result.sources.push_back("wick_aot_onednn.c");
  }
  result.kernels = text.kernels;
  result.primitives = text.primitives;
  return result;
}

BuildResult build(Program program, const BuildOptions& options,
                  const std::function<void(std::string_view)>& write_weights) {
  std::vector<Entry> entries(1);
  entries[0].program = std::move(program);
  return build(std::move(entries), options, write_weights);
}

namespace {

std::vector<std::string> compiling(const std::string& compiler) {
  return {compiler, "-std=c++17", "-O3", "-march=x86-64-v3", "-ffp-contract=off", "-fno-math-errno",
          "-fno-trapping-math",
          // Steps whose elements have other types take turns in the same memory.
          "-fno-strict-aliasing",
          // Nothing here throws; without it the C++ library is loaded.
          "-fno-exceptions", "-fPIC", "-fopenmp"};
}

}  // namespace

std::vector<std::string> compileCommand(const BuildResult& result, const std::string& name,
                                        const std::string& compiler) {
  std::vector<std::string> words = compiling(compiler);
  // So that a model without oneDNN does not load it.
  words.insert(words.end(), {"-shared", "-Wl,--as-needed", "-o", "lib" + name + ".so"});
  words.insert(words.end(), result.sources.begin(), result.sources.end());
  if (result.for_device) words.insert(words.end(), {"-ldl", "-lpthread"});
  if (result.needs_onednn) words.push_back("-ldnnl");
  if (result.needs_lapack) words.push_back("-lopenblas");
  return words;
}

ObjectCommands objectCommands(const BuildResult& result, const std::string& name,
                              const std::string& compiler) {
  ObjectCommands commands;
  commands.compile = compiling(compiler);
  commands.compile.push_back("-c");
  commands.joined = name + ".whole.o";
  // Joined without -fopenmp, whose library would be joined too.
  commands.join = {compiler, "-r", "-nostdlib", "-o", commands.joined};
  for (const std::string& source : result.sources) {
    commands.compile.push_back(source);
    commands.objects.push_back(source.substr(0, source.rfind('.')) + ".o");
    commands.join.push_back(commands.objects.back());
  }
  return commands;
}

}  // namespace wick::aot
