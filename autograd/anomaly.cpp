// Where forward calls stand comes from the observer of runs: it is told of each operator when it
// has run, and gives its place to all nodes that were recorded since the operator before. Operators
// that formulas and decompositions call run inside of another one, which comes last and is the one
// that the program's text names; they have places in texts of ours, and are left to it.
#include "autograd/anomaly.h"

#include "autograd/tape.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "core/source_origin.h"
#include "runtime/interpreter/observer.h"
#include "runtime/ops/common_calls.h"

namespace wick::autograd {

namespace {

constinit thread_local bool detects = false;
constinit thread_local bool checks_nan = false;
// Nodes whose calls have not been reported yet, of this thread.
thread_local std::vector<Ref<Node>> unplaced;

class Placing : public OperatorObserver {
 public:
  void called(const OperatorCall& call) override {
    if (unplaced.empty()) return;
    const SourceRange& range = call.node.range();
    if (!range.valid() || isInEngine(range)) return;
    for (const Ref<Node>& node : unplaced) node->setPlace(range);
    unplaced.clear();
  }
};

std::string forwardCall(const Node& node) {
  const SourceRange range = node.place();
  if (!range.valid()) return "";
  return fmt::format("\nThe forward call that led to it is here:\n{}", range.highlight());
}

bool hasNaN(const Tensor& t) {
  if (!t.defined() || t.numel() == 0 || !(isFloating(t.dtype()) || isComplex(t.dtype()))) {
    return false;
  }
  const BelowRecorder below;
  return ops::any(ops::isNan(t)).item<bool>();
}

}  // namespace

AnomalyMode::AnomalyMode(bool check_nan) : before_(detects), check_before_(checks_nan) {
  detects = true;
  checks_nan = check_nan;
}

AnomalyMode::~AnomalyMode() {
  detects = before_;
  checks_nan = check_before_;
  if (!detects) unplaced.clear();
}

OperatorObserver* AnomalyMode::observer() const {
  static auto* instance = new Placing;
  return instance;
}

bool detectsAnomaly() {
  return detects;
}

void noteRecorded(Node& node) {
  // Of a call that nobody watches the place is never told.
  constexpr size_t kMostUnplaced = 1024;
  if (unplaced.size() >= kMostUnplaced) unplaced.clear();
  unplaced.emplace_back(&node);
}

std::vector<Tensor> applyWatched(Node& node, const std::function<std::vector<Tensor>()>& apply) {
  std::vector<Tensor> results;
  try {
    results = apply();
  } catch (const RuntimeError& error) {
    const std::string where = forwardCall(node);
    if (where.empty()) throw;
    throw RuntimeError(fmt::format("{}: {}{}", node.name(), error.brief(), where));
  }
  for (size_t i = 0; i < results.size() && checks_nan; ++i) {
    if (!hasNaN(results[i])) continue;
    throwRuntimeError("Function '{}' returned nan values in its {}th output.{}", node.name(), i,
                      forwardCall(node));
  }
  return results;
}

}  // namespace wick::autograd
