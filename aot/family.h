// A program for many sizes: it is recorded for each of them, and what the recordings have in common is written
// once, with numbers as expressions of sizes.
//
// Sizes are those that arguments have, which have names, and those that elements decide. A program of the latter
// consists of parts: one up to where the first of them is known, then one for each further size. Each part is the same
// for all values of sizes that become known behind it.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "aot/plan.h"
#include "aot/program.h"
#include "aot/size_text.h"
#include "aot/step_text.h"

namespace wick::aot {

struct Family {
  std::vector<Symbol> symbols;
  // The program for these sizes, one of each symbol, with loops kept or not, and for sizes that elements decide
  // (RecordOptions). A RuntimeError that is no NotAhead is what a call of such sizes ends with.
  std::function<Program(const std::vector<int64_t>&, bool keep_loops, const DecidedSizes&)> record;
};

// Parts of some sizes, whose texts differ in numbers alone.
struct Form {
  struct Unit {
    std::string name;
    CutText kernel, call;  // the kernel is empty where none is called
    bool primitive = false;
    int closes = 0, opens = 0;  // blocks (StepText)
  };
  std::vector<Unit> units;      // of the first part the last writes the sizes of results
  std::vector<Column> columns;  // of all numbers of the units, of kernels before those of calls
  std::vector<std::vector<int64_t>> sizes;
  std::vector<size_t> positions;  // of the sizes
  // Of the buffers that have names, in order, as large as the largest sizes of this form need. Those that other parts use, too,
  // have their place in `kept` of the part, and none here.
  std::vector<Span> spans;
  int64_t memory_bytes = 0;
};

struct Part {
  std::string key;                         // SizeStep
  std::string by;                          // whose size it begins with, but for the first part
  int64_t most = 0;                        // the largest one
  SizeSpace space{std::vector<Symbol>()};  // named sizes, and those that are known here
  std::vector<Form> forms;
  // By position; from forms.size() on messages, and kNoForm for sizes that cannot be.
  std::vector<size_t> form_of;
  static constexpr size_t kNoForm = 255;
  // Bytes, then offsets, of its buffers that other parts use; by number.
  std::map<size_t, int64_t> kept;
};

struct Forms {
  explicit Forms(const std::vector<Symbol>& symbols) : space(symbols) {}

  SizeSpace space;
  std::vector<Part> parts;            // each behind the one in front of it
  std::vector<std::string> messages;  // of named sizes for which the program raises
  // The sizes of results by named sizes, the largest where elements decide them: a form of one unit.
  Form shape;
  // Those of the first sizes for which it does not raise. Sizes that are a symbol's are in `symbols`, by input
  // and dimension, others are -1.
  std::vector<TensorSlot> inputs, outputs;
  std::vector<std::vector<int>> symbols;
  size_t steps = 0;  // of all forms
  int64_t memory_bytes = 0;
};

// Records for all sizes. NotAhead when sizes decide about more than expressions can tell, with the step
// that they decide about; what the program raises when it does so for all sizes.
Forms formsOf(const Family& family, StepWriter& writer, Weights& weights);

}  // namespace wick::aot
