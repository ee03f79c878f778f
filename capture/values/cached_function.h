// Functions that functools.lru_cache made.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

// A call whose result is kept gives this object, as guards say. Another call evaluates the function;
// its result is kept when the call ends. Arguments are constants, or objects that guards compare.
class CachedFunctionVariable : public Variable {
 public:
  explicit CachedFunctionVariable(Object existing) { object = std::move(existing); }

  PyTypeObject* type() const override { return Py_TYPE(object.get()); }
  void guard(Capture& capture) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;
  void replay(Capture& capture, Builder& builder) override;

 private:
  Object keyOf(Capture& capture, const Arguments& given) const;
  Variable* known(PyObject* key) const;
  Variable* keptBefore(Capture& capture, PyObject* key);
  Variable* evaluate(Capture& capture, PyObject* key, const Arguments& given);
  void note(Capture& capture, PyObject* key, Variable* result);
  // Returns where guards find the function.
  Source* place(Capture& capture) const;

  // The calls of the program, in their order.
  struct Use {
    enum class Kind : uint8_t { kFinds, kKeeps, kClears };
    Kind kind;
    Arguments given;
    Variable* result = nullptr;
  };
  std::vector<Use> uses_;
  Object results_;  // dict: key -> number in `values_`; those of this call
  std::vector<Variable*> values_;
  bool cleared_ = false;
  bool keeps_new_ = false;
};

}  // namespace wick::capture
