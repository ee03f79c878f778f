#include "capture/evaluate/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/guards/numpy.h"
#include "capture/values/array.h"
#include "capture/values/constant.h"
#include "capture/values/dict.h"
#include "capture/values/sequence.h"
#include "capture/values/size.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

constexpr int kMaxNesting = 50;

// The module wick._arrays, which knows numpy's functions; all is null for a numpy that it does not fit.
struct Rules {
  Object all, of_python, conversions, plan, like, order, stand_in;
};

const Rules& rules() {
  static const Rules& known = *new Rules([] {
    const Object module = Object::own(PyImport_ImportModule("wick._arrays"));
    if (!module) {
      if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError();
      PyErr_Clear();
      return Rules();
    }
    const auto part = [&](const char* name) {
      return Object::checked(PyObject_GetAttrString(module.get(), name));
    };
    return Rules{part("RULES"), part("OF_PYTHON"), part("conversion_of"), part("plan"),
                 part("like"),  part("order_of"),  part("Array")};
  }());
  return known;
}

// Returns whether arrays of the numpy that the program has can be computed with.
bool areArraysKnown() {
  return arrayClass() && rules().all;
}

// Returns whether a table has the function as a key.
bool knows(const Object& table, PyObject* function) {
  PyObject* const found = PyDict_GetItemWithError(table.get(), function);
  if (!found) PyErr_Clear();  // it cannot be hashed
  return found != nullptr;
}

[[noreturn]] void breakByError(const std::string& what) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw PythonError();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Object kind = Object::own(type), error = Object::own(value), trace = Object::own(traceback);
  const Object text = Object::own(error ? PyObject_Str(error.get()) : nullptr);
  const char* const utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  const std::string message = utf8 ? utf8 : "an error";
  PyErr_Clear();
  breakGraph(fmt::format("{}: {}", what, message.substr(0, message.find('\n'))));
}

std::string nameOf(PyObject* function) {
  const Object name = Object::own(PyObject_GetAttrString(function, "__name__"));
  const char* const text = name ? PyUnicode_AsUTF8(name.get()) : nullptr;
  if (!text) PyErr_Clear();
  return text ? text : "a function";
}

// Returns the module of the functions of tensors, and chooses the world of the graph.
Object libraryOf(Capture& capture) {
  capture.recording->enterArrays();
  return capture.recording->world().library();
}

// The objects that stand for the arguments of a call while it is planned.
class StandIns {
 public:
  explicit StandIns(Capture& capture) : capture_(capture) {}

  Object of(Variable* variable, int depth = 0) {
    if (depth > kMaxNesting) breakGraph("values are nested too deeply");
    capture_.use(variable);
    if (auto* const array = dynamic_cast<ArrayVariable*>(variable)) return ofArray(*array);
    if (dynamic_cast<TensorVariable*>(variable)) breakGraph("a tensor in a function of numpy");
    if (auto* const slice = dynamic_cast<SliceVariable*>(variable)) {
      Object parts[3];
      for (size_t i = 0; i < 3; ++i) parts[i] = of(slice->part(i), depth + 1);
      return Object::checked(PySlice_New(parts[0].get(), parts[1].get(), parts[2].get()));
    }
    if (PyObject* const constant = variable->constant()) return Object::share(constant);
    auto* const sequence = dynamic_cast<SequenceVariable*>(variable);
    if (!sequence) breakGraph(fmt::format("{} in a function of numpy", describe(*variable)));
    const std::vector<Variable*> elements = sequence->all(capture_);
    const auto count = static_cast<Py_ssize_t>(elements.size());
    Object made = Object::checked(PyList_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyList_SET_ITEM(made.get(), i, of(elements[static_cast<size_t>(i)], depth + 1).leak());
    }
    if (variable->type() == &PyList_Type) return made;
    if (variable->type() != &PyTuple_Type && !capture_.world.isSizeType(variable->type())) {
      breakGraph(fmt::format("{} in a function of numpy", describe(*variable)));
    }
    return Object::checked(PyList_AsTuple(made.get()));
  }
  ArrayVariable* arrayOf(PyObject* object) const {
    const auto found = arrays_.find(object);
    return found == arrays_.end() ? nullptr : found->second;
  }

 private:
  Object ofArray(ArrayVariable& array) {
    Object& made = made_[&array];
    if (!made) {
      made = Object::checked(PyObject_CallOneArg(rules().stand_in.get(), array.shadow()));
      arrays_[made.get()] = &array;
    }
    return made;
  }

  Capture& capture_;
  std::unordered_map<ArrayVariable*, Object> made_;
  std::unordered_map<PyObject*, ArrayVariable*> arrays_;
};

// One call of a function on arrays.
class ArrayCall {
 public:
  ArrayCall(Capture& capture, PyObject* function, const Arguments& given)
      : capture_(capture), function_(Object::share(function)), stand_ins_(capture) {
    const auto named = static_cast<Py_ssize_t>(given.keywords.size());
    positional_ = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(given.positional.size())));
    keywords_ = Object::checked(PyDict_New());
    if (named > 0) names_ = Object::checked(PyTuple_New(named));
    for (size_t i = 0; i < given.positional.size(); ++i) {
      const Object each = stand_ins_.of(given.positional[i]);
      add(each);
      PyTuple_SET_ITEM(positional_.get(), static_cast<Py_ssize_t>(i), Py_NewRef(each.get()));
    }
    for (size_t i = 0; i < given.keywords.size(); ++i) {
      const auto& [name, value] = given.keywords[i];
      const Object each = stand_ins_.of(value);
      add(each);
      PyTuple_SET_ITEM(names_.get(), static_cast<Py_ssize_t>(i), Py_NewRef(name.get()));
      if (PyDict_SetItem(keywords_.get(), name.get(), each.get()) < 0) throw PythonError();
    }
  }

  Variable* run() {
    const Object plan = Object::own(PyObject_CallFunctionObjArgs(
        rules().plan.get(), function_.get(), positional_.get(), keywords_.get(), nullptr));
    if (!plan) breakByError("numpy." + nameOf(function_.get()));
    PyObject *lower = nullptr, *inputs = nullptr, *results = nullptr, *container = nullptr,
             *written = nullptr;
    int may_fail = 0;
    if (!PyArg_ParseTuple(plan.get(), "OOOOOp", &lower, &inputs, &results, &container, &written,
                          &may_fail)) {
      throw PythonError();
    }
    ArrayVariable* const array = stand_ins_.arrayOf(written);
    const bool writes = array && array->checkWrite(capture_);
    // Memory that is written stays so when the graph fails.
    capture_.arrays_written |= writes;
    capture_.arrays_may_fail |= may_fail != 0;
    if (capture_.arrays_written && capture_.arrays_may_fail) {
      breakGraph("a write to an array of the program, and subscripts that may be out of range");
    }
    if (lower != Py_None) compute(lower, inputs, writes);
    std::vector<Variable*> made;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(results); ++i) {
      made.push_back(resultOf(PyList_GET_ITEM(results, i), container == Py_None ? -1 : i));
    }
    if (container == reinterpret_cast<PyObject*>(&PyList_Type)) {
      return capture_.make<ListVariable>(std::move(made));
    }
    if (container == reinterpret_cast<PyObject*>(&PyTuple_Type)) {
      return capture_.make<TupleVariable>(std::move(made), &PyTuple_Type);
    }
    return made.at(0);
  }

 private:
  // Notes an argument for the recipe of views.
  void add(const Object& stand_in) {
    ArrayVariable* const array = stand_ins_.arrayOf(stand_in.get());
    arguments_.emplace_back(array, array ? Object() : stand_in);
  }

  // Records the operators, whose results are the next tensors.
  void compute(PyObject* lower, PyObject* inputs, bool writes) {
    if (capture_.recording->isAutocastOn()) breakGraph("arrays of numpy within autocast");
    const Object library = libraryOf(capture_);
    std::vector<PyObject*> arguments{library.get()};
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i) {
      PyObject* const each = PyList_GET_ITEM(inputs, i);
      if (ArrayVariable* const array = stand_ins_.arrayOf(each)) {
        arguments.push_back(array->tensor().fake());
        continue;
      }
      // A constant, which each run copies.
      const Object maker = Object::checked(PyObject_GetAttrString(library.get(), "tensor"));
      static PyObject *const device = PyUnicode_InternFromString("cpu"), *const names =
                                                                             Py_BuildValue(
                                                                                 "(s)", "device");
      arguments.push_back(
          capture_.keep(capture_.recording->call(maker.get(), {each, device}, names)));
    }
    if (writes) capture_.recording->setWritesArrays(true);
    const Object made = capture_.recording->callOpaque(lower, arguments, nullptr);
    if (writes) capture_.recording->setWritesArrays(false);
    if (!PyTuple_Check(made.get())) breakGraph("a rule for arrays gives no tuple");
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(made.get()); ++i) {
      auto* const tensor = dynamic_cast<TensorVariable*>(
          capture_.result(Object::share(PyTuple_GET_ITEM(made.get(), i))));
      if (!tensor) breakGraph("a rule for arrays gives no tensor");
      tensors_.push_back(tensor);
    }
  }

  Variable* resultOf(PyObject* result, Py_ssize_t index) {
    const char* kind = nullptr;
    PyObject *value = nullptr, *of = Py_None;
    int copied = 0;
    if (!PyArg_ParseTuple(result, "sO|Op", &kind, &value, &of, &copied)) throw PythonError();
    const std::string_view what = kind;
    if (what == "constant") return wrapComputed(capture_, Object::share(value));
    if (what == "same") return stand_ins_.arrayOf(value);
    TensorVariable& tensor = *tensors_.at(next_++);
    ArrayVariable* const base = stand_ins_.arrayOf(of);
    if (!base) return capture_.make<ArrayVariable>(tensor, Object::share(value));
    if (copied) base->noteCopy();
    return capture_.make<ArrayVariable>(
        tensor, Object::share(value),
        ArrayVariable::View{function_, arguments_, names_, base, index});
  }

  Capture& capture_;
  const Object function_;
  StandIns stand_ins_;
  Object positional_, keywords_, names_;
  std::vector<std::pair<Variable*, Object>> arguments_;
  std::vector<TensorVariable*> tensors_;
  size_t next_ = 0;
};

// ---- arrays and tensors ----

// Returns the array on the memory of a tensor; `function` makes it of the tensor.
Variable* arrayOn(Capture& capture, TensorVariable& tensor, PyObject* function) {
  const auto part = [&](const char* name) {
    const Object text = Object::checked(PyUnicode_InternFromString(name));
    return getAttribute(capture, &tensor, text.get());
  };
  if (truthOf(capture, part("requires_grad"))) breakGraph("an array of a tensor with a gradient");
  if (tensor.joined) breakGraph("an array of a tensor that a branch on elements decides");
  const Object sizes = capture.objectFor(part("shape")),
               strides = capture.objectFor(callMethod(capture, &tensor, "stride")),
               dtype = capture.objectFor(part("dtype"));
  const Object shadow = Object::own(PyObject_CallFunctionObjArgs(
      rules().like.get(), sizes.get(), strides.get(), dtype.get(), nullptr));
  if (!shadow) breakByError("an array of a tensor");
  ArrayVariable::View view{Object::share(function), {{&tensor, Object()}}, {}, nullptr, -1};
  return capture.make<ArrayVariable>(tensor, shadow, std::move(view));
}

// Returns the tensor that a function makes of an array, on its memory or a copy.
Variable* tensorOf(Capture& capture, ArrayVariable& array, PyObject* function, PyObject* lower,
                   bool shares) {
  if (shares && !array.isBorrowed()) return &array.lend();
  const Object library = libraryOf(capture);
  const Object made =
      capture.recording->callOpaque(lower, {library.get(), array.tensor().fake()}, nullptr);
  if (!shares) return capture.result(made);
  array.noteTensor();
  return capture.standFor(
      made, capture.make<ArrayTensorVariable>(made, capture.recording->typeOf(made.get()), array,
                                              Object::share(function)));
}

// Calls a function that makes a tensor of an array or the other way round; null for others.
Variable* convert(Capture& capture, PyObject* function, const Arguments& given) {
  if (given.positional.empty()) return nullptr;
  auto* const tensor = dynamic_cast<TensorVariable*>(given.positional[0]);
  auto* const array = dynamic_cast<ArrayVariable*>(given.positional[0]);
  if (!tensor && !array) return nullptr;
  // Most functions of tensors have other names.
  static constexpr std::string_view kNames[] = {"from_numpy", "as_tensor", "tensor",
                                                "numpy",      "asarray",   "array"};
  if (std::ranges::find(kNames, nameOf(function)) == std::end(kNames)) return nullptr;
  const Object values = Object::checked(PyDict_New());
  const bool alone = given.positional.size() == 1 && given.keywords.empty();
  if (array) {
    for (const auto& [name, value] : given.keywords) {
      PyObject* const constant = capture.use(value)->constant();
      if (!constant) return nullptr;
      if (PyDict_SetItem(values.get(), name.get(), constant) < 0) throw PythonError();
    }
  }
  const Object found = Object::own(PyObject_CallFunctionObjArgs(
      rules().conversions.get(), function, values.get(), tensor ? Py_True : Py_False, nullptr));
  if (!found) breakByError(nameOf(function));
  if (found.get() == Py_None) return nullptr;
  PyObject *library = nullptr, *lower = nullptr;
  int shares = 0;
  if (!PyArg_ParseTuple(found.get(), "OOp", &library, &lower, &shares)) throw PythonError();
  if (tensor) {
    if (!alone) breakGraph(fmt::format("{}() of a tensor with these arguments", nameOf(function)));
    capture.use(tensor);
    return arrayOn(capture, *tensor, function);
  }
  if (given.positional.size() != 1) return nullptr;
  const Object maker = Object::checked(PyObject_GetAttrString(library, "tensor"));
  capture.recording->enter(maker.get());
  capture.use(array);
  const Object strides = Object::checked(PyObject_GetAttrString(array->shadow(), "strides"));
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(strides.get()); ++i) {
    if (PyLong_AsLong(PyTuple_GET_ITEM(strides.get(), i)) < 0) {
      breakGraph("a tensor of an array with a negative stride");
    }
  }
  if (array->isNumber()) breakGraph(fmt::format("{}() of a number of numpy", nameOf(function)));
  return tensorOf(capture, *array, function, lower, shares != 0);
}

// Evaluates what implements a function of numpy that is written in Python: implement_array_function(implementation, function,
// relevant arguments, arguments, keywords).
Variable* callImplementation(Capture& capture, const Arguments& given) {
  if (given.positional.size() != 5 || !given.keywords.empty()) return nullptr;
  // Other classes could have a say in it.
  for (Variable* each : elementsOf(capture, given.positional[2])) {
    capture.use(each);
    const bool known = dynamic_cast<ArrayVariable*>(each) ||
                       dynamic_cast<SequenceVariable*>(each) ||
                       dynamic_cast<ConstantVariable*>(each);
    if (!known) breakGraph(fmt::format("{} in a function of numpy", describe(*each)));
  }
  auto* const names = capture.as<DictVariable>(given.positional[4]);
  if (!names) return nullptr;
  Arguments all{elementsOf(capture, given.positional[3]), {}};
  for (const auto& [key, value] : names->items(capture)) {
    PyObject* const name = capture.use(key)->constant();
    if (!name) return nullptr;
    all.keywords.emplace_back(Object::share(name), value);
  }
  return callVariable(capture, given.positional[0], all);
}

bool isOfNumpy(Variable* variable) {
  PyObject* const constant =
      dynamic_cast<ConstantVariable*>(variable) ? variable->constant() : nullptr;
  return dynamic_cast<ArrayVariable*>(variable) || (constant && isArrayNumber(constant));
}

}  // namespace

Object shadowOf(PyObject* array) {
  if (!areArraysKnown()) breakGraph("an array of a numpy that is not known");
  Object made = Object::own(PyObject_CallOneArg(rules().like.get(), array));
  if (!made) breakByError("an array");
  return made;
}

Object orderOf(PyObject* shadow) {
  Object order = Object::own(PyObject_CallOneArg(rules().order.get(), shadow));
  if (!order) breakByError("an array that is made");
  return order;
}

Variable* callArrayFunction(Capture& capture, PyObject* function, const Arguments& given) {
  if (!areArraysKnown()) return nullptr;
  if (Variable* const found = convert(capture, function, given)) return found;
  if (function == arrayDispatcher()) return callImplementation(capture, given);
  const auto isArrayVariable = [](Variable* each) {
    return dynamic_cast<ArrayVariable*>(each) != nullptr;
  };
  const bool known =
      knows(rules().all, function) || (std::ranges::any_of(given.positional, isArrayVariable) &&
                                       knows(rules().of_python, function));
  return known ? ArrayCall(capture, function, given).run() : nullptr;
}

Variable* operateOnArrays(Capture& capture, const char* name, std::vector<Variable*> operands) {
  if (!areArraysKnown() || std::ranges::none_of(operands, isOfNumpy)) return nullptr;
  const auto isConstant = [](Variable* each) { return each->constant() != nullptr; };
  for (Variable* each : operands) {
    if (dynamic_cast<TensorVariable*>(each)) breakGraph("an operator on an array and a tensor");
  }
  const auto isArrayVariable = [](Variable* each) {
    return dynamic_cast<ArrayVariable*>(each) != nullptr;
  };
  if (std::ranges::none_of(operands, isArrayVariable)) {
    if (std::ranges::all_of(operands, isConstant)) return nullptr;
    breakGraph(fmt::format("'{}' of a number of numpy", name));
  }
  const Object function = operatorFunction(name);
  return ArrayCall(capture, function.get(), {std::move(operands), {}}).run();
}

}  // namespace wick::capture
