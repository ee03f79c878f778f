#include "runtime/cuda/elementwise_kernel.h"

#include <algorithm>
#include <numeric>

namespace wick::cuda {

void ElementwiseKernel::addAccess(uint32_t argument, DType dtype) {
  loop::Access access{argument, dtype, {}};
  access.dims.fill(-1);
  std::iota(access.dims.begin(), access.dims.begin() + kernel.rank, int8_t{0});
  kernel.accesses.push_back(access);
}

ScalarExpr ElementwiseKernel::load(DType dtype) {
  const auto i = static_cast<uint32_t>(kernel.accesses.size());
  addAccess(i, dtype);
  return kernel.leaf({loop::Leaf::Kind::Load, i, dtype});
}

void ElementwiseKernel::store(ScalarExpr value, DType dtype) {
  addAccess(static_cast<uint32_t>(kernel.stores.size()), dtype);
  kernel.stores.push_back({kernel.expression.convert(value, dtype),
                           static_cast<uint32_t>(kernel.accesses.size() - 1), false});
}

void ElementwiseKernel::finish(const std::string& name) {
  code_ = std::make_unique<LoopKernel>(name, kernel);
}

void ElementwiseKernel::run(const Tensor& out, std::span<const Touch> touches,
                            std::span<const int64_t> numbers) {
  std::array<int, loop::kMaxRank> dims{};
  const std::span order = std::span(dims).first(static_cast<size_t>(kernel.rank));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int d) { return out.stride(d); });
  Walk walk;
  planWalk(kernel, out.sizes(), touches, order, walk);
  LoopKernel::Ready ready = code_->prepare(enter(out.device()), walk, touches, numbers);
  code_->queue(ready);
}

Touch touchOf(const Tensor& t, IntSpan sizes) {
  Touch touch{};
  touch.base = static_cast<char*>(t.rawData());
  const size_t lead = sizes.size() - t.sizes().size();
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    const bool spread = t.sizes()[d] == 1;
    touch.steps[lead + d] = spread ? 0 : t.strides()[d] * static_cast<int64_t>(t.itemSize());
  }
  return touch;
}

}  // namespace wick::cuda
