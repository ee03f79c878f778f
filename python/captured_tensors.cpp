#include "python/captured_tensors.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string_view>
#include <unordered_map>

#include "autograd/tape.h"
#include "capture/bytecode/instance.h"
#include "capture/compiled_call.h"
#include "core/device_backend.h"
#include "core/dtype.h"
#include "core/generator_state.h"
#include "core/grad_mode.h"
#include "ir/call_layer.h"
#include "ir/function.h"
#include "lazy/zero_results.h"
#include "python/call_plan.h"
#include "python/convert.h"
#include "python/eager.h"
#include "python/interrupts.h"
#include "python/plain_types.h"
#include "python/script.h"
#include "python/tensor_object.h"
#include "runtime/call.h"
#include "runtime/ops/call.h"
#include "tracing/tracer.h"

namespace wick::python {
namespace {

using capture::breakGraph;
using capture::Callee;
using capture::Object;

constexpr Device kMeta{DeviceType::Meta, -1};

Object shared(PyObject* object) {
  return Object::share(object);
}

// The Python exception that is set as a reason, which is cleared. Interrupts stay.
[[noreturn]] void breakOnError(const std::string& what) {
  if (!PyErr_ExceptionMatches(PyExc_Exception)) throw capture::PythonError();
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Owned kind(type), error(value), trace(traceback);
  const Owned text(error ? PyObject_Str(error.get()) : nullptr);
  const char* const utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  std::string message = utf8 ? utf8 : "an error";
  PyErr_Clear();
  message = message.substr(0, message.find('\n'));
  breakGraph(fmt::format("{}: {}", what, message));
}

// ---- guards ----

class Guard : public capture::TensorGuard {
 public:
  explicit Guard(PyObject* object)
      : type_(shared(reinterpret_cast<PyObject*>(Py_TYPE(object)))),
        dtype_(tensorIn(object).dtype()),
        device_(tensorIn(object).device()),
        sizes_(tensorIn(object).impl()->sizes),
        strides_(tensorIn(object).impl()->strides),
        requires_grad_(autograd::requiresGradient(tensorIn(object))),
        leaf_(autograd::isLeaf(tensorIn(object))) {}

  bool matches(PyObject* object) const override {
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != type_.get()) return false;
    const Tensor& tensor = tensorIn(object);
    if (!tensor.defined() || tensor.kind() != TensorKind::Dense) return false;
    const TensorImpl& impl = *tensor.impl();
    if (autograd::isLeaf(tensor) != leaf_) return false;
    return impl.dtype == dtype_ && tensor.device() == device_ && impl.sizes == sizes_ &&
           impl.strides == strides_ && autograd::requiresGradient(tensor) == requires_grad_;
  }

  std::string text() const override {
    std::string sizes;
    for (const int64_t size : sizes_) sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
    return fmt::format("a tensor of {} ({}){}", toString(dtype_), sizes,
                       requires_grad_ ? " with a gradient" : "");
  }

 private:
  Object type_;
  DType dtype_;
  Device device_;
  DimVector sizes_, strides_;
  bool requires_grad_, leaf_;
};

// ---- graphs ----

// A fake's device is "meta"; whoever asks for the CPU gets that.
class FakeLayer : public CallLayer {
 public:
  void call(const LayerCall& call) override {
    for (size_t i = 0; i < call.num_args; ++i) {
      const auto& declared = call.op.schema().arguments();
      const bool device = i < declared.size() && declared[i].name == "device";
      if (call.args[i].isDevice() || (device && call.args[i].isNone())) {
        call.args[i] = IValue(kMeta);
      } else {
        call.args[i] = faked(call.args[i]);
      }
    }
    callBelow(CallLayerSlot::Lazy, call);
  }

 private:
  // Constants beside fakes have no memory either.
  static IValue faked(const IValue& v) {
    if (v.isTensor()) {
      const Tensor t = v.toTensor();
      if (!t.defined() || !t.device().isCpu() || t.kind() != TensorKind::Dense) return v;
      return IValue(Tensor::emptyStrided(t.sizes(), t.strides(), t.dtype(), kMeta));
    }
    if (!v.isList()) return v;
    bool any = false;
    std::vector<IValue> elements;
    for (const IValue& e : v.elements()) {
      elements.push_back(faked(e));
      any |= e.isTensor() && e.toTensor().defined() && e.toTensor().device().isCpu();
    }
    return any ? IValue(makeList(v.toList().element_type, std::move(elements))) : v;
  }
};

bool mayChangeMemory(const Block& block) {
  for (const Node* node : block.nodes()) {
    const FunctionSchema* const schema = node->maybeSchema();
    if (node->isNondeterministic() || (schema && schema->isMutable())) return true;
    for (const Block* inner : node->blocks()) {
      if (mayChangeMemory(*inner)) return true;
    }
  }
  return false;
}

// The state that a run may change: the inputs' memory, which counts its writes, and random numbers.
// These are put back when nothing else has changed.
class Memory {
 public:
  Memory(bool impure, std::span<const Object> inputs) {
    if (!impure) return;
    generator_ = GeneratorState::of(defaultGenerator());
    for (const Object& each : inputs) {
      storages_.push_back(tensorIn(each.get()).impl()->storage);
      versions_.push_back(storages_.back()->version());
    }
  }
  bool isTouched() const {
    for (size_t i = 0; i < storages_.size(); ++i) {
      if (storages_[i]->version() != versions_[i]) return true;
    }
    if (generator_) generator_->restore(defaultGenerator());
    return false;
  }

 private:
  std::vector<Ref<Storage>> storages_;
  std::vector<uint32_t> versions_;
  std::optional<GeneratorState> generator_;
};

[[noreturn]] void setPlainError(const RuntimeError& error) {
  try {
    throw error;
  } catch (const RuntimeError&) {
    setPythonError();
  }
  throw capture::PythonError();
}

// A graph, whichever way it is run.
class Captured : public capture::CapturedGraph {
 public:
  Captured(std::shared_ptr<CompilationUnit> unit, GraphFunction* function,
           std::vector<std::shared_ptr<void>> owners, int num_operators)
      : unit_(std::move(unit)),
        function_(function),
        owners_(std::move(owners)),
        impure_(mayChangeMemory(*function->graph()->block())),
        num_operators_(num_operators) {}

  void run(std::span<const Object> inputs, std::vector<Object>& outputs,
           bool& touched) const override {
    const Memory memory(impure_, inputs);
    try {
      compute(inputs, outputs);
    } catch (const RuntimeError& error) {
      touched = !mayRunPlainly() || memory.isTouched();
      // The program knows nothing of the graph.
      setPlainError(RuntimeError(error.brief(), error.className()));
    } catch (const capture::PythonError&) {
      touched = !mayRunPlainly() || memory.isTouched();
      throw;
    } catch (...) {
      touched = !mayRunPlainly() || memory.isTouched();
      setPythonError();
      throw capture::PythonError();
    }
  }
  std::string text() const override { return function_->graph()->str(); }
  int numOperators() const override { return num_operators_; }
  Object object() const override { return Object::checked(scriptFunctionObject(function_, unit_)); }
  const std::shared_ptr<Graph>& graph() const { return function_->graph(); }

 protected:
  // Returns whether an error may be left to the program, which runs plainly then.
  virtual bool mayRunPlainly() const { return true; }
  // Appends the outputs. May throw anything.
  virtual void compute(std::span<const Object> inputs, std::vector<Object>& outputs) const {
    std::vector<IValue> values;
    values.reserve(inputs.size());
    for (const Object& each : inputs) values.emplace_back(tensorIn(each.get()));
    IValue result;
    {
      const RunOptions options = interruptibleRun();
      const std::shared_ptr<void> owner = unit_;
      const WithoutGil others;
      result = callFunction(*function_, std::move(values), {}, options, &owner);
    }
    append(result, outputs);
  }
  static void append(const IValue& result, std::vector<Object>& outputs) {
    for (const IValue& each : result.elements()) {
      outputs.push_back(Object::checked(tensorObject(each.toTensor())));
    }
  }

 private:
  std::shared_ptr<CompilationUnit> unit_;
  GraphFunction* function_;
  std::vector<std::shared_ptr<void>> owners_;
  bool impure_;
  int num_operators_;
};

class OperatorByOperator : public Captured {
 public:
  OperatorByOperator(const Captured& graph, std::unique_ptr<CallPlan> plan)
      : Captured(graph), plan_(std::move(plan)) {}

 protected:
  void compute(std::span<const Object> inputs, std::vector<Object>& outputs) const override {
    std::vector<IValue> slots(plan_->num_slots);
    for (size_t i = 0; i < inputs.size(); ++i) slots[i] = tensorIn(inputs[i].get());
    IValue result;
    {
      const Interruptible interruptible;
      const WithoutGil others;
      result = plan_->run(slots.data());
    }
    append(result, outputs);
  }

 private:
  std::unique_ptr<CallPlan> plan_;
};

class CalledFunction : public Captured {
 public:
  CalledFunction(const Captured& graph, Object function)
      : Captured(graph), callable_(std::move(function)) {}

 protected:
  // Errors of a backend are shown to those who wrote it.
  bool mayRunPlainly() const override { return false; }
  void compute(std::span<const Object> inputs, std::vector<Object>& outputs) const override {
    std::vector<PyObject*> arguments;
    for (const Object& each : inputs) arguments.push_back(each.get());
    const size_t before = outputs.size();
    const Object result = capture::callPlainly(callable_.get(), arguments, nullptr);
    const Object all = Object::checked(
        PySequence_Fast(result.get(), "a backend's function gives a tuple or list of tensors"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all.get()); ++i) {
      outputs.push_back(shared(PySequence_Fast_GET_ITEM(all.get(), i)));
      tensorOf(outputs.back().get(), "a result of a backend's function");
    }
    const size_t expected = numOutputs();
    if (outputs.size() - before != expected) {
      raise(PyExc_ValueError,
            fmt::format("a backend's function gave {} tensors, the graph has {} results",
                        outputs.size() - before, expected));
    }
  }

 private:
  size_t numOutputs() const { return graph()->outputs()[0]->node()->inputs().size(); }
  Object callable_;
};

// Counts the operators among a graph's nodes.
int countOperators(const Block& block) {
  int count = 0;
  for (const Node* node : block.nodes()) {
    if (node->maybeOperator() && node->kind() != prim::Constant) ++count;
    for (const Block* inner : node->blocks()) count += countOperators(*inner);
  }
  return count;
}

// Records calls on fakes.
class FakeTracer : public tracing::Tracer {
 protected:
  void around(const std::function<void()>& run) override {
    const CallLayerScope fakes(CallLayerSlot::Lazy, &layer_);
    const lazy::ZeroResultsScope zeros;
    run();
  }

 private:
  FakeLayer layer_;
};

// Replaces the device of fakes by the one that the program sees.
void nameDevices(Graph& graph, Block& block) {
  for (Node* node : block.nodes()) {
    for (Block* inner : node->blocks()) nameDevices(graph, *inner);
    if (node->kind() != prim::Constant) continue;
    const auto value = constantOf(node->output());
    if (!value || !value->isDevice() || value->toDevice().type != DeviceType::Meta) continue;
    const InsertPointGuard before(node);
    node->output()->replaceAllUsesWith(graph.insertConstant(IValue(Device())));
  }
}

// Returns whether a constant of the graph has no memory: it is a fake that nobody recorded.
bool hasFakeConstants(const Block& block) {
  for (const Node* node : block.nodes()) {
    if (node->kind() == prim::Constant) {
      const auto value = constantOf(node->output());
      if (value && value->isTensor() && value->toTensor().defined() &&
          value->toTensor().device().type == DeviceType::Meta) {
        return true;
      }
    }
    for (const Block* inner : node->blocks()) {
      if (hasFakeConstants(*inner)) return true;
    }
  }
  return false;
}

class OwnRecording : public capture::Recording {
 public:
  Object addInput(PyObject* tensor) override {
    const Tensor& real = tensorIn(tensor);
    const Tensor fake = Tensor::emptyStrided(real.sizes(), real.strides(), real.dtype(), kMeta);
    const bool gradient = autograd::requiresGradient(real);
    Object object;
    // The tensor was made before, whatever the mode is now.
    const GradModeGuard recording(true);
    if (Py_TYPE(tensor) == tensor_type) {
      if (gradient) fake.setRequiresGrad(true);
      // The result of an operator is no leaf.
      static const OperatorHandle kClone("aten::clone", "");
      object = Object::checked(
          tensorObject(gradient && !autograd::isLeaf(real) ? kClone(fake, IValue()) : fake));
    } else {
      const Owned plain(tensorObject(fake));
      object = Object::checked(PyObject_CallMethod(
          reinterpret_cast<PyObject*>(tensor_type), "_make_subclass", "OOi",
          reinterpret_cast<PyObject*>(Py_TYPE(tensor)), plain.get(), gradient ? 1 : 0));
    }
    tracer_.addInput(fmt::format("x{}", num_inputs_++), IValue(tensorIn(object.get())));
    return object;
  }

  Object call(PyObject* function, const std::vector<PyObject*>& arguments,
              PyObject* names) override {
    const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
    for (PyObject* each : arguments) {
      if (isDevice(each) && !deviceOf(each).isCpu()) breakGraph("another device than the CPU");
      if (PyUnicode_Check(each) && PyUnicode_CompareWithASCIIString(each, "meta") == 0) {
        breakGraph("the device \"meta\"");
      }
    }
    for (size_t i = 0; i < named; ++i) {
      if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(names, static_cast<Py_ssize_t>(i)),
                                           "requires_grad") == 0 &&
          arguments[arguments.size() - named + i] == Py_True) {
        breakGraph("a tensor that requires a gradient is made");
      }
    }
    return recorded(nameOf(function), [&] {
      return PyObject_Vectorcall(function, arguments.data(), arguments.size() - named, names);
    });
  }

  Object attribute(PyObject* fake, PyObject* name) override {
    const std::string_view text = PyUnicode_AsUTF8(name);
    static constexpr std::string_view kHidden[] = {"grad",     "grad_fn",         "data",
                                                   "_version", "_backward_hooks", "names"};
    for (const std::string_view each : kHidden) {
      if (text == each) breakGraph(fmt::format("'{}' of a tensor", text));
    }
    if (text == "device") return Object::checked(deviceObject(Device()));
    if (text == "is_meta") return shared(Py_False);
    if (text == "is_cpu") return shared(Py_True);
    if (text.starts_with("__")) breakGraph(fmt::format("'{}' of a tensor", text));
    return recorded(fmt::format("'{}' of a tensor", text),
                    [&] { return PyObject_GetAttr(fake, name); });
  }
  Object item(PyObject* fake, PyObject* key) override {
    return recorded("an item of a tensor", [&] { return PyObject_GetItem(fake, key); });
  }
  void setItem(PyObject* fake, PyObject* key, PyObject* value) override {
    recorded("setting an item of a tensor", [&]() -> PyObject* {
      return PyObject_SetItem(fake, key, value) < 0 ? nullptr : Py_NewRef(Py_None);
    });
  }
  Object length(PyObject* fake) override {
    return recorded("the length of a tensor",
                    [&] { return PyLong_FromSsize_t(PyObject_Size(fake)); });
  }
  Object rows(PyObject* fake) override {
    return recorded("an iteration over a tensor", [&] { return PySequence_Tuple(fake); });
  }
  Object compute(const std::function<Object()>& function) override {
    return recorded("an operator of a tensor", [&]() -> PyObject* {
      try {
        return function().leak();
      } catch (const capture::PythonError&) {
        return nullptr;
      }
    });
  }

  bool gradMode() const override { return gradEnabled(); }
  void setGradMode(bool on) override {
    if (on == gradEnabled()) return;
    Graph& graph = tracer_.graph();
    const Operator* const op =
        OperatorRegistry::instance().find(Symbol::aten("set_grad_enabled"), "");
    if (!op) breakGraph("the gradient mode cannot be recorded");
    Node* node = graph.create(op->symbol(), {graph.insertConstant(IValue(on))}, 0);
    node->setOperator(op);
    graph.insertNode(node);
    setGradEnabled(on);
  }

  int numOperators() const override {
    return countOperators(*const_cast<FakeTracer&>(tracer_).graph().block());
  }

  std::shared_ptr<capture::CapturedGraph> finish(const std::vector<PyObject*>& outputs) override {
    std::vector<IValue> values;
    for (PyObject* each : outputs) values.emplace_back(tensorIn(each));
    try {
      const std::shared_ptr<Graph> graph = tracer_.finish(IValue(makeTuple(std::move(values))));
      nameDevices(*graph, *graph->block());
      if (hasFakeConstants(*graph->block())) breakGraph("a tensor that was made out of sight");
      const int count = countOperators(*graph->block());
      auto unit = std::make_shared<CompilationUnit>();
      GraphFunction* const function = unit->createFunction("__torch__.captured", graph);
      return std::make_shared<Captured>(std::move(unit), function, tracer_.owners(), count);
    } catch (const RuntimeError& error) {
      breakGraph(error.what());
    }
  }

 private:
  static std::string nameOf(PyObject* function) {
    const Owned text(PyObject_GetAttrString(function, "__qualname__"));
    const char* const utf8 =
        text && PyUnicode_Check(text.get()) ? PyUnicode_AsUTF8(text.get()) : nullptr;
    PyErr_Clear();
    return utf8 ? utf8 : "a function";
  }

  // Runs the function while calls of operators are recorded.
  template <class F>
  Object recorded(const std::string& what, F&& f) {
    Object result;
    {
      const tracing::TraceScope scope(tracer_);
      result = Object::own(f());
    }
    if (!result) breakOnError(what);
    return faked(std::move(result), what, 0);
  }

  // Returns the result with fakes for real tensors, which were made of numbers.
  Object faked(Object object, const std::string& what, int depth) {
    PyObject* const at = object.get();
    if (depth > 20) breakGraph("results are nested too deeply");
    if (isTensor(at)) {
      const Tensor& tensor = tensorIn(at);
      if (!tensor.defined()) breakGraph(what + ": an empty tensor");
      if (tensor.device().type == DeviceType::Meta) return object;
      if (tensor.requiresGrad()) breakGraph(what + ": a tensor that requires a gradient is made");
      return cloneOf(tensor);
    }
    if (!PyTuple_Check(at) && !PyList_Check(at)) return object;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(at); ++i) {
      PyObject* const before = PySequence_Fast_GET_ITEM(at, i);
      PyObject* const after = faked(shared(before), what, depth + 1).leak();
      if (PyTuple_Check(at)) {
        PyTuple_SET_ITEM(at, i, after);
      } else {
        PyList_SET_ITEM(at, i, after);
      }
      Py_DECREF(before);
    }
    return object;
  }

  // A fake for a constant of the graph, which each run copies.
  Object cloneOf(const Tensor& tensor) {
    Graph& graph = tracer_.graph();
    const Operator* const clone = OperatorRegistry::instance().find(Symbol::aten("clone"), "");
    if (!clone) breakGraph("a constant cannot be copied");
    Value* const format = graph.insertNode(graph.createNone())->output();
    Node* node = graph.create(clone->symbol(),
                              {graph.insertConstant(IValue(tensor), types::Tensor()), format}, 0);
    node->setOperator(clone);
    Value* const value = node->addOutput(types::Tensor());
    graph.insertNode(node);
    const Tensor fake =
        Tensor::emptyStrided(tensor.sizes(), tensor.strides(), tensor.dtype(), kMeta);
    tracer_.bindResult(value, fake);
    return Object::checked(tensorObject(fake));
  }

  FakeTracer tracer_;
  int num_inputs_ = 0;
};

// ---- the world ----

class OwnTensors : public capture::World {
 public:
  OwnTensors() {
    const Object module = Object::checked(PyImport_ImportModule("wick._C"));
    const auto add = [&](const char* name, Callee kind) {
      const Object found = Object::checked(PyObject_GetAttrString(module.get(), name));
      callees_[found.get()] = kind;
      kept_.push_back(found);
    };
    size_type_ = Py_TYPE(Object::checked(sizeObject(DimVector{})).get());
    add("is_grad_enabled", Callee::kGradMode);
    add("_set_grad_enabled", Callee::kSetGradMode);
    add("get_default_dtype", Callee::kPure);
    add("tensor", Callee::kOperator);
    for (const char* name : {"size", "stride"}) addMethod(name, Callee::kOperator);
    for (const char* name : {"item", "tolist"}) addMethod(name, Callee::kBreak);
  }

  bool isTensor(PyObject* object) const override { return python::isTensor(object); }
  bool isTensorType(PyTypeObject* type) const override {
    return type == tensor_type || PyType_IsSubtype(type, tensor_type);
  }
  bool isSizeType(PyTypeObject* type) const override { return type == size_type_; }
  bool isConstant(PyObject* object) const override {
    if (PyLong_Check(object) || PyType_Check(object)) return false;
    return numberOf(object).has_value() || isDevice(object);
  }
  std::shared_ptr<const capture::TensorGuard> guardFor(PyObject* tensor) const override {
    const Tensor& t = tensorIn(tensor);
    if (!t.defined()) breakGraph("an empty tensor");
    if (t.kind() != TensorKind::Dense) breakGraph("a tensor that is not dense");
    if (!t.device().isCpu()) breakGraph(fmt::format("a tensor on {}", t.device().str()));
    return std::make_shared<Guard>(tensor);
  }
  Callee calleeOf(PyObject* function) const override {
    if (isEagerFunction(function)) return Callee::kOperator;
    const auto found = callees_.find(function);
    if (found != callees_.end()) return found->second;
    return isTensorTypeObject(function) ? Callee::kBreak : Callee::kUnknown;
  }
  bool isLibrary(PyObject* module) const override {
    const char* const name = PyModule_GetName(module);
    if (!name) PyErr_Clear();
    return name &&
           (std::string_view(name) == "wick" || std::string_view(name).starts_with("wick."));
  }
  std::unique_ptr<capture::Recording> record() const override {
    return std::make_unique<OwnRecording>();
  }
  int64_t state() const override {
    return static_cast<int64_t>(gradEnabled()) | static_cast<int64_t>(defaultDType()) << 1 |
           static_cast<int64_t>(defaultDevice().type) << 10;
  }
  bool gradMode() const override { return gradEnabled(); }
  void setGradMode(bool on) const override { setGradEnabled(on); }
  std::shared_ptr<void> keepState() const override { return std::make_shared<KeptState>(); }

 private:
  struct KeptState {
    bool grad_mode = gradEnabled();
    GeneratorState generator = GeneratorState::of(defaultGenerator());
    ~KeptState() {
      setGradEnabled(grad_mode);
      generator.restore(defaultGenerator());
    }
  };

  bool isTensorTypeObject(PyObject* object) const {
    return PyType_Check(object) && isTensorType(reinterpret_cast<PyTypeObject*>(object));
  }
  void addMethod(const char* name, Callee kind) {
    const Object text = Object::checked(PyUnicode_InternFromString(name));
    if (PyObject* found = capture::findTypeItem(tensor_type, text.get())) callees_[found] = kind;
  }

  PyTypeObject* size_type_ = nullptr;
  std::unordered_map<PyObject*, Callee> callees_;
  std::vector<Object> kept_;
};

}  // namespace

std::shared_ptr<capture::CapturedGraph> operatorByOperator(
    const std::shared_ptr<capture::CapturedGraph>& graph) {
  const auto& captured = static_cast<const Captured&>(*graph);
  std::unique_ptr<CallPlan> plan = planOf(*captured.graph(), std::numeric_limits<uint16_t>::max());
  return plan ? std::make_shared<OperatorByOperator>(captured, std::move(plan)) : nullptr;
}

std::shared_ptr<capture::CapturedGraph> calledFunction(
    const std::shared_ptr<capture::CapturedGraph>& graph, capture::Object function) {
  return std::make_shared<CalledFunction>(static_cast<const Captured&>(*graph),
                                          std::move(function));
}

std::shared_ptr<const capture::World> ownTensors() {
  static const auto& world = *new std::shared_ptr<const capture::World>(new OwnTensors);
  return world;
}

}  // namespace wick::python
