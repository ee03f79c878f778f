// A handful of operators for tests that must not link the runtime's.
#pragma once

#include "ir/operator.h"

namespace wick::test {

inline void refuse(CallFrame& frame) {
  throwRuntimeError("{} has no kernel here", frame.op->schema().name());
}

inline void addInts(CallFrame& frame) {
  frame.results[0] = IValue(frame.args[0].toInt() + frame.args[1].toInt());
}
inline void lessInts(CallFrame& frame) {
  frame.results[0] = IValue(frame.args[0].toInt() < frame.args[1].toInt());
}

inline constexpr OperatorRecord kTestOperators[] = {
    {"aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", refuse,
     kInplaceForm | kOutForm},
    {"aten::add.int(int a, int b) -> int", addInts},
    {"aten::mul.Scalar(Tensor self, Scalar other) -> Tensor", refuse},
    {"aten::div.Scalar(Tensor self, Scalar other) -> Tensor", refuse},
    {"aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", refuse, kInplaceForm | kOutForm},
    {"aten::lt.int(int a, int b) -> bool", lessInts},
    {"aten::eq.int(int a, int b) -> bool", refuse},
    {"aten::relu(Tensor self) -> Tensor", refuse, kInplaceForm},
    {"aten::len.t(t[] a) -> int", refuse},
    {"aten::append.t(t[](a!) self, t(c -> *) el) -> t[](a!)", refuse},
    {"aten::rand(int[] size) -> Tensor", refuse, kNondeterministic},
    {"aten::view(Tensor(a) self, int[] size) -> Tensor(a)", refuse},
    {"aten::conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, int[2] "
     "padding=0, int[2] "
     "dilation=1, int groups=1) -> Tensor",
     refuse},
    {"aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? "
     "running_var, "
     "bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
     refuse},
    {"wick::conv2d_fused(Tensor input, Tensor weight, Tensor? bias, Tensor? residual, int[] "
     "stride, int[] "
     "padding, int[] dilation, int groups, str activation, bool in_place) -> Tensor",
     refuse},
    {"aten::mm(Tensor self, Tensor mat2) -> Tensor", refuse},
    {"aten::matmul(Tensor self, Tensor other) -> Tensor", refuse},
    {"aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
     "Tensor",
     refuse},
    {"aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", refuse},
    {"wick::linear_fused(Tensor input, Tensor weight, Tensor? bias, Tensor? residual, str "
     "activation, bool in_place) -> Tensor",
     refuse},
    {"aten::warn(str message) -> ()", refuse, kSideEffects},
};
inline constexpr OperatorAlias kTestAliases[] = {{"aten::rectify", "aten::relu"}};
inline const RegisterOperators kRegistered(kTestOperators, kTestAliases);

}  // namespace wick::test
