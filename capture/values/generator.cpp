#include "capture/values/generator.h"

#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/builtin.h"
#include "capture/values/class.h"
#include "capture/values/instance.h"

namespace wick::capture {
namespace {

bool isA(Variable* exception, PyObject* type) {
  return PyType_IsSubtype(exception->type(), reinterpret_cast<PyTypeObject*>(type));
}

}  // namespace

bool GeneratorVariable::isPending() const {
  if (!begun_ || ended_) return false;
  for (const ExceptionRange& range : frame_->code->exception_ranges) {
    if (frame_->at >= range.start && frame_->at < range.end) return true;
  }
  return false;
}

Variable* GeneratorVariable::resume(Capture& capture) {
  capture.changeInSide(*this);
  if (running_) capture.raise(PyExc_ValueError, "generator already executing");
  Variable* const handled = capture.handled;
  running_ = true;
  try {
    frame_->run();
  } catch (const Raised& raised) {
    running_ = false;
    ended_ = true;
    capture.handled = handled;
    if (isA(raised.exception, PyExc_StopIteration)) {
      auto* const error = capture.make<ExceptionVariable>(
          reinterpret_cast<PyTypeObject*>(PyExc_RuntimeError),
          std::vector<Variable*>{capture.constantText("generator raised StopIteration")});
      error->cause = error->context = raised.exception;
      error->suppress_context = true;
      throw Raised{error};
    }
    throw;
  } catch (...) {
    running_ = false;
    throw;
  }
  running_ = false;
  capture.handled = handled;
  if (frame_->status == EvalFrame::Status::kYielded) return frame_->value;
  ended_ = true;
  result = frame_->value;
  return nullptr;
}

Variable* GeneratorVariable::send(Capture& capture, Variable* sent) {
  if (ended_) {
    result = nullptr;
    return nullptr;
  }
  if (!begun_ && capture.use(sent)->constant() != Py_None) {
    capture.raise(PyExc_TypeError, "can't send non-None value to a just-started generator");
  }
  // A new frame begins with RETURN_GENERATOR, which pushes nothing here; POP_TOP follows it.
  begun_ = true;
  frame_->push(sent);
  return resume(capture);
}

Variable* GeneratorVariable::next(Capture& capture) {
  return send(capture, capture.constant(Py_None));
}

Variable* GeneratorVariable::throwInto(Capture& capture, Variable* exception) {
  if (ended_ || !begun_) {
    ended_ = true;
    throw Raised{exception};
  }
  frame_->raise_first = exception;
  return resume(capture);
}

Variable* GeneratorVariable::callMethod(Capture& capture, const std::string& name,
                                        const Arguments& given) {
  if (!given.keywords.empty()) return nullptr;
  const auto orStop = [&](Variable* value) -> Variable* {
    if (value) return value;
    std::vector<Variable*> args;
    if (result && capture.use(result)->constant() != Py_None) args.push_back(result);
    capture.raiseWith(PyExc_StopIteration, std::move(args));
  };
  if (name == "send" && given.positional.size() == 1) {
    return orStop(send(capture, given.positional[0]));
  }
  if (name == "__next__" && given.positional.empty()) return orStop(next(capture));
  const size_t count = given.positional.size();
  // With three arguments: the class, the exception, and the traceback that it has.
  const bool whole = count == 3 && given.positional[2]->type() == &PyTraceBack_Type &&
                     isA(given.positional[1], PyExc_BaseException);
  if (name == "throw" && (count == 1 || whole)) {
    Variable* exception = capture.use(given.positional[whole ? 1 : 0]);
    if (auto* type = dynamic_cast<ClassVariable*>(exception)) exception = type->call(capture, {});
    if (!isA(exception, PyExc_BaseException)) return nullptr;
    return orStop(throwInto(capture, exception));
  }
  if (name == "close" && given.positional.empty()) {
    Variable* const none = capture.constant(Py_None);
    if (ended_ || !begun_) {
      ended_ = true;
      return none;
    }
    try {
      if (throwInto(capture, capture.make<ExceptionVariable>(
                                 reinterpret_cast<PyTypeObject*>(PyExc_GeneratorExit),
                                 std::vector<Variable*>{}))) {
        capture.raise(PyExc_RuntimeError, "generator ignored GeneratorExit");
      }
    } catch (const Raised& raised) {
      if (!isA(raised.exception, PyExc_GeneratorExit) &&
          !isA(raised.exception, PyExc_StopIteration)) {
        throw;
      }
    }
    return none;
  }
  return nullptr;
}

}  // namespace wick::capture
