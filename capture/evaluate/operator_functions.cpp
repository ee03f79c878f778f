// Functions and classes of `operator` that are not operators of the language.
#include "capture/bytecode/instance.h"
#include "capture/evaluate/builtins.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/handlers.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/getter.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

constexpr int kPlus = 0, kPlusAssign = 13;  // of BINARY_OP

Variable* storeItem(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 3) return nullptr;
  setItem(capture, given.positional[0], given.positional[1], given.positional[2]);
  return capture.constant(Py_None);
}

Variable* removeItem(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  setItem(capture, given.positional[0], given.positional[1], nullptr);
  return capture.constant(Py_None);
}

template <int kOp>
Variable* concatenated(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  Variable *const left = capture.use(given.positional[0]), *const right =
                                                               capture.use(given.positional[1]);
  // Numbers cannot be concatenated, and tensors have other rules.
  const bool sequence = dynamic_cast<SequenceVariable*>(left) ||
                        (left->constant() && PySequence_Check(left->constant()));
  return sequence ? binary(capture, kOp, left, right) : nullptr;
}

template <Unary kOp>
Variable* unaryOperator(Capture& capture, const Arguments& given) {
  return argumentCount(given) == 1 ? unary(capture, kOp, given.positional[0]) : nullptr;
}

Variable* absoluteValue(Capture& capture, const Arguments& given) {
  return callBuiltin(capture, builtinNamed("abs"), given);
}

template <bool kWanted>
Variable* identical(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  return capture.constantBool(isSame(capture, given.positional[0], given.positional[1]) == kWanted);
}

Variable* countEqual(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  int64_t found = 0;
  Variable* const iterator = iterate_(capture, given.positional[0]);
  while (Variable* each = nextOf(capture, iterator)) {
    found += isEqual(capture, each, given.positional[1]);
  }
  return capture.constantLong(found);
}

Variable* indexOfEqual(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  int64_t at = 0;
  Variable* const iterator = iterate_(capture, given.positional[0]);
  while (Variable* each = nextOf(capture, iterator)) {
    if (isEqual(capture, each, given.positional[1])) return capture.constantLong(at);
    ++at;
  }
  capture.raise(PyExc_ValueError, "sequence.index(x): x not in sequence");
}

Variable* callGiven(Capture& capture, const Arguments& given) {
  if (given.positional.empty()) return nullptr;
  return callVariable(capture, given.positional[0],
                      {{given.positional.begin() + 1, given.positional.end()}, given.keywords});
}

template <GetterVariable::Kind kKind>
Variable* getter(Capture& capture, const Arguments& given) {
  if (given.positional.empty()) return nullptr;
  if (kKind != GetterVariable::Kind::kMethod && !given.keywords.empty()) return nullptr;
  for (Variable* each : given.positional) {
    PyObject* const name = capture.use(each)->constant();
    if (kKind != GetterVariable::Kind::kItem && (!name || !PyUnicode_CheckExact(name))) {
      return nullptr;
    }
    if (kKind == GetterVariable::Kind::kMethod) break;  // arguments follow
  }
  return capture.make<GetterVariable>(kKind, given);
}

}  // namespace

void addOperatorFunctions(Handlers& handlers) {
  using Kind = GetterVariable::Kind;
  const auto add = [&](const char* name, Handler handler) {
    addFrom(handlers, "operator", name, handler);
  };
  add("setitem", storeItem);
  add("delitem", removeItem);
  add("concat", concatenated<kPlus>);
  add("iconcat", concatenated<kPlusAssign>);
  add("pos", unaryOperator<Unary::kPositive>);
  add("invert", unaryOperator<Unary::kInvert>);
  add("inv", unaryOperator<Unary::kInvert>);
  add("abs", absoluteValue);
  add("is_", identical<true>);
  add("is_not", identical<false>);
  add("countOf", countEqual);
  add("indexOf", indexOfEqual);
  add("call", callGiven);
  add("itemgetter", getter<Kind::kItem>);
  add("attrgetter", getter<Kind::kAttribute>);
  add("methodcaller", getter<Kind::kMethod>);
}

}  // namespace wick::capture
