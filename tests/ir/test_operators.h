// A handful of operators for tests that must not link the runtime's.
#pragma once

#include "ir/operator.h"

namespace wick::test {

inline void refuse(CallFrame& frame) {
  throwRuntimeError("{} has no kernel here", frame.op->schema().name());
}

inline constexpr OperatorRecord kTestOperators[] = {
    {"aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", refuse,
     kInplaceForm | kOutForm},
    {"aten::add.int(int a, int b) -> int", refuse},
    {"aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", refuse, kInplaceForm | kOutForm},
    {"aten::lt.int(int a, int b) -> bool", refuse},
    {"aten::eq.int(int a, int b) -> bool", refuse},
    {"aten::relu(Tensor self) -> Tensor", refuse, kInplaceForm},
    {"aten::len.t(t[] a) -> int", refuse},
    {"aten::rand(int[] size) -> Tensor", refuse, kNondeterministic},
    {"aten::warn(str message) -> ()", refuse, kSideEffects},
};
inline constexpr OperatorAlias kTestAliases[] = {{"aten::rectify", "aten::relu"}};
inline const RegisterOperators kRegistered(kTestOperators, kTestAliases);

}  // namespace wick::test
