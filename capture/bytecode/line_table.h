// The line table of a code object (co_linetable): a location for each code unit, as differences.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/bytecode/instruction.h"

namespace wick::capture {

// Returns a location for each of the code units. Units behind the table's end have none; entries
// behind the last unit are ignored. Throws BytecodeError for an entry that is cut off, that begins
// wrongly, or whose numbers lead out of the range of lines and columns.
std::vector<Location> decodeLineTable(std::string_view table, int first_line, size_t units);

// Returns the table for instructions of these sizes (code units, with EXTENDED_ARG and CACHE), one
// entry for each, or several if an instruction has more than eight units: as CPython's compiler
// writes it.
std::string encodeLineTable(std::span<const Instruction> instructions, std::span<const int> sizes,
                            int first_line);

}  // namespace wick::capture
