// The opcodes of CPython 3.11 and facts about them. Not for files that include CPython's own
// opcode.h, whose macros have the same names.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace wick::capture {

// name, number, inline CACHE entries behind the instruction, facts (OpcodeFact)
#define WICK_OPCODES(X)                                             \
  X(CACHE, 0, 0, 0)                                                 \
  X(POP_TOP, 1, 0, 0)                                               \
  X(PUSH_NULL, 2, 0, 0)                                             \
  X(NOP, 9, 0, 0)                                                   \
  X(UNARY_POSITIVE, 10, 0, 0)                                       \
  X(UNARY_NEGATIVE, 11, 0, 0)                                       \
  X(UNARY_NOT, 12, 0, 0)                                            \
  X(UNARY_INVERT, 15, 0, 0)                                         \
  X(BINARY_SUBSCR, 25, 4, 0)                                        \
  X(GET_LEN, 30, 0, 0)                                              \
  X(MATCH_MAPPING, 31, 0, 0)                                        \
  X(MATCH_SEQUENCE, 32, 0, 0)                                       \
  X(MATCH_KEYS, 33, 0, 0)                                           \
  X(PUSH_EXC_INFO, 35, 0, 0)                                        \
  X(CHECK_EXC_MATCH, 36, 0, 0)                                      \
  X(CHECK_EG_MATCH, 37, 0, 0)                                       \
  X(WITH_EXCEPT_START, 49, 0, 0)                                    \
  X(GET_AITER, 50, 0, 0)                                            \
  X(GET_ANEXT, 51, 0, 0)                                            \
  X(BEFORE_ASYNC_WITH, 52, 0, 0)                                    \
  X(BEFORE_WITH, 53, 0, 0)                                          \
  X(END_ASYNC_FOR, 54, 0, 0)                                        \
  X(STORE_SUBSCR, 60, 1, 0)                                         \
  X(DELETE_SUBSCR, 61, 0, 0)                                        \
  X(GET_ITER, 68, 0, 0)                                             \
  X(GET_YIELD_FROM_ITER, 69, 0, 0)                                  \
  X(PRINT_EXPR, 70, 0, 0)                                           \
  X(LOAD_BUILD_CLASS, 71, 0, 0)                                     \
  X(LOAD_ASSERTION_ERROR, 74, 0, 0)                                 \
  X(RETURN_GENERATOR, 75, 0, 0)                                     \
  X(LIST_TO_TUPLE, 82, 0, 0)                                        \
  X(RETURN_VALUE, 83, 0, kEndsPath)                                 \
  X(IMPORT_STAR, 84, 0, 0)                                          \
  X(SETUP_ANNOTATIONS, 85, 0, 0)                                    \
  X(YIELD_VALUE, 86, 0, 0)                                          \
  X(ASYNC_GEN_WRAP, 87, 0, 0)                                       \
  X(PREP_RERAISE_STAR, 88, 0, 0)                                    \
  X(POP_EXCEPT, 89, 0, 0)                                           \
  X(STORE_NAME, 90, 0, kTakesName)                                  \
  X(DELETE_NAME, 91, 0, kTakesName)                                 \
  X(UNPACK_SEQUENCE, 92, 1, 0)                                      \
  X(FOR_ITER, 93, 0, kJumpsForward)                                 \
  X(UNPACK_EX, 94, 0, 0)                                            \
  X(STORE_ATTR, 95, 4, kTakesName)                                  \
  X(DELETE_ATTR, 96, 0, kTakesName)                                 \
  X(STORE_GLOBAL, 97, 0, kTakesName)                                \
  X(DELETE_GLOBAL, 98, 0, kTakesName)                               \
  X(SWAP, 99, 0, 0)                                                 \
  X(LOAD_CONST, 100, 0, kTakesConstant)                             \
  X(LOAD_NAME, 101, 0, kTakesName)                                  \
  X(BUILD_TUPLE, 102, 0, 0)                                         \
  X(BUILD_LIST, 103, 0, 0)                                          \
  X(BUILD_SET, 104, 0, 0)                                           \
  X(BUILD_MAP, 105, 0, 0)                                           \
  X(LOAD_ATTR, 106, 4, kTakesName)                                  \
  X(COMPARE_OP, 107, 2, kTakesComparison)                           \
  X(IMPORT_NAME, 108, 0, kTakesName)                                \
  X(IMPORT_FROM, 109, 0, kTakesName)                                \
  X(JUMP_FORWARD, 110, 0, kJumpsForward | kEndsPath)                \
  X(JUMP_IF_FALSE_OR_POP, 111, 0, kJumpsForward)                    \
  X(JUMP_IF_TRUE_OR_POP, 112, 0, kJumpsForward)                     \
  X(POP_JUMP_FORWARD_IF_FALSE, 114, 0, kJumpsForward)               \
  X(POP_JUMP_FORWARD_IF_TRUE, 115, 0, kJumpsForward)                \
  X(LOAD_GLOBAL, 116, 5, kTakesName)                                \
  X(IS_OP, 117, 0, 0)                                               \
  X(CONTAINS_OP, 118, 0, 0)                                         \
  X(RERAISE, 119, 0, kEndsPath)                                     \
  X(COPY, 120, 0, 0)                                                \
  X(BINARY_OP, 122, 1, 0)                                           \
  X(SEND, 123, 0, kJumpsForward)                                    \
  X(LOAD_FAST, 124, 0, kTakesLocal)                                 \
  X(STORE_FAST, 125, 0, kTakesLocal)                                \
  X(DELETE_FAST, 126, 0, kTakesLocal)                               \
  X(POP_JUMP_FORWARD_IF_NOT_NONE, 128, 0, kJumpsForward)            \
  X(POP_JUMP_FORWARD_IF_NONE, 129, 0, kJumpsForward)                \
  X(RAISE_VARARGS, 130, 0, kEndsPath)                               \
  X(GET_AWAITABLE, 131, 0, 0)                                       \
  X(MAKE_FUNCTION, 132, 0, 0)                                       \
  X(BUILD_SLICE, 133, 0, 0)                                         \
  X(JUMP_BACKWARD_NO_INTERRUPT, 134, 0, kJumpsBackward | kEndsPath) \
  X(MAKE_CELL, 135, 0, kTakesCell)                                  \
  X(LOAD_CLOSURE, 136, 0, kTakesCell)                               \
  X(LOAD_DEREF, 137, 0, kTakesCell)                                 \
  X(STORE_DEREF, 138, 0, kTakesCell)                                \
  X(DELETE_DEREF, 139, 0, kTakesCell)                               \
  X(JUMP_BACKWARD, 140, 0, kJumpsBackward | kEndsPath)              \
  X(CALL_FUNCTION_EX, 142, 0, 0)                                    \
  X(EXTENDED_ARG, 144, 0, 0)                                        \
  X(LIST_APPEND, 145, 0, 0)                                         \
  X(SET_ADD, 146, 0, 0)                                             \
  X(MAP_ADD, 147, 0, 0)                                             \
  X(LOAD_CLASSDEREF, 148, 0, kTakesCell)                            \
  X(COPY_FREE_VARS, 149, 0, 0)                                      \
  X(RESUME, 151, 0, 0)                                              \
  X(MATCH_CLASS, 152, 0, 0)                                         \
  X(FORMAT_VALUE, 155, 0, 0)                                        \
  X(BUILD_CONST_KEY_MAP, 156, 0, 0)                                 \
  X(BUILD_STRING, 157, 0, 0)                                        \
  X(LOAD_METHOD, 160, 10, kTakesName)                               \
  X(LIST_EXTEND, 162, 0, 0)                                         \
  X(SET_UPDATE, 163, 0, 0)                                          \
  X(DICT_MERGE, 164, 0, 0)                                          \
  X(DICT_UPDATE, 165, 0, 0)                                         \
  X(PRECALL, 166, 1, 0)                                             \
  X(CALL, 171, 4, 0)                                                \
  X(KW_NAMES, 172, 0, kTakesConstant)                               \
  X(POP_JUMP_BACKWARD_IF_NOT_NONE, 173, 0, kJumpsBackward)          \
  X(POP_JUMP_BACKWARD_IF_NONE, 174, 0, kJumpsBackward)              \
  X(POP_JUMP_BACKWARD_IF_FALSE, 175, 0, kJumpsBackward)             \
  X(POP_JUMP_BACKWARD_IF_TRUE, 176, 0, kJumpsBackward)

enum class Op : uint8_t {
#define WICK_OPCODE(name, number, caches, facts) name = number,
  WICK_OPCODES(WICK_OPCODE)
#undef WICK_OPCODE
};

// Facts about an opcode, as bits: how its argument is to be read, and how control goes on.
enum OpcodeFact : uint16_t {
  kTakesConstant = 1,     // index of a constant
  kTakesName = 2,         // index of a name; LOAD_GLOBAL has a flag in the lowest bit (nameIndex)
  kTakesLocal = 4,        // index of a slot that holds a value
  kTakesCell = 8,         // index of a slot that holds a cell
  kTakesComparison = 16,  // number of a comparison
  kJumpsForward = 32,     // distance of a jump forward
  kJumpsBackward = 64,    // distance of a jump backward
  kEndsPath = 128,        // the next instruction never follows
};

// Returns whether an instruction of general, not specialised code can have this number.
bool isOpcode(uint8_t number);
// Returns the opcode that a number in co_code_adaptive stands for: itself, or the general form of a
// specialised one. Nothing for numbers that CPython does not assign.
std::optional<Op> generalForm(uint8_t number);

std::string_view nameOf(Op op);
// Returns the number of CACHE entries that follow the instruction.
int cacheEntries(Op op);
// Returns the facts as bits of OpcodeFact.
uint16_t factsOf(Op op);
inline bool has(Op op, int facts) {
  return (factsOf(op) & facts) != 0;
}
inline bool isJump(Op op) {
  return has(op, kJumpsForward | kJumpsBackward);
}
// Returns whether the instruction has an argument; others ignore theirs.
inline bool hasArgument(Op op) {
  return static_cast<uint8_t>(op) >= 90;
}
// Returns the index into the names for an instruction with kTakesName.
inline uint32_t nameIndex(Op op, uint32_t arg) {
  return op == Op::LOAD_GLOBAL ? arg >> 1 : arg;
}

// Returns the jump that does the same in the other direction, or nothing: FOR_ITER, SEND and
// JUMP_IF_FALSE_OR_POP lead forward only. JUMP_BACKWARD_NO_INTERRUPT becomes JUMP_FORWARD, which
// becomes JUMP_BACKWARD.
std::optional<Op> otherDirection(Op op);

// Returns by how much the instruction makes the stack deeper; `jumps` tells which way a conditional
// jump goes. Unlike dis.stack_effect, which keeps the sum alone right, it says for each instruction
// what the interpreter does: PRECALL pops nothing, CALL pops the arguments, RETURN_GENERATOR pushes
// the value that the first send() brings, and RERAISE pops the exception.
int64_t stackEffect(Op op, uint32_t arg, bool jumps);

}  // namespace wick::capture
