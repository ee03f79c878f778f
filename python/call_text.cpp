#include "python/call_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "python/convert.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"

namespace wick::python {
namespace {

// A literal's text; empty when the value has none.
std::string literalOf(const IValue& value) {
  if (value.isNone()) return "None";
  if (value.isBool() || value.isInt() || value.isString()) return value.repr();
  if (value.isDouble() && std::isfinite(value.toDouble())) return value.repr();
  return "";
}

bool allOfTag(const std::vector<IValue>& elements, IValue::Tag tag) {
  for (const IValue& element : elements) {
    if (element.tag() != tag) return false;
  }
  return true;
}

char codeOf(IValue::Tag tag) {
  switch (tag) {
    case IValue::Tag::Tensor:
      return 'T';
    case IValue::Tag::Int:
      return 'i';
    case IValue::Tag::Double:
      return 'd';
    case IValue::Tag::Bool:
      return 'b';
    case IValue::Tag::String:
      return 's';
    default:
      return 0;
  }
}

// A tuple of one type as a list, which is what operators want of sizes and tensors.
void tupleToList(IValue& value) {
  const std::vector<IValue>& elements = value.toTuple().elements;
  if (elements.empty()) {
    value = IValue(makeList(types::Tensor()));
    return;
  }
  const IValue::Tag tag = elements[0].tag();
  if (codeOf(tag) != 0 && allOfTag(elements, tag)) {
    value = IValue(makeList(unshapedType(elements[0].type()), elements));
  }
}

bool isListOfNumbers(const IValue& value) {
  if (!value.isList() || value.toList().elements.empty()) return false;
  return std::ranges::all_of(value.toList().elements, &IValue::isNumber);
}

bool isListOfInts(const IValue& value) {
  if (!value.isList() || value.toList().elements.empty()) return false;
  return std::ranges::all_of(value.toList().elements, &IValue::isInt);
}

// Changes an argument as one of the last three forms does.
void encodeNumbers(IValue& value, ArgumentForm form, std::string& key) {
  if (form == ArgumentForm::SomeFloats) {
    if (value.isInt()) {
      value = IValue(static_cast<double>(value.toInt()));
      key += 'd';
      return;
    }
    std::vector<IValue> elements;
    for (const IValue& each : value.toList().elements) elements.emplace_back(each.numberToDouble());
    value = IValue(makeList(types::Float(), std::move(elements)));
    key += "[d";
    return;
  }
  if (value.isBool()) {
    if (form == ArgumentForm::Truths) value = IValue(value.rawBool() ? 1.0 : 0.0);
    key += form == ArgumentForm::Truths ? 'd' : 'n';
    return;
  }
  value = IValue(makeList(types::Number(), value.toList().elements));
  key += "[n";
}

void encode(IValue& value, const Spelling& spelling, size_t index, std::string& key) {
  const ArgumentForm form = spelling.form;
  if (form == ArgumentForm::Floats && value.isInt()) {
    value = IValue(static_cast<double>(value.toInt()));
  }
  if (value.isTuple() && form != ArgumentForm::Tuples && !value.toTuple().named) tupleToList(value);
  if (spelling.changes(index)) return encodeNumbers(value, form, key);
  switch (value.tag()) {
    case IValue::Tag::None:
      key += 'N';
      return;
    case IValue::Tag::Bool:
      key += value.rawBool() ? 'B' : 'b';
      return;
    case IValue::Tag::List: {
      const std::vector<IValue>& elements = value.toList().elements;
      if (elements.empty()) {
        key += "[]";
        return;
      }
      if (const char code = codeOf(elements[0].tag());
          code != 0 && allOfTag(elements, elements[0].tag())) {
        if (form == ArgumentForm::Optionals && code == 'T') {
          static const TypePtr element = types::Optional(types::Tensor());
          value = IValue(makeList(element, elements));
        }
        key += '[';
        key += code;
        return;
      }
      break;
    }
    default:
      if (const char code = codeOf(value.tag())) {
        key += code;
        if (form == ArgumentForm::Literals && code != 'T') key += literalOf(value) + ';';
        return;
      }
  }
  key += '{' + unshapedType(value.type())->annotation() + '}';
}

// What keys of another form than the first begin with.
char markOf(ArgumentForm form) {
  switch (form) {
    case ArgumentForm::Lists:
      break;
    case ArgumentForm::Tuples:
      return '(';
    case ArgumentForm::Literals:
      return '"';
    case ArgumentForm::Floats:
      return '.';
    case ArgumentForm::Optionals:
      return '?';
    case ArgumentForm::Numbers:
      return '#';
    case ArgumentForm::Truths:
      return '=';
    case ArgumentForm::SomeFloats:
      return ',';
  }
  return ' ';
}

}  // namespace

bool readArguments(Arguments& out) {
  out.named_numbers = 0;
  for (size_t i = 0; i < out.count; ++i) {
    PyObject* object = out.objects[i];
    if (isTensor(object) && tensorIn(object).defined()) {
      out.values[i] = IValue(tensorIn(object));
    } else if (!tryValue(object, out.values[i])) {
      return false;
    } else if (out.values[i].isInt() && !PyLong_Check(object) && isNamedNumber(object)) {
      out.named_numbers |= uint64_t{1} << i;
    }
  }
  return true;
}

void makeKey(Arguments& arguments, const Spelling& spelling) {
  arguments.key.clear();
  for (size_t i = 0; i < arguments.count; ++i) {
    if (i >= arguments.positional) {
      arguments.key += '|';
      arguments.key += arguments.nameOf(i);
      arguments.key += '=';
    }
    if ((arguments.named_numbers >> i & 1) != 0) {
      arguments.key += 'y';
      if (spelling.form == ArgumentForm::Literals) {
        arguments.key += literalOf(arguments.values[i]) + ';';
      }
      continue;
    }
    encode(arguments.values[i], spelling, i, arguments.key);
  }
}

void spell(Arguments& arguments, const Spelling& spelling) {
  readArguments(arguments);
  makeKey(arguments, spelling);
  arguments.key.insert(0, 1, markOf(spelling.form));
}

std::string Arguments::nameOf(size_t i) const {
  Py_ssize_t length = 0;
  PyObject* const name = PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i - positional));
  const char* text = PyUnicode_AsUTF8AndSize(name, &length);
  if (!text) throw PythonError();
  return std::string(text, static_cast<size_t>(length));
}

void checkNames(const Arguments& arguments) {
  for (size_t i = arguments.positional; i < arguments.count; ++i) {
    const auto at = static_cast<Py_ssize_t>(i - arguments.positional);
    if (PyUnicode_IsIdentifier(PyTuple_GET_ITEM(arguments.names, at)) == 1) continue;
    raise(PyExc_TypeError, fmt::format("'{}' is no name of a parameter", arguments.nameOf(i)));
  }
}

bool mayChange(const IValue& value, ArgumentForm form) {
  if (form == ArgumentForm::SomeFloats) return value.isInt() || isListOfInts(value);
  return value.isBool() || isListOfNumbers(value);
}

bool isEmptyList(const IValue& value) {
  return value.isList() && value.toList().elements.empty();
}

std::string programText(CallForm form, const std::string& name, const Arguments& arguments,
                        const Spelling& spelling, const char* empty_list, const std::string& last) {
  std::string parameters, call;
  std::vector<std::string> written;
  for (size_t i = 0; i < arguments.count; ++i) {
    const IValue& value = arguments.values[i];
    const bool any_number = spelling.changes(i) && value.isBool();
    const bool literal = value.isNone() || (value.isBool() && !any_number) ||
                         (spelling.form == ArgumentForm::Literals && !literalOf(value).empty());
    const std::string parameter = fmt::format("a{}", i);
    written.push_back(literal ? literalOf(value) : parameter);
    if (!parameters.empty()) parameters += ", ";
    parameters += parameter + ": ";
    if (any_number) {
      parameters += types::Number()->annotation();
    } else {
      parameters += isEmptyList(value) ? empty_list : unshapedType(value.type())->annotation();
    }
  }
  switch (form) {
    case CallForm::Binary:
      call = fmt::format("{} {} {}", written[0], name, written[1]);
      break;
    case CallForm::Unary:
      call = name + written[0];
      break;
    case CallForm::Property:
      call = written[0] + "." + name;
      break;
    default: {
      const bool method = form == CallForm::Method;
      call = (method ? written[0] + "." : "") + name + "(";
      for (size_t i = method ? 1 : 0; i < arguments.count; ++i) {
        if (i > (method ? 1u : 0u)) call += ", ";
        if (i >= arguments.positional) {
          call += arguments.nameOf(i) + "=";
        } else if (!last.empty() && i + 1 == arguments.positional) {
          call += last + "=";
        }
        call += written[i];
      }
      call += ")";
    }
  }
  return fmt::format("def f({}):\n    return {}\n", parameters, call);
}

std::string describeTypes(const Arguments& arguments) {
  std::string out;
  for (size_t i = 0; i < arguments.count; ++i) {
    if (i > 0) out += ", ";
    if (i >= arguments.positional) {
      out += arguments.nameOf(i) + "=";
    }
    if ((arguments.named_numbers >> i & 1) != 0) {
      const bool is_class = PyType_Check(arguments.objects[i]) != 0;  // int for int64
      out += is_class ? "wick.dtype" : Py_TYPE(arguments.objects[i])->tp_name;
      continue;
    }
    out += unshapedType(arguments.values[i].type())->annotation();
  }
  return out;
}

}  // namespace wick::python
