// torchaudio's recursive filters: each output depends on those before it.
#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "ir/operator.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::ops::audio {

namespace {

// Rows of samples, and a row of coefficients for each `channels`-th of them.
struct Rows {
  int64_t count, channels, length, order;
};

// output[order - 1 + n] = input[n] - sum of output[n + k] * flipped[k], for each row. What `output`
// holds in its first order - 1 samples is what comes before.
template <class T>
void filterRows(const Rows& rows, const T* input, const T* flipped, T* output) {
  const int64_t work = std::max<int64_t>(1, rows.length * rows.order);
  parallelFor(rows.count, std::max<int64_t>(1, kGrainSize / work), [&](int64_t begin, int64_t end) {
    Pace pace;
    for (int64_t row = begin; row < end; ++row) {
      const T* const from = input + row * rows.length;
      const T* const coefficients = flipped + row % rows.channels * rows.order;
      T* const to = output + row * (rows.length + rows.order - 1);
      for (int64_t n = 0; n < rows.length; ++n) {
        pace.step(rows.order);
        T sum = from[n];
        for (int64_t k = 0; k < rows.order; ++k) sum -= to[n + k] * coefficients[k];
        to[n + rows.order - 1] = sum;
      }
    }
  });
}

void checkFloats(const char* op, const Tensor& first, const Tensor& other) {
  WICK_CHECK(first.dtype() == DType::Float || first.dtype() == DType::Double,
             "{}: expected float32 or float64 tensors, got {}", op, toString(first.dtype()));
  WICK_CHECK(first.dtype() == other.dtype(), "{}: expected tensors of one dtype, got {} and {}", op,
             toString(first.dtype()), toString(other.dtype()));
}

// Windows [(batch,) channels, samples], coefficients [(channels,) order], the last one first, and
// the output with order - 1 samples before: torchaudio's two forms, with and without a batch.
Tensor lfilterCoreLoop(const Tensor& input, const Tensor& flipped, const Tensor& output) {
  constexpr const char* kName = "_lfilter_core_loop";
  checkFloats(kName, input, flipped);
  checkFloats(kName, input, output);
  WICK_CHECK(input.dim() == 2 || input.dim() == 3,
             "{}: expected windows of 2 or 3 dimensions, got {}", kName, input.dim());
  WICK_CHECK(output.dim() == input.dim() && flipped.dim() == input.dim() - 1,
             "{}: expected an output of {} and coefficients of {} dimensions, got {} and {}", kName,
             input.dim(), input.dim() - 1, output.dim(), flipped.dim());
  WICK_CHECK(input.isContiguous() && flipped.isContiguous() && output.isContiguous(),
             "{}: expected contiguous tensors", kName);
  const int64_t order = flipped.size(-1);
  WICK_CHECK(order > 0, "{}: expected coefficients, got none", kName);
  for (int64_t d = 0; d + 1 < input.dim(); ++d) {
    WICK_CHECK(input.size(d) == output.size(d),
               "{}: the output has {} in dimension {}, the windows have {}", kName, output.size(d),
               d, input.size(d));
  }
  WICK_CHECK(output.size(-1) - (order - 1) == input.size(-1),
             "{}: the output has {} samples, which {} windows and {} coefficients do not make",
             kName, output.size(-1), input.size(-1), order);
  WICK_CHECK(flipped.dim() == 1 || flipped.size(0) == input.size(1),
             "{}: coefficients for {} channels, windows of {}", kName, flipped.size(0),
             input.size(1));
  if (input.numel() == 0) return output;
  const Rows rows{input.numel() / input.size(-1), flipped.dim() == 1 ? 1 : flipped.size(0),
                  input.size(-1), order};
  dispatch<kFloats>(kName, input.dtype(), [&]<class T>() {
    filterRows(rows, input.data<T>(), flipped.data<T>(), output.data<T>());
  });
  return output;
}

// y[n] = x[n] - a[1] y[n-1] - a[2] y[n-2] - …: x is [batch, channels, samples], a is
// [channels, order] with a[0] taken for one.
Tensor recursiveFilter(const Tensor& x, const Tensor& a) {
  constexpr const char* kName = "recursive_filter";
  WICK_CHECK(x.dim() == 3 && a.dim() == 2 && a.size(0) == x.size(1) && a.size(1) > 0,
             "{}: expected samples [batch, channels, length] and coefficients [channels, order], "
             "got {} and {}",
             kName, formatInts(x.sizes()), formatInts(a.sizes()));
  checkFloats(kName, x, a);
  const int64_t before = a.size(1) - 1;
  int64_t samples = 0;
  WICK_CHECK(!__builtin_add_overflow(x.size(2), before, &samples), "{}: {} samples are too many",
             kName, x.size(2));
  const Tensor output = Tensor::zeros(DimVector{x.size(0), x.size(1), samples}, x.dtype());
  lfilterCoreLoop(x.contiguous(), ops::flip(a, DimVector{1}).contiguous(), output);
  return output.slice(2, before, output.size(2), 1).contiguous();
}

// The filter with coefficients a of the outputs and b of the inputs; of operators, whose
// derivatives are its own.
Tensor lfilter(const Tensor& waveform, const Tensor& a, const Tensor& b) {
  constexpr const char* kName = "_lfilter";
  static const OperatorHandle kConvolve{"aten::conv1d", ""};
  static const OperatorHandle kRecursive{"wick::recursive_filter", ""};
  WICK_CHECK(a.dim() == 1 || a.dim() == 2, "{}: expected coefficients of 1 or 2 dimensions, got {}",
             kName, a.dim());
  WICK_CHECK(DimVector(a.sizes()) == DimVector(b.sizes()) && a.size(-1) > 0,
             "{}: expected coefficients of equal sizes, got {} and {}", kName,
             formatInts(a.sizes()), formatInts(b.sizes()));
  WICK_CHECK(waveform.dim() >= 1, "{}: expected a waveform, got a number", kName);
  WICK_CHECK(a.dim() == 1 || (waveform.dim() == 3 && waveform.size(1) == a.size(0)),
             "{}: expected a waveform [batch, {}, samples], got {}", kName, a.size(0),
             formatInts(waveform.sizes()));
  const int64_t order = a.size(-1);
  // One set of coefficients serves all rows, as one channel.
  const bool shared = a.dim() == 1;
  const Tensor rows =
      shared ? ops::reshape(waveform, DimVector{-1, 1, waveform.size(-1)}) : waveform;
  const Tensor outputs = shared ? ops::unsqueeze(a, 0) : a;
  const Tensor inputs = shared ? ops::unsqueeze(b, 0) : b;
  const Tensor first = ops::slice(outputs, 1, 0, 1);
  const Tensor padded = ops::constantPad(rows, DimVector{order - 1, 0}, Scalar(0));
  const Tensor kernel = ops::unsqueeze(ops::flip(ops::div(inputs, first), DimVector{1}), 1);
  const Tensor weighted = kConvolve(padded, kernel, std::optional<Tensor>{}, DimVector{1},
                                    DimVector{0}, DimVector{1}, outputs.size(0));
  const Tensor filtered = kRecursive(weighted, ops::div(outputs, first));
  return shared ? ops::reshape(filtered, DimVector(waveform.sizes())) : filtered;
}

// The loop of torchaudio's overdrive, for each channel of [channels, frames]: numbers are rounded
// to the tensors' dtype after each line, as there.
void overdrive(const Tensor& waveform, const Tensor& temp, const Tensor& last_in,
               const Tensor& last_out, const Tensor& output) {
  constexpr const char* kName = "_overdrive_core_loop";
  for (const Tensor* t : {&temp, &last_in, &last_out, &output}) checkFloats(kName, waveform, *t);
  WICK_CHECK(waveform.dim() == 2, "{}: expected a waveform [channels, frames], got {}", kName,
             formatInts(waveform.sizes()));
  const int64_t channels = waveform.size(0), frames = waveform.size(1);
  WICK_CHECK(DimVector(temp.sizes()) == DimVector(waveform.sizes()) &&
                 DimVector(output.sizes()) == DimVector(waveform.sizes()),
             "{}: expected tensors of sizes {}, got {} and {}", kName, formatInts(waveform.sizes()),
             formatInts(temp.sizes()), formatInts(output.sizes()));
  WICK_CHECK(last_in.dim() == 1 && last_in.size(0) == channels && last_out.dim() == 1 &&
                 last_out.size(0) == channels,
             "{}: expected last samples of {} channels, got {} and {}", kName, channels,
             formatInts(last_in.sizes()), formatInts(last_out.sizes()));
  const Tensor from = waveform.contiguous(), raised = temp.contiguous();
  const Tensor ins = last_in.clone().contiguous(), outs = last_out.clone().contiguous();
  const Tensor result = Tensor::empty(waveform.sizes(), waveform.dtype());
  dispatch<kFloats>(kName, waveform.dtype(), [&]<class T>() {
    Pace pace;
    for (int64_t c = 0; c < channels; ++c) {
      T in = ins.data<T>()[c];
      T out = outs.data<T>()[c];
      for (int64_t i = c * frames; i < (c + 1) * frames; ++i) {
        pace.step();
        const T sample = raised.data<T>()[i];
        out = static_cast<T>(static_cast<double>(sample - in) + 0.995 * static_cast<double>(out));
        in = sample;
        result.data<T>()[i] = static_cast<T>(static_cast<double>(from.data<T>()[i]) * 0.5 +
                                             static_cast<double>(out) * 0.75);
      }
      ins.data<T>()[c] = in;
      outs.data<T>()[c] = out;
    }
  });
  last_in.copyFrom(ins);
  last_out.copyFrom(outs);
  output.copyFrom(result);
}

constexpr OperatorRecord kFiltersRecords[] = {
    {"torchaudio::_lfilter_core_loop(Tensor input_signal_windows, Tensor a_coeff_flipped, "
     "Tensor(a!) padded_output_waveform) -> Tensor(a!)",
     WICK_KERNEL(lfilterCoreLoop)},
    {"torchaudio::_lfilter(Tensor waveform, Tensor a_coeffs, Tensor b_coeffs) -> Tensor",
     WICK_KERNEL(lfilter)},
    {"wick::recursive_filter(Tensor x, Tensor a) -> Tensor", WICK_KERNEL(recursiveFilter)},
    {"torchaudio::_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor(a!) last_in, "
     "Tensor(b!) last_out, Tensor(c!) output_waveform) -> ()",
     WICK_KERNEL(overdrive)},
};
const RegisterOperators kFiltersRegistered(kFiltersRecords);

}  // namespace

}  // namespace wick::ops::audio
