// Objects of Python for variables, which functions of C get while a frame is evaluated.
#include <fmt/format.h>

#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/values/class.h"
#include "capture/values/constant.h"
#include "capture/values/dict.h"
#include "capture/values/sequence.h"
#include "capture/values/set.h"
#include "capture/values/size.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

constexpr int kMaxNesting = 50;

enum class Form : uint8_t {
  kExact,     // containers are of the same class
  kElements,  // they are plain tuples, lists and dicts
  kArgument,  // the same, but for a torch.Size; sizes stay open
};

// Returns a tuple of the class. Calls none of its functions.
Object tupleOf(PyTypeObject* type, Object elements) {
  if (type == &PyTuple_Type) return elements;
  if (type->tp_dictoffset != 0)
    breakGraph("a tuple that has attributes is an argument of a function in C");
  if (isMadeByItself(type)) {
    return Object::checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(type), elements.get()));
  }
  const Object arguments = Object::checked(PyTuple_Pack(1, elements.get()));
  return Object::checked(PyTuple_Type.tp_new(type, arguments.get(), nullptr));
}

class Objects {
 public:
  Objects(Capture& capture, Form form) : capture_(capture), form_(form) {}

  Object of(Variable* variable, int depth = 0) const {
    if (depth > kMaxNesting) breakGraph("values are nested too deeply");
    capture_.use(variable);
    if (form_ == Form::kArgument) {
      if (auto* size = dynamic_cast<SizeVariable*>(variable)) {
        return capture_.numberFor(size->expression());
      }
      if (auto* slice = dynamic_cast<SliceVariable*>(variable)) return sliceOf(*slice, depth);
    }
    const bool elementwise = form_ == Form::kArgument && holdsSizes(variable);
    PyObject* const constant = elementwise ? nullptr : variable->constant();
    if (constant) return Object::share(constant);
    if (auto* tensor = dynamic_cast<TensorVariable*>(variable))
      return Object::share(tensor->fake());
    if (auto* sequence = dynamic_cast<SequenceVariable*>(variable)) {
      return sequenceOf(*sequence, depth);
    }
    if (auto* dict = dynamic_cast<DictVariable*>(variable)) return dictOf(*dict, depth);
    if (auto* set = dynamic_cast<SetVariable*>(variable)) {
      if (!set->holdsConstantsOnly()) breakGraph("a set of objects is an argument");
      return Object::checked(PySet_New(set->keys()));
    }
    breakGraph(fmt::format("{} is an argument of a function in C", describe(*variable)));
  }

 private:
  Object sliceOf(const SliceVariable& slice, int depth) const {
    Object parts[3];
    for (size_t i = 0; i < 3; ++i) parts[i] = of(slice.part(i), depth + 1);
    return Object::checked(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get()));
  }

  Object sequenceOf(SequenceVariable& sequence, int depth) const {
    const std::vector<Variable*> elements = sequence.all(capture_);
    const auto count = static_cast<Py_ssize_t>(elements.size());
    PyTypeObject* const type = sequence.type();
    const bool list = dynamic_cast<ListVariable*>(&sequence) != nullptr;
    Object made = Object::checked(list ? PyList_New(count) : PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const each = of(elements[static_cast<size_t>(i)], depth + 1).leak();
      if (list) {
        PyList_SET_ITEM(made.get(), i, each);
      } else {
        PyTuple_SET_ITEM(made.get(), i, each);
      }
    }
    if (list) {
      if (form_ == Form::kExact && type != &PyList_Type) breakOn(sequence);
      return made;
    }
    const bool exact =
        form_ == Form::kExact || (form_ == Form::kArgument && capture_.world.isSizeType(type));
    return exact ? tupleOf(type, std::move(made)) : made;
  }

  Object dictOf(DictVariable& dict, int depth) const {
    // Functions of C may ask its methods, which are not known to be those of a dict.
    if (!behavesAsDict(dict.type())) breakOn(dict);
    Object made = form_ == Form::kExact ? emptyDict(dict) : Object::checked(PyDict_New());
    const Objects keys(capture_, form_ == Form::kArgument ? Form::kElements : form_);
    for (const auto& [key, value] : dict.items(capture_)) {
      if (PyObject_SetItem(made.get(), keys.of(key, depth + 1).get(), of(value, depth + 1).get()) <
          0) {
        throw PythonError();
      }
    }
    return made;
  }

  // Returns a dict of the class, without items.
  Object emptyDict(DictVariable& dict) const {
    if (dict.type() == &PyDict_Type) return Object::checked(PyDict_New());
    if (dict.type() == &PyODict_Type) return Object::checked(PyODict_New());
    if (dict.type() != DictVariable::defaultDictType()) breakOn(dict);
    static PyObject* const kFactory = PyUnicode_InternFromString("default_factory");
    Variable* const factory = dict.ownAttribute(capture_, kFactory);
    auto* const known = dynamic_cast<ClassVariable*>(factory);
    PyObject* const maker = known ? known->object.get() : factory->constant();
    if (!maker) breakOn(dict);
    return Object::checked(PyObject_CallOneArg(reinterpret_cast<PyObject*>(dict.type()), maker));
  }

  [[noreturn]] static void breakOn(const Variable& container) {
    breakGraph(fmt::format("the class of {} in a function in C", describe(container)));
  }

  Capture& capture_;
  const Form form_;
};

}  // namespace

Object Capture::objectFor(Variable* variable) {
  return Objects(*this, Form::kExact).of(variable);
}

Object Capture::elementsFor(Variable* variable) {
  return Objects(*this, Form::kElements).of(variable);
}

Object Capture::argumentFor(Variable* variable) {
  return Objects(*this, Form::kArgument).of(variable);
}

}  // namespace wick::capture
