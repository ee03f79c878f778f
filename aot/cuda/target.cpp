#include "aot/cuda/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "aot/cuda/functions.h"
#include "aot/cuda/layers.h"
#include "aot/cuda/step_text.h"
#include "core/error.h"
#include "runtime/cuda/compiler.h"

namespace wick::aot {

namespace {

// Code that follows each other in a file.
class Images {
 public:
  void add(const CudaArchitecture& a, bool is_ptx, std::string code) {
    constexpr size_t kAlignment = 64;
    bytes_.resize((bytes_.size() + kAlignment - 1) / kAlignment * kAlignment);
    table_ += fmt::format("    {{{}, {}, {}, {}}},\n", 10 * a.major + a.minor, is_ptx ? 1 : 0,
                          bytes_.size(), code.size());
    bytes_ += code;
    ++count_;
  }
  const std::string& table() const { return table_; }
  std::string& bytes() { return bytes_; }
  size_t count() const { return count_; }

 private:
  std::string table_, bytes_;
  size_t count_ = 0;
};

class CudaTarget : public Target {
 public:
  explicit CudaTarget(std::vector<CudaArchitecture> architectures)
      : architectures_(std::move(architectures)) {}

  DeviceLayers& layers() const override { return cudaLayers(); }
  std::vector<AnyStep> adapted(const std::string& name, AnyStep what) const override {
    std::vector<AnyStep> steps;
    if (const auto* function = std::get_if<FunctionStep>(&what)) steps = cudaStepsOf(*function);
    if (steps.empty()) {
      checkCudaStep(name, what);
      steps.push_back(std::move(what));
    }
    return steps;
  }
  std::unique_ptr<StepWriter> writer() const override { return std::make_unique<CudaStepWriter>(); }
  std::string callText(const std::string& function) const override {
    return fmt::format("wick_aot_cuda_call(state, signature, sizes, inputs, outputs, {})",
                       function);
  }

  Parts parts(const StepWriter& writer, const std::string& model, const ProgramText& text,
              int64_t memory_bytes) const override {
    const auto& steps = static_cast<const CudaStepWriter&>(writer);
    Images images = compiled(steps);
    Parts parts;
    parts.kernels = steps.kernels().size();
    const bool any = parts.kernels > 0;
    if (any) parts.definitions = codeText(model, images);
    std::string complaints;
    for (const std::string& complaint : steps.complaints()) {
      complaints += fmt::format("    {},\n", quoted(complaint));
    }
    if (!complaints.empty()) {
      parts.definitions +=
          fmt::format("static const char* const complaints[] = {{\n{}}};\n", complaints);
    }
    parts.definitions += fmt::format(
        "static const wick_aot_cuda_program cuda_program = {{\n"
        "    {}, {}, {}, {}, {},\n    {}, {}, {}u, {}, {},\n    {}, {}, {}}};\n\n",
        any ? "wick_aot_kernels_of_" + model : "nullptr", any ? "images" : "nullptr",
        images.count(), any ? "kernel_names" : "nullptr", parts.kernels,
        complaints.empty() ? "nullptr" : "complaints", steps.complaints().size(), memory_bytes,
        text.primitives > 0 ? "primitives" : "nullptr", text.primitives, steps.multiplies() ? 1 : 0,
        steps.convolves() ? 1 : 0, steps.asks() ? 1 : 0);
    parts.library = "&wick_aot_cuda";
    parts.program = "&cuda_program";
    parts.declarations = fmt::format(
        "/* As wick_aot_cuda_set_stream and wick_aot_cuda_wait (wick_aot_cuda.h). */\n"
        "int {0}_set_stream(wick_aot_state* state, void* stream);\n"
        "int {0}_wait(wick_aot_state* state);\n",
        model);
    parts.functions = fmt::format(
        "\nint {0}_set_stream(wick_aot_state* state, void* stream) {{\n"
        "  return wick_aot_cuda_set_stream(state, stream);\n}}\n\n"
        "int {0}_wait(wick_aot_state* state) {{ return wick_aot_cuda_wait(state); }}\n",
        model);
    parts.files = {
#include "aot/cuda/runtime_texts.inc"
    };
    if (any) parts.files.push_back({model + ".kernels", std::move(images.bytes())});
    parts.sources = {"wick_aot_cuda.c", "wick_aot_cuda_libraries.c"};
    return parts;
  }

 private:
  // All kernels in one text, each in a namespace of its own.
  Images compiled(const CudaStepWriter& steps) const {
    Images images;
    if (steps.kernels().empty()) return images;
    std::string text;
    for (const CudaStepWriter::Kernel& kernel : steps.kernels()) {
      text += fmt::format("namespace in_{} {{\n{}\n}}\n", kernel.name, kernel.text);
    }
    for (const CudaArchitecture& a : architectures_) {
      images.add(a, false, cuda::compileText(text, a.major, a.minor));
    }
    const CudaArchitecture& last = architectures_.back();
    // The driver wants its end told.
    images.add(last, true, cuda::compileToPtx(text, last.major, last.minor) + '\0');
    return images;
  }

  static std::string codeText(const std::string& model, const Images& images) {
    return fmt::format(
        "asm(\".pushsection .rodata\\n\"\n"
        "    \".balign 64\\n\"\n"
        "    \"wick_aot_kernels_of_{0}: .incbin \\\"{0}.kernels\\\"\\n\"\n"
        "    \".popsection\\n\");\n"
        "extern \"C\" const unsigned char wick_aot_kernels_of_{0}[];\n"
        "// Of kernels: architecture, whether it is PTX, where it begins, bytes.\n"
        "static const wick_aot_cuda_image images[] = {{\n{1}}};\n",
        model, images.table());
  }

  std::vector<CudaArchitecture> architectures_;
};

bool isEarlier(const CudaArchitecture& a, const CudaArchitecture& b) {
  return std::pair(a.major, a.minor) < std::pair(b.major, b.minor);
}

}  // namespace

std::vector<CudaArchitecture> parseArchitectures(std::string_view list) {
  std::vector<CudaArchitecture> found;
  std::string_view rest = list;
  for (;;) {
    const size_t comma = rest.find(',');
    const std::string_view word = rest.substr(0, comma);
    const std::string_view digits = word.starts_with("sm_") ? word.substr(3) : "";
    int number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.size() < 2 || digits.size() > 3 || error != std::errc() ||
        end != digits.data() + digits.size() || number < 10) {
      throwRuntimeError("expected architectures like sm_80,sm_90, got '{}'", list);
    }
    found.push_back({number / 10, number % 10});
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  std::ranges::sort(found, isEarlier);
  const auto [first, last] = std::ranges::unique(
      found, [](const auto& a, const auto& b) { return a.major == b.major && a.minor == b.minor; });
  found.erase(first, last);
  return found;
}

std::unique_ptr<Target> cudaTarget(std::vector<CudaArchitecture> architectures) {
  WICK_ASSERT(!architectures.empty(), "a model for CUDA is built for some architecture");
  return std::make_unique<CudaTarget>(std::move(architectures));
}

}  // namespace wick::aot
