#include "python/torch_tape.h"

#include "autograd/engine.h"
#include "core/grad_mode.h"
#include "python/interrupts.h"
#include "python/object.h"
#include "python/torch_library.h"

namespace wick::python {
namespace {

using capture::Object;

Object detachedOf(const Object& tensor) {
  return Object::checked(PyObject_CallMethod(tensor.get(), "detach", nullptr));
}

}  // namespace

TorchTape::TorchTape(const TorchCallState& call, const TorchComponent& component,
                     const std::vector<size_t>& results, const std::vector<Object>& given)
    : library_(*call.record().library), saves_(component.saves) {
  for (const size_t i : component.leaves)
    leaves_.push_back(autograd::gradientEdge(call.tensors()[i]));
  for (size_t i = 0; i < call.tensors().size(); ++i) {
    const Tensor& input = call.tensors()[i];
    // Memory that nothing else holds was not saved.
    if (input.impl()->useCount() == 1 && input.impl()->storage->useCount() == 1) continue;
    watch(call.memory(i).detached, input);
  }
  for (size_t i = 0; i < results.size(); ++i) {
    results_.push_back(call.results[results[i]]);
    watch(detachedOf(given[i]), results_.back());
  }
}

Object TorchTape::backward(PyObject* gradients) {
  std::vector<Tensor> found = walk(gradients, false).gradients;
  Object all = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(found.size())));
  for (size_t i = 0; i < found.size(); ++i) {
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i),
                     torchGradient(std::move(found[i])).leak());
  }
  return all;
}
std::shared_ptr<TorchTape> TorchTape::recordedBackward(PyObject* gradients, Object& all,
                                                       std::vector<bool>& differentiable) {
  Walk done = walk(gradients, true);
  std::shared_ptr<TorchTape> tape(new TorchTape(library_));
  tape->leaves_ = leaves_;
  tape->watched_ = watched_;
  for (const Tensor& each : done.given) {
    tape->leaves_.push_back(autograd::gradientEdge(each));
  }
  for (size_t i = 0; i < done.given.size(); ++i) {
    tape->watch(done.memories[i].detached, done.given[i]);
  }
  all = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(done.gradients.size())));
  for (size_t i = 0; i < done.gradients.size(); ++i) {
    Tensor& gradient = done.gradients[i];
    const bool known = gradient.defined() && autograd::requiresGradient(gradient);
    differentiable.push_back(known);
    Tensor shown = gradient.defined() ? withoutHistory(gradient) : gradient;
    tape->results_.push_back(known ? gradient : Tensor());
    gradient = Tensor();
    // The tape holds the memory too, so that it is never PyTorch's alone.
    Object made = known ? torchTensor(library_, shown.clone()) : torchGradient(std::move(shown));
    PyTuple_SET_ITEM(all.get(), static_cast<Py_ssize_t>(i), made.leak());
  }
  return tape;
}

void TorchTape::watch(Object detached, const Tensor& own) {
  const int64_t version = versionOf(detached.get());
  watched_.push_back({std::move(detached), own.impl()->storage, version});
}

// Tells Wick's tape of writes that PyTorch counted since the forward pass. It raises where it needs
// the old contents.
void TorchTape::noteForeignWrites() {
  for (Watched& each : watched_) {
    const int64_t now = versionOf(each.detached.get());
    if (now != each.version) each.own->bumpVersion();
    each.version = now;
  }
}

TorchTape::Walk TorchTape::walk(PyObject* gradients, bool recorded) {
  noteForeignWrites();
  Walk done;
  std::vector<Tensor> outputs;
  for (size_t i = 0; i < results_.size(); ++i) {
    PyObject* const gradient = PyTuple_GET_ITEM(gradients, static_cast<Py_ssize_t>(i));
    if (gradient == Py_None || !results_[i].defined()) continue;
    outputs.push_back(results_[i]);
    const TorchLayout layout = layoutOf(library_, gradient);
    done.memories.push_back(memoryOf(library_, gradient, layout));
    done.given.push_back(done.memories.back().tensor(layout));
    if (recorded) done.given.back().setRequiresGrad(true);
  }
  done.gradients.resize(leaves_.size());
  if (outputs.empty()) return done;
  const Interruptible interruptible;
  const WithoutGil others;
  const GradModeGuard mode(recorded);
  done.gradients = autograd::gradientsAt(leaves_, outputs, done.given,
                                         {.retain_graph = true, .create_graph = recorded});
  return done;
}

Object TorchTape::torchGradient(Tensor gradient) const {
  if (!gradient.defined()) return Object::share(Py_None);
  // PyTorch may keep what it gets as the gradient of a leaf, and add to it.
  const Storage& memory = *gradient.impl()->storage;
  const bool shared = memory.useCount() > 1 || !memory.ownsMemory();
  return torchTensor(library_, shared ? gradient.clone() : gradient);
}

std::shared_ptr<TorchTape> TorchRun::forward(size_t component, std::vector<Object>& given) {
  const TorchRecord& record = call_->record();
  if (call_->results.empty()) {
    for (size_t i = 0; i < record.inputs.size(); ++i) {
      if (record.inputs[i].requires_grad) call_->tensors()[i].setRequiresGrad(true);
    }
    call_->run();
  }
  const TorchComponent& part = record.components[component];
  std::vector<size_t> known;
  for (const size_t i : part.outputs) {
    if (!call_->needsGradient(i) || !call_->isFresh(i)) continue;
    known.push_back(i);
    given.push_back(torchTensor(*record.library, withoutHistory(call_->results[i])));
  }
  results.insert(results.end(), known.begin(), known.end());
  return std::make_shared<TorchTape>(*call_, part, known, given);
}

}  // namespace wick::python
