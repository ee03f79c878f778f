#include "runtime/kernels/gemm.h"

#include <cblas.h>

#include <mutex>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/wrapped.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/kernels/onednn.h"
#include "runtime/kernels/openblas.h"

namespace wick {

namespace {

using namespace products;

constinit const OpenBlasRoutine<decltype(cblas_dgemm)> dgemm{"cblas_dgemm"};
constinit const OpenBlasRoutine<decltype(cblas_zgemm)> zgemm{"cblas_zgemm"};
constinit const OpenBlasRoutine<decltype(cblas_cgemm)> cgemm{"cblas_cgemm"};

void productBlas(const Tensor& a_in, const Tensor& b_in, const Tensor& out) {
  Tensor a = isMatrix(a_in) ? a_in : a_in.contiguous();
  Tensor b = isMatrix(b_in) ? b_in : b_in.contiguous();
  // As in onednn::matmul(), for the budget.
  constexpr int64_t kMostWork = int64_t{1} << 30;
  constexpr int64_t kRows = 64;
  if (currentBudget() && out.size(1) > kRows &&
      static_cast<double>(out.size(1)) * static_cast<double>(out.size(2)) *
              static_cast<double>(a.size(2)) >
          kMostWork) {
    const int64_t n = out.size(1);
    const int64_t first = (n / 2 + kRows - 1) / kRows * kRows;
    productBlas(a.narrow(1, 0, first), b, out.narrow(1, 0, first));
    productBlas(a.narrow(1, first, n - first), b, out.narrow(1, first, n - first));
    return;
  }
  int64_t m = a.size(1), k = a.size(2), n = b.size(2);
  WICK_CHECK(std::max({m, n, k, a.stride(1), a.stride(2), b.stride(1), b.stride(2)}) < INT32_MAX,
             "matmul: a matrix has more than 2^31 rows, columns or strides");
  bool ra = isRowMajor(a), rb = isRowMajor(b);
  auto ta = ra ? CblasNoTrans : CblasTrans;
  auto tb = rb ? CblasNoTrans : CblasTrans;
  const int lda = static_cast<int>(leading(a, ra)), ldb = static_cast<int>(leading(b, rb));
  const int ldc = static_cast<int>(n), ik = static_cast<int>(k);
  const int64_t size = static_cast<int64_t>(out.itemSize());
  // A part of the rows or of the columns, [first, last) of the longer side.
  const auto part = [&](int64_t batch, int64_t first, int64_t last) {
    const char* pa = static_cast<const char*>(a.rawData()) + batch * batchStride(a) * size;
    const char* pb = static_cast<const char*>(b.rawData()) + batch * batchStride(b) * size;
    char* pc = static_cast<char*>(out.rawData()) + batch * out.stride(0) * size;
    int im = static_cast<int>(m), in = static_cast<int>(n);
    if (m >= n) {
      pa += first * (ra ? lda : 1) * size;
      pc += first * n * size;
      im = static_cast<int>(last - first);
    } else {
      pb += first * (rb ? 1 : ldb) * size;
      pc += first * size;
      in = static_cast<int>(last - first);
    }
    if (out.dtype() == DType::Double) {
      dgemm(CblasRowMajor, ta, tb, im, in, ik, 1.0, reinterpret_cast<const double*>(pa), lda,
            reinterpret_cast<const double*>(pb), ldb, 0.0, reinterpret_cast<double*>(pc), ldc);
    } else if (out.dtype() == DType::ComplexDouble) {
      std::complex<double> one(1), zero(0);
      zgemm(CblasRowMajor, ta, tb, im, in, ik, &one, pa, lda, pb, ldb, &zero, pc, ldc);
    } else {
      std::complex<float> one(1), zero(0);
      cgemm(CblasRowMajor, ta, tb, im, in, ik, &one, pa, lda, pb, ldb, &zero, pc, ldc);
    }
  };
  // Where a product is cut depends on sizes alone. An even number of parts suits most machines; a
  // part packs the other factor again, so that small ones are not worth it.
  constexpr int64_t kLeastWork = int64_t{1} << 21;
  constexpr int64_t kLongest = 256;
  constexpr int64_t kUnit = 8;
  const int64_t side = std::max(m, n), batches = out.size(0);
  const double work = static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int64_t wanted = work < kLeastWork ? 1 : 2 * ((side + kLongest - 1) / kLongest);
  const int64_t length =
      std::max(kUnit, ((side + wanted - 1) / wanted + kUnit - 1) / kUnit * kUnit);
  const int64_t parts = wanted == 1 ? 1 : (side + length - 1) / length;
  const auto grain =
      static_cast<int64_t>(static_cast<double>(kLeastWork) / 2 / std::max(1.0, work / parts));
  parallelFor(batches * parts, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      checkBudget();
      const int64_t first = i % parts * length;
      part(i / parts, first, parts == 1 ? side : std::min(side, first + length));
    }
  });
}

// How many products of a batch a thread takes at once.
int64_t productsTogether(double work_of_one) {
  return static_cast<int64_t>(std::max(1.0, 2.0 * kSmallWork / std::max(1.0, work_of_one)));
}

// Whether oneDNN multiplies so much of this dtype.
bool byLibrary(DType dtype, int64_t m, int64_t n, int64_t k, int64_t batches) {
  return onednn::computes(dtype) && isLibraryWork(dtype, m, n, k, batches);
}

void productByLibrary(const char* op, const Tensor& a, const Tensor& b, const Tensor& out) {
  if (out.size(0) == 1) {
    onednn::matmul(op, a.select(0, 0), b.select(0, 0), {}, out.select(0, 0), false);
  } else {
    onednn::matmul(op, a, b, {}, out, false);
  }
}

void productSmall(const Tensor& a_in, const Tensor& b, const Tensor& out) {
  const Tensor a = isRowMajor(a_in) ? a_in : a_in.contiguous();
  const int64_t batches = out.size(0), m = a.size(1), k = a.size(2), n = b.size(2);
  const bool rb = isRowMajor(b);
  const int64_t lda = leading(a, true), ldb = leading(b, rb);
  parallelFor(batches, productsTogether(workOf(m, n, k)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const float* pa = a.data<float>() + i * batchStride(a);
      const float* pb = b.data<float>() + i * batchStride(b);
      float* pc = out.data<float>() + i * m * n;
      (rb ? smallgemm::productNN : smallgemm::productNT)(m, n, k, pa, lda, pb, ldb, nullptr, pc, n);
    }
  });
}

// out [B, M, 1] = a [B, M, K] b [B, K, 1]: the vector times the transpose.
void productByVector(const Tensor& a, const Tensor& b_in, const Tensor& out) {
  const Tensor b = b_in.stride(1) == 1 || b_in.size(1) == 1 ? b_in : b_in.contiguous();
  const int64_t batches = out.size(0), m = a.size(1), k = a.size(2);
  const int64_t lda = leading(a, true);
  parallelFor(batches, productsTogether(workOf(m, 1, k)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      smallgemm::productNT(1, m, k, b.data<float>() + i * batchStride(b), k,
                           a.data<float>() + i * batchStride(a), lda, nullptr,
                           out.data<float>() + i * m, m);
    }
  });
}

void productFloat(const char* op, const Tensor& a_in, const Tensor& b_in, const Tensor& out) {
  Tensor a = collapseBatch(a_in), b = collapseBatch(b_in);
  if (!isMatrix(a)) a = a.contiguous();
  if (!isMatrix(b)) b = b.contiguous();
  if (isByVector(a, b)) {
    productByVector(a, b, out);
  } else if (byLibrary(out.dtype(), a.size(1), b.size(2), a.size(2), out.size(0))) {
    productByLibrary(op, a, b, out);
  } else {
    productSmall(a, b, out);
  }
}

// out = activation(out + bias + residual), in place; `out` [M, N] is row-major, bias and residual
// may be missing.
void finish(const char* op, const Tensor& out, const Tensor& bias, const Epilogue& epilogue) {
  if ((!bias.defined() && epilogue.empty()) || out.numel() == 0) return;
  const Activation activation = epilogue.activation;
  WICK_CHECK(
      activation == Activation::None || out.dtype() == DType::Float || out.dtype() == DType::Double,
      "{}: no activation of dtype {} can be fused", op, toString(out.dtype()));
  const Tensor b = bias.defined() ? bias.contiguous() : bias;
  const Tensor r = epilogue.residual.defined() ? epilogue.residual.contiguous() : Tensor();
  const int64_t n = out.size(1);
  dispatch<kAnyDType & ~kBool>(op, out.dtype(), [&]<class T>() {
    T* p = out.data<T>();
    for (int64_t i = 0; b.defined() && i < out.size(0); ++i) {
      for (int64_t j = 0; j < n; ++j) p[i * n + j] = wrappedSum(p[i * n + j], b.data<T>()[j]);
    }
    const T* addend = r.defined() ? r.data<T>() : nullptr;
    for (int64_t i = 0; addend && i < out.numel(); ++i) p[i] = wrappedSum(p[i], addend[i]);
    if constexpr (std::is_floating_point_v<T>) activate(activation, p, out.numel());
  });
}

}  // namespace

Tensor batchedProduct(const char* op, const Tensor& a, const Tensor& b) {
  WICK_ASSERT(a.dim() == 3 && b.dim() == 3, "{}: batchedProduct of {} and {}", op, a.describe(),
              b.describe());
  WICK_CHECK(a.dtype() == b.dtype(),
             "{}: expected both matrices to have the same dtype, got {} and {}", op, a.describe(),
             b.describe());
  WICK_CHECK(a.size(2) == b.size(1), "{}: shapes {} and {} cannot be multiplied", op,
             formatInts(a.sizes()), formatInts(b.sizes()));
  WICK_CHECK(a.size(0) == b.size(0) || a.size(0) == 1 || b.size(0) == 1,
             "{}: batch sizes {} and {} differ", op, a.size(0), b.size(0));
  if (!a.device().isCpu()) return deviceLayers(op, a.device()).batchedProduct(op, a, b);
  int64_t batches = a.size(0) == 1 ? b.size(0) : a.size(0);
  DType dtype = a.dtype();
  if (batches > 1 && collapseBatch(a).size(0) == 1 && collapseBatch(b).size(0) == 1) {
    // One product for the whole batch.
    const Tensor one = batchedProduct(op, a.narrow(0, 0, 1), b.narrow(0, 0, 1));
    return one.expand(DimVector{batches, a.size(1), b.size(2)}).contiguous();
  }
  const bool by_library = byLibrary(dtype, a.size(1), b.size(2), a.size(2), batches);
  if (isReducedFloat(dtype) && !by_library) {
    return batchedProduct(op, a.to(DType::Float), b.to(DType::Float)).to(dtype);
  }
  Tensor out = Tensor::empty(DimVector{batches, a.size(1), b.size(2)}, dtype, a.device());
  if (out.numel() == 0) return out;
  if (a.size(2) == 0) {
    out.fill(0);
    return out;
  }
  if (dtype == DType::Float || by_library) {
    productFloat(op, a, b, out);
  } else if (dtype == DType::Double || isComplex(dtype)) {
    productBlas(a, b, out);
  } else {
    integerProduct(op, a, b, out);
  }
  return out;
}

Tensor linearProduct(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                     const Epilogue& epilogue) {
  WICK_CHECK(x.dtype() == weight.dtype() && (!bias.defined() || bias.dtype() == x.dtype()),
             "{}: expected input, weight and bias to have the same dtype, got {}, {}{}", op,
             x.describe(), weight.describe(), bias.defined() ? ", " + bias.describe() : "");
  WICK_CHECK(x.size(1) == weight.size(1),
             "{}: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})", op, x.size(0),
             x.size(1), weight.size(1), weight.size(0));
  if (!x.device().isCpu()) {
    return deviceLayers(op, x.device()).linearProduct(op, x, weight, bias, epilogue);
  }
  int64_t m = x.size(0), n = weight.size(0), k = x.size(1);
  const bool by_library = byLibrary(x.dtype(), m, n, k, 1);
  if (by_library || (x.dtype() == DType::Float && workOf(m, n, k) > 0)) {
    Tensor a = isMatrix(x) && isRowMajor(x) ? x : x.contiguous();
    Tensor out = Tensor::empty(DimVector{m, n}, x.dtype(), x.device());
    Tensor b = bias.defined() ? bias.contiguous() : bias;
    if (by_library) {
      const Tensor& r = epilogue.residual;
      // A copy would have no storage to keep the packed form with, and reads no faster.
      onednn::matmul(op, a, weight.transpose(0, 1), b, out, true,
                     {r.defined() ? r.contiguous() : r, epilogue.activation});
    } else {
      Tensor w = isMatrix(weight) ? weight : weight.contiguous();
      bool rows = isRowMajor(w);
      (rows ? smallgemm::productNT : smallgemm::productNN)(
          m, n, k, a.data<float>(), leading(a, true), w.data<float>(), leading(w, rows),
          b.defined() ? b.data<float>() : nullptr, out.data<float>(), n);
      finish(op, out, {}, epilogue);
    }
    return out;
  }
  if (isReducedFloat(x.dtype())) {
    auto wide = [](const Tensor& t) { return t.defined() ? t.to(DType::Float) : t; };
    return linearProduct(op, wide(x), wide(weight), wide(bias),
                         {wide(epilogue.residual), epilogue.activation})
        .to(x.dtype());
  }
  Tensor out = batchedProduct(op, x.unsqueeze(0), weight.transpose(0, 1).unsqueeze(0)).select(0, 0);
  finish(op, out, bias, epilogue);
  return out;
}

bool isPackedWeight(const Tensor& weight) {
  return onednn::computes(weight.dtype()) && weight.device().isCpu() && weight.dim() == 2 &&
         weight.numel() * (kFewRows + 1) > kSmallWork && isMatrix(weight);
}

void packLinearWeight(const Tensor& weight) {
  if (isPackedWeight(weight)) onednn::packMatrix("linear", weight.transpose(0, 1));
}

void startProducts() {
  static std::once_flag once;
  std::call_once(once, [] {
    constexpr int64_t kSide = 40;
    const Tensor square = Tensor::zeros(DimVector{kSide, kSide}, DType::Float);
    linearProduct("linear", square, square, Tensor());
    batchedProduct("mm", square.unsqueeze(0), square.unsqueeze(0));
  });
}

}  // namespace wick
