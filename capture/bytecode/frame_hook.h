// The frame hook (PEP 523): a callback of ours sees each Python function before it starts.
//
// The interpreter has one hook. Ours is set while any thread has an active HookScope, and is passed
// straight through by threads without one. At the last end exactly the former hook is there again.
//
// Another hook that was there before is chained: frames that run plainly go through it. That of
// pydevd is refused, because a debugger must see each frame. One that is set over ours is left alone
// at our end; as long as it calls the hook that it found, later scopes work through it, and if it
// does not, they are set over it.
//
// The callback sees only calls. It is not called
// - for the frames that plainReason() (frame.h) names, and for code that is skipped (code_data.h);
// - while a function for tracing or profiling is set on the thread (sys.settrace, sys.setprofile,
//   coverage, debuggers), where sys.setrecursionlimit() allows no further call, which fails then,
//   and when the interpreter is about to end;
// - where more than half of the thread's C stack is used, or less than 512 KiB are left. With a hook
//   each Python call needs C stack (about 450 bytes: 9,000 calls are half of 8 MiB), without one it
//   needs none. So there the hook is taken away, for all threads, until the frame that found it so
//   returns: a recursion that is as deep as sys.setrecursionlimit() allows works as without us, and
//   RecursionError comes where it would come otherwise;
// - in CPython before 3.11.4, for `__getitem__` written in Python where BINARY_SUBSCR is specialized for it
//   (`obj[i]`, from about the eighth run on): the interpreter enters such a callee without asking
//   hooks.
//
// With a hook the caller keeps references to arguments until the call returns, whoever set the hook.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "capture/bytecode/code_data.h"
#include "capture/bytecode/frame.h"

namespace wick::capture {

// A hook that cannot be set: the message says why.
class FrameHookError : public Error {
 public:
  using Error::Error;
};

// Answers for a frame that starts: with the call's value (a new reference), with null and a Python
// exception set, or with nothing, which runs the frame plainly. Slots that it took must be back in
// that case. `data` are those of the code object, or null; they live until it returned.
//
// Calls of Python functions within it go through the hook, unless it opens a PauseHook. A C++
// exception that leaves it becomes a Python exception; PythonError is the one that is set. It must not
// be noexcept, and should call longer Python code by callCode() or callPython() (thread_end.h).
using FrameCallback = std::optional<PyObject*> (*)(void* context, FrameView frame, CodeData* data);

// Makes the hook active on the calling thread, with this callback, until its end. The innermost
// scope decides, also one within a PauseHook. The end is on the same thread, and scopes end in the
// reverse order. The caller holds the GIL at both.
class HookScope {
 public:
  // Throws FrameHookError in a subinterpreter and where another hook is refused, PythonError if
  // prepareCodeData() does.
  HookScope(FrameCallback callback, void* context);
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;
  ~HookScope() noexcept(false);

 private:
  FrameCallback callback_;  // those of the scope around
  void* context_;
  bool active_;
  PyThreadState* thread_;
};

// Makes the hook inactive on the calling thread until its end, or until the next scope within it: for
// code that runs plainly together with all that it calls. Does nothing without a scope. If no other
// thread has an active scope, the interpreter has no hook of ours for this time.
class PauseHook {
 public:
  PauseHook();
  PauseHook(const PauseHook&) = delete;
  PauseHook& operator=(const PauseHook&) = delete;
  ~PauseHook() noexcept(false);

 private:
  bool active_;
  PyThreadState* thread_;
};

// Returns whether the hook is active on the calling thread.
bool hookActive();
// Returns whether the interpreter's hook is ours at this moment. Another one may stand over it.
bool hookInstalled();
// Returns the file and the symbol of the hook that is set and is not ours, or "".
std::string otherHook();

// The function for a code object that is made for calls: all are borrowed.
struct FunctionParts {
  PyCodeObject* code = nullptr;
  PyObject* globals = nullptr;   // a dict
  PyObject* builtins = nullptr;  // a dict; null takes those that the globals name
  PyObject* closure = nullptr;   // a tuple of cells, one for each free variable; null for none
  // The function's documentation, any object; null takes that which the code has.
  PyObject* documentation = nullptr;
};

// Makes the function. Throws BytecodeError for parts that do not fit, PythonError.
Object makeFunction(const FunctionParts& parts);
// Replaces the function, null or made by makeFunction() and never given away, by one of these parts.
// The object stays the same if nothing else refers to it and only its code and closure differ, which
// is faster. Throws as makeFunction() does.
void makeFunctionAgain(Object& made, const FunctionParts& parts);
// Makes the function and calls it. Throws BytecodeError for parts that do not fit, and PythonError
// for whatever the call raises.
Object callCode(const FunctionParts& parts, std::span<PyObject* const> arguments);
// Does the same, and gives the arguments up when the frame of the function has them, if the hook is
// installed then (otherwise after the call): they may die as early as the function lets them. All
// arguments are null afterwards, also if it throws.
Object callCodeMoving(const FunctionParts& parts, std::span<Object> arguments);
// Does the same with a function that was made before.
Object callMoving(PyObject* function, std::span<Object> arguments);

}  // namespace wick::capture
