// The texts of kernels, compiled where there is a compiler; no GPU is needed.
#include "codegen/cuda/kernel_text.h"

#include <gtest/gtest.h>

#include "codegen/cuda/pairs.h"
#include "codegen/cuda/scalar_text.h"
#include "codegen/loop/lowering.h"
#include "ir/parser.h"
#include "runtime/cuda/compiler.h"
#include "runtime/cuda/loop_kernel.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/launch.h"

namespace wick::kernel_text_test {
namespace {

// The kernels of a graph that is one group.
std::vector<loop::Kernel> kernelsOf(const std::string& text, const std::vector<Tensor>& arguments) {
  const std::shared_ptr<Graph> graph = parseGraph(text);
  FusionOptions options;
  options.kind_of = kernelKindOf;
  options.min_computing_nodes = 1;
  formFusionGroups(*graph, options);
  for (const Node* n : graph->nodes()) {
    if (n->kind() != prim::FusionGroup) continue;
    std::vector<loop::ArgumentInfo> infos;
    for (const Tensor& t : arguments) infos.push_back(argumentInfo(IValue(t)));
    return loop::lowerGroup(*n->subgraph(attr::Subgraph), infos, FunctionForm::Called).kernels;
  }
  return {};
}

codegen::CudaLayout plainLayout(const loop::Kernel& kernel, int vector) {
  codegen::CudaLayout layout;
  layout.vector = vector;
  for (const loop::Access& access : kernel.accesses) {
    layout.steps.push_back(access.varies(kernel.rank - 1) ? loop::LaneStep::Unit
                                                          : loop::LaneStep::Zero);
  }
  return layout;
}

std::vector<codegen::CudaLayout> layoutsFor(const loop::Kernel& kernel) {
  std::vector<codegen::CudaLayout> layouts;
  if (kernel.reduced == 0) {
    for (const int vector : {1, 4}) {
      layouts.push_back(plainLayout(kernel, vector));
      layouts.push_back(plainLayout(kernel, vector));
      layouts.back().outer = 3;
      layouts.back().wide = true;
    }
    return layouts;
  }
  for (const int threads : {1, 8, 32, 256}) {
    for (const int kept : {0, 2}) {
      codegen::CudaLayout layout = plainLayout(kernel, 4);
      layout.outer = 1;
      layout.threads = threads;
      layout.kept = kept;
      layouts.push_back(layout);
    }
  }
  codegen::CudaLayout columns = plainLayout(kernel, 1);
  columns.outer = 2;
  columns.nested = 1;
  columns.columns = true;
  columns.threads = 8;
  layouts.push_back(columns);
  return layouts;
}

struct Case {
  const char* name;
  const char* graph;
  std::vector<Tensor> arguments;
};

std::vector<Case> cases() {
  const Tensor f = Tensor::zeros(DimVector{8, 16}, DType::Float);
  const Tensor h = Tensor::zeros(DimVector{8, 16}, DType::Half);
  const Tensor b = Tensor::zeros(DimVector{16}, DType::BFloat16);
  const Tensor d = Tensor::zeros(DimVector{8, 16}, DType::Double);
  const Tensor i = Tensor::zeros(DimVector{8, 16}, DType::Int);
  const Tensor index = Tensor::zeros(DimVector{5}, DType::Long);
  return {
      {"pointwise",
       R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %how : str = prim::Constant[value="none"]()
  %s : Tensor = aten::add(%x, %y, %one)
  %t : Tensor = aten::tanh(%s)
  %u : Tensor = aten::gelu(%t, %how)
  return (%u)
)",
       {f, h}},
      {"functions",
       R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::exp(%x)
  %b : Tensor = aten::lgamma(%a)
  %c : Tensor = aten::sin(%b)
  %e : Tensor = aten::pow(%c, %y)
  %f : Tensor = aten::atan2(%e, %x)
  return (%f)
)",
       {d, f}},
      {"integers",
       R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::gcd(%x, %y)
  %b : Tensor = aten::bitwise_xor(%a, %y)
  %c : Tensor = aten::bitwise_and(%b, %x)
  return (%c)
)",
       {i, i}},
      {"softmax",
       R"(graph(%x : Tensor):
  %dim : int = prim::Constant[value=-1]()
  %none : None = prim::Constant()
  %s : Tensor = aten::softmax(%x, %dim, %none)
  return (%s)
)",
       {f}},
      {"bfloat16",
       R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::sigmoid(%a)
  return (%b)
)",
       {b, b}},
      {"half pairs",
       R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %half : float = prim::Constant[value=0.5]()
  %a : Tensor = aten::add(%x, %y, %one)
  %b : Tensor = aten::mul(%a, %half)
  %c : Tensor = aten::sub(%b, %x, %one)
  %d : Tensor = aten::tanh(%c)
  %e : Tensor = aten::neg(%d)
  %f : Tensor = aten::abs(%e)
  %g : Tensor = aten::relu(%f)
  return (%g)
)",
       {h, h}},
      {"bfloat16 pairs",
       R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %dim : int = prim::Constant[value=-1]()
  %none : None = prim::Constant()
  %a : Tensor = aten::add(%x, %y, %one)
  %b : Tensor = aten::mul(%a, %y)
  %c : Tensor = aten::softmax(%b, %dim, %none)
  return (%c)
)",
       {h.to(DType::BFloat16), h.to(DType::BFloat16)}},
      {"argmax",
       R"(graph(%x : Tensor):
  %dim : int = prim::Constant[value=1]()
  %keep : bool = prim::Constant[value=0]()
  %s : Tensor = aten::argmax(%x, %dim, %keep)
  return (%s)
)",
       {h}},
      {"index_select",
       R"(graph(%x : Tensor, %i : Tensor):
  %dim : int = prim::Constant[value=0]()
  %s : Tensor = aten::index_select(%x, %dim, %i)
  %t : Tensor = aten::neg(%s)
  return (%t)
)",
       {f, index}},
  };
}

TEST(KernelText, Compiles) {
  if (!cuda::hasCompiler()) GTEST_SKIP() << "there is no compiler for CUDA kernels (libnvrtc)";
  for (Case& c : cases()) {
    const std::vector<loop::Kernel> kernels = kernelsOf(c.graph, c.arguments);
    EXPECT_FALSE(kernels.empty()) << c.name;
    for (const loop::Kernel& kernel : kernels) {
      const std::string joint =
          codegen::cudaJointKernelText("wick_test", kernel, layoutsFor(kernel).front());
      EXPECT_NO_THROW(EXPECT_FALSE(cuda::compileText(joint, 9, 0).empty())) << joint;
      for (const codegen::CudaLayout& layout : layoutsFor(kernel)) {
        const std::string source = codegen::cudaKernelText("wick_test", kernel, layout);
        for (const int generation : {9, 8}) {
          EXPECT_NO_THROW(EXPECT_FALSE(cuda::compileText(source, generation, 0).empty()))
              << c.name << "\n"
              << source;
        }
      }
    }
  }
}

// What float32 computes and rounds, where the instruction for pairs gives the same.
TEST(KernelText, WhatHasNoTextIsNamed) {
  try {
    codegen::cudaType(DType::ComplexFloat);
    ADD_FAILURE() << "there is a text";
  } catch (const codegen::NoCudaText& e) {
    EXPECT_STREQ(e.what(), "no CUDA text for elements of complex64");
  }
}

TEST(KernelText, PairsOfReducedFloats) {
  for (const DType type : {DType::Half, DType::BFloat16}) {
    Expression e;
    const ScalarExpr x = e.convert(e.input(0, type), DType::Float);
    const ScalarExpr y = e.convert(e.input(1, type), DType::Float);
    const ScalarExpr f = e.input(2, DType::Float);
    const ExprBuilder b(e, DType::Float);
    const auto text = [&](ScalarExpr value) {
      return codegen::pairText(e, e.convert(value, type)).value_or("none");
    };
    EXPECT_EQ(text(b.add(x, y)), "wickAdd(n0, n2)");
    EXPECT_EQ(text(b.mul(y, y)), "wickMul(n2, n2)");
    EXPECT_EQ(text(b.neg(x)), "wickNeg(n0)");
    EXPECT_EQ(text(b.sub(x, b.constant(0.5))), type == DType::Half
                                                   ? "wickSub(n0, wickHalf2{0x38003800u})"
                                                   : "wickSub(n0, wickBFloat2{0x3f003f00u})");
    EXPECT_EQ(text(b.sub(x, b.constant(0.1))), "none");  // it has more digits
    EXPECT_EQ(text(b.add(x, f)), "none");
    EXPECT_EQ(text(b.div(x, y)), "none");
    EXPECT_EQ(text(b.add(b.mul(x, y), y)), "none");  // the product is not rounded
    EXPECT_EQ(codegen::pairText(e, b.add(x, y)), std::nullopt);
  }
}

// Neighbours of contiguous, aligned memory are moved 16 bytes at once.
TEST(KernelText, MovesVectors) {
  const Tensor f = Tensor::zeros(DimVector{64, 64}, DType::Float);
  const std::vector<loop::Kernel> kernels = kernelsOf(R"(graph(%x : Tensor):
  %a : Tensor = aten::neg(%x)
  return (%a)
)",
                                                      {f});
  ASSERT_EQ(kernels.size(), 1);
  std::vector<Touch> touches(2);
  for (Touch& touch : touches) {
    touch.base = reinterpret_cast<char*>(uintptr_t{1} << 20);
    touch.steps = {256, 4};
  }
  const std::array<int64_t, 2> sizes = {64, 64};
  const std::array<int, 2> order = {1, 0};
  Walk walk;
  planWalk(kernels[0], sizes, touches, order, walk);
  const codegen::CudaLayout layout = cuda::chooseLayout(kernels[0], walk, touches, 132);
  EXPECT_EQ(layout.vector, 1);  // few elements: a thread each
  const codegen::CudaLayout on_small_device = cuda::chooseLayout(kernels[0], walk, touches, 2);
  EXPECT_EQ(on_small_device.vector, 4);
  EXPECT_EQ(on_small_device.outer, 0);
  const std::string source = codegen::cudaKernelText("wick_neg", kernels[0], on_small_device);
  EXPECT_NE(source.find("*(const uint4*)"), std::string::npos) << source;
  // A tensor that begins elsewhere is read element by element.
  touches[0].base += 4;
  planWalk(kernels[0], sizes, touches, order, walk);
  EXPECT_EQ(cuda::chooseLayout(kernels[0], walk, touches, 2).vector, 1);
}

}  // namespace
}  // namespace wick::kernel_text_test
