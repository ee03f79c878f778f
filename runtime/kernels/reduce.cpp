#include "runtime/kernels/reduce.h"

#include "core/error.h"

namespace wick::reduce {

namespace {

constexpr int64_t kMostDims = 64;  // PyTorch's masks of dimensions have a bit for each

// Merges neighbours that one stride walks through.
void coalesce(std::vector<Dim>& dims) {
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim& a, const Dim& b) { return std::abs(a.in) > std::abs(b.in); });
  std::vector<Dim> merged;
  for (const Dim& d : dims) {
    if (!merged.empty() && merged.back().in == d.in * d.size &&
        merged.back().out == d.out * d.size) {
      merged.back() = {merged.back().size * d.size, d.in, d.out};
    } else {
      merged.push_back(d);
    }
  }
  dims = std::move(merged);
}

}  // namespace

Plan makePlan(const Tensor& in, const std::vector<bool>& mask) {
  Plan plan;
  for (int64_t d = in.dim(); d-- > 0;) {
    int64_t size = in.size(d);
    if (mask[static_cast<size_t>(d)]) {
      plan.reduced_count *= size;
      if (size != 1) plan.reduced.insert(plan.reduced.begin(), {size, in.stride(d), 0});
    } else {
      if (size != 1) plan.kept.insert(plan.kept.begin(), {size, in.stride(d), plan.outputs});
      plan.outputs *= size;
    }
  }
  coalesce(plan.kept);
  coalesce(plan.reduced);
  return plan;
}

std::vector<bool> dimMask(const char* op, const Tensor& in, IntSpan dims) {
  WICK_CHECK(in.dim() <= kMostDims, "{}: only tensors with up to {} dims are supported", op,
             kMostDims);
  std::vector<bool> mask(static_cast<size_t>(std::max<int64_t>(in.dim(), 1)), dims.empty());
  std::vector<bool> seen(mask.size());
  for (int64_t d : dims) {
    size_t w = static_cast<size_t>(wrapDim(d, in.dim()));
    WICK_CHECK(!seen[w], "{}: dim {} appears multiple times in the list of dims", op, w);
    seen[w] = mask[w] = true;
  }
  return mask;
}

DimVector reducedSizes(const Tensor& in, const std::vector<bool>& mask, bool keepdim) {
  DimVector sizes;
  for (int64_t d = 0; d < in.dim(); ++d) {
    if (!mask[static_cast<size_t>(d)]) {
      sizes.push_back(in.size(d));
    } else if (keepdim) {
      sizes.push_back(1);
    }
  }
  return sizes;
}

}  // namespace wick::reduce
