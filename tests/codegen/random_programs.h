// Random graphs for kernels, as text, and arguments for them.
#pragma once

#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "core/ivalue.h"
#include "core/tensor.h"
#include "ir/graph.h"
#include "tests/codegen/graph_text.h"

namespace wick {

class Random {
 public:
  explicit Random(uint64_t seed) : twister_(seed) {}
  int below(int n) { return static_cast<int>(twister_() % static_cast<uint64_t>(n)); }
  bool oneIn(int n) { return below(n) == 0; }
  double number() { return static_cast<double>(twister_() >> 11) * 0x1p-53; }
  // Other numbers, which do not change what follows here: seeds that once failed still make the
  // programs that they made, mostly.
  Random fork() const {
    std::mt19937_64 copy = twister_;
    return Random(copy() ^ 0x9e3779b97f4a7c15u);
  }
  template <class T>
  T of(std::initializer_list<T> list) {
    return list.begin()[below(static_cast<int>(list.size()))];
  }

 private:
  std::mt19937_64 twister_;
};

// A graph as text, and arguments for it.
struct Program {
  std::string text;
  std::vector<IValue> arguments;
};

enum class ProgramKind {
  Pointwise,
  Reductions,  // and pointwise operators around them
  Structures,  // views, joins, elements by index and reductions, of and around pointwise operators
};
Program randomProgram(Random& random, ProgramKind kind);

// Of any dtype, numbers that are edges among them; without `huge` finite ones are below 200, so
// that products with results that differ in the last place do not differ much.
double randomValue(Random& random, DType dtype, bool huge = true);
void fillRandomly(Random& random, const Tensor& t, bool huge = true);
// Any of them; floats more often.
DType randomDType(Random& random);
// A tensor of a shape that broadcasts to `full`, perhaps a view.
Tensor randomTensor(Random& random, const DimVector& full, DType dtype, bool huge = true);

// A constant, or one of the arguments %s (a float) and %k (an int).
std::string numberFor(GraphText& text, Random& random);

// What a graph returns; its message when it raises.
struct Outcome {
  std::vector<Tensor> tensors;
  std::string error;
};
Outcome runGraph(const std::shared_ptr<Graph>& graph, std::vector<IValue> arguments);

// Makes the programs of ProgramKind::Structures.
Program randomStructures(Random& random);

}  // namespace wick
