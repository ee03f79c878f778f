#include "python/tracing.h"

#include <fmt/format.h>

#include <optional>

#include "lazy/lazy.h"
#include "python/convert.h"
#include "python/fake_recording.h"
#include "python/module.h"
#include "python/plain_types.h"
#include "python/pybind.h"
#include "python/script.h"
#include "python/script_names.h"
#include "python/source_places.h"

namespace wick::python {
namespace {

using tracing::Tracer;

PyObject* int_class = nullptr;  // of followed numbers
PyObject* float_class = nullptr;
PyObject* warning_class = nullptr;

// One recording, and the numbers that it follows.
struct Session {
  Session() : serial(++last_serial) {}
  static inline int64_t last_serial = 0;
  const int64_t serial;
  Tracer tracer;
  std::optional<tracing::TraceScope> scope;
  Session* outer = nullptr;
  std::vector<Value*> numbers;
  SourcePlaces places;
};
thread_local Session* session = nullptr;
thread_local NumberFollower* follower = nullptr;

// Of one tracer: the session that it belongs to, or null.
Session* sessionOf(const Tracer& tracer) {
  return session && &session->tracer == &tracer ? session : nullptr;
}

constexpr int64_t kNumbersASession = int64_t{1} << 32;

Value* numberValue(Session& current, PyObject* object) {
  const Owned id = checked(PyObject_GetAttrString(object, "_wick_value"));
  const int64_t number = PyLong_AsLongLong(id.get());
  if (number == -1 && PyErr_Occurred()) throw PythonError();
  if (number / kNumbersASession != current.serial) return nullptr;  // of an earlier trace
  const auto at = static_cast<size_t>(number % kNumbersASession);
  if (at >= current.numbers.size()) {
    raise(PyExc_ValueError, fmt::format("a trace follows no number {}", number));
  }
  return current.numbers[at];
}

bool holdsFollowed(PyObject* object, int depth) {
  if (isFollowed(object)) return true;
  if (depth > 8 || (!PyList_Check(object) && !PyTuple_Check(object))) return false;
  const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (holdsFollowed(PySequence_Fast_GET_ITEM(object, i), depth + 1)) return true;
  }
  return false;
}

Value* asFloat(Graph& graph, Value* value) {
  Node* node = graph.create(Symbol::aten("Float"), {value});
  node->output()->setType(types::Float());
  return graph.insertNode(node)->output();
}

const Operator& sizeOperator() {
  static const Operator* op = OperatorRegistry::instance().find(Symbol::aten("size"), "int");
  WICK_ASSERT(op, "no aten::size.int");
  return *op;
}

PyObject* sizeAt(Tracer& tracer, const Tensor& tensor, int64_t dim) {
  IValue arguments[] = {IValue(tensor), IValue(dim)};
  IValue result;
  sizeOperator().call(arguments, 2, &result, 1);
  return followedObject(tracer, result, tracer.result(0));
}

}  // namespace

NumberFollowerScope::NumberFollowerScope(NumberFollower* of)
    : before_(std::exchange(follower, of)) {}

NumberFollowerScope::~NumberFollowerScope() {
  follower = before_;
}

void notePlace(Tracer& tracer) {
  if (Session* current = sessionOf(tracer)) tracer.setPlace(current->places.ofCaller());
}

void noteLazyPlace() {
  if (!lazy::wantsPlaces()) return;
  // Forgets nothing, and outlives the interpreter.
  static SourcePlaces& places = *new SourcePlaces;
  lazy::setPlace(places.ofCaller());
}

void warnOfTrace(const char* text) {
  // Captured code is recorded without a session: there each such place ends the graph.
  const Tracer* const active = Tracer::active();
  if (!active || !warning_class || !sessionOf(*active)) return;
  check(PyErr_WarnEx(warning_class, text, 1));
}

void warnOfConstant(const char* what) {
  if (!Tracer::active()) return;
  noteInFakes(fmt::format("a tensor becomes a Python {}", what));
  warnOfTrace(
      fmt::format("Converting a tensor to a Python {} might cause the trace to be incorrect. "
                  "We can't record the data flow of Python values, so this value will be "
                  "treated as a constant in the future. This means that the trace might not "
                  "generalize to other inputs!",
                  what)
          .c_str());
}

bool isFollowed(PyObject* object) {
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
  if (follower) return follower->isNumber(object);
  return int_class && (type == int_class || type == float_class);
}

Value* followedValue(Tracer& tracer, PyObject* object, const IValue& value) {
  Session* current = sessionOf(tracer);
  if ((!current && !follower) || !holdsFollowed(object, 0)) return nullptr;
  if (isFollowed(object)) {
    Value* found = current ? numberValue(*current, object) : follower->find(object);
    if (!found || !value.isDouble() || found->type()->kind() != TypeKind::Int) return found;
    return asFloat(tracer.graph(), found);
  }
  if (!value.isList() && !value.isTuple()) return nullptr;
  const std::vector<IValue>& elements = value.elements();
  std::vector<Value*> values;
  for (size_t i = 0; i < elements.size(); ++i) {
    PyObject* item = PySequence_Fast_GET_ITEM(object, static_cast<Py_ssize_t>(i));
    Value* followed = followedValue(tracer, item, elements[i]);
    values.push_back(followed ? followed : tracer.valueFor(elements[i], nullptr));
  }
  return tracer.containerFor(value, values);
}

PyObject* followedObject(Tracer& tracer, const IValue& number, Value* value) {
  Session* current = sessionOf(tracer);
  if ((!current && !follower) || !value) return toPython(number);
  if (number.isList() || number.isTuple()) {
    const std::vector<IValue>& elements = number.elements();
    for (const IValue& e : elements) {
      if (!e.isInt() && !e.isDouble()) return toPython(number);
    }
    const std::vector<Value*> parts = tracer.partsOf(value, elements.size());
    const auto count = static_cast<Py_ssize_t>(elements.size());
    Owned out = checked(number.isList() ? PyList_New(count) : PyTuple_New(count));
    for (size_t i = 0; i < elements.size(); ++i) {
      PyObject* item = followedObject(tracer, elements[i], parts[i]);
      if (number.isList()) {
        PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
      } else {
        PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
      }
    }
    return out.leak();
  }
  if (!current) return number.isInt() ? follower->object(number.toInt(), value) : toPython(number);
  PyObject* kind = number.isInt() ? int_class : number.isDouble() ? float_class : nullptr;
  if (!kind) return toPython(number);
  const Owned plain(toPython(number));
  Owned made = checked(PyObject_CallOneArg(kind, plain.get()));
  const int64_t id =
      current->serial * kNumbersASession + static_cast<int64_t>(current->numbers.size());
  current->numbers.push_back(value);
  const Owned index = checked(PyLong_FromLongLong(id));
  check(PyObject_SetAttrString(made.get(), "_wick_value", index.get()));
  return made.leak();
}

PyObject* followedSize(Tracer& tracer, const Tensor& tensor, int64_t dim) {
  if (!tracer.find(tensor)) return checked(PyLong_FromLongLong(tensor.size(dim))).leak();
  notePlace(tracer);
  return sizeAt(tracer, tensor, dim);
}

PyObject* followedSizes(Tracer& tracer, const Tensor& tensor) {
  Owned sizes(sizeObject(tensor.sizes()));
  if (!tracer.find(tensor)) return sizes.leak();
  notePlace(tracer);
  for (int64_t d = 0; d < tensor.dim(); ++d) {
    PyObject* const before = PyTuple_GET_ITEM(sizes.get(), static_cast<Py_ssize_t>(d));
    PyTuple_SET_ITEM(sizes.get(), static_cast<Py_ssize_t>(d), sizeAt(tracer, tensor, d));
    Py_DECREF(before);
  }
  return sizes.leak();
}

IValue runTraced(const CallPlan& plan, IValue* slots, Value** values, Tracer& tracer,
                 Value*& result) {
  std::fill(values + plan.num_arguments, values + plan.num_slots, nullptr);
  for (const auto& [slot, value] : plan.constants) slots[slot] = value;
  for (const CallPlan::Step& step : plan.steps) {
    const size_t count = step.inputs.size();
    bool any = false;
    for (const uint16_t input : step.inputs) any |= values[input] != nullptr;
    std::vector<Value*> known;
    if (any) {
      for (const uint16_t input : step.inputs) known.push_back(values[input]);
    }
    if (step.op) {
      ValueArray<kMaxPlanSlots> inputs(count);
      for (size_t i = 0; i < count; ++i) inputs[i] = slots[step.inputs[i]];
      // Casts are calls of their own.
      if (Autocast* const autocast = activeAutocast())
        autocast->cast(*step.op, {inputs.data(), count});
      if (any) tracer.stash(std::move(known));
      step.op->call(inputs.data(), count, slots + step.first_output, step.num_outputs);
      for (size_t i = 0; i < step.num_outputs; ++i)
        values[step.first_output + i] = tracer.result(i);
      continue;
    }
    std::vector<IValue> inputs;
    for (const uint16_t input : step.inputs) inputs.push_back(slots[input]);
    IValue made = step.element ? IValue(makeList(step.element, inputs)) : IValue(makeTuple(inputs));
    if (any) {
      for (size_t i = 0; i < count; ++i) {
        if (!known[i]) known[i] = tracer.valueFor(inputs[i], nullptr);
      }
      values[step.first_output] = tracer.containerFor(made, known);
    }
    slots[step.first_output] = std::move(made);
  }
  result = values[plan.result];
  return std::move(slots[plan.result]);
}

// ---- for wick.jit ----

namespace {

class Recording {
 public:
  void addModule(const py::object& module) {
    IValue object = valueOf(module);
    state_.tracer.addModule(ObjectRef(&object.toObject()));
  }
  void addInput(const std::string& name, const py::object& value) {
    state_.tracer.addInput(name, valueOf(value));
  }
  void start() {
    if (state_.scope) throw UsageError("the recording has begun already");
    state_.scope.emplace(state_.tracer);
    state_.outer = std::exchange(session, &state_);
  }
  void enterModule(const py::object& module, const py::list& arguments) {
    const IValue object = valueOf(module);
    std::vector<std::pair<std::string, IValue>> given;
    for (const py::handle& each : arguments) {
      const auto pair = py::cast<py::tuple>(each);
      IValue value;
      const py::object argument = pair[1];
      if (tryValue(argument.ptr(), value)) given.emplace_back(pair[0].cast<std::string>(), value);
    }
    state_.tracer.enterModule(ObjectRef(&object.toObject()), std::move(given));
  }
  void leaveModule(const py::object& result) {
    IValue value;
    const bool known = !result.is_none() && tryValue(result.ptr(), value);
    state_.tracer.leaveModule(known ? &value : nullptr);
  }
  void stop() {
    if (!state_.scope) return;
    state_.scope.reset();
    session = state_.outer;
  }
  void finish(const py::object& result) {
    if (graph_) throw UsageError("the recording is finished already");
    graph_ = state_.tracer.finish(valueOf(result));
  }

  py::object function(const std::string& qualified_name) {
    const CompileTurn turn;
    CompilationUnit& unit = *scriptUnit();
    GraphFunction* made = unit.createFunction(unit.mangle(qualified_name), graph());
    keepOwners();
    return given(scriptFunctionObject(made, scriptUnit()));
  }
  void method(const py::object& module, const std::string& name) {
    const CompileTurn turn;
    const IValue value = valueOf(module);
    const ClassTypePtr type = value.toObject().type();
    if (type->findMethod(name)) throw UsageError("the module has a method '" + name + "' already");
    CompilationUnit& unit = *scriptUnit();
    GraphFunction* made = unit.createFunction(unit.mangle(type->name() + "." + name), graph());
    type->addMethod(made);
    for (const tracing::ModuleMethod& each : state_.tracer.moduleMethods()) addForward(each);
    keepOwners();
  }
  const std::shared_ptr<Graph>& graph() const {
    if (!graph_) throw UsageError("the recording is not finished");
    return graph_;
  }
  ~Recording() { stop(); }

 private:
  // forward, forward1 and so on: one for each call.
  static void addForward(const tracing::ModuleMethod& call) {
    const ClassTypePtr type = call.module->type();
    std::string name = "forward";
    for (int i = 1; type->findMethod(name); ++i) name = "forward" + std::to_string(i);
    CompilationUnit& unit = *scriptUnit();
    type->addMethod(unit.createFunction(unit.mangle(type->name() + "." + name), call.graph));
  }
  // What programs of Python own ends with the process.
  void keepOwners() {
    static auto* kept = new std::vector<std::shared_ptr<void>>();
    for (const auto& owner : state_.tracer.owners()) {
      if (owner != scriptUnit()) kept->push_back(owner);
    }
  }
  Session state_;
  std::shared_ptr<Graph> graph_;
};

// Whether a run of the node draws random numbers: dropout does in training alone.
bool draws(const Node& node) {
  if (!node.isNondeterministic()) return false;
  const FunctionSchema* schema = node.maybeSchema();
  for (const char* name : {"train", "training"}) {
    if (!schema || !schema->argumentIndex(name)) continue;
    const auto on = constantOf(node.namedInput(name));
    if (on && on->isBool() && !on->toBool()) return false;
  }
  return true;
}

// Each node as text, its place, and whether it draws random numbers.
py::list nodesOf(const Graph& graph) {
  py::list out;
  for (const Node* node : graph.nodes()) {
    const bool tensor =
        node->kind() == prim::Constant && node->output()->type()->kind() == TypeKind::Tensor;
    out.append(py::make_tuple(tensor ? "a constant tensor" : node->str(), node->range().highlight(),
                              draws(*node)));
  }
  return out;
}

}  // namespace

void addTracing(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  py::class_<Recording> recording(m, "_RecordingObject");
  forbidNew(recording);
  recording.def("add_module", &Recording::addModule)
      .def("add_input", &Recording::addInput)
      .def("start", &Recording::start)
      .def("enter_module", &Recording::enterModule)
      .def("leave_module", &Recording::leaveModule)
      .def("stop", &Recording::stop)
      .def("finish", &Recording::finish)
      .def("function", &Recording::function)
      .def("method", &Recording::method)
      .def("nodes", [](const Recording& r) { return nodesOf(*r.graph()->copy()); })
      .def("constants", [](const Recording& r) {
        py::list out;
        for (const Node* node : r.graph()->nodes()) {
          if (node->kind() != prim::Constant ||
              node->output()->type()->kind() != TypeKind::Tensor) {
            continue;
          }
          if (const auto value = constantOf(node->output())) out.append(pythonOf(*value));
        }
        return out;
      });
  m.def("_Recording", [] { return std::make_unique<Recording>(); });
  m.def("_is_tracing", [] { return Tracer::active() != nullptr; });
  m.def("_set_tracing_classes",
        [](const py::object& of_int, const py::object& of_float, const py::object& warning) {
          int_class = Py_NewRef(of_int.ptr());
          float_class = Py_NewRef(of_float.ptr());
          warning_class = Py_NewRef(warning.ptr());
        });
}

}  // namespace wick::python
