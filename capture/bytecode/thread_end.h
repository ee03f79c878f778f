// Calls of Python on threads that the interpreter may end.
//
// When an interpreter ends, CPython 3.11 ends each daemon thread that wants the GIL by
// pthread_exit(), which unwinds the thread's stack: C++ destructors run without the GIL, and those of
// references crash. From 3.14 on CPython stops such threads instead. callPython() does the same:
// the frames around it are never unwound.
#pragma once

#include <cxxabi.h>

#include <utility>

namespace wick::capture {

// Never returns. The thread ends with the process.
[[noreturn]] void stopThread();

// Returns what f() returns, which calls Python and has no frames of C++ with destructors beneath it.
// C++ that calls much Python code for a long time should do it through this.
template <class F>
decltype(auto) callPython(F&& f) {
  try {
    return std::forward<F>(f)();
  } catch (const abi::__forced_unwind&) {
    stopThread();
  }
}

}  // namespace wick::capture
