#include "runtime/ops/program_observer.h"

#include <atomic>
#include <mutex>
#include <optional>

#include "core/function_schema.h"
#include "runtime/ops/common.h"

namespace wick {
namespace {

std::atomic<bool> observed = false;

struct Current {
  std::mutex mutex;
  std::shared_ptr<ProgramObserver> observer;
};

// Never destroyed: threads of the pool may report while the process ends.
Current& current() {
  static Current* const instance = new Current;
  return *instance;
}

std::shared_ptr<ProgramObserver> observer() {
  if (!observed.load(std::memory_order_acquire)) return nullptr;
  std::lock_guard lock(current().mutex);
  return current().observer;
}

}  // namespace

std::shared_ptr<ProgramObserver> setProgramObserver(std::shared_ptr<ProgramObserver> next) {
  std::lock_guard lock(current().mutex);
  observed.store(next != nullptr, std::memory_order_release);
  current().observer.swap(next);
  return next;
}

namespace ops {
namespace {

constexpr const char* kHandleClass = "__torch__.torch.classes.profiler._RecordFunction";

std::atomic<int64_t> last_range = 0;

struct Range : RefCounted {
  explicit Range(int64_t id) : id(id) {}
  const int64_t id;
};

int64_t begin(const std::string& name, const std::optional<std::string>& arguments) {
  const int64_t id = last_range.fetch_add(1, std::memory_order_relaxed) + 1;
  if (auto o = observer()) o->beginRange(id, name, arguments ? &*arguments : nullptr);
  return id;
}

void end(int64_t id) {
  if (auto o = observer()) o->endRange(id);
}

// Archives up to PyTorch 1.13 carry the handle in a tensor, later ones in an object.
int64_t idOf(const char* op, const Tensor& handle) {
  WICK_CHECK(handle.dtype() == DType::Long && handle.numel() == 1 && handle.device().isCpu(),
             "{}: expected the handle that _record_function_enter returned, got {}", op,
             handle.describe());
  const int64_t id = handle.item<int64_t>();
  WICK_CHECK(id > 0 && id <= last_range.load(std::memory_order_relaxed),
             "{}: expected the handle that _record_function_enter returned, got {}", op, id);
  return id;
}
int64_t idOf(const IValue& handle) {
  const Object& object = handle.toObject();
  WICK_CHECK(object.slot(0).isCapsule(), "_record_function_exit: this handle was never entered");
  return static_cast<Range&>(object.slot(0).toCapsule()).id;
}

Tensor enter(const std::string& name, const std::optional<std::string>& arguments) {
  return numberTensor(Scalar(begin(name, arguments)), DType::Long);
}
IValue enterNew(const std::string& name, const std::optional<std::string>& arguments) {
  static const ClassTypePtr type = parseSchemaType(kHandleClass)->as<ClassType>()->shared();
  auto handle = makeRef<Object>(type, nullptr);
  handle->setSlot(0, IValue::capsule(makeRef<Range>(begin(name, arguments))));
  return IValue(ObjectRef(std::move(handle)));
}
void leave(const Tensor& handle) {
  end(idOf("_record_function_exit", handle));
}
void leaveNew(const IValue& handle) {
  end(idOf(handle));
}

// The range lasts until the future is done; what waits for the result may run before or after that
// is reported.
IValue endWhenDone(int64_t id, const IValue& future) {
  future.toFuture().whenDone([id] { end(id); });
  return future;
}
IValue leaveWhenDone(const Tensor& handle, const IValue& future) {
  return endWhenDone(idOf("_call_end_callbacks_on_jit_fut", handle), future);
}
IValue leaveNewWhenDone(const IValue& handle, const IValue& future) {
  return endWhenDone(idOf(handle), future);
}

void addStatistic(const std::string& key, int64_t value) {
  if (auto o = observer()) o->addToStatistic(key, value);
}

const OperatorRecord kProgramObserverRecords[] = {
    {"profiler::_record_function_enter(str name, str? args=None) -> Tensor", WICK_KERNEL(enter),
     kSideEffects},
    {"profiler::_record_function_enter_new(str name, str? args=None) -> "
     "__torch__.torch.classes.profiler._RecordFunction",
     WICK_KERNEL(enterNew), kSideEffects},
    {"profiler::_record_function_exit(Tensor _0) -> ()", WICK_KERNEL(leave), kSideEffects},
    {"profiler::_record_function_exit._RecordFunction("
     "__torch__.torch.classes.profiler._RecordFunction _0) -> ()",
     WICK_KERNEL(leaveNew), kSideEffects},
    {"profiler::_call_end_callbacks_on_jit_fut(Tensor x, Future(t) y) -> Future(t)",
     WICK_KERNEL(leaveWhenDone), kSideEffects},
    {"profiler::_call_end_callbacks_on_jit_fut._RecordFunction("
     "__torch__.torch.classes.profiler._RecordFunction x, Future(t) y) -> Future(t)",
     WICK_KERNEL(leaveNewWhenDone), kSideEffects},
    {"prim::AddStatValue(str key, int val) -> ()", WICK_KERNEL(addStatistic), kSideEffects},
};
const RegisterOperators kProgramObserverRegistered(kProgramObserverRecords);

}  // namespace
}  // namespace ops
}  // namespace wick
