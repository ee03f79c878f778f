// Dicts of classes that are written in Python, such as collections.Counter.
#pragma once

#include "capture/values/dict.h"

namespace wick::capture {

// The operations ask the methods of the class, as Python does. DictVariable's, called by their full
// names, and callMethod() are the methods of `dict` itself.
class DerivedDictVariable : public DictVariable {
 public:
  // A dict that exists.
  explicit DerivedDictVariable(Object existing)
      : DictVariable(std::move(existing), Access::kDictItem) {}
  // A dict that the program makes.
  explicit DerivedDictVariable(PyTypeObject* type) : DictVariable(type) {}

  Variable* ownAttribute(Capture& capture, PyObject* name) override;
  void setAttribute(Capture& capture, PyObject* name, Variable* value) override;
  Variable* call(Capture& capture, const Arguments& given) override;
  Variable* callMethod(Capture& capture, const std::string& name, const Arguments& given) override;
  Variable* item(Capture& capture, Variable* key) override;
  void setItem(Capture& capture, Variable* key, Variable* value) override;
  int64_t length(Capture& capture) override;
  bool truth(Capture& capture) override;
  Variable* iterate(Capture& capture) override;
  bool contains(Capture& capture, Variable* element) override;
  int build(Builder& builder) override;

  // The dict of the object's own attributes.
  DictVariable* attributes(Capture& capture);
  // Returns whether the class has a method of its own in the place of the dict's.
  bool overrides(const char* name) const;

 private:
  Variable* plainItem(Capture& capture, Variable* key);

  DictVariable* attributes_ = nullptr;
};

// Returns whether instances of the class are such dicts.
bool isDerivedDict(PyTypeObject* type);

}  // namespace wick::capture
