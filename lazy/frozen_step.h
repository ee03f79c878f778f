// A step that is promised to be the same computation each time. Its first run is recorded as ever and
// kept: records, numbering of values, compiled graphs. Later runs are not recorded: each call is
// compared with the kept record, and only what is handed over to the compiled graph is collected. So
// nothing is built, described or looked up, and a promise that is broken is found at the first call
// that differs.
//
// A step may be several graphs, one behind the other, when values are looked at within it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lazy/graph.h"
#include "lazy/program.h"

namespace wick::lazy {

class FrozenStep {
 public:
  // What a graph of the first run was, before it is reset. Null program: nobody needed a value.
  void keep(const Graph& graph, const Graph::Plan& plan, std::shared_ptr<Program> program);
  // The step is over. A run that recorded nothing at all does not count.
  void endFirst() { first_ = segments_.empty(); }
  bool isFirst() const { return first_; }

  // ---- later runs; they give why the promise is broken, or null ----

  const char* input(const Tensor& data, size_t inputs, ValueId& id);
  const char* call(const Operator& op, std::span<const IValue> args,
                   std::span<const ValueId> values, uint64_t cloned, IntSpan results, ValueId& id);
  const char* call(const Record& made, ValueId& id);
  // The graph ends here with these values wanted, sorted.
  const char* endGraph(const std::vector<ValueId>& outputs) const;
  const char* endStep();
  // No call was made with the inputs so far.
  void forgetInputs() { values_done_ = 0; }
  void nextGraph();
  void restart();

  // Calls of the graph so far.
  size_t size() const { return records_done_; }
  bool isUntouched() const { return at_ == 0 && records_done_ == 0 && values_done_ == 0; }
  const Graph::Plan& plan() const { return segments_[at_].plan; }
  const std::shared_ptr<Program>& program() const { return segments_[at_].program; }
  std::vector<IValue> arguments(const std::vector<Tensor>& inputs) const;
  // The graph so far as it would have been recorded.
  void restore(std::vector<Record>& records, std::vector<Graph::Origin>& origins) const;
  // Where the next call stood in the first run; for messages.
  std::string expected() const;

 private:
  struct Segment {
    std::vector<Record> records;
    std::vector<Graph::Origin> origins;
    struct Kind {
      DType dtype;
      int64_t dim;
    };
    std::vector<Kind> inputs;
    Graph::Plan plan;
    std::shared_ptr<Program> program;
    std::vector<ArgumentSource> sources;
  };
  const Record* next() const;
  // Compares a call with what comes next; `compare` says why its operands are others, or null.
  template <class F>
  const char* follow(const Operator& op, uint64_t cloned, IntSpan results, size_t operands,
                     ValueId& id, F&& compare);
  const char* operand(const Operand& was, const IValue& v, std::span<const ValueId> values);

  std::vector<Segment> segments_;
  bool first_ = true;
  size_t at_ = 0;  // the graph that is followed
  size_t records_done_ = 0, values_done_ = 0;
  std::vector<IValue> numbers_;  // that are handed over, of all records so far
};

}  // namespace wick::lazy
