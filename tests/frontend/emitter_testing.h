// What the tests of the emitter share: a small table of operators without kernels, and checks of
// printed graphs.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "core/error.h"
#include "frontend/compile.h"
#include "ir/operator.h"
#include "ir/verifier.h"

namespace wick {

inline void noKernel(CallFrame&) {
  FAIL() << "the tests of the emitter run nothing";
}

inline const OperatorRecord kTestOperators[] = {
    {"aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", noKernel,
     kInplaceForm | kOutForm},
    {"aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", noKernel,
     kInplaceForm},
    {"aten::add.int(int a, int b) -> int", noKernel},
    {"aten::add.float(float a, float b) -> float", noKernel},
    {"aten::add.str(str a, str b) -> str", noKernel},
    {"aten::add.t(t[] a, t[] b) -> t[]", noKernel},
    {"aten::sub.int(int a, int b) -> int", noKernel},
    {"aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", noKernel, kInplaceForm},
    {"aten::mul.Scalar(Tensor self, Scalar other) -> Tensor", noKernel},
    {"aten::mul.int(int a, int b) -> int", noKernel},
    {"aten::neg.int(int a) -> int", noKernel},
    {"aten::relu(Tensor self) -> Tensor", noKernel, kInplaceForm},
    {"aten::eq.int(int a, int b) -> bool", noKernel},
    {"aten::lt.int(int a, int b) -> bool", noKernel},
    {"aten::gt.int(int a, int b) -> bool", noKernel},
    {"aten::__is__(t1 self, t2 obj) -> bool", noKernel},
    {"aten::__isnot__(t1 self, t2 obj) -> bool", noKernel},
    {"aten::__not__(bool self) -> bool", noKernel},
    {"aten::Bool.Tensor(Tensor a) -> bool", noKernel},
    {"aten::Bool.int(int a) -> bool", noKernel},
    {"aten::Int.Tensor(Tensor a) -> int", noKernel},
    {"aten::IntImplicit(Tensor a) -> int", noKernel},
    {"aten::len.t(t[] a) -> int", noKernel},
    {"aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", noKernel},
    {"aten::__getitem__.t(t[](a) list, int idx) -> t(*)", noKernel},
    {"aten::_set_item.t(t[](a!) l, int idx, t(b -> *) el) -> t[](a!)", noKernel},
    {"aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> "
     "Tensor(a)",
     noKernel},
    {"aten::slice.t(t[] l, int? start=None, int? end=None, int step=1) -> t[]", noKernel},
    {"aten::select.int(Tensor(a) self, int dim, int index) -> Tensor(a)", noKernel},
    {"aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", noKernel},
    {"aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", noKernel},
    {"aten::view(Tensor(a) self, int[] size) -> Tensor(a)", noKernel},
    {"aten::view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", noKernel},
    {"aten::avg_pool2d(Tensor self, int[2] kernel_size) -> Tensor", noKernel},
    {"aten::max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
     noKernel},
    {"aten::size(Tensor self) -> int[]", noKernel},
    {"aten::format(str self, ...) -> str", noKernel},
    {"aten::wait(Future(t) self) -> t", noKernel},
    {"prim::min.int(int a, int b) -> int", noKernel},
    {"prim::min.self_int(int[] self) -> int", noKernel},
};

class EmitterTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { static const RegisterOperators registered(kTestOperators); }

  std::shared_ptr<CompilationUnit> compile(const std::string& source) {
    auto unit = compileSource(source, "test.py");
    for (const auto& f : unit->functions()) verify(*f->graph());
    return unit;
  }
  std::string graphOf(const std::string& source, const std::string& function = "f") {
    unit_ = compile(source);
    GraphFunction* f = unit_->findFunction("__torch__." + function);
    return f ? f->graph()->str() : "there is no function " + function;
  }
  std::string schemaOf(const std::string& source, const std::string& function = "f") {
    unit_ = compile(source);
    return unit_->findFunction("__torch__." + function)->schema().str();
  }
  // The message of the CompileError, or "compiled".
  std::string errorOf(const std::string& source) {
    try {
      compile(source);
    } catch (const CompileError& e) {
      return e.what();
    }
    return "compiled";
  }

  std::shared_ptr<CompilationUnit> unit_;
};

// The parts stand in the text in this order, as CHECK lines do.
inline testing::AssertionResult holdsInOrder(const std::string& text,
                                             const std::vector<std::string>& parts) {
  size_t at = 0;
  for (const std::string& part : parts) {
    size_t found = text.find(part, at);
    if (found == std::string::npos) {
      return testing::AssertionFailure() << "no \"" << part << "\" from there on in\n" << text;
    }
    at = found + part.size();
  }
  return testing::AssertionSuccess();
}
inline testing::AssertionResult holds(const std::string& text, const std::string& part) {
  return holdsInOrder(text, {part});
}
inline testing::AssertionResult lacks(const std::string& text, const std::string& part) {
  if (text.find(part) == std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "there is \"" << part << "\" in\n" << text;
}

}  // namespace wick
