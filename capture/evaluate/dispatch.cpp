#include "capture/evaluate/dispatch.h"

#include "capture/evaluate/capture.h"
#include "capture/evaluate/handlers.h"
#include "capture/evaluate/protocol.h"
#include "capture/guards/check.h"
#include "capture/values/dict.h"
#include "capture/values/function.h"

namespace wick::capture {
namespace {

// Returns the code that all such functions share; null if there is none.
PyObject* dispatchCode() {
  static PyObject* const found = [] {
    PyObject* const maker = libraryObject("functools", "singledispatch");
    if (!PyFunction_Check(maker)) return static_cast<PyObject*>(nullptr);
    auto* const code = reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(maker));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(code->co_consts); ++i) {
      PyObject* const each = PyTuple_GET_ITEM(code->co_consts, i);
      if (!PyCode_Check(each)) continue;
      if (is(reinterpret_cast<PyCodeObject*>(each)->co_name, "dispatch")) return each;
    }
    return static_cast<PyObject*>(nullptr);
  }();
  return found;
}

// Returns the cell of a variable of the outer function.
CellVariable* cellOf(Capture& capture, FunctionVariable& function, const char* name) {
  const Object names = Object::checked(PyCode_GetFreevars(function.code()));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names.get()); ++i) {
    if (!is(PyTuple_GET_ITEM(names.get(), i), name)) continue;
    auto* const cell = capture.as<CellVariable>(function.closureCell(capture, static_cast<int>(i)));
    if (cell) return cell;
  }
  breakGraph("a function of functools.singledispatch without its variables");
}

}  // namespace

Variable* callDispatch(Capture& capture, FunctionVariable& function, const Arguments& given) {
  if (!function.object || function.codeObject() != dispatchCode()) return nullptr;
  PyObject* const type =
      argumentCount(given) == 1 ? capture.use(given.positional[0])->constant() : nullptr;
  if (!type || !PyType_Check(type)) breakGraph("singledispatch for an object that is no class");
  // The result depends on the classes that were registered, and on the class, whose version is
  // guarded. Each registration forgets all that was found before.
  auto* const registry =
      capture.as<DictVariable>(cellOf(capture, function, "registry")->contents(capture));
  if (!registry || registry->modified) {
    breakGraph("singledispatch with functions that were registered just now");
  }
  const auto implementations = registry->items(capture);
  CellVariable* const token = cellOf(capture, function, "cache_token");
  if (!token->object || token->modified) breakGraph("singledispatch that is made just now");
  if (PyCell_GET(token->object.get()) != Py_None) {
    // Abstract classes may have got others since.
    capture.guards.add(capture.guards.root(Access::kFunction),
                       {Check::Kind::kAbstractToken, {}, abstractToken(), {}});
  }
  const Object found = capture.concretely(
      [&] { return Object::checked(PyObject_CallOneArg(function.object.get(), type)); });
  for (const auto& [key, value] : implementations) {
    if (value->object.get() == found.get()) return value;
  }
  breakGraph("singledispatch finds a function that is not registered");
}

}  // namespace wick::capture
