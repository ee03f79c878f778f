#include "passes/stride_uses.h"

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

constexpr int kMaxDepth = 8;
constexpr size_t kMaxUsers = 32;

// Read elements and make results of their own, contiguous or in the order of the operand's
// dimensions.
bool computes(const Node* n) {
  static const std::unordered_set<Symbol> kKinds =
      atenSymbols({"matmul",     "mm",
                   "bmm",        "addmm",
                   "baddbmm",    "linear",
                   "softmax",    "log_softmax",
                   "layer_norm", "gelu",
                   "cat",        "stack",
                   "sum",        "mean",
                   "amax",       "amin",
                   "max",        "min",
                   "contiguous", "clamp",
                   "elu",        "scaled_dot_product_attention",
                   "dropout"});
  const Operator* op = n->maybeOperator();
  return op && op->form() == Operator::Form::Base &&
         (op->record().scalar || kKinds.count(n->kind()) != 0) && n->kind() != aten::dropout;
}

// Views that exist whatever the strides are, and copies if they do not.
bool isFreeView(const Node* n) {
  static const Symbol kReshape = Symbol::aten("reshape"), kUnsqueeze = Symbol::aten("unsqueeze");
  return has(n, kMovesElements) || n->kind() == kReshape || n->kind() == kUnsqueeze;
}

// view(x, sizes) that leaves all dimensions but the last as they are.
bool splitsLastDim(const Node* n) {
  static const Symbol kView = Symbol::aten("view");
  if (n->kind() != kView || n->inputs().size() != 2) return false;
  const TensorFacts* facts = factsOf(n->input(0));
  std::optional<std::vector<SizeArgument>> wanted = sizeArguments(n->input(1));
  if (!facts || !facts->sizes || facts->sizes->empty() || !wanted) return false;
  size_t leading = facts->sizes->size() - 1;
  if (wanted->size() < leading + 1) return false;
  for (size_t i = 0; i < leading; ++i) {
    const SizeArgument& s = (*wanted)[i];
    if (s.is_minus_one || !s.size || s.size != (*facts->sizes)[i]) return false;
  }
  return true;
}

bool isByElement(const Node* n) {
  const Operator* op = n->maybeOperator();
  return op && op->form() == Operator::Form::Base && op->record().scalar;
}

bool tolerates(const Value* v, int depth) {
  if (depth > kMaxDepth || v->uses().size() > kMaxUsers) return false;
  return std::all_of(v->uses().begin(), v->uses().end(), [&](const Use& use) {
    const Node* n = use.user;
    if (!n->blocks().empty()) return false;
    if (n->kind() == aten::size || n->kind() == aten::dim) return true;
    if (n->kind() == prim::ListConstruct || n->kind() == prim::ListUnpack || isFreeView(n) ||
        splitsLastDim(n)) {
      return std::all_of(n->outputs().begin(), n->outputs().end(),
                         [&](const Value* out) { return tolerates(out, depth + 1); });
    }
    return computes(n);
  });
}

}  // namespace

bool toleratesLongerRows(const Value* v) {
  return tolerates(v, 0);
}

bool isReadByElement(const Value* v) {
  return std::ranges::all_of(v->uses(), [](const Use& use) { return isByElement(use.user); });
}

bool liesDensely(const Value* v) {
  if (isByElement(v->node())) return true;
  const TensorFacts* facts = factsOf(v);
  if (!facts || !facts->sizes || !facts->strides) return false;
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride and size
  for (size_t d = 0; d < facts->sizes->size(); ++d) {
    const std::optional<int64_t>& size = (*facts->sizes)[d];
    if (!size || *size < 0) return false;
    if (*size != 1) dims.emplace_back((*facts->strides)[d], *size);
  }
  std::ranges::sort(dims);
  int64_t reach = 1;
  for (const auto& [stride, size] : dims) {
    if (stride != reach || __builtin_mul_overflow(reach, size, &reach)) return false;
  }
  return true;
}

}  // namespace wick
