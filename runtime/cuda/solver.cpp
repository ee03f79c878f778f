#include "runtime/cuda/solver.h"

#include <memory>
#include <mutex>
#include <vector>

#include "core/error.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/made_once.h"

namespace wick::cuda {

namespace {

constexpr const char* kNames[] = {"libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"};

using Status = int;
// The library's own numbers.
constexpr int kReal32 = 0, kReal64 = 1, kComplex32 = 4, kComplex64 = 5;
constexpr int kLower = 0, kUpper = 1;
constexpr int kNoVectors = 0, kVectors = 1;

#define WICK_FORALL_SOLVER_FUNCTIONS(_)                                                            \
  _(create, "cusolverDnCreate", (void** handle))                                                   \
  _(createParameters, "cusolverDnCreateParams", (void** parameters))                               \
  _(setStream, "cusolverDnSetStream", (void* handle, Stream stream))                               \
  _(luSize, "cusolverDnXgetrf_bufferSize",                                                         \
    (void* handle, void* parameters, int64_t m, int64_t n, int type, const void* a, int64_t lda,   \
     int compute, size_t* device, size_t* host))                                                   \
  _(lu, "cusolverDnXgetrf",                                                                        \
    (void* handle, void* parameters, int64_t m, int64_t n, int type, void* a, int64_t lda,         \
     int64_t* pivots, int compute, void* device, size_t device_bytes, void* host,                  \
     size_t host_bytes, int* info))                                                                \
  _(choleskySize, "cusolverDnXpotrf_bufferSize",                                                   \
    (void* handle, void* parameters, int triangle, int64_t n, int type, const void* a,             \
     int64_t lda, int compute, size_t* device, size_t* host))                                      \
  _(cholesky, "cusolverDnXpotrf",                                                                  \
    (void* handle, void* parameters, int triangle, int64_t n, int type, void* a, int64_t lda,      \
     int compute, void* device, size_t device_bytes, void* host, size_t host_bytes, int* info))    \
  _(qrSize, "cusolverDnXgeqrf_bufferSize",                                                         \
    (void* handle, void* parameters, int64_t m, int64_t n, int type, const void* a, int64_t lda,   \
     int tau_type, const void* tau, int compute, size_t* device, size_t* host))                    \
  _(qr, "cusolverDnXgeqrf",                                                                        \
    (void* handle, void* parameters, int64_t m, int64_t n, int type, void* a, int64_t lda,         \
     int tau_type, void* tau, int compute, void* device, size_t device_bytes, void* host,          \
     size_t host_bytes, int* info))                                                                \
  _(hermitianSize, "cusolverDnXsyevd_bufferSize",                                                  \
    (void* handle, void* parameters, int vectors, int triangle, int64_t n, int type,               \
     const void* a, int64_t lda, int value_type, const void* values, int compute, size_t* device,  \
     size_t* host))                                                                                \
  _(hermitian, "cusolverDnXsyevd",                                                                 \
    (void* handle, void* parameters, int vectors, int triangle, int64_t n, int type, void* a,      \
     int64_t lda, int value_type, void* values, int compute, void* device, size_t device_bytes,    \
     void* host, size_t host_bytes, int* info))                                                    \
  _(svdSize, "cusolverDnXgesvd_bufferSize",                                                        \
    (void* handle, void* parameters, signed char u_job, signed char v_job, int64_t m, int64_t n,   \
     int type, const void* a, int64_t lda, int value_type, const void* s, int u_type,              \
     const void* u, int64_t ldu, int v_type, const void* v, int64_t ldv, int compute,              \
     size_t* device, size_t* host))                                                                \
  _(svd, "cusolverDnXgesvd",                                                                       \
    (void* handle, void* parameters, signed char u_job, signed char v_job, int64_t m, int64_t n,   \
     int type, void* a, int64_t lda, int value_type, void* s, int u_type, void* u, int64_t ldu,    \
     int v_type, void* v, int64_t ldv, int compute, void* device, size_t device_bytes, void* host, \
     size_t host_bytes, int* info))                                                                \
  _(eigenSize, "cusolverDnXgeev_bufferSize",                                                       \
    (void* handle, void* parameters, int left, int right, int64_t n, int type, const void* a,      \
     int64_t lda, int value_type, const void* values, int left_type, const void* l, int64_t ldl,   \
     int right_type, const void* r, int64_t ldr, int compute, size_t* device, size_t* host))       \
  _(eigen, "cusolverDnXgeev",                                                                      \
    (void* handle, void* parameters, int left, int right, int64_t n, int type, void* a,            \
     int64_t lda, int value_type, void* values, int left_type, void* l, int64_t ldl,               \
     int right_type, void* r, int64_t ldr, int compute, void* device, size_t device_bytes,         \
     void* host, size_t host_bytes, int* info))

struct Functions {
  WICK_FORALL_SOLVER_FUNCTIONS(WICK_FUNCTION_FIELD)
};
void find(const Library& library, Functions& functions) {
  WICK_FORALL_SOLVER_FUNCTIONS(WICK_FIND_FUNCTION)
}
const Functions& functions() {
  static const auto& found = *new LibraryFunctions<Functions>(kNames, find);
  return found.get();
}
void checkStatus(Status status, const char* op) {
  WICK_CHECK(status == 0, "{}: cuSOLVER fails with status {}", op, status);
}

int typeOf(const char* op, DType type) {
  switch (type) {
    case DType::Float:
      return kReal32;
    case DType::Double:
      return kReal64;
    case DType::ComplexFloat:
      return kComplex32;
    case DType::ComplexDouble:
      return kComplex64;
    default:
      throwRuntimeError("{}: no factorization of {} matrices on CUDA devices", op, toString(type));
  }
}

struct Handles {
  void* solver = nullptr;
  void* parameters = nullptr;
};
struct State {
  std::mutex mutex;  // a handle has one stream
  Handles handles;
};
State& stateOf(const char* op, CudaDevice& device) {
  static auto& states = *new MadeOnce<const CudaDevice*, State>;
  return states.of(&device, [&] {
    auto made = std::make_unique<State>();
    checkStatus(functions().create(&made->handles.solver), op);
    checkStatus(functions().createParameters(&made->handles.parameters), op);
    return made;
  });
}

// A batch of matrices that one routine works on.
struct Batch {
  const char* op;
  const Tensor& a;
  int64_t rows, columns, count;
  int type, real_type;

  Batch(const char* name, const Tensor& t)
      : op(name),
        a(t),
        rows(t.size(-2)),
        columns(t.size(-1)),
        count(t.numel() == 0 ? 0 : t.numel() / (rows * columns)),
        type(typeOf(name, t.dtype())),
        real_type(typeOf(name, toRealType(t.dtype()))) {}
  int64_t leading() const { return std::max<int64_t>(1, rows); }
};
// Of matrix number `i`, each of which has so many elements of a tensor.
void* at(const Tensor& t, int64_t i, int64_t each) {
  return t.defined()
             ? static_cast<char*>(t.rawData()) + i * each * static_cast<int64_t>(t.itemSize())
             : nullptr;
}

// Asks for the routine's memory with `size`, then calls `run` for each matrix.
template <class Size, class Run>
void forMatrices(const Batch& batch, const Tensor& info, Size&& size, Run&& run) {
  if (batch.count == 0) return;
  CudaDevice& device = enter(batch.a.device());
  State& state = stateOf(batch.op, device);
  std::lock_guard lock(state.mutex);
  checkStatus(functions().setStream(state.handles.solver, currentStream()), batch.op);
  size_t device_bytes = 0, host_bytes = 0;
  checkStatus(size(state.handles, &device_bytes, &host_bytes), batch.op);
  const Ref<Storage> on_device = Storage::allocate(device_bytes, batch.a.device());
  std::vector<unsigned char> host(host_bytes);
  for (int64_t i = 0; i < batch.count; ++i) {
    checkStatus(run(state.handles, i, on_device->data(), device_bytes, host.data(), host_bytes,
                    static_cast<int*>(at(info, i, 1))),
                batch.op);
  }
  // The routines may use the CPU's memory as long as they run.
  if (host_bytes > 0) device.synchronize(currentStream());
  noteLaunch("a factorization");
}

}  // namespace

void factorLu(const char* op, const Tensor& a, const Tensor& pivots, const Tensor& info) {
  const Batch b(op, a);
  const int64_t each = b.rows * b.columns, low = std::min(b.rows, b.columns);
  forMatrices(
      b, info,
      [&](const Handles& h, size_t* device, size_t* host) {
        return functions().luSize(h.solver, h.parameters, b.rows, b.columns, b.type, a.rawData(),
                                  b.leading(), b.type, device, host);
      },
      [&](const Handles& h, int64_t i, void* device, size_t d, void* host, size_t n, int* code) {
        return functions().lu(h.solver, h.parameters, b.rows, b.columns, b.type, at(a, i, each),
                              b.leading(), static_cast<int64_t*>(at(pivots, i, low)), b.type,
                              device, d, host, n, code);
      });
}

void factorCholesky(const char* op, const Tensor& a, bool upper, const Tensor& info) {
  const Batch b(op, a);
  const int triangle = upper ? kUpper : kLower;
  forMatrices(
      b, info,
      [&](const Handles& h, size_t* device, size_t* host) {
        return functions().choleskySize(h.solver, h.parameters, triangle, b.rows, b.type,
                                        a.rawData(), b.leading(), b.type, device, host);
      },
      [&](const Handles& h, int64_t i, void* device, size_t d, void* host, size_t n, int* code) {
        return functions().cholesky(h.solver, h.parameters, triangle, b.rows, b.type,
                                    at(a, i, b.rows * b.rows), b.leading(), b.type, device, d, host,
                                    n, code);
      });
}

void factorQr(const char* op, const Tensor& a, const Tensor& tau, const Tensor& info) {
  const Batch b(op, a);
  const int64_t each = b.rows * b.columns, low = std::min(b.rows, b.columns);
  forMatrices(
      b, info,
      [&](const Handles& h, size_t* device, size_t* host) {
        return functions().qrSize(h.solver, h.parameters, b.rows, b.columns, b.type, a.rawData(),
                                  b.leading(), b.type, tau.rawData(), b.type, device, host);
      },
      [&](const Handles& h, int64_t i, void* device, size_t d, void* host, size_t n, int* code) {
        return functions().qr(h.solver, h.parameters, b.rows, b.columns, b.type, at(a, i, each),
                              b.leading(), b.type, at(tau, i, low), b.type, device, d, host, n,
                              code);
      });
}

void singularValues(const char* op, const Tensor& a, const Tensor& s, const Tensor& u,
                    const Tensor& vh, const Tensor& info) {
  const Batch b(op, a);
  const bool vectors = u.defined();
  const int64_t m = b.rows, n = b.columns;
  const int64_t u_size = vectors ? m * u.size(-1) : 0, v_size = vectors ? n * n : 0;
  const auto u_job = static_cast<signed char>(!vectors ? 'N' : u.size(-1) == m ? 'A' : 'S');
  const auto v_job = static_cast<signed char>(vectors ? 'A' : 'N');
  forMatrices(
      b, info,
      [&](const Handles& h, size_t* device, size_t* host) {
        return functions().svdSize(h.solver, h.parameters, u_job, v_job, m, n, b.type, a.rawData(),
                                   m, b.real_type, s.rawData(), b.type, at(u, 0, 0), m, b.type,
                                   at(vh, 0, 0), n, b.type, device, host);
      },
      [&](const Handles& h, int64_t i, void* device, size_t d, void* host, size_t bytes,
          int* code) {
        return functions().svd(h.solver, h.parameters, u_job, v_job, m, n, b.type, at(a, i, m * n),
                               m, b.real_type, at(s, i, n), b.type, at(u, i, u_size), m, b.type,
                               at(vh, i, v_size), n, b.type, device, d, host, bytes, code);
      });
}

void hermitianEigenvalues(const char* op, const Tensor& a, const Tensor& values, bool upper,
                          bool vectors, const Tensor& info) {
  const Batch b(op, a);
  const int job = vectors ? kVectors : kNoVectors, triangle = upper ? kUpper : kLower;
  forMatrices(
      b, info,
      [&](const Handles& h, size_t* device, size_t* host) {
        return functions().hermitianSize(h.solver, h.parameters, job, triangle, b.rows, b.type,
                                         a.rawData(), b.leading(), b.real_type, values.rawData(),
                                         b.type, device, host);
      },
      [&](const Handles& h, int64_t i, void* device, size_t d, void* host, size_t n, int* code) {
        return functions().hermitian(h.solver, h.parameters, job, triangle, b.rows, b.type,
                                     at(a, i, b.rows * b.rows), b.leading(), b.real_type,
                                     at(values, i, b.rows), b.type, device, d, host, n, code);
      });
}

void eigenvalues(const char* op, const Tensor& a, const Tensor& values, const Tensor& vectors,
                 const Tensor& info) {
  const Batch b(op, a);
  const int job = vectors.defined() ? kVectors : kNoVectors;
  const int64_t n = b.rows;
  forMatrices(
      b, info,
      [&](const Handles& h, size_t* device, size_t* host) {
        return functions().eigenSize(h.solver, h.parameters, kNoVectors, job, n, b.type,
                                     a.rawData(), n, b.type, values.rawData(), b.type, nullptr, n,
                                     b.type, at(vectors, 0, 0), n, b.type, device, host);
      },
      [&](const Handles& h, int64_t i, void* device, size_t d, void* host, size_t bytes,
          int* code) {
        return functions().eigen(h.solver, h.parameters, kNoVectors, job, n, b.type,
                                 at(a, i, n * n), n, b.type, at(values, i, n), b.type, nullptr, n,
                                 b.type, at(vectors, i, n * n), n, b.type, device, d, host, bytes,
                                 code);
      });
}

}  // namespace wick::cuda
