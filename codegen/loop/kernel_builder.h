// Builds one kernel: each output asks for its number at a point of the domain, and what it is
// computed from is asked in turn.
#pragma once

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "codegen/loop/analysis.h"

namespace wick::loop {

// Thrown when a value must be computed by a kernel of its own first.
struct NeedsKernel {
  const Value* value;
};

// What the kernels of a group share.
struct Common {
  const Analysis& analysis;
  LoweredGroup& lowered;
  FunctionForm functions = FunctionForm::Composed;
  // Values that have a kernel of their own, with the number of the output that holds them.
  std::map<const Value*, uint32_t> kept{};
  std::map<const Value*, uint32_t> view_of{};   // views as steps of paths
  std::map<uint32_t, uint32_t> broadcast_to{};  // to the sizes of a tensor
  std::vector<const Value*> viewed{};           // by view: what it is a view of
};

// The dimension of the domain that each dimension of a value runs along, from the end; -1 for none,
// kAtIndex where the position is computed.
using Map = std::array<int8_t, kMaxRank>;
inline constexpr int8_t kAtIndex = kMaxRank;

// Where a value is asked for. Without a path the map is of the value's own dimensions. With one the
// value is asked for through views, and the map is of what they end in.
struct Asked {
  Map map;
  std::vector<uint32_t> path{};
  Shape shape{};        // of what the path ends in
  ScalarExpr mask{};    // where the value exists
  ScalarExpr index{};   // the position along the one dimension of the map that has kAtIndex
  bool larger = false;  // the value may have more elements than are asked for

  bool isIndexed() const;
};

class KernelBuilder {
 public:
  // The domain has the shape of `domain`; bit k of `reduced`: its k-th dimension from the end.
  // `own`: values that have a kernel of their own, which is this one.
  KernelBuilder(Common& common, const Value* domain, uint32_t reduced,
                std::set<const Value*> own = {});

  Map identity(int rank) const;
  // The domain's dimensions that are not reduced, in order.
  Map kept() const;
  // Of an output that has the domain's shape, or that of its dimensions that are not reduced;
  // nothing for others.
  std::optional<Map> mapOf(const Value* output) const;
  void store(const Value* output, uint32_t number, const Map& map);
  // The same for an output that has as many elements as the domain, in the same order: stores what
  // a view of it has, and returns the view's number.
  int32_t storeReshaped(const Value* output, uint32_t number);
  // Accesses of stores come last, and are never those of loads, even if both look alike.
  Kernel take();

 private:
  void store(ScalarExpr value, Access access);
  int8_t domain(int from_end) const { return static_cast<int8_t>(kernel_.rank - 1 - from_end); }
  bool isLoaded(const Value* v) const;
  bool isKept(const Value* v) const;

  ScalarExpr at(const Value* v, Asked asked);
  ScalarExpr at(const Value* v, const Map& map) { return at(v, Asked{map}); }
  ScalarExpr compute(const Value* v, const ValueInfo& info, const Asked& asked);
  ScalarExpr load(const Value* v, const ValueInfo& info, const Asked& asked);
  uint32_t sourceOf(const Value* v, const ValueInfo& info, const std::vector<uint32_t>& path);
  ScalarExpr number(const ValueInfo& info, DType type);
  ScalarExpr sizeOf(const Value* v, int from_end);
  ScalarExpr known(const Scalar& n, DType type);
  ScalarExpr index(uint32_t dims);

  ScalarExpr pointwise(const ValueInfo& info, const Asked& asked);
  ScalarExpr view(const Value* v, const ValueInfo& info, const Asked& asked);
  ScalarExpr through(const Value* v, const ValueInfo& info, const Asked& asked);
  ScalarExpr triangle(const ValueInfo& info, const Asked& asked);
  uint32_t stepOf(const ViewStep& step, const Value* viewed);
  bool undoes(const ViewStep& step, const ValueInfo& view) const;
  std::vector<uint32_t> behind(uint32_t step, const std::vector<uint32_t>& path) const;
  ScalarExpr cat(const ValueInfo& info, const Asked& asked);
  ScalarExpr stack(const ValueInfo& info, const Asked& asked);
  ScalarExpr pad(const Value* v, const ValueInfo& info, const Asked& asked);
  ScalarExpr indexed(const Value* v, const ValueInfo& info, const Asked& asked);
  ScalarExpr both(ScalarExpr a, ScalarExpr b);
  // Requires what must hold, where the mask (if any) is true.
  void check(ScalarExpr holds, ScalarExpr mask);
  // The position of the point along a dimension of a value that is asked for without a path.
  ScalarExpr along(int from_end, const Asked& asked);

  ScalarExpr operandOf(const Value* v, const ValueInfo& info);
  ScalarExpr asComputed(ScalarExpr x, const ValueInfo& info);
  ScalarExpr reduce(ReduceOp op, ScalarExpr operand);
  ScalarExpr resultOf(size_t r);
  ScalarExpr count(DType type) { return kernel_.leaf({Leaf::Kind::Count, 0, type}); }
  void requireAligned(const Value* v, const ValueInfo& info, const Asked& asked) const;
  ScalarExpr reduced(const Value* v, const ValueInfo& info, const Asked& asked);
  ScalarExpr simpleReduction(const ValueInfo& info, ScalarExpr x);
  ScalarExpr place(const ValueInfo& info, ScalarExpr x);
  ScalarExpr variance(const ValueInfo& info, ScalarExpr x);
  ScalarExpr logSumExp(const ValueInfo& info, ScalarExpr x);
  ScalarExpr softmax(const ValueInfo& info, ScalarExpr x, const Asked& asked);
  ScalarExpr layerNorm(const ValueInfo& info, ScalarExpr x);

  Common& common_;
  const Analysis& analysis_;
  const Value* domain_;
  const Value* root_ = nullptr;  // what is being stored
  std::set<const Value*> own_;
  Kernel kernel_;
  std::vector<Access> stored_;
  using Key = std::tuple<const Value*, Map, std::vector<uint32_t>, int32_t, int32_t, bool>;
  std::map<Key, ScalarExpr> done_;
};

}  // namespace wick::loop
