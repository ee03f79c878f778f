// Kernels of the loop IR that are written step by step, rather than by lowering a group.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "codegen/loop/kernel.h"
#include "core/tensor.h"
#include "runtime/fusion/walk.h"

namespace wick::aot {

// A kernel over points of these sizes, and the memory that it touches. First come all loads, then stores, then
// finish(), which records it.
class KernelMaker {
 public:
  // NotAhead for too many dimensions.
  explicit KernelMaker(IntSpan sizes);
  Expression& expression() { return kernel_->expression; }

  // The element of a tensor of the device whose sizes broadcast to those of the points.
  ScalarExpr load(const Tensor& t);
  // The element that lies so many bytes (an int64) behind the one that the point's coordinates times `steps`
  // tell, where `mask` holds; zero elsewhere.
  ScalarExpr loadBehind(const Tensor& t, const DimVector& steps, ScalarExpr bytes, ScalarExpr mask);
  // The coordinates times `steps`, added up: an int64.
  ScalarExpr position(const DimVector& steps);
  // A number with these bits, which is no part of the kernel.
  ScalarExpr number(uint64_t bits, DType dtype);
  // A boolean that must hold at every point.
  void check(ScalarExpr holds) { kernel_->checks.push_back(holds); }
  void store(ScalarExpr value, const Tensor& t);
  // `complaint` is what the call ends with where a check does not hold.
  void finish(const std::string& name, std::string complaint = "");

 private:
  uint32_t access(char* base, DType dtype, const DimVector& steps, int64_t item);
  uint32_t access(const Tensor& t);
  size_t rank() const { return static_cast<size_t>(kernel_->rank); }

  std::shared_ptr<loop::Kernel> kernel_;
  std::array<int64_t, loop::kMaxRank> sizes_{};
  std::vector<Touch> touches_;
  std::vector<uint64_t> numbers_;
  Tensor last_;  // that is stored to
};

}  // namespace wick::aot
