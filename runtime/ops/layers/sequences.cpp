// Packed sequences, covariance, and products of groups of rows.
#include <algorithm>
#include <cmath>

#include "core/device_backend.h"
#include "core/wrapped.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"
#include "runtime/ops/typed.h"

namespace wick {
namespace {

// Steps of all sequences that are still running, one time after the other; sequences are sorted by
// length, longest first.
std::tuple<Tensor, Tensor> packPadded(const Tensor& input, const Tensor& lengths_in,
                                      bool batch_first) {
  const char* op = "_pack_padded_sequence";
  WICK_CHECK(lengths_in.dtype() == DType::Long && lengths_in.dim() == 1 && input.dim() >= 2,
             "{}: 'lengths' argument should be a 1D CPU int64 tensor, but got {}", op,
             lengths_in.describe());
  WICK_CHECK(input.numel() > 0, "Cannot pack empty tensors.");
  Tensor x = batch_first ? input.transpose(0, 1) : input;
  Tensor lengths = moveTo(lengths_in, Device()).contiguous();
  const int64_t* length = lengths.data<int64_t>();
  int64_t batch = x.size(1);
  WICK_CHECK(lengths.numel() == batch,
             "Expected `len(lengths)` to be equal to batch_size, but got {} (batch_size={})",
             lengths.numel(), batch);
  for (int64_t i = 0; i < batch; ++i) {
    WICK_CHECK(length[i] > 0,
               "Length of all samples has to be greater than 0, but found an element in 'lengths' "
               "that is <= 0");
    WICK_CHECK(
        i == 0 || length[i] <= length[i - 1],
        "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. "
        "You can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
        "sidestep this requirement if you do not need ONNX exportability.");
  }
  WICK_CHECK(length[0] <= x.size(0), "{}: length {} exceeds the input's {} steps", op, length[0],
             x.size(0));
  std::vector<Tensor> steps;
  Tensor sizes = Tensor::empty(DimVector{length[0]}, DType::Long);
  int64_t running = batch;
  for (int64_t t = 0; t < length[0]; ++t) {
    while (length[running - 1] <= t) --running;
    sizes.data<int64_t>()[t] = running;
    steps.push_back(x.select(0, t).narrow(0, 0, running));
  }
  return {ops::cat(steps, int64_t{0}), sizes};
}

// Sequences [length, ...] side by side, the shorter ones filled up on one side.
Tensor padSequence(const std::vector<Tensor>& sequences, bool batch_first, double padding,
                   const std::string& side) {
  WICK_CHECK(side == "left" || side == "right",
             "Expected padding_side to be one of left or right, but got {}.", side);
  WICK_CHECK(!sequences.empty(), "pad_sequence: received an empty list of sequences");
  int64_t longest = 0, count = static_cast<int64_t>(sequences.size());
  for (const Tensor& t : sequences) {
    WICK_CHECK(t.dim() > 0, "pad_sequence: expected sequences of one or more dimensions");
    longest = std::max(longest, t.size(0));
  }
  DimVector sizes(sequences[0].sizes());
  sizes[0] = batch_first ? count : longest;
  sizes.insert(1, batch_first ? longest : count);
  const Tensor out = Tensor::full(sizes, padding, sequences[0].dtype(), sequences[0].device());
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& t = sequences[static_cast<size_t>(i)];
    out.select(batch_first ? 0 : 1, i)
        .narrow(0, side == "left" ? longest - t.size(0) : 0, t.size(0))
        .copyFrom(t);
  }
  return out;
}

std::tuple<Tensor, Tensor, Tensor, Tensor> packSequence(const Tensor& data, const Tensor& sizes,
                                                        const Tensor& sorted,
                                                        const Tensor& unsorted) {
  return {data, sizes, sorted, unsorted};
}

std::tuple<Tensor, Tensor> padPacked(const Tensor& data, const Tensor& batch_sizes_in,
                                     bool batch_first, const Scalar& padding,
                                     int64_t total_length) {
  const char* op = "_pad_packed_sequence";
  WICK_CHECK(batch_sizes_in.dtype() == DType::Long && batch_sizes_in.dim() == 1 &&
                 batch_sizes_in.numel() > 0 && data.dim() >= 1,
             "{}: expected batch sizes as int64, got {}", op, batch_sizes_in.describe());
  Tensor batch_sizes = moveTo(batch_sizes_in, Device()).contiguous();
  const int64_t* sizes = batch_sizes.data<int64_t>();
  int64_t longest = batch_sizes.numel(), time = longest, batch = sizes[0], rows = 0;
  for (int64_t t = 0; t < longest; ++t) {
    WICK_CHECK(sizes[t] > 0 && (t == 0 || sizes[t] <= sizes[t - 1]) && sizes[t] <= data.size(0),
               "{}: batch sizes must be positive and must not grow", op);
    rows += sizes[t];
  }
  WICK_CHECK(rows == data.size(0), "{}: batch sizes add up to {}, the data has {} rows", op, rows,
             data.size(0));
  if (total_length > 0) {
    WICK_CHECK(total_length >= longest,
               "Expected total_length to be at least the length of the longest sequence in input, "
               "but got total_length={} and max sequence length being {}",
               total_length, longest);
    time = total_length;
  }
  DimVector shape{time, batch};
  for (int64_t d = 1; d < data.dim(); ++d) shape.push_back(data.size(d));
  static const OperatorHandle kFull("aten::full", "");
  Tensor out = kFull(shape, padding, data.dtype(), IValue(), IValue(data.device()));
  Tensor lengths = Tensor::zeros(DimVector{batch}, DType::Long);
  int64_t row = 0;
  for (int64_t t = 0; t < longest; ++t) {
    out.select(0, t).narrow(0, 0, sizes[t]).copyFrom(data.narrow(0, row, sizes[t]));
    row += sizes[t];
    for (int64_t i = 0; i < sizes[t]; ++i) ++lengths.data<int64_t>()[i];
  }
  return {batch_first ? out.transpose(0, 1) : out, lengths};
}

// Rows are variables, columns observations; weights count (f) or scale (a) observations.
bool noneNegative(const Tensor& t) {
  if (!t.device().isCpu()) {
    return ops::all(ops::geScalar(t, 0)).item<bool>();
  }
  Tensor values = t.to(DType::Double).contiguous();
  const double* data = values.data<double>();
  return std::none_of(data, data + values.numel(), [](double v) { return v < 0; });
}

Tensor cov(const Tensor& self, int64_t correction, const Tensor& fweights, const Tensor& aweights) {
  WICK_CHECK(self.dim() <= 2,
             "cov(): expected input to have two or fewer dimensions but got an "
             "input with {} dimensions",
             self.dim());
  WICK_CHECK(self.dtype() != DType::Bool, "cov(): bool dtype is not supported for input");
  Tensor in = self.dim() < 2 ? self.reshape(DimVector{1, -1}) : self;
  int64_t n = in.size(1);
  Tensor w;
  if (fweights.defined()) {
    WICK_CHECK(fweights.dim() <= 1 && isIntegral(fweights.dtype(), false) && fweights.numel() == n,
               "cov(): expected fweights of {} integers, got {}", n, fweights.describe());
    WICK_CHECK(noneNegative(fweights), "cov(): fweights cannot be negative");
    w = fweights;
  }
  if (aweights.defined()) {
    WICK_CHECK(aweights.dim() <= 1 && isFloating(aweights.dtype()) && aweights.numel() == n,
               "cov(): expected aweights of {} floating point numbers, got {}", n,
               aweights.describe());
    WICK_CHECK(noneNegative(aweights), "cov(): aweights cannot be negative");
    w = w.defined() ? ops::mul(w, aweights) : aweights;
  }
  Tensor total = w.defined() ? ops::sum(w) : Tensor::scalar(n);
  WICK_CHECK(!w.defined() || total.to(DType::Double).item<double>() != 0,
             "cov(): weights sum to zero, can't be normalized");
  Tensor weighted = w.defined() ? ops::mul(in, w) : in;
  Tensor mean = ops::div(ops::sumDims(weighted, DimVector{1}), total);
  Tensor divisor;
  if (!w.defined() || !aweights.defined() || correction == 0) {
    divisor = ops::addScalar(total, wrappedProduct(correction, int64_t{-1}));
  } else {
    Tensor squares = ops::mulScalar(ops::sum(ops::mul(w, aweights)), correction);
    divisor = ops::sub(total, ops::div(squares, total));
  }
  if (divisor.to(DType::Double).item<double>() <= 0) divisor = Tensor::zeros({}, divisor.dtype());
  Tensor centred = ops::sub(in, mean.unsqueeze(1));
  Tensor right = w.defined() ? ops::mul(centred, w) : centred;
  right = right.transpose(0, 1);
  if (isComplex(right.dtype())) right = ops::conj(right);
  Tensor left = centred.to(promoteTypes(centred.dtype(), right.dtype()));
  Tensor c = ops::div(matmul(left, right.to(left.dtype())), divisor);
  return c.dim() == 2 && c.numel() == 1 ? c.view(DimVector{}) : c;
}

Tensor corrcoef(const Tensor& self) {
  WICK_CHECK(self.dim() <= 2,
             "corrcoef(): expected input to have two or fewer dimensions but got "
             "an input with {} dimensions",
             self.dim());
  Tensor c = cov(self, 1, {}, {});
  if (c.dim() == 0) return ops::div(c, c);
  Tensor variances = ops::diagonal(c);
  Tensor d = ops::sqrt(isComplex(c.dtype()) ? ops::real(variances) : variances);
  c = ops::div(ops::div(c, d.unsqueeze(1)), d.unsqueeze(0));
  if (!isComplex(c.dtype())) return ops::clamp(c, -1.0, 1.0);
  return ops::complex(ops::clamp(ops::real(c), -1.0, 1.0), ops::clamp(ops::imag(c), -1.0, 1.0));
}

// Rows (or columns) of a that end at each offset meet their own matrix of b.
Tensor groupedMm(const Tensor& a, const Tensor& b, const Tensor& offsets, const Tensor& bias,
                 std::optional<DType> dtype) {
  const char* op = "_grouped_mm";
  WICK_CHECK(!bias.defined(), "{}: a bias is not supported", op);
  bool a2 = a.dim() == 2, b2 = b.dim() == 2;
  WICK_CHECK((a2 || a.dim() == 3) && (b2 || b.dim() == 3),
             "{}: expected matrices or batches of them, got {} and {}", op, a.describe(),
             b.describe());
  DType out_dtype = dtype.value_or(a.dtype());
  if (!a2 && !b2) return batchMatrixProduct(op, a, b).to(out_dtype);
  WICK_CHECK(offsets.defined() && offsets.dim() == 1 &&
                 (offsets.dtype() == DType::Int || offsets.dtype() == DType::Long),
             "{}: expected offsets as a 1-D tensor of integers", op);
  Tensor ends = moveTo(offsets, Device()).to(DType::Long).contiguous();
  int64_t groups = ends.numel();
  int64_t length = a2 ? (b2 ? a.size(1) : a.size(0)) : b.size(1);
  WICK_CHECK((a2 || a.size(0) == groups) && (b2 || b.size(0) == groups),
             "{}: expected one matrix for each of {} offsets, got {} and {}", op, groups,
             a.describe(), b.describe());
  DimVector sizes = a2 && b2 ? DimVector{groups, a.size(0), b.size(1)}
                    : a2     ? DimVector{a.size(0), b.size(2)}
                             : DimVector{a.size(1), b.size(1)};
  Tensor out = Tensor::zeros(sizes, a.dtype(), a.device());
  int64_t start = 0;
  for (int64_t g = 0; g < groups; ++g) {
    int64_t end = ends.data<int64_t>()[g], n = end - start;
    WICK_CHECK(n >= 0 && end <= length, "{}: offset {} is out of order or range", op, end);
    if (a2 && b2) {
      out.select(0, g).copyFrom(matrixProduct(op, a.narrow(1, start, n), b.narrow(0, start, n)));
    } else if (a2) {
      out.narrow(0, start, n).copyFrom(matrixProduct(op, a.narrow(0, start, n), b.select(0, g)));
    } else {
      out.narrow(1, start, n).copyFrom(matrixProduct(op, a.select(0, g), b.narrow(1, start, n)));
    }
    start = end;
  }
  return out.to(out_dtype);
}

constexpr OperatorRecord kSequencesRecords[] = {
    {"aten::pad_sequence(Tensor[] sequences, bool batch_first=False, float padding_value=0.0, "
     "str padding_side=\"right\") -> Tensor",
     WICK_KERNEL(padSequence), kNeutral},
    {"aten::_pack_sequence(Tensor output, Tensor batch_sizes, Tensor? sorted_indices, Tensor? "
     "unsorted_indices) -> (Tensor, Tensor, Tensor?, Tensor?)",
     WICK_KERNEL(packSequence)},
    {"aten::_pack_padded_sequence(Tensor input, Tensor lengths, bool batch_first) -> (Tensor, "
     "Tensor)",
     WICK_KERNEL(packPadded), kNeutralMixed},
    {"aten::_pad_packed_sequence(Tensor data, Tensor batch_sizes, bool batch_first, Scalar "
     "padding_value, int total_length) -> (Tensor, Tensor)",
     WICK_KERNEL(padPacked), kNeutralMixed},
    {"aten::cov(Tensor self, *, int correction=1, Tensor? fweights=None, Tensor? aweights=None) -> "
     "Tensor",
     WICK_KERNEL(cov), kNeutral | kEagerCastUnknown},
    {"aten::corrcoef(Tensor self) -> Tensor", WICK_KERNEL(corrcoef), kNeutral | kEagerCastUnknown},
    {"aten::_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, "
     "ScalarType? out_dtype=None) -> Tensor",
     WICK_KERNEL(groupedMm), kNeutral},
    // An operator that the library transformers registers for layers of experts.
    {"transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor",
     WICK_LAMBDA([](const Tensor& input, const Tensor& weight, const Tensor& offs) {
       return groupedMm(input, weight, offs, Tensor(), std::nullopt);
     }),
     kNeutral},
};

const RegisterOperators kSequencesRegistered(kSequencesRecords);

}  // namespace
}  // namespace wick
