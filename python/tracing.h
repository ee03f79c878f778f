// Recording for wick.jit.trace: where calls come from, numbers that a trace follows, warnings.
//
// A number that depends on sizes of inputs is an object of a class derived from int or float
// (wick/jit/_numbers.py): it is the number for all of Python, and a Value of the graph for calls of
// operators and for arithmetic.
#pragma once

#include "python/call_plan.h"
#include "python/object.h"
#include "tracing/tracer.h"

namespace wick::python {

// Notes the line of Python that calls, for the nodes that follow.
void notePlace(tracing::Tracer& tracer);
// The same for what is recorded of lazy tensors, if there are any.
void noteLazyPlace();

// TracerWarning that the value becomes a constant: "Converting a tensor to a Python " and `what`.
// Nothing while no trace is active. Throws where the warning is made an exception.
void warnOfConstant(const char* what);
// TracerWarning with this text, while a trace is active.
void warnOfTrace(const char* text);

// The Value of a number that the trace follows, or of a list or tuple with such numbers; null for
// all else. `value` is the object as the call takes it.
Value* followedValue(tracing::Tracer& tracer, PyObject* object, const IValue& value);
// Follows numbers of another recording than wick.jit.trace's.
class NumberFollower {
 public:
  virtual ~NumberFollower() = default;
  // Whether the object is a number that is followed.
  virtual bool isNumber(PyObject* object) const = 0;
  // The Value of such a number; null where it has become a constant.
  virtual Value* find(PyObject* number) = 0;
  // An object for a number with its Value.
  virtual PyObject* object(int64_t number, Value* value) = 0;
};

// Makes one the follower of the calling thread.
class NumberFollowerScope {
 public:
  explicit NumberFollowerScope(NumberFollower* follower);
  ~NumberFollowerScope();
  NumberFollowerScope(const NumberFollowerScope&) = delete;

 private:
  NumberFollower* const before_;
};

// Whether the object is such a number.
bool isFollowed(PyObject* object);
// A number, or a list or tuple of numbers, with its Value.
PyObject* followedObject(tracing::Tracer& tracer, const IValue& number, Value* value);

// All sizes, or that of a dimension (which must be in range), as a program reads them.
PyObject* followedSizes(tracing::Tracer& tracer, const Tensor& tensor);
PyObject* followedSize(tracing::Tracer& tracer, const Tensor& tensor, int64_t dim);

// plan.run(), where `values` holds for each argument the Value that the trace follows, or null. It has
// room for all slots. That of the result is put into `result`.
IValue runTraced(const CallPlan& plan, IValue* slots, Value** values, tracing::Tracer& tracer,
                 Value*& result);

}  // namespace wick::python
