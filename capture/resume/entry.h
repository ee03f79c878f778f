// Writes the code of one continuation.
#pragma once

#include <vector>

#include "capture/resume/continuation.h"

namespace wick::capture {

// A way that control takes behind the instructions that a break runs.
struct Exit {
  bool jumps = false;
  Layout layout;        // behind the instructions
  Object continuation;  // the code to hand over to
};

// The code to be written.
struct EntryPlan {
  const DecodedCode& root;
  int prefix_length = 0;  // of the root
  int instruction = 0;    // to begin with
  Layout layout;          // before it
  // The end of the instructions that a break runs; `instruction` itself for code that goes on.
  int copied_end = 0;
  std::vector<Exit> exits;  // of a break; at most one for each way
  // Whether a signal that arrives at the begin may go to the handler of the first instruction.
  bool covered = false;
};

struct EntryCode {
  Object code;
  std::vector<int> instructions;  // as in ContinuationInfo
  std::vector<int> slots;
};

// Throws BytecodeError as assemble() does, PythonError if Python has no memory.
EntryCode writeEntry(const EntryPlan& plan);

}  // namespace wick::capture
