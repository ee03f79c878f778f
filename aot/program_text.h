// Programs as C++17 text.
#pragma once

#include <memory>
#include <string>

#include "aot/plan.h"
#include "aot/program.h"

namespace wick::aot {

struct ProgramText {
  std::string includes;
  // Kernels, tables and the functions `int run_N(state, inputs, outputs)`, `wick_aot_slot inputs_N[]` and
  // `outputs_N[]` where there are any, and `primitives` when oneDNN computes some; for a namespace
  // without a name.
  std::string definitions;
  size_t kernels = 0, primitives = 0;
};

// Programs that share kernels and tables. They are numbered from zero.
class ProgramWriter {
 public:
  // Sums are added in the order of registers of so many bits.
  explicit ProgramWriter(unsigned vector_bits);
  ~ProgramWriter();
  // codegen::NoCppText for functions that have no text.
  void add(const Program& program, const Plan& plan);
  ProgramText finish();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace wick::aot
