#include "distributed/mpi.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/error.h"
#include "distributed/init.h"
#include "distributed/messages/mpi_library.h"

namespace wick::distributed {

namespace {

using Handle = MpiHandle;
void* const kInPlace = reinterpret_cast<void*>(1);  // MPI_IN_PLACE
// Counts are ints.
constexpr int64_t kMaxCount = int64_t{1} << 30;

struct Functions : MpiBasics {
  int (*iallreduce)(const void*, void*, int, Handle, Handle, Handle, Handle*);
  int (*ibcast)(void*, int, Handle, int, Handle, Handle*);
  int (*ibarrier)(Handle, Handle*);
  Handle float32, float64, int32, int64;
  Handle sum, max, min;

  Functions() {
    findMpi("MPI_Iallreduce", iallreduce);
    findMpi("MPI_Ibcast", ibcast);
    findMpi("MPI_Ibarrier", ibarrier);
    findMpi("ompi_mpi_float", float32);
    findMpi("ompi_mpi_double", float64);
    findMpi("ompi_mpi_int32_t", int32);
    findMpi("ompi_mpi_int64_t", int64);
    findMpi("ompi_mpi_op_sum", sum);
    findMpi("ompi_mpi_op_max", max);
    findMpi("ompi_mpi_op_min", min);
  }
};

class MpiTransport : public Transport {
 public:
  MpiTransport() { mpi_.begin(rank_, size_); }
  ~MpiTransport() override { mpi_.finalize(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }

  void allReduce(void* numbers, int64_t count, DType dtype, Reduction reduction) override {
    const Handle type = typeOf(dtype);
    const Handle op = reduction == Reduction::Sum   ? mpi_.sum
                      : reduction == Reduction::Max ? mpi_.max
                                                    : mpi_.min;
    inParts(numbers, count, itemSize(dtype), [&](void* part, int n, Handle* request) {
      return mpi_.iallreduce(kInPlace, part, n, type, op, mpi_.world, request);
    });
  }
  void broadcast(void* bytes, size_t count, int root) override {
    inParts(bytes, static_cast<int64_t>(count), 1, [&](void* part, int n, Handle* request) {
      return mpi_.ibcast(part, n, mpi_.uint8, root, mpi_.world, request);
    });
  }
  void barrier() override {
    Handle request = nullptr;
    check(mpi_.ibarrier(mpi_.world, &request), "MPI_Ibarrier");
    await(request);
  }

 private:
  void check(int status, const char* call) const { mpi_.check(status, call); }
  Handle typeOf(DType dtype) const {
    switch (dtype) {
      case DType::Float:
        return mpi_.float32;
      case DType::Double:
        return mpi_.float64;
      case DType::Int:
        return mpi_.int32;
      case DType::Long:
        return mpi_.int64;
      case DType::Byte:
        return mpi_.uint8;
      default:
        throwRuntimeError("MPI: {} is not carried", toString(dtype));
    }
  }
  template <class F>
  void inParts(void* numbers, int64_t count, size_t size, F begin) {
    for (int64_t at = 0; at < count; at += kMaxCount) {
      Handle request = nullptr;
      const auto n = static_cast<int>(std::min(kMaxCount, count - at));
      void* const part = static_cast<char*>(numbers) + static_cast<size_t>(at) * size;
      check(begin(part, n, &request), "a collective call");
      await(request);
    }
  }
  // Looks often at first. Who waits long leaves the processor to those who compute.
  void await(Handle& request) {
    for (int looks = 0;; ++looks) {
      int done = 0;
      check(mpi_.test(&request, &done, nullptr), "MPI_Test");
      if (done) return;
      if (looks < 200) continue;
      if (looks < 1000) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
      }
    }
  }

  const Functions mpi_;
  int rank_ = 0, size_ = 1;
};

}  // namespace

std::shared_ptr<Group> initMpi() {
  static std::mutex& mutex = *new std::mutex;
  static bool begun = false;
  const std::lock_guard lock(mutex);
  if (begun) {
    std::shared_ptr<Group> group = currentGroup();
    WICK_CHECK(group, "MPI: the group was shut down; a process can belong to one only once");
    return group;
  }
  auto group = std::make_shared<Group>([] { return std::make_unique<MpiTransport>(); });
  begun = true;
  // MPI must be told before the process ends, by the thread that began.
  std::atexit(shutdown);
  setCurrentGroup(group);
  return group;
}

}  // namespace wick::distributed
