// The operators of aot/kept_loops.h.
#include <fmt/format.h>

#include <algorithm>

#include "aot/device.h"
#include "aot/recording.h"
#include "core/error.h"
#include "core/tensor_kind.h"
#include "ir/operator.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

namespace {

// Undefined where there is none.
Tensor valueOf(const IValue& v) {
  return v.isNone() ? Tensor() : v.toTensor();
}
size_t numberOf(const IValue& v) {
  const int64_t number = v.toInt();
  WICK_CHECK(number >= 0, "expected the number of a value, got {}", number);
  return static_cast<size_t>(number);
}

void carry(CallFrame& frame) {
  Recording::current().carry(valueOf(frame.args[0]));
}
void begin(CallFrame& frame) {
  Recording::current().beginLoop(frame.args[0].toTensor(), frame.args[1].toBool(),
                                 frame.args[2].toInt());
  frame.results[0] = int64_t{1};
}
void index(CallFrame& frame) {
  frame.results[0] = Recording::current().round();
}
void value(CallFrame& frame) {
  frame.results[0] = Recording::current().carried(numberOf(frame.args[0]));
}
void next(CallFrame& frame) {
  Recording::current().setNext(numberOf(frame.args[1]), valueOf(frame.args[0]));
}
void append(CallFrame& frame) {
  const Tensor t = valueOf(frame.args[1]);
  WICK_CHECK(t.defined(), "expected a tensor for a list");
  Recording::current().appendEachRound(frame.args[0], t);
}
// Tensors that lie one behind the other at equal distances, as one; undefined for others.
Tensor together(const std::vector<IValue>& list) {
  if (list.size() < 2) return {};
  const Tensor first = list[0].toTensor(), second = list[1].toTensor();
  if (first.kind() != TensorKind::Dense || first.device().type != kAhead) return {};
  const int64_t step = second.offset() - first.offset();
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor t = list[i].toTensor();
    const bool same = t.storage().get() == first.storage().get() && t.dtype() == first.dtype() &&
                      t.offset() == first.offset() + static_cast<int64_t>(i) * step &&
                      std::ranges::equal(t.sizes(), first.sizes()) &&
                      std::ranges::equal(t.strides(), first.strides());
    if (!same) return {};
  }
  DimVector sizes{static_cast<int64_t>(list.size())}, strides{step};
  for (int64_t d = 0; d < first.dim(); ++d) {
    sizes.push_back(first.size(d));
    strides.push_back(first.stride(d));
  }
  return Tensor::fromStorage(first.storage(), first.dtype(), sizes, strides, first.offset());
}
// torch.stack and torch.cat of a list that a loop filled.
void join(CallFrame& frame, bool stack) {
  const Tensor all = together(frame.args[0].elements());
  int64_t dim = frame.args[1].toInt();
  const int64_t rank = all.defined() ? all.dim() - (stack ? 0 : 1) : 0;
  if (!all.defined() || dim < -rank || dim >= rank) {
    frame.results[0] = stack ? ops::stack(frame.args[0], dim) : ops::cat(frame.args[0], dim);
    return;
  }
  if (dim < 0) dim += rank;
  DimVector sizes, strides;  // with the rounds in front of, or as, this dimension
  for (int64_t d = 1; d < all.dim(); ++d) {
    sizes.push_back(all.size(d));
    strides.push_back(all.stride(d));
  }
  sizes.insert(static_cast<size_t>(dim), all.size(0));
  strides.insert(static_cast<size_t>(dim), all.stride(0));
  const Tensor view = Tensor::fromStorage(all.storage(), all.dtype(), sizes, strides, all.offset());
  const Tensor made = Tensor::empty(sizes, all.dtype(), all.device());
  made.copyFrom(view);
  if (stack) {
    frame.results[0] = made;
    return;
  }
  sizes[static_cast<size_t>(dim) + 1] *= sizes[static_cast<size_t>(dim)];
  sizes.erase(static_cast<size_t>(dim));
  frame.results[0] = made.reshape(sizes);
}
void stack(CallFrame& frame) {
  join(frame, true);
}
void cat(CallFrame& frame) {
  join(frame, false);
}

void end(CallFrame&) {
  Recording::current().endLoop();
}
void result(CallFrame& frame) {
  frame.results[0] = Recording::current().result(numberOf(frame.args[0]));
}

void carryList(CallFrame& frame) {
  Recording::current().carryList(frame.args[0]);
}
void nextList(CallFrame& frame) {
  Recording::current().setNextOf(frame.args[0]);
}
void resultList(CallFrame& frame) {
  Recording::current().takeResultsInto(frame.args[0]);
}
void setList(CallFrame& frame) {
  const std::vector<IValue> next = frame.args[1].toList().elements;
  std::vector<IValue>& elements = frame.args[0].toList().elements;
  if (next.size() != elements.size()) {
    throw NotAhead(
        fmt::format("a list that a loop carries has {} elements in one round and {} in "
                    "the next",
                    elements.size(), next.size()));
  }
  elements = next;
}
void branchList(CallFrame& frame) {
  Recording::current().branchList(frame.args[0], numberOf(frame.args[1]));
}
void restoreList(CallFrame& frame) {
  Recording::current().restoreList(frame.args[0]);
}
void keepList(CallFrame& frame) {
  Recording::current().setResultsOf(frame.args[0]);
}

void branch(CallFrame& frame) {
  frame.results[0] = Recording::current().beginBranch(frame.args[0].toTensor());
}
void otherwise(CallFrame& frame) {
  frame.results[0] = Recording::current().beginElse();
}
void keep(CallFrame& frame) {
  Recording::current().setResult(numberOf(frame.args[1]), valueOf(frame.args[0]));
}
void endBranch(CallFrame&) {
  Recording::current().endBranch();
}
void raise(CallFrame& frame) {
  Recording::current().raise(frame.args[0].toString());
}

void rounds(CallFrame& frame) {
  const int64_t count = frame.args[0].toInt();
  Recording::current().noteRounds(frame.args[1].toInt(), count);
  frame.results[0] = count;
}

constexpr uint64_t kFlags = kAnyKind | kNotDifferentiable | kSideEffects;
const OperatorRecord kLoopOperatorsRecords[] = {
    {"wick::loop_carry(Tensor? value) -> ()", carry, kFlags},
    {"wick::loop_begin(Tensor rounds, bool conditional, int ordinal) -> int", begin, kFlags},
    {"wick::loop_index() -> Tensor", index, kFlags},
    {"wick::loop_value(int number) -> Tensor", value, kFlags},
    {"wick::loop_next(Tensor? value, int number) -> ()", next, kFlags},
    {"wick::loop_append(Tensor[](a!) list, Tensor(b -> *) value) -> ()", append, kFlags},
    {"wick::loop_stack(Tensor[] tensors, int dim=0) -> Tensor", stack, kAnyKind},
    {"wick::loop_cat(Tensor[] tensors, int dim=0) -> Tensor", cat, kAnyKind},
    {"wick::loop_end() -> ()", end, kFlags},
    {"wick::loop_result(int number) -> Tensor", result, kFlags},
    {"wick::loop_carry_list(Tensor[](a!) list) -> ()", carryList, kFlags},
    {"wick::loop_next_list(Tensor[](a!) list) -> ()", nextList, kFlags},
    {"wick::loop_result_list(Tensor[](a!) list) -> ()", resultList, kFlags},
    {"wick::loop_set_list(Tensor[](a!) list, Tensor[] next) -> ()", setList, kFlags},
    {"wick::branch_list(Tensor[](a!) list, int results) -> ()", branchList, kFlags},
    {"wick::branch_restore_list(Tensor[](a!) list) -> ()", restoreList, kFlags},
    {"wick::branch_keep_list(Tensor[](a!) list) -> ()", keepList, kFlags},
    {"wick::branch_result_list(Tensor[](a!) list) -> ()", resultList, kFlags},
    {"wick::branch_begin(Tensor condition) -> bool", branch, kFlags},
    {"wick::branch_else() -> bool", otherwise, kFlags},
    {"wick::branch_keep(Tensor? value, int number) -> ()", keep, kFlags},
    {"wick::branch_end() -> ()", endBranch, kFlags},
    {"wick::branch_result(int number) -> Tensor", result, kFlags},
    {"wick::branch_raise(str message) -> ()", raise, kFlags},
    {"wick::loop_rounds(int rounds, int ordinal) -> int", rounds, kFlags},
};
const RegisterOperators kLoopOperatorsRegistered(kLoopOperatorsRecords);

}  // namespace

}  // namespace wick::aot
