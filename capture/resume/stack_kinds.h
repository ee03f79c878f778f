// The kinds of a frame's stack entries and which locals are bound, at each instruction: found from
// the code alone.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "capture/bytecode/instruction.h"

namespace wick::capture {

enum class StackKind : uint8_t {
  kValue,
  kNull,
  // A method or NULL, whichever LOAD_METHOD found. Known at run time only.
  kNullOrValue,
  // The exception that was handled before, saved by PUSH_EXC_INFO. While the entry is there the
  // thread handles another exception, and POP_EXCEPT ends that. Entries of this kind are nested:
  // the topmost belongs to the innermost handler. When one is copied (the cleanup of a handler does
  // so), the copy counts and the original becomes a value.
  kPrevious,
  // The exception that the thread handles, immediately above its kPrevious. Anywhere else, and
  // when the two may differ (`except*` splits a group), an exception is a value.
  kException,
  // The offset of an instruction, which a handler with `lasti` begins with.
  kOffset,
};

struct StackEntry {
  StackKind kind = StackKind::kValue;
  // For kOffset the index of the instruction whose offset it is; -1 if it may be one of several.
  int instruction = -1;

  bool operator==(const StackEntry&) const = default;
};

enum class Binding : uint8_t { kUnbound, kBound, kUnknown };

struct FrameState {
  std::vector<StackEntry> stack;  // bottom first
  // For each slot. Cells and free variables hold their cell and count as bound.
  std::vector<Binding> locals;

  bool operator==(const FrameState&) const = default;
};

// Returns the state when a call of the code begins.
FrameState firstState(const DecodedCode& code);

// Changes the state before an instruction to that after it; `jumps` tells which way a jump goes.
// Throws BytecodeError if the stack has too few entries or ones of a wrong kind for it.
void applyInstruction(const DecodedCode& code, int index, bool jumps, FrameState& state);

// Returns the state at the begin of the handler of this range when the instruction fails. Throws
// BytecodeError if the stack has too few entries, or if an inner handler would never end.
FrameState stateInHandler(const DecodedCode& code, int index, const ExceptionRange& range,
                          const FrameState& before);

// Returns whether the instruction can fail, apart from errors of trace functions.
bool canRaise(Op op);

// Returns the exception range that the instruction lies in, or null.
const ExceptionRange* rangeAt(const DecodedCode& code, int index);

// The states before all instructions.
class StackKinds {
 public:
  // Follows all paths. Throws BytecodeError as applyInstruction does, and if two paths meet whose
  // stacks cannot be described as one. `code` must have passed checkOperands and stay as it is.
  explicit StackKinds(const DecodedCode& code);

  // Returns the state, or nothing if no path leads to the instruction.
  std::optional<FrameState> before(int index) const;

 private:
  class Walk;

  const DecodedCode& code_;
  std::vector<int> block_start_;  // for each instruction the first of its block
  // For each first instruction of a block its state.
  std::vector<std::optional<FrameState>> at_start_;
};

}  // namespace wick::capture
