// The end of a part of a function: instructions that hand the state of the frame to a continuation.
#pragma once

#include <vector>

#include "capture/bytecode/edit.h"
#include "capture/resume/continuation.h"

namespace wick::capture {

// The positions of the root's state in the code that the instructions are written for.
struct StatePositions {
  std::vector<int> slots;        // for each slot of the root
  std::vector<int> temporaries;  // unbound locals, temporariesFor() of them
};

// Returns how many temporaries appendHandOver() needs.
int temporariesFor(const Layout& layout);

// Appends instructions that empty the stack, end its handlers, and hand over to the code
// `continuation` with the state, as code_chain.h says. Locals are moved: they are unbound
// afterwards. Adds constants to `code`. Throws PythonError if Python has no memory.
void appendHandOver(Sequence& sequence, DecodedCode& code, const DecodedCode& root,
                    const StatePositions& positions, const Layout& layout, PyObject* continuation);

}  // namespace wick::capture
