// Chains of calls: a function in parts, each of which ends by handing over to the next. The first
// caller makes all calls, one after the other, so that they need the C stack, the depth of recursion
// and the entry of a traceback that one call needs, however many there are.
//
// A part hands over in one of two ways: a callback of the frame hook does it for the frame that it
// was asked about (handOver), or the code of the part does it by its last instructions, which
// `handOverObject` is for. A chain takes a call only from the frame that it has called itself. All
// other frames, for example those of a program that found the code of a part and calls it, make the
// next call on their own.
#pragma once

#include <vector>

#include "capture/bytecode/frame.h"

namespace wick::capture {

// A call of code that is to be made. The globals and the builtins are those of the chain.
struct CodeCall {
  Object code;
  Object closure;  // a tuple of cells; null for none
  std::vector<Object> arguments;
};

// Makes the call, and then each that is handed over. Returns the value of the last. Arguments are
// given up as callCodeMoving() does, and nothing else is kept of calls that are over. Globals and
// builtins are borrowed, as in FunctionParts. Throws as callCodeMoving() does.
Object callChain(PyObject* globals, PyObject* builtins, CodeCall call);

// Hands the call over to the chain that has called this frame, which a callback of the frame hook was
// asked about. Returns whether there is one: then the callback answers with any object. Otherwise
// the call is unchanged.
bool handOver(FrameView frame, CodeCall& next);

// Returns the object for constants of code that hands over by
//
//   object[code, closure, argument...]     the closure only if the code has free variables
//   RETURN_VALUE                           at once
//
// The instructions are BUILD_TUPLE and BINARY_SUBSCR, because these look at no signals: nothing can
// happen between the two and RETURN_VALUE. If no chain has called the frame, or functions for tracing
// or profiling would see it return, the subscription makes the call itself, with the globals and
// the builtins of the frame, and is its value. Throws PythonError.
Object handOverObject();

}  // namespace wick::capture
