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

// Returns how many temporaries appendCall() needs.
int temporariesFor(const Layout& layout);

// Appends instructions that empty the stack, end its handlers, call the function made of
// `continuation` with the state, and return its value. Locals are moved: they are unbound
// afterwards. Adds constants to `code`. Throws PythonError if Python has no memory.
void appendCall(Sequence& sequence, DecodedCode& code, const DecodedCode& root,
                const StatePositions& positions, const Layout& layout, PyObject* continuation);

}  // namespace wick::capture
