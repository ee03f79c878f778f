// Each pass of the kernel's schedule is a stage; what it needs of earlier ones is loaded. Values
// that wait in the memory of an output are stored there by the stage that computes them.
#include "codegen/loop/split_rows.h"

#include <algorithm>

#include "codegen/loop/emission.h"
#include "codegen/loop/reduce_op.h"
#include "core/dtype_dispatch.h"
#include "core/error.h"

namespace wick::loop {

namespace {

using Place = RowStage::Place;

class StageMaker {
 public:
  StageMaker(const Kernel& whole, const Schedule& schedule, int pass)
      : whole_(whole),
        schedule_(schedule),
        pass_(pass),
        work_(workOf(whole, schedule, pass)),
        num_loads_(numLoads(whole)) {
    const auto& nodes = whole.expression.nodes();
    made_.resize(nodes.size());
    Kernel& kernel = stage_.kernel;
    kernel.rank = whole.rank;
    kernel.reduced = whole.reduced;
    kernel.numbers = whole.numbers;
    kernel.numbers.push_back({0, DType::Long, Number::Kind::Points});
    kernel.accesses.assign(whole.accesses.begin(),
                           whole.accesses.begin() + static_cast<int64_t>(num_loads_));
    for (uint32_t a = 0; a < num_loads_; ++a) places_.push_back({Place::Kind::Access, a});
  }

  // What the pass computes; of the one behind the last, what is stored once for each row.
  RowStage make() {
    std::vector<ScalarExpr> roots = work_.roots(whole_);
    for (const Store& store : whole_.stores) {
      if (store.per_row && pass_ == schedule_.passes) roots.push_back(store.value);
    }
    for (const Schedule::Waiting& w : schedule_.waiting) {
      if (schedule_.passOf(w.value) == pass_) roots.push_back(w.value);
    }
    needed_ = neededFor(whole_, roots, &schedule_, pass_);
    for (size_t i = 0; i < needed_.size(); ++i) {
      if (needed_[i]) made_[i] = clone(i);
    }
    store();
    stage_.places = std::move(places_);
    return std::move(stage_);
  }

 private:
  static size_t numLoads(const Kernel& kernel) {
    return kernel.accesses.size() - kernel.stores.size();
  }
  ScalarExpr made(ScalarExpr e) const { return e.valid() ? made_[static_cast<size_t>(e.id)] : e; }
  bool storesNow(const Store& store) const {
    return store.per_row ? pass_ == schedule_.passes : schedule_.passOf(store.value) == pass_;
  }
  ScalarExpr clone(size_t i) {
    if (const auto* w = schedule_.waitingFor({static_cast<int32_t>(i)}, pass_)) {
      const uint32_t access = whole_.stores[w->store].access;
      return load(whole_.accesses[access], {Place::Kind::Access, access});
    }
    ScalarNode node = whole_.expression.nodes()[i];
    if (node.op == ScalarOp::Input) return cloneLeaf(whole_.leaves[node.payload]);
    for (ScalarExpr& operand : node.operands) operand = made(operand);
    return stage_.kernel.expression.add(node);
  }
  ScalarExpr cloneLeaf(Leaf leaf) {
    Kernel& kernel = stage_.kernel;
    switch (leaf.kind) {
      case Leaf::Kind::Count: {
        const auto points = static_cast<uint32_t>(kernel.numbers.size() - 1);
        return kernel.expression.convert(kernel.leaf({Leaf::Kind::Number, points, DType::Long}),
                                         leaf.type);
      }
      case Leaf::Kind::Reduction:
        WICK_ASSERT(schedule_.pass_of_reduction[leaf.index] < pass_, "reduction {} in pass {}",
                    leaf.index, pass_);
        return load(perRow(leaf.type), {Place::Kind::Result, leaf.index});
      default:
        leaf.offset = made(leaf.offset);
        leaf.mask = made(leaf.mask);
        return kernel.leaf(leaf);
    }
  }
  // Accesses are told apart only by where they lie.
  ScalarExpr load(Access access, Place place) {
    access.argument = nextArgument();
    const auto index = static_cast<uint32_t>(places_.size());
    stage_.kernel.accesses.push_back(access);
    places_.push_back(place);
    return stage_.kernel.leaf({Leaf::Kind::Load, index, access.dtype});
  }
  uint32_t nextArgument() const { return static_cast<uint32_t>(places_.size()); }
  // One element for each row.
  Access perRow(DType type) const {
    Access access{nextArgument(), type, {}};
    for (int d = 0; d < kMaxRank; ++d) {
      const bool varies = d < whole_.rank && (whole_.reduced >> d & 1) == 0;
      access.dims[static_cast<size_t>(d)] = varies ? 0 : -1;
    }
    return access;
  }

  void store() {
    Kernel& kernel = stage_.kernel;
    for (ScalarExpr check : work_.checks) kernel.checks.push_back(made(check));
    const auto add = [&](ScalarExpr value, Access access, Place place, bool per_row) {
      access.argument = nextArgument();
      kernel.stores.push_back({value, static_cast<uint32_t>(places_.size()), per_row});
      kernel.accesses.push_back(access);
      places_.push_back(place);
    };
    for (const Schedule::Waiting& w : schedule_.waiting) {
      const uint32_t access = whole_.stores[w.store].access;
      if (schedule_.passOf(w.value) != pass_) continue;
      add(made(w.value), whole_.accesses[access], {Place::Kind::Access, access}, false);
    }
    for (const Store& store : whole_.stores) {
      if (!storesNow(store)) continue;
      add(made(store.value), whole_.accesses[store.access], {Place::Kind::Access, store.access},
          store.per_row);
    }
    for (const size_t r : work_.reductions) {
      const ScalarExpr operand = made(whole_.reductions[r].operand);
      const auto index = static_cast<uint32_t>(kernel.reductions.size());
      kernel.reductions.push_back({whole_.reductions[r].op, operand});
      const DType type = kernel.expression[operand].type;
      add(kernel.leaf({Leaf::Kind::Reduction, index, type}), perRow(type),
          {Place::Kind::Part, static_cast<uint32_t>(r)}, true);
    }
  }

  const Kernel& whole_;
  const Schedule& schedule_;
  const int pass_;
  const PassWork work_;
  const size_t num_loads_;
  RowStage stage_;
  std::vector<Place> places_;
  std::vector<bool> needed_;
  std::vector<ScalarExpr> made_;
};

}  // namespace

SplitRows splitRows(const Kernel& kernel) {
  const Schedule schedule = makeSchedule(kernel);
  SplitRows split;
  for (const Store& store : kernel.stores) split.ends_per_row |= store.per_row;
  for (int pass = 0; pass < schedule.passes + split.ends_per_row; ++pass) {
    split.stages.push_back(StageMaker(kernel, schedule, pass).make());
  }
  return split;
}

void combineParts(ReduceOp op, DType type, const void* parts, int64_t num_parts, int64_t rows,
                  void* result) {
  dispatchAll(type, [&]<class T>() {
    if constexpr (kIsComplex<T> || kIsReducedFloat<T>) {
      WICK_ASSERT(false, "a reduction in {}", wick::toString(type));
    } else {
      const T* from = static_cast<const T*>(parts);
      T* to = static_cast<T*>(result);
      std::copy_n(from, rows, to);
      for (int64_t i = rows; i < num_parts * rows; ++i) {
        T& total = to[i % rows];
        total = combine(op, total, from[i]);
      }
    }
  });
}

}  // namespace wick::loop
