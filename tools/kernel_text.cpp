#include "tools/kernel_text.h"

#include <fmt/format.h>

#include "codegen/cuda/kernel_text.h"
#include "codegen/llvm/kernels.h"
#include "codegen/loop/lowering.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/fusion/launch.h"

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

// For a device's memory that is contiguous, aligned, and a multiple of four elements.
std::string cudaTextOf(const std::string& name, const loop::Kernel& kernel) {
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
    return codegen::cudaKernelText("wick_" + name, kernel, layout);
  } catch (const codegen::NoCudaText& e) {
    return fmt::format("// no kernel: {}\n", e.what());
  }
}

std::string textOf(const std::string& name, const loop::Kernel& kernel, KernelText what) {
  if (what == KernelText::Loops) return loop::toString(kernel);
  if (what == KernelText::Cuda) return cudaTextOf(name, kernel);
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
  const auto functions = what == KernelText::Cuda ? FunctionForm::Called : FunctionForm::Composed;
  const char* const comment = what == KernelText::Llvm   ? ";"
                              : what == KernelText::Cuda ? "//"
                                                         : "#";
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
