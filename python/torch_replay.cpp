#include "python/torch_replay.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <unordered_map>

#include "capture/bytecode/frame_hook.h"
#include "capture/compiled_call.h"
#include "python/tensor_object.h"
#include "python/torch_library.h"

namespace wick::python {
namespace {

using capture::Object;

// Puts the gradient mode and autocast back where calls that change them end with an exception.
class ModesOnError {
 public:
  explicit ModesOnError(const TorchLibrary& library)
      : library_(library),
        gradients_(TorchLibrary::call(library.grad_mode).get() == Py_True),
        autocast_(library.autocast().mode(library)),
        exceptions_(std::uncaught_exceptions()) {}
  ~ModesOnError() {
    if (std::uncaught_exceptions() == exceptions_) return;
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    try {
      TorchLibrary::call(library_.set_grad_mode, gradients_ ? Py_True : Py_False);
      const std::optional<AutocastMode> now = library_.autocast().mode(library_);
      if (now && autocast_) library_.autocast().set(library_, *now, *autocast_, false);
    } catch (const capture::PythonError&) {
      PyErr_Clear();
    }
    PyErr_Restore(type, value, traceback);
  }
  ModesOnError(const ModesOnError&) = delete;

 private:
  const TorchLibrary& library_;
  const bool gradients_;
  const std::optional<AutocastMode> autocast_;
  const int exceptions_;
};

// A graph that PyTorch runs, by functions of Python.
class PythonGraph : public capture::CapturedGraph {
 public:
  explicit PythonGraph(std::shared_ptr<const TorchRecord> record) : record_(std::move(record)) {}

  std::string text() const override { return record_->script.function->graph()->str(); }
  std::string contents() const override { return contentsOf(*record_->script.function->graph()); }
  bool isImpure() const override { return record_->script.impure; }
  bool writes() const override { return record_->script.writes; }
  int numOperators() const override { return record_->script.num_operators; }
  Object object() const override { return torchGraph(record_)->object(); }
  std::shared_ptr<CapturedGraph> operatorByOperator() const override {
    return replayedCalls(record_);
  }
  std::shared_ptr<CapturedGraph> calling(Object function) const override {
    return calledTorchFunction(record_, std::move(function));
  }

  void run(std::span<const Object> inputs, std::vector<Object>& outputs,
           bool& touched) const override {
    touched = mustNotRepeat();
    const size_t before = outputs.size();
    compute(inputs, outputs);
    const size_t count = outputs.size() - before;
    if (count != record_->num_results && count != record_->output_fakes.size()) {
      PyErr_Format(PyExc_ValueError,
                   "a backend's function gave %zu tensors, the graph has %zu results", count,
                   record_->num_results);
      throw capture::PythonError();
    }
    outputs.resize(before + record_->num_results);
  }

 protected:
  // Returns whether an error must be shown, and not left to the program that runs plainly then.
  virtual bool mustNotRepeat() const = 0;
  virtual void compute(std::span<const Object> inputs, std::vector<Object>& outputs) const = 0;

  const std::shared_ptr<const TorchRecord> record_;
};

class CalledTorchFunction : public PythonGraph {
 public:
  CalledTorchFunction(std::shared_ptr<const TorchRecord> record, Object function)
      : PythonGraph(std::move(record)), function_(std::move(function)) {}

 protected:
  bool mustNotRepeat() const override { return true; }
  void compute(std::span<const Object> inputs, std::vector<Object>& outputs) const override {
    std::vector<PyObject*> arguments;
    for (const Object& each : inputs) arguments.push_back(each.get());
    // The graph holds the casts.
    std::optional<TorchAutocastScope> off;
    if (record_->library->autocast().isOn()) off.emplace(*record_->library, AutocastMode());
    const Object result = capture::callPlainly(function_.get(), arguments, nullptr);
    const Object all = Object::checked(
        PySequence_Fast(result.get(), "a backend's function gives a tuple or list of tensors"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(all.get()); ++i) {
      outputs.push_back(Object::share(PySequence_Fast_GET_ITEM(all.get(), i)));
      if (record_->library->isTensor(outputs.back().get())) continue;
      PyErr_Format(PyExc_TypeError, "a result of a backend's function: expected a tensor, got %s",
                   Py_TYPE(outputs.back().get())->tp_name);
      throw capture::PythonError();
    }
  }

 private:
  Object function_;
};

// The calls of the program, made again without the program.
class ReplayedCalls : public PythonGraph {
 public:
  explicit ReplayedCalls(std::shared_ptr<const TorchRecord> record)
      : PythonGraph(std::move(record)) {
    for (const Object& each : record_->input_fakes) slotOf(each.get());
    steps_ = stepsOf(record_->calls);
    for (const auto& [number, expression] : record_->numbers) {
      number_slots_.emplace(number, slots_.size() + number_slots_.size());
    }
    findHolders(steps_);
  }

 protected:
  bool mustNotRepeat() const override { return record_->script.impure; }
  void compute(std::span<const Object> inputs, std::vector<Object>& outputs) const override {
    const capture::PauseHook pause;
    const ModesOnError modes(*record_->library);
    std::vector<Object> slots(slots_.size() + record_->numbers.size());
    computeNumbers(inputs, slots);
    for (size_t i = 0; i < inputs.size(); ++i) slots[i] = inputs[i];
    run(steps_, slots);
    for (size_t i = 0; i < record_->num_results; ++i) {
      outputs.push_back(slots[slots_.at(record_->output_fakes[i].get())]);
    }
  }

 private:
  struct Step {
    const TorchCall* call = nullptr;
    std::vector<bool> holders = {};         // which arguments hold fakes
    std::vector<Step> sides[2] = {{}, {}};  // of a branch or a loop
  };

  std::vector<Step> stepsOf(const std::vector<TorchCall>& calls) {
    std::vector<Step> steps;
    for (const TorchCall& each : calls) {
      Step& step = steps.emplace_back(Step{&each});
      if (each.result) addSlots(each.result.get());
      if (!each.control) continue;
      for (const Object& fake : each.control->inside) slotOf(fake.get());
      for (size_t i = 0; i < 2; ++i) step.sides[i] = stepsOf(each.control->sides[i]);
      for (const Object& fake : each.control->results) slotOf(fake.get());
    }
    return steps;
  }
  void findHolders(std::vector<Step>& steps) const {
    for (Step& each : steps) {
      for (const Object& argument : each.call->arguments) {
        each.holders.push_back(holdsFakes(argument.get()));
      }
      for (std::vector<Step>& side : each.sides) findHolders(side);
    }
  }

  void run(const std::vector<Step>& steps, std::vector<Object>& slots) const {
    std::vector<Object> kept;
    std::vector<PyObject*> arguments;
    for (const Step& each : steps) {
      const TorchCall& call = *each.call;
      if (call.control) {
        call.control->loop ? runLoop(each, slots) : runBranch(each, slots);
        continue;
      }
      kept.clear();
      arguments.clear();
      for (size_t i = 0; i < call.arguments.size(); ++i) {
        const Object& argument = call.arguments[i];
        kept.push_back(each.holders[i] ? filled(argument.get(), slots) : argument);
        arguments.push_back(kept.back().get());
      }
      const size_t named = call.names ? static_cast<size_t>(PyTuple_GET_SIZE(call.names.get())) : 0;
      const Object result = Object::checked(PyObject_Vectorcall(
          call.function.get(), arguments.data(), arguments.size() - named, call.names.get()));
      if (call.result) assign(call.result.get(), result.get(), slots);
    }
  }
  void runBranch(const Step& step, std::vector<Object>& slots) const {
    const TorchControl& branch = *step.call->control;
    const size_t side = isTrue(branch.condition, slots) ? 0 : 1;
    run(step.sides[side], slots);
    move(branch.ends[side], branch.results, slots);
  }
  void runLoop(const Step& step, std::vector<Object>& slots) const {
    const TorchControl& loop = *step.call->control;
    move(loop.before, loop.inside, slots);
    bool on = isTrue(loop.condition, slots) == loop.again;
    while (on) {
      if (PyErr_CheckSignals() < 0) throw capture::PythonError();
      run(step.sides[0], slots);
      on = isTrue(loop.next_condition, slots) == loop.again;
      move(loop.ends[0], loop.inside, slots);
    }
    move(loop.inside, loop.results, slots);
  }
  bool isTrue(const Object& fake, const std::vector<Object>& slots) const {
    const int truth = PyObject_IsTrue(slots[slots_.at(fake.get())].get());
    if (truth < 0) throw capture::PythonError();
    return truth == 1;
  }
  // Gives all of them at once.
  void move(const std::vector<Object>& from, const std::vector<Object>& to,
            std::vector<Object>& slots) const {
    std::vector<Object> values;
    for (const Object& each : from) values.push_back(slots[slots_.at(each.get())]);
    for (size_t i = 0; i < to.size(); ++i) slots[slots_.at(to[i].get())] = std::move(values[i]);
  }

  void slotOf(PyObject* fake) { slots_.emplace(fake, slots_.size()); }
  bool isFake(PyObject* object) const {
    return slots_.count(object) != 0 || record_->numbers.count(object) != 0;
  }
  // Fills the slots of numbers with what they are for the sizes of these inputs.
  void computeNumbers(std::span<const Object> inputs, std::vector<Object>& slots) const {
    if (record_->numbers.empty()) return;
    std::vector<int64_t> sizes(static_cast<size_t>(record_->sizes.numSymbols()));
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<int>& symbols = record_->inputs[i].symbols;
      if (std::ranges::all_of(symbols, [](int symbol) { return symbol < 0; })) continue;
      const std::vector<int64_t> own = sizesOfTorch(inputs[i].get());
      for (size_t d = 0; d < symbols.size(); ++d) {
        if (symbols[d] >= 0) sizes[static_cast<size_t>(symbols[d])] = own[d];
      }
    }
    for (const auto& [number, at] : number_slots_) {
      const auto value = record_->sizes.evaluate(record_->numbers.at(number).second, sizes);
      if (value) {
        slots[at] = Object::checked(PyLong_FromLongLong(*value));
        continue;
      }
      PyErr_SetString(PyExc_RuntimeError, "a size cannot be computed");
      throw capture::PythonError();
    }
  }
  void addSlots(PyObject* result) {
    if (isTensor(result)) return slotOf(result);
    if (!PyTuple_Check(result) && !PyList_CheckExact(result)) return;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
      addSlots(PySequence_Fast_GET_ITEM(result, i));
    }
  }
  bool holdsFakes(PyObject* object) const {
    if (isFake(object)) return true;
    if (PySlice_Check(object)) {
      const auto* slice = reinterpret_cast<PySliceObject*>(object);
      return holdsFakes(slice->start) || holdsFakes(slice->stop) || holdsFakes(slice->step);
    }
    if (PyDict_CheckExact(object)) {
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
        if (holdsFakes(value)) return true;
      }
      return false;
    }
    if (!PyTuple_CheckExact(object) && !PyList_CheckExact(object)) return false;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      if (holdsFakes(PySequence_Fast_GET_ITEM(object, i))) return true;
    }
    return false;
  }
  // Returns the argument with tensors in place of fakes.
  Object filled(PyObject* object, const std::vector<Object>& slots) const {
    if (const auto found = slots_.find(object); found != slots_.end()) return slots[found->second];
    if (const auto found = number_slots_.find(object); found != number_slots_.end()) {
      return slots[found->second];
    }
    if (PySlice_Check(object)) {
      const auto* slice = reinterpret_cast<PySliceObject*>(object);
      return Object::checked(PySlice_New(filled(slice->start, slots).get(),
                                         filled(slice->stop, slots).get(),
                                         filled(slice->step, slots).get()));
    }
    if (PyDict_CheckExact(object)) {
      Object made = Object::checked(PyDict_New());
      PyObject *key = nullptr, *value = nullptr;
      for (Py_ssize_t at = 0; PyDict_Next(object, &at, &key, &value);) {
        if (PyDict_SetItem(made.get(), key, filled(value, slots).get()) < 0) {
          throw capture::PythonError();
        }
      }
      return made;
    }
    const bool list = PyList_CheckExact(object);
    if (!list && !PyTuple_CheckExact(object)) return Object::share(object);
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    Object made = Object::checked(list ? PyList_New(count) : PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const each = filled(PySequence_Fast_GET_ITEM(object, i), slots).leak();
      if (list) {
        PyList_SET_ITEM(made.get(), i, each);
      } else {
        PyTuple_SET_ITEM(made.get(), i, each);
      }
    }
    return made;
  }
  void assign(PyObject* fakes, PyObject* result, std::vector<Object>& slots) const {
    if (const auto found = slots_.find(fakes); found != slots_.end()) {
      slots[found->second] = Object::share(result);
      return;
    }
    if (!PyTuple_Check(fakes) && !PyList_CheckExact(fakes)) return;
    const Object all = Object::checked(PySequence_Fast(result, "a result is no sequence"));
    if (PySequence_Fast_GET_SIZE(all.get()) != PySequence_Fast_GET_SIZE(fakes)) {
      PyErr_SetString(PyExc_RuntimeError, "a result has another length than when it was captured");
      throw capture::PythonError();
    }
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fakes); ++i) {
      assign(PySequence_Fast_GET_ITEM(fakes, i), PySequence_Fast_GET_ITEM(all.get(), i), slots);
    }
  }

  std::unordered_map<PyObject*, size_t> slots_;  // by fake
  std::unordered_map<PyObject*, size_t> number_slots_;
  std::vector<Step> steps_;
};

}  // namespace

std::shared_ptr<capture::CapturedGraph> replayedCalls(std::shared_ptr<const TorchRecord> record) {
  return std::make_shared<ReplayedCalls>(std::move(record));
}

std::shared_ptr<capture::CapturedGraph> calledTorchFunction(
    std::shared_ptr<const TorchRecord> record, Object function) {
  return std::make_shared<CalledTorchFunction>(std::move(record), std::move(function));
}

}  // namespace wick::python
