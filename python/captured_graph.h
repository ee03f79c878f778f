// Graphs that wick.compile captured, and the ways to run them on Wick's own tensors.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "capture/world.h"
#include "ir/function.h"

namespace wick::python {

// The guesses of a graph about sizes and branches that elements decide.
struct Guesses {
  capture::SizeTable sizes;
  static constexpr int64_t kElement = -1, kNumel = -2;  // the only element, the number of elements
  struct Place {
    int symbol = 0;
    bool input = false;  // of an input, not of an output
    size_t index = 0;    // of the tensor
    int64_t dim = 0;     // or one of these
  };
  std::vector<Place> places;
  // Outputs of one element, and their truth.
  struct Truth {
    size_t index = 0;
    bool expected = false;
  };
  std::vector<Truth> truths;
  // How often a guess was wrong, and the sizes of the last time, large ones bounded. Under the GIL.
  mutable int64_t wrong = 0;
  mutable std::vector<int64_t> actual;

  // Throws RuntimeError where a guess is wrong.
  void check(std::span<const Tensor> inputs, std::span<const IValue> outputs) const;
  // Returns what the numbers are, by symbol; -1 for those that nothing tells. Runs parts of the graph. Throws
  // RuntimeError.
  std::vector<int64_t> measured(const Graph& graph, std::span<const Tensor> inputs) const;
  // Finds out, after the graph has failed, whether a guess was wrong: a size that is another one may be why.
  void learn(const Graph& graph, std::span<const Tensor> inputs) const;

 private:
  void note(std::vector<int64_t> values) const;
};

// A recorded graph as a script function, which takes tensors and gives a tuple of tensors.
struct ScriptGraph {
  std::shared_ptr<CompilationUnit> unit;
  GraphFunction* function = nullptr;
  std::vector<std::shared_ptr<void>> owners;  // of memory that constants point to
  int num_operators = 0;
  bool impure = false;  // it may write to memory, or draw random numbers
  bool random = false;  // it may draw random numbers
  bool writes = false;  // it writes to memory of its inputs
  // Outputs at the end that nobody takes: they are computed for the errors that they may raise.
  size_t num_hidden = 0;
  std::shared_ptr<const Guesses> guesses = {};  // null: there are none
  // For each output: whether a branch decides which tensor it is, so that it may be an input or another
  // output as well. Empty where there are no branches.
  std::vector<bool> joined = {};

  size_t numOutputs() const;
};

// Returns the script function of a graph.
ScriptGraph scriptGraph(std::shared_ptr<Graph> graph, std::vector<std::shared_ptr<void>> owners);
// Returns the graph and its constants as text.
std::string contentsOf(const Graph& graph);
// Counts the operators among the nodes of a graph.
int countOperators(const Block& block);
// Sets the Python exception for the C++ exception that is being handled, and throws PythonError.
// The message does not name places in the graph, which the program knows nothing of.
[[noreturn]] void throwAsPlainError();

// Returns the graph, run as script functions run.
std::shared_ptr<capture::CapturedGraph> ownGraph(ScriptGraph script);

}  // namespace wick::python
