// Reads code objects of CPython 3.11.
#pragma once

#include "capture/bytecode/instruction.h"

namespace wick::capture {

// Returns everything that a code object holds, in its general form whatever the interpreter has
// specialised. A code object can be made by hand, so nothing in it is believed: throws
// BytecodeError for numbers that lead out of it, jumps and ranges that point into the middle of an
// instruction, and tables that are cut off. Throws PythonError if Python has no memory.
DecodedCode decode(PyCodeObject* code);

// Returns the index of the instruction at this offset in code units (`f_lasti` / 2), or -1.
int indexOfUnit(const DecodedCode& code, int unit);

}  // namespace wick::capture
