// Checks of arguments, for code that was read and for code that is to be written.
#include <fmt/format.h>

#include "capture/bytecode/instruction.h"

namespace wick::capture {
namespace {

[[noreturn]] void refuse(const DecodedCode& code, int index, const std::string& why) {
  throw BytecodeError(describe(code, index) + ": " + why);
}

void checkIndex(const DecodedCode& code, int index, uint32_t value, size_t count,
                const char* things) {
  if (value < count) return;
  refuse(code, index, fmt::format("index {} of {} {}", value, count, things));
}

void checkSlot(const DecodedCode& code, int index) {
  const Instruction& at = code.instructions[index];
  checkIndex(code, index, at.arg, code.slots.size(), "variables");
  if (!has(at.op, kTakesCell)) return;
  const uint8_t wanted = at.op == Op::MAKE_CELL ? kCellSlot : kCellSlot | kFreeSlot;
  if ((code.slots[at.arg].kind & wanted) == 0) {
    refuse(code, index, fmt::format("variable {} is not a cell", at.arg));
  }
}

// Numbers that name an operation, a count or a distance on the stack.
void checkNumber(const DecodedCode& code, int index) {
  constexpr uint32_t kComparisons = 6;
  constexpr uint32_t kBinaryOperations = 26;
  const Instruction& at = code.instructions[index];
  bool good = true;
  switch (at.op) {
    case Op::COMPARE_OP:
      good = at.arg < kComparisons;
      break;
    case Op::BINARY_OP:
      good = at.arg < kBinaryOperations;
      break;
    case Op::IS_OP:
    case Op::CONTAINS_OP:
      good = at.arg < 2;
      break;
    case Op::COPY:
    case Op::SWAP:
    case Op::LIST_APPEND:
    case Op::SET_ADD:
    case Op::MAP_ADD:
    case Op::LIST_EXTEND:
    case Op::SET_UPDATE:
    case Op::DICT_MERGE:
    case Op::DICT_UPDATE:
      good = at.arg > 0;
      break;
    case Op::RAISE_VARARGS:
      good = at.arg < 3;
      break;
    case Op::COPY_FREE_VARS:
      good = at.arg == static_cast<uint32_t>(freeCount(code));
      break;
    case Op::KW_NAMES:
      good = PyTuple_Check(code.constants[at.arg].get());
      break;
    default:
      break;
  }
  if (!good) refuse(code, index, fmt::format("argument {} is not possible", at.arg));
}

// The interpreter looks at the neighbours of some instructions: PRECALL may do the work of CALL and
// go on behind it; throw() looks for RESUME behind YIELD_VALUE, and if that says `yield from` or
// `await`, for SEND before it.
void checkNeighbours(const DecodedCode& code, int index) {
  const auto at = [&](int i) {
    return i >= 0 && i < code.size() ? code.instructions[i] : makeInstruction(Op::CACHE);
  };
  const Instruction& here = code.instructions[index];
  const Instruction next = at(index + 1);
  if (here.op == Op::PRECALL && (next.op != Op::CALL || next.arg != here.arg)) {
    refuse(code, index, "CALL with the same argument must follow at once");
  }
  if (here.op != Op::YIELD_VALUE) return;
  if (next.op != Op::RESUME) refuse(code, index, "RESUME must follow at once");
  if (next.arg >= 2 && at(index - 1).op != Op::SEND) {
    refuse(code, index, "SEND must stand immediately before it");
  }
}

}  // namespace

std::string describe(const DecodedCode& code, int index) {
  if (index < 0 || index >= code.size()) return fmt::format("instruction {}", index);
  const Instruction& at = code.instructions[index];
  std::string text = fmt::format("instruction {} ({}", index, nameOf(at.op));
  if (at.location.line >= 0) text += fmt::format(", line {}", at.location.line);
  return text + ")";
}

int freeCount(const DecodedCode& code) {
  int count = 0;
  for (const Slot& slot : code.slots) count += (slot.kind & kFreeSlot) != 0;
  return count;
}

void checkOperands(const DecodedCode& code) {
  for (int i = 0; i < code.size(); ++i) {
    const Instruction& at = code.instructions[i];
    if (!isOpcode(static_cast<uint8_t>(at.op)) || at.op == Op::EXTENDED_ARG) {
      refuse(code, i, fmt::format("no instruction has the number {}", static_cast<int>(at.op)));
    }
    const uint16_t facts = factsOf(at.op);
    if (facts & kTakesConstant) checkIndex(code, i, at.arg, code.constants.size(), "constants");
    if (facts & kTakesName) {
      checkIndex(code, i, nameIndex(at.op, at.arg), code.names.size(), "names");
    }
    if (facts & (kTakesLocal | kTakesCell)) checkSlot(code, i);
    checkNumber(code, i);
    checkNeighbours(code, i);
    if (isJump(at.op) != (at.target >= 0) || at.target >= code.size()) {
      refuse(code, i, fmt::format("jump to instruction {} of {}", at.target, code.size()));
    }
  }
  int end = 0;
  for (const ExceptionRange& range : code.exception_ranges) {
    if (range.start < end || range.end <= range.start || range.end > code.size() ||
        range.target < 0 || range.target >= code.size() || range.depth < 0) {
      throw BytecodeError(fmt::format(
          "exception range {} to {}, target {}, depth {}: it overlaps another, is empty, or leads "
          "out of {} instructions",
          range.start, range.end, range.target, range.depth, code.size()));
    }
    end = range.end;
  }
}

}  // namespace wick::capture
