#include "distributed/group.h"

#include <chrono>
#include <utility>

#include "core/budget.h"
#include "core/device_backend.h"
#include "core/error.h"

namespace wick::distributed {

namespace {

// How the numbers travel: their dtype, and how many of it.
struct Carried {
  DType dtype;
  int64_t count;
};

Carried carriedAs(const Tensor& t) {
  switch (t.dtype()) {
    case DType::ComplexFloat:
      return {DType::Float, 2 * t.numel()};
    case DType::ComplexDouble:
      return {DType::Double, 2 * t.numel()};
    default:
      return {t.dtype(), t.numel()};
  }
}

// The dtype in which a tensor's numbers are added.
DType addedIn(DType dtype) {
  switch (dtype) {
    case DType::Half:
    case DType::BFloat16:
      return DType::Float;
    case DType::Bool:
      return DType::Byte;
    case DType::Char:
    case DType::Short:
      return DType::Int;
    default:
      return dtype;
  }
}

bool isCarried(DType dtype) {
  switch (dtype) {
    case DType::Float:
    case DType::Double:
    case DType::ComplexFloat:
    case DType::ComplexDouble:
    case DType::Int:
    case DType::Long:
    case DType::Byte:
      return true;
    default:
      return false;
  }
}

template <class T>
void divide(void* numbers, int64_t count, int by) {
  T* at = static_cast<T*>(numbers);
  for (int64_t i = 0; i < count; ++i) at[i] /= static_cast<T>(by);
}

Reduction reductionNamed(const std::string& name) {
  if (name == "sum" || name == "mean") return Reduction::Sum;
  if (name == "max") return Reduction::Max;
  if (name == "min") return Reduction::Min;
  throwRuntimeError("all_reduce: expected sum, mean, max or min, got '{}'", name);
}

}  // namespace

Group::Group(std::function<std::unique_ptr<Transport>()> open)
    : thread_([this, open = std::move(open)] { serve(open); }) {
  std::exception_ptr error;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return opened_; });
    error = failed_;
  }
  if (!error) return;
  thread_.join();
  std::rethrow_exception(error);
}

Group::~Group() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Group::serve(const std::function<std::unique_ptr<Transport>()>& open) {
  std::unique_ptr<Transport> transport;
  std::exception_ptr error;
  try {
    transport = open();
  } catch (...) {
    error = std::current_exception();
  }
  std::unique_lock lock(mutex_);
  opened_ = true;
  failed_ = error;
  if (!error) {
    rank_ = transport->rank();
    size_ = transport->size();
  }
  changed_.notify_all();
  while (!error) {
    changed_.wait(lock, [&] { return closing_ || !jobs_.empty(); });
    if (jobs_.empty()) break;
    const std::shared_ptr<Job> job = std::move(jobs_.front());
    jobs_.pop_front();
    job->error = failed_;
    if (!failed_) {
      lock.unlock();
      try {
        job->work(*transport);
      } catch (...) {
        job->error = std::current_exception();
      }
      lock.lock();
      failed_ = job->error;
    }
    job->work = nullptr;
    job->done = true;
    changed_.notify_all();
  }
}

std::shared_ptr<Group::Job> Group::ask(std::function<void(Transport&)> work) {
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
  }
  changed_.notify_all();
  return job;
}

void Group::await(const Job& job) {
  constexpr std::chrono::milliseconds kLook(20);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLook, [&] { return job.done; })) {
    lock.unlock();
    checkBudget();
    lock.lock();
  }
  if (job.error) std::rethrow_exception(job.error);
}

namespace {

// Filled before main().
std::map<DeviceType, OpenDeviceReducer>& openers() {
  static auto& made = *new std::map<DeviceType, OpenDeviceReducer>;
  return made;
}

}  // namespace

void setDeviceReducer(DeviceType type, OpenDeviceReducer open) {
  openers()[type] = open;
}

std::shared_ptr<DeviceReducer> Group::reducerOf(Device device) {
  const std::pair<DeviceType, int> key(device.type, device.index);
  {
    const std::lock_guard lock(mutex_);
    const auto known = reducers_.find(key);
    if (known != reducers_.end()) return known->second;
  }
  const auto opener = openers().find(device.type);
  WICK_CHECK(opener != openers().end(),
             "all_reduce: this build of the engine reduces nothing on device {}", device.str());
  JoinDevices join = opener->second(device);
  // Kept by the job: whoever waits may be interrupted.
  auto made = std::make_shared<std::shared_ptr<DeviceReducer>>();
  await(*ask([made, join = std::move(join)](Transport& transport) { *made = join(transport); }));
  const std::lock_guard lock(mutex_);
  return reducers_.try_emplace(key, *made).first->second;
}

namespace {

// Where each tensor begins in the row that carries all, and at the end the row's length. Parts begin where
// loops over vectors like to.
std::vector<int64_t> placesInRow(std::span<const Tensor> bundle) {
  constexpr int64_t kAligned = 16;  // elements
  std::vector<int64_t> places{0};
  for (const Tensor& t : bundle) {
    int64_t end = 0;
    const bool fits =
        !__builtin_add_overflow(places.back(), t.numel(), &end) && end <= kMaxElements - kAligned;
    WICK_CHECK(fits, "all_reduce: the tensors have more than {} elements", kMaxElements);
    places.push_back(&t == &bundle.back() ? end : (end + kAligned - 1) / kAligned * kAligned);
  }
  return places;
}

void checkReducible(const Tensor& t, const Tensor& first, Reduction how, bool mean) {
  WICK_CHECK(
      t.defined() && t.kind() == TensorKind::Dense && (t.device().isCpu() || t.device().isCuda()),
      "all_reduce: expected a dense tensor on the CPU or a CUDA device, got {}", t.describe());
  WICK_CHECK(t.dtype() == first.dtype() && t.device() == first.device(),
             "all_reduce: expected tensors of one dtype and device, got {} and {}",
             first.describe(), t.describe());
  const DType dtype = addedIn(t.dtype());
  WICK_CHECK(isCarried(dtype), "all_reduce: {} cannot be reduced", toString(t.dtype()));
  WICK_CHECK(!mean || isFloating(dtype) || isComplex(dtype),
             "all_reduce: the mean of {} is not defined; expected floating-point numbers",
             toString(t.dtype()));
  WICK_CHECK(how == Reduction::Sum || !isComplex(dtype),
             "all_reduce: complex numbers have no order");
}

}  // namespace

int64_t Group::beginAllReduce(const Tensor& numbers, const std::string& reduction) {
  return beginAllReduce(std::span(&numbers, 1), reduction);
}

int64_t Group::beginAllReduce(std::span<const Tensor> bundle, const std::string& reduction) {
  const Reduction how = reductionNamed(reduction);
  const bool mean = reduction == "mean";
  WICK_CHECK(!bundle.empty(), "all_reduce: expected at least one tensor");
  for (const Tensor& t : bundle) checkReducible(t, bundle[0], how, mean);
  const DType dtype = addedIn(bundle[0].dtype());
  const Device device = bundle[0].device();
  const std::shared_ptr<DeviceReducer> reducer = device.isCpu() ? nullptr : reducerOf(device);
  const std::vector<int64_t> places = placesInRow(bundle);
  const Tensor copy = Tensor::empty({places.back()}, dtype, device);
  std::vector<Tensor> parts;
  for (size_t i = 0; i < bundle.size(); ++i) {
    const Tensor& t = bundle[i];
    parts.push_back(copy.asStrided(t.sizes(), contiguousStrides(t.sizes()), places[i]));
    parts.back().copyFrom(t.detach());
    // What lies between parts is reduced, too.
    const int64_t end = places[i] + t.numel();
    if (end < places[i + 1]) copy.asStrided({places[i + 1] - end}, {1}, end).fill(0);
  }
  Reducing reducing{nullptr, copy, std::move(parts), bundle[0].dtype(), reducer, nullptr};
  if (reducer) {
    reducing.work = reducer->begin(copy, how, mean);
    return keep(std::move(reducing));
  }
  reducing.job = ask([copy, how, by = mean ? size_ : 1](Transport& transport) {
    const Carried carried = carriedAs(copy);
    if (carried.count > 0) {
      transport.allReduce(copy.rawData(), carried.count, carried.dtype, how);
    }
    if (by == 1) return;
    if (carried.dtype == DType::Float) {
      divide<float>(copy.rawData(), carried.count, by);
    } else {
      divide<double>(copy.rawData(), carried.count, by);
    }
  });
  return keep(std::move(reducing));
}

int64_t Group::keep(Reducing reducing) {
  const std::lock_guard lock(mutex_);
  const int64_t ticket = next_ticket_++;
  reducing_.emplace(ticket, std::move(reducing));
  return ticket;
}

Tensor Group::endAllReduce(int64_t ticket) {
  return endBundle(ticket)[0];
}

std::vector<Tensor> Group::endBundle(int64_t ticket) {
  std::shared_ptr<Job> job;
  {
    const std::lock_guard lock(mutex_);
    const auto at = reducing_.find(ticket);
    WICK_CHECK(at != reducing_.end(), "all_reduce: nothing is under way with the number {}",
               ticket);
    job = at->second.job;
  }
  if (job) await(*job);
  std::unique_lock lock(mutex_);
  const auto at = reducing_.find(ticket);
  WICK_CHECK(at != reducing_.end(), "all_reduce: nothing is under way with the number {}", ticket);
  Reducing done = std::move(at->second);
  reducing_.erase(at);
  lock.unlock();
  if (done.work) done.reducer->end(*done.work);
  if (done.numbers.dtype() == done.dtype) return std::move(done.parts);
  const Tensor converted = done.numbers.to(done.dtype);
  for (Tensor& part : done.parts) {
    part = converted.asStrided(part.sizes(), part.strides(), part.offset());
  }
  return std::move(done.parts);
}

void Group::broadcast(const Tensor& tensor, int root) {
  WICK_CHECK(root >= 0 && root < size_, "broadcast: there is no process {} among {}", root, size_);
  WICK_CHECK(tensor.defined() && tensor.isStrided(), "broadcast: expected a dense tensor, got {}",
             tensor.describe());
  const Tensor here = tensor.device().isCpu() ? tensor.detach() : moveTo(tensor.detach(), Device());
  const Tensor copy = here.clone(MemoryFormat::Contiguous);
  const size_t bytes = static_cast<size_t>(copy.numel()) * copy.itemSize();
  const auto job = ask([copy, bytes, root](Transport& transport) {
    if (bytes > 0) transport.broadcast(copy.rawData(), bytes, root);
  });
  await(*job);
  tensor.detach().copyFrom(copy);
}

void Group::barrier() {
  await(*ask([](Transport& transport) { transport.barrier(); }));
}

namespace {

struct Current {
  std::mutex mutex;
  std::shared_ptr<Group> group;
};
Current& current() {
  static Current& made = *new Current;  // threads may outlive main
  return made;
}

}  // namespace

std::shared_ptr<Group> currentGroup() {
  const std::lock_guard lock(current().mutex);
  return current().group;
}
void setCurrentGroup(std::shared_ptr<Group> group) {
  const std::lock_guard lock(current().mutex);
  current().group.swap(group);
}
std::shared_ptr<Group> theGroup() {
  std::shared_ptr<Group> group = currentGroup();
  WICK_CHECK(group,
             "this process belongs to no group: call wick::distributed::init(), in Python "
             "distributed.init()");
  return group;
}

}  // namespace wick::distributed
