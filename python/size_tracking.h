// Sizes that a recording for wick.compile leaves open, and sizes that elements decide: what they are in the
// graph.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "capture/world.h"
#include "ir/symbolic_sizes.h"
#include "lazy/decided_results.h"
#include "python/captured_graph.h"
#include "python/tracing.h"

namespace wick::python {

// Knows the sizes of the graph's tensors as expressions of the inputs' open sizes, by the shape rules
// of operators. A size that no rule tells, and numbers that depend on sizes in a way that nobody
// follows, make the open sizes that they depend on constants. Sizes that elements decide, and what no rule
// tells that depends on such, are symbols of their own.
class SizeTracking : public NumberFollower, public lazy::DecidedSizes {
 public:
  using Expression = std::optional<capture::SizeExpression>;

  explicit SizeTracking(tracing::Tracer& tracer) : tracer_(tracer) {}

  // Returns whether there are symbols at all.
  bool isOpen() const { return !symbols_of_.empty(); }
  const capture::SizeTable& table() const { return *table_; }
  // Returns the guesses about sizes, null if there are none. `outputs` are those of the graph; tensors that
  // are missing there are appended.
  std::shared_ptr<Guesses> guesses(std::vector<IValue>& outputs) const;

  // The Value is the input that the fake stands for.
  void addInput(Value* value, const Tensor& fake, const capture::InputSizes& sizes);
  // Finds the sizes of tensors that were recorded since the last time.
  void follow();
  // Takes them out of the graph's types again.
  void forget();

  // Before and after a call with these arguments.
  void begin() { read_.clear(); }
  // `numbers`: the result holds numbers that nobody follows.
  void end(const std::vector<PyObject*>& arguments, bool numbers);
  // Makes open sizes constants on which operators depend that will not run. Returns results of such
  // operators as elements may make raise, or as depend on sizes that elements decide: these must run.
  std::vector<Tensor> checkDead(const std::vector<Value*>& outputs);

  std::optional<int64_t> next(const Tensor& counted) override;
  void note(const Tensor& result, size_t dim) override;
  void forbidDecided() { may_decide_ = false; }
  // Returns the expression of the element of a fake; nothing where no such numbers may be.
  Expression elementOf(const Tensor& fake);
  static constexpr int64_t kElement = Guesses::kElement, kNumel = Guesses::kNumel;
  // Returns the dimension of a tensor that has the size of the symbol; kElement for its element, kNumel for
  // its number of elements. None for other numbers.
  std::optional<std::pair<Tensor, int64_t>> dimensionOf(int symbol) const;

  std::optional<capture::SizeExpression> sizeOf(PyObject* number) const;
  capture::Object numberFor(const capture::SizeExpression& expression);
  const std::unordered_map<PyObject*, std::pair<capture::Object, capture::SizeExpression>>&
  numbers() const {
    return numbers_;
  }

  bool isNumber(PyObject* object) const override;
  Value* find(PyObject* number) override;
  PyObject* object(int64_t number, Value* value) override;

 private:
  void visit(Node* node);
  void nameDecided(const Node* node);
  int bindDecided(Value* tensor, size_t dim, int symbol);
  std::optional<capture::SizeExpression> decidedNumber(Value* value, int64_t number);
  std::set<int> symbolsBehind(const std::vector<Value*>& values) const;
  bool dependsOnDecided(const std::vector<Value*>& values) const;
  bool raisesByElements(const Node* node) const;
  void keepResult(const Value* result, std::vector<Tensor>& kept) const;
  void visitOperator(Node* node);
  void visitList(Node* node);
  bool fixDivided(const Node* node);
  void checkView(const Node* node);
  TypePtr named(const Node* node, const TypePtr& type);
  // Sizes that rules leave unknown, from what holds for the hints: conditions are noted.
  Expression deferredSize(int64_t symbol) const;
  Expression sliceSize(const Node* node) const;
  Expression windowSize(const Node* node, size_t dim) const;
  Expression broadcastSize(const Node* node, size_t dim) const;
  Expression numberOf(const Value* value) const;
  bool isLess(const capture::SizeExpression& a, const capture::SizeExpression& b) const;
  void fixInputsOf(const std::vector<Value*>& values);
  void fixWithin(PyObject* object, bool numbers, int depth);
  bool dependsOnSizes(const Value* value) const;
  Expression expressionOf(Size size) const;
  Expression sumOf(const std::vector<SymbolicSizes::Term>& terms) const;
  Value* valueFor(const capture::SizeExpression& expression);
  Value* atomValue(int atom);
  Value* computed(const char* name, Value* a, Value* b);

  tracing::Tracer& tracer_;
  capture::SizeTable* table_ = nullptr;
  mutable SymbolicSizes sizes_;
  std::unordered_map<int, int64_t> free_;            // of the shape rules, by symbol of the table
  std::unordered_map<int64_t, int> symbol_of_free_;  // the other way around
  std::unordered_map<int, Value*> symbol_values_;    // the int in the graph, by symbol
  std::unordered_map<const Value*, std::vector<int>> symbols_of_;  // of tensors
  // Dimensions of results of the current call that elements decide about.
  struct Pending {
    Tensor tensor;
    size_t dim = 0;
    int symbol = 0;
  };
  std::vector<Pending> pending_;
  int last_symbol_ = -1;  // of next()
  // Tensors whose nonzero elements were counted.
  struct Counted {
    Tensor tensor;
    uint32_t version = 0;
    int symbol = 0;
  };
  std::vector<Counted> counted_;
  std::string problem_;  // that ends the graph behind the current call
  bool may_decide_ = true;
  std::unordered_map<int, std::pair<Value*, int64_t>> dimensions_;  // by symbol
  std::unordered_map<int, std::pair<size_t, int64_t>> input_dimensions_;
  size_t num_inputs_ = 0;
  // Sizes that are computed when somebody asks: a dimension of a node's result, by symbol.
  struct Deferred {
    const Node* node = nullptr;
    size_t dim = 0;
  };
  std::unordered_map<int64_t, Deferred> deferred_;
  mutable std::unordered_map<int64_t, Expression> deferred_sizes_;  // those that were asked for
  mutable int deferred_depth_ = 0;                      // of the one that is being computed
  std::unordered_map<const Value*, TypePtr> elements_;  // of lists that operators give
  std::map<capture::SizeExpression, Value*> values_;
  std::unordered_map<PyObject*, std::pair<capture::Object, capture::SizeExpression>> numbers_;
  std::unordered_set<PyObject*> read_;  // numbers that were asked for since begin()
  Node* last_ = nullptr;                // the last node that was visited
};

}  // namespace wick::python
