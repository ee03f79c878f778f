#include "capture/values/identity.h"

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/tensor.h"

namespace wick::capture {

int IdVariable::build(Builder& builder) {
  return builder.make(StepKind::kCall, {builder.constant(builtinNamed("id")), builder.build(of_)});
}

void checkIds(const Variable* key, PyObject* object, const Variable* known,
              PyObject* known_object) {
  const bool is_id = dynamic_cast<const IdVariable*>(key);
  const bool known_id = dynamic_cast<const IdVariable*>(known);
  if ((is_id && !known_id && PyLong_Check(known_object)) ||
      (known_id && !is_id && PyLong_Check(object))) {
    breakGraph("an id is looked up among numbers");
  }
}

void checkIdentity(const Variable& variable) {
  const auto* const tensor = dynamic_cast<const TensorVariable*>(&variable);
  if (tensor && tensor->joined) {
    breakGraph("the identity of a tensor that a branch on elements decides");
  }
}

Variable* idOf(Capture& capture, Variable* variable) {
  capture.use(variable);
  checkIdentity(*variable);
  if (!variable->id) {
    if (variable->source && !variable->constant()) {
      // A tuple may be found in two places.
      Variable* const first = capture.firstWithId(variable);
      if (first != variable) {
        capture.guardSame(first, variable, true);
        return variable->id = first->id;
      }
      // Objects that are several now must not be one object in another call.
      capture.guards.addDistinct(variable->source);
    }
    variable->id = capture.make<IdVariable>(variable);
  }
  return variable->id;
}

}  // namespace wick::capture
