// operator.itemgetter, attrgetter and methodcaller.
#pragma once

#include "capture/values/variable.h"

namespace wick::capture {

class GetterVariable : public Variable {
 public:
  enum class Kind : uint8_t { kItem, kAttribute, kMethod };

  // An object that exists.
  GetterVariable(Kind kind, Object existing) : kind_(kind) { object = std::move(existing); }
  // An object that the program makes: of keys, of names, or of a method's name and its arguments.
  GetterVariable(Kind kind, Arguments given) : kind_(kind), given_(std::move(given)) {}

  PyTypeObject* type() const override { return typeOf(kind_); }
  void guard(Capture& capture) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  bool truth(Capture&) override { return true; }
  int build(Builder& builder) override;

  static PyTypeObject* typeOf(Kind kind);

 private:
  Variable* get(Capture& capture, Variable* from, Variable* key) const;

  Kind kind_;
  Arguments given_;
};

}  // namespace wick::capture
