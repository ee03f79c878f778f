// Functions written in Python, methods bound to them, and the cells that closures share.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class DictVariable;

class CellVariable : public Variable {
 public:
  // A cell that exists.
  explicit CellVariable(Object existing) : read_(false) { object = std::move(existing); }
  // A cell that the program makes; null: empty.
  explicit CellVariable(Variable* contents) : contents_(contents) {}

  PyTypeObject* type() const override { return &PyCell_Type; }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  int build(Builder& builder) override;
  void replay(Capture& capture, Builder& builder) override;

  // Returns the contents, or null if the cell is empty.
  Variable* contents(Capture& capture);
  void set(Capture& capture, Variable* value);  // null: empties it

 private:
  Variable* contents_ = nullptr;
  bool read_ = true;
};

class FunctionVariable : public Variable {
 public:
  // A function that exists.
  explicit FunctionVariable(Object existing);
  // A function that the program makes.
  FunctionVariable(Object code, DictVariable* globals, Object qualified_name);

  PyTypeObject* type() const override { return &PyFunction_Type; }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  void setAttribute(Capture& capture, PyObject* name, Variable* value) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;

  PyCodeObject* code() const { return reinterpret_cast<PyCodeObject*>(code_.get()); }
  PyObject* codeObject() const { return code_.get(); }
  DictVariable* globals(Capture& capture);
  // Returns the dict of builtins that the function sees.
  DictVariable* builtins(Capture& capture);
  // Returns the default of positional parameter `index` of `count`, or null.
  Variable* defaultOf(Capture& capture, int index, int count);
  // Returns the default of a keyword, or null; guards that there is none.
  Variable* keywordDefaultOf(Capture& capture, PyObject* name);
  // Returns the number of defaults of positional parameters.
  int numDefaults(Capture& capture);
  // Returns the qualified name, as errors show it.
  std::string nameForErrors(Capture& capture);
  Variable* closureCell(Capture& capture, int index);
  int numCells() const;
  // The attributes of the function's own dict.
  DictVariable* attributes(Capture& capture);

  // For functions that the program makes; null where there are none.
  Variable* defaults = nullptr;  // tuple
  Variable* constant_defaults =
      nullptr;  // the same as a constant of the code, which others may have
  Variable* keyword_defaults = nullptr;  // dict
  Variable* closure = nullptr;           // tuple of cells
  Variable* annotations = nullptr;       // tuple or dict

 private:
  Object code_;
  DictVariable* globals_ = nullptr;
  // Sets a name or another part that belongs to all functions; false if it is none of these.
  bool setPart(PyObject* name, Variable* value);
  Variable* partOf(Capture& capture, PyObject* name);

  DictVariable* attributes_ = nullptr;
  Object qualified_name_;
  std::vector<std::pair<Object, Variable*>> parts_;  // that the program has set, by their names
};

class MethodVariable : public Variable {
 public:
  MethodVariable(Variable* function, Variable* self) : function_(function), self_(self) {}
  // A method that exists.
  explicit MethodVariable(Object existing) { object = std::move(existing); }

  PyTypeObject* type() const override { return &PyMethod_Type; }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;

  Variable* function() const { return function_; }
  Variable* self() const { return self_; }

 private:
  Variable* function_ = nullptr;
  Variable* self_ = nullptr;
};

}  // namespace wick::capture
