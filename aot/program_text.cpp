// The programs as text: kernels, tables, and for each a function that calls one step after the other.
#include "aot/program_text.h"

#include <fmt/format.h>

#include <cctype>
#include <map>
#include <set>

#include "aot/recording.h"
#include "codegen/loop/kernel.h"

namespace wick::aot {

namespace {

std::string listOf(IntSpan values) {
  std::string text;
  for (int64_t v : values) text += fmt::format("{}{}", text.empty() ? "" : ", ", v);
  return text.empty() ? "0" : text;
}

std::string layoutText(const Layout& layout) {
  return fmt::format("{{{}, {{{}}}, {{{}}}}}", layout.sizes.size(), listOf(layout.sizes),
                     listOf(layout.strides));
}

// A literal of C.
std::string quoted(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      literal += {'\\', c};
    } else if (code < ' ' || code == '?' || code > '~') {
      literal += fmt::format("\\{:03o}", code);
    } else {
      literal += c;
    }
  }
  return literal + "\"";
}

std::string identifier(std::string_view name) {
  std::string text;
  for (char c : name) text += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return text;
}

}  // namespace

class ProgramWriter::Impl {
 public:
  explicit Impl(unsigned vector_bits) : vector_bits_(vector_bits) {}

  void add(const Program& program, const Plan& plan) {
    program_ = &program;
    plan_ = &plan;
    calls_.clear();
    for (const Step& step : program.steps) {
      std::visit([&](const auto& what) { write(step, what); }, step.what);
    }
    finishOutputs();
    const size_t number = count_++;
    signatures_ += slotsText(fmt::format("inputs_{}", number), program.inputs) +
                   slotsText(fmt::format("outputs_{}", number), program.outputs);
    programs_ += fmt::format(
        "// What call {0} computes.\n"
        "int run_{0}([[maybe_unused]] wick_aot_state* state,\n"
        "    [[maybe_unused]] const wick_aot_tensor* inputs,\n"
        "    [[maybe_unused]] wick_aot_tensor* outputs) {{\n"
        "  [[maybe_unused]] const unsigned char* const w = state->weights;\n"
        "  [[maybe_unused]] unsigned char* const m = state->memory;\n"
        "  [[maybe_unused]] int code = WICK_AOT_OK;\n{1}"
        "  return WICK_AOT_OK;\n}}\n\n",
        number, calls_);
  }

  ProgramText finish() {
    ProgramText text;
    text.kernels = kernel_names_.size();
    text.primitives = static_cast<size_t>(num_primitives_);
    if (num_primitives_ > 0) text.includes += "#include \"wick_aot_onednn.h\"\n";
    if (!convolution_names_.empty()) text.includes += "#include \"wick_aot_convolution.h\"\n";
    text.includes += "#include \"wick_aot_loops.h\"\n";
    text.definitions = codegen::cppSupportText();
    text.definitions += std::string("\n") + kHelpers + (num_primitives_ > 0 ? kRunHelper : "");
    for (const std::string& f : functions_) text.definitions += f;
    text.definitions += kernels_ + tables_ + "\n" + signatures_;
    if (num_primitives_ > 0) {
      text.definitions +=
          fmt::format("const wick_aot_primitive primitives[] = {{\n{}}};\n", primitives_);
    }
    text.definitions += "\n" + programs_;
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
    const Plan::Home& home = plan_->homes[place.buffer];
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
    std::string text = codegen::cppKernelText("KERNEL", kernel, s.walk, s.numbers, vector_bits_);
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

  void write(const Step& step, const PlainProductStep& s) {
    const std::string type = codegen::cppType(s.dtype);
    const auto list = [](const std::array<int64_t, 3>& a) {
      return fmt::format("{{{}, {}, {}}}", a[0], a[1], a[2]);
    };
    comment(step);
    calls_ += fmt::format("  wick_aot::plainProduct<{}>({}, {}, {}, {}, {}, {}, {}, {}, {}, {});\n",
                          type, s.batches, s.m, s.n, s.k, pointer(s.a, type), list(s.a_strides),
                          pointer(s.b, type), list(s.b_strides),
                          s.bias ? pointer(*s.bias, type) : "nullptr", pointer(s.c, type));
  }

  bool isWeight(const Place& p) const {
    return plan_->homes[p.buffer].kind == Plan::Home::Kind::Weights;
  }
  int64_t weightsOffset(const Place& p) const { return plan_->homes[p.buffer].offset + p.offset; }

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
    const size_t bytes = program_->buffers[s.to.buffer].bytes;
    comment(step);
    const std::string to = pointer(s.to, "char");
    calls_ += s.from
                  ? fmt::format("  std::memcpy({}, {}, {});\n", to, pointer(*s.from, "char"), bytes)
                  : fmt::format("  std::memset({}, 0, {});\n", to, bytes);
  }

  void write(const Step& step, const BranchStep& s) {
    comment(step);
    calls_ += fmt::format("  if (*{} != 0) {{\n", pointer(s.condition, "uint8_t"));
  }
  void write(const Step&, const OtherwiseStep&) { calls_ += "  } else {\n"; }
  void write(const Step&, const EndStep&) { calls_ += "  }\n"; }
  void write(const Step& step, const RaiseStep& s) {
    comment(step);
    calls_ +=
        fmt::format("  return wick_aot_fail(state, WICK_AOT_RAISED, {});\n", quoted(s.message));
  }

  void finishOutputs() {
    for (size_t i = 0; i < program_->outputs.size(); ++i) {
      const TensorSlot& out = program_->outputs[i];
      int64_t bytes = static_cast<int64_t>(itemSize(out.dtype));
      for (int64_t size : out.layout.sizes) bytes *= size;
      if (plan_->direct[i] || bytes == 0) continue;
      calls_ += fmt::format("  std::memcpy(outputs[{}].data, {}, {});\n", i,
                            pointer(out.place, "char"), bytes);
    }
  }

  static std::string slotsText(const std::string& name, const std::vector<TensorSlot>& slots) {
    if (slots.empty()) return "";
    std::string text = fmt::format("const wick_aot_slot {}[] = {{\n", name);
    for (const TensorSlot& slot : slots) {
      text +=
          fmt::format("    {{\"{}\", {}, {}, {{{}}}}},\n", slot.name, static_cast<int>(slot.dtype),
                      slot.layout.sizes.size(), listOf(slot.layout.sizes));
    }
    return text + "};\n";
  }

  const unsigned vector_bits_;
  const Program* program_ = nullptr;  // that is written now
  const Plan* plan_ = nullptr;
  size_t count_ = 0;
  std::set<std::string> defined_;
  std::vector<std::string> functions_;
  // By text.
  std::map<std::string, std::string> kernel_names_, table_names_, axes_names_, convolution_names_;
  std::string kernels_, tables_, signatures_, primitives_, programs_;
  std::string calls_;
  int64_t num_primitives_ = 0;
};

ProgramWriter::ProgramWriter(unsigned vector_bits) : impl_(std::make_unique<Impl>(vector_bits)) {}
ProgramWriter::~ProgramWriter() = default;
void ProgramWriter::add(const Program& program, const Plan& plan) {
  impl_->add(program, plan);
}
ProgramText ProgramWriter::finish() {
  return impl_->finish();
}

}  // namespace wick::aot
