// One function for each instruction. Each takes the frame and the argument of the instruction.
#pragma once

#include <array>
#include <cstdint>

#include "capture/bytecode/opcodes.h"
#include "capture/evaluate/frame.h"

namespace wick::capture {

using InstructionFunction = void (*)(EvalFrame& frame, uint32_t arg);
using InstructionTable = std::array<InstructionFunction, 256>;

// Each adds its functions to the table.
void addStackInstructions(InstructionTable& table);      // values, variables, names, jumps
void addContainerInstructions(InstructionTable& table);  // building, unpacking, iterating, matching
void addCallInstructions(InstructionTable& table);       // calls, functions, attributes, imports
void addExceptionInstructions(InstructionTable& table);  // raising, handling, `with`, generators

}  // namespace wick::capture
