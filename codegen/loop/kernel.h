// The loop IR: what one compiled kernel computes, for all sizes of its dimensions.
//
// A Kernel has a domain of `rank` dimensions, some of which are reduced. Its numbers are one
// Expression whose inputs are Leaves: elements of tensors, numbers, positions of points, finished
// reductions. Every output is a Store of an Expression's node for each point of the domain, or for
// each point of the dimensions that are kept. There is no order of loops here: a Schedule and the
// emitter choose it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "codegen/scalar/expression.h"

namespace wick::loop {

inline constexpr int kMaxRank = 8;

// How a tensor's elements belong to points of the domain: dims[d] is the tensor's dimension that
// dimension d of the domain walks along, or -1 when the tensor stays where it is.
struct Access {
  // Not a tensor but the position of a point itself: the number of points in front of it, in
  // row-major order of the dimensions that vary. Nothing is read: the address is the number.
  static constexpr uint32_t kIndex = UINT32_MAX;

  uint32_t argument;  // of the group's sources; for stores: of its outputs
  DType dtype;        // in memory
  std::array<int8_t, kMaxRank> dims;
  bool larger = false;  // the tensor may have more elements than the domain has points
  bool isIndex() const { return argument == kIndex; }
  bool varies(int d) const { return dims[static_cast<size_t>(d)] >= 0; }
  friend bool operator==(const Access&, const Access&) = default;
};

// A number among the arguments, converted to `type` before the kernel runs; or one that the caller
// knows of a tensor.
struct Number {
  enum class Kind : uint8_t {
    Argument,
    Size,    // of dimension `dim` of tensor `argument` of the group
    Stride,  // in bytes, of dimension `dim` of source `argument`
    Points,  // how many a whole row has, when only a part of it may be run
  };
  uint32_t argument;
  DType type;
  Kind kind = Kind::Argument;
  int dim = 0;
  int item_size = 0;  // of strides
  friend bool operator==(const Number&, const Number&) = default;
};

struct Leaf {
  enum class Kind : uint8_t {
    Load,       // the element of access `index`
    Number,     // number `index`
    Reduction,  // reduction `index`
    Count,      // how many points are reduced into one
    Index,      // the position of the point, by access `index`
  };
  Kind kind;
  uint32_t index;
  DType type;
  // Of loads: so many bytes behind the element of the access (int64); and only where it is true,
  // zero elsewhere.
  ScalarExpr offset{};
  ScalarExpr mask{};
  friend bool operator==(const Leaf&, const Leaf&) = default;
};

enum class ReduceOp : uint8_t { Sum, Prod, Min, Max, Any, All };  // Min and Max: NaN wins
std::string_view toString(ReduceOp op);

struct Reduction {
  ReduceOp op;
  ScalarExpr operand;  // its dtype is the accumulator's and the result's
};

struct Store {
  ScalarExpr value;  // of the access's dtype
  uint32_t access;   // argument: number of the output
  bool per_row;      // once for all reduced points rather than for each
};

struct Kernel {
  int rank = 0;
  uint32_t reduced = 0;          // bit d: dimension d is reduced
  std::vector<Access> accesses;  // those of loads, then one for each store
  std::vector<Number> numbers;
  std::vector<Leaf> leaves;  // input i of the expression
  Expression expression;
  std::vector<Reduction> reductions;  // operands use earlier ones only
  std::vector<Store> stores;
  // Booleans that must be true at every point: otherwise the code says so, and what it stored
  // means nothing.
  std::vector<ScalarExpr> checks;

  // Adds the leaf unless it is there; its node.
  ScalarExpr leaf(const Leaf& leaf);
  uint32_t access(const Access& access);
  uint32_t number(const Number& number);
  // The nodes that a node is computed from, leaves included; how many.
  size_t operandsOf(ScalarExpr e, std::array<ScalarExpr, 3>& operands) const;
};

// Which pass over a row computes what. Pass p may use the results of reductions of earlier passes.
struct Schedule {
  // A value that is expensive and that later passes need again waits in the memory of the output
  // that is computed from it, until the pass that stores the output itself.
  struct Waiting {
    ScalarExpr value;
    uint32_t store;
    int last_pass;
  };
  std::vector<int> pass_of_node;  // of the expression: the first pass that can compute it
  std::vector<bool> varies;       // of the expression: differs between the points of a row
  std::vector<int> pass_of_reduction;
  std::vector<Waiting> waiting;
  int passes = 1;
  int passOf(ScalarExpr e) const { return pass_of_node[static_cast<size_t>(e.id)]; }
  // Where a value waits for the pass; null for one that it computes.
  const Waiting* waitingFor(ScalarExpr e, int pass) const;
};
Schedule makeSchedule(const Kernel& kernel);
// Whether store `number` may write over what the loads of `access` read, each load being of the
// element that is stored: no later pass reads it once more.
bool mayStoreOver(const Kernel& kernel, const Schedule& schedule, size_t number, uint32_t access);

// Text that determines the kernel completely.
std::string toString(const Kernel& kernel);

}  // namespace wick::loop
