// The instruction set of the interpreter: a register machine.
//
// A frame is a row of IValue registers. Values of static type int, float and bool live in scalar
// registers, which never hold a reference-counted object: an instruction that writes one stores the
// bits and frees nothing. All other values live in object registers, which are always valid
// IValues. An instruction has a 16-bit field `extra` and three 32-bit fields a, b, c, whose roles
// the format string gives in order:
//
//   d  register that is written          D  offset of a list of registers that are written
//   u  register that is read             o  offset of a list of operands that are read
//   x  register that is read and written j  jump target
//   n  a number or an index into one of Code's tables, see the effect
//   -  unused
//
// A list is a count followed by that many entries, see operandKind() and destination().
// Instructions whose destination comes from outside (an operator, a slot, a callee) carry in
// `extra` the tag that a scalar destination expects, plus one; zero means an object destination.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/ivalue.h"

namespace wick {

// _(name, format, effect)
#define WICK_FORALL_MOVE_INSTRUCTIONS(_)                                                      \
  _(MOVE, "du-", "a = b, b becomes None (object registers; b's last use)")                    \
  _(COPY, "du-", "a = b (a is an object register)")                                           \
  _(SMOVE, "du-", "a = b (both scalar registers)")                                            \
  _(LOADK, "dn-", "a = constant b (a is an object register)")                                 \
  _(SLOADK, "dn-", "a = constant b (a is a scalar register)")                                 \
  _(UNBOX, "du-", "a = b (a is a scalar register, b an object register), checked with extra") \
  _(DROP, "u--", "a becomes None: its last use depends on the path taken")

// Wrapping 64-bit integers; floor division and modulo round as Python's and raise on zero.
#define WICK_FORALL_SCALAR_INSTRUCTIONS(_)                           \
  _(ADD_INT, "duu", "a = b + c")                                     \
  _(SUB_INT, "duu", "a = b - c")                                     \
  _(MUL_INT, "duu", "a = b * c")                                     \
  _(FLOORDIV_INT, "duu", "a = b // c")                               \
  _(MOD_INT, "duu", "a = b % c")                                     \
  _(DIV_INT, "duu", "a = float(b) / float(c)")                       \
  _(AND_INT, "duu", "a = b & c")                                     \
  _(OR_INT, "duu", "a = b | c")                                      \
  _(XOR_INT, "duu", "a = b ^ c")                                     \
  _(AND_BOOL, "duu", "a = b and c")                                  \
  _(OR_BOOL, "duu", "a = b or c")                                    \
  _(XOR_BOOL, "duu", "a = b != c")                                   \
  _(NEG_INT, "du-", "a = -b")                                        \
  _(ADD_FLOAT, "duu", "a = b + c")                                   \
  _(SUB_FLOAT, "duu", "a = b - c")                                   \
  _(MUL_FLOAT, "duu", "a = b * c")                                   \
  _(DIV_FLOAT, "duu", "a = b / c")                                   \
  _(FLOORDIV_FLOAT, "duu", "a = floor(b / c)")                       \
  _(MOD_FLOAT, "duu", "a = b % c, with the sign of c")               \
  _(NEG_FLOAT, "du-", "a = -b")                                      \
  _(LT_INT, "duu", "a = b < c")                                      \
  _(LE_INT, "duu", "a = b <= c")                                     \
  _(EQ_INT, "duu", "a = b == c (ints or bools)")                     \
  _(NE_INT, "duu", "a = b != c (ints or bools)")                     \
  _(LT_FLOAT, "duu", "a = b < c")                                    \
  _(LE_FLOAT, "duu", "a = b <= c")                                   \
  _(EQ_FLOAT, "duu", "a = b == c")                                   \
  _(NE_FLOAT, "duu", "a = b != c")                                   \
  _(NOT, "du-", "a = not b")                                         \
  _(INT_TO_FLOAT, "du-", "a = float(b) (int or bool)")               \
  _(FLOAT_TO_INT, "du-", "a = int(b), out of range gives the least") \
  _(BOOL_TO_INT, "du-", "a = int(b)")                                \
  _(INT_TO_BOOL, "du-", "a = b != 0")                                \
  _(FLOAT_TO_BOOL, "du-", "a = b != 0.0")

// A jump backwards counts one step against the limits.
#define WICK_FORALL_JUMP_INSTRUCTIONS(_)                  \
  _(JUMP, "j--", "go to a")                               \
  _(JUMP_IF, "uj-", "go to b when a")                     \
  _(JUMP_UNLESS, "uj-", "go to b unless a")               \
  _(JUMP_IF_LT_INT, "uuj", "go to c when a < b")          \
  _(JUMP_IF_LE_INT, "uuj", "go to c when a <= b")         \
  _(JUMP_IF_EQ_INT, "uuj", "go to c when a == b")         \
  _(JUMP_IF_NE_INT, "uuj", "go to c when a != b")         \
  _(JUMP_IF_LT_FLOAT, "uuj", "go to c when a < b")        \
  _(JUMP_IF_LE_FLOAT, "uuj", "go to c when a <= b")       \
  _(JUMP_IF_EQ_FLOAT, "uuj", "go to c when a == b")       \
  _(JUMP_UNLESS_LT_FLOAT, "uuj", "go to c unless a < b")  \
  _(JUMP_UNLESS_LE_FLOAT, "uuj", "go to c unless a <= b") \
  _(JUMP_UNLESS_EQ_FLOAT, "uuj", "go to c unless a == b") \
  _(FOR_STEP, "xuj", "a = a + 1; go to c when a < b")

#define WICK_FORALL_CALL_INSTRUCTIONS(_)                                                          \
  _(OP, "nod", "c = operator a of operands b")                                                    \
  _(OP_MULTI, "noD", "registers c = results of operator a of operands b")                         \
  _(FUSION, "noD", "c = True, then results of kernels for group a of operands b; False: not run") \
  _(CALL, "nod", "c = function a of operands b, in a new frame")                                  \
  _(CALL_VIRTUAL, "nod", "c = method a, found in the class of the first of operands b")           \
  _(FORK, "nod", "c = future of fork site a with operands b, which the thread pool runs")         \
  _(WAIT, "ud-", "b = result of future a; suspends the state until there is one")                 \
  _(RETURN, "o--", "leaves the frame with operands a")                                            \
  _(RAISE, "o--", "raises an exception with the message and, when there are two, the class a")    \
  _(PRINT, "o--", "prints operands a")                                                            \
  _(ENTER, "ud-", "b = a.__enter__(); a is remembered to be left when an exception passes")       \
  _(EXIT, "u--", "a.__exit__(None, None, None)")                                                  \
  _(BAIL_OUT, "oon",                                                                              \
    "unless operands a are as guard c supposes, goes on with operands b in another Code")

#define WICK_FORALL_DATA_INSTRUCTIONS(_)                                                    \
  _(GET_ATTR, "dun", "a = slot c of object b")                                              \
  _(SET_ATTR, "uon", "slot c of object a = operand b")                                      \
  _(CREATE_OBJECT, "dn-", "a = a new object of class type b")                               \
  _(TUPLE_CONSTRUCT, "don", "a = tuple of operands b, with named type c unless kNoIndex")   \
  _(TUPLE_UNPACK, "uD-", "registers b = elements of tuple a, whose number must match")      \
  _(TUPLE_INDEX, "duu", "a = element c of tuple b")                                         \
  _(TUPLE_SLICE, "dun", "a = elements of tuple b in the range at offset c of the operands") \
  _(LIST_CONSTRUCT, "don", "a = list of operands b with element type c")                    \
  _(LIST_UNPACK, "uD-", "registers b = elements of list a, whose number must match")        \
  _(LIST_LEN, "du-", "a = number of elements of list b")                                    \
  _(LIST_GET, "duu", "a = element c of list b, counted from the end when negative")         \
  _(DICT_CONSTRUCT, "don", "a = dict of operands b (key, value, ...) with dict type c")     \
  _(ISINSTANCE, "dun", "a = whether b is of one of types c")                                \
  _(PROFILE, "no-",                                                                         \
    "tells the profile that its value a is operand b; kNoIndex: that the run ended")        \
  _(TO_LIST, "don", "a = list of type c made of operands b (tensor, depth, element kind)")

#define WICK_FORALL_INSTRUCTIONS(_)  \
  WICK_FORALL_MOVE_INSTRUCTIONS(_)   \
  WICK_FORALL_SCALAR_INSTRUCTIONS(_) \
  WICK_FORALL_JUMP_INSTRUCTIONS(_)   \
  WICK_FORALL_CALL_INSTRUCTIONS(_)   \
  WICK_FORALL_DATA_INSTRUCTIONS(_)

enum class OpCode : uint16_t {
#define WICK_INSTRUCTION(name, format, effect) name,
  WICK_FORALL_INSTRUCTIONS(WICK_INSTRUCTION)
#undef WICK_INSTRUCTION
};

struct Instruction {
  OpCode op;
  uint16_t extra = 0;
  uint32_t a = 0;
  uint32_t b = 0;
  uint32_t c = 0;
};
static_assert(sizeof(Instruction) == 16);

std::string_view opCodeName(OpCode op);
std::string_view opCodeFormat(OpCode op);

// What `extra` says of a scalar of this type; 0 for objects.
uint16_t extraFor(const Type& type);

// Set in `extra` of an instruction whose only object register is read for the last time and whose
// handler therefore lets go of it.
inline constexpr uint16_t kLastUse = 0x100;
inline constexpr uint16_t kTagMask = 0xff;

// A destination or table index that is absent: the result is thrown away.
inline constexpr uint32_t kNoIndex = 0xffffffff;

// An operand in a list: a register to copy or to move out of, or a constant. Yielded, of FUSION
// alone: a register to copy, which nobody reads any more when the kernels ran.
//
// Operators and kernels get what is copied, yielded or constant without a reference of its own: the
// register or the Code keeps it during the call. Held: a register to copy with a reference, because
// the same list moves out of it or yields it as well.
enum class OperandKind : uint32_t { Copy = 0, Move = 1, Constant = 2, Yielded = 3, Held = 4 };
inline constexpr uint32_t kOperandIndexBits = 24;
// Operands behind these get references of their own.
inline constexpr uint32_t kMostBorrowed = 64;
inline constexpr uint32_t kMaxOperandIndex = (1u << kOperandIndexBits) - 1;
constexpr uint32_t makeOperand(OperandKind kind, uint32_t index) {
  return static_cast<uint32_t>(kind) << kOperandIndexBits | index;
}
constexpr OperandKind operandKind(uint32_t operand) {
  return static_cast<OperandKind>(operand >> kOperandIndexBits);
}
constexpr uint32_t operandIndex(uint32_t operand) {
  return operand & kMaxOperandIndex;
}

// A destination in a list: a register and what `extra` would say of it. kNoDestination throws the
// value away.
inline constexpr uint32_t kNoDestination = kMaxOperandIndex;
constexpr uint32_t makeDestination(uint32_t extra, uint32_t index) {
  return extra << kOperandIndexBits | index;
}
constexpr uint32_t destinationExtra(uint32_t destination) {
  return destination >> kOperandIndexBits;
}

}  // namespace wick
