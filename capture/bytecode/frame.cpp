#include "capture/bytecode/frame.h"

#include <fmt/format.h>

#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace wick::capture {
namespace {

constexpr int kFunctionFlags = CO_OPTIMIZED | CO_NEWLOCALS;
constexpr int kCoroutineFlags = CO_COROUTINE | CO_ASYNC_GENERATOR | CO_ITERABLE_COROUTINE;

bool hasStarted(const _PyInterpreterFrame* frame) {
  return frame->prev_instr != _PyCode_CODE(frame->f_code) - 1 || frame->frame_obj != nullptr;
}

PyObject*& slotOf(_PyInterpreterFrame* frame, int index) {
  if (index < 0 || index >= frame->f_code->co_nlocalsplus) {
    throw BytecodeError(
        fmt::format("slot {} of a frame with {}", index, frame->f_code->co_nlocalsplus));
  }
  return frame->localsplus[index];
}

}  // namespace

PlainFrame plainReason(const _PyInterpreterFrame* frame, bool throws) {
  if (throws) return PlainFrame::kThrows;
  if (frame->owner == FRAME_OWNED_BY_GENERATOR) return PlainFrame::kResumed;
  if (frame->f_locals) return PlainFrame::kHasLocals;
  if (frame->owner != FRAME_OWNED_BY_THREAD || hasStarted(frame)) return PlainFrame::kStarted;
  const int flags = frame->f_code->co_flags;
  if ((flags & kFunctionFlags) != kFunctionFlags) return PlainFrame::kNotFunction;
  if (flags & kCoroutineFlags) return PlainFrame::kCoroutine;
  return PlainFrame::kCanBeCaptured;
}

const char* describe(PlainFrame reason) {
  switch (reason) {
    case PlainFrame::kCanBeCaptured:
      return "a function that starts";
    case PlainFrame::kThrows:
      return "an exception that is thrown into a generator";
    case PlainFrame::kResumed:
      return "a generator that goes on";
    case PlainFrame::kStarted:
      return "a frame that has started";
    case PlainFrame::kHasLocals:
      return "a module, a class body or exec()";
    case PlainFrame::kNotFunction:
      return "code that is no function's";
    case PlainFrame::kCoroutine:
      return "a coroutine";
  }
  return "an unknown kind of frame";
}

PyCodeObject* FrameView::code() const {
  return frame_->f_code;
}

PyFunctionObject* FrameView::function() const {
  return frame_->f_func;
}

PyObject* FrameView::globals() const {
  return frame_->f_globals;
}

PyObject* FrameView::builtins() const {
  return frame_->f_builtins;
}

PyObject* FrameView::closure() const {
  return frame_->f_func->func_closure;
}

int FrameView::slotCount() const {
  return frame_->f_code->co_nlocalsplus;
}

PyObject* const* FrameView::slots() const {
  return frame_->localsplus;
}

PyObject* FrameView::slot(int index) const {
  return slotOf(frame_, index);
}

Object FrameView::takeSlot(int index) {
  return Object::own(std::exchange(slotOf(frame_, index), nullptr));
}

void FrameView::setSlot(int index, Object value) {
  PyObject*& place = slotOf(frame_, index);
  Object old = Object::own(std::exchange(place, value.leak()));
}

void FrameView::clearSlots() {
  const int count = slotCount();
  for (int i = 0; i < count; ++i) Py_CLEAR(frame_->localsplus[i]);
}

bool FrameView::ownedByGenerator() const {
  return frame_->owner == FRAME_OWNED_BY_GENERATOR;
}

bool FrameView::hasLocals() const {
  return frame_->f_locals != nullptr;
}

bool FrameView::started() const {
  return hasStarted(frame_);
}

}  // namespace wick::capture
