#include "aot/kernel_maker.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "aot/recording.h"

namespace wick::aot {

KernelMaker::KernelMaker(IntSpan sizes) : kernel_(std::make_shared<loop::Kernel>()) {
  if (sizes.size() > loop::kMaxRank) {
    throw NotAhead(
        fmt::format("an operator on tensors of {} dimensions is not available ahead of "
                    "time",
                    sizes.size()));
  }
  kernel_->rank = static_cast<int>(sizes.size());
  std::ranges::copy(sizes, sizes_.begin());
}

uint32_t KernelMaker::access(char* base, DType dtype, const DimVector& steps, int64_t item) {
  if (touches_.size() == kMaxAccesses) {
    throw NotAhead(
        "an operator that reads more tensors than a kernel may is not available ahead "
        "of time");
  }
  loop::Access a{static_cast<uint32_t>(touches_.size()), dtype, {}};
  a.dims.fill(-1);
  Touch touch{};
  touch.base = base;
  for (size_t d = 0; d < rank(); ++d) {
    a.dims[d] = static_cast<int8_t>(d);
    touch.steps[d] = sizes_[d] == 1 ? 0 : steps[d] * item;
  }
  touches_.push_back(touch);
  kernel_->accesses.push_back(a);
  return static_cast<uint32_t>(kernel_->accesses.size() - 1);
}
uint32_t KernelMaker::access(const Tensor& t) {
  DimVector steps(rank(), 0);
  const size_t lead = rank() - t.sizes().size();
  for (size_t d = 0; d < t.sizes().size(); ++d) {
    steps[lead + d] = t.sizes()[d] == 1 ? 0 : t.strides()[d];
  }
  return access(static_cast<char*>(t.rawData()), t.dtype(), steps,
                static_cast<int64_t>(t.itemSize()));
}

ScalarExpr KernelMaker::load(const Tensor& t) {
  const uint32_t a = access(t);
  return kernel_->leaf({loop::Leaf::Kind::Load, a, t.dtype()});
}
ScalarExpr KernelMaker::loadBehind(const Tensor& t, const DimVector& steps, ScalarExpr bytes,
                                   ScalarExpr mask) {
  const uint32_t a =
      access(static_cast<char*>(t.rawData()), t.dtype(), steps, static_cast<int64_t>(t.itemSize()));
  kernel_->accesses[a].larger = true;
  return kernel_->leaf({loop::Leaf::Kind::Load, a, t.dtype(), bytes, mask});
}
ScalarExpr KernelMaker::position(const DimVector& steps) {
  const uint32_t a = access(nullptr, DType::Long, steps, 1);
  kernel_->accesses[a].argument = loop::Access::kIndex;
  return kernel_->leaf({loop::Leaf::Kind::Index, a, DType::Long});
}
ScalarExpr KernelMaker::number(uint64_t bits, DType dtype) {
  const auto i = static_cast<uint32_t>(kernel_->numbers.size());
  kernel_->numbers.push_back({i, dtype});
  numbers_.push_back(bits);
  return kernel_->leaf({loop::Leaf::Kind::Number, i, dtype});
}
void KernelMaker::store(ScalarExpr value, const Tensor& t) {
  kernel_->stores.push_back({expression().convert(value, t.dtype()), access(t), false});
  last_ = t;
}

void KernelMaker::finish(const std::string& name, std::string complaint) {
  std::array<int, loop::kMaxRank> order{};
  const std::span<int> used = std::span(order).first(rank());
  std::iota(used.begin(), used.end(), 0);
  // Neighbours of the result side by side.
  std::reverse(used.begin(), used.end());
  std::stable_sort(used.begin(), used.end(),
                   [&](int a, int b) { return last_.stride(a) < last_.stride(b); });
  Walk walk;
  planWalk(*kernel_, IntSpan(sizes_.data(), rank()), touches_, used, walk);
  std::vector<int64_t> addresses;
  for (const Touch& t : touches_) addresses.push_back(reinterpret_cast<int64_t>(t.base));
  Recording::current().kernel(name, kernel_, wayOf(*kernel_, walk), addresses, std::move(numbers_),
                              std::move(complaint));
}

}  // namespace wick::aot
