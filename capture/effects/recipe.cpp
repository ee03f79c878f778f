#include "capture/effects/recipe.h"

#include <fmt/format.h>
#include <frameobject.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "capture/bytecode/cached_call.h"
#include "capture/bytecode/frame_hook.h"
#include "capture/bytecode/instance.h"
#include "capture/guards/check.h"
#include "capture/world.h"

namespace wick::capture {
namespace {

void check(int status) {
  if (status < 0) throw PythonError();
}

// Whether the dict keeps the order of its keys beside them. Others are changed without the methods
// of their classes.
bool isOrdered(PyObject* dict) {
  return PyODict_Check(dict);
}

// Puts an entry for a line of a code in front of the exception's traceback.
void addTraceback(PyObject* exception, PyObject* code, int line) {
  const Object globals = Object::checked(PyDict_New());
  const Object frame = Object::checked(reinterpret_cast<PyObject*>(PyFrame_New(
      PyThreadState_Get(), reinterpret_cast<PyCodeObject*>(code), globals.get(), nullptr)));
  auto* const place = reinterpret_cast<PyFrameObject*>(frame.get());
  setFrameLine(place, line);
  PyErr_Restore(Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(exception))), Py_NewRef(exception),
                PyException_GetTraceback(exception));
  const int status = PyTraceBack_Here(place);
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Object kind = Object::own(type), same = Object::own(value), made = Object::own(traceback);
  if (status < 0 || !made) throw PythonError();
  check(PyException_SetTraceback(exception, made.get()));
}

class Runner {
 public:
  Runner(std::vector<Object>& registers, const World& world)
      : registers_(registers), world_(world) {}

  Object run(const Step& step) {
    switch (step.kind) {
      case StepKind::kConstant:
        return step.object;
      case StepKind::kTuple:
        return tuple(step, 0);
      case StepKind::kList:
        return Object::checked(PySequence_List(tuple(step, 0).get()));
      case StepKind::kSet:
        return Object::checked(PySet_New(tuple(step, 0).get()));
      case StepKind::kDict:
        return dict(step, 0);
      case StepKind::kCall:
        return call(step);
      case StepKind::kSlice:
        return Object::checked(PySlice_New(at(step, 0), at(step, 1), at(step, 2)));
      case StepKind::kNew:
        return fresh(at(step, 0));
      case StepKind::kCell:
        return Object::checked(PyCell_New(step.arguments.empty() ? nullptr : at(step, 0)));
      case StepKind::kMethod:
        return Object::checked(PyMethod_New(at(step, 0), at(step, 1)));
      case StepKind::kFunction:
        return function(step);
      case StepKind::kHandled: {
        const Object found = Object::own(PyErr_GetHandledException());
        return found ? found : Object::share(Py_None);
      }
      case StepKind::kAttribute:
        return Object::checked(PyObject_GenericGetAttr(at(step, 0), step.object.get()));
      default:
        effect(step);
        return {};
    }
  }

 private:
  PyObject* at(const Step& step, size_t i) const {
    return registers_[static_cast<size_t>(step.arguments[i])].get();
  }

  Object tuple(const Step& step, size_t first) const {
    const size_t count = step.arguments.size() - first;
    Object made = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
    for (size_t i = 0; i < count; ++i) {
      PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), Py_NewRef(at(step, first + i)));
    }
    return made;
  }

  Object dict(const Step& step, size_t first) const {
    Object made = Object::checked(PyDict_New());
    fill(made.get(), step, first);
    return made;
  }

  void fill(PyObject* dict, const Step& step, size_t first) const {
    for (size_t i = first; i + 1 < step.arguments.size(); i += 2) {
      check(PyObject_SetItem(dict, at(step, i), at(step, i + 1)));
    }
  }

  std::vector<PyObject*> objectsFrom(const Step& step, size_t first) const {
    std::vector<PyObject*> all;
    for (size_t i = first; i < step.arguments.size(); ++i) all.push_back(at(step, i));
    return all;
  }

  static size_t numNames(const Step& step) {
    return step.object ? static_cast<size_t>(PyTuple_GET_SIZE(step.object.get())) : 0;
  }

  Object call(const Step& step) const {
    const std::vector<PyObject*> arguments = objectsFrom(step, 1);
    std::optional<PauseHook> pause;
    if (step.number != 0) pause.emplace();
    return Object::checked(PyObject_Vectorcall(
        at(step, 0), arguments.data(), arguments.size() - numNames(step), step.object.get()));
  }

  static Object fresh(PyObject* type) {
    static PyObject* const nothing = PyTuple_New(0);
    auto* const object = reinterpret_cast<PyTypeObject*>(type);
    if (!nothing) throw PythonError();
    return Object::checked(PyBaseObject_Type.tp_new(object, nothing, nullptr));
  }

  Object function(const Step& step) const {
    size_t next = 2;
    Object made =
        Object::checked(PyFunction_NewWithQualName(step.object.get(), at(step, 0), at(step, 1)));
    if (step.number & kHasDefaults) check(PyFunction_SetDefaults(made.get(), at(step, next++)));
    if (step.number & kHasKeywordDefaults) {
      check(PyFunction_SetKwDefaults(made.get(), at(step, next++)));
    }
    if (step.number & kHasClosure) check(PyFunction_SetClosure(made.get(), at(step, next++)));
    if (step.number & kHasAnnotations) {
      // A tuple, as the instruction has it, or a dict.
      auto* const function = reinterpret_cast<PyFunctionObject*>(made.get());
      Py_XSETREF(function->func_annotations, Py_NewRef(at(step, next++)));
    }
    return made;
  }

  void effect(const Step& step) const {
    PyObject* const target = step.arguments.empty() ? nullptr : at(step, 0);
    switch (step.kind) {
      case StepKind::kSetItem:
        return check(isOrdered(target) ? PyObject_SetItem(target, at(step, 1), at(step, 2))
                                       : PyDict_SetItem(target, at(step, 1), at(step, 2)));
      case StepKind::kDeleteItem:
        return check(isOrdered(target) ? PyObject_DelItem(target, at(step, 1))
                                       : PyDict_DelItem(target, at(step, 1)));
      case StepKind::kReplaceList:
        return check(PyList_SetSlice(target, 0, PyList_GET_SIZE(target), tuple(step, 1).get()));
      case StepKind::kSetInstanceItem:
        return check(PyObject_GenericSetAttr(target, step.object.get(), at(step, 1)));
      case StepKind::kDeleteInstanceItem:
        return check(PyObject_GenericSetAttr(target, step.object.get(), nullptr));
      case StepKind::kSetCell:
        return check(PyCell_Set(target, step.arguments.size() > 1 ? at(step, 1) : nullptr));
      case StepKind::kContext: {
        Object handled = Object::own(PyErr_GetHandledException());
        const Object before = Object::own(PyException_GetContext(target));
        if (handled && !before && handled.get() != target) {
          PyException_SetContext(target, handled.leak());
        }
        return;
      }
      case StepKind::kTraceback:
        return addTraceback(target, step.object.get(), static_cast<int>(step.number));
      case StepKind::kGradMode:
        return world_.setGradMode(step.number != 0);
      case StepKind::kAutocast:
        return world_.setAutocast(step.number);
      case StepKind::kKeepResult: {
        constexpr size_t kFirst = 2;
        const std::vector<PyObject*> given = objectsFrom(step, kFirst);
        return keepResult(target, given.data(), given.size() - numNames(step), step.object.get(),
                          at(step, 1));
      }
      default:
        throw InternalError(__FILE__, __LINE__, "a recipe has a step of an unknown kind");
    }
  }

  std::vector<Object>& registers_;
  const World& world_;
};

const char* nameOf(StepKind kind) {
  switch (kind) {
    case StepKind::kConstant:
      return "constant";
    case StepKind::kTuple:
      return "tuple";
    case StepKind::kList:
      return "list";
    case StepKind::kSet:
      return "set";
    case StepKind::kDict:
      return "dict";
    case StepKind::kCall:
      return "call";
    case StepKind::kSlice:
      return "slice";
    case StepKind::kNew:
      return "new";
    case StepKind::kCell:
      return "cell";
    case StepKind::kMethod:
      return "method";
    case StepKind::kFunction:
      return "function";
    case StepKind::kAttribute:
      return "attribute";
    case StepKind::kSetItem:
      return "set item";
    case StepKind::kDeleteItem:
      return "delete item";
    case StepKind::kReplaceList:
      return "replace list";
    case StepKind::kSetInstanceItem:
      return "set attribute";
    case StepKind::kDeleteInstanceItem:
      return "delete attribute";
    case StepKind::kSetCell:
      return "set cell";
    case StepKind::kHandled:
      return "handled exception";
    case StepKind::kContext:
      return "context";
    case StepKind::kTraceback:
      return "traceback";
    case StepKind::kGradMode:
      return "set gradient mode";
    case StepKind::kAutocast:
      return "set autocast";
    case StepKind::kKeepResult:
      return "keep result";
  }
  return "?";
}

}  // namespace

void Recipe::run(std::vector<Object>& registers, const World& world) const {
  registers.resize(static_cast<size_t>(num_registers));
  Runner runner(registers, world);
  for (const Step& step : steps) {
    Object made = runner.run(step);
    if (step.result >= 0) registers[static_cast<size_t>(step.result)] = std::move(made);
  }
}

bool Recipe::changesObjects(int num_kept) const {
  std::unordered_set<int> made;
  for (const Step& each : steps) {
    if (each.kind == StepKind::kGradMode || each.kind == StepKind::kAutocast) return true;
    if (each.kind == StepKind::kConstant) continue;
    if (each.kind == StepKind::kCall &&
        std::ranges::any_of(each.arguments, [&](int at) { return at < num_kept; })) {
      return true;
    }
    if (each.result >= 0) {
      made.insert(each.result);
    } else if (!each.arguments.empty() && made.count(each.arguments[0]) == 0) {
      return true;
    }
  }
  return false;
}

std::vector<std::string> Recipe::lines() const {
  std::vector<std::string> lines;
  for (const Step& step : steps) {
    std::string line = step.result >= 0 ? fmt::format("r{} = {}", step.result, nameOf(step.kind))
                                        : nameOf(step.kind);
    for (const int argument : step.arguments) line += fmt::format(" r{}", argument);
    if (step.object) line += " " + shown(step.object.get());
    if (step.number != 0) line += fmt::format(" #{}", step.number);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace wick::capture
