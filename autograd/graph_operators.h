// The operators of a graph that is one node of the tape: which of them a walk comes through, and what
// they keep for their gradients.
//
// When a walk does not retain the tape, the operators that it came through let go of what they kept,
// and another walk through one of them is an error. Operators that lead to nothing that a walk wants
// are not part of it. A graph is one node of the tape, so the node itself must tell its operators
// apart:
//
//   y = sin(x)      a walk from y leaves z alone, which has an operator of its own;
//   z = y - v       from z it goes on to v, but no longer to x, because sin kept x, and
//                   subtraction kept nothing
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/graph.h"

namespace wick::autograd {

// Some of a graph's operators, by their numbers.
class OperatorSet {
 public:
  void insert(size_t number);
  void insert(const OperatorSet& other);
  bool empty() const;
  bool has(size_t number) const;
  bool meets(const OperatorSet& other) const;
  bool isWithin(const OperatorSet& other) const;
  OperatorSet intersection(const OperatorSet& other) const;
  // The largest number in both; nullopt when there is none.
  std::optional<size_t> lastIn(const OperatorSet& other) const;
  bool operator==(const OperatorSet&) const = default;

 private:
  std::vector<uint64_t> words_;  // the last one is not 0
};

// Results and arguments of a graph as bits.
struct Ends {
  uint64_t results = 0;
  uint64_t arguments = 0;
  bool operator==(const Ends&) const = default;
};
struct HashOfEnds {
  size_t operator()(const Ends& ends) const {
    return ends.results * 0x9e3779b97f4a7c15u ^ (ends.arguments + (ends.arguments << 21));
  }
};

class GraphOperators {
 public:
  // Reads a graph without blocks, which lives as long, whose nodes have formulas as far as `needs` says
  // that gradients flow to their outputs. It has up to 64 results and inputs.
  GraphOperators(const Graph& body, std::span<const Value* const> results,
                 const std::function<bool(const Value*)>& needs);

  // The arguments that the gradient of a result flows to.
  uint64_t argumentsOf(size_t result) const { return arguments_of_[result]; }
  // Without results that lead to none of the arguments, and without arguments that no result leads to.
  Ends joined(Ends walk) const;
  // The results that lead to one of the arguments.
  uint64_t resultsLeadingTo(uint64_t arguments) const;
  // The values whose gradients flow on to one of the arguments.
  std::unordered_set<const Value*> valuesLeadingTo(uint64_t arguments) const;
  // The operators that keep tensors, and those of them that a walk comes through.
  const OperatorSet& keeping() const { return keeping_; }
  OperatorSet passed(Ends walk) const;

  struct Operator {
    const wick::Node* node;
    std::vector<const Value*> flows;  // inputs that get gradients
    std::vector<const Value*> reads;  // values whose elements the formula reads
    bool keeps = false;               // a tensor is among them
  };
  // In the order in which they run; those through which no gradient flows have empty lists.
  const std::vector<Operator>& all() const { return operators_; }
  // Returns for each operator those that keep tensors and that each walk which comes through it also
  // comes through, whatever it wants; itself is among them.
  std::vector<OperatorSet> alwaysPassedWith() const;

 private:
  std::vector<const Value*> results_;
  std::vector<Operator> operators_;
  std::vector<uint64_t> arguments_of_;  // of each result
  OperatorSet keeping_;
};

}  // namespace wick::autograd
