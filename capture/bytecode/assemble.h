// Writes code objects of CPython 3.11.
#pragma once

#include <string>
#include <vector>

#include "capture/bytecode/instruction.h"

namespace wick::capture {

// The tables of a code object, as bytes.
struct EncodedCode {
  std::string units;
  std::string line_table;
  std::string exception_table;
  // For each instruction the code unit where it begins, with EXTENDED_ARG; then the end.
  std::vector<int> starts;
  // For each instruction its own code unit, behind EXTENDED_ARG: `f_lasti` / 2 while it runs.
  std::vector<int> units_of;
  int stack_size = 0;
};

// Returns the tables, with as few EXTENDED_ARG as possible. Exception ranges may stand in any
// order. Throws BytecodeError as checkOperands and stackDepths do, and for a jump that leads in the
// other direction than its opcode says (orientJumps in edit.h mends it).
EncodedCode encode(const DecodedCode& code);

// Returns a new code object. Throws as encode(), and for variables that do not stand in CPython's
// order (locals, cells, free ones) or whose names a code object could not tell apart: a cell that
// is not an argument needs a name that no local has. Throws PythonError if Python refuses the code.
Object assemble(const DecodedCode& code);

}  // namespace wick::capture
