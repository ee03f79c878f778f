#include "python/torch_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "autograd/tape.h"
#include "capture/bytecode/instance.h"
#include "core/generator_state.h"
#include "core/grad_mode.h"
#include "lazy/stand_in.h"
#include "python/fake_recording.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"
#include "python/torch_autocast.h"
#include "python/torch_components.h"
#include "python/torch_graph.h"
#include "python/torch_library.h"
#include "python/torch_memory.h"
#include "python/torch_opaque.h"
#include "runtime/ops/call.h"

namespace wick::python {
namespace {

using capture::breakGraph;
using capture::Callee;
using capture::Object;

// Returns the layout that an entry with open sizes is for.
TorchLayout openLayoutOf(const TorchLibrary& library, PyObject* tensor,
                         const capture::InputSizes& sizes) {
  TorchLayout layout = layoutOf(library, tensor);
  if (sizes.areAllClosed()) return layout;
  layout.open = std::make_shared<const OpenLayout>(layout.sizes, layout.strides, sizes);
  return layout;
}

// Returns an attribute that says how a tensor takes part in gradients. Breaks the graph for views that cannot tell any more.
bool isTrue(PyObject* object, const char* attribute) {
  const Object found = Object::own(PyObject_GetAttrString(object, attribute));
  if (!found) breakOnError(fmt::format("'{}' of a view", attribute));
  return found.get() == Py_True;
}

class TorchGuard : public capture::TensorGuard {
 public:
  TorchGuard(const TorchLibrary& library, PyObject* tensor, const capture::InputSizes& sizes)
      : library_(library),
        type_(Py_TYPE(tensor)),
        layout_(openLayoutOf(library, tensor, sizes)),
        requires_grad_(isTrue(tensor, "requires_grad")),
        leaf_(isTrue(tensor, "is_leaf")) {}

  bool matches(PyObject* object) const override {
    if (Py_TYPE(object) != type_ || !hasLayout(library_, object, layout_)) return false;
    static PyObject *const kGradient = PyUnicode_InternFromString("requires_grad"),
                           *const kLeaf = PyUnicode_InternFromString("is_leaf");
    return is(object, kGradient, requires_grad_) && (!requires_grad_ || is(object, kLeaf, leaf_));
  }
  std::string text() const override {
    const std::string sizes =
        layout_.open ? layout_.open->text() : OpenLayout(layout_.sizes, layout_.strides, {}).text();
    return fmt::format("a tensor of {} ({}){}", toString(layout_.dtype), sizes,
                       requires_grad_ ? " with a gradient" : "");
  }
  int64_t size(PyObject* tensor, int dim) const override {
    return sizesOfTorch(tensor)[static_cast<size_t>(dim)];
  }

 private:
  static bool is(PyObject* object, PyObject* name, bool expected) {
    const Object found = Object::own(PyObject_GetAttr(object, name));
    if (!found) PyErr_Clear();
    return found && (found.get() == Py_True) == expected;
  }

  const TorchLibrary& library_;
  PyTypeObject* const type_;  // of the library: it stays
  TorchLayout layout_;
  bool requires_grad_, leaf_;
};

// Records PyTorch's functions by Wick's, and the calls themselves.
class TorchRecording : public FakeRecording {
 public:
  TorchRecording(const capture::World& world, const TorchLibrary& library)
      : FakeRecording(world), library_(library) {
    record_.library = &library;
    record_.grad_mode = FakeRecording::gradMode();
    record_.dtype = defaultDType();
    stayOnCpu();
  }

  Object addInput(PyObject* tensor, const capture::InputSizes& sizes) override {
    TorchInput input{openLayoutOf(library_, tensor, sizes), isTrue(tensor, "requires_grad"), false,
                     sizes.symbols};
    const Tensor fake = fakeOf(input.layout.sizes, input.layout.strides, input.layout.dtype,
                               lazy::standInFor(Device()), sizes);
    Object object;
    {
      // The tensor was made before, whatever the mode is now.
      const GradModeGuard recording(true);
      if (input.requires_grad) fake.setRequiresGrad(true);
      const bool result = input.requires_grad && !isTrue(tensor, "is_leaf");
      object = Object::checked(tensorObject(result ? resultLike(fake) : fake));
    }
    types_[object.get()] = Py_TYPE(tensor);
    record_.inputs.push_back(std::move(input));
    record_.input_fakes.push_back(object);
    versions_.push_back(storageOf(object).version());
    addFake(object.get(), sizes);
    return object;
  }

  PyTypeObject* typeOf(PyObject* fake) const override {
    const auto found = types_.find(fake);
    return found == types_.end() ? library_.tensor_type : found->second;
  }

  Object call(PyObject* function, const std::vector<PyObject*>& arguments,
              PyObject* names) override {
    std::vector<Object> own;
    std::vector<PyObject*> given;
    TorchCall call{Object::share(function), {}, Object::share(names), {}};
    for (PyObject* each : arguments) {
      call.arguments.push_back(Object::share(each));
      own.push_back(library_.toOwn(each));
      given.push_back(own.back().get());
    }
    PyObject* counterpart = library_.ownFunction(function);
    const Object composed = autocastMode().cpu ? composedOf(function) : Object();
    if (composed) counterpart = composed.get();
    const Object result = FakeRecording::call(counterpart ? counterpart : function, given, names);
    noteWrites();
    call.result = library_.fromOwn(result.get());
    noteParts(call);
    record_.calls.push_back(std::move(call));
    return record_.calls.back().result;
  }

  Object callOpaque(PyObject* function, const std::vector<PyObject*>& arguments,
                    PyObject* names) override {
    return callTorchOpaque(*this, library_, function, arguments, names);
  }

  Object attribute(PyObject* fake, PyObject* name) override {
    static const Object& kGetAttr = forever([] {
      const Object builtins = Object::checked(PyImport_ImportModule("builtins"));
      return Object::checked(PyObject_GetAttrString(builtins.get(), "getattr"));
    }());
    PyObject* const member = capture::findTypeItem(typeOf(fake), name);
    if (member && library_.calleeOf(member) != Callee::kUnknown) {
      return Object::checked(PyMethod_New(member, fake));
    }
    if (!member || Py_TYPE(member) != &PyGetSetDescr_Type) {
      breakGraph(fmt::format("'{}' of a tensor of PyTorch's", PyUnicode_AsUTF8(name)));
    }
    const Object result = library_.fromOwn(FakeRecording::attribute(fake, name).get());
    if (isFake(result.get())) {
      record_.calls.push_back({kGetAttr, {Object::share(fake), Object::share(name)}, {}, result});
    }
    return result;
  }

  void beginBranch(PyObject* condition, int64_t step) override {
    FakeRecording::beginBranch(condition, step);
    beginControl(condition, false);
  }
  void beginOtherSide() override {
    FakeRecording::beginOtherSide();
    open_.back().control->sides[0] = std::exchange(record_.calls, {});
  }
  std::vector<Object> endBranch(
      const std::vector<std::pair<PyObject*, PyObject*>>& results) override {
    const std::vector<Object> made = FakeRecording::endBranch(results);
    TorchControl& branch = *open_.back().control;
    branch.sides[1] = std::exchange(record_.calls, {});
    for (const auto& [first, second] : results) {
      branch.ends[0].push_back(Object::share(first));
      branch.ends[1].push_back(Object::share(second));
      if (const auto type = types_.find(first); type != types_.end()) {
        types_[made[branch.results.size()].get()] = type->second;
      }
      branch.results.push_back(made[branch.results.size()]);
    }
    endControl();
    return made;
  }
  std::vector<Object> beginLoop(PyObject* condition, bool again,
                                const std::vector<PyObject*>& carried, int64_t step) override {
    const std::vector<Object> made = FakeRecording::beginLoop(condition, again, carried, step);
    beginControl(condition, true);
    TorchControl& loop = *open_.back().control;
    loop.again = again;
    for (PyObject* each : carried) {
      if (typeOf(each) != library_.tensor_type) breakGraph("a loop that changes a parameter");
      loop.before.push_back(Object::share(each));
    }
    loop.inside = made;
    return made;
  }
  std::vector<Object> endLoop(PyObject* condition, const std::vector<PyObject*>& carried) override {
    const std::vector<Object> made = FakeRecording::endLoop(condition, carried);
    TorchControl& loop = *open_.back().control;
    loop.sides[0] = std::exchange(record_.calls, {});
    loop.next_condition = Object::share(condition);
    for (PyObject* each : carried) {
      if (typeOf(each) != library_.tensor_type) breakGraph("a loop that changes a parameter");
      loop.ends[0].push_back(Object::share(each));
    }
    loop.results = made;
    endControl();
    return made;
  }

  void setGradMode(bool on) override {
    if (on == gradMode()) return;
    FakeRecording::setGradMode(on);
    record_.calls.push_back(
        {library_.set_grad_mode, {Object::share(on ? Py_True : Py_False)}, {}, {}});
  }

  Object callAutocast(PyObject* function, const std::vector<PyObject*>& arguments) override {
    const std::optional<AutocastCall> call = library_.autocast().callOf(function);
    if (!call) breakGraph("a function that tells or changes autocast");
    std::vector<Object> own;
    std::vector<PyObject*> given;
    for (PyObject* each : arguments) {
      own.push_back(library_.toOwn(each));
      given.push_back(own.back().get());
    }
    const AutocastMode before = autocastMode();
    const Owned result = FakeRecording::callAutocast(*call, given);
    recordChange(before);
    return library_.fromOwn(result.get());
  }
  void setAutocast(const AutocastMode& mode) override {
    const AutocastMode before = autocastMode();
    FakeRecording::setAutocast(mode);
    recordChange(before);
  }

  std::shared_ptr<capture::CapturedGraph> finish(const std::vector<PyObject*>& outputs) override {
    try {
      return finished(outputs);
    } catch (const RuntimeError& error) {
      // A view may have lost its history.
      breakGraph(error.brief());
    }
  }

 protected:
  Autocast* casts() override { return &rules_; }
  void clearCasts() override { rules_.clear(); }

 private:
  std::shared_ptr<capture::CapturedGraph> finished(const std::vector<PyObject*>& outputs) {
    for (PyObject* each : outputs) {
      record_.output_fakes.push_back(Object::share(each));
      record_.unrecorded.push_back(autograd::requiresGradient(tensorIn(each)) &&
                                   autograd::isLeaf(tensorIn(each)));
      checkDType(tensorIn(each), outputs);
    }
    record_.num_results = outputs.size();
    addRoots();
    std::vector<PyObject*> all;
    for (const Object& each : record_.output_fakes) {
      all.push_back(each.get());
      record_.plain_views.push_back(isViewOfWhatIsKnown(each));
      record_.of_several.push_back(autograd::isOneOfSeveralViews(tensorIn(each.get())));
    }
    findParts();
    std::vector<Tensor> given, results;
    for (const Object& each : record_.input_fakes) given.push_back(tensorIn(each.get()));
    for (PyObject* each : outputs) results.push_back(tensorIn(each));
    branches().check(given, results);
    functions().check(given, results, true);
    record_.own_derivatives = functions().any();
    record_.components = torchComponents(record_);
    record_.script = script(all);
    for (TorchComponent& each : record_.components) each.saves = savesTensors(record_, each);
    if (sizes().isOpen()) {
      record_.sizes = sizes().table();
      record_.numbers = sizes().numbers();
      for (auto& [number, known] : record_.numbers) {
        known.second = record_.sizes.simplified(known.second);
      }
    }
    return torchGraph(std::make_shared<const TorchRecord>(std::move(record_)));
  }

  // Records the calls that change the state of autocast from `before`.
  void recordChange(const AutocastMode& before) {
    for (auto& [function, argument] :
         library_.autocast().changes(library_, before, autocastMode())) {
      record_.calls.push_back({std::move(function), {std::move(argument)}, {}, {}});
    }
  }

  // A branch or a loop that is being recorded, and the calls before it.
  struct Open {
    std::shared_ptr<TorchControl> control;
    std::vector<TorchCall> before;
  };
  void beginControl(PyObject* condition, bool loop) {
    open_.push_back({std::make_shared<TorchControl>(), std::exchange(record_.calls, {})});
    open_.back().control->loop = loop;
    open_.back().control->condition = Object::share(condition);
  }
  void endControl() {
    record_.calls = std::move(open_.back().before);
    record_.calls.push_back({{}, {}, {}, {}, std::move(open_.back().control)});
    open_.pop_back();
  }

  // Returns whether an output is a view of the tensor that the call has for its memory, and not of a detached one.
  bool isViewOfWhatIsKnown(const Object& output) const {
    const Tensor& fake = tensorIn(output.get());
    if (!autograd::isPlainView(fake)) return false;
    const TensorImpl* const base = autograd::baseOf(fake).impl();
    const auto isBase = [&](const Object& each) { return tensorIn(each.get()).impl() == base; };
    const auto sharesMemory = [&](const Object& each) {
      return &storageOf(each) == &storageOf(output);
    };
    const auto input = std::ranges::find_if(record_.input_fakes, sharesMemory);
    return input != record_.input_fakes.end() ? isBase(*input)
                                              : std::ranges::any_of(record_.output_fakes, isBase);
  }

  static Storage& storageOf(const Object& fake) { return *tensorIn(fake.get()).impl()->storage; }

  // Notes which inputs the last call has written. One whose history would change breaks the graph.
  void noteWrites() {
    for (size_t i = 0; i < versions_.size(); ++i) {
      const Object& fake = record_.input_fakes[i];
      const uint32_t now = storageOf(fake).version();
      if (now == versions_[i]) continue;
      versions_[i] = now;
      record_.inputs[i].written = true;
      if (record_.inputs[i].requires_grad && gradMode()) {
        breakGraph("an in-place write to a tensor that requires a gradient");
      }
      if (autograd::requiresGradient(tensorIn(fake.get())) != record_.inputs[i].requires_grad) {
        breakGraph("an in-place write gives a tensor a gradient");
      }
    }
  }

  // Notes results that are several views of the first argument.
  void noteParts(const TorchCall& call) {
    PyObject* const all = call.result.get();
    if (!all || (!PyTuple_Check(all) && !PyList_CheckExact(all)) || call.arguments.empty() ||
        !isFake(call.arguments[0].get()) || !gradMode()) {
      return;
    }
    for (size_t i = 1; i < call.arguments.size(); ++i) {
      PyObject* const other = call.arguments[i].get();
      if (!PyLong_CheckExact(other) || numberIsOpen(other)) return;
    }
    const Storage& memory = storageOf(call.arguments[0]);
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all); ++i) {
      PyObject* const each = PySequence_Fast_GET_ITEM(all, i);
      if (!isFake(each) || tensorIn(each).impl()->storage.get() != &memory) return;
      parts_[each] = {call, i, false, 0};
    }
  }
  bool numberIsOpen(PyObject* number) const { return sizeOf(number).has_value(); }

  // Finds the outputs among them whose first argument is there in each call.
  void findParts() {
    for (size_t i = 0; i < record_.num_results; ++i) {
      const auto part = parts_.find(record_.output_fakes[i].get());
      if (part == parts_.end() || record_.unrecorded[i]) continue;
      const TensorImpl* const base = tensorIn(part->second.call.arguments[0].get()).impl();
      const auto indexIn = [&](const std::vector<Object>& fakes) {
        return std::ranges::find_if(
                   fakes, [&](const Object& each) { return tensorIn(each.get()).impl() == base; }) -
               fakes.begin();
      };
      const auto input = static_cast<size_t>(indexIn(record_.input_fakes));
      const auto output = static_cast<size_t>(indexIn(record_.output_fakes));
      part->second.of_input = input < record_.input_fakes.size();
      part->second.base = part->second.of_input ? input : output;
      if (part->second.of_input || output < record_.output_fakes.size()) {
        record_.parts.emplace(i, part->second);
      }
    }
  }

  // Appends the tensors to the outputs that several outputs are views of, or one that begins elsewhere.
  void addRoots() {
    std::unordered_map<const Storage*, std::vector<Tensor>> groups;
    for (const Object& each : record_.input_fakes) groups[&storageOf(each)] = {};
    std::vector<const Storage*> order;
    for (const Object& each : record_.output_fakes) {
      const Tensor& fake = tensorIn(each.get());
      const auto [group, added] = groups.try_emplace(&storageOf(each));
      if (added) order.push_back(group->first);
      group->second.push_back(fake);
    }
    for (const Storage* memory : order) {
      const std::vector<Tensor>& group = groups[memory];
      const std::optional<Tensor> root = rootOf(group[0]);
      if (!root || root->dtype() != group[0].dtype() ||
          (group.size() == 1 && group[0].impl()->offset == 0))
        continue;
      const auto isRoot = [&](const Tensor& each) { return each.impl() == root->impl(); };
      if (std::ranges::any_of(group, isRoot)) continue;
      record_.output_fakes.push_back(Object::checked(tensorObject(*root)));
      record_.unrecorded.push_back(autograd::requiresGradient(*root) && autograd::isLeaf(*root));
    }
  }

  // PyTorch's view of another dtype is more than sizes and strides.
  void checkDType(const Tensor& output, const std::vector<PyObject*>& outputs) const {
    const auto differs = [&](PyObject* fake) {
      const Tensor& other = tensorIn(fake);
      return other.impl()->storage.get() == output.impl()->storage.get() &&
             other.dtype() != output.dtype();
    };
    for (const Object& each : record_.input_fakes) {
      if (differs(each.get())) breakGraph("a result is a view of another dtype");
    }
    for (PyObject* each : outputs) {
      if (differs(each)) breakGraph("a result is a view of another dtype");
    }
  }

  const TorchLibrary& library_;
  TorchRecord record_;
  TorchRules rules_;
  std::vector<uint32_t> versions_;                  // of the fakes of inputs
  std::vector<Open> open_;                          // branches and loops, outermost first
  std::unordered_map<PyObject*, TorchPart> parts_;  // by fake, which the calls keep
  std::unordered_map<PyObject*, PyTypeObject*> types_;
};

class TorchTensors : public capture::World {
 public:
  explicit TorchTensors(const TorchLibrary& library) : library_(library) {}

  bool isTensor(PyObject* object) const override { return library_.isTensor(object); }
  bool isTensorType(PyTypeObject* type) const override { return library_.isTensorType(type); }
  bool isSizeType(PyTypeObject* type) const override { return type == library_.size_type; }
  bool isConstant(PyObject* object) const override { return library_.isConstant(object); }
  std::shared_ptr<const capture::TensorGuard> guardFor(
      PyObject* tensor, const capture::InputSizes& sizes) const override {
    if (!library_.isPlainTensorType(Py_TYPE(tensor))) {
      breakGraph(fmt::format("a tensor of the class {}", Py_TYPE(tensor)->tp_name));
    }
    return std::make_shared<TorchGuard>(library_, tensor, sizes);
  }
  std::vector<int64_t> sizesOf(PyObject* tensor) const override {
    if (!library_.isPlainTensorType(Py_TYPE(tensor))) {
      breakGraph(fmt::format("a tensor of the class {}", Py_TYPE(tensor)->tp_name));
    }
    return sizesOfTorch(tensor);
  }
  bool isParameter(PyObject* tensor) const override {
    return Py_TYPE(tensor) != library_.tensor_type;
  }
  Object library() const override { return library_.module; }
  Object tensorOn(PyObject* array) const override {
    // PyTorch warns of arrays that must not be written.
    const Object flags = Object::checked(PyObject_GetAttrString(array, "flags"));
    const Object writable = Object::checked(PyObject_GetAttrString(flags.get(), "writeable"));
    if (writable.get() != Py_True) breakGraph("an array that must not be written");
    return TorchLibrary::call(library_.from_numpy, array);
  }
  Callee calleeOf(PyObject* function) const override { return library_.calleeOf(function); }
  bool isLibrary(PyObject* module) const override {
    const char* const name = PyModule_GetName(module);
    if (!name) PyErr_Clear();
    return name &&
           (std::string_view(name) == "torch" || std::string_view(name).starts_with("torch."));
  }
  std::unique_ptr<capture::Recording> record() const override {
    const std::optional<AutocastMode> autocast = library_.autocast().mode(library_);
    if (!autocast) breakGraph("a state of torch.autocast that Wick does not have");
    setAutocastMode(*autocast);
    setGradEnabled(gradMode());
    const std::optional<DType> dtype =
        library_.dtypeOf(TorchLibrary::call(library_.default_dtype).get());
    if (!dtype) breakGraph("a default dtype that Wick does not have");
    setDefaultDType(*dtype);
    return std::make_unique<TorchRecording>(*this, library_);
  }
  int64_t state() const override {
    const Object dtype = TorchLibrary::call(library_.default_dtype);
    const std::optional<DType> own = library_.dtypeOf(dtype.get());
    return static_cast<int64_t>(gradMode()) |
           static_cast<int64_t>(library_.autocast().isOn()) << 1 |
           (own ? static_cast<int64_t>(*own) : 0xFF) << 2;
  }
  bool gradMode() const override { return TorchLibrary::call(library_.grad_mode).get() == Py_True; }
  void setGradMode(bool on) const override {
    TorchLibrary::call(library_.set_grad_mode, on ? Py_True : Py_False);
  }
  int64_t autocast() const override {
    const std::optional<AutocastMode> mode = library_.autocast().mode(library_);
    return mode ? mode->packed() : -1;
  }
  void setAutocast(int64_t state) const override {
    const std::optional<AutocastMode> before = library_.autocast().mode(library_);
    if (!before) return;
    library_.autocast().set(library_, *before, AutocastMode::unpacked(state),
                            (state & AutocastMode::kClears) != 0);
  }
  std::shared_ptr<void> keepState() const override { return std::make_shared<KeptState>(); }

 private:
  // Wick's own state, which recording changes; nothing of PyTorch's does.
  struct KeptState {
    bool grad_mode = gradEnabled();
    AutocastMode autocast = autocastMode();
    DType dtype = defaultDType();
    GeneratorState generator = GeneratorState::of(defaultGenerator());
    ~KeptState() {
      setGradEnabled(grad_mode);
      setAutocastMode(autocast);
      setDefaultDType(dtype);
      generator.restore(defaultGenerator());
    }
  };

  const TorchLibrary& library_;
};

}  // namespace

std::shared_ptr<const capture::World> torchTensors(const TorchLibrary& library) {
  static const auto& world =
      *new std::shared_ptr<const capture::World>(std::make_shared<TorchTensors>(library));
  return world;
}

}  // namespace wick::python
