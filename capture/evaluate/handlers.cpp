#include "capture/evaluate/handlers.h"

#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/values/constant.h"
#include "capture/values/sequence.h"
#include "capture/values/set.h"

namespace wick::capture {

size_t argumentCount(const Arguments& given) {
  return given.keywords.empty() ? given.positional.size() : SIZE_MAX;
}

Variable* keyword(const Arguments& given, const char* name) {
  for (const auto& [key, value] : given.keywords) {
    if (is(key.get(), name)) return value;
  }
  return nullptr;
}

Variable* argument(const Arguments& given, size_t index, const char* name) {
  return index < given.positional.size() ? given.positional[index] : keyword(given, name);
}

bool onlyKeywords(const Arguments& given, std::initializer_list<const char*> names) {
  for (const auto& [key, value] : given.keywords) {
    bool known = false;
    for (const char* name : names) known |= is(key.get(), name);
    if (!known) return false;
  }
  return true;
}

Variable* callConcretely(Capture& capture, PyObject* function, const Arguments& given) {
  std::vector<Object> kept;
  std::vector<PyObject*> objects;
  for (Variable* each : given.positional) {
    capture.use(each);
    if (each->constant()) {
      kept.push_back(Object::share(each->constant()));
    } else if (dynamic_cast<SequenceVariable*>(each) || dynamic_cast<SetVariable*>(each)) {
      kept.push_back(capture.objectFor(each));
      if (!holdsConstantsOnly(kept.back().get()) && !PyAnySet_Check(kept.back().get())) {
        return nullptr;
      }
    } else {
      return nullptr;
    }
    objects.push_back(kept.back().get());
  }
  if (!given.keywords.empty()) return nullptr;
  return capture.concretely([&] {
    return wrapComputed(capture, Object::checked(PyObject_Vectorcall(function, objects.data(),
                                                                     objects.size(), nullptr)));
  });
}

void addMethod(Handlers& handlers, PyTypeObject* type, const char* name, Handler handler) {
  const Object text = Object::checked(PyUnicode_InternFromString(name));
  if (PyObject* found = findTypeItem(type, text.get())) handlers[found] = handler;
  PyErr_Clear();
}

void addFrom(Handlers& handlers, const char* module, const char* name, Handler handler) {
  const Object from = Object::own(PyImport_ImportModule(module));
  const Object found = from ? Object::own(PyObject_GetAttrString(from.get(), name)) : Object();
  if (!found) {
    PyErr_Clear();
    return;
  }
  handlers[found.get()] = handler;
}

}  // namespace wick::capture
