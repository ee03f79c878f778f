// Objects of classes written in Python, and exceptions.
#pragma once

#include <unordered_map>

#include "capture/values/variable.h"

namespace wick::capture {

class DictVariable;

class InstanceVariable : public Variable {
 public:
  // An object that exists.
  explicit InstanceVariable(Object existing) : type_(Py_TYPE(existing.get())) {
    object = std::move(existing);
  }
  // An object that the program makes.
  explicit InstanceVariable(PyTypeObject* type) : type_(type) {}

  PyTypeObject* type() const override { return type_; }
  void guard(Capture& capture) override;
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  void setAttribute(Capture& capture, PyObject* name, Variable* value) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  Variable* item(Capture& capture, Variable* key) override;
  void setItem(Capture& capture, Variable* key, Variable* value) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override;
  Variable* iterate(Capture& capture) override;
  Variable* next(Capture& capture) override;
  bool contains(Capture& capture, Variable* element) override;
  int build(Builder& builder) override;
  void replay(Capture& capture, Builder& builder) override;

  // The instance's own dict.
  DictVariable* attributes(Capture& capture);
  // Does as object.__setattr__ does, or object.__delattr__ if `value` is null.
  void setPlainly(Capture& capture, PyObject* name, Variable* value);
  // Reads a slot or a member of a C class that the descriptor names.
  Variable* member(Capture& capture, PyObject* name);

 protected:
  Variable* reduced(Capture& capture, const Arguments& given);

  PyTypeObject* type_;
  DictVariable* attributes_ = nullptr;
  struct Slot {
    Object name;
    Variable* value = nullptr;  // null: deleted
    bool changed = false;
  };
  std::vector<Slot> slots_;
};

// A property, of a class of the program, that the program makes. Only its class is known, which is what
// isinstance() asks of what a descriptor gives.
class PropertyVariable : public InstanceVariable {
 public:
  explicit PropertyVariable(PyTypeObject* type) : InstanceVariable(type) {}

  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  void setAttribute(Capture& capture, PyObject* name, Variable* value) override;
  int build(Builder& builder) override;
};

// An exception that the program makes.
class ExceptionVariable : public InstanceVariable {
 public:
  ExceptionVariable(PyTypeObject* type, std::vector<Variable*> arguments)
      : InstanceVariable(type), args(std::move(arguments)) {}

  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  void setAttribute(Capture& capture, PyObject* name, Variable* value) override;
  int build(Builder& builder) override;

  std::vector<Variable*> args;
  // Sets an attribute that the interpreter sets where it raises the exception.
  void setMember(PyObject* name, Variable* value) {
    slots_.push_back({Object::share(name), value, true});
  }

  // It was raised while the program's own frames handled no other.
  bool raised_alone = false;
  // The lines that it has passed, the innermost first.
  struct Passed {
    Object code;
    int line;
  };
  std::vector<Passed> passed;
  Variable* cause = nullptr;
  Variable* context = nullptr;
  bool suppress_context = false;
};

// The traceback of an exception, with the lines that it has passed until now.
class TracebackVariable : public Variable {
 public:
  explicit TracebackVariable(Variable* of)
      : of_(dynamic_cast<ExceptionVariable*>(of)), length_(of_ ? of_->passed.size() : 0) {}
  PyTypeObject* type() const override { return &PyTraceBack_Type; }
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;
  // Makes it the exception's traceback again. Breaks the graph for other exceptions.
  void restore(const ExceptionVariable* exception);

 private:
  ExceptionVariable* of_;  // null: an exception that existed
  size_t length_;
};

// super(), bound to an object or a class.
class SuperVariable : public Variable {
 public:
  SuperVariable(PyTypeObject* after, Variable* self, PyTypeObject* of)
      : after_(after), self_(self), of_(of) {}
  PyTypeObject* type() const override { return &PySuper_Type; }
  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  int build(Builder& builder) override;

 private:
  PyTypeObject* after_;
  Variable* self_;
  PyTypeObject* of_;  // the class whose order of resolution counts
};

}  // namespace wick::capture
