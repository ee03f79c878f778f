#include "lazy/immediate.h"

#include <unordered_map>

#include "core/device_backend.h"
#include "lazy/base.h"
#include "lazy/counting.h"
#include "lazy/device_below.h"
#include "lazy/places.h"
#include "lazy/program.h"
#include "lazy/recorder.h"

namespace wick::lazy {

namespace {

// Data belong to several tensors, and nobody writes to them. Memory that the call writes to is
// copied once for all of its tensors, which share the copy as they share memory.
class Call {
 public:
  Call(CallFrame& frame, uint64_t written) : frame_(frame), written_(written) {}

  void run() {
    const Operator& op = *frame_.op;
    const std::vector<IValue> args(frame_.args, frame_.args + frame_.num_args);
    for (size_t i = 0; i < args.size(); ++i) {
      if (isWritten(i)) noteWritten(args[i]);
    }
    for (const IValue& v : args) reals_.push_back(realOf(v));
    std::vector<IValue> given = reals_, results(frame_.num_results);
    countImmediate(op.schema().name(), placeOfCall());
    {
      const ComputeScope scope;
      op.callKernel(given.data(), given.size(), results.data(), results.size());
    }
    for (size_t i = 0; i < args.size(); ++i) {
      if (isWritten(i)) giveBack(args[i], reals_[i]);
    }
    for (size_t r = 0; r < results.size(); ++r) frame_.results[r] = lazyOf(results[r]);
  }

 private:
  bool isWritten(size_t i) const { return i < 64 && (written_ >> i & 1) != 0; }

  void noteWritten(const IValue& v) {
    if (v.isTensor() && isLazy(v.toTensor())) copies_[v.toTensor().storage().get()];
    if (!isTensorList(v)) return;
    for (const IValue& e : v.elements()) noteWritten(e);
  }

  IValue realOf(const IValue& v) {
    if (v.isTensor()) return isLazy(v.toTensor()) ? IValue(realOf(v.toTensor())) : v;
    if (v.isDevice()) return v.toDevice().type == kLazy ? IValue(deviceBelow()) : v;
    if (!isTensorList(v)) return v;
    std::vector<IValue> elements;
    for (const IValue& e : v.elements()) elements.push_back(realOf(e));
    return IValue(makeList(v.toList().element_type, std::move(elements)));
  }
  Tensor realOf(const Tensor& t) {
    Tensor& known = known_[t.impl()];
    if (known.defined()) return known;
    known = Base::of(t).fetch(t, currentCause());
    const auto copy = copies_.find(t.storage().get());
    if (copy == copies_.end()) return known;
    if (known.numel() == 0) {
      // A call that enlarges it finds the memory of those that it shares it with.
      if (copy->second) {
        known = Tensor::fromStorage(copy->second, t.dtype(), t.sizes(), t.strides(), t.offset());
      }
      return known;
    }
    if (!copy->second) {
      const Storage& memory = *known.storage();
      const Device device = memory.device();
      copy->second = Storage::allocate(memory.bytes(), device);
      if (memory.bytes() > 0) {
        deviceBackend(device.type)
            .copyBytes(copy->second->data(), device, memory.data(), device, memory.bytes());
      }
    }
    known = Tensor::fromStorage(copy->second, known.dtype(), known.sizes(), known.strides(),
                                known.offset());
    return known;
  }

  void giveBack(const IValue& to, const IValue& from) {
    if (to.isTensor()) {
      const Tensor t = to.toTensor(), real = from.toTensor();
      if (!isLazy(t)) return;
      if (!std::ranges::equal(t.sizes(), real.sizes())) t.resize(real.sizes());
      const auto copy = copies_.find(t.storage().get());
      const bool kept = copy != copies_.end() && copy->second == real.storage();
      if (kept) return Base::of(t).adopt(copy->second);
      Base::of(t).writeData(t, real);
    } else if (isTensorList(to)) {
      for (size_t i = 0; i < to.elements().size(); ++i) {
        giveBack(to.elements()[i], from.elements()[i]);
      }
    }
  }

  IValue lazyOf(const IValue& v) const {
    if (v.isTensor()) {
      const Tensor t = v.toTensor();
      for (size_t i = 0; i < reals_.size(); ++i) {
        if (reals_[i].isTensor() && reals_[i].toTensor().isSame(t)) return frame_.args[i];
      }
      return IValue(wrap(t));
    }
    if (!v.isTuple() && !isTensorList(v)) return v;
    std::vector<IValue> elements;
    for (const IValue& e : v.elements()) elements.push_back(lazyOf(e));
    return v.isTuple() ? IValue(makeTuple(std::move(elements), v.toTuple().named))
                       : IValue(makeList(v.toList().element_type, std::move(elements)));
  }
  // Results of other kinds, and on other devices, stay what they are.
  static Tensor wrap(const Tensor& data) {
    if (data.kind() != TensorKind::Dense || data.device() != deviceBelow()) return data;
    Geometry layout = Geometry::of(data);
    layout.offset = 0;
    if (!layout.isDense()) return wrap(data.clone(MemoryFormat::Contiguous));
    const Tensor made = makeLazy(layout);
    Base::of(made).writeData(made, data);
    return made;
  }

  CallFrame& frame_;
  const uint64_t written_;
  std::vector<IValue> reals_;
  std::unordered_map<const TensorImpl*, Tensor> known_;
  std::unordered_map<const Storage*, Ref<Storage>> copies_;
};

}  // namespace

void runImmediately(CallFrame& frame, uint64_t written) {
  Call(frame, written).run();
}

}  // namespace wick::lazy
