// A value of the program while it is evaluated symbolically: an object of Python that exists, one that
// the program would have made, or a tensor of the graph. Each kind has a pair of files.
//
// A variable that was read from a source is believed nothing before it is used: Capture::use() adds
// the guard. Moving it between slots and containers is no use.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/guards/source.h"
#include "capture/world.h"

namespace wick::capture {

class Capture;
class Builder;
class Variable;

struct Arguments {
  std::vector<Variable*> positional;
  std::vector<std::pair<Object, Variable*>> keywords;

  bool empty() const { return positional.empty() && keywords.empty(); }
};

class Variable {
 public:
  virtual ~Variable() = default;
  Variable(const Variable&) = delete;

  // Returns the class, borrowed.
  virtual PyTypeObject* type() const = 0;
  // Adds the guards that the kind needs; called once, before the first use.
  virtual void guard(Capture&) {}
  // Returns the object itself where it is immutable and the same in each call; null otherwise.
  virtual PyObject* constant() const { return nullptr; }

  // Operations. The defaults break the graph, naming the class. All arguments have been used.

  // An attribute that the kind itself has; null where the class is to be asked.
  virtual Variable* ownAttribute(Capture&, PyObject* /*name*/) { return nullptr; }
  // Sets an attribute, or deletes it if `value` is null.
  virtual void setAttribute(Capture&, PyObject* name, Variable* value);
  virtual Variable* call(Capture&, const Arguments&);
  // Calls a method of the built-in class; null where the kind does not know it.
  virtual Variable* callMethod(Capture&, const std::string& /*name*/, const Arguments&) {
    return nullptr;
  }
  virtual Variable* item(Capture&, Variable* key);
  virtual void setItem(Capture&, Variable* key, Variable* value);  // null: deletes
  virtual int64_t length(Capture&);
  virtual bool truth(Capture&);
  // Returns an iterator.
  virtual Variable* iterate(Capture&);
  // Returns the next element of an iterator, or null at its end.
  virtual Variable* next(Capture&);
  virtual bool contains(Capture&, Variable* element);
  // Returns the result of an operator of the built-in class with this as the left operand; null
  // where the kind does not know it. `name` is that of the special method without underscores.
  virtual Variable* operate(Capture&, std::string_view /*name*/, bool /*in_place*/,
                            Variable* /*right*/) {
    return nullptr;
  }

  // Returns the register of the object in the recipe. Called for variables without a source.
  virtual int build(Builder&) = 0;
  // Writes the effects of an object that existed before. Called for variables that were modified.
  virtual void replay(Capture&, Builder&);

  Source* source = nullptr;  // null: made during the capture
  Object object;             // at the time of the capture, if it existed before
  Object identity;           // stands for the variable as a key of tables
  Variable* id = nullptr;    // the number that id() gives, once it was asked for
  int64_t born = -1;         // the step of the root frame that made it
  int64_t number = 0;        // counts the variables of the capture
  bool used = false;
  bool modified = false;

 protected:
  Variable() = default;
};

// Returns how messages name the variable.
std::string describe(const Variable& variable);

// Returns whether a name is this text.
inline bool is(PyObject* name, const char* text) {
  return PyUnicode_CompareWithASCIIString(name, text) == 0;
}

}  // namespace wick::capture
