// What a thread has recorded and not run.
//
// A Graph is a list of records, each a call of an operator on values. There are no writes between
// records: an operator that writes gets copies of what it writes to, which are values like others.
// So records may be dropped when nobody needs their values, and the text of the rest says all about
// them.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/ivalue.h"
#include "core/source_range.h"
#include "ir/operator.h"
#include "lazy/geometry.h"

namespace wick::lazy {

class Base;
class FrozenStep;
class Program;
class Roller;
struct Loop;

using ValueId = uint32_t;
inline constexpr ValueId kNoValue = UINT32_MAX;

// Nearly always one value, which needs no memory of its own.
class ValueIds {
 public:
  ValueIds() = default;
  explicit ValueIds(ValueId one) : one_(one), size_(1) {}
  void push_back(ValueId id) {
    if (size_ == 0) {
      one_ = id;
    } else {
      if (size_ == 1) many_.push_back(one_);
      many_.push_back(id);
    }
    ++size_;
  }
  size_t size() const { return size_; }
  const ValueId* begin() const { return size_ > 1 ? many_.data() : &one_; }
  const ValueId* end() const { return begin() + size_; }
  ValueId operator[](size_t i) const { return begin()[i]; }

 private:
  ValueId one_ = kNoValue;
  uint32_t size_ = 0;
  std::vector<ValueId> many_;  // all, when they are several
};

// An argument of a record.
struct Operand {
  enum class Kind : uint8_t {
    Value,     // a tensor: `values[0]`
    Values,    // a list of them; kNoValue stands for None
    Constant,  // belongs to the graph's text
    Number,    // an int or float that is handed over when the graph runs
    Ints,      // a list of ints, some of which are (isParameter())
    Sequence,  // a list of tensors or numbers of any length, handed over as one; of loops
  };
  Kind kind = Kind::Constant;
  IValue value;
  // In a loop's body numbers may be values too: one for a Number, for Ints one each, where kNoValue
  // is a number that belongs to the text.
  ValueIds values;
};
Operand valueOperand(ValueId value);
Operand constantOperand(const IValue& value);
Operand intsOperand(IntSpan numbers);
// A number that enters arithmetic: 0 and 1 belong to the text.
Operand numberOperand(const IValue& number);

// Whether an int in a list of kind Ints is handed over; others belong to the text.
inline bool isParameter(int64_t number) {
  return number < -1 || number > 1;
}

// Who wants which value.
using Targets = std::vector<std::pair<ValueId, const Base*>>;

// Whether two constants are the same text.
bool sameConstant(const IValue& a, const IValue& b);

struct Record {
  const Operator* op = nullptr;
  std::shared_ptr<const Loop> loop;  // instead of an operator; lazy/rolling.h
  std::vector<Operand> operands;
  // Of each result of the operator how many values it has: kOne for a tensor, else the length of a
  // list of tensors, or kList for a list that is one value.
  static constexpr int64_t kOne = -1, kList = -2;
  DimVector results;
  uint64_t cloned = 0;  // bit i: operand i is copied, the copy is written and is a value
  ValueId first = 0;    // the values: those of the results, then the copies
  uint32_t count = 0;
  SourceRange place;

  // Calls f(id) for each value that the operands hold.
  template <class F>
  void forValues(F&& f) const {
    for (const Operand& operand : operands) {
      for (const ValueId id : operand.values) {
        if (id != kNoValue) f(id);
      }
    }
  }
};

class Graph {
 public:
  Graph();
  ~Graph();
  // The calling thread's.
  static const std::shared_ptr<Graph>& current();

  // The value for data that exists already.
  ValueId input(const Tensor& data);
  // Appends a record, which has `count` values. Returns the first.
  ValueId append(Record record, uint32_t count);
  // The same without making the record, where the graph is that of a frozen step, which it has to
  // continue. `values` are those of the tensor arguments, in order.
  ValueId follow(const Operator& op, std::span<const IValue> args, std::span<const ValueId> values,
                 uint64_t cloned, IntSpan results);
  bool isFollowing() const;
  // The same for a call with one tensor as its result, made by the engine itself.
  ValueId emit(const Operator& op, std::vector<Operand> operands);
  // Whose values somebody may still ask for. A base is forgotten as often as it is expected.
  void expect(Base* base);
  void forget(Base* base);
  // Computes all values that live tensors have, and begins anew. A step's end has nothing behind
  // it that belongs to the same computation.
  void evaluate(const char* cause, bool ends_step = false);
  // The steps that begin here are all the same computation; docs/lazy.md. Evaluates what there is.
  void freeze();
  void thaw();
  bool empty() const { return size() == 0; }
  size_t size() const;
  std::string text() const;
  // Of what live tensors need, as Graphviz text.
  std::string dot() const;

  struct Origin {
    uint32_t record;  // kInput: an input
    uint32_t index;
  };
  static constexpr uint32_t kInput = UINT32_MAX;

 private:
  friend class FrozenStep;
  friend class Program;
  friend class Roller;
  friend struct Rolled;
  friend class Splitter;
  friend struct Split;
  // What has to run: records in their order, and the values that are wanted.
  struct Plan {
    std::vector<uint32_t> records;
    std::vector<ValueId> outputs;
  };
  Plan plan() const;
  std::vector<ValueId> outputs() const;
  Targets targets() const;
  std::vector<IValue> run(const Plan& plan, const char* cause, bool ends_step, bool& let_go);
  void evaluateNow(const char* cause, bool ends_step);
  // Of each input, whether nobody else has its memory and a result may want it; docs/lazy.md.
  std::vector<bool> spareInputs() const;
  std::exception_ptr runCarefully(const Plan& plan, const std::vector<Base*>& bases) const;
  void reset();
  // The frozen step is over; its records so far become the graph's own. RuntimeError that says why.
  [[noreturn]] void breakPromise(const std::string& why);

  // Both are empty while a frozen step is followed, which has them.
  std::vector<Record> records_;
  std::vector<Origin> origins_;  // by value
  std::vector<Tensor> inputs_;
  struct KnownInput {
    ValueId id;
    uint32_t index;  // in inputs_
  };
  std::unordered_multimap<const Storage*, KnownInput> known_inputs_;
  std::vector<Base*> pending_;    // each knows where it is
  std::vector<ValueId> effects_;  // of records that have to run, whoever wants their values
  std::unique_ptr<FrozenStep> frozen_;
};

// Whether the graph has as many records as it may: it should be evaluated.
bool isFull(const Graph& graph);

// The operator with this name; InternalError when there is none.
const Operator& operatorNamed(const char* name, const char* overload);

// Held while anything of a lazy tensor is read or changed. Whoever holds it never waits for
// anything but kernels.
std::recursive_mutex& mutex();

}  // namespace wick::lazy
