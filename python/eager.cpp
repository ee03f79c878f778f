#include "python/eager.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/error_types.h"
#include "frontend/builtin_table.h"
#include "frontend/compile.h"
#include "frontend/schema_matching.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/inline_calls.h"
#include "python/autocast.h"
#include "python/call_plan.h"
#include "python/call_text.h"
#include "python/callee_schemas.h"
#include "python/convert.h"
#include "python/interrupts.h"
#include "python/module.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"
#include "python/tracing.h"
#include "runtime/call.h"

namespace wick::python {
namespace {

constexpr size_t kMaxKept = 2048;  // compiled texts of one function object

struct CompiledCall {
  std::shared_ptr<void> unit;
  GraphFunction* function = nullptr;
  std::unique_ptr<CallPlan> plan;  // null: the function runs
  Spelling spelling;
  std::shared_ptr<Graph> flat;  // with functions inlined, for traces; made when it is needed
  // With the casts of autocast, by its state; for functions without a plan.
  std::unordered_map<int64_t, std::shared_ptr<GraphFunction>> cast;
};

struct EagerObject {
  PyObject_HEAD vectorcallfunc vectorcall;
  struct State {
    CallForm form;
    std::string text;
    std::string qualified;
    bool gives_dtype;
    size_t texts = 0;  // that were compiled, or did not compile
    // Threads run these without the GIL, while others may compile the same one or forget all.
    std::unordered_map<std::string, std::shared_ptr<CompiledCall>> calls;
    std::string last_key;
    std::shared_ptr<CompiledCall> last;
  } * state;
};

PyTypeObject* function_type = nullptr;
PyTypeObject* method_type = nullptr;
PyTypeObject* property_type = nullptr;

EagerObject::State& stateOf(PyObject* object) {
  return *reinterpret_cast<EagerObject*>(object)->state;
}

// ---- compiling ----

// A copy with the functions of the library taken apart.
std::shared_ptr<Graph> flattened(const Graph& graph) {
  std::shared_ptr<Graph> copy = graph.copy();
  inlineCalls(*copy);
  propagateConstants(*copy);
  eliminateDeadCode(*copy);
  return copy;
}

// With the functions of the library taken apart, where that leaves operators alone.
std::unique_ptr<CallPlan> planFor(GraphFunction& function) {
  if (auto plan = planOf(*function.graph())) return plan;
  auto plan = planOf(*flattened(*function.graph()));
  if (!plan) return nullptr;
  // A tensor made once must not be returned, or written to, again and again.
  for (const auto& [slot, value] : plan->constants) {
    if (value.isTensor() || value.isList() || value.isDict() || value.isObject()) return nullptr;
  }
  return plan;
}

std::unique_ptr<CompiledCall> compileText(const std::string& text) {
  const WithoutGil others;
  const std::shared_ptr<CompilationUnit> unit = compileSource(text, "<eager>");
  auto compiled = std::make_unique<CompiledCall>();
  compiled->function = unit->findFunction("__torch__.f");
  compiled->unit = unit;
  compiled->plan = planFor(*compiled->function);
  return compiled;
}

// Whether booleans that stand as numbers are read as nothing else: an operator that wants an int takes
// no boolean, and a function that is written in script takes only what its parameters say.
bool readAsNumbers(const CompiledCall& call, const Arguments& arguments) {
  if (!call.plan) return false;
  const std::shared_ptr<Graph> graph = flattened(*call.function->graph());
  for (size_t i = 0; i < arguments.count; ++i) {
    if (!call.spelling.changes(i) || !arguments.values[i].isBool()) continue;
    for (const Use& use : graph->inputs()[i]->uses()) {
      const Operator* op = use.user->maybeOperator();
      if (!op || use.user->kind() == aten::Int) return false;
      if (use.offset >= op->schema().arguments().size()) return false;
      const Type& type = withoutOptional(op->schema().arguments()[use.offset].type);
      if (type.kind() != TypeKind::Number) return false;
    }
  }
  return true;
}

// Whether the call computes with a dtype or its like as with a number.
bool computesWithNames(const CompiledCall& call, const Arguments& arguments) {
  for (size_t i = 0; i < arguments.count; ++i) {
    if ((arguments.named_numbers >> i & 1) == 0) continue;
    for (const Use& use : call.function->graph()->inputs()[i]->uses()) {
      const Operator* op = use.user->maybeOperator();
      if (!op || use.offset >= op->schema().arguments().size()) continue;
      const Type& type = withoutOptional(op->schema().arguments()[use.offset].type);
      if (type.kind() == TypeKind::Number) return true;
    }
  }
  return false;
}

constexpr const char* kNoNumber = "a dtype is no number to compute with";

// Null when it does not compile; `why` gets the message of the first try.
std::unique_ptr<CompiledCall> tryCompile(EagerObject::State& state, const Arguments& arguments,
                                         const Spelling& spelling, const CalleeSchemas& schemas,
                                         std::string& why) {
  bool has_empty = false;
  for (size_t i = 0; i < arguments.count; ++i) has_empty |= isEmptyList(arguments.values[i]);
  const std::string last = schemas.parameterOfName(arguments);
  for (const char* empty_list : schemas.emptyListTypes(arguments)) {
    try {
      ++state.texts;
      auto compiled =
          compileText(programText(state.form, state.text, arguments, spelling, empty_list, last));
      compiled->spelling = spelling;
      if (spelling.form == ArgumentForm::Numbers && !readAsNumbers(*compiled, arguments)) continue;
      if (arguments.named_numbers != 0 && computesWithNames(*compiled, arguments)) {
        why = kNoNumber;
        return nullptr;
      }
      return compiled;
    } catch (const CompileError& error) {
      if (why.empty()) why = error.brief();
    }
    if (!has_empty) break;
  }
  return nullptr;
}

// The compiled form of this call; the values are made to fit its form. Null when nothing fits and
// `or_null`.
std::shared_ptr<CompiledCall> find(EagerObject::State& state, Arguments& arguments, bool or_null) {
  const Spelling first;
  makeKey(arguments, first);
  if (state.last && state.last->spelling == first && arguments.key == state.last_key) {
    return state.last;
  }
  const auto remember = [&](const std::shared_ptr<CompiledCall>& call) {
    state.last_key = arguments.key;
    state.last = call;
    return call;
  };
  const auto keep = [&](std::unique_ptr<CompiledCall> compiled) {
    if (state.calls.size() >= kMaxKept) {
      state.calls.clear();
      state.last = nullptr;
    }
    auto& place = state.calls[arguments.key];
    place = std::move(compiled);
    return remember(place);
  };
  const std::string base_key = arguments.key;
  if (const auto found = state.calls.find(base_key); found != state.calls.end()) {
    const Spelling spelling = found->second->spelling;  // other threads may forget the call
    if (spelling == first) return remember(found->second);
    spell(arguments, spelling);
    if (const auto other = state.calls.find(arguments.key); other != state.calls.end()) {
      return remember(other->second);
    }
    readArguments(arguments);
    makeKey(arguments, first);
  }
  checkNames(arguments);
  std::string why;
  const CalleeSchemas schemas(state.form, state.text);
  if (auto compiled = tryCompile(state, arguments, first, schemas, why)) {
    return keep(std::move(compiled));
  }
  for (const Spelling& spelling : schemas.otherSpellings(arguments)) {
    if (why == kNoNumber) break;  // as a literal it would be one
    spell(arguments, spelling);
    auto compiled = tryCompile(state, arguments, spelling, schemas, why);
    if (!compiled) continue;
    if (!state.calls.count(base_key)) {
      auto redirect = std::make_shared<CompiledCall>();
      redirect->spelling = spelling;
      state.calls[base_key] = std::move(redirect);
    }
    return keep(std::move(compiled));
  }
  if (or_null) return nullptr;
  readArguments(arguments);
  makeKey(arguments, first);
  raise(PyExc_TypeError, fmt::format("{}({}): {}", state.qualified, describeTypes(arguments), why));
}

// ---- running ----

IValue runPlan(const CallPlan& plan, Arguments& arguments) {
  ValueArray<kMaxPlanSlots> slots(plan.num_slots);
  for (size_t i = 0; i < arguments.count; ++i) slots[i] = std::move(arguments.values[i]);
  noteLazyPlace();
  const Interruptible interruptible;
  const WithoutGil others;
  return plan.run(slots.data());
}

IValue runFunction(const CompiledCall& call, Arguments& arguments) {
  IValue* first = arguments.values.data();
  std::vector<IValue> values(std::make_move_iterator(first),
                             std::make_move_iterator(first + arguments.count));
  const RunOptions options = interruptibleRun();
  const std::shared_ptr<void> unit = call.unit;
  noteLazyPlace();
  const WithoutGil others;
  return callFunction(*call.function, std::move(values), {}, options, &unit);
}

// Returns the function with the casts of autocast; null if it needs none.
std::shared_ptr<GraphFunction> castFunction(CompiledCall& call, const Autocast& autocast) {
  AutocastMode mode = autocastMode();
  mode.nesting = 0;
  const auto found = call.cast.find(mode.packed());
  if (found != call.cast.end()) return found->second;
  std::shared_ptr<Graph> graph = autocast.castGraph(*flattened(*call.function->graph()));
  if (!graph) return nullptr;
  auto made = std::make_shared<GraphFunction>(call.function->qualifiedName(), std::move(graph));
  made->setSchema(call.function->schema());
  return call.cast[mode.packed()] = made;
}

// Does what runFunction() does with another form of the function.
IValue runCast(const std::shared_ptr<void>& unit, const std::shared_ptr<GraphFunction>& function,
               Arguments& arguments) {
  IValue* first = arguments.values.data();
  std::vector<IValue> values(std::make_move_iterator(first),
                             std::make_move_iterator(first + arguments.count));
  const RunOptions options = interruptibleRun();
  const std::shared_ptr<void> owner =
      std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(unit, function);
  noteLazyPlace();
  const WithoutGil others;
  return callFunction(*function, std::move(values), {}, options, &owner);
}

// Runs a function that has no plan.
IValue runWhole(CompiledCall& call, Arguments& arguments) {
  const Autocast* const autocast = activeAutocast();
  const std::shared_ptr<GraphFunction> cast = autocast ? castFunction(call, *autocast) : nullptr;
  return cast ? runCast(call.unit, cast, arguments) : runFunction(call, arguments);
}

// A tensor that was written to is the same object, as in a += b.
PyObject* objectOf(const Arguments& arguments, const IValue& value) {
  if (!value.isTensor()) return toPython(value);
  Tensor tensor = value.toTensor();
  for (size_t i = 0; i < arguments.count; ++i) {
    PyObject* object = arguments.objects[i];
    if (isTensor(object) && tensorIn(object).impl() == tensor.impl()) return Py_NewRef(object);
  }
  return tensorObject(std::move(tensor));
}

Owned tupleOf(const Arguments& arguments, const std::vector<IValue>& values) {
  Owned made = checked(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (size_t i = 0; i < values.size(); ++i) {
    PyTuple_SET_ITEM(made.get(), static_cast<Py_ssize_t>(i), objectOf(arguments, values[i]));
  }
  return made;
}

PyObject* resultObject(const EagerObject::State& state, const CompiledCall& call,
                       const Arguments& arguments, const IValue& result) {
  if (result.isTensor()) return objectOf(arguments, result);
  // Where programs have lists of tensors, PyTorch's functions give tuples.
  if (result.isList() && call.plan && result.toList().element_type->kind() == TypeKind::Tensor) {
    return tupleOf(arguments, result.toList().elements).leak();
  }
  if (state.gives_dtype && result.isInt()) {
    return Py_NewRef(numberObject(NumberKind::DType, result.toInt()));
  }
  if (result.isTuple() && call.plan && !call.plan->tuple_fields.empty()) {
    return namedTuple(call.plan->tuple_name, call.plan->tuple_fields,
                      tupleOf(arguments, result.toTuple().elements));
  }
  return toPython(result);
}

PyObject* callTraced(const EagerObject::State& state, CompiledCall& call, Arguments& arguments,
                     tracing::Tracer& tracer) {
  notePlace(tracer);
  static_assert(kMaxArguments <= kMaxPlanSlots);
  std::array<Value*, kMaxPlanSlots> values;
  std::fill_n(values.begin(), arguments.count, nullptr);
  for (size_t i = 0; i < arguments.count; ++i) {
    if (call.spelling.form == ArgumentForm::Literals) {
      if (isFollowed(arguments.objects[i])) warnOfConstant("number");
    } else {
      values[i] = followedValue(tracer, arguments.objects[i], arguments.values[i]);
    }
  }
  IValue result;
  Value* followed = nullptr;
  if (call.plan) {
    ValueArray<kMaxPlanSlots> slots(call.plan->num_slots);
    for (size_t i = 0; i < arguments.count; ++i) slots[i] = std::move(arguments.values[i]);
    const Interruptible interruptible;
    const WithoutGil others;
    result = runTraced(*call.plan, slots.data(), values.data(), tracer, followed);
  } else {
    const IValue* first = arguments.values.data();
    const std::vector<IValue> given(first, first + arguments.count);
    const Graph* body = nullptr;
    std::shared_ptr<GraphFunction> cast;
    {
      const tracing::PauseTrace pause;
      if (!call.flat) call.flat = flattened(*call.function->graph());
      body = call.flat.get();
      if (const Autocast* const autocast = activeAutocast()) cast = castFunction(call, *autocast);
      if (cast) body = cast->graph().get();
    }
    tracer.stash({values.begin(), values.begin() + static_cast<ptrdiff_t>(arguments.count)});
    result = tracer.callInlined(*body, given, [&] {
      return cast ? runCast(call.unit, cast, arguments) : runFunction(call, arguments);
    });
    followed = tracer.result(0);
  }
  if (followed && !result.isTensor()) return followedObject(tracer, result, followed);
  return resultObject(state, call, arguments, result);
}

// What the text of the call needs: a method has an object, a sign its operands.
void checkCount(const EagerObject::State& state, size_t positional, PyObject* names) {
  if (state.form == CallForm::Function || (state.form == CallForm::Method && positional > 0))
    return;
  const size_t expected = state.form == CallForm::Binary ? 2 : 1;
  const size_t given = positional + (names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0);
  if (positional == expected && given == positional) return;
  raise(PyExc_TypeError, fmt::format("{}: expected {}{} argument{}, got {}", state.qualified,
                                     state.form == CallForm::Method ? "at least " : "", expected,
                                     expected == 1 ? "" : "s", given));
}

PyObject* callWith(EagerObject::State& state, PyObject* const* objects, size_t positional,
                   PyObject* names, bool or_not_implemented) {
  checkCount(state, positional, names);
  Arguments arguments(objects, positional, names);
  if (!readArguments(arguments)) {
    if (or_not_implemented) Py_RETURN_NOTIMPLEMENTED;
    for (size_t i = 0; i < arguments.count; ++i) {
      IValue value;
      if (tryValue(objects[i], value)) continue;
      raise(PyExc_TypeError, fmt::format("{}: argument {} of type {} has no form as a value",
                                         state.qualified, i + 1, Py_TYPE(objects[i])->tp_name));
    }
  }
  if (tracing::Tracer* tracer = tracing::Tracer::active()) [[unlikely]] {
    std::shared_ptr<CompiledCall> call;
    {
      const tracing::PauseTrace pause;  // constants are computed while compiling
      call = find(state, arguments, or_not_implemented);
    }
    if (!call) Py_RETURN_NOTIMPLEMENTED;
    return callTraced(state, *call, arguments, *tracer);
  }
  const std::shared_ptr<CompiledCall> call = find(state, arguments, or_not_implemented);
  if (!call) Py_RETURN_NOTIMPLEMENTED;
  const IValue result = call->plan ? runPlan(*call->plan, arguments) : runWhole(*call, arguments);
  return resultObject(state, *call, arguments, result);
}

// ---- keywords that only Python has ----

// A call without what no operator knows: requires_grad of constructors, out=None, and out=(a, b), whose
// tensors operators take under names of their own.
class PythonKeywords {
 public:
  // Whether a call of a function has such.
  static bool areIn(PyObject* const* args, size_t positional, PyObject* names) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      PyObject* const name = PyTuple_GET_ITEM(names, i);
      if (is(name, "requires_grad")) return true;
      if (is(name, "out") && !isTensor(args[positional + static_cast<size_t>(i)])) return true;
    }
    return false;
  }

  PythonKeywords(const EagerObject::State& state, PyObject* const* args, size_t positional,
                 PyObject* names)
      : values_(args, args + positional) {
    std::vector<Owned> kept;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(names); ++i) {
      PyObject* const name = PyTuple_GET_ITEM(names, i);
      PyObject* const value = args[positional + static_cast<size_t>(i)];
      if (is(name, "requires_grad")) {
        const int on = PyObject_IsTrue(value);
        check(on);
        requires_grad_ = on != 0;
      } else if (is(name, "out") && value == Py_None) {
        continue;
      } else if (!is(name, "out") || !takeApart(state, value, kept)) {
        values_.push_back(value);
        kept.push_back(Owned::share(name));
      }
    }
    names_ = checked(PyTuple_New(static_cast<Py_ssize_t>(kept.size())));
    for (size_t i = 0; i < kept.size(); ++i) {
      PyTuple_SET_ITEM(names_.get(), static_cast<Py_ssize_t>(i), kept[i].leak());
    }
  }

  PyObject* const* values() const { return values_.data(); }
  PyObject* names() const { return names_.get(); }
  bool requiresGrad() const { return requires_grad_; }

 private:
  static bool is(PyObject* name, const char* text) {
    return PyUnicode_CompareWithASCIIString(name, text) == 0;
  }

  // The members of a tuple under the operator's names. False when it has none for so many tensors.
  bool takeApart(const EagerObject::State& state, PyObject* value, std::vector<Owned>& names) {
    if (!PyTuple_Check(value) && !PyList_Check(value)) return false;
    members_ = checked(PySequence_Tuple(value));
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(members_.get()));
    const std::vector<std::string> out = CalleeSchemas(state.form, state.text).outNames(count);
    if (out.empty()) return false;
    for (size_t i = 0; i < count; ++i) {
      values_.push_back(PyTuple_GET_ITEM(members_.get(), static_cast<Py_ssize_t>(i)));
      names.push_back(checked(PyUnicode_FromString(out[i].c_str())));
    }
    return true;
  }

  std::vector<PyObject*> values_;
  Owned names_;
  Owned members_;
  bool requires_grad_ = false;
};

PyObject* vectorcall(PyObject* self, PyObject* const* args, size_t flags, PyObject* names) {
  return guarded([&] {
    EagerObject::State& state = stateOf(self);
    const auto positional = static_cast<size_t>(PyVectorcall_NARGS(flags));
    if (!names || state.form != CallForm::Function ||
        !PythonKeywords::areIn(args, positional, names)) {
      return callWith(state, args, positional, names, false);
    }
    const PythonKeywords call(state, args, positional, names);
    Owned result(callWith(state, call.values(), positional, call.names(), false));
    if (call.requiresGrad()) markRequiresGrad(tensorOf(result.get(), state.qualified.c_str()));
    return result.leak();
  });
}

// ---- the objects ----

PyObject* bindMethod(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, object);
}

PyObject* readProperty(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) return Py_NewRef(self);
  return guarded([&] { return callWith(stateOf(self), &object, 1, nullptr, false); });
}

PyObject* eagerRepr(PyObject* self) {
  return guarded(
      [&] { return PyUnicode_FromFormat("<wick function %s>", stateOf(self).qualified.c_str()); });
}

PyObject* eagerName(PyObject* self, void*) {
  return guarded([&] {
    const std::string& name = stateOf(self).qualified;
    return PyUnicode_FromString(name.substr(name.rfind('.') + 1).c_str());
  });
}

PyObject* eagerQualname(PyObject* self, void*) {
  return guarded([&] { return PyUnicode_FromString(stateOf(self).qualified.c_str()); });
}

PyObject* eagerText(PyObject* self, void*) {
  return guarded([&] { return PyUnicode_FromString(stateOf(self).text.c_str()); });
}

PyObject* eagerTexts(PyObject* self, void*) {
  return PyLong_FromSize_t(stateOf(self).texts);
}

PyGetSetDef eager_properties[] = {
    {"__name__", eagerName, nullptr, nullptr, nullptr},
    {"__qualname__", eagerQualname, nullptr, nullptr, nullptr},
    {"_text", eagerText, nullptr, nullptr, nullptr},
    {"_texts", eagerTexts, nullptr, "How many program texts its calls made.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef eager_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(EagerObject, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

void freeEager(PyObject* self) {
  delete reinterpret_cast<EagerObject*>(self)->state;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyTypeObject* makeType(const char* name, descrgetfunc get, unsigned flags) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(freeEager)},
      {Py_tp_repr, reinterpret_cast<void*>(eagerRepr)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_getset, eager_properties},
      {Py_tp_members, eager_members},
      {get ? Py_tp_descr_get : 0, reinterpret_cast<void*>(get)},
      {0, nullptr},
  };
  PyType_Spec spec = {name, sizeof(EagerObject), 0,
                      static_cast<unsigned>(Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                            Py_TPFLAGS_DISALLOW_INSTANTIATION) |
                          flags,
                      slots};
  return reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).leak());
}

// ---- names ----

// What a member of a builtin module is: ("module", name), ("value", constant), ("function",
// object), or None when there is none.
PyObject* probe(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    const char *module = nullptr, *name = nullptr;
    if (!PyArg_ParseTuple(arguments, "ss", &module, &name)) return nullptr;
    GraphFunction scratch("probe", std::make_shared<Graph>());
    const SugaredValuePtr found = builtinMember(module, name, scratch);
    if (!found) Py_RETURN_NONE;
    const std::string full = fmt::format("{}.{}", module, name);
    if (dynamic_cast<const BuiltinModule*>(found.get())) {
      return Py_BuildValue("(ss)", "module", full.c_str());
    }
    if (const auto* value = dynamic_cast<const SimpleValue*>(found.get())) {
      const auto constant = constantOf(value->value());
      if (!constant) Py_RETURN_NONE;
      const Owned object(toPython(*constant));
      return Py_BuildValue("(sO)", "value", object.get());
    }
    static const std::set<std::string> kGivesDType = {"torch.promote_types", "torch.result_type",
                                                      "torch.get_default_dtype"};
    const Owned object(eagerFunction(CallForm::Function, full, full, kGivesDType.count(full) > 0));
    return Py_BuildValue("(sO)", "function", object.get());
  });
}

PyObject* suggestion(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    const char *module = nullptr, *name = nullptr;
    if (!PyArg_ParseTuple(arguments, "ss", &module, &name)) return nullptr;
    return PyUnicode_FromString(suggestBuiltinMember(module, name).c_str());
  });
}

// An expression of the language as a function: ("+", True) for a0 + a1, ("-", False) for -a0.
PyObject* expression(PyObject*, PyObject* arguments) {
  return guarded([&]() -> PyObject* {
    const char* text = nullptr;
    int binary = 0;
    if (!PyArg_ParseTuple(arguments, "sp", &text, &binary)) return nullptr;
    return eagerFunction(binary ? CallForm::Binary : CallForm::Unary, text, text);
  });
}

PyMethodDef functions[] = {
    {"_expression", expression, METH_VARARGS, "An expression with a sign, as a function."},
    {"_member", probe, METH_VARARGS, "What a member of a builtin module is."},
    {"_suggest", suggestion, METH_VARARGS, "A hint for a name that does not exist."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* eagerFunction(CallForm form, const std::string& text, const std::string& qualified,
                        bool gives_dtype) {
  PyTypeObject* type = form == CallForm::Method     ? method_type
                       : form == CallForm::Property ? property_type
                                                    : function_type;
  auto* object = PyObject_New(EagerObject, type);
  if (!object) throw PythonError();
  object->vectorcall = vectorcall;
  object->state = new EagerObject::State{form, text, qualified, gives_dtype, 0, {}, {}, nullptr};
  return reinterpret_cast<PyObject*>(object);
}

bool isEagerFunction(PyObject* object) {
  PyTypeObject* const type = Py_TYPE(object);
  return type == function_type || type == method_type || type == property_type;
}

PyObject* callEager(PyObject* function, PyObject* const* args, size_t count,
                    bool or_not_implemented) {
  return guarded(
      [&] { return callWith(stateOf(function), args, count, nullptr, or_not_implemented); });
}

PyObject* findTensorMember(PyObject* name) {
  return guarded([&]() -> PyObject* {
    const char* text = PyUnicode_AsUTF8(name);
    if (!text) return nullptr;
    const std::string field = text;
    if (field.starts_with("__")) return nullptr;
    const bool property = static_cast<bool>(propertyOperator(TypeKind::Tensor, field));
    if (!property) {
      GraphFunction scratch("probe", std::make_shared<Graph>());
      SimpleValue value(scratch.graph()->addInput("x", types::Tensor()));
      if (!value.hasAttr(SourceRange(), scratch, field)) return nullptr;
    }
    Owned member(
        eagerFunction(property ? CallForm::Property : CallForm::Method, field, "Tensor." + field));
    check(PyObject_SetAttr(reinterpret_cast<PyObject*>(tensor_type), name, member.get()));
    return member.leak();
  });
}

void addEager(PyObject* module) {
  function_type = makeType("wick.builtin_function", nullptr, 0);
  method_type = makeType("wick.builtin_method", bindMethod, Py_TPFLAGS_METHOD_DESCRIPTOR);
  property_type = makeType("wick.builtin_property", readProperty, 0);
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace wick::python
