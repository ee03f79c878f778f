// A program for many sizes: it is recorded for each of them, and what the recordings have in common is written
// once, with numbers as expressions of sizes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "aot/plan.h"
#include "aot/program.h"
#include "aot/size_text.h"
#include "aot/step_text.h"

namespace wick::aot {

struct Family {
  std::vector<Symbol> symbols;
  // The program for these sizes, one of each symbol, with loops kept or not (RecordOptions). A RuntimeError that is no
  // NotAhead is what a call of such sizes ends with.
  std::function<Program(const std::vector<int64_t>&, bool keep_loops)> record;
};

// The programs of some sizes, whose texts differ in numbers alone.
struct Form {
  struct Unit {
    std::string name, where;
    CutText kernel, call;  // the kernel is empty where none is called
    bool primitive = false;
    int closes = 0, opens = 0;  // blocks (StepText)
  };
  std::vector<Unit> units;      // the last writes the sizes of results
  std::vector<Column> columns;  // of all numbers of the units, of kernels before those of calls
  std::vector<size_t> positions;
  std::vector<Span> spans;  // of b0, b1, …, as large as the largest sizes of this form need
  int64_t memory_bytes = 0;
};

struct Forms {
  explicit Forms(const std::vector<Symbol>& symbols) : space(symbols) {}

  SizeSpace space;
  std::vector<Form> forms;
  std::vector<std::string> messages;  // of sizes for which the program raises
  std::vector<size_t> form_of;        // by position; from forms.size() on messages
  // Those of the first sizes for which it does not raise. Sizes that are a symbol's are in `symbols`, by input
  // and dimension, others are -1.
  std::vector<TensorSlot> inputs, outputs;
  std::vector<std::vector<int>> symbols;
  size_t steps = 0;  // of all forms
};

// Records for all sizes. NotAhead when sizes decide about more than expressions can tell, with the step
// that they decide about; what the program raises when it does so for all sizes.
Forms formsOf(const Family& family, StepWriter& writer, Weights& weights);

}  // namespace wick::aot
