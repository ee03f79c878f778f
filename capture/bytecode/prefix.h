// The instructions at the beginning of each code, which set up cells and make generators.
#pragma once

#include <vector>

#include "capture/bytecode/instruction.h"

namespace wick::capture {

// COPY_FREE_VARS, MAKE_CELL for each cell, RETURN_GENERATOR and POP_TOP, RESUME: in this order,
// each only if it is needed. Class bodies and modules have them, too.
struct Prefix {
  bool copies_free = false;
  std::vector<int> cells;  // slots that MAKE_CELL names
  bool generator = false;  // generator, coroutine or asynchronous generator
  bool resumes = false;    // whether RESUME follows
  int length = 0;          // instructions of all of these
};

// Returns the prefix of the code. Code that was made by hand may have parts of it only.
Prefix readPrefix(const DecodedCode& code);

// Replaces the prefix by the one that slots and flags ask for: COPY_FREE_VARS if there are free
// variables, MAKE_CELL for each slot that is a cell, RETURN_GENERATOR if the flags say generator,
// coroutine or asynchronous generator, then RESUME. Locations of old instructions are kept. Returns
// its length.
int writePrefix(DecodedCode& code);

}  // namespace wick::capture
