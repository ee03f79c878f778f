// Code of CPython 3.11 as it is read and changed: instructions that know each other by index, and
// everything else that a code object holds. No offsets and no CACHE entries.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "capture/bytecode/object.h"
#include "capture/bytecode/opcodes.h"

namespace wick::capture {

// A range of source text. A line or column that is not known is -1.
struct Location {
  int line = -1;
  int end_line = -1;
  int column = -1;
  int end_column = -1;

  bool operator==(const Location&) const = default;
};

struct Instruction {
  Op op = Op::NOP;
  // The whole argument, with that of EXTENDED_ARG before it. Jumps ignore it: `target` counts.
  uint32_t arg = 0;
  // The index of the instruction that a jump leads to, -1 for all others.
  int target = -1;
  // The offset in the code that was decoded, in code units, behind EXTENDED_ARG: `f_lasti` / 2
  // while the instruction runs. -1 for new instructions.
  int unit = -1;
  Location location;
};

// An entry of the exception table: an error in the instructions from `start` to before `end` leads
// to `target`. The stack is cut to `depth` values there; the offset of the failed instruction is
// pushed if `lasti`, then the exception.
struct ExceptionRange {
  int start = 0;
  int end = 0;
  int target = 0;
  int depth = 0;
  bool lasti = false;

  // The depth of the stack when the handler begins.
  int handlerDepth() const { return depth + (lasti ? 1 : 0) + 1; }
  bool operator==(const ExceptionRange&) const = default;
};

// The kinds of a frame's slots, as bits. An argument that is also a cell has one slot with two
// bits; it holds the value until MAKE_CELL has run.
enum SlotKind : uint8_t {
  kLocalSlot = 0x20,
  kCellSlot = 0x40,
  kFreeSlot = 0x80,
};

// A variable of the frame ("localsplus"): locals come first, then cells, then free variables.
struct Slot {
  Object name;
  uint8_t kind = kLocalSlot;
};

struct DecodedCode {
  std::vector<Instruction> instructions;
  std::vector<Object> constants;
  std::vector<Object> names;
  std::vector<Slot> slots;
  // Sorted by `start`, without overlaps.
  std::vector<ExceptionRange> exception_ranges;
  int flags = 0;
  int argument_count = 0;  // with those that are positional only, without the other two kinds
  int positional_only_count = 0;
  int keyword_only_count = 0;
  int first_line = 0;
  int stack_size = 0;  // as the code object said it; assemble() computes its own
  Object filename;
  Object name;
  Object qualified_name;

  int size() const { return static_cast<int>(instructions.size()); }
};

// Returns an instruction without target and location.
inline Instruction makeInstruction(Op op, uint32_t arg = 0) {
  Instruction result;
  result.op = op;
  result.arg = arg;
  return result;
}

// Returns how errors name an instruction, for example "instruction 12 (LOAD_FAST)".
std::string describe(const DecodedCode& code, int index);

// Returns the number of slots that are free variables.
int freeCount(const DecodedCode& code);

// Throws BytecodeError for an argument that indexes nothing (constants, names, slots), that names a
// slot of the wrong kind or an unknown operation, for a jump or a handler that leads out of the
// code, for exception ranges that are not sorted, and if an instruction lacks a neighbour that the
// interpreter counts on: PRECALL, CALL; SEND, YIELD_VALUE, RESUME.
void checkOperands(const DecodedCode& code);

}  // namespace wick::capture
