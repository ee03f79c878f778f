#include "aot/columns.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "aot/elements.h"
#include "aot/recording.h"

namespace wick::aot {

namespace {

// Three dimensions of patches, those that are missing of size one.
using Three = std::array<int64_t, 3>;
Three three(IntSpan values, size_t first, size_t count, int64_t missing) {
  Three all{missing, missing, missing};
  for (size_t d = 0; d < count; ++d) all[3 - count + d] = values[first + d];
  return all;
}
int64_t product(const Three& t) {
  return t[0] * t[1] * t[2];
}

struct Patches {
  Three image, steps, kernel, stride, padding, dilation;

  // As the functions of wick_aot_layers.h take them.
  std::vector<int64_t> numbers(int64_t samples, int64_t channels) const {
    std::vector<int64_t> all = {samples, channels};
    for (const Three& t : {image, steps, kernel, stride, padding, dilation}) {
      all.insert(all.end(), t.begin(), t.end());
    }
    return all;
  }
};

}  // namespace

Tensor convolveByColumns(const char* op, const Tensor& x, const Tensor& weight,
                         const ConvolutionParams& params, IntSpan size,
                         const BatchedProduct& multiply) {
  const size_t spatial = params.stride.size();
  const int64_t samples = x.size(0), groups = params.groups;
  const int64_t in_c = x.size(1) / groups, out_c = size[1] / groups;
  const Three in = three(x.sizes(), 2, spatial, 1), made = three(size, 2, spatial, 1);
  const Patches patches{
      params.transposed ? made : in,        params.transposed ? in : made,
      three(weight.sizes(), 2, spatial, 1), three(params.stride, 0, spatial, 1),
      three(params.padding, 0, spatial, 0), three(params.dilation, 0, spatial, 1)};
  const int64_t taps = product(patches.kernel), steps = product(patches.steps);
  const int64_t patch = (params.transposed ? out_c : in_c) * taps;
  Tensor out = Tensor::empty(size, x.dtype(), x.device());
  if (x.numel() == 0) {
    out.fill(0);
    return out;
  }
  // As the engine cuts products of float32, which decides who computes them.
  const auto each = [&](const Tensor& w, const Tensor& columns) -> Tensor {
    if (x.dtype() != DType::Float || samples == 1) return multiply(op, w, columns);
    const Tensor all =
        Tensor::empty(DimVector{samples, w.size(1), columns.size(2)}, x.dtype(), x.device());
    for (int64_t n = 0; n < samples; ++n) {
      all.narrow(0, n, 1).copyFrom(multiply(op, w, columns.narrow(0, n, 1)));
    }
    return all;
  };
  const std::string type = elementType(op, x);
  for (int64_t g = 0; g < groups; ++g) {
    const Tensor part = x.narrow(1, g * in_c, in_c).contiguous();
    Tensor result = Tensor::empty(DimVector{samples, out_c, product(made)}, x.dtype(), x.device());
    if (params.transposed) {
      const Tensor w =
          weight.narrow(0, g * in_c, in_c).reshape(DimVector{1, in_c, patch}).transpose(1, 2);
      const Tensor columns = each(w, part.view(DimVector{samples, in_c, steps}));
      addFunction(op, fmt::format("movePatches<{}, true>", type), {reads(columns), writes(result)},
                  patches.numbers(samples, out_c));
    } else {
      const Tensor columns = Tensor::empty(DimVector{samples, patch, steps}, x.dtype(), x.device());
      addFunction(op, fmt::format("movePatches<{}, false>", type), {reads(part), writes(columns)},
                  patches.numbers(samples, in_c));
      const Tensor w = weight.narrow(0, g * out_c, out_c).reshape(DimVector{1, out_c, patch});
      result = each(w, columns);
    }
    DimVector sizes(size);
    sizes[1] = out_c;
    if (groups == 1) return result.view(sizes);
    out.narrow(1, g * out_c, out_c).copyFrom(result.view(sizes));
  }
  return out;
}

}  // namespace wick::aot
