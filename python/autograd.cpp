#include <fmt/format.h>

#include "autograd/checkpoint.h"
#include "autograd/custom_function.h"
#include "autograd/engine.h"
#include "autograd/hooks.h"
#include "python/fake_recording.h"
#include "python/interrupts.h"
#include "python/module.h"
#include "python/pybind.h"
#include "python/tracing.h"

namespace wick::python {
namespace {

std::vector<Tensor> tensorsOf(const py::handle& sequence, const char* what) {
  std::vector<Tensor> out;
  for (const py::handle& each : sequence) out.push_back(givenTensor(each, what));
  return out;
}

py::tuple tupleOf(const std::vector<Tensor>& tensors) {
  py::tuple out(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) out[i] = given(tensorObject(tensors[i]));
  return out;
}

void refuseWhileTracing(const char* what) {
  noteInFakes(what);
  if (tracing::Tracer::active()) {
    raise(PyExc_RuntimeError, std::string(what) + ": gradients cannot be recorded in a trace yet");
  }
}

void runBackward(const py::object& outputs, const py::object& gradients, bool retain_graph,
                 bool create_graph) {
  refuseWhileTracing("backward");
  const std::vector<Tensor> out = tensorsOf(outputs, "backward");
  const std::vector<Tensor> grads = tensorsOf(gradients, "backward");
  noteLazyPlace();
  const Interruptible interruptible;
  const WithoutGil others;
  autograd::backward(out, grads, {retain_graph, create_graph});
}

py::tuple runGrad(const py::object& outputs, const py::object& inputs, const py::object& gradients,
                  bool retain_graph, bool create_graph, bool allow_unused) {
  refuseWhileTracing("grad");
  const std::vector<Tensor> out = tensorsOf(outputs, "grad"), in = tensorsOf(inputs, "grad");
  const std::vector<Tensor> grads = tensorsOf(gradients, "grad");
  noteLazyPlace();
  const Interruptible interruptible;
  return tupleOf(withoutGil([&] {
    return autograd::gradientsOf(out, in, grads, {retain_graph, create_graph}, allow_unused);
  }));
}

std::shared_ptr<SharedObject> callable(const py::object& hook, const char* what) {
  if (PyCallable_Check(hook.ptr()) == 0) {
    raise(PyExc_TypeError,
          fmt::format("{}: expected a function, got {}", what, Py_TYPE(hook.ptr())->tp_name));
  }
  return std::make_shared<SharedObject>(Owned::share(hook.ptr()));
}

// Calls a hook of Python's; an exception ends the walk.
Tensor callHook(const SharedObject& hook, const Tensor& gradient) {
  const WithGil gil;
  if (!gil.usable()) return Tensor();
  try {
    const Owned argument(tensorObject(gradient));
    const Owned result = checked(PyObject_CallOneArg(hook.get(), argument.get()));
    return result.get() == Py_None ? Tensor() : tensorOf(result.get(), "hook");
  } catch (const PythonError&) {
    throwFromPython();
  }
}

// ---- functions with derivatives of their own ----

// What ctx is in Python: attributes are kept in `fields`.
struct Context {
  autograd::FunctionContext* context = nullptr;
  py::dict fields;

  autograd::FunctionContext& known() const {
    if (!context) raise(PyExc_RuntimeError, "ctx is only valid within forward and backward");
    return *context;
  }
};

// A class of Python with forward and backward.
class PythonFunction : public autograd::CustomFunction {
 public:
  PythonFunction(py::handle type, std::string name)
      : type_(Owned::share(type.ptr())), name_(std::move(name) + "Backward") {
    context_ = std::make_unique<SharedObject>(Owned(py::cast(new Context).release().ptr()));
  }
  std::string name() const override { return name_; }

  // The arguments as Python has them; tensors among them are the inputs.
  void setArguments(const py::args& args) {
    arguments_ = std::make_unique<SharedObject>(Owned::share(args.ptr()));
  }
  bool returnedOne() const { return returned_one_; }

  std::vector<Tensor> forward(autograd::FunctionContext& ctx, const std::vector<IValue>&) override {
    return within(ctx, [&](py::object& python_context) {
      const auto given_args = py::reinterpret_borrow<py::tuple>(arguments_->get());
      const py::object result =
          py::handle(type_.get()).attr("forward")(python_context, *given_args);
      num_inputs_ = given_args.size();
      arguments_ = nullptr;
      return results(result, returned_one_);
    });
  }

  std::vector<Tensor> backward(autograd::FunctionContext& ctx,
                               const std::vector<Tensor>& grads) override {
    return within(ctx, [&](py::object& python_context) {
      const py::tuple arguments = tupleOf(grads);
      const py::object result =
          py::handle(type_.get()).attr("backward")(python_context, *arguments);
      bool one = false;
      std::vector<Tensor> out = results(result, one);
      while (out.size() > num_inputs_ && !out.back().defined()) out.pop_back();
      return out;
    });
  }

 private:
  template <class F>
  std::vector<Tensor> within(autograd::FunctionContext& ctx, F&& f) {
    const WithGil gil;
    if (!gil.usable()) raise(PyExc_RuntimeError, "the interpreter has ended");
    try {
      auto python_context = py::reinterpret_borrow<py::object>(context_->get());
      auto& context = python_context.cast<Context&>();
      // Whoever keeps the object must not reach the context later, in whichever way this ends.
      struct Valid {
        Valid(Context& of, autograd::FunctionContext& now)
            : of(of), before(std::exchange(of.context, &now)) {}
        ~Valid() { of.context = before; }
        Context& of;
        autograd::FunctionContext* const before;
      } const valid(context, ctx);
      return f(python_context);
    } catch (py::error_already_set& error) {
      error.restore();
      throwFromPython();
    } catch (const PythonError&) {
      throwFromPython();
    }
  }

  static std::vector<Tensor> results(const py::object& result, bool& one) {
    one = !py::isinstance<py::tuple>(result) && !py::isinstance<py::list>(result);
    if (one) return {givenTensor(result, "a result")};
    return tensorsOf(result, "a result");
  }

  SharedObject type_;
  std::string name_;
  std::unique_ptr<SharedObject> context_;
  std::unique_ptr<SharedObject> arguments_;
  size_t num_inputs_ = 0;
  bool returned_one_ = false;
};

py::object applyFunction(const py::handle& type, const py::args& args) {
  noteInFakes("a function with a derivative of its own");
  const auto function =
      std::make_shared<PythonFunction>(type, type.attr("__name__").cast<std::string>());
  function->setArguments(args);
  std::vector<IValue> inputs;
  for (const py::handle& arg : args) {
    // What is no value has no gradient either.
    IValue value;
    if (!tryValue(arg.ptr(), value)) value = IValue();
    inputs.push_back(std::move(value));
  }
  const std::vector<Tensor> results =
      withoutGil([&] { return autograd::applyCustom(function, std::move(inputs)); });
  if (function->returnedOne()) return given(tensorObject(results[0]));
  return tupleOf(results);
}

// What stays of the arguments for the second run is no more than the values.
py::object runCheckpoint(const py::object& function, bool preserve_random_state,
                         const py::args& args) {
  noteInFakes("a checkpoint");
  const auto held = std::make_shared<SharedObject>(Owned::share(function.ptr()));
  const auto call = [held](const std::vector<IValue>& values) {
    return callPython(held->get(), values);
  };
  std::vector<IValue> inputs = valuesOf(args);
  return pythonOf(withoutGil([&] {
    return autograd::checkpointValues(call, std::move(inputs), {preserve_random_state});
  }));
}

void addFunctions(py::module_& m) {
  py::class_<Context> context(m, "FunctionContext", py::dynamic_attr());
  forbidNew(context);
  context
      .def("save_for_backward",
           [](Context& self, const py::args& args) {
             self.known().saveForBackward(tensorsOf(args, "save_for_backward"));
           })
      .def("mark_dirty",
           [](Context& self, const py::args& args) {
             self.known().markDirty(tensorsOf(args, "mark_dirty"));
           })
      .def("mark_non_differentiable",
           [](Context& self, const py::args& args) {
             self.known().markNonDifferentiable(tensorsOf(args, "mark_non_differentiable"));
           })
      .def("set_materialize_grads",
           [](Context& self, bool on) { self.known().setMaterializeGrads(on); })
      .def_property_readonly("saved_tensors",
                             [](Context& self) { return tupleOf(self.known().savedTensors()); })
      .def("_needs", [](Context& self, size_t i) { return self.known().needsInputGrad(i); });
  m.def("_apply_function", applyFunction);
}

}  // namespace

void addAutograd(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  py::class_<autograd::HookHandle> handle(m, "HookHandle",
                                          "What a registration can be taken back with.");
  forbidNew(handle);
  handle.def("remove", [](autograd::HookHandle& self) { self.remove(); });
  m.def("_backward", runBackward);
  m.def("_grad", runGrad);
  m.def("_register_hook", [](const py::object& tensor, const py::object& hook) {
    noteInFakes("a hook of a tensor");
    const auto held = callable(hook, "register_hook");
    return autograd::registerHook(
        tensorOf(tensor.ptr(), "register_hook"),
        [held](const Tensor& gradient) { return callHook(*held, gradient); });
  });
  m.def("_register_post_accumulate_hook", [](const py::object& tensor, const py::object& hook) {
    const auto held = callable(hook, "register_post_accumulate_grad_hook");
    const Tensor leaf = tensorOf(tensor.ptr(), "register_post_accumulate_grad_hook");
    return autograd::registerPostAccumulateHook(leaf, [held](Tensor& gradient) {
      const Tensor other = callHook(*held, gradient);
      if (other.defined()) gradient = other;
    });
  });
  m.def("_checkpoint", runCheckpoint);
  addFunctions(m);
}

}  // namespace wick::python
