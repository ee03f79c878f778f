#include "tools/kernel_text.h"

#include <fmt/format.h>

#include "codegen/llvm/kernels.h"
#include "codegen/loop/lowering.h"
#include "runtime/fusion/fusion_site.h"

namespace wick::cli {

namespace {

loop::ArgumentInfo infoOf(const TypePtr& type) {
  using Kind = loop::ArgumentInfo::Kind;
  switch (type->kind()) {
    case TypeKind::Int:
      return {.kind = Kind::Int};
    case TypeKind::Float:
      return {.kind = Kind::Float};
    case TypeKind::Bool:
      return {.kind = Kind::Bool};
    default:
      return {.kind = Kind::Tensor, .dtype = DType::Float, .rank = 2};
  }
}

std::string textOf(const std::string& name, const loop::Kernel& kernel, KernelText what) {
  if (what == KernelText::Loops) return loop::toString(kernel);
  loop::LaneLayout layout;
  for (const loop::Access& access : kernel.accesses) {
    bool along = access.varies(kernel.rank - 1);
    layout.steps.push_back(along ? loop::LaneStep::Unit : loop::LaneStep::Zero);
  }
  codegen::CodeRequest request = codegen::kernelRequest(name, kernel, layout);
  return what == KernelText::Llvm ? codegen::llvmText(request) : codegen::assemblyText(request);
}

void append(std::string& text, const Block& block, KernelText what) {
  for (const Node* node : block.nodes()) {
    for (const Block* inner : node->blocks()) append(text, *inner, what);
    if (node->kind() != prim::FusionGroup) continue;
    const Graph& body = *node->subgraph(attr::Subgraph);
    const std::string name = fusionGroupName(body);
    std::vector<loop::ArgumentInfo> arguments;
    for (const Value* input : body.inputs()) arguments.push_back(infoOf(input->type()));
    for (const Value* constant : loop::tensorConstants(body)) {
      Tensor t = constantOf(constant)->toTensor();
      loop::ArgumentInfo info{.dtype = t.dtype(), .rank = static_cast<uint8_t>(t.dim())};
      for (int64_t d = 0; d < t.dim(); ++d) {
        if (t.size(d) == 1) info.ones |= static_cast<uint8_t>(1u << (t.dim() - 1 - d));
      }
      arguments.push_back(info);
    }
    const char* comment = what == KernelText::Llvm ? ";" : "#";
    text += fmt::format("{} {}\n", comment, name);
    try {
      for (const loop::Kernel& kernel : loop::lowerGroup(body, arguments).kernels) {
        text += textOf(name, kernel, what);
      }
    } catch (const loop::Unsupported& e) {
      text += fmt::format("{} no kernel: {}\n", comment, e.what());
    }
  }
}

}  // namespace

std::string kernelText(const Graph& graph, KernelText what) {
  std::string text;
  append(text, *graph.block(), what);
  return text;
}

}  // namespace wick::cli
