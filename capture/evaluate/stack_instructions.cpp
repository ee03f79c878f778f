// Instructions for values, variables, names and jumps.
#include <fmt/format.h>

#include "capture/evaluate/branches.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/instructions.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/array.h"
#include "capture/values/builtin.h"
#include "capture/values/dict.h"
#include "capture/values/function.h"
#include "capture/values/instance.h"
#include "capture/values/number.h"
#include "capture/values/sequence.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

void nop(EvalFrame&, uint32_t) {}

void popTop(EvalFrame& f, uint32_t) {
  f.pop();
}

void pushNull(EvalFrame& f, uint32_t) {
  f.push(f.capture.make<MarkVariable>(MarkVariable::Kind::kNull));
}

void copy(EvalFrame& f, uint32_t arg) {
  f.push(f.peek(static_cast<int>(arg)));
}

void swap(EvalFrame& f, uint32_t arg) {
  std::swap(f.peek(1), f.peek(static_cast<int>(arg)));
}

void loadConst(EvalFrame& f, uint32_t arg) {
  f.push(f.capture.constant(f.constant(arg)));
}

// ---- variables ----

const char* slotName(EvalFrame& f, uint32_t arg) {
  return PyUnicode_AsUTF8(f.code->slots[arg].name.get());
}

[[noreturn]] void unbound(EvalFrame& f, uint32_t arg) {
  if (f.code->slots[arg].kind & kFreeSlot) {
    f.capture.raise(
        PyExc_NameError,
        fmt::format("cannot access free variable '{}' where it is not associated with a "
                    "value in enclosing scope",
                    slotName(f, arg)));
  }
  f.capture.raise(
      PyExc_UnboundLocalError,
      fmt::format("cannot access local variable '{}' where it is not associated with a value",
                  slotName(f, arg)));
}

void loadFast(EvalFrame& f, uint32_t arg) {
  if (!f.slots[arg]) unbound(f, arg);
  f.push(f.slots[arg]);
}

// Breaks the graph before an object may die whose class has a finalizer.
void dropLocal(EvalFrame& f, uint32_t arg) {
  const Variable* const held = f.slots[arg];
  if (!held || !held->object) return;
  const PyTypeObject* const type = Py_TYPE(held->object.get());
  if (!(type->tp_flags & Py_TPFLAGS_HEAPTYPE) || !(type->tp_finalize || type->tp_del)) return;
  if (held->constant()) return;
  breakGraph(fmt::format("{} may die, whose class has a finalizer", describe(*held)));
}

void storeFast(EvalFrame& f, uint32_t arg) {
  dropLocal(f, arg);
  f.slots[arg] = f.pop();
}

void deleteFast(EvalFrame& f, uint32_t arg) {
  if (!f.slots[arg]) unbound(f, arg);
  dropLocal(f, arg);
  f.slots[arg] = nullptr;
}

void makeCell(EvalFrame& f, uint32_t arg) {
  f.slots[arg] = f.capture.make<CellVariable>(f.slots[arg]);
}

void copyFreeVariables(EvalFrame& f, uint32_t arg) {
  const size_t first = f.slots.size() - arg;
  if (f.function->numCells() != static_cast<int>(arg)) breakGraph("a closure of another size");
  for (uint32_t i = 0; i < arg; ++i) {
    f.slots[first + i] = f.function->closureCell(f.capture, static_cast<int>(i));
  }
}

void loadClosure(EvalFrame& f, uint32_t arg) {
  f.push(f.slots[arg]);
}

CellVariable& cellAt(EvalFrame& f, uint32_t arg) {
  auto* const cell = dynamic_cast<CellVariable*>(f.slots[arg]);
  if (!cell) breakGraph("a variable of a closure is no cell");
  return *cell;
}

void loadDeref(EvalFrame& f, uint32_t arg) {
  CellVariable& cell = cellAt(f, arg);
  Variable* const found = cell.contents(f.capture);
  if (!found) unbound(f, arg);
  f.capture.checkLasting(cell, *found);
  f.push(found);
}

void storeDeref(EvalFrame& f, uint32_t arg) {
  CellVariable& cell = cellAt(f, arg);
  cell.set(f.capture, f.pop());
}

void deleteDeref(EvalFrame& f, uint32_t arg) {
  CellVariable& cell = cellAt(f, arg);
  if (!cell.contents(f.capture)) unbound(f, arg);
  cell.set(f.capture, nullptr);
}

// ---- names ----

// Raises a NameError that knows the name.
[[noreturn]] void undefined(EvalFrame& f, PyObject* name) {
  try {
    f.capture.raise(PyExc_NameError,
                    fmt::format("name '{}' is not defined", PyUnicode_AsUTF8(name)));
  } catch (const Raised& raised) {
    if (auto* exception = dynamic_cast<ExceptionVariable*>(raised.exception)) {
      const Object own = Object::checked(PyUnicode_InternFromString("name"));
      exception->setMember(own.get(), f.capture.constant(name));
    }
    throw;
  }
}

void loadGlobal(EvalFrame& f, uint32_t arg) {
  PyObject* const name = f.name(arg >> 1);
  if (arg & 1) pushNull(f, 0);
  Variable* found = f.globals->find(f.capture, name);
  if (!found) found = f.builtins->find(f.capture, name);
  if (!found) undefined(f, name);
  f.capture.checkLasting(*f.globals, *found);
  f.push(found);
}

void storeGlobal(EvalFrame& f, uint32_t arg) {
  f.globals->set(f.capture, f.name(arg), nullptr, f.pop());
}

void deleteGlobal(EvalFrame& f, uint32_t arg) {
  if (!f.globals->erase(f.capture, f.name(arg))) undefined(f, f.name(arg));
}

// ---- operators ----

void binaryOp(EvalFrame& f, uint32_t arg) {
  Variable* const right = f.pop();
  Variable* const left = f.pop();
  f.push(binary(f.capture, static_cast<int>(arg), left, right));
}

void compareOp(EvalFrame& f, uint32_t arg) {
  Variable* const right = f.pop();
  Variable* const left = f.pop();
  f.push(compare(f.capture, static_cast<int>(arg), left, right));
}

void isOp(EvalFrame& f, uint32_t arg) {
  Variable* const right = f.pop();
  Variable* const left = f.pop();
  f.push(f.capture.constantBool(isSame(f.capture, left, right) != (arg != 0)));
}

void containsOp(EvalFrame& f, uint32_t arg) {
  Variable* const container = f.pop();
  Variable* const element = f.pop();
  f.push(f.capture.constantBool(contains(f.capture, container, element) != (arg != 0)));
}

template <Unary kOp>
void unaryOp(EvalFrame& f, uint32_t) {
  f.push(unary(f.capture, kOp, f.pop()));
}

void binarySubscript(EvalFrame& f, uint32_t) {
  Variable* const key = f.pop();
  Variable* const container = f.pop();
  f.push(getItem(f.capture, container, key));
}

void storeSubscript(EvalFrame& f, uint32_t) {
  Variable* const key = f.pop();
  Variable* const container = f.pop();
  setItem(f.capture, container, key, f.pop());
}

void deleteSubscript(EvalFrame& f, uint32_t) {
  Variable* const key = f.pop();
  setItem(f.capture, f.pop(), key, nullptr);
}

// ---- jumps ----

void jump(EvalFrame& f, uint32_t) {
  f.jump();
}

// Returns the top of the stack if it is a tensor whose elements are no constants, or the tensor of a number that the graph
// computes; null for others.
TensorVariable* tensorOnTop(EvalFrame& f) {
  Variable* const top = f.capture.use(f.peek(1));
  if (auto* const number = dynamic_cast<NumberVariable*>(top)) return &number->tensor();
  TensorVariable* const in_array = tensorOfTruth(top);
  auto* const tensor = in_array ? in_array : dynamic_cast<TensorVariable*>(top);
  return tensor && !f.capture.recording->constantOf(tensor->fake()) ? tensor : nullptr;
}

template <bool kWhen>
void popJumpIf(EvalFrame& f, uint32_t) {
  TensorVariable* const tensor = tensorOnTop(f);
  Variable* const condition = f.pop();
  if (!tensor) {
    if (truthOf(f.capture, condition) == kWhen) f.jump();
    return;
  }
  const BranchSide jump{f.instruction().target}, next{f.at + 1};
  branchOnTensor(f, *tensor, kWhen ? jump : next, kWhen ? next : jump);
}

template <bool kWhen>
void popJumpIfNone(EvalFrame& f, uint32_t) {
  if ((f.capture.use(f.pop())->type() == Py_TYPE(Py_None)) == kWhen) f.jump();
}

template <bool kWhen>
void jumpIfOrPop(EvalFrame& f, uint32_t) {
  if (TensorVariable* const tensor = tensorOnTop(f)) {
    const BranchSide jump{f.instruction().target}, next{f.at + 1, true};
    return branchOnTensor(f, *tensor, kWhen ? jump : next, kWhen ? next : jump);
  }
  if (truthOf(f.capture, f.peek(1)) == kWhen) {
    f.jump();
  } else {
    f.pop();
  }
}

void returnValue(EvalFrame& f, uint32_t) {
  f.value = f.pop();
  f.status = EvalFrame::Status::kReturned;
}

// ---- texts ----

void formatValue(EvalFrame& f, uint32_t arg) {
  Variable* const specification = (arg & 4) ? f.pop() : nullptr;
  Variable* const value = f.pop();
  f.push(formatted(f.capture, value, static_cast<int>(arg & 3), specification));
}

void buildString(EvalFrame& f, uint32_t arg) {
  const std::vector<Variable*> parts = f.popMany(arg);
  const Object tuple = f.capture.objectFor(f.capture.make<TupleVariable>(parts, &PyTuple_Type));
  const Object empty = Object::checked(PyUnicode_FromString(""));
  f.push(f.capture.constant(Object::checked(PyUnicode_Join(empty.get(), tuple.get())).get()));
}

}  // namespace

void addStackInstructions(InstructionTable& table) {
  const auto set = [&](Op op, InstructionFunction function) {
    table[static_cast<uint8_t>(op)] = function;
  };
  for (const Op op : {Op::NOP, Op::CACHE, Op::RESUME, Op::RETURN_GENERATOR, Op::PRECALL})
    set(op, nop);
  set(Op::POP_TOP, popTop);
  set(Op::PUSH_NULL, pushNull);
  set(Op::COPY, copy);
  set(Op::SWAP, swap);
  set(Op::LOAD_CONST, loadConst);
  set(Op::LOAD_FAST, loadFast);
  set(Op::STORE_FAST, storeFast);
  set(Op::DELETE_FAST, deleteFast);
  set(Op::MAKE_CELL, makeCell);
  set(Op::COPY_FREE_VARS, copyFreeVariables);
  set(Op::LOAD_CLOSURE, loadClosure);
  set(Op::LOAD_DEREF, loadDeref);
  set(Op::STORE_DEREF, storeDeref);
  set(Op::DELETE_DEREF, deleteDeref);
  set(Op::LOAD_GLOBAL, loadGlobal);
  set(Op::STORE_GLOBAL, storeGlobal);
  set(Op::DELETE_GLOBAL, deleteGlobal);
  set(Op::BINARY_OP, binaryOp);
  set(Op::COMPARE_OP, compareOp);
  set(Op::IS_OP, isOp);
  set(Op::CONTAINS_OP, containsOp);
  set(Op::UNARY_POSITIVE, unaryOp<Unary::kPositive>);
  set(Op::UNARY_NEGATIVE, unaryOp<Unary::kNegative>);
  set(Op::UNARY_NOT, unaryOp<Unary::kNot>);
  set(Op::UNARY_INVERT, unaryOp<Unary::kInvert>);
  set(Op::BINARY_SUBSCR, binarySubscript);
  set(Op::STORE_SUBSCR, storeSubscript);
  set(Op::DELETE_SUBSCR, deleteSubscript);
  for (const Op op : {Op::JUMP_FORWARD, Op::JUMP_BACKWARD, Op::JUMP_BACKWARD_NO_INTERRUPT}) {
    set(op, jump);
  }
  set(Op::POP_JUMP_FORWARD_IF_FALSE, popJumpIf<false>);
  set(Op::POP_JUMP_BACKWARD_IF_FALSE, popJumpIf<false>);
  set(Op::POP_JUMP_FORWARD_IF_TRUE, popJumpIf<true>);
  set(Op::POP_JUMP_BACKWARD_IF_TRUE, popJumpIf<true>);
  set(Op::POP_JUMP_FORWARD_IF_NONE, popJumpIfNone<true>);
  set(Op::POP_JUMP_BACKWARD_IF_NONE, popJumpIfNone<true>);
  set(Op::POP_JUMP_FORWARD_IF_NOT_NONE, popJumpIfNone<false>);
  set(Op::POP_JUMP_BACKWARD_IF_NOT_NONE, popJumpIfNone<false>);
  set(Op::JUMP_IF_FALSE_OR_POP, jumpIfOrPop<false>);
  set(Op::JUMP_IF_TRUE_OR_POP, jumpIfOrPop<true>);
  set(Op::RETURN_VALUE, returnValue);
  set(Op::FORMAT_VALUE, formatValue);
  set(Op::BUILD_STRING, buildString);
}

}  // namespace wick::capture
