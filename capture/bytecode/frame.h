// A frame of CPython 3.11 that the interpreter has set up and not started: arguments lie in their
// slots, cells and free variables are still null (the instructions of the prefix make them).
//
// Nothing here makes a frame object, runs an instruction or calls Python: the interpreter takes a
// frame object as a sign that the prefix has run.
#pragma once

#include "capture/bytecode/object.h"

struct _PyInterpreterFrame;

namespace wick::capture {

// Why a frame is never captured, whoever asks.
enum class PlainFrame : uint8_t {
  kCanBeCaptured,
  kThrows,       // throw(), close() or the finalizer of a generator
  kResumed,      // a generator or coroutine that goes on
  kStarted,      // instructions have run, or a frame object owns it
  kHasLocals,    // a module, a class body, exec()
  kNotFunction,  // code that lacks CO_OPTIMIZED or CO_NEWLOCALS
  kCoroutine,    // the call of `async def`, or of a generator that types.coroutine marked
};

// Returns why the interpreter runs the frame plainly. `throws` is the flag that a hook gets.
PlainFrame plainReason(const _PyInterpreterFrame* frame, bool throws);

// Returns the reason as text for a reader, for example "a generator that goes on".
const char* describe(PlainFrame reason);

// A view: it owns nothing and is valid only within the callback that got it. All objects that it
// returns are borrowed from the frame, unless it is an `Object`. The caller of the frame clears it in
// 3.11, so whatever is left in the slots then is given up there. Somebody who runs other code may
// swap the function's `__code__`: the frame keeps its own.
class FrameView {
 public:
  explicit FrameView(_PyInterpreterFrame* frame) : frame_(frame) {}

  PyCodeObject* code() const;
  PyFunctionObject* function() const;
  PyObject* globals() const;   // a dict
  PyObject* builtins() const;  // mostly a dict
  // The cells of the function's free variables, in their order in the code: a tuple, or null.
  PyObject* closure() const;

  // Locals, cells and free variables, as `DecodedCode::slots` has them; not the stack.
  int slotCount() const;
  // The slots as an array, each a borrowed object or null.
  PyObject* const* slots() const;
  // Returns the borrowed object, or null. Throws BytecodeError if there is no such slot.
  PyObject* slot(int index) const;

  // Moves the object out of the slot, which is null then. The frame stays valid for those who clear
  // it, but whoever runs it plainly afterwards finds the variable unbound: put it back before.
  Object takeSlot(int index);
  // Gives up the old object, after the slot holds the new one.
  void setSlot(int index, Object value);
  // Gives up all objects of the slots, each after its slot was cleared. Finalizers may run.
  void clearSlots();

  bool ownedByGenerator() const;
  bool hasLocals() const;  // whether f_locals is set
  bool started() const;

  _PyInterpreterFrame* raw() const { return frame_; }

 private:
  _PyInterpreterFrame* frame_;
};

}  // namespace wick::capture
