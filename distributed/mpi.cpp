// Open MPI by its symbols, so that building needs no headers of it. Its handles are addresses of
// objects with known names (ompi_mpi_comm_world), as its own header has them.
#include "distributed/mpi.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "core/error.h"
#include "distributed/init.h"

namespace wick::distributed {

namespace {

using Handle = void*;
constexpr int kFunneled = 1;                        // MPI_THREAD_FUNNELED: one thread calls
constexpr int kSuccess = 0;                         // MPI_SUCCESS
constexpr size_t kMaxErrorText = 256;               // MPI_MAX_ERROR_STRING
void* const kInPlace = reinterpret_cast<void*>(1);  // MPI_IN_PLACE
// Counts are ints.
constexpr int64_t kMaxCount = int64_t{1} << 30;

struct Functions {
  int (*init_thread)(int*, char***, int, int*);
  int (*finalize)();
  int (*comm_rank)(Handle, int*);
  int (*comm_size)(Handle, int*);
  int (*comm_set_errhandler)(Handle, Handle);
  int (*error_string)(int, char*, int*);
  int (*iallreduce)(const void*, void*, int, Handle, Handle, Handle, Handle*);
  int (*ibcast)(void*, int, Handle, int, Handle, Handle*);
  int (*ibarrier)(Handle, Handle*);
  int (*test)(Handle*, int*, void*);
  Handle world, errors_return;
  Handle float32, float64, int32, int64, uint8;
  Handle sum, max, min;
};

void* open() {
  // Its plugins look for its symbols among all, and it cannot be closed any more.
  for (const char* name : {"libmpi.so.40", "libmpi.so"}) {
    if (void* found = dlopen(name, RTLD_NOW | RTLD_GLOBAL | RTLD_NODELETE)) return found;
  }
  const char* said = dlerror();
  throwRuntimeError("MPI: Open MPI's libmpi.so.40 cannot be opened: {}", said ? said : "no reason");
}

Functions findFunctions() {
  void* const library = open();
  Functions found{};
  const auto find = [&]<class T>(const char* name, T& into) {
    void* const symbol = dlsym(library, name);
    WICK_CHECK(symbol, "MPI: the library has no {}; expected Open MPI", name);
    into = reinterpret_cast<T>(symbol);
  };
  find("MPI_Init_thread", found.init_thread);
  find("MPI_Finalize", found.finalize);
  find("MPI_Comm_rank", found.comm_rank);
  find("MPI_Comm_size", found.comm_size);
  find("MPI_Comm_set_errhandler", found.comm_set_errhandler);
  find("MPI_Error_string", found.error_string);
  find("MPI_Iallreduce", found.iallreduce);
  find("MPI_Ibcast", found.ibcast);
  find("MPI_Ibarrier", found.ibarrier);
  find("MPI_Test", found.test);
  find("ompi_mpi_comm_world", found.world);
  find("ompi_mpi_errors_return", found.errors_return);
  find("ompi_mpi_float", found.float32);
  find("ompi_mpi_double", found.float64);
  find("ompi_mpi_int32_t", found.int32);
  find("ompi_mpi_int64_t", found.int64);
  find("ompi_mpi_uint8_t", found.uint8);
  find("ompi_mpi_op_sum", found.sum);
  find("ompi_mpi_op_max", found.max);
  find("ompi_mpi_op_min", found.min);
  return found;
}

class MpiTransport : public Transport {
 public:
  MpiTransport() : mpi_(findFunctions()) {
    int provided = 0;
    check(mpi_.init_thread(nullptr, nullptr, kFunneled, &provided), "MPI_Init_thread");
    check(mpi_.comm_set_errhandler(mpi_.world, mpi_.errors_return), "MPI_Comm_set_errhandler");
    check(mpi_.comm_rank(mpi_.world, &rank_), "MPI_Comm_rank");
    check(mpi_.comm_size(mpi_.world, &size_), "MPI_Comm_size");
  }
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
  void check(int status, const char* call) const {
    if (status == kSuccess) return;
    char text[kMaxErrorText + 1] = {};
    int length = 0;
    mpi_.error_string(status, text, &length);
    throwRuntimeError("MPI: {} failed: {}", call, text);
  }
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
