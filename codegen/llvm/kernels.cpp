// A row is walked once for each pass of the kernel's schedule: full vectors, then one masked vector
// for the rest. What does not vary within a row is loaded in front of the passes. With lanes across
// rows a block of rows is walked element by element instead.
#include "codegen/llvm/kernels.h"

#include <fmt/format.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "codegen/llvm/scalar_emitter.h"
#include "codegen/loop/emission.h"
#include "codegen/loop/lane_order.h"

namespace wick::codegen {

namespace {

using llvm::Value;
using loop::Kernel;
using loop::KernelWords;
using loop::LaneLayout;
using loop::LaneStep;
using loop::Leaf;
using loop::ReduceOp;

unsigned lanesOf(const Kernel& kernel) {
  return loop::lanesOf(kernel, vectorBits());
}

// As LLVM's prefetches call the caches.
constexpr int kFirstCache = 3;
constexpr int kSecondCache = 2;

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, const std::string& name, const Kernel& kernel,
                const LaneLayout& layout)
      : kernel_(kernel),
        layout_(layout),
        schedule_(loop::makeSchedule(kernel)),
        lanes_(lanesOf(kernel)),
        b_(module.getContext()),
        function_(declare(module, name)),
        scalars_(b_, *function_, lanes_) {}

  void run() {
    llvm::LLVMContext& context = b_.getContext();
    planWaiting();
    findUniform();
    b_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function_));
    KernelWords words(kernel_);
    elements_ = word(KernelWords::kElements);
    Value* rows = word(KernelWords::kRows);
    for (size_t i = 0; i < kernel_.accesses.size(); ++i) {
      bases_.push_back(b_.CreateIntToPtr(word(KernelWords::base(i)), b_.getPtrTy()));
      row_steps_.push_back(word(KernelWords::rowStep(i)));
      element_steps_.push_back(word(KernelWords::elementStep(i)));
    }
    constexpr int64_t kShortRow = 16384;  // elements
    short_row_ = b_.CreateICmpSLE(elements_, b_.getInt64(kShortRow));
    points_ = elements_;
    for (size_t l = 0; l < static_cast<size_t>(layout_.nested); ++l) {
      nest_.push_back({word(words.nestCount(l)), {}});
      points_ = b_.CreateMul(points_, nest_.back().count);
      for (size_t i = 0; i < kernel_.accesses.size(); ++i) {
        nest_.back().steps.push_back(word(words.nestStep(l, i)));
      }
    }
    for (size_t i = 0; i < kernel_.numbers.size(); ++i) {
      numbers_.push_back(number(word(words.numbers + i), kernel_.numbers[i].type));
    }
    for (const loop::Reduction& reduction : kernel_.reductions) {
      DType type = kernel_.expression[reduction.operand].type;
      accumulators_.emplace_back();
      for (Value*& a : accumulators_.back()) a = b_.CreateAlloca(scalars_.vectorType(type));
    }
    if (!kernel_.checks.empty()) {
      bad_ = b_.CreateAlloca(b_.getInt1Ty());
      b_.CreateStore(b_.getFalse(), bad_);
    }
    nothing_ = b_.CreateAlloca(b_.getInt64Ty());
    b_.CreateStore(b_.getInt64(0), nothing_);
    // From here on blocks follow; the entry keeps room for what calls need.
    auto* start = llvm::BasicBlock::Create(context, "start", function_);
    b_.CreateBr(start);
    b_.SetInsertPoint(start);
    if (!layout_.across_rows) {
      forRange(b_.getInt64(0), rows, 1, [&](Value* r) { row(r, nullptr); });
    } else {
      Value* full = b_.CreateSub(rows, b_.CreateURem(rows, b_.getInt64(lanes_)));
      forRange(b_.getInt64(0), full, lanes_, [&](Value* r) { row(r, nullptr); });
      ifAny(full, rows, [&](Value* mask) { row(full, mask); });
    }
    if (bad_) report(word(words.flag));
    b_.CreateRetVoid();
  }

 private:
  using Values = std::map<int32_t, Value*>;

  // A loop over pieces of rows.
  struct Loop {
    Value* count;
    std::vector<Value*> steps;  // of each access
  };

  static llvm::Function* declare(llvm::Module& module, const std::string& name) {
    llvm::LLVMContext& context = module.getContext();
    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                         {llvm::PointerType::get(context, 0)}, false);
    return llvm::Function::Create(type, llvm::Function::ExternalLinkage, name, module);
  }

  Value* word(size_t i) {
    Value* at = b_.CreateConstGEP1_64(b_.getInt64Ty(), function_->getArg(0), i);
    return b_.CreateLoad(b_.getInt64Ty(), at);
  }
  // A vector that is the number everywhere.
  Value* number(Value* bits, DType type) {
    llvm::Type* memory = scalars_.memoryType(type);
    unsigned width = memory->getScalarSizeInBits();
    Value* v = b_.CreateTrunc(bits, b_.getIntNTy(width));
    if (memory->isFloatingPointTy()) v = b_.CreateBitCast(v, memory);
    return scalars_.fromMemory(b_.CreateVectorSplat(lanes_, v), type);
  }

  // Says that a check did not hold, which several threads may do.
  void report(Value* flag) {
    llvm::LLVMContext& context = b_.getContext();
    auto* some = llvm::BasicBlock::Create(context, "failed", function_);
    auto* after = llvm::BasicBlock::Create(context, "checked", function_);
    b_.CreateCondBr(b_.CreateLoad(b_.getInt1Ty(), bad_), some, after);
    b_.SetInsertPoint(some);
    Value* at = b_.CreateIntToPtr(flag, b_.getPtrTy());
    auto* store = b_.CreateAlignedStore(b_.getInt64(1), at, llvm::Align(8));
    store->setAtomic(llvm::AtomicOrdering::Monotonic);
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }

  // Which nodes are the same in all lanes.
  void findUniform() {
    const auto& nodes = kernel_.expression.nodes();
    uniform_.resize(nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
      bool same = true;
      if (nodes[i].op == ScalarOp::Input) {
        const Leaf& leaf = kernel_.leaves[nodes[i].payload];
        if (leaf.kind == Leaf::Kind::Load || leaf.kind == Leaf::Kind::Index) {
          same = layout_.steps[leaf.index] == LaneStep::Zero;
        } else if (leaf.kind == Leaf::Kind::Reduction) {
          same = !layout_.across_rows;
        }
      }
      std::array<ScalarExpr, 3> operands;
      const size_t n = kernel_.operandsOf({static_cast<int32_t>(i)}, operands);
      for (size_t k = 0; k < n; ++k) same = same && isUniform(operands[k]);
      uniform_[i] = same;
    }
  }
  bool isUniform(ScalarExpr e) const { return uniform_[static_cast<size_t>(e.id)]; }

  // Calls body(i) in a loop over begin, begin + step, … below end, which is begin plus a multiple.
  void forRange(Value* begin, Value* end, unsigned step, const std::function<void(Value*)>& body) {
    llvm::LLVMContext& context = b_.getContext();
    llvm::BasicBlock* before = b_.GetInsertBlock();
    auto* loop = llvm::BasicBlock::Create(context, "loop", function_);
    auto* after = llvm::BasicBlock::Create(context, "after", function_);
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), loop, after);
    b_.SetInsertPoint(loop);
    llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
    i->addIncoming(begin, before);
    body(i);
    Value* next = b_.CreateAdd(i, b_.getInt64(step));
    i->addIncoming(next, b_.GetInsertBlock());
    b_.CreateCondBr(b_.CreateICmpSLT(next, end), loop, after);
    b_.SetInsertPoint(after);
  }

  // Calls body(mask) for the lanes begin … end - 1 when there are any.
  void ifAny(Value* begin, Value* end, const std::function<void(Value*)>& body) {
    llvm::LLVMContext& context = b_.getContext();
    auto* some = llvm::BasicBlock::Create(context, "rest", function_);
    auto* after = llvm::BasicBlock::Create(context, "done", function_);
    b_.CreateCondBr(b_.CreateICmpSLT(begin, end), some, after);
    b_.SetInsertPoint(some);
    Value* left = b_.CreateTrunc(b_.CreateSub(end, begin), b_.getInt32Ty());
    body(b_.CreateICmpULT(iota(b_.getInt32Ty()), b_.CreateVectorSplat(lanes_, left)));
    b_.CreateBr(after);
    b_.SetInsertPoint(after);
  }
  Value* iota(llvm::Type* type) {
    std::vector<llvm::Constant*> lanes;
    for (unsigned i = 0; i < lanes_; ++i) lanes.push_back(llvm::ConstantInt::get(type, i));
    return llvm::ConstantVector::get(lanes);
  }

  // One row, or with lanes across rows the block of rows that begins there; `mask`: which of them
  // there are.
  void row(Value* first, Value* mask) {
    row_values_.clear();
    row_bases_.clear();
    for (size_t i = 0; i < bases_.size(); ++i) {
      row_bases_.push_back(
          b_.CreateGEP(b_.getInt8Ty(), bases_[i], b_.CreateMul(first, row_steps_[i])));
    }
    piece_bases_ = row_bases_;
    for (int pass = 0; pass < schedule_.passes; ++pass) onePass(pass, mask);
    loadRowValues();
    Values values = row_values_;
    // All are computed before the first is stored, as in passes.
    std::vector<std::pair<uint32_t, Value*>> stored;
    for (const loop::Store& store : kernel_.stores) {
      if (store.per_row) {
        stored.emplace_back(store.access, valueOf(store.value, values, nullptr, mask));
      }
    }
    for (const auto& [access, v] : stored) {
      if (layout_.across_rows) {
        storeVector(access, row_bases_[access], v, mask);
      } else {
        DType type = kernel_.accesses[access].dtype;
        Value* one = b_.CreateExtractElement(scalars_.toMemory(v, type), uint64_t{0});
        b_.CreateAlignedStore(one, row_bases_[access], alignment(type));
      }
    }
  }

  void planWaiting() {
    for (const loop::Schedule::Waiting& w : schedule_.waiting) {
      const uint32_t access = kernel_.stores[w.store].access;
      // Going to memory lane by lane costs more than computing once more.
      if (layout_.steps[access] != LaneStep::Unit && layout_.steps[access] != LaneStep::Zero) {
        continue;
      }
      waiting_.emplace(w.value.id, access);
    }
  }
  int passOf(int32_t node) const { return schedule_.passOf({node}); }

  // The nodes that vary and that the stores are computed from, operands first, where most of them are
  // one chain that is too long for the processor to look beyond it; empty otherwise.
  std::vector<int32_t> longChain(const std::vector<const loop::Store*>& stores) {
    constexpr size_t kLong = 40;
    if (layout_.across_rows || schedule_.passes != 1) return {};
    const auto& nodes = kernel_.expression.nodes();
    std::vector<ScalarExpr> roots;
    for (const loop::Store* store : stores) roots.push_back(store->value);
    const std::vector<bool> needed = loop::neededFor(kernel_, roots);
    std::array<ScalarExpr, 3> operands;
    std::vector<int32_t> found;
    std::vector<size_t> depth(nodes.size());
    size_t deepest = 0;
    for (size_t n = 0; n < nodes.size(); ++n) {
      const auto id = static_cast<int32_t>(n);
      if (!needed[n] || row_values_.count(id) != 0) continue;
      if (nodes[n].op == ScalarOp::Call) return {};
      found.push_back(id);
      const size_t count = kernel_.operandsOf({id}, operands);
      for (size_t k = 0; k < count; ++k) {
        depth[n] = std::max(depth[n], depth[static_cast<size_t>(operands[k].id)] + 1);
      }
      deepest = std::max(deepest, depth[n]);
    }
    if (deepest < kLong || 2 * deepest < found.size()) return {};
    return found;
  }

  // Operations that wait for each other leave the processor with little to do; so several vectors are
  // computed side by side, node by node.
  static constexpr unsigned kSideBySide = 4;
  void sideBySide(const std::vector<int32_t>& chain, const std::vector<const loop::Store*>& stores,
                  Value* i) {
    std::array<Values, kSideBySide> values;
    std::array<Value*, kSideBySide> at;
    for (unsigned c = 0; c < kSideBySide; ++c) {
      values[c] = row_values_;
      at[c] = b_.CreateAdd(i, b_.getInt64(lanes_ * c));
    }
    for (const int32_t node : chain) {
      for (unsigned c = 0; c < kSideBySide; ++c) valueOf({node}, values[c], at[c], nullptr);
    }
    for (unsigned c = 0; c < kSideBySide; ++c) {
      for (const loop::Store* store : stores) {
        storeVector(store->access, elementAt(store->access, at[c]), values[c].at(store->value.id),
                    nullptr);
      }
    }
  }

  void onePass(int pass, Value* row_mask) {
    pass_ = pass;
    loop::PassWork work = loop::workOf(kernel_, schedule_, pass);
    if (work.empty()) return;
    const std::vector<size_t>& reductions = work.reductions;
    const std::vector<const loop::Store*>& stores = work.stores;
    std::vector<ScalarExpr>& checks = work.checks;
    loadRowValues();
    const unsigned chains = loop::chainsOf(kernel_, schedule_, pass, reductions.size());
    for (size_t r : reductions) {
      for (unsigned c = 0; c < chains; ++c) b_.CreateStore(identity(r), accumulators_[r][c]);
    }
    auto require = [&](ScalarExpr check, Values& values, Value* i, Value* mask) {
      Value* wrong = b_.CreateNot(valueOf(check, values, i, mask));
      if (mask) wrong = b_.CreateAnd(wrong, mask);
      Value* before = b_.CreateLoad(b_.getInt1Ty(), bad_);
      b_.CreateStore(b_.CreateOr(before, b_.CreateOrReduce(wrong)), bad_);
    };
    if (!layout_.across_rows) {
      // Once for the row is enough.
      const auto once = [&](ScalarExpr check) {
        return isUniform(check) &&
               (nest_.empty() || !schedule_.varies[static_cast<size_t>(check.id)]);
      };
      for (ScalarExpr check : checks) {
        if (once(check)) require(check, row_values_, nullptr, nullptr);
      }
      std::erase_if(checks, once);
    }
    auto body = [&](Value* i, Value* mask, unsigned chain = 0) {
      Values values = row_values_;
      if (!mask) askAhead(i);
      for (ScalarExpr check : checks) require(check, values, i, mask);
      for (size_t r : reductions) {
        Value* v = valueOf(kernel_.reductions[r].operand, values, i, mask);
        // Lanes of rows that do not exist may hold anything.
        if (mask && !layout_.across_rows) v = b_.CreateSelect(mask, v, identity(r));
        Value* old = b_.CreateLoad(v->getType(), accumulators_[r][chain]);
        b_.CreateStore(combine(r, old, v), accumulators_[r][chain]);
      }
      // All are computed before the first is stored: it may lie where another is computed from.
      std::vector<std::pair<uint32_t, Value*>> stored;
      for (const auto& [node, access] : waiting_) {
        if (passOf(node) != pass) continue;
        stored.emplace_back(access, valueOf({node}, values, i, mask));
      }
      for (const loop::Store* store : stores) {
        stored.emplace_back(store->access, valueOf(store->value, values, i, mask));
      }
      for (const auto& [access, v] : stored) storeVector(access, elementAt(access, i), v, mask);
    };
    const std::vector<int32_t> chain =
        reductions.empty() && checks.empty() ? longChain(stores) : std::vector<int32_t>();
    const unsigned together = chain.empty() ? chains : kSideBySide;
    const unsigned step = layout_.across_rows ? 1 : lanes_;
    Value* full = b_.CreateSub(elements_, b_.CreateURem(elements_, b_.getInt64(step)));
    Value* some = b_.CreateSub(full, b_.CreateURem(full, b_.getInt64(step * together)));
    forPieces(nest_.size(), row_bases_, [&] {
      Value* begin = b_.getInt64(0);
      if (together > 1) {
        forRange(begin, some, step * together, [&](Value* i) {
          if (!chain.empty()) return sideBySide(chain, stores, i);
          for (unsigned c = 0; c < chains; ++c) {
            body(b_.CreateAdd(i, b_.getInt64(step * c)), row_mask, c);
          }
        });
        begin = some;
      }
      forRange(begin, full, step, [&](Value* i) { body(i, row_mask); });
      if (!layout_.across_rows) ifAny(full, elements_, [&](Value* mask) { body(full, mask); });
    });
    for (size_t r : reductions) {
      DType type = kernel_.expression[kernel_.reductions[r].operand].type;
      Value* v = b_.CreateLoad(scalars_.vectorType(type), accumulators_[r][0]);
      for (unsigned c = 1; c < chains; ++c) {
        v = combine(r, v, b_.CreateLoad(v->getType(), accumulators_[r][c]));
      }
      results_[r] = layout_.across_rows ? v : b_.CreateVectorSplat(lanes_, horizontal(r, v));
    }
    for (size_t i = 0; i < kernel_.expression.nodes().size(); ++i) {
      const ScalarNode& node = kernel_.expression.nodes()[i];
      if (node.op != ScalarOp::Input) continue;
      const Leaf& leaf = kernel_.leaves[node.payload];
      if (leaf.kind != Leaf::Kind::Reduction) continue;
      if (auto it = results_.find(leaf.index); it != results_.end()) {
        row_values_[static_cast<int32_t>(i)] = it->second;
      }
    }
    results_.clear();
  }

  // Calls f for each piece of the row: `bases` are those of the part that the innermost `loops`
  // loops walk over.
  void forPieces(size_t loops, std::vector<Value*> bases, const std::function<void()>& f) {
    if (loops == 0) {
      piece_bases_ = std::move(bases);
      return f();
    }
    const Loop& loop = nest_[loops - 1];
    forRange(b_.getInt64(0), loop.count, 1, [&](Value* i) {
      std::vector<Value*> inner;
      for (size_t a = 0; a < bases.size(); ++a) {
        inner.push_back(b_.CreateGEP(b_.getInt8Ty(), bases[a], b_.CreateMul(i, loop.steps[a])));
      }
      forPieces(loops - 1, std::move(inner), f);
    });
    piece_bases_ = row_bases_;
  }
  // Whether the access is at the same element for a whole row: all lanes are, and all pieces.
  bool isOfRow(uint32_t access) const {
    if (layout_.across_rows || layout_.steps[access] != LaneStep::Zero) return false;
    for (int d = 0; !nest_.empty() && d < kernel_.rank; ++d) {
      if ((kernel_.reduced >> d & 1) != 0 && kernel_.accesses[access].varies(d)) return false;
    }
    return true;
  }

  // Leaves that are the same for a whole row, or for all of them.
  void loadRowValues() {
    for (size_t i = 0; i < kernel_.expression.nodes().size(); ++i) {
      const ScalarNode& node = kernel_.expression.nodes()[i];
      const auto id = static_cast<int32_t>(i);
      if (node.op != ScalarOp::Input || row_values_.count(id) != 0) continue;
      const Leaf& leaf = kernel_.leaves[node.payload];
      if (leaf.kind == Leaf::Kind::Number) {
        row_values_[id] = numbers_[leaf.index];
      } else if (leaf.kind == Leaf::Kind::Count) {
        Value* n = b_.CreateVectorSplat(lanes_, points_);
        row_values_[id] = scalars_.convert(n, DType::Long, leaf.type);
      } else if (leaf.kind == Leaf::Kind::Index && isOfRow(leaf.index)) {
        row_values_[id] = placeOf(leaf.index, nullptr);
      } else if (leaf.kind == Leaf::Kind::Load && !leaf.offset.valid() && !leaf.mask.valid() &&
                 isOfRow(leaf.index)) {
        // A row without elements may lie nowhere.
        Value* const some = b_.CreateICmpNE(points_, b_.getInt64(0));
        row_values_[id] =
            splatLoad(leaf.index, b_.CreateSelect(some, row_bases_[leaf.index], nothing_));
      }
    }
  }

  llvm::Align alignment(DType type) const { return llvm::Align(itemSize(type)); }
  Value* splatLoad(uint32_t access, Value* at) {
    DType type = kernel_.accesses[access].dtype;
    Value* one = b_.CreateAlignedLoad(scalars_.memoryType(type), at, alignment(type));
    return scalars_.fromMemory(b_.CreateVectorSplat(lanes_, one), type);
  }
  // The address of element i of the piece of the row.
  Value* elementAt(uint32_t access, Value* i) {
    if (!layout_.across_rows && layout_.steps[access] == LaneStep::Unit) {
      return b_.CreateGEP(scalars_.memoryType(kernel_.accesses[access].dtype), piece_bases_[access],
                          i);
    }
    return b_.CreateGEP(b_.getInt8Ty(), piece_bases_[access],
                        b_.CreateMul(i, element_steps_[access]));
  }
  // The positions of points, which stand where other accesses have addresses.
  Value* placeOf(uint32_t access, Value* i) {
    Value* base = i ? piece_bases_[access] : row_bases_[access];
    Value* first = b_.CreatePtrToInt(base, b_.getInt64Ty());
    if (i) first = b_.CreateAdd(first, b_.CreateMul(i, element_steps_[access]));
    Value* places = b_.CreateVectorSplat(lanes_, first);
    if (layout_.steps[access] == LaneStep::Zero) return places;
    Value* step = layout_.across_rows ? row_steps_[access] : element_steps_[access];
    Value* each = layout_.steps[access] == LaneStep::Unit
                      ? iota(b_.getInt64Ty())
                      : b_.CreateMul(iota(b_.getInt64Ty()), b_.CreateVectorSplat(lanes_, step));
    return b_.CreateAdd(places, each);
  }
  // The addresses of lanes that are not neighbours.
  Value* laneAddresses(uint32_t access, Value* at) {
    Value* step = layout_.across_rows ? row_steps_[access] : element_steps_[access];
    Value* offsets = b_.CreateMul(iota(b_.getInt64Ty()), b_.CreateVectorSplat(lanes_, step));
    return b_.CreateGEP(b_.getInt8Ty(), at, offsets);
  }

  // With lanes across rows the next element lies in another row of the tensor, where the processor
  // does not look by itself: asks for a vector some elements ahead, which need not be there. Into
  // the second cache: rows that lie a power of two apart would drive each other out of the few
  // lines that they share in the first.
  void prefetch(uint32_t access, Value* at) {
    constexpr int kAhead = 16;
    if (!layout_.across_rows || layout_.steps[access] != LaneStep::Unit) return;
    Value* ahead =
        b_.CreateGEP(b_.getInt8Ty(), at, b_.CreateMul(element_steps_[access], b_.getInt64(kAhead)));
    askFor(access, ahead, /*to_write=*/false, kSecondCache);
  }
  void askFor(uint32_t access, Value* at, bool to_write, int cache = kFirstCache) {
    constexpr size_t kLine = 64;
    for (size_t byte = 0; byte < lanes_ * itemSize(kernel_.accesses[access].dtype); byte += kLine) {
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()},
                         {b_.CreateConstGEP1_64(b_.getInt8Ty(), at, byte), b_.getInt32(to_write),
                          b_.getInt32(cache), b_.getInt32(1)});
    }
  }
  // Of several passes over a row only the first waits for memory, and the one that writes. So that
  // memory works while the others compute, the first asks for what will be written, and the last
  // but one for the next row. Rows that do not stay in the cache until then are left alone: their
  // threads ask for the addresses at which the row begins.
  void askAhead(Value* i) {
    if (layout_.across_rows || schedule_.passes < 2) return;
    Value* place = b_.CreateSelect(short_row_, i, b_.getInt64(0));
    std::set<uint32_t> asked;
    if (pass_ == 0) {
      for (const loop::Store& store : kernel_.stores) {
        if (store.per_row || layout_.steps[store.access] != LaneStep::Unit) continue;
        if (!asked.insert(store.access).second) continue;
        askFor(store.access, elementAt(store.access, place), /*to_write=*/true);
      }
    }
    if (pass_ != schedule_.passes - 2) return;
    for (const Leaf& leaf : kernel_.leaves) {
      if (leaf.kind != Leaf::Kind::Load || leaf.offset.valid() || leaf.mask.valid()) continue;
      if (layout_.steps[leaf.index] != LaneStep::Unit || !asked.insert(leaf.index).second) continue;
      Value* step = b_.CreateSelect(short_row_, row_steps_[leaf.index], b_.getInt64(0));
      askFor(leaf.index, b_.CreateGEP(b_.getInt8Ty(), elementAt(leaf.index, place), step),
             /*to_write=*/false);
    }
  }
  Value* loadVector(uint32_t access, Value* at, Value* mask) {
    DType type = kernel_.accesses[access].dtype;
    auto* memory = llvm::FixedVectorType::get(scalars_.memoryType(type), lanes_);
    Value* nothing = llvm::Constant::getNullValue(memory);
    switch (layout_.steps[access]) {
      case LaneStep::Zero:
        return splatLoad(access, at);
      case LaneStep::Unit: {
        Value* v = mask ? b_.CreateMaskedLoad(memory, at, alignment(type), mask, nothing)
                        : static_cast<Value*>(b_.CreateAlignedLoad(memory, at, alignment(type)));
        return scalars_.fromMemory(v, type);
      }
      case LaneStep::Reverse: {
        std::vector<int> turned(lanes_);
        for (unsigned i = 0; i < lanes_; ++i) turned[i] = static_cast<int>(lanes_ - 1 - i);
        Value* first = b_.CreateConstGEP1_64(
            scalars_.memoryType(type), at, static_cast<uint64_t>(1 - static_cast<int64_t>(lanes_)));
        Value* exist = mask ? b_.CreateShuffleVector(mask, turned) : nullptr;
        Value* v = mask ? b_.CreateMaskedLoad(memory, first, alignment(type), exist, nothing)
                        : static_cast<Value*>(b_.CreateAlignedLoad(memory, first, alignment(type)));
        return scalars_.fromMemory(b_.CreateShuffleVector(v, turned), type);
      }
      case LaneStep::Other:
        break;
    }
    return gather(access, laneAddresses(access, at), mask);
  }
  void storeVector(uint32_t access, Value* at, Value* v, Value* mask) {
    DType type = kernel_.accesses[access].dtype;
    v = scalars_.toMemory(v, type);
    if (layout_.steps[access] != LaneStep::Unit) {
      Value* which = mask ? mask : llvm::ConstantInt::getTrue(maskType());
      b_.CreateMaskedScatter(v, laneAddresses(access, at), alignment(type), which);
    } else if (mask) {
      b_.CreateMaskedStore(v, at, alignment(type), mask);
    } else {
      b_.CreateAlignedStore(v, at, alignment(type));
    }
  }
  llvm::Type* maskType() { return llvm::FixedVectorType::get(b_.getInt1Ty(), lanes_); }

  // The value of a node for element i of the row; `values` has what is known already.
  Value* valueOf(ScalarExpr e, Values& values, Value* i, Value* mask) {
    const auto waits = [&](ScalarExpr node) {
      const auto it = waiting_.find(node.id);
      if (!i || it == waiting_.end() || !schedule_.waitingFor(node, pass_)) return false;
      values[node.id] = loadVector(it->second, elementAt(it->second, i), mask);
      return true;
    };
    loop::addValue(values, kernel_, e, waits,
                   [&](ScalarExpr id, std::span<const ScalarExpr> operands) {
                     const ScalarNode& node = kernel_.expression[id];
                     std::vector<Value*> in;
                     std::vector<DType> types;
                     for (const ScalarExpr operand : operands) {
                       in.push_back(values.at(operand.id));
                       types.push_back(kernel_.expression[operand].type);
                     }
                     values[id.id] = node.op == ScalarOp::Input
                                         ? leafValue(kernel_.leaves[node.payload], values, i, mask)
                                         : scalars_.emit(node, in, types);
                   });
    return values[e.id];
  }

  Value* leafValue(const Leaf& leaf, const Values& values, Value* i, Value* mask) {
    if (leaf.kind == Leaf::Kind::Index) return placeOf(leaf.index, i);
    if (leaf.kind != Leaf::Kind::Load) throw CodegenError("a value that no earlier pass computed");
    Value* at = i ? elementAt(leaf.index, i) : row_bases_[leaf.index];
    if (!leaf.offset.valid() && !leaf.mask.valid()) {
      if (i) prefetch(leaf.index, at);
      return loadVector(leaf.index, at, mask);
    }
    Value* exists = leaf.mask.valid() ? values.at(leaf.mask.id) : nullptr;
    Value* which = exists && mask ? b_.CreateAnd(exists, mask) : exists ? exists : mask;
    const LaneStep step = layout_.steps[leaf.index];
    if (leaf.offset.valid() && !isUniform(leaf.offset)) {
      Value* lanes = step == LaneStep::Zero ? at : laneAddresses(leaf.index, at);
      return gather(leaf.index, b_.CreateGEP(b_.getInt8Ty(), lanes, values.at(leaf.offset.id)),
                    which);
    }
    if (leaf.offset.valid()) {
      Value* offset = b_.CreateExtractElement(values.at(leaf.offset.id), uint64_t{0});
      at = b_.CreateGEP(b_.getInt8Ty(), at, offset);
    }
    if (step != LaneStep::Zero || !exists) return loadVector(leaf.index, at, which);
    // One element for all lanes, which may not be there.
    Value* v = splatLoad(leaf.index, b_.CreateSelect(b_.CreateOrReduce(which), at, nothing_));
    return b_.CreateSelect(exists, v, llvm::Constant::getNullValue(v->getType()));
  }
  Value* gather(uint32_t access, Value* addresses, Value* which) {
    DType type = kernel_.accesses[access].dtype;
    auto* memory = llvm::FixedVectorType::get(scalars_.memoryType(type), lanes_);
    if (!which) which = llvm::ConstantInt::getTrue(maskType());
    Value* nothing = llvm::Constant::getNullValue(memory);
    Value* v = b_.CreateMaskedGather(memory, addresses, alignment(type), which, nothing);
    return scalars_.fromMemory(v, type);
  }

  Value* identity(size_t r) {
    const loop::Reduction& reduction = kernel_.reductions[r];
    const DType type = kernel_.expression[reduction.operand].type;
    return scalars_.constant(loop::identityNode(reduction.op, type));
  }

  // On vectors of any width.
  Value* combine(size_t r, Value* a, Value* c) {
    const loop::Reduction& reduction = kernel_.reductions[r];
    DType type = kernel_.expression[reduction.operand].type;
    bool is_float = isFloating(type);
    switch (reduction.op) {
      case ReduceOp::Sum:
        return is_float ? b_.CreateFAdd(a, c) : b_.CreateAdd(a, c);
      case ReduceOp::Prod:
        return is_float ? b_.CreateFMul(a, c) : b_.CreateMul(a, c);
      case ReduceOp::Any:
        return b_.CreateOr(a, c);
      case ReduceOp::All:
        return b_.CreateAnd(a, c);
      default:
        break;
    }
    bool max = reduction.op == ReduceOp::Max;
    Value* x = max ? c : a;
    Value* y = max ? a : c;
    Value* keep = is_float              ? b_.CreateFCmpOLT(x, y)
                  : type == DType::Byte ? b_.CreateICmpULT(x, y)
                                        : b_.CreateICmpSLT(x, y);
    if (is_float) keep = b_.CreateOr(b_.CreateFCmpUNO(a, a), keep);
    return b_.CreateSelect(keep, a, c);
  }
  // All lanes combined: halves, quarters, and so on.
  Value* horizontal(size_t r, Value* v) {
    for (unsigned width = lanes_ / 2; width > 0; width /= 2) {
      std::vector<int> low, high;
      for (unsigned i = 0; i < width; ++i) {
        low.push_back(static_cast<int>(i));
        high.push_back(static_cast<int>(i + width));
      }
      v = combine(r, b_.CreateShuffleVector(v, low), b_.CreateShuffleVector(v, high));
    }
    return b_.CreateExtractElement(v, uint64_t{0});
  }

  const Kernel& kernel_;
  const LaneLayout& layout_;
  const loop::Schedule schedule_;
  const unsigned lanes_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_;
  ScalarEmitter scalars_;
  Value* elements_ = nullptr;
  Value* short_row_ = nullptr;  // whether some rows fit into the caches
  Value* points_ = nullptr;     // of a row, all its pieces together
  std::vector<Loop> nest_;      // the innermost first
  std::vector<Value*> bases_;
  std::vector<Value*> row_steps_;
  std::vector<Value*> element_steps_;
  std::vector<Value*> numbers_;
  std::vector<std::array<Value*, loop::kMaxChains>> accumulators_;  // of each reduction
  std::vector<Value*> row_bases_;
  std::vector<Value*> piece_bases_;      // where elements are counted from
  Values row_values_;                    // by node
  std::map<uint32_t, Value*> results_;   // by reduction
  std::vector<bool> uniform_;            // by node
  Value* bad_ = nullptr;                 // whether a check did not hold
  Value* nothing_ = nullptr;             // zeros
  std::map<int32_t, uint32_t> waiting_;  // by node: the access in whose memory it waits
  int pass_ = 0;
};

// Old objects of the disk cache call functions too, so they are defined before code is asked for.
void defineFunctions(const Kernel& kernel) {
  for (const ScalarNode& node : kernel.expression.nodes()) {
    if (node.op != ScalarOp::Call) continue;
    const void* address = functionAddress(node.function, node.type);
    if (!address) {
      throw CodegenError(
          fmt::format("no function {} of {}", toString(node.function), toString(node.type)));
    }
    defineSymbol(functionSymbol(node.function, node.type), address);
  }
}

}  // namespace

CodeRequest kernelRequest(std::string name, const Kernel& kernel, const loop::LaneLayout& layout) {
  defineFunctions(kernel);
  std::string content = fmt::format("{} {}\nlanes {} {}", name, loop::toString(kernel),
                                    lanesOf(kernel), layout.across_rows ? "across" : "within");
  if (layout.nested > 0) content += fmt::format(" nested {}", layout.nested);
  for (loop::LaneStep step : layout.steps) content += fmt::format(" {}", static_cast<int>(step));
  auto emit = [name, kernel, layout](llvm::Module& module) {
    KernelEmitter(module, name, kernel, layout).run();
  };
  return {name, std::move(content), std::move(emit), Optimization::Light};
}

}  // namespace wick::codegen
