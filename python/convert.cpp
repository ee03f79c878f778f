#include "python/convert.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

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

// What a conversion has made of containers so far, by their addresses.
template <class Key, class Made>
class Seen {
 public:
  const Made* find(Key key) const {
    if (!all_) return nullptr;
    const auto found = all_->made.find(key);
    return found == all_->made.end() ? nullptr : &found->second;
  }
  // `held` keeps an address, or what was made.
  void note(Key key, Made made, PyObject* held) {
    if (!all_) all_ = std::make_unique<All>();
    if (all_->made.emplace(key, std::move(made)).second) all_->held.push_back(Owned::share(held));
  }

 private:
  struct All {
    std::unordered_map<Key, Made> made;
    std::vector<Owned> held;
  };
  std::unique_ptr<All> all_;  // null for a number
};

// One conversion of an object and all that it holds. A container that is there several times becomes one
// value, so that n lists which each hold the one before twice are n lists, and what changes one of them
// changes it everywhere.
class Converter {
 public:
  // False when something has no form as a value.
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
    } else if (PyList_Check(object) || PyTuple_Check(object) || PyDict_Check(object)) {
      return convertContainer(object, out, depth);
    } else if (PyComplex_Check(object)) {
      const Py_complex value = PyComplex_AsCComplex(object);
      out = IValue(std::complex<double>(value.real, value.imag));
    } else if (const auto number = numberOf(object)) {
      out = IValue(*number);
    } else if (isDevice(object)) {
      out = IValue(reinterpret_cast<DeviceObject*>(object)->device);
    } else if (isGenerator(object)) {
      out = IValue(reinterpret_cast<GeneratorHandle*>(object)->generator);
    } else if (isNamedNumber(object)) {
      out = IValue(static_cast<int64_t>(*dtypeOf(object)));
    } else if (objects.unwrap && objects.unwrap(object, out)) {
      return true;
    } else {
      return convertForeignNumber(object, out);
    }
    return true;
  }

 private:
  bool convertContainer(PyObject* object, IValue& out, int depth) {
    if (const IValue* known = seen_.find(object)) {
      out = *known;
      return true;
    }
    const bool made = PyList_Check(object)    ? convertList(object, out, depth)
                      : PyTuple_Check(object) ? convertTuple(object, out, depth)
                                              : convertDict(object, out, depth);
    if (made && depth > 0) seen_.note(object, out, object);  // the outermost is there once
    return made;
  }

  // Each element is held, because converting may run code that changes the container.
  bool convertElements(PyObject* sequence, std::vector<IValue>& out, int depth) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(sequence);
    out.reserve(static_cast<size_t>(count));
    for (Py_ssize_t i = 0; i < count && i < PySequence_Fast_GET_SIZE(sequence); ++i) {
      const Owned element = Owned::share(PySequence_Fast_GET_ITEM(sequence, i));
      IValue value;
      if (!convert(element.get(), value, depth + 1)) return false;
      out.push_back(std::move(value));
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

  bool convertTuple(PyObject* object, IValue& out, int depth) {
    std::vector<IValue> elements;
    if (!convertElements(object, elements, depth)) return false;
    out = IValue(makeTuple(std::move(elements)));
    return true;
  }

  bool convertDict(PyObject* object, IValue& out, int depth) {
    std::vector<IValue> keys, values;
    PyObject *key = nullptr, *value = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(object, &position, &key, &value)) {
      const Owned held_key = Owned::share(key), held_value = Owned::share(value);
      IValue k, v;
      if (!convert(key, k, depth + 1) || !convert(value, v, depth + 1)) return false;
      keys.push_back(std::move(k));
      values.push_back(std::move(v));
    }
    const auto dict = makeRef<DictObject>(keys.empty() ? types::String() : joinTypes(keys),
                                          values.empty() ? types::Tensor() : joinTypes(values));
    for (size_t i = 0; i < keys.size(); ++i) {
      dict->set(asType(keys[i], dict->key_type->kind()),
                asType(values[i], dict->value_type->kind()));
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

  Seen<PyObject*, IValue> seen_;
};

// The other way, in the same manner: lists and dicts that a program shares are shared.
class Unconverter {
 public:
  PyObject* convert(const IValue& value) {
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
        return container(&value.toList(), [&] { return listFor(value.toList()); });
      case IValue::Tag::Dict:
        return container(&value.toDict(), [&] { return dictFor(value.toDict()); });
      case IValue::Tag::Tuple:
        return container(&value.toTuple(), [&] { return tupleFor(value.toTuple()); });
      case IValue::Tag::Generator:
        return generatorObject(GeneratorRef(&value.toGenerator()));
      default:
        if (objects.wrap) return checked(objects.wrap(value)).leak();
        raise(PyExc_TypeError,
              fmt::format("a value of type {} has no form in Python", value.type()->str()));
    }
  }

 private:
  template <class F>
  PyObject* container(const void* which, F&& make) {
    if (PyObject* const* known = seen_.find(which)) return Py_NewRef(*known);
    if (Py_EnterRecursiveCall(" while a value is converted") != 0) throw PythonError();
    struct Leave {
      ~Leave() { Py_LeaveRecursiveCall(); }
    } leave;
    Owned made = make();
    if (inside_ > 0) seen_.note(which, made.get(), made.get());
    return made.leak();
  }

  Owned listFor(const ListObject& list) {
    // Copied out, because converting may run code that changes the list.
    const std::vector<IValue> elements = list.elements;
    Owned result = checked(PyList_New(static_cast<Py_ssize_t>(elements.size())));
    if (mayHold(elements)) seen_.note(&list, result.get(), result.get());  // itself, perhaps
    const Inside inside(*this);
    for (size_t i = 0; i < elements.size(); ++i) {
      PyList_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), convert(elements[i]));
    }
    return result;
  }

  Owned dictFor(const DictObject& dict) {
    Owned result = checked(PyDict_New());
    seen_.note(&dict, result.get(), result.get());
    const Inside inside(*this);
    for (const auto& [key, value] : dict.items()) {
      const Owned k(convert(key)), v(convert(value));
      check(PyDict_SetItem(result.get(), k.get(), v.get()));
    }
    return result;
  }

  Owned tupleFor(const TupleObject& tuple) {
    const Inside inside(*this);
    Owned result = checked(PyTuple_New(static_cast<Py_ssize_t>(tuple.elements.size())));
    for (size_t i = 0; i < tuple.elements.size(); ++i) {
      PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), convert(tuple.elements[i]));
    }
    if (!tuple.named || !tuple.named->isNamed()) return result;
    return Owned(namedTuple(tuple.named->name(), tuple.named->fields(), result));
  }

  static bool mayHold(const std::vector<IValue>& elements) {
    return std::ranges::any_of(
        elements, [](const IValue& e) { return e.isList() || e.isDict() || e.isTuple(); });
  }

  struct Inside {
    explicit Inside(Unconverter& of) : of(of) { ++of.inside_; }
    ~Inside() { --of.inside_; }
    Unconverter& of;
  };
  int inside_ = 0;
  Seen<const void*, PyObject*> seen_;
};

}  // namespace

void setObjectConversion(ObjectConversion conversion) {
  objects = conversion;
}

bool tryValue(PyObject* object, IValue& out) {
  return Converter().convert(object, out, 0);
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
    const Owned given = checked(PyTuple_New(static_cast<Py_ssize_t>(arguments.size())));
    for (size_t i = 0; i < arguments.size(); ++i) {
      PyTuple_SET_ITEM(given.get(), static_cast<Py_ssize_t>(i), toPython(arguments[i]));
    }
    const Owned result = checked(PyObject_CallObject(function, given.get()));
    return toValue(result.get());
  } catch (const PythonError&) {
    throwFromPython();
  }
}

PyObject* namedTuple(const std::string& name, const std::vector<std::string>& fields,
                     const Owned& elements) {
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
  return checked(PyObject_CallObject(type, elements.get())).leak();
}

PyObject* toPython(const IValue& value) {
  return Unconverter().convert(value);
}

}  // namespace wick::python
