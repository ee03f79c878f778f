#include "runtime/cuda/layer_kernels.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/number_text.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

constexpr const char* kIntegerProduct = R"(
typedef {type} T;
struct Words {{ const T* a; const T* b; T* c; long long batches, m, n, k, as, am, ak, bs, bk, bn; }};
extern "C" __global__ void __launch_bounds__(256) integer_product(const __grid_constant__ Words p) {{
  const long long total = p.batches * p.m * p.n;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const long long j = i % p.n, r = i / p.n % p.m, s = i / p.n / p.m;
    const T* a = p.a + s * p.as + r * p.am;
    const T* b = p.b + s * p.bs + j * p.bn;
    unsigned long long sum = 0;
    for (long long l = 0; l < p.k; ++l) {{
      sum += (unsigned long long)(long long)a[l * p.ak] * (unsigned long long)(long long)b[l * p.bk];
    }}
    p.c[i] = (T)sum;
  }}
}}
)";

constexpr const char* kWeightedRows = R"({preamble}
typedef {type} T;
struct Words {{
  const T* x; T* y; const long long* start; const long long* place; const T* weight;
  long long total, rows, source_rows, inner;
}};
extern "C" __global__ void __launch_bounds__(256) weighted_rows(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const long long row = i / p.inner % p.rows;
    const T* const x = p.x + i / p.inner / p.rows * p.source_rows * p.inner + i % p.inner;
    const long long end = p.start[row + 1];
    long long e = p.start[row];
    {sum}
    p.y[i] = sum;
  }}
}}
)";

}  // namespace

TextKernel integerProductKernel(const Tensor& a, const Tensor& b, const Tensor& out) {
  return {textOf(kIntegerProduct, a.dtype()),
          "integer_product",
          out.numel(),
          {{a}, {b}, {out, true}},
          {out.size(0), a.size(1), b.size(2), a.size(2), a.size(0) == 1 ? 0 : a.stride(0),
           a.stride(1), a.stride(2), b.size(0) == 1 ? 0 : b.stride(0), b.stride(1), b.stride(2)}};
}

TextKernel weightedRowsKernel(const Tensor& x, const Tensor& out, int64_t source_rows,
                              int64_t inner, const WeightedRows& rows, const TableMaker& table) {
  const bool copies = rows.weight.empty() && !rows.place.empty();
  // A complex number is two neighbours with one weight.
  const DType type = toRealType(x.dtype());
  const int64_t parts = isComplex(x.dtype()) ? 2 : 1;
  const auto tensorOf = [](const auto& numbers) {
    return Tensor::fromData(numbers.data(), DimVector{static_cast<int64_t>(numbers.size())});
  };
  const Tensor start = table(tensorOf(rows.start)), place = table(tensorOf(rows.place));
  const Tensor weight = table(tensorOf(rows.weight).to(copies ? DType::Double : type));
  return {
      textOf(kWeightedRows, type,
             fmt::arg("sum",
                      copies ? "const T sum = x[p.place[e] * p.inner];"
                             : "T sum = e < end ? x[p.place[e] * p.inner] * p.weight[e] : (T)0;\n"
                               "    for (++e; e < end; ++e) {\n"
                               "      sum = sum + x[p.place[e] * p.inner] * p.weight[e];\n"
                               "    }")),
      "weighted_rows",
      parts * out.numel(),
      {{x}, {out, true}, {start}, {place}, {weight}},
      {parts * out.numel(), static_cast<int64_t>(rows.start.size()) - 1, source_rows,
       parts * inner}};
}

Tensor paddedEvenly(const Tensor& input, ConvolutionParams& params) {
  if (params.transposed || std::ranges::equal(params.padding, params.padding_after)) return input;
  DimVector pads;
  for (size_t d = params.padding.size(); d-- > 0;) {
    pads.push_back(params.padding[d]);
    pads.push_back(params.padding_after[d]);
    params.padding[d] = params.padding_after[d] = 0;
  }
  return ops::constantPad(input, pads, Scalar(0));
}

}  // namespace wick::cuda
