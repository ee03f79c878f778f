// A call from Python as the text of a program: how its arguments stand there (python/eager.h).
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "python/call_plan.h"
#include "python/eager.h"

namespace wick::python {

inline constexpr size_t kMaxArguments = 48;

// How arguments stand in the text. Tried in this order, until one compiles.
enum class ArgumentForm : uint8_t {
  Lists,      // tuples of one type are lists
  Tuples,     // tuples are tuples
  Literals,   // numbers and strings are literals as well
  Floats,     // ints are floats, which functions written in script do not convert
  Optionals,  // lists of tensors might hold None, as lists of indices do
  Numbers,    // some booleans, and lists of numbers, are numbers of any kind
  Truths,     // some booleans are the floats 0 and 1
  SomeFloats  // some ints, and lists of ints, are floats
};

// The form, and which arguments the last three change, as bits.
struct Spelling {
  ArgumentForm form = ArgumentForm::Lists;
  uint64_t chosen = 0;
  bool changes(size_t i) const { return (chosen >> i & 1) != 0; }
  bool operator==(const Spelling&) const = default;
};

// The arguments of one call, as values, and what the text depends on.
struct Arguments {
  Arguments(PyObject* const* objects, size_t positional, PyObject* names)
      : count(
            checkedCount(positional + (names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0))),
        positional(positional),
        objects(objects),
        names(names),
        values(count) {}
  static size_t checkedCount(size_t count) {
    if (count > kMaxArguments) {
      raise(PyExc_TypeError, fmt::format("more than {} arguments", kMaxArguments));
    }
    return count;
  }
  // Of an argument that is given by name.
  std::string nameOf(size_t i) const;

  const size_t count;  // of values, keywords included
  const size_t positional;
  PyObject* const* const objects;
  PyObject* const names;  // a tuple, or null
  mutable ValueArray<kMaxArguments> values;
  uint64_t named_numbers = 0;  // as bits: dtypes and their like, which are ints in programs
  std::string key;
};

// Reads the objects as values. False when an argument has no form as a value.
bool readArguments(Arguments& out);
// Changes the values as the spelling says, and makes the key under which the compiled text is kept.
void makeKey(Arguments& arguments, const Spelling& spelling);
// The same from the objects, for a spelling other than the first; what was changed for another is
// forgotten.
void spell(Arguments& arguments, const Spelling& spelling);
// TypeError for a name that no parameter can have: it would be text of the program.
void checkNames(const Arguments& arguments);

// Returns whether one of the last three forms can change an argument.
bool mayChange(const IValue& value, ArgumentForm form);
bool isEmptyList(const IValue& value);
// The program text; lists without elements are declared as `empty_list`. `name` is the function's, or
// the sign. The last argument by position goes to the parameter `last`, unless that is empty.
std::string programText(CallForm form, const std::string& name, const Arguments& arguments,
                        const Spelling& spelling, const char* empty_list, const std::string& last);
// What messages say of the arguments.
std::string describeTypes(const Arguments& arguments);

}  // namespace wick::python
