// Calls with tensors that are not dense: the kernel for their kind, or an error, in every tier.
#include "ir/kind_kernels.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "wick.h"

namespace wick::kind_kernels_test {
namespace {

// What the nested tensors of this test consist of.
class Number final : public RefCounted {
 public:
  explicit Number(int64_t v) : value(v) {}
  int64_t value;
};

Tensor special(int64_t value) {
  Ref<TensorImpl> impl = makeRef<TensorImpl>();
  impl->becomeFormless(TensorKind::Nested, makeRef<Number>(value), DType::Float,
                       DimVector{1000, 1000});
  return Tensor(std::move(impl));
}

int64_t valueOf(const Tensor& t) {
  return static_cast<const Number&>(*t.form()).value;
}

// Operators that have no kernel of their own for nested tensors: aten::tan counts, aten::atan2 adds.
void tanOfSpecial(CallFrame& frame) {
  frame.results[0] = special(valueOf(frame.args[0].toTensor()) + 1);
}
void atan2OfSpecial(CallFrame& frame) {
  const auto value = [](const IValue& v) {
    return v.toTensor().kind() == TensorKind::Nested ? valueOf(v.toTensor()) : 0;
  };
  frame.results[0] = special(value(frame.args[0]) + value(frame.args[1]) + 10);
}
const KindKernel kTestKernels[] = {{"aten::tan", tanOfSpecial}, {"aten::atan2", atan2OfSpecial}};
const RegisterKindKernels kRegistered(TensorKind::Nested, kTestKernels);

int64_t run(const char* body, const Tensor& x) {
  static const char* const kSignature = "def f(x: Tensor, y: Tensor) -> Tensor:\n    ";
  Program program = compile(std::string(kSignature) + body + "\n");
  const Tensor dense = Tensor::from({1.f, 2.f});
  int64_t value = -1;
  // The first runs are observed, the later ones follow a plan.
  for (int i = 0; i < 4; ++i) {
    const int64_t now = valueOf(program.call("f", {x, dense}).toTensor());
    EXPECT_TRUE(value < 0 || now == value) << body;
    value = now;
  }
  return value;
}

TEST(KindKernels, AreTakenInEveryTier) {
  EXPECT_EQ(run("return torch.tan(x)", special(5)), 6);
  EXPECT_EQ(run("return torch.tan(torch.atan2(torch.tan(x), y))", special(5)), 17);
  EXPECT_EQ(run("return torch.atan2(y, torch.tan(x))", special(5)), 16);
}

TEST(KindKernels, ServeDerivedForms) {
  Program program = compile(
      "def f(x: Tensor) -> Tensor:\n    return x.tan_()\n"
      "def g(x: Tensor) -> Tensor:\n"
      "    out = torch.empty([3])\n"
      "    torch.tan(x, out=out)\n"
      "    return out\n");
  const Tensor x = special(1);
  EXPECT_TRUE(program.call("f", {x}).toTensor().isSame(x));
  EXPECT_EQ(valueOf(x), 2);
  const Tensor y = program.call("g", {x}).toTensor();
  EXPECT_EQ(valueOf(y), 3);
  EXPECT_EQ(y.numel(), 1000000);
}

TEST(KindKernels, OthersRaiseErrorsThatNameOperatorAndKind) {
  Program program = compile(
      "def f(x: Tensor) -> Tensor:\n    return torch.erf(x) + 1\n"
      "def g(x: Tensor) -> Tensor:\n    return torch.cat([x, x])\n");
  for (const char* name : {"f", "g"}) {
    for (int i = 0; i < 4; ++i) {
      try {
        program.call(name, {special(1)});
        FAIL();
      } catch (const RuntimeError& e) {
        EXPECT_NE(e.message().find("not available for nested tensors"), std::string::npos)
            << e.message();
      }
    }
    // Dense tensors as before.
    EXPECT_NO_THROW(program.call(name, {Tensor::from({1.f})}));
  }
}

TEST(KindKernels, WhatEveryTensorHasIsRead) {
  Program program =
      compile("def f(x: Tensor):\n    return x.dim(), x.numel(), x.dtype, x.is_nested\n");
  for (int i = 0; i < 4; ++i) {
    const IValue result = program.call("f", {special(1)});
    EXPECT_EQ(result[0].toInt(), 2);
    EXPECT_EQ(result[1].toInt(), 1000000);
    EXPECT_EQ(result[2].toInt(), static_cast<int64_t>(DType::Float));
    EXPECT_TRUE(result[3].toBool());
  }
}

TEST(KindKernels, MemoryOfFormlessTensorsIsNotReached) {
  const Tensor x = special(1);
  EXPECT_THROW(x.rawData(), RuntimeError);
  EXPECT_THROW(x.data<float>(), RuntimeError);
  EXPECT_THROW(x.transpose(0, 1), RuntimeError);
  EXPECT_THROW(x.asStrided({2}, {1}, 0), RuntimeError);
  EXPECT_THROW(x.clone(), RuntimeError);
  EXPECT_THROW(x.contiguous(), RuntimeError);
  EXPECT_THROW(x.to(DType::Double), RuntimeError);
  EXPECT_THROW(x.fill(1), RuntimeError);
  EXPECT_THROW(Tensor::zeros({2}, DType::Float).copyFrom(x), RuntimeError);
  EXPECT_EQ(valueOf(x.detach()), 1);
}

TEST(KindKernels, EachNameIsAnOperator) {
  for (const std::string& name : namesWithKindKernels()) {
    const size_t dot = name.find('.');
    const Symbol symbol = Symbol::fromQualString(name.substr(0, dot));
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    EXPECT_NE(OperatorRegistry::instance().find(symbol, overload), nullptr) << name;
  }
}

}  // namespace
}  // namespace wick::kind_kernels_test
