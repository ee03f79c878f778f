// Writes the recipe of an entry: which objects are made again, and how.
#pragma once

#include <unordered_map>
#include <vector>

#include "capture/effects/recipe.h"
#include "capture/guards/source.h"

namespace wick::capture {

class Variable;
struct Arguments;

// Registers are numbered for good by finish(): first those that guards keep, then the outputs of
// the graph, then all others.
class Builder {
 public:
  explicit Builder(GuardTree& guards) : guards_(guards) {}

  // Returns the register of the object that the variable stands for; one object for each variable.
  // Throws GraphBreak for what cannot be made again.
  int build(Variable* variable);
  std::vector<int> buildAll(const std::vector<Variable*>& variables);
  // Returns the register of what the callee in a register gives for the arguments.
  int buildCall(int callee, const Arguments& given);
  // Says that a function with lru_cache keeps a result for the arguments.
  void buildKeep(int function, int result, const Arguments& given);
  // Returns the register of a constant.
  int constant(PyObject* object);
  // Returns the register of the value of an expression of open sizes.
  int size(const SizeExpression& expression) { return guards_.keepSize(expression); }
  // Returns the register of the graph's output for a fake.
  int output(PyObject* fake);
  // Appends a step with a result, and returns its register.
  int make(StepKind kind, std::vector<int> arguments, Object object = {}, int64_t number = 0);
  // Appends a step without a result.
  void effect(StepKind kind, std::vector<int> arguments, Object object = {}, int64_t number = 0);
  // Says that the variable's object is in the register, before the object is complete.
  void remember(Variable* variable, int at) { made_[variable] = at; }

  const std::vector<PyObject*>& outputs() const { return outputs_; }
  // Returns the recipe. `wanted` are registers that the caller reads afterwards; they get their
  // final numbers.
  Recipe finish(std::vector<int*> wanted);

 private:
  // Appends the registers of the arguments; returns the names of the last ones, or null.
  Object addArguments(std::vector<int>& registers, const Arguments& given);

  GuardTree& guards_;
  std::vector<Step> steps_;
  std::vector<PyObject*> outputs_;
  std::unordered_map<PyObject*, int> output_of_, constant_of_;
  std::unordered_map<Variable*, int> made_;
  std::vector<Variable*> open_;
  int num_made_ = 0;
};

}  // namespace wick::capture
