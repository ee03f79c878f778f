// Programs as C++17 text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "aot/family.h"
#include "aot/plan.h"
#include "aot/program.h"

namespace wick::aot {

struct ProgramText {
  std::string includes;
  // Kernels, tables and the functions `int run_N(state, inputs, outputs, sizes)`, `wick_aot_slot inputs_N[]` and
  // `outputs_N[]` where there are any, where sizes have names `wick_aot_symbol symbols_N[]` and `shape_N`, and
  // `primitives` when oneDNN computes some; for a namespace without a name.
  std::string definitions;
  size_t kernels = 0, primitives = 0;
};

// What the header tells of a program, and what its memory needs.
struct WrittenProgram {
  // Sizes of arguments and results by dimension, as text: "3", "N", "4 * N".
  std::vector<std::vector<std::string>> input_sizes, output_sizes;
  std::vector<TensorSlot> inputs, outputs;
  int64_t memory_bytes = 0;
  size_t steps = 0;
  bool sized = false;  // whether arguments have sizes with names
};

// Programs that share kernels and tables. They are numbered from zero.
class ProgramWriter {
 public:
  explicit ProgramWriter(StepWriter& steps);
  ~ProgramWriter();
  // codegen::NoCppText for functions that have no text.
  WrittenProgram add(const Program& program, const Plan& plan);
  // Of many sizes; what formsOf() throws.
  WrittenProgram add(const Family& family, Weights& weights);
  ProgramText finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wick::aot
