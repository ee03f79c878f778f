#include "capture/bytecode/code_data.h"

#include <vector>

namespace wick::capture {
namespace {

Py_ssize_t code_index = -1;  // of _PyCode_GetExtra

// Keeps the exception that is set while destructors run.
class KeptException {
 public:
  KeptException() { PyErr_Fetch(&type_, &value_, &traceback_); }
  KeptException(const KeptException&) = delete;
  ~KeptException() { PyErr_Restore(type_, value_, traceback_); }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *traceback_ = nullptr;
};

}  // namespace

// The list of all slots, which has no end of its own: code objects may outlive whatever is static.
class CodeRegistry {
 public:
  static CodeSlot* first;

  // Called with the data of a code object that dies, or with null.
  static void free(void* pointer) {
    CodeSlot* slot = static_cast<CodeSlot*>(pointer);
    if (!slot) return;
    (slot->previous_ ? slot->previous_->next_ : first) = slot->next_;
    if (slot->next_) slot->next_->previous_ = slot->previous_;
    CodeData* data = slot->data_;
    delete slot;
    CodeSlot::release(data);
  }

  static CodeSlot* findOrMake(PyCodeObject* code) {
    if (!code || !PyCode_Check(code)) {
      PyErr_SetString(PyExc_TypeError, "not a code object");
      throw PythonError();
    }
    prepareCodeData();
    if (CodeSlot* found = CodeSlot::find(code)) return found;
    auto slot = std::make_unique<CodeSlot>();
    slot->code_ = code;
    if (_PyCode_SetExtra(reinterpret_cast<PyObject*>(code), code_index, slot.get()) < 0) {
      if (!PyErr_Occurred()) PyErr_NoMemory();
      throw PythonError();
    }
    slot->next_ = first;
    if (first) first->previous_ = slot.get();
    return first = slot.release();
  }

  static CodeData* exchange(CodeSlot* slot, CodeData* data) {
    return std::exchange(slot->data_, data);
  }
  static void setSkipped(CodeSlot* slot, bool skipped) { slot->skipped_ = skipped; }
  static CodeSlot* next(CodeSlot* slot) { return slot->next_; }

  // Returns the code objects that have a slot. One that is about to die is left out.
  static std::vector<Object> codes() {
    std::vector<Object> result;
    for (CodeSlot* slot = first; slot; slot = slot->next_) {
      PyObject* code = reinterpret_cast<PyObject*>(slot->code_);
      if (Py_REFCNT(code) > 0) result.push_back(Object::share(code));
    }
    return result;
  }
};

CodeSlot* CodeRegistry::first = nullptr;

CodeSlot* CodeSlot::find(PyCodeObject* code) {
  if (code_index < 0) return nullptr;
  void* found = nullptr;
  if (_PyCode_GetExtra(reinterpret_cast<PyObject*>(code), code_index, &found) < 0) {
    PyErr_Clear();  // only for objects that are no code
    return nullptr;
  }
  return static_cast<CodeSlot*>(found);
}

void CodeSlot::release(CodeData* data) {
  if (!data || --data->owners_ > 0) return;
  const KeptException kept;
  delete data;
}

void prepareCodeData() {
  if (PyInterpreterState_Get() != PyInterpreterState_Main()) {
    PyErr_SetString(PyExc_RuntimeError, "capture works in the main interpreter only");
    throw PythonError();
  }
  if (code_index >= 0) return;
  code_index = _PyEval_RequestCodeExtraIndex(&CodeRegistry::free);
  if (code_index >= 0) return;
  PyErr_SetString(PyExc_RuntimeError, "no index for data of code objects is left");
  throw PythonError();
}

CodeData* codeData(PyCodeObject* code) {
  const CodeSlot* slot = CodeSlot::find(code);
  return slot ? slot->data() : nullptr;
}

void setCodeData(PyCodeObject* code, std::unique_ptr<CodeData> data) {
  CodeSlot* slot = CodeRegistry::findOrMake(code);
  CodeSlot::release(CodeRegistry::exchange(slot, data.release()));
}

void setSkipped(PyCodeObject* code, bool skipped) {
  CodeRegistry::setSkipped(CodeRegistry::findOrMake(code), skipped);
}

void forEachCode(const std::function<void(PyCodeObject*, CodeData*)>& visit) {
  for (const Object& each : CodeRegistry::codes()) {
    PyCodeObject* code = reinterpret_cast<PyCodeObject*>(each.get());
    const CodeSlot* slot = CodeSlot::find(code);
    if (slot && (slot->data() || slot->skipped())) visit(code, slot->data());
  }
}

void resetCodes() {
  for (const Object& each : CodeRegistry::codes()) {
    CodeSlot* slot = CodeSlot::find(reinterpret_cast<PyCodeObject*>(each.get()));
    if (!slot) continue;
    CodeRegistry::setSkipped(slot, false);
    CodeSlot::release(CodeRegistry::exchange(slot, nullptr));
  }
}

size_t countCodeData() {
  size_t count = 0;
  for (CodeSlot* slot = CodeRegistry::first; slot; slot = CodeRegistry::next(slot)) {
    if (slot->data()) ++count;
  }
  return count;
}

}  // namespace wick::capture
