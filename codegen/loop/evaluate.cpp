// For every point of the kept dimensions the reductions are computed in turn, each with a loop of
// its own over the reduced dimensions in which the whole expression is evaluated anew.
#include "codegen/loop/evaluate.h"

#include <cstring>

#include "codegen/loop/reduce_op.h"
#include "core/dtype_dispatch.h"

namespace wick::loop {

namespace {

using Point = std::array<int64_t, kMaxRank>;

class Evaluator {
 public:
  Evaluator(const Kernel& kernel, std::span<const int64_t> sizes, std::span<const Place> places,
            std::span<const ScalarBits> numbers)
      : kernel_(kernel), sizes_(sizes), places_(places), numbers_(numbers) {}

  bool run() {
    Point point{};
    forEach(point, 0, /*reduced=*/false, [&] { row(point); });
    return good_;
  }

 private:
  // Calls f for all points that differ in the dimensions that are reduced, or in those that are
  // not.
  template <class F>
  void forEach(Point& point, int d, bool reduced, const F& f) {
    if (d == kernel_.rank) return f();
    auto i = static_cast<size_t>(d);
    if (((kernel_.reduced >> d & 1) != 0) != reduced) return forEach(point, d + 1, reduced, f);
    for (point[i] = 0; point[i] < sizes_[i]; ++point[i]) forEach(point, d + 1, reduced, f);
    point[i] = 0;
  }

  void row(Point& point) {
    std::vector<ScalarBits> results(kernel_.reductions.size());
    for (size_t r = 0; r < results.size(); ++r) {
      const Reduction& reduction = kernel_.reductions[r];
      DType type = kernel_.expression[reduction.operand].type;
      results[r] = identity(reduction.op, type);
      forEach(point, 0, /*reduced=*/true, [&] {
        results[r] = combine(reduction.op, type, results[r],
                             values(point, results)[static_cast<size_t>(reduction.operand.id)]);
      });
    }
    forEach(point, 0, /*reduced=*/true, [&] {
      std::vector<ScalarBits> all = values(point, results);
      for (ScalarExpr check : kernel_.checks) good_ &= isTrue(all, check);
      for (const Store& store : kernel_.stores) {
        const DType type = kernel_.accesses[store.access].dtype;
        std::memcpy(address(store.access, point), &all[static_cast<size_t>(store.value.id)],
                    itemSize(type));
      }
    });
    // Without reduced points there is still a row.
    if (!isEmptyRow()) return;
    std::vector<ScalarBits> all = values(point, results);
    for (const Store& store : kernel_.stores) {
      if (!store.per_row) continue;
      const DType type = kernel_.accesses[store.access].dtype;
      std::memcpy(address(store.access, point), &all[static_cast<size_t>(store.value.id)],
                  itemSize(type));
    }
  }

  static bool isTrue(const std::vector<ScalarBits>& all, ScalarExpr e) {
    return (all[static_cast<size_t>(e.id)] & 0xff) != 0;
  }
  bool isEmptyRow() const { return count() == 0; }
  int64_t count() const {
    int64_t n = 1;
    for (int d = 0; d < kernel_.rank; ++d) {
      if ((kernel_.reduced >> d & 1) != 0) n *= sizes_[static_cast<size_t>(d)];
    }
    return n;
  }

  char* address(uint32_t access, const Point& point) const {
    char* at = places_[access].base;
    for (size_t d = 0; d < static_cast<size_t>(kernel_.rank); ++d) {
      at += point[d] * places_[access].steps[d];
    }
    return at;
  }

  std::vector<ScalarBits> values(const Point& point, const std::vector<ScalarBits>& results) const {
    std::vector<ScalarBits> inputs(kernel_.leaves.size());
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Leaf& leaf = kernel_.leaves[i];
      switch (leaf.kind) {
        case Leaf::Kind::Load:
          // A row without points has no elements to look at.
          if (!isEmptyRow()) load(leaf, point, inputs, inputs[i]);
          break;
        case Leaf::Kind::Index:
          inputs[i] = reinterpret_cast<ScalarBits>(address(leaf.index, point));
          break;
        case Leaf::Kind::Number:
          inputs[i] = numbers_[leaf.index];
          break;
        case Leaf::Kind::Reduction:
          inputs[i] = results[leaf.index];
          break;
        case Leaf::Kind::Count:
          dispatch<kComputedDTypes>("kernel", leaf.type, [&]<class T>() {
            inputs[i] = toScalarBits(convert<T>(count()));
          });
          break;
      }
    }
    return wick::evaluate(kernel_.expression, inputs);
  }

  // Offset and mask are computed from earlier leaves.
  void load(const Leaf& leaf, const Point& point, const std::vector<ScalarBits>& inputs,
            ScalarBits& result) const {
    int64_t offset = 0;
    if (leaf.offset.valid() || leaf.mask.valid()) {
      const std::vector<ScalarBits> all = wick::evaluate(kernel_.expression, inputs);
      if (leaf.mask.valid() && !isTrue(all, leaf.mask)) return;
      if (leaf.offset.valid())
        offset = fromScalarBits<int64_t>(all[static_cast<size_t>(leaf.offset.id)]);
    }
    std::memcpy(&result, address(leaf.index, point) + offset, itemSize(leaf.type));
  }

  static ScalarBits identity(ReduceOp op, DType type) {
    return dispatch<kComputedDTypes>("kernel", type,
                                     [&]<class T>() { return toScalarBits(identityOf<T>(op)); });
  }

  static ScalarBits combine(ReduceOp op, DType type, ScalarBits x, ScalarBits y) {
    return dispatch<kComputedDTypes>("kernel", type, [&]<class T>() {
      return toScalarBits(loop::combine(op, fromScalarBits<T>(x), fromScalarBits<T>(y)));
    });
  }

  const Kernel& kernel_;
  std::span<const int64_t> sizes_;
  std::span<const Place> places_;
  std::span<const ScalarBits> numbers_;
  bool good_ = true;
};

}  // namespace

bool evaluate(const Kernel& kernel, std::span<const int64_t> sizes, std::span<const Place> places,
              std::span<const ScalarBits> numbers) {
  return Evaluator(kernel, sizes, places, numbers).run();
}

}  // namespace wick::loop
