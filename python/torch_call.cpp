#include "python/torch_call.h"

#include <algorithm>

#include "autograd/tape.h"
#include "core/grad_mode.h"
#include "python/interrupts.h"
#include "python/object.h"
#include "python/torch_library.h"
#include "python/torch_random.h"
#include "runtime/call.h"

namespace wick::python {
namespace {

using capture::Object;

class DefaultDTypeScope {
 public:
  explicit DefaultDTypeScope(DType dtype) : before_(defaultDType()) {
    if (dtype != before_) setDefaultDType(dtype);
  }
  ~DefaultDTypeScope() {
    if (defaultDType() != before_) setDefaultDType(before_);
  }

 private:
  const DType before_;
};

// The bytes that a tensor's elements lie in.
struct Range {
  uintptr_t begin = 0, end = 0;
  bool written = false;

  Range(const Tensor& t, bool is_written) : written(is_written) {
    if (t.numel() == 0) return;
    int64_t last = 0;
    for (int64_t d = 0; d < t.dim(); ++d) last += (t.size(d) - 1) * t.stride(d);
    begin = reinterpret_cast<uintptr_t>(t.rawData());
    end = begin + static_cast<uintptr_t>(last + 1) * t.itemSize();
  }
};

}  // namespace

std::shared_ptr<const TorchMemory> KeptMemory::of(const TorchLibrary& library, size_t input,
                                                  PyObject* tensor, const TorchLayout& layout) {
  {
    const Slot& slot = slots_[input];
    if (slot.weak && PyWeakref_GET_OBJECT(slot.weak.get()) == tensor &&
        slot.address == dataOf(tensor)) {
      return slot.memory;
    }
  }
  auto made = std::make_shared<const TorchMemory>(memoryOf(library, tensor, layout));
  Slot& slot = slots_[input];
  const bool again = slot.last == tensor;
  Slot next{tensor, {}, nullptr, nullptr};
  // A parameter is kept from its second call on; others come once.
  if (again) {
    next.weak = Object::checked(PyWeakref_NewRef(tensor, nullptr));
    next.address = dataOf(tensor);
    next.memory = made;
  }
  std::swap(slot, next);
  return made;
}

void KeptMemory::sweep() {
  for (Slot& slot : slots_) {
    if (slot.weak && PyWeakref_GET_OBJECT(slot.weak.get()) == Py_None) slot = {};
  }
}

TorchCallState::TorchCallState(const TorchRecord& record, std::span<const Object> inputs,
                               KeptMemory& kept)
    : record_(record), inputs_(inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TorchLayout layout = actualLayout(inputs[i].get(), record.inputs[i].layout);
    // The memory of one whose sizes may change is not kept.
    memories_.push_back(layout.open ? std::make_shared<const TorchMemory>(
                                          memoryOf(*record.library, inputs[i].get(), layout))
                                    : kept.of(*record.library, i, inputs[i].get(), layout));
    tensors_.push_back(memories_.back()->tensor(layout));
  }
  checkWritten();
}

void TorchCallState::run() {
  const GradModeGuard mode(record_.grad_mode);
  const DefaultDTypeScope dtype(record_.dtype);
  std::vector<IValue> values(tensors_.begin(), tensors_.end());
  std::optional<TorchRandom> random;
  if (record_.script.random) random.emplace(*record_.library);
  IValue result;
  {
    const RunOptions options = interruptibleRun();
    const std::shared_ptr<void> owner = record_.script.unit;
    try {
      const WithoutGil others;
      result = callFunction(*record_.script.function, std::move(values), {}, options, &owner);
    } catch (const RuntimeError&) {
      const auto& guesses = record_.script.guesses;
      if (guesses) guesses->learn(*record_.script.function->graph(), tensors_);
      throw;
    }
  }
  if (record_.script.guesses) record_.script.guesses->check(tensors_, result.elements());
  if (random) random->putBack();
  for (const IValue& each : result.elements()) results.push_back(each.toTensor());
  results.resize(results.size() - record_.script.num_hidden);
  std::vector<const TorchMemory*> written;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].impl()->storage->version() != 0) written.push_back(memories_[i].get());
  }
  noteWrites(*record_.library, written);
}

bool TorchCallState::isTouched() const {
  return std::ranges::any_of(tensors_,
                             [](const Tensor& t) { return t.impl()->storage->version() != 0; });
}

std::optional<size_t> TorchCallState::inputOf(const Tensor& result) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].impl()->storage.get() == result.impl()->storage.get()) return i;
  }
  return std::nullopt;
}

bool TorchCallState::isFresh(size_t index) const {
  return !inputOf(results[index]) && firstOn(index) == index;
}

size_t TorchCallState::firstOn(size_t index) const {
  const Storage* const memory = results[index].impl()->storage.get();
  size_t first = index;
  const auto rank = [&](size_t i) { return std::pair(needsGradient(i), results[i].numel()); };
  for (size_t i = 0; i < results.size(); ++i) {
    if (results[i].impl()->storage.get() != memory) continue;
    if (rank(i) > rank(first) || (i < first && rank(i) == rank(first))) first = i;
  }
  return first;
}

bool TorchCallState::needsGradient(size_t index) const {
  return autograd::requiresGradient(results[index]);
}

Object TorchCallState::viewOf(size_t index, PyObject* base) const {
  const Tensor& result = results[index];
  const std::optional<size_t> input = inputOf(result);
  const Tensor& of = input ? tensors_[*input] : results[firstOn(index)];
  if (of.dtype() != result.dtype()) {
    throw RuntimeError("a result shares memory with a tensor of another dtype");
  }
  int64_t offset = result.impl()->offset - of.impl()->offset;
  offset += input ? memory(*input).offset : offsetOf(base);
  PyObject* const from = input ? inputs_[*input].get() : base;
  if (record_.unrecorded[index]) {
    const TorchGradMode off(*record_.library, false);
    return torchView(from, result, offset);
  }
  if (needsGradient(index)) return torchView(from, result, offset);
  // A write to it that brings a gradient reaches its base.
  if (record_.plain_views[index]) {
    const TorchGradMode on(*record_.library, true);
    return torchView(from, result, offset);
  }
  const Object plain = input ? memory(*input).detached
                             : Object::checked(PyObject_CallMethod(base, "detach", nullptr));
  return torchView(plain.get(), result, offset);
}

void TorchCallState::checkWritten() const {
  std::vector<Range> ranges;
  bool any = false;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    any |= record_.inputs[i].written;
    ranges.emplace_back(tensors_[i], record_.inputs[i].written);
  }
  if (!any) return;
  std::erase_if(ranges, [](const Range& each) { return each.begin == each.end; });
  std::ranges::sort(ranges, {}, &Range::begin);
  // The end of all, and of those that are written.
  uintptr_t end = 0, written_end = 0;
  for (const Range& each : ranges) {
    if (each.begin < written_end || (each.written && each.begin < end)) {
      throw RuntimeError("an input that is written shares memory with another one");
    }
    end = std::max(end, each.end);
    if (each.written) written_end = std::max(written_end, each.end);
  }
}

TorchGradMode::TorchGradMode(const TorchLibrary& library, bool on)
    : library_(library),
      before_(TorchLibrary::call(library.grad_mode)),
      changed_((before_.get() == Py_True) != on) {
  if (changed_) TorchLibrary::call(library.set_grad_mode, on ? Py_True : Py_False);
}

TorchGradMode::~TorchGradMode() {
  if (!changed_) return;
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  const Object done = Object::own(
      PyObject_CallFunctionObjArgs(library_.set_grad_mode.get(), before_.get(), nullptr));
  PyErr_Restore(type, value, traceback);
}

Tensor withoutHistory(const Tensor& tensor) {
  return Tensor::fromStorage(tensor.impl()->storage, tensor.dtype(), tensor.sizes(),
                             tensor.strides(), tensor.impl()->offset);
}

}  // namespace wick::python
