// Instructions that raise and handle exceptions, `with`, and generators.
#include <fmt/format.h>

#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/instructions.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/builtin.h"
#include "capture/values/class.h"
#include "capture/values/generator.h"
#include "capture/values/instance.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

bool isException(Variable* variable) {
  return PyType_IsSubtype(variable->type(), reinterpret_cast<PyTypeObject*>(PyExc_BaseException));
}

// The exception of an object that is raised: itself, or one that its class makes.
Variable* exceptionOf(EvalFrame& f, Variable* raised) {
  f.capture.use(raised);
  if (auto* type = dynamic_cast<ClassVariable*>(raised)) {
    if (PyType_IsSubtype(type->classObject(),
                         reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
      raised = callVariable(f.capture, type, {});
    }
  }
  if (!isException(raised)) {
    f.capture.raise(PyExc_TypeError, "exceptions must derive from BaseException");
  }
  return raised;
}

void raiseVarargs(EvalFrame& f, uint32_t arg) {
  if (arg == 0) {
    if (!f.capture.handled) f.capture.raise(PyExc_RuntimeError, "No active exception to reraise");
    throw Raised{f.capture.handled};
  }
  Variable* cause = arg == 2 ? f.pop() : nullptr;
  Variable* const raised = exceptionOf(f, f.pop());
  auto* const exception = dynamic_cast<ExceptionVariable*>(raised);
  if (cause) {
    if (!exception) breakGraph("the cause of an exception that existed before is set");
    f.capture.use(cause);
    exception->cause = cause->constant() == Py_None ? nullptr : exceptionOf(f, cause);
    exception->suppress_context = true;
  }
  if (exception && !exception->context && f.capture.handled != raised) {
    exception->context = f.capture.handled;
  }
  throw Raised{raised};
}

void reraise(EvalFrame& f, uint32_t) {
  throw Raised{f.pop()};
}

void pushExcInfo(EvalFrame& f, uint32_t) {
  Variable* const exception = f.pop();
  f.push(f.capture.make<MarkVariable>(MarkVariable::Kind::kPreviousException, f.capture.handled));
  f.push(exception);
  f.capture.handled = exception;
}

void popExcept(EvalFrame& f, uint32_t) {
  auto* const mark = dynamic_cast<MarkVariable*>(f.pop());
  if (!mark || mark->kind != MarkVariable::Kind::kPreviousException) {
    breakGraph("the end of a handler without its beginning");
  }
  f.capture.handled = mark->previous;
}

bool matches(EvalFrame& f, Variable* exception, Variable* wanted) {
  f.capture.use(wanted);
  if (auto* type = dynamic_cast<ClassVariable*>(wanted)) {
    if (!PyType_IsSubtype(type->classObject(),
                          reinterpret_cast<PyTypeObject*>(PyExc_BaseException))) {
      f.capture.raise(PyExc_TypeError,
                      "catching classes that do not inherit from BaseException is not allowed");
    }
    return PyType_IsSubtype(exception->type(), type->classObject());
  }
  if (!PyType_IsSubtype(wanted->type(), &PyTuple_Type)) {
    f.capture.raise(PyExc_TypeError,
                    "catching classes that do not inherit from BaseException is not allowed");
  }
  for (Variable* each : elementsOf(f.capture, wanted)) {
    if (matches(f, exception, each)) return true;
  }
  return false;
}

void checkExcMatch(EvalFrame& f, uint32_t) {
  Variable* const wanted = f.pop();
  f.push(f.capture.constantBool(matches(f, f.capture.use(f.peek(1)), wanted)));
}

// ---- with ----

Variable* specialMethod(EvalFrame& f, Variable* manager, const char* name) {
  const Object text = Object::checked(PyUnicode_InternFromString(name));
  PyObject* const found = findTypeItem(manager->type(), text.get());
  if (!found) {
    const bool enter = std::string_view(name) == "__enter__";
    f.capture.raise(
        PyExc_TypeError,
        fmt::format("'{}' object does not support the context manager protocol{}",
                    manager->type()->tp_name, enter ? "" : " (missed __exit__ method)"));
  }
  return bindAttribute(f.capture, found, manager, manager->type());
}

void beforeWith(EvalFrame& f, uint32_t) {
  Variable* const manager = f.capture.use(f.pop());
  Variable* const enter = specialMethod(f, manager, "__enter__");
  Variable* const exit = specialMethod(f, manager, "__exit__");
  Variable* const result = callVariable(f.capture, enter, {});
  f.push(exit);
  f.push(result);
}

void withExceptStart(EvalFrame& f, uint32_t) {
  Variable* const exception = f.peek(1);
  Variable* const exit = f.peek(4);
  Variable* const type =
      f.capture.pinned(reinterpret_cast<PyObject*>(f.capture.use(exception)->type()));
  f.push(callVariable(f.capture, exit,
                      {{type, exception, f.capture.make<TracebackVariable>(exception)}, {}}));
}

// ---- generators ----

void yieldValue(EvalFrame& f, uint32_t) {
  f.value = f.pop();
  f.status = EvalFrame::Status::kYielded;
}

void getYieldFromIter(EvalFrame& f, uint32_t) {
  Variable* const iterable = f.capture.use(f.peek(1));
  if (dynamic_cast<GeneratorVariable*>(iterable)) return;
  f.pop();
  f.push(iterate_(f.capture, iterable));
}

void send(EvalFrame& f, uint32_t) {
  Variable* const value = f.pop();
  Variable* const receiver = f.capture.use(f.peek(1));
  auto* const generator = dynamic_cast<GeneratorVariable*>(receiver);
  Variable* found = nullptr;
  Variable* result = nullptr;
  if (generator) {
    found = generator->send(f.capture, value);
    result = generator->result;
  } else if (f.capture.use(value)->constant() == Py_None) {
    found = nextOf(f.capture, receiver);
  } else {
    breakGraph("a value is sent to an iterator");
  }
  if (found) return f.push(found);
  f.pop();
  f.push(result ? result : f.capture.constant(Py_None));
  f.jump();
}

}  // namespace

void addExceptionInstructions(InstructionTable& table) {
  const auto set = [&](Op op, InstructionFunction function) {
    table[static_cast<uint8_t>(op)] = function;
  };
  set(Op::RAISE_VARARGS, raiseVarargs);
  set(Op::RERAISE, reraise);
  set(Op::PUSH_EXC_INFO, pushExcInfo);
  set(Op::POP_EXCEPT, popExcept);
  set(Op::CHECK_EXC_MATCH, checkExcMatch);
  set(Op::BEFORE_WITH, beforeWith);
  set(Op::WITH_EXCEPT_START, withExceptStart);
  set(Op::YIELD_VALUE, yieldValue);
  set(Op::GET_YIELD_FROM_ITER, getYieldFromIter);
  set(Op::SEND, send);
}

}  // namespace wick::capture
