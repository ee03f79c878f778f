// Recording of a graph for wick.compile: Wick's functions run on fakes, tensors without memory.
#pragma once

#include <string>
#include <vector>

#include "capture/world.h"
#include "lazy/zero_results.h"
#include "python/autocast.h"
#include "python/branch_recording.h"
#include "python/captured_graph.h"
#include "python/function_recording.h"
#include "python/size_tracking.h"
#include "tracing/tracer.h"

namespace wick::python {

class FakeTracer;

// Makes operators see fakes only: a call for a device gets its stand-in.
class FakeLayer : public CallLayer {
 public:
  explicit FakeLayer(FakeTracer& tracer) : tracer_(tracer) {}
  void call(const LayerCall& call) override;

 private:
  FakeTracer& tracer_;
};

// Records calls on fakes.
class FakeTracer : public tracing::Tracer {
 public:
  // Says that a function of the program is called whose code is not looked at, until end().
  void beginOpaque();
  void endOpaque() { opaque_ = false; }
  // Returns why the graph cannot hold the call, "" if it can.
  const std::string& problem() const { return problem_; }
  // Notes the first reason; does nothing outside of such a call.
  void note(const std::string& problem);
  // Puts the thread's gradient mode into the graph if it is another one there.
  void noteGradMode();
  // Refuses calls that ask for another device than the CPU.
  void stayOnCpu() { stays_on_cpu_ = true; }
  bool staysOnCpu() const { return stays_on_cpu_; }
  // Asks the object for sizes that elements decide. It must live as long.
  void setDecidedSizes(lazy::DecidedSizes* sizes) { decided_sizes_ = sizes; }

 protected:
  void around(const std::function<void()>& run) override;

 private:
  FakeLayer layer_{*this};
  lazy::DecidedSizes* decided_sizes_ = nullptr;
  bool opaque_ = false, stays_on_cpu_ = false;
  bool grad_mode_ = true;
  std::string problem_;
};

// Returns a fake with the layout of one that requires a gradient, as the result of an operator. Gradients are on.
Tensor resultLike(const Tensor& fake);
// Returns the device of the tensor, or the one that it stands for in a recording on fakes.
Device deviceSeenOn(const Tensor& tensor);
// Tells a recording on fakes that the program does something that no graph holds; does nothing where
// there is none.
void noteInFakes(const std::string& problem);

// Records on objects of wick.Tensor. Needs the GIL; to be used by the thread that made it.
class FakeRecording : public capture::Recording {
 public:
  // Neither the world nor the gradient mode nor the state of autocast of the thread is owned.
  explicit FakeRecording(const capture::World& world)
      : world_(world),
        initial_grad_mode_(world.gradMode()),
        initial_autocast_(AutocastMode::unpacked(world.autocast())) {
    tracer_.setDecidedSizes(&sizes_);
  }

  const capture::World& world() const override { return world_; }
  void enter(PyObject*) override {}
  bool initialGradMode() const override { return initial_grad_mode_; }
  capture::Object addInput(PyObject* tensor, const capture::InputSizes& sizes) override;
  std::optional<capture::SizeExpression> sizeOf(PyObject* number) const override;
  capture::Object numberFor(const capture::SizeExpression& expression) override;
  Dimension dimensionOf(int symbol) override;
  capture::Object constantOf(PyObject* fake) override;
  std::optional<capture::SizeExpression> elementOf(PyObject* fake) override;
  PyTypeObject* numberType(PyObject* fake) const override;
  bool isIndexNumber(PyObject* fake) const override;
  bool isFake(PyObject* object) const override;
  PyTypeObject* typeOf(PyObject* fake) const override;
  capture::Object call(PyObject* function, const std::vector<PyObject*>& arguments,
                       PyObject* names) override;
  capture::Object callOpaque(PyObject* function, const std::vector<PyObject*>& arguments,
                             PyObject* names) override;
  capture::Object attribute(PyObject* fake, PyObject* name) override;
  void beginBranch(PyObject* condition, int64_t step) override;
  void beginOtherSide() override {
    clearCasts();
    branches_.beginOtherSide();
  }
  std::vector<capture::Object> endBranch(
      const std::vector<std::pair<PyObject*, PyObject*>>& results) override;
  bool canJoin(PyObject* a, PyObject* b) const override;
  std::vector<capture::Object> beginLoop(PyObject* condition, bool again,
                                         const std::vector<PyObject*>& carried,
                                         int64_t step) override;
  std::vector<capture::Object> endLoop(PyObject* condition,
                                       const std::vector<PyObject*>& carried) override;
  bool requiresGradient(PyObject* fake) const override;
  void beginPart() override { functions_.watchKnown(); }
  void endPart() override { functions_.checkWrites(); }
  void beginFunction() override;
  std::vector<capture::Object> beginDerivative(const std::vector<PyObject*>& saved,
                                               const std::vector<PyObject*>& results) override;
  std::vector<capture::Object> endFunction(const FunctionParts& parts, int64_t step) override;
  void expect(PyObject* condition, bool truth) override;
  bool gradMode() const override;
  void setGradMode(bool on) override;
  int64_t autocast() const override { return autocastMode().packed(); }
  bool isAutocastOn() const override { return autocastMode().any(); }
  void setWritesArrays(bool on) override { writes_arrays_ = on; }
  capture::Object callAutocast(PyObject* function,
                               const std::vector<PyObject*>& arguments) override;
  bool asksAutocast() const override { return asks_autocast_ || initial_autocast_.any(); }
  std::optional<int64_t> leftAutocast() const override;
  // Changes the state of autocast of the program.
  virtual void setAutocast(const AutocastMode& mode);
  int numOperators() const override;
  std::shared_ptr<capture::CapturedGraph> finish(const std::vector<PyObject*>& outputs) override;

 protected:
  // Breaks the graph at calls that ask for another device than the CPU.
  void stayOnCpu() { tracer_.stayOnCpu(); }
  // Returns what casts the arguments of recorded calls; null: Wick's own rules.
  virtual Autocast* casts() { return nullptr; }
  // Forgets the casts of weights.
  virtual void clearCasts() {}
  // Does a call of the program's; the arguments are Wick's.
  Owned callAutocast(AutocastCall call, std::span<PyObject* const> arguments);
  // Breaks the graph if a result is a leaf that requires a gradient and no argument.
  void checkOpaqueResult(PyObject* result, const std::vector<PyObject*>& arguments) const;
  // Registers a fake as the next input.
  void addFake(PyObject* fake, const capture::InputSizes& sizes);
  const SizeTracking& sizes() const { return sizes_; }
  const BranchRecording& branches() const { return branches_; }
  const FunctionRecording& functions() const { return functions_; }
  // Returns the fake that a view is one of, at the root; none where the graph has none.
  std::optional<Tensor> rootOf(const Tensor& fake) const {
    return tracer_.firstOn(fake.impl()->storage.get());
  }
  // Ends the recording. The outputs are fakes.
  ScriptGraph script(const std::vector<PyObject*>& outputs);

 private:
  void checkOutsideOfFunctions() const;
  template <class F>
  capture::Object recorded(const std::string& what, const std::vector<PyObject*>& arguments,
                           bool reads_sizes, F&& f);
  // Breaks the graph if an operator on tensors has written to the memory of an array.
  void checkArrays();
  capture::Object faked(capture::Object object, const std::string& what, int depth);
  capture::Object cloneOf(const Tensor& tensor);
  std::shared_ptr<const Guesses> guessesIn(std::vector<IValue>& outputs) const;

  const capture::World& world_;
  const bool initial_grad_mode_;
  const AutocastMode initial_autocast_;
  bool asks_autocast_ = false, clears_casts_ = false;
  FakeTracer tracer_;
  SizeTracking sizes_{tracer_};
  BranchRecording branches_{tracer_};
  FunctionRecording functions_{tracer_, memories_};
  std::vector<std::pair<Tensor, bool>> expected_;
  // The memory of each input, and how often it was written before.
  std::vector<std::pair<Ref<Storage>, uint32_t>> memories_;
  // The arrays of numpy among them, by index, and how often they have been written. Nobody counts what numpy writes.
  std::vector<std::pair<size_t, uint32_t>> arrays_;
  bool writes_arrays_ = false;
};

// Returns the name of a function, for reasons. Keeps the exception that is set.
std::string nameOfFunction(PyObject* function);
// Clears the Python exception that is set, and throws GraphBreak with its text. Interrupts stay.
[[noreturn]] void breakOnError(const std::string& what);

}  // namespace wick::python
