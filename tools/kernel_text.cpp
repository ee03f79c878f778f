#include "tools/kernel_text.h"

#include <fmt/format.h>

#include <cstdlib>

#include "codegen/cuda/kernel_text.h"
#include "codegen/llvm/kernels.h"
#include "codegen/loop/lowering.h"
#include "core/error.h"
#include "runtime/cuda/compiler.h"
#include "runtime/cuda/device.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/fusion/launch.h"
#include "tools/child_program.h"

namespace wick::cli {

namespace {

loop::ArgumentInfo number(loop::ArgumentInfo::Kind kind) {
  loop::ArgumentInfo info;
  info.kind = kind;
  info.number = 1;
  return info;
}
loop::ArgumentInfo infoOf(const TypePtr& type) {
  using Kind = loop::ArgumentInfo::Kind;
  switch (type->kind()) {
    case TypeKind::Int:
      return number(Kind::Int);
    case TypeKind::Float:
      return number(Kind::Float);
    case TypeKind::Bool:
      return number(Kind::Bool);
    default: {
      loop::TensorLayout layout;
      layout.rank = 2;
      layout.sizes = {12, 12};
      loop::layRowMajor(layout);
      return loop::ArgumentInfo::tensor(DType::Float, layout);
    }
  }
}

bool isOfDevice(KernelText what) {
  return what == KernelText::Cuda || what == KernelText::Ptx || what == KernelText::Sass;
}

// The device's instructions.
std::string disassembled(const std::string& cubin) {
  std::vector<std::string> programs = {"nvdisasm"};
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* folder = std::getenv(variable);
    if (folder && *folder) programs.push_back(fmt::format("{}/bin/nvdisasm", folder));
  }
  programs.emplace_back("/usr/local/cuda/bin/nvdisasm");
  for (const std::string& program : programs) {
    if (auto text = outputOf("--stage sass", {program, "/dev/stdin"}, cubin)) return *text;
  }
  throw UsageError(
      "--stage sass needs the CUDA toolkit's program nvdisasm, which is not installed; --stage ptx "
      "needs only the compiler");
}

// The compiled text; registers and shared memory in front of it.
std::string listingOf(const std::string& text, KernelText what) {
  if (what == KernelText::Cuda) return text;
  if (!cuda::hasCompiler()) {
    throw UsageError("--stage ptx and sass need the library libnvrtc, which cannot be opened");
  }
  int major = 9, minor = 0;
  if (cuda::deviceCount() > 0) {
    const cuda::DeviceFacts& facts = cuda::deviceAt(0).facts();
    major = facts.major;
    minor = facts.minor;
  }
  const cuda::KernelListing listing = cuda::listText(text, major, minor);
  std::string out;
  for (size_t begin = 0; begin < listing.resources.size();) {
    const size_t end = std::min(listing.resources.find('\n', begin), listing.resources.size());
    if (end > begin) out += "// " + listing.resources.substr(begin, end - begin) + "\n";
    begin = end + 1;
  }
  return out + (what == KernelText::Ptx ? listing.ptx : disassembled(listing.cubin));
}

// For a device's memory that is contiguous, aligned, and a multiple of four elements.
std::string cudaTextOf(const std::string& name, const loop::Kernel& kernel, KernelText what) {
  codegen::CudaLayout layout;
  layout.vector = 4;
  for (const loop::Access& access : kernel.accesses) {
    const bool along = access.varies(kernel.rank - 1);
    layout.steps.push_back(along ? loop::LaneStep::Unit : loop::LaneStep::Zero);
  }
  if (kernel.reduced != 0) {
    layout.threads = 32;
    layout.outer = 1;
  }
  try {
    return listingOf(codegen::cudaKernelText("wick_" + name, kernel, layout), what);
  } catch (const codegen::NoCudaText& e) {
    return fmt::format("// no kernel: {}\n", e.what());
  }
}

std::string textOf(const std::string& name, const loop::Kernel& kernel, KernelText what) {
  if (what == KernelText::Loops) return loop::toString(kernel);
  if (isOfDevice(what)) return cudaTextOf(name, kernel, what);
  loop::LaneLayout layout;
  for (const loop::Access& access : kernel.accesses) {
    bool along = access.varies(kernel.rank - 1);
    layout.steps.push_back(along ? loop::LaneStep::Unit : loop::LaneStep::Zero);
  }
  codegen::CodeRequest request = codegen::kernelRequest(name, kernel, layout);
  return what == KernelText::Llvm ? codegen::llvmText(request) : codegen::assemblyText(request);
}

// Two dimensions, as far as nothing else is known.
std::vector<loop::ArgumentInfo> supposedArguments(const Graph& body) {
  std::vector<loop::ArgumentInfo> arguments;
  for (const Value* input : body.inputs()) arguments.push_back(infoOf(input->type()));
  for (const Value* constant : loop::tensorConstants(body)) {
    arguments.push_back(argumentInfo(*constantOf(constant)));
  }
  return arguments;
}

std::string describe(const loop::ArgumentInfo& info) {
  using Kind = loop::ArgumentInfo::Kind;
  if (info.kind != Kind::Tensor) {
    return info.kind == Kind::Int ? "int" : info.kind == Kind::Float ? "float" : "bool";
  }
  std::string sizes;
  for (int k = info.rank; k-- > 0;) {
    sizes += (info.ones >> k & 1) != 0 ? "1" : "n";
    if (k > 0) sizes += ", ";
  }
  return fmt::format("{}[{}]", toString(info.dtype), sizes);
}

}  // namespace

std::string kernelText(const Code& code, KernelText what) {
  std::string text;
  const auto functions = isOfDevice(what) ? FunctionForm::Called : FunctionForm::Composed;
  const char* const comment = what == KernelText::Llvm ? ";" : isOfDevice(what) ? "//" : "#";
  for (const auto& site : code.fusionSites()) {
    auto met = site->argumentsMet();
    if (met.empty()) met.push_back(supposedArguments(site->body()));
    for (const std::vector<loop::ArgumentInfo>& arguments : met) {
      text += fmt::format("{} {}(", comment, site->name());
      for (size_t i = 0; i < arguments.size(); ++i) {
        text += (i == 0 ? "" : ", ") + describe(arguments[i]);
      }
      text += ")\n";
      try {
        for (const loop::Kernel& kernel :
             loop::lowerGroup(site->body(), arguments, functions).kernels) {
          text += textOf(site->name(), kernel, what);
        }
      } catch (const loop::Unsupported& e) {
        text += fmt::format("{} no kernel: {}\n", comment, e.what());
      }
    }
  }
  return text;
}

}  // namespace wick::cli
