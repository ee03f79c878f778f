// Texts that Python makes of values: str(), format(), f-strings, str.format().
#include <fmt/format.h>

#include <optional>
#include <string>

#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/derived_dict.h"
#include "capture/values/dict.h"
#include "capture/values/identity.h"
#include "capture/values/instance.h"
#include "capture/values/sequence.h"

namespace wick::capture {

namespace {

// The text of an exception whose class has no text of its own; null for others.
Variable* textOf(Capture& capture, ExceptionVariable& exception, int conversion,
                 Variable* specification) {
  if (specification) return nullptr;
  for (const char* name : {"__str__", "__repr__", "__format__"}) {
    PyObject* const found = specialMethod(exception, name);
    if (found && PyFunction_Check(found)) return nullptr;
  }
  auto* const args = capture.make<TupleVariable>(exception.args, &PyTuple_Type);
  const Object whole = capture.objectFor(args);
  if (!holdsConstantsOnly(whole.get())) {
    breakGraph("the text of an exception with tensors or objects");
  }
  // An exception of the class itself: its constructor in C takes the arguments.
  return capture.concretely([&] {
    const Object maker = Object::checked(PyObject_GetAttrString(PyExc_BaseException, "__new__"));
    const Object first =
        Object::checked(PyTuple_Pack(1, reinterpret_cast<PyObject*>(exception.type())));
    const Object all = Object::checked(PySequence_Concat(first.get(), whole.get()));
    const Object made = Object::checked(PyObject_CallObject(maker.get(), all.get()));
    return capture.constant(
        Object::checked(conversion == 2 ? PyObject_Repr(made.get()) : PyObject_Str(made.get()))
            .get());
  });
}

// Returns what ascii() makes of an object with this repr().
Variable* escaped(Capture& capture, Variable* text) {
  if (!text->constant() || !PyUnicode_Check(text->constant())) {
    breakGraph("a text of a class derived from str");
  }
  const Object bytes =
      Object::checked(PyUnicode_AsEncodedString(text->constant(), "ascii", "backslashreplace"));
  return capture.constant(
      Object::checked(PyUnicode_FromEncodedObject(bytes.get(), "ascii", nullptr)).get());
}

}  // namespace

Variable* formatted(Capture& capture, Variable* value, int conversion, Variable* specification) {
  capture.use(value);
  if (specification) capture.use(specification);
  const auto text = [&](PyObject* object) {
    return capture.concretely([&] {
      Object shown = Object::share(object);
      if (conversion == 1) shown = Object::checked(PyObject_Str(object));
      if (conversion == 2) shown = Object::checked(PyObject_Repr(object));
      if (conversion == 3) shown = Object::checked(PyObject_ASCII(object));
      PyObject* const wanted = specification ? specification->constant() : nullptr;
      if (specification && !wanted) breakGraph("a format that is no constant");
      return capture.constant(Object::checked(PyObject_Format(shown.get(), wanted)).get());
    });
  };
  if (PyObject* constant = value->constant()) return text(constant);
  auto* const derived = dynamic_cast<DerivedDictVariable*>(value);
  const bool has_text =
      derived && (derived->overrides("__repr__") || derived->overrides("__str__") ||
                  derived->overrides("__format__"));
  if (!has_text && (dynamic_cast<SequenceVariable*>(value) || dynamic_cast<DictVariable*>(value))) {
    const Object whole = derived ? capture.elementsFor(value) : capture.objectFor(value);
    // Tensors show their values.
    if (isConstant(whole.get()) || holdsConstantsOnly(whole.get())) return text(whole.get());
    breakGraph("the text of a container with tensors or objects");
  }
  if (auto* exception = dynamic_cast<ExceptionVariable*>(value)) {
    if (Variable* found = textOf(capture, *exception, conversion, specification)) return found;
  }
  if (dynamic_cast<InstanceVariable*>(value) || has_text) {
    if (conversion != 0 && specification) {
      return formatted(capture, formatted(capture, value, conversion, nullptr), 0, specification);
    }
    if (conversion == 3) return escaped(capture, formatted(capture, value, 2, nullptr));
    const char* const method = conversion == 2   ? "__repr__"
                               : conversion == 1 ? "__str__"
                                                 : "__format__";
    PyObject* const found = specialMethod(*value, method);
    if (found && PyFunction_Check(found)) {
      std::vector<Variable*> given;
      if (conversion == 0)
        given.push_back(specification ? specification : capture.constantText(""));
      return callSpecial(capture, value, method, std::move(given));
    }
    // format() is str() where no format is given, and str() is repr().
    if (conversion == 0 && !specification) return formatted(capture, value, 1, nullptr);
    if (conversion == 1) return formatted(capture, value, 2, nullptr);
  }
  breakGraph(fmt::format("the text of {}", describe(*value)));
}

namespace {

// Fills the fields of a text that str.format() is called on.
class Filling {
 public:
  Filling(Capture& capture, const Arguments& given) : capture_(capture), given_(given) {}

  // Returns the text with its fields replaced; null where Python raises. Formats hold fields, too,
  // to a depth of two.
  std::optional<std::string> fill(PyObject* pattern, int depth) {
    std::string all;
    static PyObject* const kParser = libraryObject("_string", "formatter_parser");
    const Object parts = Object::own(PyObject_CallOneArg(kParser, pattern));
    if (!parts) return none();
    while (true) {
      // (literal text, field's name or None, format, conversion or None)
      const Object part = Object::own(PyIter_Next(parts.get()));
      if (!part) return PyErr_Occurred() ? none() : std::optional(all);
      all += utf8(PyTuple_GET_ITEM(part.get(), 0));
      PyObject* const name = PyTuple_GET_ITEM(part.get(), 1);
      if (name == Py_None) continue;
      Variable* const value = field(name);
      if (!value) return std::nullopt;
      const std::optional<std::string> format = formatOf(PyTuple_GET_ITEM(part.get(), 2), depth);
      const std::optional<int> conversion = conversionOf(PyTuple_GET_ITEM(part.get(), 3));
      if (!format || !conversion) return std::nullopt;
      Variable* const wanted = format->empty() ? nullptr : capture_.constantText(format->c_str());
      PyObject* const text = formatted(capture_, value, *conversion, wanted)->constant();
      if (!text || !PyUnicode_Check(text)) breakGraph("a text of a class derived from str");
      all += utf8(text);
    }
  }

 private:
  static std::optional<std::string> none() {
    PyErr_Clear();
    return std::nullopt;
  }
  static std::string utf8(PyObject* text) {
    Py_ssize_t size = 0;
    const char* const found = PyUnicode_AsUTF8AndSize(text, &size);
    if (!found) throw PythonError();
    return {found, static_cast<size_t>(size)};
  }
  static std::optional<int> conversionOf(PyObject* letter) {
    if (letter == Py_None) return 0;
    const std::string text = utf8(letter);
    if (text == "s") return 1;
    if (text == "r") return 2;
    return text == "a" ? std::optional(3) : std::nullopt;
  }

  std::optional<std::string> formatOf(PyObject* format, int depth) {
    std::string text = utf8(format);
    if (text.find_first_of("{}") == std::string::npos) return text;
    return depth > 1 ? fill(format, depth - 1) : std::nullopt;
  }

  // Returns the value of a field such as "0.shape[1]"; null where Python raises.
  Variable* field(PyObject* name) {
    static PyObject* const kSplit = libraryObject("_string", "formatter_field_name_split");
    const Object split = Object::own(PyObject_CallOneArg(kSplit, name));
    if (!split) {
      PyErr_Clear();
      return nullptr;
    }
    Variable* value = argument(PyTuple_GET_ITEM(split.get(), 0));
    const Object rest = Object::share(PyTuple_GET_ITEM(split.get(), 1));
    while (value) {
      const Object step = Object::own(PyIter_Next(rest.get()));
      if (!step) break;
      PyObject* const key = PyTuple_GET_ITEM(step.get(), 1);
      value = PyTuple_GET_ITEM(step.get(), 0) == Py_True
                  ? getAttribute(capture_, value, key)
                  : getItem(capture_, value, capture_.constant(key));
    }
    if (!PyErr_Occurred()) return value;
    PyErr_Clear();
    return nullptr;
  }

  Variable* argument(PyObject* first) {
    if (PyUnicode_Check(first) && PyUnicode_GET_LENGTH(first) > 0) {
      for (const auto& [name, value] : given_.keywords) {
        if (PyUnicode_Compare(name.get(), first) == 0) return value;
      }
      return nullptr;
    }
    const bool automatic = PyUnicode_Check(first);
    if (automatic ? counted_ == Counted::kByProgram : counted_ == Counted::kByItself) {
      return nullptr;
    }
    counted_ = automatic ? Counted::kByItself : Counted::kByProgram;
    const size_t at = automatic ? next_++ : PyLong_AsSize_t(first);
    return at < given_.positional.size() ? given_.positional[at] : nullptr;
  }

  enum class Counted : uint8_t { kUnknown, kByItself, kByProgram };
  Capture& capture_;
  const Arguments& given_;
  Counted counted_ = Counted::kUnknown;
  size_t next_ = 0;
};

}  // namespace

Variable* formattedBy(Capture& capture, PyObject* pattern, const Arguments& given) {
  constexpr int kMostDepth = 2;
  const std::optional<std::string> text = Filling(capture, given).fill(pattern, kMostDepth);
  if (!text) breakGraph("str.format() that raises");
  return capture.constant(Object::checked(PyUnicode_FromStringAndSize(
                                              text->data(), static_cast<Py_ssize_t>(text->size())))
                              .get());
}

}  // namespace wick::capture
