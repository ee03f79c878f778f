#include "training/clip.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "autograd/tape.h"
#include "core/budget.h"
#include "core/convert.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/parallel.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/reduce/norms.h"
#include "runtime/threads.h"

namespace wick {
namespace {

// A gradient with its elements side by side: itself, or a copy that is written back.
struct Piece {
  Tensor gradient;
  Tensor dense;
  int64_t end = 0;  // in chunks, counting through all pieces
};

constexpr int64_t kChunk = kGrainSize;

struct Gradients {
  std::vector<Piece> pieces;      // in the CPU's memory
  std::vector<Tensor> elsewhere;  // what operators work on
  bool empty() const { return pieces.empty() && elsewhere.empty(); }
};

Gradients gradientsOf(const char* op, const std::vector<Tensor>& parameters) {
  Gradients found;
  int64_t chunks = 0;
  for (const Tensor& p : parameters) {
    const Tensor gradient = autograd::gradientOf(p);
    if (!gradient.defined()) continue;
    WICK_CHECK(gradient.kind() == TensorKind::Dense, "{}: a gradient is not dense", op);
    const Tensor plain = gradient.detach();
    if (!plain.device().isCpu()) {
      found.elsewhere.push_back(plain);
      continue;
    }
    Piece piece{gradient, plain.isNonOverlappingAndDense() ? plain : plain.contiguous()};
    piece.end = chunks += (gradient.numel() + kChunk - 1) / kChunk;
    found.pieces.push_back(std::move(piece));
  }
  return found;
}

bool isWide(DType dtype) {
  return dtype == DType::Double || dtype == DType::ComplexDouble;
}

Tensor inDType(const Tensor& t, DType dtype) {
  return ops::toDType(t, static_cast<int64_t>(dtype), false, false, IValue());
}

// A norm as one double, computed on the gradient's device.
Tensor normOf(const Tensor& gradient, double p) {
  return inDType(ops::vectorNorm(gradient, Scalar(p), IValue(), false, IValue()), DType::Double);
}

// The norm of each, computed on its device; of all of a device together one value comes over.
std::vector<double> normsElsewhere(const std::vector<Tensor>& gradients, double p) {
  std::vector<double> made(gradients.size());
  std::vector<bool> done(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    if (done[i]) continue;
    std::vector<size_t> here;
    std::vector<Tensor> norms;
    for (size_t k = i; k < gradients.size(); ++k) {
      if (done[k] || gradients[k].device() != gradients[i].device()) continue;
      done[k] = true;
      here.push_back(k);
      norms.push_back(normOf(gradients[k], p));
    }
    const Tensor all = moveTo(ops::stack(norms, 0), Device());
    for (size_t k = 0; k < here.size(); ++k) made[here[k]] = all.span<double>()[k];
  }
  return made;
}

// body(piece, number of the chunk, first element, end) for all chunks of all pieces.
template <class F>
void forEachChunk(const std::vector<Piece>& pieces, F body) {
  if (pieces.empty()) return;
  applyNumThreads();
  parallelFor(pieces.back().end, 1, [&](int64_t begin, int64_t end) {
    auto at = std::ranges::upper_bound(pieces, begin, {}, &Piece::end);
    for (int64_t chunk = begin; chunk < end; ++chunk) {
      while (chunk >= at->end) ++at;
      const int64_t n = at->dense.numel();
      const int64_t start = at == pieces.begin() ? 0 : std::prev(at)->end;
      const int64_t first = (chunk - start) * kChunk;
      body(*at, chunk, first, std::min(n, first + kChunk));
    }
  });
}

enum class Norm { Largest, Smallest, Count, One, Two, Any };

Norm kindOf(double p) {
  if (std::isinf(p)) return p > 0 ? Norm::Largest : Norm::Smallest;
  return p == 0 ? Norm::Count : p == 1 ? Norm::One : p == 2 ? Norm::Two : Norm::Any;
}

double joined(Norm kind, double a, double b) {
  if (kind != Norm::Largest && kind != Norm::Smallest) return a + b;
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  return kind == Norm::Largest ? std::max(a, b) : std::min(a, b);
}

double nothing(Norm kind) {
  return kind == Norm::Smallest ? std::numeric_limits<double>::infinity() : 0;
}

double term(Norm kind, double p, double x) {
  switch (kind) {
    case Norm::Count:
      return x != 0 ? 1 : 0;
    case Norm::Two:
      return x * x;
    case Norm::Any:
      return std::pow(x, p);
    default:
      return x;
  }
}

double finished(Norm kind, double p, double sum) {
  return kind == Norm::Two ? std::sqrt(sum) : kind == Norm::Any ? std::pow(sum, 1 / p) : sum;
}

// What is left of a norm in the dtype that PyTorch computes it in.
double roundedTo(DType dtype, double v) {
  if (isWide(dtype)) return v;
  if (dtype == DType::Half) return static_cast<float>(Half(static_cast<float>(v)));
  if (dtype == DType::BFloat16) return static_cast<float>(BFloat16(static_cast<float>(v)));
  return static_cast<float>(v);
}

template <class T>
void scale(T* data, int64_t begin, int64_t end, double factor) {
  if constexpr (kIsReducedFloat<T>) {
    const auto by = static_cast<float>(factor);
    for (int64_t i = begin; i < end; ++i) data[i] = T(static_cast<float>(data[i]) * by);
  } else if constexpr (kIsComplex<T>) {
    using Real = typename T::value_type;
    for (int64_t i = begin; i < end; ++i) data[i] *= static_cast<Real>(factor);
  } else {
    for (int64_t i = begin; i < end; ++i) data[i] *= static_cast<T>(factor);
  }
}

void writeBack(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    if (!piece.dense.sharesStorage(piece.gradient)) piece.gradient.detach().copyFrom(piece.dense);
    piece.gradient.storage()->bumpVersion();
  }
}

}  // namespace

double clipGradNorm(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                    bool error_if_nonfinite) {
  const GradModeGuard unrecorded(false);
  const Gradients gradients = gradientsOf("clipGradNorm", parameters);
  if (gradients.empty()) return 0;
  const std::vector<Piece>& pieces = gradients.pieces;
  const Norm kind = kindOf(norm_type);
  std::vector<double> sums(pieces.empty() ? 0 : static_cast<size_t>(pieces.back().end));
  forEachChunk(pieces, [&](const Piece& piece, int64_t chunk, int64_t begin, int64_t end) {
    dispatch<kFloatOrComplex>("clipGradNorm", piece.dense.dtype(), [&]<class T>() {
      const T* data = piece.dense.data<T>();
      double sum = nothing(kind);
      for (int64_t i = begin; i < end; ++i) {
        sum = joined(kind, sum, term(kind, norm_type, magnitude(data[i])));
      }
      sums[static_cast<size_t>(chunk)] = sum;
    });
  });
  double total = nothing(kind);
  DType widest = DType::Float;
  const auto add = [&](DType dtype, double norm) {
    if (isWide(dtype)) widest = DType::Double;
    total = joined(kind, total, term(kind, norm_type, norm));
  };
  int64_t chunk = 0;
  for (const Piece& piece : pieces) {
    double sum = nothing(kind);
    for (; chunk < piece.end; ++chunk) sum = joined(kind, sum, sums[static_cast<size_t>(chunk)]);
    const DType dtype = piece.dense.dtype();
    add(dtype, roundedTo(dtype, finished(kind, norm_type, sum)));
  }
  const std::vector<double> norms = normsElsewhere(gradients.elsewhere, norm_type);
  for (size_t i = 0; i < norms.size(); ++i) add(gradients.elsewhere[i].dtype(), norms[i]);
  total = roundedTo(widest, finished(kind, norm_type, total));
  WICK_CHECK(!error_if_nonfinite || std::isfinite(total),
             "clipGradNorm: the total norm of order {} of the gradients is {}", norm_type, total);
  const double sum = roundedTo(widest, total + roundedTo(widest, 1e-6));
  const double factor = roundedTo(widest, roundedTo(widest, max_norm) / sum);
  if (factor >= 1) return total;
  // Not to be left off in the middle.
  const BudgetScope unbounded(nullptr);
  forEachChunk(pieces, [&](const Piece& piece, int64_t, int64_t begin, int64_t end) {
    dispatch<kFloatOrComplex>("clipGradNorm", piece.dense.dtype(),
                              [&]<class T>() { scale(piece.dense.data<T>(), begin, end, factor); });
  });
  writeBack(pieces);
  for (const Tensor& gradient : gradients.elsewhere) ops::mulScalarInto(gradient, Scalar(factor));
  return total;
}

Tensor clipGradNormThere(const std::vector<Tensor>& parameters, double max_norm, double norm_type) {
  static const OperatorHandle kClamp{"aten::clamp_max", ""}, kScale{"aten::mul_", "Tensor"};
  const GradModeGuard unrecorded(false);
  const Gradients all = gradientsOf("clipGradNormThere", parameters);
  WICK_CHECK(all.pieces.empty(), "clipGradNormThere: gradients on the CPU are clipGradNorm's");
  const std::vector<Tensor>& gradients = all.elsewhere;
  std::vector<Tensor> norms;
  DType widest = DType::Float;
  for (const Tensor& gradient : gradients) {
    WICK_CHECK(gradient.device() == gradients[0].device(),
               "clipGradNormThere: gradients lie on {} and {}", gradients[0].device().str(),
               gradient.device().str());
    if (isWide(gradient.dtype())) widest = DType::Double;
    norms.push_back(normOf(gradient, norm_type));
  }
  if (norms.empty()) return {};
  const Tensor total = inDType(normOf(ops::stack(norms, 0), norm_type), widest);
  const Tensor factor =
      kClamp(ops::mulScalar(ops::reciprocal(ops::addScalar(total, Scalar(1e-6), Scalar(1))),
                            Scalar(max_norm)),
             Scalar(1.0));
  for (const Tensor& gradient : gradients) kScale(gradient, factor);
  return total;
}

void clipGradValue(const std::vector<Tensor>& parameters, double limit) {
  WICK_CHECK(limit >= 0, "clipGradValue: the limit is {}", limit);
  const GradModeGuard unrecorded(false);
  const Gradients gradients = gradientsOf("clipGradValue", parameters);
  const BudgetScope unbounded(nullptr);
  forEachChunk(gradients.pieces, [&](const Piece& piece, int64_t, int64_t begin, int64_t end) {
    dispatch<kAnyFloat>("clipGradValue", piece.dense.dtype(), [&]<class T>() {
      T* data = piece.dense.data<T>();
      const T most = convert<T>(limit), least = convert<T>(-limit);
      for (int64_t i = begin; i < end; ++i) {
        // NaN stays.
        if (static_cast<double>(data[i]) > static_cast<double>(most)) data[i] = most;
        if (static_cast<double>(data[i]) < static_cast<double>(least)) data[i] = least;
      }
    });
  });
  writeBack(gradients.pieces);
  static const OperatorHandle kClamp("aten::clamp_", "");
  for (const Tensor& gradient : gradients.elsewhere) {
    WICK_CHECK(!isComplex(gradient.dtype()), "clipGradValue: complex numbers have no order");
    kClamp(gradient, Scalar(-limit), Scalar(limit));
  }
}

}  // namespace wick
