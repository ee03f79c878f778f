// The program as text: kernels, tables, and a function that calls one step after the other.
#include "aot/build.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <set>

#include "aot/plan.h"
#include "aot/recording.h"
#include "codegen/loop/kernel.h"
#include "core/version.h"

namespace wick::aot {

namespace {

constexpr const char* kRuntimeHeader =
#include "aot/wick_aot.h.inc"
    ;
constexpr const char* kRuntimeSource =
#include "aot/wick_aot.c.inc"
    ;
constexpr const char* kLibraryHeader =
#include "aot/wick_aot_onednn.h.inc"
    ;
constexpr const char* kLibrarySource =
#include "aot/wick_aot_onednn.c.inc"
    ;
constexpr const char* kLoops =
#include "aot/wick_aot_loops.h.inc"
    ;
constexpr const char* kConvolution =
#include "aot/wick_aot_convolution.h.inc"
    ;
constexpr const char* kBlocks =
#include "aot/small_gemm_blocks.h.inc"
    ;

constexpr size_t kWeightsHeader = 64;
constexpr uint32_t kFormatVersion = 1;

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

std::string listOf(IntSpan values) {
  std::string text;
  for (int64_t v : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", v);
  return text.empty() ? "0" : text;
}

std::string layoutText(const Layout& layout) {
  return fmt::format("{{{}, {{{}}}, {{{}}}}}", layout.sizes.size(), listOf(layout.sizes),
                     listOf(layout.strides));
}

std::string identifier(std::string_view name) {
  std::string text;
  for (char c : name) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

class ProgramWriter {
 public:
  ProgramWriter(const Program& program, const Plan& plan, const BuildOptions& options)
      : program_(program), plan_(plan), options_(options) {}

  struct Text {
    std::string before, after;  // the model's fingerprint stands between
    size_t kernels, primitives;
  };

  Text run() {
    for (const Step& step : program_.steps) {
      std::visit([&](const auto& what) { write(step, what); }, step.what);
    }
    finishOutputs();
    Text text;
    const bool library = !primitives_.empty();
    text.before = fmt::format(
        "// {0}, compiled ahead of time by torchscript-cli {1}.\n"
        "#include \"{0}.h\"\n\n{2}{6}#include \"wick_aot_loops.h\"\n\n{3}\n{4}{5}",
        options_.name, version(), library ? "#include \"wick_aot_onednn.h\"\n" : "",
        codegen::cppSupportText(), kHelpers, library ? kRunHelper : "",
        convolution_names_.empty() ? "" : "#include \"wick_aot_convolution.h\"\n");
    for (const auto& f : functions_) text.before += f;
    text.before += kernels_ + tables_ + "\n";
    text.before += slotsText("inputs", program_.inputs) + slotsText("outputs", program_.outputs);
    if (library) {
      text.before +=
          fmt::format("const wick_aot_primitive primitives[] = {{\n{}}};\n", primitives_);
    }
    text.before += "\n}  // namespace\n\n";
    const bool embeds = options_.embed_weights && plan_.weights_bytes > 0;
    if (embeds) {
      text.before += fmt::format(
          "asm(\".pushsection .rodata\\n\"\n"
          "    \".balign 64\\n\"\n"
          "    \"wick_aot_weights_of_{0}: .incbin \\\"{0}.weights\\\", {1}\\n\"\n"
          "    \".popsection\\n\");\n"
          "extern \"C\" const unsigned char wick_aot_weights_of_{0}[];\n\n",
          options_.name, kWeightsHeader);
    }
    text.before +=
        fmt::format("static const wick_aot_model model = {{\n    \"{}\", ", options_.name);
    text.after = fmt::format(
        "u, {}, {},\n    {}, {}, {}, {},\n    {}, {},\n    {}, {}}};\n\n", plan_.weights_bytes,
        plan_.memory_bytes, program_.inputs.empty() ? "nullptr" : "inputs",
        program_.outputs.empty() ? "nullptr" : "outputs", program_.inputs.size(),
        program_.outputs.size(),
        embeds ? fmt::format("wick_aot_weights_of_{}", options_.name) : "nullptr",
        library ? "&wick_aot_onednn" : "nullptr", library ? "primitives" : "nullptr",
        num_primitives_);
    text.after += fmt::format(
        "const wick_aot_model* {0}_model(void) {{ return &model; }}\n\n"
        "int {0}_init(wick_aot_state* state, const char* weights) {{\n"
        "  return wick_aot_init(&model, state, weights);\n}}\n\n"
        "void {0}_free(wick_aot_state* state) {{ wick_aot_free(state); }}\n\n"
        "int {0}_forward(wick_aot_state* state, const wick_aot_tensor* inputs,\n"
        "    wick_aot_tensor* outputs) {{\n"
        "  int code = wick_aot_check(state, inputs, outputs);\n"
        "  if (code != WICK_AOT_OK) return code;\n"
        "  [[maybe_unused]] const unsigned char* const w = state->weights;\n"
        "  [[maybe_unused]] unsigned char* const m = state->memory;\n{1}"
        "  return code;\n}}\n",
        options_.name, calls_);
    text.kernels = kernel_names_.size();
    text.primitives = static_cast<size_t>(num_primitives_);
    return text;
  }

 private:
  static constexpr const char* kHelpers = R"(// What lies some bytes behind an address.
template <class T>
WICK_INLINE T* at(void* memory, int64_t offset) {
  return reinterpret_cast<T*>(static_cast<char*>(memory) + offset);
}
template <class T>
WICK_INLINE const T* at(const void* memory, int64_t offset) {
  return reinterpret_cast<const T*>(static_cast<const char*>(memory) + offset);
}

)";
  static constexpr const char* kRunHelper =
      R"([[maybe_unused]] int run(wick_aot_state* state, int32_t primitive, const void* source, const void* weight,
                         const void* bias, const void* addend, void* result) {
  const wick_aot_arguments arguments = {source, weight, bias, addend, result};
  return wick_aot_run(state, primitive, &arguments);
}

)";

  // An expression for a place in memory, of elements of this C++ type.
  std::string pointer(const Place& place, const std::string& type) const {
    const Plan::Home& home = plan_.homes[place.buffer];
    switch (home.kind) {
      case Plan::Home::Kind::Memory:
        return fmt::format("at<{}>(m, {})", type, home.offset + place.offset);
      case Plan::Home::Kind::Weights:
        return fmt::format("at<{}>(w, {})", type, home.offset + place.offset);
      case Plan::Home::Kind::Input:
        return fmt::format("at<{}>(static_cast<const void*>(inputs[{}].data), {})", type,
                           home.index, place.offset);
      case Plan::Home::Kind::Output:
        return fmt::format("at<{}>(outputs[{}].data, {})", type, home.index, place.offset);
      default:
        return "nullptr";
    }
  }

  void comment(const Step& step) {
    calls_ += fmt::format("  // {}{}{}\n", step.name, step.where.empty() ? "" : ", ", step.where);
  }

  void write(const Step& step, const KernelStep& s) {
    const loop::Kernel& kernel = *s.kernel;
    for (codegen::CppFunction& f : codegen::cppFunctions(kernel.expression)) {
      if (defined_.insert(f.name).second) functions_.push_back(std::move(f.text));
    }
    std::string text =
        codegen::cppKernelText("KERNEL", kernel, s.walk, s.numbers, options_.vector_bits);
    auto [known, added] = kernel_names_.try_emplace(text);
    if (added) {
      known->second = fmt::format("{}_{}", identifier(step.name), kernel_names_.size());
      const size_t at = text.find("KERNEL(");
      kernels_ += text.substr(0, at) + known->second + text.substr(at + 6) + "\n";
    }
    std::string arguments;
    for (size_t a = 0; a < s.places.size(); ++a) {
      const loop::Access& access = kernel.accesses[a];
      if (access.isIndex()) continue;
      const std::string type =
          access.dtype == DType::Bool ? "uint8_t" : codegen::cppType(access.dtype);
      arguments += (arguments.empty() ? "" : ", ") + pointer(s.places[a], type);
    }
    comment(step);
    const std::string call = fmt::format("{}({})", known->second, arguments);
    if (kernel.checks.empty()) {
      calls_ += fmt::format("  {};\n", call);
    } else {
      calls_ += fmt::format(
          "  if (!{}) {{\n    return wick_aot_fail(state, WICK_AOT_RAISED, \"{}: index out of "
          "range\");\n  }}\n",
          call, step.name);
    }
  }

  void write(const Step& step, const SmallProductStep& s) {
    comment(step);
    calls_ += fmt::format(
        "  wick_aot::product<{}>({}, {}, {}, {}, {}, {}, {},\n      {}, {}, {}, {}, {}, {});\n",
        s.transposed, s.batches, s.m, s.n, s.k, pointer(s.a, "float"), s.lda, s.a_step,
        pointer(s.b, "float"), s.ldb, s.b_step, s.bias ? pointer(*s.bias, "float") : "nullptr",
        pointer(s.c, "float"), s.c_step);
  }

  bool isWeight(const Place& p) const {
    return plan_.homes[p.buffer].kind == Plan::Home::Kind::Weights;
  }
  int64_t weightsOffset(const Place& p) const { return plan_.homes[p.buffer].offset + p.offset; }

  void write(const Step& step, const LibraryStep& s) {
    DimVector skipped = s.dilation;
    for (int64_t& d : skipped) --d;
    const bool packs = s.packs && isWeight(s.weights);
    const bool bias_known = s.bias && isWeight(*s.bias);
    primitives_ += fmt::format(
        "    {{{}, {}, {}, {}, {}, {}, {},\n     {{{}}}, {{{}}}, {{{}}}, {{{}}},\n     {},\n     "
        "{},\n "
        "    {}}},  // {}\n",
        static_cast<int>(s.kind == LibraryStep::Kind::Convolution  ? 0
                         : s.kind == LibraryStep::Kind::Transposed ? 1
                                                                   : 2),
        static_cast<int>(s.residual), static_cast<int>(s.activation), s.one_thread ? 1 : 0,
        packs ? weightsOffset(s.weights) : -1,
        !s.bias      ? -1
        : bias_known ? weightsOffset(*s.bias)
                     : -2,
        s.stride.size(), listOf(s.stride), listOf(skipped), listOf(s.padding),
        listOf(s.padding_after), layoutText(s.source), layoutText(s.weight), layoutText(s.result),
        step.name);
    comment(step);
    calls_ += fmt::format(
        "  code = run(state, {}, {}, {}, {}, {}, {});\n  if (code != WICK_AOT_OK) return code;\n",
        num_primitives_++, pointer(s.from, "float"),
        packs ? "nullptr" : pointer(s.weights, "float"),
        s.bias && !bias_known ? pointer(*s.bias, "float") : "nullptr",
        s.addend ? pointer(*s.addend, "float") : "nullptr", pointer(s.to, "float"));
  }

  void write(const Step& step, const ConvolutionStep& s) {
    const auto pair = [](const std::array<int64_t, 2>& p) {
      return fmt::format("{}, {}", p[0], p[1]);
    };
    const std::string text = fmt::format(
        "{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, wick_aot::Finish::{}", s.samples, s.groups,
        pair(s.input), s.in_channels, pair(s.result), s.out_channels, pair(s.kernel),
        pair(s.stride), pair(s.dilation), pair(s.padding), s.residual_first,
        s.activation == Activation::None   ? "Nothing"
        : s.activation == Activation::Relu ? "Relu"
                                           : "Relu6");
    auto [known, added] = convolution_names_.try_emplace(text);
    if (added) {
      known->second = fmt::format("convolution_{}", convolution_names_.size());
      tables_ += fmt::format("constexpr wick_aot::Convolution {} = {{{}}};\n", known->second, text);
    }
    comment(step);
    calls_ += fmt::format(
        "  wick_aot::convolve({}, {}, {}, {}, {}, {});\n", known->second, pointer(s.from, "float"),
        pointer(s.weights, "float"), s.bias ? pointer(*s.bias, "float") : "nullptr",
        s.residual ? pointer(*s.residual, "float") : "nullptr", pointer(s.to, "float"));
  }

  // The name of a table with these numbers.
  std::string table(const std::vector<int64_t>& numbers) {
    const std::string list = listOf(IntSpan(numbers.data(), numbers.size()));
    auto [known, added] = table_names_.try_emplace(list);
    if (added) {
      known->second = fmt::format("table_{}", table_names_.size());
      tables_ += fmt::format("const int32_t {}[] = {{{}}};\n", known->second, list);
    }
    return known->second;
  }
  std::string axes(const PoolStep& s) {
    std::string text;
    for (const PoolStep::Axis& a : s.axes) {
      text += fmt::format("{}\n    {{{}, {}, {}, {}, {}, {}}}", text.empty() ? "" : ",", a.input,
                          a.begin.size(), a.step, table(a.begin), table(a.end), table(a.span));
    }
    auto [known, added] = axes_names_.try_emplace(text);
    if (added) {
      known->second = fmt::format("windows_{}", axes_names_.size());
      tables_ += fmt::format("constexpr wick_aot::Axes {} = {{{}}};\n", known->second, text);
    }
    return known->second;
  }

  void write(const Step& step, const PoolStep& s) {
    const std::string windows = axes(s), type = codegen::cppType(s.dtype);
    comment(step);
    const std::string from = pointer(s.from, type), to = pointer(s.to, type);
    const int64_t planes = s.samples * s.channels;
    if (!s.average) {
      const std::string indices = s.indices ? pointer(*s.indices, "int64_t") : "nullptr";
      calls_ += s.channels_last
                    ? fmt::format("  wick_aot::maxPixels<{}>({}, {}, {}, {}, {}, {});\n", type,
                                  windows, s.samples, s.channels, from, to, indices)
                    : fmt::format("  wick_aot::maxPlanes<{}>({}, {}, {}, {}, {});\n", type, windows,
                                  planes, from, to, indices);
      return;
    }
    const std::string by =
        fmt::format("{{{}, {}}}", s.divisor.value_or(0), s.count_padding ? "true" : "false");
    if (s.channels_last) {
      calls_ += fmt::format("  wick_aot::averagePixels<{}>({}, {}, {}, {}, {}, {});\n", type,
                            windows, s.samples, s.channels, by, from, to);
    } else if (s.shares_rows) {
      calls_ += fmt::format("  wick_aot::averageSharedPlanes<{}, {}>({}, {}, {}, {}, {});\n",
                            s.axes[2].input, type, windows, planes, by, from, to);
    } else {
      calls_ += fmt::format("  wick_aot::averagePlanes<{}>({}, {}, {}, {}, {});\n", type, windows,
                            planes, by, from, to);
    }
  }

  void write(const Step& step, const FillStep& s) {
    const size_t bytes = program_.buffers[s.buffer].bytes;
    comment(step);
    const std::string to = pointer({s.buffer, 0}, "char");
    calls_ += s.from ? fmt::format("  std::memcpy({}, {}, {});\n", to,
                                   pointer({*s.from, 0}, "char"), bytes)
                     : fmt::format("  std::memset({}, 0, {});\n", to, bytes);
  }

  void finishOutputs() {
    for (size_t i = 0; i < program_.outputs.size(); ++i) {
      const TensorSlot& out = program_.outputs[i];
      int64_t bytes = static_cast<int64_t>(itemSize(out.dtype));
      for (int64_t size : out.layout.sizes) bytes *= size;
      if (plan_.direct[i] || bytes == 0) continue;
      calls_ += fmt::format("  std::memcpy(outputs[{}].data, {}, {});\n", i,
                            pointer(out.place, "char"), bytes);
    }
  }

  static std::string slotsText(const char* name, const std::vector<TensorSlot>& slots) {
    if (slots.empty()) return "";
    std::string text = fmt::format("const wick_aot_slot {}[] = {{\n", name);
    for (const TensorSlot& slot : slots) {
      text +=
          fmt::format("    {{\"{}\", {}, {}, {{{}}}}},\n", slot.name, static_cast<int>(slot.dtype),
                      slot.layout.sizes.size(), listOf(slot.layout.sizes));
    }
    return text + "};\n";
  }

  const Program& program_;
  const Plan& plan_;
  const BuildOptions& options_;
  std::set<std::string> defined_;
  std::vector<std::string> functions_;
  std::map<std::string, std::string> kernel_names_, table_names_, axes_names_;  // by text
  std::map<std::string, std::string> convolution_names_;
  std::string kernels_, tables_, primitives_, calls_;
  int64_t num_primitives_ = 0;
};

std::string describeSlots(const char* what, const std::vector<TensorSlot>& slots) {
  std::string text;
  for (size_t i = 0; i < slots.size(); ++i) {
    text += fmt::format(" *   {}[{}] {}: {}{}\n", what, i, slots[i].name, toString(slots[i].dtype),
                        formatInts(slots[i].layout.sizes));
  }
  return text;
}

std::string headerText(const Program& program, const BuildOptions& options) {
  std::string guard;
  for (char c : options.name)
    guard += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(
      "/* {0}, compiled ahead of time by torchscript-cli {1}. Tensors are row-major:\n{2}{3}"
      " * Outputs must not overlap inputs. See wick_aot.h. */\n"
      "#ifndef WICK_AOT_MODEL_{4}_H\n#define WICK_AOT_MODEL_{4}_H\n\n#include \"wick_aot.h\"\n\n"
      "#if WICK_AOT_VERSION != {5}\n#error \"{0} was written for version {5} of "
      "wick_aot.h\"\n#endif\n\n"
      "#ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
      "/* Names, dtypes and sizes of inputs and outputs. */\n"
      "const wick_aot_model* {0}_model(void);\n"
      "/* `weights` is the path of {0}.weights. */\n"
      "int {0}_init(wick_aot_state* state, const char* weights);\n"
      "int {0}_forward(wick_aot_state* state, const wick_aot_tensor* inputs, wick_aot_tensor* "
      "outputs);\n"
      "void {0}_free(wick_aot_state* state);\n\n"
      "#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
      options.name, version(), describeSlots("inputs", program.inputs),
      describeSlots("outputs", program.outputs), guard, kFormatVersion);
}

}  // namespace

BuildResult build(Program program, const BuildOptions& options,
                  const std::function<void(std::string_view)>& write_weights) {
  const Plan plan = makePlan(program);
  ProgramWriter::Text text;
  try {
    text = ProgramWriter(program, plan, options).run();
  } catch (const codegen::NoCppText& e) {
    throw NotAhead(e.what());
  }
  Fingerprint fingerprint;
  fingerprint.add(text.before);
  fingerprint.add(text.after);
  for (const uint32_t b : plan.weights) {
    const Buffer& buffer = program.buffers[b];
    fingerprint.add(buffer.data.rawData(), buffer.bytes);
  }
  BuildResult result;
  if (plan.weights_bytes > 0) {
    result.weights_file = options.name + ".weights";
    std::string header(kWeightsHeader, '\0');
    const uint32_t numbers[] = {kFormatVersion, static_cast<uint32_t>(kWeightsHeader)};
    const uint64_t words[] = {fingerprint.value(), static_cast<uint64_t>(plan.weights_bytes)};
    std::memcpy(header.data(), "WICKAOT\n", 8);
    std::memcpy(header.data() + 8, numbers, sizeof numbers);
    std::memcpy(header.data() + 16, words, sizeof words);
    write_weights(header);
    for (const uint32_t b : plan.weights) {
      const Buffer& buffer = program.buffers[b];
      write_weights({static_cast<const char*>(buffer.data.rawData()), buffer.bytes});
      constexpr size_t kAlignment = 64;
      write_weights(std::string((kAlignment - buffer.bytes % kAlignment) % kAlignment, '\0'));
    }
  }
  result.files = {
      {options.name + ".h", headerText(program, options)},
      {options.name + ".cpp", text.before + fmt::format("{:#x}", fingerprint.value()) + text.after},
      {"wick_aot.h", kRuntimeHeader},
      {"wick_aot.c", kRuntimeSource},
      {"wick_aot_onednn.h", kLibraryHeader},
      {"wick_aot_loops.h", kLoops},
      {"wick_aot_convolution.h", kConvolution},
      {"small_gemm_blocks.h", kBlocks}};
  result.sources = {options.name + ".cpp", "wick_aot.c"};
  result.needs_onednn = text.primitives > 0;
  if (result.needs_onednn) {
    result.files.push_back({"wick_aot_onednn.c", kLibrarySource});
    result.sources.push_back("wick_aot_onednn.c");
  }
  result.steps = program.steps.size();
  result.kernels = text.kernels;
  result.primitives = text.primitives;
  result.memory_bytes = plan.memory_bytes;
  result.weights_bytes = plan.weights_bytes;
  return result;
}

std::vector<std::string> compileCommand(const BuildResult& result, const std::string& name,
                                        const std::string& compiler) {
  std::vector<std::string> words = {compiler, "-std=c++17", "-O3", "-march=x86-64-v3",
                                    "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math",
                                    "-fPIC", "-shared", "-fopenmp",
                                    // So that a model without oneDNN does not load it.
                                    "-Wl,--as-needed", "-o", "lib" + name + ".so"};
  words.insert(words.end(), result.sources.begin(), result.sources.end());
  if (result.needs_onednn) words.push_back("-ldnnl");
  return words;
}

}  // namespace wick::aot
