#include "aot/cuda/step_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <limits>
#include <optional>
#include <utility>

#include "aot/cuda/functions.h"
#include "aot/recording.h"
#include "codegen/cuda/kernel_text.h"
#include "codegen/loop/lowering.h"
#include "core/error.h"
#include "runtime/cuda/loop_kernel.h"

namespace wick::aot {

namespace {

// Layouts are chosen for a device of this many multiprocessors, because nobody knows which it will be. Devices of data
// centers have 80 to 150.
constexpr int kMultiprocessors = 128;
constexpr int kBlock = 256;
// Of places in the memory of a model, and of tensors of callers.
constexpr int64_t kHomeAlignment = 64, kTensorAlignment = 16;

// The way over memory that a KernelStep keeps.
Walk walkOf(const codegen::CppWalk& way) {
  Walk walk;
  const auto fill = [](std::array<int64_t, kMaxAccesses>& to, const std::vector<int64_t>& from) {
    std::ranges::copy(from, to.begin());
  };
  walk.elements = way.row.size;
  fill(walk.element_steps, way.row.steps);
  walk.nested = static_cast<int>(way.pieces.size());
  for (size_t l = 0; l < way.pieces.size(); ++l) {
    walk.nested_sizes[l] = way.pieces[l].size;
    fill(walk.nested_steps[l], way.pieces[l].steps);
  }
  walk.outer = static_cast<int>(way.outer.size());
  for (size_t d = 0; d < way.outer.size(); ++d) {
    walk.sizes[d] = way.outer[d].size;
    fill(walk.steps[d], way.outer[d].steps);
  }
  walk.across_rows = way.across_rows;
  walk.tiled = way.tiled;
  return walk;
}

std::string numberText(int64_t n) {
  return n == std::numeric_limits<int64_t>::min() ? "(-9223372036854775807 - 1)"
                                                  : fmt::format("{}", n);
}

constexpr const char* kReturn = "  if (code != WICK_AOT_OK) return code;\n";

// Bias, addend and ReLU behind a convolution, where cuDNN has no engine that computes them with it.
constexpr const char* kFinish = R"({preamble}
typedef {type} T;
typedef {accumulator} A;
struct Words {{
  T* y; const T* bias; const T* addend; long long total, channels, step, relu;
}};
extern "C" __global__ void __launch_bounds__(256) finish(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    T value = p.y[i];
    if (p.bias) {{
      const A sum = {value} + {bias};
      value = {sum};
    }}
    if (p.addend) {{
      const A sum = {value} + {addend};
      value = {sum};
    }}
    if (p.relu && {value} < (A)0) value = {zero};
    p.y[i] = value;
  }}
}}
)";

std::string finishText(DType dtype) {
  const DType wide = isReducedFloat(dtype) ? DType::Float : dtype;
  const auto read = [&](const char* element) { return codegen::cudaConvert(element, dtype, wide); };
  return fmt::format(
      fmt::runtime(kFinish), fmt::arg("preamble", codegen::cudaPreamble(Expression())),
      fmt::arg("type", codegen::cudaType(dtype)), fmt::arg("accumulator", codegen::cudaType(wide)),
      fmt::arg("value", read("value")), fmt::arg("bias", read("p.bias[i / p.step % p.channels]")),
      fmt::arg("addend", read("p.addend[i]")),
      fmt::arg("sum", codegen::cudaConvert("sum", wide, dtype)),
      fmt::arg("zero", codegen::cudaConvert("0.0f", DType::Float, dtype)));
}

// Sizes that elements decide take all values, and each layout is a form of the program (aot/family.h). So rows are laid over
// threads in few ways, an element after the other.
void layCoarsely(const loop::Kernel& kernel, cuda::LaunchShape& shape, const Walk& walk) {
  codegen::CudaLayout& layout = shape.layout;
  layout.vector = 1;
  int64_t units = walk.rows() * walk.elements;
  if (kernel.reduced != 0) {
    const int64_t points = walk.pointsOfRow();
    if (layout.columns) {
      layout.threads = points < 32 ? 1 : 8;
      layout.block = kBlock;
    } else {
      layout.threads = points <= 32 ? 32 : points <= 256 ? 256 : 1024;
      layout.block = std::max(kBlock, layout.threads);
    }
    const int64_t each = (points + layout.threads - 1) / layout.threads;
    layout.kept = layout.columns || loop::makeSchedule(kernel).passes == 1 || each > 8 ? 0
                  : each == 1                                                          ? 1
                                                                                       : 8;
    units = walk.rows() * layout.threads;
  }
  const int64_t blocks = (units + layout.block - 1) / layout.block;
  shape.grid = static_cast<unsigned>(std::min<int64_t>(blocks, int64_t{kMultiprocessors} * 256));
  shape.block = static_cast<unsigned>(layout.block);
}

std::string kernelText(const Step& step, const loop::Kernel& kernel,
                       const codegen::CudaLayout& layout) {
  try {
    return codegen::cudaKernelText("kernel", kernel, layout);
  } catch (const codegen::NoCudaText& e) {
    throw NotAhead(fmt::format("{} is not available in models for CUDA: {}", step.name, e.what()));
  }
}

}  // namespace

void checkCudaStep(const std::string& name, const decltype(Step::what)& what) {
  const bool refused = std::holds_alternative<FunctionStep>(what) ||
                       std::holds_alternative<PoolStep>(what) ||
                       std::holds_alternative<SmallProductStep>(what) ||
                       std::holds_alternative<PlainProductStep>(what) ||
                       std::holds_alternative<ConvolutionStep>(what);
  if (refused) throw NotAhead(fmt::format("{} is not available in models for CUDA", name));
}

// ---- what programs share ----

std::string CudaStepWriter::includes(size_t) const {
  std::string text = "#include \"wick_aot_cuda.h\"\n\n#include <utility>\n";
  if (computes_numbers_) text += "\n#include \"wick_aot_numbers.h\"\n";
  return text;
}

std::string CudaStepWriter::functions(size_t) const {
  return std::string("namespace {\n\n") + kAddressText +
         R"([[maybe_unused]] inline int64_t word(const void* address) {
  return reinterpret_cast<intptr_t>(address);
}

)";
}

std::string CudaStepWriter::tables() const {
  if (known_.kernels.empty()) return "";
  std::string names, texts;
  for (const Kernel& kernel : known_.kernels) {
    names += fmt::format("  {},\n", kernel.name);
    texts += fmt::format("    \"{}\",\n", kernel.name);
  }
  return fmt::format(
      "// Kernels by number.\nenum : int32_t {{\n{}}};\n"
      "const char* const kernel_names[] = {{\n{}}};\n",
      names, texts);
}

std::string CudaStepWriter::names() const {
  return "  [[maybe_unused]] const unsigned char* const w = wick_aot_cuda_weights(state);\n"
         "  [[maybe_unused]] unsigned char* const m = wick_aot_cuda_memory(state);\n"
         "  [[maybe_unused]] const int64_t flag = wick_aot_cuda_flag(state);\n"
         "  [[maybe_unused]] int code = WICK_AOT_OK;\n";
}

std::string CudaStepWriter::kernel(const std::string& step, const std::string& function,
                                   std::string text) {
  const auto [known, added] = known_.by_text.try_emplace(text, known_.kernels.size());
  if (added) {
    std::string name = "k_";
    for (const char c : step) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    name += fmt::format("_{}", known_.kernels.size() + 1);
    const std::string head = " " + function + "(const __grid_constant__";
    const size_t at = text.find(head);
    WICK_ASSERT(at != std::string::npos, "the text of a kernel does not name it");
    text.replace(at + 1, function.size(), name);
    known_.kernels.push_back({std::move(name), std::move(text)});
  }
  return known_.kernels[known->second].name;
}

size_t CudaStepWriter::complaint(const std::string& text) {
  const auto at = std::ranges::find(known_.complaints, text);
  if (at != known_.complaints.end()) {
    return static_cast<size_t>(at - known_.complaints.begin()) + 1;
  }
  known_.complaints.push_back(text);
  return known_.complaints.size();
}

int64_t CudaStepWriter::alignment(const Place& place, DType dtype) const {
  using Kind = Plan::Home::Kind;
  if (program_->buffers[place.buffer].kind == Buffer::Kind::Window) {
    return static_cast<int64_t>(itemSize(dtype));
  }
  const Kind kind = plan_->homes[place.buffer].kind;
  const int64_t home =
      kind == Kind::Input || kind == Kind::Output ? kTensorAlignment : kHomeAlignment;
  if (place.offset == 0) return home;
  return std::min(home, int64_t{1} << std::countr_zero(static_cast<uint64_t>(place.offset)));
}

std::string CudaStepWriter::word(const Place& place) {
  return fmt::format("word({})", pointer(place, "char"));
}

std::string CudaStepWriter::launchText(const std::string& name, unsigned grid, unsigned block,
                                       const std::string& words) {
  return fmt::format(
      "  {{\n    const int64_t words[] = {{{}}};\n"
      "    code = wick_aot_cuda_launch(state, {}, {}, {}, words);\n  }}\n{}",
      words, name, grid, block, kReturn);
}

std::string CudaStepWriter::readText(const std::string& variable, const std::string& type,
                                     const Place& place) {
  known_.asks = true;
  return fmt::format(
      "  {0} {1}{{}};\n  code = wick_aot_cuda_read(state, &{1}, {2}, sizeof {1});\n{3}", type,
      variable, pointer(place, "char"), kReturn);
}

std::string CudaStepWriter::writeText(const std::string& variable, const std::string& type,
                                      const Place& place) {
  const std::string to = pointer(place, type);
  if (type == "int64_t") {
    return fmt::format("  code = wick_aot_cuda_set(state, {}, {});\n{}", to, variable, kReturn);
  }
  known_.asks = true;
  return fmt::format("  code = wick_aot_cuda_write(state, {0}, &{1}, sizeof {1});\n{2}", to,
                     variable, kReturn);
}

std::string CudaStepWriter::copyText(const std::string& to, const std::string& from, size_t bytes) {
  return fmt::format("  code = wick_aot_cuda_copy(state, {}, {}, {});\n{}", to, from, bytes,
                     kReturn);
}

// ---- steps ----

void CudaStepWriter::write(const Step& step, const KernelStep& s) {
  const loop::Kernel& kernel = *s.kernel;
  const Walk walk = walkOf(s.walk);
  std::vector<Touch> touches(s.places.size());
  for (size_t a = 0; a < s.places.size(); ++a) {
    // An address of the same alignment.
    const int64_t aligned = alignment(s.places[a], kernel.accesses[a].dtype);
    touches[a].base = reinterpret_cast<char*>((int64_t{1} << 20) + (aligned < 64 ? aligned : 0));
    touches[a].steps.fill(0);
  }
  std::vector<int64_t> numbers;
  for (const uint64_t bits : s.numbers) numbers.push_back(static_cast<int64_t>(bits));
  std::optional<cuda::LaunchShape> shape =
      cuda::shapeOf(kernel, walk, touches, numbers, kMultiprocessors);
  if (!shape) return;
  if (!program_->asks.empty()) layCoarsely(kernel, *shape, walk);
  const std::string name =
      this->kernel(step.name, "kernel", kernelText(step, kernel, shape->layout));
  const codegen::CudaWords places(kernel, shape->layout);
  std::vector<std::string> texts;
  for (const int64_t n : shape->words) texts.push_back(numberText(n));
  for (size_t a = 0; a < s.places.size(); ++a) {
    texts[places.base(a)] = kernel.accesses[a].isIndex() ? "0" : word(s.places[a]);
  }
  if (!kernel.checks.empty()) {
    texts[places.flag] = "flag";
    texts[places.flag + 1] = fmt::format(
        "{}", complaint(s.complaint.empty() ? step.name + ": index out of range" : s.complaint));
  }
  now_.call =
      launchText(name, shape->grid, shape->block, fmt::format("{}", fmt::join(texts, ", ")));
}

void CudaStepWriter::write(const Step& step, const DeviceKernelStep& s) {
  writeKernel(step, s, "");
}

void CudaStepWriter::write(const Step& step, const FunctionStep& s) {
  const std::optional<DeviceKernelStep> kernel = checkingKernelOf(s);
  if (!kernel) StepWriter::refuse(step);
  const std::string text = s.complaint.empty() ? step.name + ": index out of range" : s.complaint;
  writeKernel(step, *kernel, fmt::format("flag, {}", complaint(text)));
}

void CudaStepWriter::writeKernel(const Step& step, const DeviceKernelStep& s,
                                 const std::string& last) {
  std::string words;
  const auto add = [&](const std::string& text) { words += (words.empty() ? "" : ", ") + text; };
  for (const FunctionStep::Operand& operand : s.operands) {
    add(operand.place ? word(*operand.place) : "0");
  }
  for (const int64_t n : s.numbers) add(numberText(n));
  if (!last.empty()) add(last);
  const int64_t blocks =
      std::clamp<int64_t>((s.points + kBlock - 1) / kBlock, 1, int64_t{kMultiprocessors} * 256);
  now_.call =
      launchText(kernel(step.name, s.kernel, s.text), static_cast<unsigned>(blocks), kBlock, words);
}

std::string CudaStepWriter::layoutText(const Layout& layout, const Place& place,
                                       DType dtype) const {
  return fmt::format("{{{}, {{{}}}, {{{}}}, {}}}", layout.sizes.size(),
                     listOf(IntSpan(layout.sizes)), listOf(IntSpan(layout.strides)),
                     alignment(place, dtype));
}

void CudaStepWriter::write(const Step& step, const LibraryStep& s) {
  const bool product = s.kind == LibraryStep::Kind::Product;
  (product ? known_.multiplies : known_.convolves) = true;
  const bool relu = s.activation == Activation::Relu;
  const bool finishes = !product && (s.bias || s.addend || relu);
  const std::string finish =
      finishes ? kernel("finish_convolution", "finish", finishText(s.dtype)) : "-1";
  const char* kind = product                                   ? "WICK_AOT_CUDA_PRODUCT"
                     : s.kind == LibraryStep::Kind::Transposed ? "WICK_AOT_CUDA_TRANSPOSED"
                                                               : "WICK_AOT_CUDA_CONVOLUTION";
  const auto alignmentOf = [&](const std::optional<Place>& place) {
    return place ? alignment(*place, s.dtype) : 0;
  };
  const std::string description = fmt::format(
      "{{{}, {}, {}, {}, {}, {}, {}, {}, {}, {},\n     {{{}}}, {{{}}}, {{{}}},\n     {},\n     "
      "{},\n     {}}}",
      kind, static_cast<int>(s.dtype), s.reduces ? 1 : 0, s.bias ? 1 : 0, s.addend ? 1 : 0,
      relu ? 1 : 0, finish, alignmentOf(s.bias), alignmentOf(s.addend), s.stride.size(),
      listOf(IntSpan(s.stride)), listOf(IntSpan(s.padding)), listOf(IntSpan(s.dilation)),
      layoutText(s.source, s.from, s.dtype), layoutText(s.weight, s.weights, s.dtype),
      layoutText(s.result, s.to, s.dtype));
  const auto any = [&](const std::optional<Place>& place) {
    return place ? pointer(*place, "char") : "nullptr";
  };
  const std::string arguments =
      fmt::format("{}, {},\n      {}, {}, {}", pointer(s.from, "char"), pointer(s.weights, "char"),
                  any(s.bias), any(s.addend), pointer(s.to, "char"));
  now_.primitive = true;
  if (any_size_) {
    now_.call = fmt::format(
        "  {{\n    const wick_aot_cuda_primitive primitive =\n    {};\n"
        "    code = wick_aot_cuda_run(state, {}, &primitive, {});\n  }}\n{}",
        description, kPrimitiveNumber, arguments, kReturn);
    return;
  }
  now_.description = fmt::format("    {},  // {}\n", description, step.name);
  now_.call = fmt::format("  code = wick_aot_cuda_run(state, {}, nullptr, {});\n{}",
                          kPrimitiveNumber, arguments, kReturn);
}

void CudaStepWriter::write(const Step&, const FillStep& s) {
  const size_t bytes = program_->buffers[s.to.buffer].bytes;
  if (bytes == 0) return;
  const std::string to = pointer(s.to, "char");
  now_.call =
      s.from ? copyText(to, pointer(*s.from, "char"), bytes)
             : fmt::format("  code = wick_aot_cuda_clear(state, {}, {});\n{}", to, bytes, kReturn);
}

}  // namespace wick::aot
