#include "python/fake_recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "autograd/tape.h"
#include "capture/compiled_call.h"
#include "core/grad_mode.h"
#include "core/no_data_error.h"
#include "ir/call_layer.h"
#include "lazy/stand_in.h"
#include "python/constant_results.h"
#include "python/fake_devices.h"
#include "python/graph_rules.h"
#include "python/open_layout.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"
#include "runtime/ops/call.h"

namespace wick::python {
namespace {

using capture::breakGraph;
using capture::Object;

constexpr const char* kOpenBranch = "a branch on the value of a tensor in a graph with open sizes";

void insertGradMode(Graph& graph, bool on) {
  const Operator* const op =
      OperatorRegistry::instance().find(Symbol::aten("set_grad_enabled"), "");
  if (!op) breakGraph("the gradient mode cannot be recorded");
  Node* node = graph.create(op->symbol(), {graph.insertConstant(IValue(on))}, 0);
  node->setOperator(op);
  graph.insertNode(node);
}

// Returns whether the function's numbers are sizes, which are followed, or depend on none.
bool readsSizes(std::string_view name) {
  static constexpr std::string_view kNames[] = {
      "shape",        "size",       "numel",         "nelement", "dim",
      "ndim",         "ndimension", "requires_grad", "is_leaf",  "is_floating_point",
      "is_complex",   "is_signed",  "element_size",  "itemsize", "is_sparse",
      "is_quantized", "is_cuda",    "is_cpu",        "is_meta",  "is_mkldnn",
      "is_nested",    "layout",     "output_nr"};
  return std::ranges::find(kNames, name) != std::end(kNames);
}

// Returns whether the object is or holds ordinary numbers.
bool holdsNumbers(PyObject* object, int depth) {
  if (PyBool_Check(object) || PyLong_CheckExact(object) || PyFloat_Check(object) ||
      PyComplex_Check(object) || PyUnicode_Check(object)) {
    return true;
  }
  if (depth > 20 || (!PyTuple_Check(object) && !PyList_Check(object))) return false;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    if (holdsNumbers(PySequence_Fast_GET_ITEM(object, i), depth + 1)) return true;
  }
  return false;
}

std::vector<Object> objectsFor(const std::vector<Tensor>& fakes) {
  std::vector<Object> objects;
  for (const Tensor& each : fakes) objects.push_back(Object::checked(tensorObject(each)));
  return objects;
}

std::vector<Tensor> tensorsIn(const std::vector<PyObject*>& objects) {
  std::vector<Tensor> tensors;
  for (PyObject* each : objects) tensors.push_back(tensorIn(each));
  return tensors;
}

// Does a cast of autocast in a graph (passes/autocast.h) on fakes, which are not on the CPU. Returns
// whether the call is one.
bool castFake(const LayerCall& call) {
  static const Symbol kReduced = Symbol::aten("_autocast_to_reduced_precision");
  static const Symbol kFull = Symbol::aten("_autocast_to_full_precision");
  const bool reduced = call.op.symbol() == kReduced;
  if (!reduced && call.op.symbol() != kFull) return false;
  const Tensor tensor = call.args[0].toTensor();
  const bool narrow = tensor.dtype() == DType::Half || tensor.dtype() == DType::BFloat16;
  const bool casts = call.args[2].toBool() && (reduced ? tensor.dtype() == DType::Float : narrow);
  const DType to = reduced ? static_cast<DType>(call.args[4].toInt()) : DType::Float;
  call.results[0] = IValue(casts ? castTo(tensor, to) : tensor);
  return true;
}

}  // namespace

std::string nameOfFunction(PyObject* function) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Owned text(PyObject_GetAttrString(function, "__qualname__"));
  const char* const utf8 =
      text && PyUnicode_Check(text.get()) ? PyUnicode_AsUTF8(text.get()) : nullptr;
  PyErr_Clear();
  PyErr_Restore(type, value, traceback);
  return utf8 ? utf8 : "a function";
}

void breakOnError(const std::string& what) {
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

void noteInFakes(const std::string& problem) {
  if (auto* const tracer = dynamic_cast<FakeTracer*>(tracing::Tracer::active())) {
    tracer->note(problem);
  }
}

Tensor resultLike(const Tensor& fake) {
  static const OperatorHandle kClone("aten::clone", ""), kStrided("aten::as_strided", "");
  if (fake.isNonOverlappingAndDense()) return kClone(fake, IValue());
  // A copy would have other strides.
  int64_t reach = 1;
  for (int64_t d = 0; d < fake.dim(); ++d) {
    if (fake.size(d) > 0) reach += (fake.size(d) - 1) * fake.stride(d);
  }
  const Tensor memory = Tensor::empty({reach}, fake.dtype(), fake.device());
  memory.setRequiresGrad(true);
  return kStrided(kClone(memory, IValue()), fake.sizes(), fake.strides(), int64_t{0});
}

Device deviceSeenOn(const Tensor& tensor) {
  const Device device = tensor.device();
  const bool fake =
      device.type == DeviceType::Meta && dynamic_cast<FakeTracer*>(tracing::Tracer::active());
  return fake ? lazy::stoodFor(device) : device;
}

void FakeTracer::beginOpaque() {
  opaque_ = true;
  grad_mode_ = gradEnabled();
  problem_.clear();
}

void FakeTracer::note(const std::string& problem) {
  if (opaque_ && problem_.empty()) problem_ = problem;
}

void FakeTracer::noteGradMode() {
  if (!opaque_ || gradEnabled() == grad_mode_) return;
  grad_mode_ = gradEnabled();
  insertGradMode(graph(), grad_mode_);
}

void FakeLayer::call(const LayerCall& call) {
  if (castFake(call) || moveFake(call)) return;
  if (call.op.symbol() == Symbol::aten("requires_grad_")) {
    tracer_.note("a tensor that requires a gradient is made");
  }
  const std::span<const IValue> arguments(call.args, call.num_args);
  if (std::ranges::any_of(arguments, isReal)) tracer_.note("a tensor that is no argument of it");
  fakeArguments(call);
  if (tracer_.staysOnCpu() && asksForDevice(call)) {
    throw RuntimeError("another device than the CPU");
  }
  joinDevices(call);
  // The kernel may take its arguments away.
  std::vector<IValue> given(call.args, call.args + call.num_args);
  try {
    callBelow(CallLayerSlot::Lazy, call);
  } catch (const NoDataError&) {
    // An operator that is composed of others has read elements.
    CallFrame frame{given.data(), given.size(), call.results, call.num_results, &call.op};
    if (call.op.writtenArguments() != 0 || !lazy::computeOnTwins(frame)) throw;
    lazy::connectResults(given, {call.results, call.num_results});
  }
}

void FakeTracer::around(const std::function<void()>& run) {
  noteGradMode();
  const CallLayerScope fakes(CallLayerSlot::Lazy, &layer_);
  const lazy::ZeroResultsScope zeros(decided_sizes_);
  try {
    run();
  } catch (const std::exception& error) {
    // The function may handle the error, which the operator might not raise on real tensors.
    note(error.what());
    throw;
  }
}

// Runs the function while calls of operators are recorded.
template <class F>
Object FakeRecording::recorded(const std::string& what, const std::vector<PyObject*>& arguments,
                               bool reads_sizes, F&& f) {
  Object result;
  sizes_.begin();
  {
    const tracing::TraceScope scope(tracer_);
    const NumberFollowerScope numbers(sizes_.isOpen() ? &sizes_ : nullptr);
    std::optional<AutocastScope> rules;
    if (Autocast* const own = casts()) rules.emplace(*own);
    result = Object::own(f());
  }
  if (!result) breakOnError(what);
  checkArrays();
  sizes_.end(arguments, !reads_sizes && holdsNumbers(result.get(), 0));
  return faked(std::move(result), what, 0);
}

namespace {

// Returns a fake with the gradient of a real tensor, which is a leaf, the result of an operator or a view.
Tensor withHistory(const Tensor& fake, const Tensor& real) {
  static const OperatorHandle kAlias("aten::alias", "");
  const bool gradient = autograd::requiresGradient(real);
  const autograd::ViewTraits traits = autograd::viewTraits(real);
  if (traits == autograd::ViewTraits()) {
    if (gradient) fake.setRequiresGrad(true);
    return gradient && !autograd::isLeaf(real) ? resultLike(fake) : fake;
  }
  if (gradient && !traits.alone) fake.setRequiresGrad(true);
  const Tensor base = gradient && !traits.of_leaf && !traits.alone ? resultLike(fake) : fake;
  const GradModeGuard recording(traits.origin != autograd::ViewOrigin::Unrecorded);
  const Tensor view = kAlias(base);
  if (gradEnabled()) autograd::setViewOf(view, base, traits.origin);
  if (traits.alone) view.setRequiresGrad(true);
  return view;
}

}  // namespace

Object FakeRecording::addInput(PyObject* tensor, const capture::InputSizes& sizes) {
  const Tensor& real = tensorIn(tensor);
  const Tensor fake =
      fakeOf(real.sizes(), real.strides(), real.dtype(), lazy::standInFor(real.device()), sizes);
  const bool gradient = autograd::requiresGradient(real);
  Object object;
  // The tensor was made before, whatever the mode is now.
  const GradModeGuard recording(true);
  if (Py_TYPE(tensor) == tensor_type) {
    object = Object::checked(tensorObject(withHistory(fake, real)));
  } else {
    const Owned plain(tensorObject(fake));
    object = Object::checked(PyObject_CallMethod(
        reinterpret_cast<PyObject*>(tensor_type), "_make_subclass", "OOi",
        reinterpret_cast<PyObject*>(Py_TYPE(tensor)), plain.get(), gradient ? 1 : 0));
  }
  addFake(object.get(), sizes);
  return object;
}

std::optional<capture::SizeExpression> FakeRecording::sizeOf(PyObject* number) const {
  return sizes_.sizeOf(number);
}

Object FakeRecording::numberFor(const capture::SizeExpression& expression) {
  return sizes_.numberFor(expression);
}

capture::Recording::Dimension FakeRecording::dimensionOf(int symbol) {
  const auto found = sizes_.dimensionOf(symbol);
  if (!found) return {};
  const auto kind = found->second == SizeTracking::kElement ? Dimension::Kind::kElement
                    : found->second == SizeTracking::kNumel ? Dimension::Kind::kCount
                                                            : Dimension::Kind::kSize;
  return {Object::checked(tensorObject(found->first)), found->second, kind};
}

Object FakeRecording::constantOf(PyObject* fake) {
  const Tensor& tensor = tensorIn(fake);
  if (tensor.numel() != 1) return {};
  const std::optional<Tensor> found = constantResult(tracer_, tensor);
  return found ? Object::checked(itemOf(*found)) : Object();
}

std::optional<capture::SizeExpression> FakeRecording::elementOf(PyObject* fake) {
  const Tensor& tensor = tensorIn(fake);
  if (!isIntegral(tensor.dtype(), false) || tensor.numel() != 1) {
    return std::nullopt;
  }
  checkOutsideOfFunctions();
  // The program may write to the tensor afterwards.
  static const OperatorHandle kClone("aten::clone", "");
  const tracing::TraceScope scope(tracer_);
  return sizes_.elementOf(kClone(tensor, IValue()));
}

PyTypeObject* FakeRecording::numberType(PyObject* fake) const {
  const Tensor& tensor = tensorIn(fake);
  if (tensor.dim() != 0) return nullptr;
  if (isFloating(tensor.dtype())) return &PyFloat_Type;
  if (isIntegral(tensor.dtype(), false)) return &PyLong_Type;
  return tensor.dtype() == DType::Bool ? &PyBool_Type : nullptr;
}

bool FakeRecording::isIndexNumber(PyObject* fake) const {
  const Tensor& tensor = tensorIn(fake);
  return tensor.dim() == 0 && isIntegral(tensor.dtype(), false) && tensor.dtype() != DType::Byte;
}

Object FakeRecording::call(PyObject* function, const std::vector<PyObject*>& arguments,
                           PyObject* names) {
  const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  for (PyObject* each : arguments) {
    if (isDevice(each) && !deviceOf(each).isCpu() && !deviceOf(each).isCuda()) {
      breakGraph(fmt::format("the device \"{}\"", deviceOf(each).str()));
    }
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
  static PyObject* const kLength = PyDict_GetItemString(PyEval_GetBuiltins(), "len");
  if (function == kLength && arguments.size() == 1 && isTensor(arguments[0]) &&
      tensorIn(arguments[0]).dim() > 0) {
    return recorded("len()", arguments, true, [&] {
      return followedSize(*tracing::Tracer::active(), tensorIn(arguments[0]), 0);
    });
  }
  const std::string name = nameOfFunction(function);
  if (name.ends_with("get_device") && arguments.size() == 1 && isTensor(arguments[0])) {
    const Device device = lazy::stoodFor(tensorIn(arguments[0]).device());
    return Object::checked(PyLong_FromLong(device.isCpu() ? -1 : device.index));
  }
  // A fake begins where its memory does.
  if (name.ends_with("storage_offset")) breakGraph("the place of a tensor in its memory");
  return recorded(name, arguments, readsSizes(name.substr(name.rfind('.') + 1)), [&] {
    return PyObject_Vectorcall(function, arguments.data(), arguments.size() - named, names);
  });
}

Object FakeRecording::callOpaque(PyObject* function, const std::vector<PyObject*>& arguments,
                                 PyObject* names) {
  checkOutsideOfFunctions();
  const std::string what = nameOfFunction(function);
  const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names)) : 0;
  tracer_.beginOpaque();
  asks_autocast_ = true;  // the function may do so unseen
  Object result;
  sizes_.begin();
  {
    const tracing::TraceScope scope(tracer_);
    const NumberFollowerScope numbers(sizes_.isOpen() ? &sizes_ : nullptr);

    result = Object::own(
        PyObject_Vectorcall(function, arguments.data(), arguments.size() - named, names));
    tracer_.noteGradMode();
  }
  tracer_.endOpaque();
  if (!tracer_.problem().empty()) {
    if (!result && !PyErr_ExceptionMatches(PyExc_Exception)) throw capture::PythonError();
    PyErr_Clear();
    const std::string& problem = tracer_.problem();
    breakGraph(fmt::format("{}: {}", what, problem.substr(0, problem.find('\n'))));
  }
  if (!result) breakOnError(what);
  checkArrays();
  // The function may have asked for any size.
  sizes_.end(arguments, true);
  result = faked(std::move(result), what, 0);
  checkOpaqueResult(result.get(), arguments);
  return result;
}

void FakeRecording::checkOpaqueResult(PyObject* result,
                                      const std::vector<PyObject*>& arguments) const {
  if (PyTuple_Check(result) || PyList_Check(result)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
      checkOpaqueResult(PySequence_Fast_GET_ITEM(result, i), arguments);
    }
  } else if (isTensor(result) && autograd::requiresGradient(tensorIn(result)) &&
             autograd::isLeaf(tensorIn(result)) &&
             std::ranges::find(arguments, result) == arguments.end()) {
    breakGraph("a tensor that requires a gradient is made");
  }
}

Object FakeRecording::attribute(PyObject* fake, PyObject* name) {
  const std::string_view text = PyUnicode_AsUTF8(name);
  static constexpr std::string_view kHidden[] = {"grad",     "grad_fn",         "data",
                                                 "_version", "_backward_hooks", "names"};
  for (const std::string_view each : kHidden) {
    if (text == each) breakGraph(fmt::format("'{}' of a tensor", text));
  }
  if (text == "is_leaf" && branches_.any()) {
    breakGraph("'is_leaf' behind a branch on the value of a tensor");
  }
  const Device device = lazy::stoodFor(tensorIn(fake).device());
  if (text == "device") return Object::checked(deviceObject(device));
  if (text == "is_meta") return Object::share(Py_False);
  if (text == "is_cpu") return Object::share(device.isCpu() ? Py_True : Py_False);
  if (text == "is_cuda") return Object::share(device.isCuda() ? Py_True : Py_False);
  if (text.starts_with("__")) breakGraph(fmt::format("'{}' of a tensor", text));
  return recorded(fmt::format("'{}' of a tensor", text), {fake}, readsSizes(text),
                  [&] { return PyObject_GetAttr(fake, name); });
}

void FakeRecording::checkOutsideOfFunctions() const {
  if (functions_.isWithin()) {
    breakGraph("the value of a tensor within a function with a derivative of its own");
  }
}

void FakeRecording::expect(PyObject* condition, bool truth) {
  checkOutsideOfFunctions();
  const Tensor& tensor = tensorIn(condition);
  if (tensor.numel() != 1) breakGraph("a branch on a tensor that has not one element");
  if (autograd::requiresGradient(tensor)) {
    breakGraph("a branch that raises, on a tensor that requires a gradient");
  }
  expected_.emplace_back(tensor, truth);
}

void FakeRecording::beginBranch(PyObject* condition, int64_t step) {
  checkOutsideOfFunctions();
  if (sizes_.isOpen()) breakGraph(kOpenBranch);
  sizes_.forbidDecided();
  clearCasts();
  branches_.beginBranch(tensorIn(condition), step);
}

std::vector<Object> FakeRecording::endBranch(
    const std::vector<std::pair<PyObject*, PyObject*>>& results) {
  std::vector<std::pair<Tensor, Tensor>> tensors;
  for (const auto& [a, b] : results) tensors.emplace_back(tensorIn(a), tensorIn(b));
  clearCasts();
  return objectsFor(branches_.endBranch(tensors));
}

bool FakeRecording::canJoin(PyObject* a, PyObject* b) const {
  return typeOf(a) == typeOf(b) && BranchRecording::canJoin(tensorIn(a), tensorIn(b));
}

std::vector<Object> FakeRecording::beginLoop(PyObject* condition, bool again,
                                             const std::vector<PyObject*>& carried, int64_t step) {
  checkOutsideOfFunctions();
  if (sizes_.isOpen()) breakGraph("a loop on the value of a tensor in a graph with open sizes");
  sizes_.forbidDecided();
  clearCasts();
  return objectsFor(branches_.beginLoop(tensorIn(condition), again, tensorsIn(carried), step));
}

std::vector<Object> FakeRecording::endLoop(PyObject* condition,
                                           const std::vector<PyObject*>& carried) {
  clearCasts();
  return objectsFor(branches_.endLoop(tensorIn(condition), tensorsIn(carried)));
}

bool FakeRecording::requiresGradient(PyObject* fake) const {
  return autograd::requiresGradient(tensorIn(fake));
}

void FakeRecording::beginFunction() {
  if (sizes_.isOpen()) {
    breakGraph("a function with a derivative of its own in a graph with open sizes");
  }
  if (branches_.isWithin()) {
    breakGraph("a function with a derivative of its own in a branch on the value of a tensor");
  }
  if (autocastMode().any()) breakGraph("a function with a derivative of its own within autocast");
  sizes_.forbidDecided();
  functions_.begin();
  setGradEnabled(false);
}

std::vector<Object> FakeRecording::beginDerivative(const std::vector<PyObject*>& saved,
                                                   const std::vector<PyObject*>& results) {
  if (gradEnabled()) breakGraph("a function that leaves another gradient mode");
  return objectsFor(functions_.beginDerivative(tensorsIn(saved), tensorsIn(results)));
}

std::vector<Object> FakeRecording::endFunction(const FunctionParts& parts, int64_t step) {
  python::FunctionParts own{tensorsIn(parts.arguments),
                            {},
                            tensorsIn(parts.results),
                            parts.differentiable,
                            tensorsIn(parts.saved)};
  for (size_t i = 0; i < parts.gradients.size(); ++i) {
    own.gradients.push_back(parts.gradients[i] ? tensorIn(parts.gradients[i]) : Tensor());
    const Tensor &gradient = own.gradients.back(), &argument = own.arguments[i];
    if (gradient.defined() && (!std::ranges::equal(gradient.sizes(), argument.sizes()) ||
                               gradient.dtype() != argument.dtype())) {
      breakGraph("a derivative gives a gradient of other sizes or another dtype");
    }
  }
  const std::vector<Tensor> results = functions_.end(own, step);
  setGradEnabled(true);
  return objectsFor(results);
}

bool FakeRecording::gradMode() const {
  return gradEnabled();
}
void FakeRecording::setGradMode(bool on) {
  if (on == gradEnabled()) return;
  insertGradMode(tracer_.graph(), on);
  setGradEnabled(on);
}

Object FakeRecording::callAutocast(PyObject* function, const std::vector<PyObject*>& arguments) {
  const std::string name = nameOfFunction(function);
  const std::optional<AutocastCall> call = autocastCallOf(name.substr(name.rfind('.') + 1));
  if (!call) breakGraph(fmt::format("{}, which tells or changes autocast", name));
  return Object::own(callAutocast(*call, arguments).leak());
}

Owned FakeRecording::callAutocast(AutocastCall call, std::span<PyObject* const> arguments) {
  asks_autocast_ = true;
  AutocastMode mode = autocastMode();
  Owned result = doAutocastCall(mode, call, arguments);
  if (!result) breakGraph("a state of autocast that is not True, False, or a dtype of floats");
  if (mode.nesting != static_cast<int16_t>(mode.nesting)) breakGraph("too many scopes of autocast");
  setAutocastMode(mode);
  if (call == AutocastCall::kClear) {
    clearCasts();
    // Outside of all scopes nothing was kept.
    clears_casts_ |= initial_autocast_.nesting > 0 || initial_autocast_.any();
  }
  return result;
}

void FakeRecording::setAutocast(const AutocastMode& mode) {
  asks_autocast_ = true;
  setAutocastMode(mode);
  if (mode.nesting == 0) clearCasts();
}

std::optional<int64_t> FakeRecording::leftAutocast() const {
  if (autocastMode() == initial_autocast_ && !clears_casts_) return std::nullopt;
  return autocast() | (clears_casts_ ? AutocastMode::kClears : 0);
}

int FakeRecording::numOperators() const {
  return countOperators(*const_cast<FakeTracer&>(tracer_).graph().block());
}

// Appends tensors that the guesses are about to the outputs.
std::shared_ptr<const Guesses> FakeRecording::guessesIn(std::vector<IValue>& outputs) const {
  std::shared_ptr<Guesses> made = sizes_.guesses(outputs);
  if (!made && !expected_.empty()) made = std::make_shared<Guesses>();
  for (const auto& [tensor, truth] : expected_) {
    made->truths.push_back({outputs.size(), truth});
    outputs.emplace_back(tensor);
  }
  return made;
}

ScriptGraph FakeRecording::script(const std::vector<PyObject*>& outputs) {
  std::vector<IValue> values;
  std::vector<Value*> known;
  for (PyObject* each : outputs) {
    values.emplace_back(tensorIn(each));
    if (Value* const value = tracer_.find(tensorIn(each))) known.push_back(value);
  }
  const std::vector<Tensor> hidden = sizes_.checkDead(known);
  for (const Tensor& each : hidden) values.emplace_back(each);
  const std::shared_ptr<const Guesses> guesses = guessesIn(values);
  const size_t num_hidden = values.size() - outputs.size();
  sizes_.forget();
  std::vector<bool> joined;
  if (branches_.any()) {
    for (PyObject* each : outputs) joined.push_back(branches_.isJoined(tensorIn(each)));
    joined.resize(values.size());
  }
  try {
    functions_.finish();
    const std::shared_ptr<Graph> graph = tracer_.finish(IValue(makeTuple(std::move(values))));
    nameDevices(*graph, *graph->block());
    applyGraphRules(*graph);
    if (hasFakeConstants(*graph->block())) breakGraph("a tensor that was made out of sight");
    ScriptGraph made = scriptGraph(graph, tracer_.owners());
    made.joined = std::move(joined);
    made.num_hidden = num_hidden;
    made.guesses = guesses;
    made.writes = std::ranges::any_of(
        memories_, [](const auto& each) { return each.first->version() != each.second; });
    return made;
  } catch (const RuntimeError& error) {
    breakGraph(error.what());
  }
}

std::shared_ptr<capture::CapturedGraph> FakeRecording::finish(
    const std::vector<PyObject*>& outputs) {
  functions_.check({}, tensorsIn(outputs), false);
  return ownGraph(script(outputs));
}

bool FakeRecording::isFake(PyObject* object) const {
  return isTensor(object);
}

PyTypeObject* FakeRecording::typeOf(PyObject* fake) const {
  return Py_TYPE(fake);
}

void FakeRecording::addFake(PyObject* fake, const capture::InputSizes& sizes) {
  // The other side would not know what this one computes of the sizes.
  if (branches_.isWithin() && !sizes.areAllClosed()) breakGraph(kOpenBranch);
  const Tensor& tensor = tensorIn(fake);
  tracer_.addInput(fmt::format("x{}", memories_.size()), IValue(tensor));
  const Ref<Storage>& memory = tensor.impl()->storage;
  if (sizes.is_array) arrays_.emplace_back(memories_.size(), memory->version());
  memories_.emplace_back(memory, memory->version());
  sizes_.addInput(tracer_.find(tensor), tensor, sizes);
}

void FakeRecording::checkArrays() {
  for (auto& [index, version] : arrays_) {
    const uint32_t now = memories_[index].first->version();
    if (now != version && !writes_arrays_) breakGraph("a tensor writes to the memory of an array");
    version = now;
  }
}

// Returns the result with fakes for real tensors, which were made of numbers.
Object FakeRecording::faked(Object object, const std::string& what, int depth) {
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
    PyObject* const after = faked(Object::share(before), what, depth + 1).leak();
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
Object FakeRecording::cloneOf(const Tensor& tensor) {
  Graph& graph = tracer_.graph();
  const Operator* const clone = OperatorRegistry::instance().find(Symbol::aten("clone"), "");
  if (!clone) breakGraph("a constant cannot be copied");
  Value* const format = graph.insertNode(graph.createNone())->output();
  Node* node = graph.create(clone->symbol(),
                            {graph.insertConstant(IValue(tensor), types::Tensor()), format}, 0);
  node->setOperator(clone);
  Value* const value = node->addOutput(types::Tensor());
  graph.insertNode(node);
  const Tensor fake = fakeLike(tensor);
  tracer_.bindResult(value, fake);
  return Object::checked(tensorObject(fake));
}

}  // namespace wick::python
