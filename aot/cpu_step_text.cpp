// Steps as what the CPU runs.
#include <fmt/format.h>

#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "aot/elements.h"
#include "aot/pack_weights.h"
#include "aot/random.h"
#include "aot/recording.h"
#include "aot/step_text.h"
#include "codegen/loop/kernel.h"

namespace wick::aot {

namespace {

std::string numbersOf(const int64_t* values, int32_t count) {
  return listOf(IntSpan(values, static_cast<size_t>(count)));
}

std::string layoutText(const wick_aot_layout& layout) {
  return fmt::format("{{{}, {{{}}}, {{{}}}}}", layout.rank, numbersOf(layout.sizes, layout.rank),
                     numbersOf(layout.strides, layout.rank));
}

// A wick_aot_primitive as C++ initializes it.
std::string primitiveText(const wick_aot_primitive& p) {
  const auto spatial = [&](const int64_t* values) { return numbersOf(values, p.spatial); };
  return fmt::format(
      "{{{}, {}, {}, int32_t({}), {}, {}, {},\n     {{{}}}, {{{}}}, {{{}}}, {{{}}},\n     {},\n"
      "     {},\n     {}, {{{}, {{{}}}, {{{}}}}}}}",
      p.kind, p.residual, p.activation, p.one_thread, p.weights_offset, p.bias_offset, p.spatial,
      spatial(p.stride), spatial(p.dilation), spatial(p.padding), spatial(p.padding_after),
      layoutText(p.source), layoutText(p.weight), layoutText(p.result), p.packed.count,
      numbersOf(p.packed.sizes, p.packed.count), numbersOf(p.packed.dims, p.packed.count));
}

class CpuStepWriter : public StepWriter {
 public:
  explicit CpuStepWriter(unsigned vector_bits) : vector_bits_(vector_bits) {}

  std::unique_ptr<StepWriter> copy() const override {
    return std::make_unique<CpuStepWriter>(*this);
  }
  void restore(const StepWriter& copy) override {
    const auto& other = static_cast<const CpuStepWriter&>(copy);
    known_ = other.known_;
    computes_numbers_ = other.computes_numbers_;
  }
  std::string includes(size_t primitives) const override;
  std::string functions(size_t primitives) const override;
  std::string tables() const override { return known_.tables; }
  bool draws() const override { return known_.draws; }
  std::string names() const override {
    return "  [[maybe_unused]] const unsigned char* const w = state->weights;\n"
           "  [[maybe_unused]] unsigned char* const m = state->memory;\n"
           "  [[maybe_unused]] int code = WICK_AOT_OK;\n";
  }
  std::string primitiveType() const override { return "wick_aot_primitive"; }
  std::string sizedPrimitive() const override {
    return "    {WICK_AOT_SIZED, 0, 0, 0, 0, 0, 0, {0}, {0}, {0}, {0},\n"
           "     {0, {0}, {0}}, {0, {0}, {0}}, {0, {0}, {0}}, {0, {0}, {0}}},\n";
  }

 private:
  std::string table(const std::vector<int64_t>& numbers);
  std::string axes(const PoolStep& s);
  std::string copyText(const std::string& to, const std::string& from, size_t bytes) override {
    return fmt::format("  std::memcpy({}, {}, {});\n", to, from, bytes);
  }
  std::string readText(const std::string& variable, const std::string& type,
                       const Place& place) override {
    return fmt::format("  const {} {} = *{};\n", type, variable, pointer(place, type));
  }
  std::string writeText(const std::string& variable, const std::string& type,
                        const Place& place) override {
    return fmt::format("  *{} = {};\n", pointer(place, type), variable);
  }
  void write(const Step& step, const KernelStep& s) override;
  void write(const Step& step, const SmallProductStep& s) override;
  void write(const Step& step, const PlainProductStep& s) override;
  void write(const Step& step, const LibraryStep& s) override;
  void write(const Step& step, const ConvolutionStep& s) override;
  void write(const Step& step, const PoolStep& s) override;
  void write(const Step& step, const FillStep& s) override;
  void write(const Step& step, const FunctionStep& s) override;

  unsigned vector_bits_;
  // What texts share.
  struct Known {
    std::set<std::string> defined;
    std::vector<std::string> functions;
    std::map<std::string, std::string> table_names, axes_names, convolution_names;  // by text
    std::string tables;
    bool convolves = false, by_winograd = false, moves_elements = false, draws = false,
         factorizes = false, transforms = false, computes_complex = false;
  };
  Known known_;
};

std::string CpuStepWriter::includes(size_t primitives) const {
  std::string text;
  if (primitives > 0) text += "#include \"wick_aot_onednn.h\"\n";
  if (known_.convolves) text += "#include \"wick_aot_convolution.h\"\n";
  if (known_.by_winograd) text += "#include \"wick_aot_winograd.h\"\n";
  text += "#include \"wick_aot_loops.h\"\n";
  if (known_.moves_elements) text += "#include \"wick_aot_layers.h\"\n";
  if (known_.factorizes) text += "#include \"wick_aot_lapack.h\"\n";
  if (known_.computes_complex) text += "#include \"wick_aot_complex.h\"\n";
  if (known_.transforms) text += "#include \"wick_aot_fourier.h\"\n";
  if (known_.draws) text += "#include \"wick_aot_random.h\"\n";
  if (computes_numbers_) text += "#include \"wick_aot_numbers.h\"\n";
  return text;
}

constexpr const char* kRunHelper =
    R"([[maybe_unused]] int run(wick_aot_state* state, int32_t primitive, const wick_aot_primitive* sized,
                         const void* source, const void* weight, const void* bias,
                         const void* addend, void* result) {
  const wick_aot_arguments arguments = {source, weight, bias, addend, result};
  return wick_aot_run(state, primitive, sized, &arguments);
}

)";

std::string CpuStepWriter::functions(size_t primitives) const {
  std::string text = codegen::cppSupportText();
  text += std::string("\n") + kAddressText + "\n" + (primitives > 0 ? kRunHelper : "");
  for (const std::string& f : known_.functions) text += f;
  return text;
}

void CpuStepWriter::write(const Step& step, const KernelStep& s) {
  const loop::Kernel& kernel = *s.kernel;
  for (codegen::CppFunction& f : codegen::cppFunctions(kernel.expression)) {
    if (known_.defined.insert(f.name).second) known_.functions.push_back(std::move(f.text));
  }
  codegen::CppWalk walk = s.walk;
  walk.any_size = any_size_;
  now_.kernel = codegen::cppKernelText("KERNEL", kernel, walk, s.numbers, vector_bits_);
  std::string arguments;
  for (size_t a = 0; a < s.places.size(); ++a) {
    const loop::Access& access = kernel.accesses[a];
    if (access.isIndex()) continue;
    arguments += (arguments.empty() ? "" : ", ") + pointer(s.places[a], memoryType(access.dtype));
  }
  const std::string call = fmt::format("{}{})", kKernelName, arguments);
  now_.call = kernel.checks.empty()
                  ? fmt::format("  {};\n", call)
                  : fmt::format("  if (!{}) {}", call,
                                failure(s.complaint.empty() ? step.name + ": index out of range"
                                                            : s.complaint));
}

void CpuStepWriter::write(const Step&, const SmallProductStep& s) {
  now_.call = fmt::format(
      "  wick_aot::product<{}>({}, {}, {}, {}, {}, {}, {},\n      {}, {}, {}, {}, {}, {});\n",
      s.transposed, s.batches, s.m, s.n, s.k, pointer(s.a, "float"), s.lda, s.a_step,
      pointer(s.b, "float"), s.ldb, s.b_step, s.bias ? pointer(*s.bias, "float") : "nullptr",
      pointer(s.c, "float"), s.c_step);
}

void CpuStepWriter::write(const Step&, const PlainProductStep& s) {
  const std::string type = codegen::cppType(s.dtype);
  const auto list = [](const std::array<int64_t, 3>& a) {
    return fmt::format("{{{}, {}, {}}}", a[0], a[1], a[2]);
  };
  now_.call = fmt::format("  wick_aot::plainProduct<{}>({}, {}, {}, {}, {}, {}, {}, {}, {}, {});\n",
                          type, s.batches, s.m, s.n, s.k, pointer(s.a, type), list(s.a_strides),
                          pointer(s.b, type), list(s.b_strides),
                          s.bias ? pointer(*s.bias, type) : "nullptr", pointer(s.c, type));
}

void CpuStepWriter::write(const Step& step, const LibraryStep& s) {
  const bool packs = s.packs && isWeight(s.weights);
  const bool bias_known = s.bias && isWeight(*s.bias);
  wick_aot_primitive primitive = primitiveOf(s);
  if (packs) primitive.weights_offset = weightsOffset(s.weights);
  if (bias_known) primitive.bias_offset = weightsOffset(*s.bias);
  const std::string description = primitiveText(primitive);
  const std::string arguments =
      fmt::format("{}, {}, {}, {}, {}", pointer(s.from, "float"),
                  packs ? "nullptr" : pointer(s.weights, "float"),
                  s.bias && !bias_known ? pointer(*s.bias, "float") : "nullptr",
                  s.addend ? pointer(*s.addend, "float") : "nullptr", pointer(s.to, "float"));
  now_.primitive = true;
  if (any_size_) {
    now_.call = fmt::format(
        "  {{\n    const wick_aot_primitive primitive =\n    {};\n"
        "    code = run(state, {}, &primitive, {});\n  }}\n"
        "  if (code != WICK_AOT_OK) return code;\n",
        description, kPrimitiveNumber, arguments);
  } else {
    now_.description = fmt::format("    {},  // {}\n", description, step.name);
    now_.call = fmt::format(
        "  code = run(state, {}, nullptr, {});\n  if (code != WICK_AOT_OK) return code;\n",
        kPrimitiveNumber, arguments);
  }
}

void CpuStepWriter::write(const Step&, const ConvolutionStep& s) {
  const auto pair = [](const std::array<int64_t, 2>& p) {
    return fmt::format("{}, {}", p[0], p[1]);
  };
  const std::string text = fmt::format(
      "{}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, wick_aot::Finish::{}", s.samples, s.groups,
      pair(s.input), s.in_channels, pair(s.result), s.out_channels, pair(s.kernel), pair(s.stride),
      pair(s.dilation), pair(s.padding), s.residual_first,
      s.activation == Activation::None   ? "Nothing"
      : s.activation == Activation::Relu ? "Relu"
                                         : "Relu6");
  known_.convolves = true;
  std::string what = fmt::format("wick_aot::Convolution{{{}}}", text);
  if (!any_size_) {
    auto [known, added] = known_.convolution_names.try_emplace(text);
    if (added) {
      known->second = fmt::format("convolution_{}", known_.convolution_names.size());
      known_.tables +=
          fmt::format("constexpr wick_aot::Convolution {} = {{{}}};\n", known->second, text);
    }
    what = known->second;
  }
  known_.by_winograd |= s.scratch.has_value();
  now_.call =
      fmt::format("  wick_aot::{}({}, {}{}, {}, {}, {}, {}{});\n",
                  s.scratch ? "convolveByWinograd" : "convolve", what,
                  s.scratch ? fmt::format("{}, ", s.tiles_at_once) : "", pointer(s.from, "float"),
                  pointer(s.weights, "float"), s.bias ? pointer(*s.bias, "float") : "nullptr",
                  s.residual ? pointer(*s.residual, "float") : "nullptr", pointer(s.to, "float"),
                  s.scratch ? ", " + pointer(*s.scratch, "float") : "");
}

// The name of a table with these numbers.
std::string CpuStepWriter::table(const std::vector<int64_t>& numbers) {
  const std::string list = listOf(IntSpan(numbers.data(), numbers.size()));
  auto [known, added] = known_.table_names.try_emplace(list);
  if (added) {
    known->second = fmt::format("table_{}", known_.table_names.size());
    known_.tables += fmt::format("const int32_t {}[] = {{{}}};\n", known->second, list);
  }
  return known->second;
}
std::string CpuStepWriter::axes(const PoolStep& s) {
  std::string text;
  for (const PoolStep::Axis& a : s.axes) {
    text += fmt::format("{}\n    {{{}, {}, {}, {}, {}, {}}}", text.empty() ? "" : ",", a.input,
                        a.begin.size(), a.step, table(a.begin), table(a.end), table(a.span));
  }
  auto [known, added] = known_.axes_names.try_emplace(text);
  if (added) {
    known->second = fmt::format("windows_{}", known_.axes_names.size());
    known_.tables += fmt::format("constexpr wick_aot::Axes {} = {{{}}};\n", known->second, text);
  }
  return known->second;
}

void CpuStepWriter::write(const Step&, const PoolStep& s) {
  const std::string windows = axes(s), type = codegen::cppType(s.dtype);
  const std::string from = pointer(s.from, type), to = pointer(s.to, type);
  const int64_t planes = s.samples * s.channels;
  if (!s.average) {
    const std::string indices = s.indices ? pointer(*s.indices, "int64_t") : "nullptr";
    now_.call = s.channels_last
                    ? fmt::format("  wick_aot::maxPixels<{}>({}, {}, {}, {}, {}, {});\n", type,
                                  windows, s.samples, s.channels, from, to, indices)
                    : fmt::format("  wick_aot::maxPlanes<{}>({}, {}, {}, {}, {});\n", type, windows,
                                  planes, from, to, indices);
    return;
  }
  const std::string by =
      fmt::format("{{{}, {}}}", s.divisor.value_or(0), s.count_padding ? "true" : "false");
  if (s.channels_last) {
    now_.call = fmt::format("  wick_aot::averagePixels<{}>({}, {}, {}, {}, {}, {});\n", type,
                            windows, s.samples, s.channels, by, from, to);
  } else if (s.shares_rows) {
    now_.call = fmt::format("  wick_aot::averageSharedPlanes<{}, {}>({}, {}, {}, {}, {});\n",
                            s.axes[2].input, type, windows, planes, by, from, to);
  } else {
    now_.call = fmt::format("  wick_aot::averagePlanes<{}>({}, {}, {}, {}, {});\n", type, windows,
                            planes, by, from, to);
  }
}

void CpuStepWriter::write(const Step&, const FillStep& s) {
  const size_t bytes = program_->buffers[s.to.buffer].bytes;
  const std::string to = pointer(s.to, "char");
  now_.call = s.from ? copyText(to, pointer(*s.from, "char"), bytes)
                     : fmt::format("  std::memset({}, 0, {});\n", to, bytes);
}

void CpuStepWriter::write(const Step&, const FunctionStep& s) {
  known_.moves_elements = true;
  std::string arguments;
  const std::string_view function = s.function;
  known_.factorizes = known_.factorizes || function.starts_with("lapack::");
  known_.transforms =
      known_.transforms || function.starts_with("fourier") || function.starts_with("overlapAdd");
  known_.computes_complex = known_.computes_complex || function.starts_with("complexSums") ||
                            function.find("Complex<") != std::string_view::npos;
  if (drawsNumbers(s)) {
    known_.draws = true;
    arguments = "state->generator";
  }
  for (const FunctionStep::Operand& operand : s.operands) {
    const std::string type =
        operand.bytes != 0 ? wordOf(operand.bytes) : memoryType(toRealType(operand.dtype));
    arguments += (arguments.empty() ? "" : ", ") +
                 (operand.place ? pointer(*operand.place, type) : "nullptr");
  }
  std::string separator = ",\n      ";
  for (const int64_t number : s.numbers) {
    // The least number has no literal.
    arguments += separator;
    arguments +=
        number == std::numeric_limits<int64_t>::min() ? "INT64_MIN" : std::to_string(number);
    separator = ", ";
  }
  const std::string call = fmt::format("wick_aot::{}({})", s.function, arguments);
  now_.call = s.complaint.empty() ? fmt::format("  {};\n", call)
                                  : fmt::format("  if (!{}) {}", call, failure(s.complaint));
}

}  // namespace

std::unique_ptr<StepWriter> cpuStepWriter(unsigned vector_bits) {
  return std::make_unique<CpuStepWriter>(vector_bits);
}

}  // namespace wick::aot
