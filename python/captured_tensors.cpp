#include "python/captured_tensors.h"

#include <fmt/format.h>

#include <string_view>
#include <unordered_map>

#include "autograd/tape.h"
#include "capture/bytecode/instance.h"
#include "core/device_backend.h"
#include "core/dtype.h"
#include "core/generator_state.h"
#include "core/grad_mode.h"
#include "python/autocast.h"
#include "python/eager.h"
#include "python/fake_recording.h"
#include "python/open_layout.h"
#include "python/plain_types.h"
#include "python/tensor_object.h"

namespace wick::python {
namespace {

using capture::breakGraph;
using capture::Callee;
using capture::Object;

// ---- guards ----

class Guard : public capture::TensorGuard {
 public:
  Guard(PyObject* object, const capture::InputSizes& sizes)
      : type_(Object::share(reinterpret_cast<PyObject*>(Py_TYPE(object)))),
        dtype_(tensorIn(object).dtype()),
        device_(tensorIn(object).device()),
        layout_(tensorIn(object).sizes(), tensorIn(object).strides(), sizes),
        requires_grad_(autograd::requiresGradient(tensorIn(object))),
        leaf_(autograd::isLeaf(tensorIn(object))),
        traits_(autograd::viewTraits(tensorIn(object))) {}

  bool matches(PyObject* object) const override {
    if (reinterpret_cast<PyObject*>(Py_TYPE(object)) != type_.get()) return false;
    const Tensor& tensor = tensorIn(object);
    if (!tensor.defined() || tensor.kind() != TensorKind::Dense) return false;
    const TensorImpl& impl = *tensor.impl();
    if (autograd::isLeaf(tensor) != leaf_) return false;
    return impl.dtype == dtype_ && tensor.device() == device_ &&
           layout_.matches(impl.sizes, impl.strides) &&
           autograd::requiresGradient(tensor) == requires_grad_ &&
           autograd::viewTraits(tensor) == traits_;
  }

  std::string text() const override {
    return fmt::format("a tensor of {} ({}){}{}", toString(dtype_), layout_.text(),
                       device_.isCpu() ? "" : " on " + device_.str(),
                       requires_grad_ ? " with a gradient" : "");
  }
  int64_t size(PyObject* tensor, int dim) const override { return tensorIn(tensor).size(dim); }

 private:
  Object type_;
  DType dtype_;
  Device device_;
  OpenLayout layout_;
  bool requires_grad_, leaf_;
  autograd::ViewTraits traits_;
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
    callees_[reinterpret_cast<PyObject*>(Py_TYPE(Object::checked(deviceObject(Device())).get()))] =
        Callee::kPure;
    size_type_ = Py_TYPE(Object::checked(sizeObject(DimVector{})).get());
    add("is_grad_enabled", Callee::kGradMode);
    add("_set_grad_enabled", Callee::kSetGradMode);
    for (const AutocastFunction& each : autocastFunctions()) add(each.name, Callee::kAutocast);
    add("get_default_dtype", Callee::kPure);
    for (const char* name : {"tensor", "as_tensor"}) add(name, Callee::kOperator);
    add("_is_tracing", Callee::kPure);
    add("_apply_function", Callee::kApply);
    add("_checkpoint", Callee::kCheckpoint);
    for (const char* name : {"size", "stride"}) addMethod(name, Callee::kOperator);
    addMethod("item", Callee::kItem);
    addMethod("tolist", Callee::kBreak);
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
  std::shared_ptr<const capture::TensorGuard> guardFor(
      PyObject* tensor, const capture::InputSizes& sizes) const override {
    const Tensor& t = tensorIn(tensor);
    if (!t.defined()) breakGraph("an empty tensor");
    if (t.kind() != TensorKind::Dense) breakGraph("a tensor that is not dense");
    if (!t.device().isCpu() && !t.device().isCuda()) {
      breakGraph(fmt::format("a tensor on {}", t.device().str()));
    }
    return std::make_shared<Guard>(tensor, sizes);
  }
  std::vector<int64_t> sizesOf(PyObject* tensor) const override {
    const Tensor& t = tensorIn(tensor);
    if (!t.defined()) breakGraph("an empty tensor");
    if (t.kind() != TensorKind::Dense) breakGraph("a tensor that is not dense");
    return {t.sizes().begin(), t.sizes().end()};
  }
  bool isParameter(PyObject* tensor) const override {
    // A class of Python's that is derived from the tensors' own.
    return Py_TYPE(tensor) != tensor_type;
  }
  Object library() const override {
    static const Object& kLibrary = forever(Object::checked(PyImport_ImportModule("wick.torch")));
    return kLibrary;
  }
  Object tensorOn(PyObject* array) const override {
    try {
      return Object::checked(tensorObject(tensorFromArray(array)));
    } catch (const PythonError&) {
      throw capture::PythonError();
    }
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
    return std::make_unique<FakeRecording>(*this);
  }
  int64_t state() const override {
    const Device device = defaultDevice();
    return static_cast<int64_t>(gradEnabled()) | static_cast<int64_t>(defaultDType()) << 1 |
           static_cast<int64_t>(static_cast<uint8_t>(device.type)) << 10 |
           static_cast<int64_t>(static_cast<uint8_t>(device.index)) << 24 |
           static_cast<int64_t>(autocastMode().any()) << 20;
  }
  bool gradMode() const override { return gradEnabled(); }
  void setGradMode(bool on) const override { setGradEnabled(on); }
  int64_t autocast() const override { return autocastMode().packed(); }
  void setAutocast(int64_t state) const override { setAutocastMode(AutocastMode::unpacked(state)); }
  std::shared_ptr<void> keepState() const override { return std::make_shared<KeptState>(); }

 private:
  struct KeptState {
    bool grad_mode = gradEnabled();
    AutocastMode autocast = autocastMode();
    GeneratorState generator = GeneratorState::of(defaultGenerator());
    ~KeptState() {
      setGradEnabled(grad_mode);
      setAutocastMode(autocast);
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

std::shared_ptr<const capture::World> ownTensors() {
  static const auto& world = *new std::shared_ptr<const capture::World>(new OwnTensors);
  return world;
}

}  // namespace wick::python
