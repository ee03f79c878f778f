#include "python/any_tensors.h"

#include <utility>
#include <vector>

#include "python/captured_tensors.h"
#include "python/torch_library.h"
#include "python/torch_tensors.h"

namespace wick::python {
namespace {

using capture::breakGraph;
using capture::Callee;
using capture::CapturedGraph;
using capture::Object;
using capture::Recording;
using capture::World;

// The world of PyTorch's tensors, null while PyTorch is not there.
const World* foreign() {
  static const World* world = nullptr;
  if (world) return world;
  const TorchLibrary* const library = TorchLibrary::loaded();
  if (library) world = torchTensors(*library).get();
  return world;
}

const World& worldOfTensor(PyObject* tensor) {
  const World* const other = foreign();
  return other && other->isTensor(tensor) ? *other : *ownTensors();
}

// Returns the world that a function belongs to, null for functions of neither.
const World* worldOfFunction(PyObject* function) {
  if (ownTensors()->calleeOf(function) != Callee::kUnknown) return ownTensors().get();
  const World* const other = foreign();
  return other && other->calleeOf(function) != Callee::kUnknown ? other : nullptr;
}

// A recording that becomes one of either world.
class AnyRecording : public Recording {
 public:
  explicit AnyRecording(const World& any) : any_(any) {}

  const World& world() const override {
    if (inner_) return inner_->world();
    return prefers_foreign_ ? *foreign() : any_;
  }
  void enterArrays() override {
    if (!inner_) choose(prefers_foreign_ ? *foreign() : *ownTensors(), true);
  }
  void setWritesArrays(bool on) override { inner().setWritesArrays(on); }
  void preferOtherWorld() override { prefers_foreign_ = foreign() != nullptr; }
  void enter(PyObject* function) override {
    if (const World* const world = worldOfFunction(function)) choose(*world);
  }
  Object addInput(PyObject* tensor, const capture::InputSizes& sizes) override {
    choose(worldOfTensor(tensor), sizes.is_array);
    return inner_->addInput(tensor, sizes);
  }
  std::optional<capture::SizeExpression> sizeOf(PyObject* number) const override {
    return inner_ ? inner_->sizeOf(number) : std::nullopt;
  }
  Object numberFor(const capture::SizeExpression& expression) override {
    return inner().numberFor(expression);
  }
  Dimension dimensionOf(int symbol) override { return inner().dimensionOf(symbol); }
  Object constantOf(PyObject* fake) override { return inner().constantOf(fake); }
  std::optional<capture::SizeExpression> elementOf(PyObject* fake) override {
    return inner().elementOf(fake);
  }
  PyTypeObject* numberType(PyObject* fake) const override { return inner().numberType(fake); }
  bool isIndexNumber(PyObject* fake) const override { return inner().isIndexNumber(fake); }
  bool isFake(PyObject* object) const override { return inner_ && inner_->isFake(object); }
  PyTypeObject* typeOf(PyObject* fake) const override { return inner().typeOf(fake); }
  Object call(PyObject* function, const std::vector<PyObject*>& arguments,
              PyObject* names) override {
    enter(function);
    return inner().call(function, arguments, names);
  }
  Object callOpaque(PyObject* function, const std::vector<PyObject*>& arguments,
                    PyObject* names) override {
    return inner().callOpaque(function, arguments, names);
  }
  Object attribute(PyObject* fake, PyObject* name) override {
    return inner().attribute(fake, name);
  }
  void beginBranch(PyObject* condition, int64_t step) override {
    inner().beginBranch(condition, step);
  }
  void beginOtherSide() override { inner().beginOtherSide(); }
  std::vector<Object> endBranch(
      const std::vector<std::pair<PyObject*, PyObject*>>& results) override {
    return inner().endBranch(results);
  }
  bool canJoin(PyObject* a, PyObject* b) const override { return inner().canJoin(a, b); }
  std::vector<Object> beginLoop(PyObject* condition, bool again,
                                const std::vector<PyObject*>& carried, int64_t step) override {
    return inner().beginLoop(condition, again, carried, step);
  }
  std::vector<Object> endLoop(PyObject* condition, const std::vector<PyObject*>& carried) override {
    return inner().endLoop(condition, carried);
  }
  bool requiresGradient(PyObject* fake) const override { return inner().requiresGradient(fake); }
  void beginPart() override { inner().beginPart(); }
  void endPart() override { inner().endPart(); }
  void beginFunction() override { inner().beginFunction(); }
  std::vector<Object> beginDerivative(const std::vector<PyObject*>& saved,
                                      const std::vector<PyObject*>& results) override {
    return inner().beginDerivative(saved, results);
  }
  std::vector<Object> endFunction(const FunctionParts& parts, int64_t step) override {
    return inner().endFunction(parts, step);
  }
  void expect(PyObject* condition, bool truth) override { inner().expect(condition, truth); }
  bool initialGradMode() const override { return inner_ ? inner_->initialGradMode() : true; }
  bool gradMode() const override { return inner_ ? inner_->gradMode() : true; }
  void setGradMode(bool on) override { inner().setGradMode(on); }
  int64_t autocast() const override { return inner_ ? inner_->autocast() : 0; }
  bool isAutocastOn() const override { return inner_ && inner_->isAutocastOn(); }
  Object callAutocast(PyObject* function, const std::vector<PyObject*>& arguments) override {
    return inner().callAutocast(function, arguments);
  }
  bool asksAutocast() const override { return inner_ && inner_->asksAutocast(); }
  std::optional<int64_t> leftAutocast() const override {
    return inner_ ? inner_->leftAutocast() : std::nullopt;
  }
  int numOperators() const override { return inner_ ? inner_->numOperators() : 0; }
  std::shared_ptr<CapturedGraph> finish(const std::vector<PyObject*>& outputs) override {
    return inner().finish(outputs);
  }

 private:
  Recording& inner() const {
    if (!inner_) breakGraph("a function of tensors without tensors");
    return *inner_;
  }
  void choose(const World& world, bool for_arrays = false) {
    if (!inner_) {
      inner_ = world.record();
      only_arrays_ = true;
    }
    if (&inner_->world() == &world) {
      only_arrays_ = only_arrays_ && for_arrays;
      return;
    }
    const bool other = only_arrays_ && !prefers_foreign_;
    throw capture::GraphBreak{"tensors of Wick and of PyTorch in one graph", {}, -1, other};
  }

  const World& any_;
  std::unique_ptr<Recording> inner_;
  bool prefers_foreign_ = false;
  bool only_arrays_ = false;  // nothing but arrays of numpy has chosen the world
};

class AnyTensors : public World {
 public:
  bool isTensor(PyObject* object) const override {
    return any([&](const World& world) { return world.isTensor(object); });
  }
  bool isTensorType(PyTypeObject* type) const override {
    return any([&](const World& world) { return world.isTensorType(type); });
  }
  bool isSizeType(PyTypeObject* type) const override {
    return any([&](const World& world) { return world.isSizeType(type); });
  }
  bool isConstant(PyObject* object) const override {
    return any([&](const World& world) { return world.isConstant(object); });
  }
  std::shared_ptr<const capture::TensorGuard> guardFor(
      PyObject* tensor, const capture::InputSizes& sizes) const override {
    return worldOfTensor(tensor).guardFor(tensor, sizes);
  }
  std::vector<int64_t> sizesOf(PyObject* tensor) const override {
    return worldOfTensor(tensor).sizesOf(tensor);
  }
  bool isParameter(PyObject* tensor) const override {
    return worldOfTensor(tensor).isParameter(tensor);
  }
  // A function of numpy's alone belongs to neither: Wick's own tensors compute it.
  Object library() const override { return ownTensors()->library(); }
  Object tensorOn(PyObject* array) const override { return ownTensors()->tensorOn(array); }
  Callee calleeOf(PyObject* function) const override {
    const World* const world = worldOfFunction(function);
    return world ? world->calleeOf(function) : Callee::kUnknown;
  }
  bool isLibrary(PyObject* module) const override {
    return any([&](const World& world) { return world.isLibrary(module); });
  }
  std::unique_ptr<Recording> record() const override {
    return std::make_unique<AnyRecording>(*this);
  }
  // Graphs that no world was chosen for depend on neither.
  int64_t state() const override { return 0; }
  bool gradMode() const override { return true; }
  void setGradMode(bool) const override {}
  int64_t autocast() const override { return 0; }
  void setAutocast(int64_t) const override {}
  std::shared_ptr<void> keepState() const override {
    const World* const other = foreign();
    return std::make_shared<std::pair<std::shared_ptr<void>, std::shared_ptr<void>>>(
        ownTensors()->keepState(), other ? other->keepState() : nullptr);
  }

 private:
  template <class F>
  static bool any(F&& f) {
    const World* const other = foreign();
    return f(*ownTensors()) || (other && f(*other));
  }
};

}  // namespace

std::shared_ptr<const World> anyTensors() {
  static const auto& world = *new std::shared_ptr<const World>(std::make_shared<AnyTensors>());
  return world;
}

}  // namespace wick::python
