// The exception table of a code object (co_exceptiontable): ranges in code units, as numbers of six
// bits a byte.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "capture/bytecode/instruction.h"

namespace wick::capture {

// Returns the ranges. `index_at` holds for each code unit, and for the end of the code, the index
// of the instruction that begins there, or -1 for none. Throws BytecodeError for a table that is
// cut off, whose ranges are empty, overlap or are not sorted, and for ones that begin, end or lead
// to within an instruction.
std::vector<ExceptionRange> decodeExceptionTable(std::string_view table,
                                                 std::span<const int> index_at);

// Returns the table for sorted ranges without overlaps. `starts` holds the first code unit of each
// instruction, and then the end of the code.
std::string encodeExceptionTable(std::span<const ExceptionRange> ranges,
                                 std::span<const int> starts);

}  // namespace wick::capture
