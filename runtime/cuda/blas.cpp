// Row-major matrices are column-major ones transposed, so the product of the transposes is computed
// in the other order: C^T = B^T A^T.
#include "runtime/cuda/blas.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/kernel_choice.h"
#include "core/log.h"
#include "core/product_precision.h"
#include "runtime/cuda/captured_pieces.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/library.h"
#include "runtime/cuda/made_once.h"
#include "runtime/fusion/switches.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

constexpr const char* kBlasNames[] = {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"};
constexpr size_t kWorkspace = size_t{32} << 20;
// For products of so few multiplications the library's ways with memory between two kernels are
// several times slower than those without, yet come first.
constexpr double kTiny = double{1 << 21};

using Status = int;
// The library's own numbers.
constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kComplex32 = 4, kComplex64 = 5, kBFloat16 = 14;
constexpr int kCompute32 = 68, kCompute64 = 70, kComputeReduced = 77;
constexpr int kTransposeA = 3, kTransposeB = 4, kEpilogue = 7, kBiasPointer = 8;
constexpr int kEpilogueRelu = 2, kEpilogueBias = 4;
constexpr int kBatchCount = 5, kBatchOffset = 6;
constexpr int kMaxWorkspace = 1, kAlignmentA = 5, kAlignmentB = 6, kAlignmentC = 7, kAlignmentD = 8;
struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace;
  Status state;
  float waves;
  int reserved[4];
};

#define WICK_FORALL_LT_FUNCTIONS(_)                                                                \
  _(create, "cublasLtCreate", (void** handle))                                                     \
  _(createProduct, "cublasLtMatmulDescCreate", (void** product, int compute, int scale))           \
  _(setProduct, "cublasLtMatmulDescSetAttribute",                                                  \
    (void* product, int attribute, const void* value, size_t bytes))                               \
  _(destroyProduct, "cublasLtMatmulDescDestroy", (void* product))                                  \
  _(createLayout, "cublasLtMatrixLayoutCreate",                                                    \
    (void** layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                   \
  _(setLayout, "cublasLtMatrixLayoutSetAttribute",                                                 \
    (void* layout, int attribute, const void* value, size_t bytes))                                \
  _(destroyLayout, "cublasLtMatrixLayoutDestroy", (void* layout))                                  \
  _(createPreference, "cublasLtMatmulPreferenceCreate", (void** preference))                       \
  _(setPreference, "cublasLtMatmulPreferenceSetAttribute",                                         \
    (void* preference, int attribute, const void* value, size_t bytes))                            \
  _(destroyPreference, "cublasLtMatmulPreferenceDestroy", (void* preference))                      \
  _(choose, "cublasLtMatmulAlgoGetHeuristic",                                                      \
    (void* handle, void* product, void* a, void* b, void* c, void* d, void* preference, int most,  \
     Heuristic* found, int* count))                                                                \
  _(multiply, "cublasLtMatmul",                                                                    \
    (void* handle, void* product, const void* alpha, const void* a, void* a_layout, const void* b, \
     void* b_layout, const void* beta, const void* c, void* c_layout, void* d, void* d_layout,     \
     const Algorithm* algorithm, void* workspace, size_t bytes, Stream stream))

struct Functions {
  WICK_FORALL_LT_FUNCTIONS(WICK_FUNCTION_FIELD)
};

void find(const Library& library, Functions& functions) {
  WICK_FORALL_LT_FUNCTIONS(WICK_FIND_FUNCTION)
}
const Functions& functions() {
  static const auto& found = *new LibraryFunctions<Functions>(kBlasNames, find);
  return found.get();
}

void checkStatus(Status status, const char* op) {
  WICK_CHECK(status == 0, "{}: cuBLASLt fails with status {}", op, status);
}

// Descriptors of the library, destroyed at the end of a scope.
class Descriptor {
 public:
  explicit Descriptor(Status (*destroy)(void*)) : destroy_(destroy) {}
  ~Descriptor() {
    if (made_) destroy_(made_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  void** slot() { return &made_; }
  void* get() const { return made_; }

 private:
  void* made_ = nullptr;
  Status (*destroy_)(void*);
};

struct Types {
  int element, compute, scale;
};
Types typesOf(const char* op, DType type) {
  switch (type) {
    case DType::Float:
      return {kReal32, allowedTf32() == Tf32::All ? kComputeReduced : kCompute32, kReal32};
    case DType::Double:
      return {kReal64, kCompute64, kReal64};
    case DType::Half:
      return {kReal16, kCompute32, kReal32};
    case DType::BFloat16:
      return {kBFloat16, kCompute32, kReal32};
    case DType::ComplexFloat:
      return {kComplex32, kCompute32, kComplex32};
    case DType::ComplexDouble:
      return {kComplex64, kCompute64, kComplex64};
    default:
      throwRuntimeError("{}: no product of {} tensors on CUDA devices", op, toString(type));
  }
}

// A batch of matrices of `rows` and `columns` as the library sees them, column by column.
struct Matrix {
  Tensor memory;
  bool transposed;  // the matrix lies row by row
  int64_t leading;
  int64_t batch_step;
};
// Of t [B, rows, columns], transposed: the library's matrix has `columns` rows.
Matrix transposeOf(const Tensor& t) {
  Tensor m = t;
  const auto unit = [](const Tensor& x, int64_t d) { return x.stride(d) == 1 || x.size(d) == 1; };
  const auto fits = [&](const Tensor& x) {
    const bool along = unit(x, 2) && x.stride(1) >= std::max<int64_t>(1, x.size(2));
    const bool across = unit(x, 1) && x.stride(2) >= std::max<int64_t>(1, x.size(1));
    return along || across || (unit(x, 1) && unit(x, 2));
  };
  if (!fits(m)) m = m.clone(MemoryFormat::Contiguous);
  const bool along = unit(m, 2) && (m.stride(1) >= m.size(2) || m.size(1) == 1);
  const int64_t step = m.size(0) == 1 ? 0 : m.stride(0);
  if (along) return {m, false, std::max(m.stride(1), m.size(2)), step};
  return {m, true, std::max(m.stride(2), m.size(1)), step};
}

int64_t alignmentOf(const void* address) {
  const auto bits = reinterpret_cast<uintptr_t>(address);
  return std::min<int64_t>(256, bits == 0 ? 256 : int64_t{1} << std::countr_zero(bits));
}

// What the choice of an algorithm depends on.
using Shape = std::array<int64_t, 20>;

struct State {
  void* handle = nullptr;
  std::mutex mutex;
  std::map<Shape, Heuristic> chosen;
};
State& stateOf(CudaDevice& device) {
  static auto& states = *new MadeOnce<const CudaDevice*, State>;
  return states.of(&device, [] {
    auto made = std::make_unique<State>();
    checkStatus(functions().create(&made->handle), "product");
    return made;
  });
}

void makeLayout(const char* op, Descriptor& into, int type, int64_t rows, int64_t columns,
                int64_t leading, int64_t batches, int64_t step) {
  const Functions& f = functions();
  checkStatus(f.createLayout(into.slot(), type, static_cast<uint64_t>(rows),
                             static_cast<uint64_t>(columns), leading),
              op);
  const auto count = static_cast<int32_t>(batches);
  checkStatus(f.setLayout(into.get(), kBatchCount, &count, sizeof count), op);
  checkStatus(f.setLayout(into.get(), kBatchOffset, &step, sizeof step), op);
}

// A product that lacks nothing but an algorithm.
struct BlasCall {
  const char* op;
  State& state;
  Device device;
  void *product, *x, *y, *d;
  const void *x_data, *y_data;
  void* out;
  Types types;
  bool tiny;
  std::vector<MemoryRange> reads;
  MemoryRange written;

  void run(const Heuristic& how) const {
    const Ref<Storage> workspace = Storage::allocate(how.workspace, device);
    // One and zero in the type of the factors, which have up to 16 bytes.
    alignas(16) std::array<unsigned char, 16> one{}, zero{};
    if (types.scale == kReal64 || types.scale == kComplex64) {
      const double value = 1;
      std::memcpy(one.data(), &value, sizeof value);
    } else {
      const float value = 1;
      std::memcpy(one.data(), &value, sizeof value);
    }
    const auto scratch = reinterpret_cast<intptr_t>(workspace->data());
    const MemoryRange writes[] = {written,
                                  {scratch, scratch + static_cast<intptr_t>(how.workspace)}};
    const CapturedPiece piece(reads, writes, /*may_branch=*/true);
    checkStatus(functions().multiply(state.handle, product, one.data(), x_data, x, y_data, y,
                                     zero.data(), out, d, out, d, &how.algorithm, workspace->data(),
                                     how.workspace, piece.stream()),
                op);
  }
};

// Whether products of a new shape are measured; then their bits may differ from process to process.
bool tunes() {
  static const bool always = isSwitchedOn("WICK_CUDA_TUNE", false);
  return always || measuresKernels();
}

// Milliseconds of a few calls behind each other.
float timeOf(const BlasCall& call, const Heuristic& how) {
  constexpr int kCalls = 8;
  const Driver& d = driver();
  Event begin = nullptr, end = nullptr;
  check(d.createEvent(&begin, 0), "measuring a product");
  check(d.createEvent(&end, 0), "measuring a product");
  call.run(how);  // the first call loads the code
  check(d.recordEvent(begin, currentStream()), "measuring a product");
  for (int i = 0; i < kCalls; ++i) call.run(how);
  check(d.recordEvent(end, currentStream()), "measuring a product");
  check(d.synchronizeEvent(end), "measuring a product");
  float time = 0;
  check(d.elapsedTime(&time, begin, end), "measuring a product");
  d.destroyEvent(begin);
  d.destroyEvent(end);
  return time;
}

// The library's first choice, or the fastest of its first few.
std::optional<Heuristic> choose(const BlasCall& call, int64_t x_aligned, int64_t y_aligned,
                                Status& status) {
  const Functions& f = functions();
  Descriptor preference(f.destroyPreference);
  checkStatus(f.createPreference(preference.slot()), call.op);
  const auto prefer = [&](int attribute, auto value) {
    checkStatus(f.setPreference(preference.get(), attribute, &value, sizeof value), call.op);
  };
  prefer(kMaxWorkspace, call.tiny ? size_t{0} : kWorkspace);
  prefer(kAlignmentA, static_cast<uint32_t>(x_aligned));
  prefer(kAlignmentB, static_cast<uint32_t>(y_aligned));
  prefer(kAlignmentC, uint32_t{256});
  prefer(kAlignmentD, uint32_t{256});
  constexpr int kMost = 16;
  const bool measures = tunes() && !isCapturing();
  std::array<Heuristic, kMost> found;
  int count = 0;
  status = f.choose(call.state.handle, call.product, call.x, call.y, call.d, call.d,
                    preference.get(), measures ? kMost : 1, found.data(), &count);
  if (status != 0 || count == 0) return std::nullopt;
  size_t best = 0;
  if (measures && count > 1) {
    float least = std::numeric_limits<float>::infinity();
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      if (found[i].state != 0) continue;
      const float time = timeOf(call, found[i]);
      GRAPH_DEBUG("product: way {} takes {} ms, {} waves, {} bytes of workspace", i, time,
                  found[i].waves, found[i].workspace);
      if (time < least) {
        least = time;
        best = i;
      }
    }
  }
  return found[best];
}

}  // namespace

Tensor product(const char* op, const Tensor& a, const Tensor& b, const Tensor& bias, bool relu) {
  const int64_t batches = std::max(a.size(0), b.size(0));
  const int64_t m = a.size(1), n = b.size(2), k = a.size(2);
  const DType dtype = a.dtype();
  const Types types = typesOf(op, dtype);
  Tensor out = Tensor::empty(DimVector{batches, m, n}, dtype, a.device());
  if (out.numel() == 0) return out;
  if (k == 0) {  // sums of nothing, which the library does not make of all dtypes
    const Tensor none = Tensor::zeros(out.sizes(), dtype, a.device());
    const Tensor sum = bias.defined() ? ops::add(none, bias) : none;
    return relu ? ops::relu(sum) : sum;
  }
  constexpr int64_t kMost = INT32_MAX;
  WICK_CHECK(batches <= kMost && m <= kMost && n <= kMost && k <= kMost,
             "{}: matrices of {} x {} and {} x {} are too large", op, m, k, k, n);
  const Functions& f = functions();
  CudaDevice& device = enter(a.device());
  State& state = stateOf(device);
  const Matrix first = transposeOf(b), second = transposeOf(a);
  const Tensor held_bias = bias.defined() ? bias.contiguous() : bias;

  Descriptor product(f.destroyProduct), x(f.destroyLayout), y(f.destroyLayout), d(f.destroyLayout);
  checkStatus(f.createProduct(product.slot(), types.compute, types.scale), op);
  const int32_t first_op = first.transposed, second_op = second.transposed;
  checkStatus(f.setProduct(product.get(), kTransposeA, &first_op, sizeof first_op), op);
  checkStatus(f.setProduct(product.get(), kTransposeB, &second_op, sizeof second_op), op);
  const uint32_t epilogue = (bias.defined() ? kEpilogueBias : 0) | (relu ? kEpilogueRelu : 0);
  if (epilogue != 0) {
    checkStatus(f.setProduct(product.get(), kEpilogue, &epilogue, sizeof epilogue), op);
  }
  if (bias.defined()) {
    const void* pointer = held_bias.rawData();
    checkStatus(f.setProduct(product.get(), kBiasPointer, &pointer, sizeof pointer), op);
  }
  makeLayout(op, x, types.element, first.transposed ? k : n, first.transposed ? n : k,
             first.leading, batches, first.batch_step);
  makeLayout(op, y, types.element, second.transposed ? m : k, second.transposed ? k : m,
             second.leading, batches, second.batch_step);
  makeLayout(op, d, types.element, n, m, n, batches, m * n);

  const void* const x_data = first.memory.rawData();
  const void* const y_data = second.memory.rawData();
  const int64_t x_aligned = alignmentOf(x_data), y_aligned = alignmentOf(y_data);
  const Shape shape = {types.element,
                       types.compute,
                       m,
                       n,
                       k,
                       batches,
                       first_op,
                       second_op,
                       first.leading,
                       second.leading,
                       first.batch_step,
                       second.batch_step,
                       epilogue,
                       x_aligned,
                       y_aligned};
  std::vector<MemoryRange> reads = {rangeOf(first.memory), rangeOf(second.memory)};
  if (bias.defined()) reads.push_back(rangeOf(held_bias));
  const BlasCall call{
      op,
      state,
      a.device(),
      product.get(),
      x.get(),
      y.get(),
      d.get(),
      x_data,
      y_data,
      out.rawData(),
      types,
      !isReducedFloat(dtype) && static_cast<double>(out.numel()) * static_cast<double>(k) <= kTiny,
      std::move(reads),
      rangeOf(out)};
  std::optional<Heuristic> chosen;
  {
    std::lock_guard lock(state.mutex);
    if (const auto it = state.chosen.find(shape); it != state.chosen.end()) chosen = it->second;
  }
  if (!chosen) {
    Status status = 0;
    GRAPH_DEBUG("product: {} of {} x {} x {}", batches, m, k, n);
    chosen = choose(call, x_aligned, y_aligned, status);
    WICK_CHECK(chosen, "{}: cuBLASLt has no way to multiply {} and {} (status {})", op,
               a.describe(), b.describe(), status);
    std::lock_guard lock(state.mutex);
    // Those of a program that never repeats its sizes go.
    constexpr size_t kMostShapes = 4096;
    if (state.chosen.size() >= kMostShapes) state.chosen.clear();
    // Of several threads the first one chooses for all.
    chosen = state.chosen.emplace(shape, *chosen).first->second;
  }
  call.run(*chosen);
  noteLaunch("a matrix product");
  return out;
}

}  // namespace wick::cuda
