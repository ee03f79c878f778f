// Quantized tensors as text: the real numbers, and below them how they are quantized.
#include <fmt/format.h>

#include "core/budget.h"
#include "core/error.h"
#include "core/quantizer.h"
#include "core/stream_format.h"

namespace wick {

namespace {

// As the operator aten::dequantize computes it, which lies above.
Tensor realNumbers(const Tensor& t, const Quantizer& quantizer) {
  const Tensor integers = integersOf(t);
  const bool nibbles = t.dtype() == DType::QUInt4x2;
  const Tensor from = (nibbles ? integers : integers.contiguous()).to(DType::Double);
  Tensor result = Tensor::empty(t.sizes(), DType::Double);
  int64_t inner = 1, size = 1;
  if (!quantizer.isPerTensor()) {
    WICK_CHECK(quantizer.axis() < t.dim() && t.size(quantizer.axis()) == quantizer.scales().numel(),
               "length of scales must equal to channel: there are {} scales, for dimension {} of "
               "sizes {}",
               quantizer.scales().numel(), quantizer.axis(), formatInts(t.sizes()));
    size = t.size(quantizer.axis());
    for (int64_t d = quantizer.axis() + 1; d < t.dim(); ++d) inner *= t.size(d);
  }
  const auto* bytes = static_cast<const uint8_t*>(t.rawData());
  Pace pace;
  for (int64_t i = 0; i < t.numel(); ++i) {
    pace.step();
    const int64_t channel = i / inner % size;
    const double integer = nibbles ? bytes[i / 2] >> (i % 2 * 4) & 15 : from.data<double>()[i];
    const auto steps = static_cast<float>(integer - quantizer.zeroPointOf(channel));
    result.data<double>()[i] =
        static_cast<double>(static_cast<float>(steps * quantizer.scaleOf(channel)));
  }
  return result;
}

}  // namespace

std::string formatQuantized(const Tensor& t) {
  const Quantizer& quantizer = quantizerOf("str", t);
  std::string out;
  const Notation notation = appendNumbers(out, realNumbers(t, quantizer));
  out += fmt::format("[ QuantizedCPU{}Type{{{}}}, qscheme: {}", scalarTypeName(t.dtype()),
                     fmt::join(t.sizes(), ","), toString(quantizer.scheme()));
  if (quantizer.isPerTensor()) {
    out += fmt::format(", scale: {}, zero_point: {}", inNotation(notation, quantizer.scale()),
                       quantizer.zeroPoint());
  } else {
    out += ", scales: ";
    appendStreamed(out, quantizer.scales());
    out += ", zero_points: ";
    appendStreamed(out, quantizer.zeroPoints());
    out += fmt::format(", axis: {}", quantizer.axis());
  }
  return out + " ]";
}

}  // namespace wick
