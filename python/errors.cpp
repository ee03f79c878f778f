#include <cerrno>
#include <deque>
#include <new>
#include <string_view>

#include "core/error_types.h"
#include "python/module.h"
#include "serialization/archive_reader.h"
#include "serialization/file_kind.h"

namespace wick::python {
namespace {

PyObject* compile_error = nullptr;
PyObject* load_error = nullptr;
PyObject* file_not_found_error = nullptr;
PyObject* is_a_directory_error = nullptr;
PyObject* permission_error = nullptr;
PyObject* file_error = nullptr;
PyObject* internal_error = nullptr;

// One of Python's own exception classes, or null.
PyObject* builtinException(const std::string& name) {
  PyObject* builtins = PyEval_GetBuiltins();
  PyObject* found = builtins ? PyDict_GetItemString(builtins, name.c_str()) : nullptr;
  return found && PyExceptionClass_Check(found) ? found : nullptr;
}

// A program's class stands under a qualified name: the last part names it.
PyObject* classOf(const RuntimeError& error) {
  std::string name = error.className();
  name.erase(0, name.rfind('.') + 1);
  PyObject* found = builtinException(name);
  return found ? found : PyExc_RuntimeError;
}

// Not every message is text: it may quote bytes of a program.
Owned textOf(std::string_view message) {
  return Owned(PyUnicode_DecodeUTF8(message.data(), static_cast<Py_ssize_t>(message.size()),
                                    "backslashreplace"));
}

void set(PyObject* type, std::string_view message) {
  const Owned text = textOf(message);
  if (!text) return;
  // Some classes of Python are not made of a text alone.
  const Owned made(PyObject_CallOneArg(type, text.get()));
  if (made) return PyErr_SetObject(type, made.get());
  PyErr_Clear();
  PyErr_SetObject(PyExc_RuntimeError, text.get());
}

// Exceptions of Python that are on their way through C++, which knows their class and text alone. The one
// itself comes out, where it is still known: with its own class, its attributes and its traceback.
struct Underway {
  std::string class_name, text;
  PyObject* exception;
};
std::deque<Underway>& underway() {
  static auto* all = new std::deque<Underway>();  // under the GIL
  return *all;
}
constexpr size_t kMostUnderway = 4;

// The exception behind an error, or null.
Owned takeUnderway(const RuntimeError& error) {
  std::deque<Underway>& all = underway();
  for (auto each = all.rbegin(); each != all.rend(); ++each) {
    if (each->class_name != error.className() || each->text != error.brief()) continue;
    Owned found(each->exception);
    all.erase(std::next(each).base());
    return found;
  }
  return Owned();
}

// Raises the exception again; where it went through programs, their call stack is a note of it.
bool setUnderway(const RuntimeError& error) {
  const Owned exception = takeUnderway(error);
  if (!exception) return false;
  if (!error.frames().empty()) {
    const Owned note = textOf(error.what());
    const Owned added(note ? PyObject_CallMethod(exception.get(), "add_note", "O", note.get())
                           : nullptr);
    if (!added) PyErr_Clear();
  }
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.get())), exception.get());
  return true;
}

// For files that cannot be opened: Python's own classes, which are LoadErrors as well.
PyObject* fileErrorClass(int code) {
  switch (code) {
    case ENOENT:
      return file_not_found_error;
    case EISDIR:
      return is_a_directory_error;
    case EACCES:
    case EPERM:
      return permission_error;
    default:
      return file_error;
  }
}

void setFileError(const FileError& error) {
  const Owned reason = textOf(error.reason());
  const Owned path(PyUnicode_DecodeFSDefaultAndSize(error.path().data(),
                                                    static_cast<Py_ssize_t>(error.path().size())));
  if (!reason || !path) return;
  PyObject* type = fileErrorClass(error.code());
  const Owned made(PyObject_CallFunction(type, "iOO", error.code(), reason.get(), path.get()));
  if (made) PyErr_SetObject(type, made.get());
}

bool finalizing() {
  return !Py_IsInitialized() || _Py_IsFinalizing() != 0;
}

}  // namespace

void raise(PyObject* type, const std::string& message) {
  set(type, message);
  throw PythonError();
}

void setPythonError() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    // Set already.
  } catch (const RuntimeError& error) {
    // Interrupted by a signal: its handler decides what is raised.
    if (error.className() == "KeyboardInterrupt" && PyErr_CheckSignals() != 0) return;
    if (setUnderway(error)) return;
    // Python writes the class itself.
    std::string_view message = error.what();
    const std::string prefix = error.className() + ": ";
    if (message.starts_with(prefix)) message.remove_prefix(prefix.size());
    set(classOf(error), message);
  } catch (const CompileError& error) {
    set(compile_error, error.what());
  } catch (const FileError& error) {
    setFileError(error);
  } catch (const LoadError& error) {
    set(load_error, messageFor(error, Interface::Python));
  } catch (const InternalError& error) {
    set(internal_error, error.what());
  } catch (const UsageError& error) {
    set(PyExc_TypeError, error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    set(PyExc_RuntimeError, error.what());
  } catch (...) {
    set(PyExc_RuntimeError, "unknown C++ exception");
  }
}

void throwFromPython() {
  PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Owned held_type(type), held_value(value), held_trace(trace);
  std::string name = "RuntimeError", message = "an exception of Python";
  if (type && PyType_Check(type)) name = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  if (value) {
    const Owned text(PyObject_Str(value));
    const char* bytes = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
    if (bytes) message = bytes;
  }
  PyErr_Clear();
  if (value) {
    if (trace) PyException_SetTraceback(value, trace);
    std::deque<Underway>& all = underway();
    all.push_back({name, message, Py_NewRef(value)});
    if (all.size() > kMostUnderway) {
      const Owned forgotten(all.front().exception);
      all.pop_front();
    }
  }
  throw RuntimeError(message, name);
}

void addErrorClasses(PyObject* module) {
  const auto add = [module](const char* name, const char* doc, PyObject*& place) {
    const std::string full = std::string("wick.") + name;
    place =
        checked(PyErr_NewExceptionWithDoc(full.c_str(), doc, PyExc_RuntimeError, nullptr)).leak();
    check(PyModule_AddObjectRef(module, name, place));
  };
  add("CompileError", "A program's text is not valid TorchScript.", compile_error);
  add("LoadError", "A file is not what it claims to be.", load_error);
  add("InternalError", "A mistake of Wick itself.", internal_error);
  // The private classes have the names of Python's, which messages show.
  const auto derive = [](const char* name, PyObject* python_class, PyObject*& place) {
    const Owned bases(PyTuple_Pack(2, python_class, load_error));
    if (!bases) throw PythonError();
    const std::string full = std::string("wick.") + name;
    place = checked(PyErr_NewException(full.c_str(), bases.get(), nullptr)).leak();
  };
  derive("FileNotFoundError", PyExc_FileNotFoundError, file_not_found_error);
  derive("IsADirectoryError", PyExc_IsADirectoryError, is_a_directory_error);
  derive("PermissionError", PyExc_PermissionError, permission_error);
  derive("OSError", PyExc_OSError, file_error);
}

WithGil::WithGil() : usable_(!finalizing()) {
  continueInPython();
  if (usable_) state_ = PyGILState_Ensure();
}

WithGil::~WithGil() {
  if (usable_) PyGILState_Release(state_);
  returnFromPython();
}

SharedObject::~SharedObject() {
  const WithGil gil;
  if (gil.usable()) Py_XDECREF(object_);
}

}  // namespace wick::python
