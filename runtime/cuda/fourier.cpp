// Fourier transforms on CUDA devices, by cuFFT. The dimensions that are transformed lie last and side
// by side, at most three of them at a time; plans are kept by lengths and batch.
#include <array>
#include <list>
#include <memory>
#include <mutex>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/library.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/fourier/transforms.h"

namespace wick::cuda {

namespace {

using namespace ops::fourier;

constexpr const char* kFourierNames[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so"};
constexpr size_t kMaxPlans = 64;

using Status = int;
using Handle = int;
// The library's own numbers.
enum Kind : int {
  kRealToComplex = 0x2a,
  kComplexToReal = 0x2c,
  kComplex = 0x29,
  kDoubleToComplex = 0x6a,
  kComplexToDouble = 0x6c,
  kDoubleComplex = 0x69,
};
constexpr int kForward = -1, kBackward = 1;

#define WICK_FORALL_FFT_FUNCTIONS(_)                                                              \
  _(create, "cufftCreate", (Handle * plan))                                                       \
  _(destroy, "cufftDestroy", (Handle plan))                                                       \
  _(setAllocation, "cufftSetAutoAllocation", (Handle plan, int on))                               \
  _(makePlan, "cufftMakePlanMany64",                                                              \
    (Handle plan, int rank, long long* sizes, long long* in_sizes, long long in_stride,           \
     long long in_step, long long* out_sizes, long long out_stride, long long out_step, int kind, \
     long long batch, size_t* workspace))                                                         \
  _(setWorkspace, "cufftSetWorkArea", (Handle plan, void* workspace))                             \
  _(setStream, "cufftSetStream", (Handle plan, Stream stream))                                    \
  _(complexFloat, "cufftExecC2C", (Handle plan, void* from, void* to, int direction))             \
  _(complexDouble, "cufftExecZ2Z", (Handle plan, void* from, void* to, int direction))            \
  _(realFloat, "cufftExecR2C", (Handle plan, void* from, void* to))                               \
  _(realDouble, "cufftExecD2Z", (Handle plan, void* from, void* to))                              \
  _(backFloat, "cufftExecC2R", (Handle plan, void* from, void* to))                               \
  _(backDouble, "cufftExecZ2D", (Handle plan, void* from, void* to))

struct Functions {
  WICK_FORALL_FFT_FUNCTIONS(WICK_FUNCTION_FIELD)
};
void find(const Library& library, Functions& functions) {
  WICK_FORALL_FFT_FUNCTIONS(WICK_FIND_FUNCTION)
}
const Functions& functions() {
  static const auto& found = *new LibraryFunctions<Functions>(kFourierNames, find);
  return found.get();
}
void checkStatus(Status status, const char* what) {
  WICK_CHECK(status == 0, "fft: cuFFT: {} fails with status {}", what, status);
}

// ---- plans ----

struct PlanKey {
  int device;
  Kind kind;
  std::array<int64_t, 3> sizes;  // zeros behind those that there are
  int64_t batch;
  friend auto operator<=>(const PlanKey&, const PlanKey&) = default;
};
class Plan {
 public:
  Plan(const PlanKey& key, int rank) {
    checkStatus(functions().create(&handle_), "making a plan");
    try {
      checkStatus(functions().setAllocation(handle_, 0), "making a plan");
      std::array<long long, 3> sizes{};
      for (size_t i = 0; i < 3; ++i) sizes[i] = key.sizes[i];
      // Without sizes of memory, elements lie side by side and transforms one after the other.
      checkStatus(functions().makePlan(handle_, rank, sizes.data(), nullptr, 1, 0, nullptr, 1, 0,
                                       key.kind, key.batch, &workspace_),
                  "making a plan");
    } catch (...) {
      functions().destroy(handle_);
      throw;
    }
  }
  ~Plan() { functions().destroy(handle_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  Handle handle() const { return handle_; }
  size_t workspace() const { return workspace_; }

 private:
  Handle handle_ = -1;
  size_t workspace_ = 0;
};

// The plans that were used last. Its mutex is held while a plan is run: a plan has one stream.
struct Plans {
  std::mutex mutex;
  std::list<std::pair<PlanKey, std::unique_ptr<Plan>>> used;  // the latest first

  Plan& get(const PlanKey& key, int rank) {
    for (auto it = used.begin(); it != used.end(); ++it) {
      if (it->first != key) continue;
      used.splice(used.begin(), used, it);
      return *used.front().second;
    }
    used.emplace_front(key, std::make_unique<Plan>(key, rank));
    if (used.size() > kMaxPlans) used.pop_back();
    return *used.front().second;
  }
};
Plans& plans() {
  static Plans& all = *new Plans;
  return all;
}

// Transforms the last dimensions of `from`, which is dense and may be overwritten, to `to`.
void run(Kind kind, const Tensor& from, const Tensor& to, IntSpan sizes, int64_t batch, int sign) {
  if (to.numel() == 0) return;
  CudaDevice& device = enter(from.device());
  PlanKey key{device.index(), kind, {}, batch};
  std::copy(sizes.begin(), sizes.end(), key.sizes.begin());
  Plans& all = plans();
  std::lock_guard lock(all.mutex);
  Plan& plan = all.get(key, static_cast<int>(sizes.size()));
  const Functions& f = functions();
  const Ref<Storage> workspace = Storage::allocate(plan.workspace(), from.device());
  checkStatus(f.setWorkspace(plan.handle(), workspace->data()), "setting a plan");
  checkStatus(f.setStream(plan.handle(), currentStream()), "setting a plan");
  void* const x = from.rawData();
  void* const y = to.rawData();
  Status status = 0;
  switch (kind) {
    case kComplex:
      status = f.complexFloat(plan.handle(), x, y, sign);
      break;
    case kDoubleComplex:
      status = f.complexDouble(plan.handle(), x, y, sign);
      break;
    case kRealToComplex:
      status = f.realFloat(plan.handle(), x, y);
      break;
    case kDoubleToComplex:
      status = f.realDouble(plan.handle(), x, y);
      break;
    case kComplexToReal:
      status = f.backFloat(plan.handle(), x, y);
      break;
    case kComplexToDouble:
      status = f.backDouble(plan.handle(), x, y);
      break;
  }
  checkStatus(status, "a transform");
  noteLaunch("a Fourier transform");
}

// ---- operators ----

// The order of dimensions with those of `dims` last, and the way back.
struct Order {
  DimVector there, back;
  Order(int64_t rank, IntSpan dims) : back(static_cast<size_t>(rank), 0) {
    for (int64_t d = 0; d < rank; ++d) {
      if (std::ranges::find(dims, d) == dims.end()) there.push_back(d);
    }
    for (const int64_t d : dims) there.push_back(d);
    for (size_t i = 0; i < there.size(); ++i) {
      back[static_cast<size_t>(there[i])] = static_cast<int64_t>(i);
    }
  }
};

int64_t batchOf(const Tensor& t, IntSpan sizes) {
  return t.numel() / checkedNumel(sizes);
}
DimVector sizesOf(const Tensor& t, IntSpan dims) {
  DimVector sizes;
  for (const int64_t d : dims) sizes.push_back(t.size(d));
  return sizes;
}

Tensor transformComplex(Tensor x, IntSpan dims, bool forward) {
  const Kind kind = x.dtype() == DType::ComplexDouble ? kDoubleComplex : kComplex;
  for (size_t end = dims.size(); end > 0;) {
    const size_t begin = end > 3 ? end - 3 : 0;
    const IntSpan some = dims.subspan(begin, end - begin);
    const Order order(x.dim(), some);
    const Tensor from = x.permute(order.there).contiguous();
    const Tensor to = Tensor::empty(from.sizes(), from.dtype(), from.device());
    const DimVector sizes = sizesOf(x, some);
    run(kind, from, to, sizes, batchOf(from, sizes), forward ? kForward : kBackward);
    x = to.permute(order.back);
    end = begin;
  }
  return x;
}

Tensor complexToComplex(const Tensor& self, const DimVector& dim, int64_t normalization,
                        bool forward) {
  const Transform plan = planComplex(self, dim, normalization);
  if (plan.dims.empty()) return self.clone(MemoryFormat::Contiguous);
  return scaled(transformComplex(self, plan.dims, forward).contiguous(), plan.scale);
}

Tensor realToComplex(const Tensor& self, const DimVector& dim, int64_t normalization,
                     bool onesided) {
  const Transform plan = planOfReal(self, dim, normalization);
  WICK_CHECK(self.dtype() == DType::Float || self.dtype() == DType::Double,
             "_fft_r2c: no transform of {} on CUDA devices", toString(self.dtype()));
  const DType type = toComplexType(self.dtype());
  if (!onesided) {
    return scaled(transformComplex(self.to(type), plan.dims, true).contiguous(), plan.scale);
  }
  const DimVector last{plan.dims.back()};
  const Order order(self.dim(), last);
  const Tensor from = self.permute(order.there).contiguous();
  DimVector sizes(from.sizes());
  const int64_t n = sizes.back();
  sizes.back() = n / 2 + 1;
  const Tensor to = Tensor::empty(sizes, type, self.device());
  run(self.dtype() == DType::Double ? kDoubleToComplex : kRealToComplex, from, to, DimVector{n},
      from.numel() / n, kForward);
  const Tensor out = transformComplex(to.permute(order.back), plan.others(), true);
  return scaled(out.contiguous(), plan.scale);
}

Tensor complexToReal(const Tensor& self, const DimVector& dim, int64_t normalization, int64_t n) {
  const Transform plan = planToReal(self, dim, normalization, n);
  Tensor x = transformComplex(self, plan.others(), false);
  const DimVector last{plan.dims.back()};
  const Order order(x.dim(), last);
  x = x.permute(order.there);
  const int64_t half = n / 2 + 1, given = x.size(-1);
  // The library may write over what it reads.
  DimVector sizes(x.sizes());
  sizes.back() = half;
  const Tensor from = Tensor::zeros(sizes, x.dtype(), x.device());
  const int64_t kept = std::min(half, given);
  from.narrow(from.dim() - 1, 0, kept).copyFrom(x.narrow(x.dim() - 1, 0, kept));
  sizes.back() = n;
  const Tensor to = Tensor::empty(sizes, toRealType(x.dtype()), x.device());
  run(x.dtype() == DType::ComplexDouble ? kComplexToDouble : kComplexToReal, from, to, DimVector{n},
      from.numel() / half, kBackward);
  return scaled(to.permute(order.back).contiguous(), plan.scale);
}

const DeviceKernel kFourierKernels[] = {
    {"aten::_fft_c2c", WICK_KERNEL(complexToComplex)},
    {"aten::_fft_r2c", WICK_KERNEL(realToComplex)},
    {"aten::_fft_c2r", WICK_KERNEL(complexToReal)},
};
const RegisterDeviceKernels kFourierRegistered(DeviceType::CUDA, kFourierKernels);

}  // namespace

}  // namespace wick::cuda
