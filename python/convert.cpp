#include "python/convert.h"

#include <fmt/format.h>

#include <map>

#include "core/error_types.h"
#include "core/type.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"

namespace wick::python {
namespace {

ObjectConversion objects;

constexpr int kMaxDepth = 200;  // of containers; those that hold themselves end there

IValue intValue(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow != 0) raise(PyExc_OverflowError, "int too large for 64 bits");
  if (value == -1 && PyErr_Occurred()) throw PythonError();
  return IValue(static_cast<int64_t>(value));
}

IValue textValue(PyObject* object) {
  Py_ssize_t length = 0;
  const char* bytes = PyUnicode_AsUTF8AndSize(object, &length);
  if (!bytes) throw PythonError();
  return IValue(std::string(bytes, static_cast<size_t>(length)));
}

// The type that all values have; of numbers the wider one.
TypePtr joinTypes(const std::vector<IValue>& values) {
  TypePtr joined;
  for (const IValue& value : values) {
    const TypePtr type = unshapedType(value.type());
    if (!joined) {
      joined = type;
      continue;
    }
    if (sameType(joined, type)) continue;
    const auto rank = [](const TypePtr& t) {
      switch (t->kind()) {
        case TypeKind::Bool:
          return 1;
        case TypeKind::Int:
          return 2;
        case TypeKind::Float:
          return 3;
        case TypeKind::Complex:
          return 4;
        default:
          return 0;
      }
    };
    if (rank(joined) > 0 && rank(type) > 0) {
      if (rank(type) > rank(joined)) joined = type;
    } else if (const auto unified = unifyTypes(joined, type)) {
      joined = *unified;
    } else {
      return types::Any();
    }
  }
  return joined;
}

IValue asType(const IValue& value, TypeKind kind) {
  switch (kind) {
    case TypeKind::Int:
      return value.isBool() ? IValue(static_cast<int64_t>(value.toBool())) : value;
    case TypeKind::Float:
      return value.isNumber() ? IValue(value.numberToDouble()) : value;
    case TypeKind::Complex:
      return value.isNumber() ? IValue(value.numberToComplex()) : value;
    default:
      return value;
  }
}

bool convert(PyObject* object, IValue& out, int depth);

bool convertElements(PyObject* sequence, std::vector<IValue>& out, int depth) {
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
  out.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count && i < PySequence_Fast_GET_SIZE(sequence); ++i) {
    IValue element;
    if (!convert(PySequence_Fast_GET_ITEM(sequence, i), element, depth + 1)) return false;
    out.push_back(std::move(element));
  }
  return true;
}

bool convertList(PyObject* object, IValue& out, int depth) {
  std::vector<IValue> elements;
  if (!convertElements(object, elements, depth)) return false;
  // As the front end types an empty display.
  TypePtr type = elements.empty() ? types::Tensor() : joinTypes(elements);
  for (IValue& element : elements) element = asType(element, type->kind());
  out = IValue(makeList(std::move(type), std::move(elements)));
  return true;
}

bool convertDict(PyObject* object, IValue& out, int depth) {
  std::vector<IValue> keys, values;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(object, &position, &key, &value)) {
    IValue k, v;
    if (!convert(key, k, depth + 1) || !convert(value, v, depth + 1)) return false;
    keys.push_back(std::move(k));
    values.push_back(std::move(v));
  }
  const auto dict = makeRef<DictObject>(keys.empty() ? types::String() : joinTypes(keys),
                                        values.empty() ? types::Tensor() : joinTypes(values));
  for (size_t i = 0; i < keys.size(); ++i) {
    dict->set(asType(keys[i], dict->key_type->kind()), asType(values[i], dict->value_type->kind()));
  }
  out = IValue(DictRef(dict));
  return true;
}

// Numbers of numpy and others that say what they are.
bool convertForeignNumber(PyObject* object, IValue& out) {
  const PyNumberMethods* methods = Py_TYPE(object)->tp_as_number;
  if (!methods || !isArray(object)) return false;
  if (PyObject_HasAttrString(object, "ndim")) {
    const Owned dimensions = checked(PyObject_GetAttrString(object, "ndim"));
    if (PyLong_AsLong(dimensions.get()) != 0 || PyObject_HasAttrString(object, "__setitem__")) {
      return false;
    }
  }
  const Owned number = checked(PyObject_CallMethod(object, "item", nullptr));
  return convert(number.get(), out, kMaxDepth);
}

bool convert(PyObject* object, IValue& out, int depth) {
  if (depth > kMaxDepth) raise(PyExc_RecursionError, "containers are nested too deeply");
  if (isTensor(object)) {
    out = IValue(tensorIn(object));
    if (out.isNone()) raise(PyExc_RuntimeError, "the tensor is empty: it was never initialized");
  } else if (object == Py_None) {
    out = IValue();
  } else if (PyBool_Check(object)) {
    out = IValue(object == Py_True);
  } else if (PyLong_Check(object)) {
    out = intValue(object);
  } else if (PyFloat_Check(object)) {
    out = IValue(PyFloat_AS_DOUBLE(object));
  } else if (PyUnicode_Check(object)) {
    out = textValue(object);
  } else if (PyList_Check(object)) {
    return convertList(object, out, depth);
  } else if (PyTuple_Check(object)) {
    std::vector<IValue> elements;
    if (!convertElements(object, elements, depth)) return false;
    out = IValue(makeTuple(std::move(elements)));
  } else if (PyDict_Check(object)) {
    return convertDict(object, out, depth);
  } else if (PyComplex_Check(object)) {
    const Py_complex value = PyComplex_AsCComplex(object);
    out = IValue(std::complex<double>(value.real, value.imag));
  } else if (const auto number = numberOf(object)) {
    out = IValue(*number);
  } else if (isDevice(object)) {
    out = IValue(reinterpret_cast<DeviceObject*>(object)->device);
  } else if (isGenerator(object)) {
    out = IValue(reinterpret_cast<GeneratorHandle*>(object)->generator);
  } else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type) ||
             object == reinterpret_cast<PyObject*>(&PyLong_Type) ||
             object == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    out = IValue(*dtypeOf(object));
  } else if (objects.unwrap && objects.unwrap(object, out)) {
    return true;
  } else {
    return convertForeignNumber(object, out);
  }
  return true;
}

Owned toPythonTuple(const std::vector<IValue>& values) {
  Owned tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) {
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), toPython(values[i]));
  }
  return tuple;
}

PyObject* toPythonList(const ListObject& list) {
  // Copied out, because converting may run code that changes the list.
  const std::vector<IValue> elements = list.elements;
  Owned result = checked(PyList_New(static_cast<Py_ssize_t>(elements.size())));
  for (size_t i = 0; i < elements.size(); ++i) {
    PyList_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), toPython(elements[i]));
  }
  return result.leak();
}

PyObject* toPythonDict(const DictObject& dict) {
  Owned result = checked(PyDict_New());
  for (const auto& [key, value] : dict.items()) {
    const Owned k(toPython(key)), v(toPython(value));
    check(PyDict_SetItem(result.get(), k.get(), v.get()));
  }
  return result.leak();
}

}  // namespace

void setObjectConversion(ObjectConversion conversion) {
  objects = conversion;
}

bool tryValue(PyObject* object, IValue& out) {
  return convert(object, out, 0);
}

IValue toValue(PyObject* object) {
  IValue value;
  if (!tryValue(object, value)) {
    raise(PyExc_TypeError,
          fmt::format("an object of {} has no form as a value", Py_TYPE(object)->tp_name));
  }
  return value;
}

IValue callPython(PyObject* function, const std::vector<IValue>& arguments) {
  const WithGil gil;
  if (!gil.usable()) throw RuntimeError("the interpreter of Python has ended");
  try {
    const Owned given = toPythonTuple(arguments);
    const Owned result = checked(PyObject_CallObject(function, given.get()));
    return toValue(result.get());
  } catch (const PythonError&) {
    throwFromPython();
  }
}

PyObject* namedTuple(const std::string& name, const std::vector<std::string>& fields,
                     const std::vector<IValue>& values) {
  static auto* classes =
      new std::map<std::pair<std::string, std::vector<std::string>>, PyObject*>();
  PyObject*& type = (*classes)[{name, fields}];
  if (!type) {
    const Owned collections = checked(PyImport_ImportModule("collections"));
    Owned names = checked(PyList_New(0));
    for (const std::string& field : fields) {
      const Owned text = checked(PyUnicode_FromString(field.c_str()));
      check(PyList_Append(names.get(), text.get()));
    }
    const std::string last = name.substr(name.rfind('.') + 1);
    type = checked(PyObject_CallMethod(collections.get(), "namedtuple", "sO", last.c_str(),
                                       names.get()))
               .leak();
  }
  const Owned tuple = toPythonTuple(values);
  return checked(PyObject_CallObject(type, tuple.get())).leak();
}

PyObject* toPython(const IValue& value) {
  switch (value.tag()) {
    case IValue::Tag::None:
      return Py_NewRef(Py_None);
    case IValue::Tag::Int:
      return checked(PyLong_FromLongLong(value.rawInt())).leak();
    case IValue::Tag::Double:
      return checked(PyFloat_FromDouble(value.rawDouble())).leak();
    case IValue::Tag::Bool:
      return PyBool_FromLong(value.rawBool());
    case IValue::Tag::Device:
      return deviceObject(value.toDevice());
    case IValue::Tag::Tensor:
      return tensorObject(value.toTensor());
    case IValue::Tag::String: {
      const std::string& text = value.toString();
      return checked(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                                          "surrogateescape"))
          .leak();
    }
    case IValue::Tag::Complex: {
      const std::complex<double> number = value.toComplex();
      return checked(PyComplex_FromDoubles(number.real(), number.imag())).leak();
    }
    case IValue::Tag::List:
      return toPythonList(value.toList());
    case IValue::Tag::Dict:
      return toPythonDict(value.toDict());
    case IValue::Tag::Tuple: {
      const TupleObject& tuple = value.toTuple();
      if (tuple.named && tuple.named->isNamed()) {
        return namedTuple(tuple.named->name(), tuple.named->fields(), tuple.elements);
      }
      return toPythonTuple(tuple.elements).leak();
    }
    case IValue::Tag::Generator:
      return generatorObject(GeneratorRef(&value.toGenerator()));
    default:
      if (objects.wrap) return checked(objects.wrap(value)).leak();
      raise(PyExc_TypeError,
            fmt::format("a value of type {} has no form in Python", value.type()->str()));
  }
}

}  // namespace wick::python
