// The JSON of a graph as a program of torch.export.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/keyed_hash.h"
#include "ir/graph.h"
#include "serialization/exported/fixed_values.h"
#include "serialization/exported/program_json.h"
#include "serialization/exported/recorded_values.h"
#include "serialization/exported/size_fit.h"
#include "serialization/exported/size_rules.h"

namespace wick::exported {

// A tensor of the module that a graph holds as a constant.
struct NamedTensor {
  std::string name;  // dotted
  bool is_parameter = false;
  bool is_constant = false;  // neither a parameter nor a buffer
  Tensor tensor;
};

// The nodes of a graph, and the descriptions of its values.
struct GraphParts {
  OrderedJson nodes = OrderedJson::array();
  OrderedJson tensors = OrderedJson::object();
  OrderedJson integers = OrderedJson::object();
  OrderedJson booleans = OrderedJson::object();
  OrderedJson floats = OrderedJson::object();
};

// A device, and the number of a dtype, as the schema has them. The latter throws RuntimeError for dtypes that it lacks.
OrderedJson deviceJson(Device device);
int64_t schemaDType(DType dtype);

// Used by one thread. All but the runs must outlive it. Throws RuntimeError with the line of the program for what exported
// programs cannot express.
class ProgramWriter {
 public:
  // `runs` are those of the examples, in the order of `fit`'s.
  ProgramWriter(const Graph& graph, std::vector<RecordedRun> runs, const SizeFit& fit,
                std::vector<NamedTensor> tensors);

  // Writes the graph, whose inputs are arguments of these names; only the first `num_given` are arguments of the program.
  void write(const std::vector<std::string>& argument_names, size_t num_given);

  // The members of the schema's GraphModule, without its metadata.
  OrderedJson graph;
  OrderedJson input_specs = OrderedJson::array();
  OrderedJson output_specs = OrderedJson::array();
  std::string argument_tree;
  std::string result_tree;
  std::vector<std::string> given_names;  // of the arguments that the program has
  // All tensors that the program uses: those of the module, then other constants.
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  const std::unordered_set<size_t>& usedTensors() const { return used_; }
  const std::string& inputName(size_t tensor) const { return input_names_.at(tensor); }

 private:
  using TensorsInRuns = std::vector<std::shared_ptr<const RecordedTensor>>;
  // A value as arguments of nodes: one operand, or the parts of a list, which all that is the same list shares.
  struct Term {
    OrderedJson operand;
    std::shared_ptr<std::vector<Term>> parts;  // null: one operand
    std::vector<IValue> keys;                  // of a dict
    std::optional<SizeVector> sizes;           // of a tensor
    SizeVector strides;
    std::optional<SizeExpression> number;  // an int, where an expression is known
    bool isContainer() const { return parts != nullptr; }
    void makeContainer() { parts = std::make_shared<std::vector<Term>>(); }
  };

  [[noreturn]] void fail(const Node* node, const std::string& message) const;
  std::string unique(const std::string& candidate);

  bool followsFromSizes(const Value* value) { return fixed_.followsFromSizes(value); }
  const IValue* fixed(const Value* value) { return fixed_.find(value); }
  void markNeeded(const Block& block);
  bool isNeeded(const Node& node) const;

  Term termOf(const Value* value);
  Term constantTerm(const IValue& value, const Value* at);
  OrderedJson operandOf(const Value* value);
  OrderedJson tensorInput(const Tensor& tensor);

  void writeBlock(const Block& block);
  void writeNode(const Node& node);
  void writeOperator(const Node& node);
  bool writeAutocast(const Node& node);
  [[noreturn]] void failAtEffect(const Node& node) const;
  void writeNumbers(const Node& node);
  Term writeExtreme(const Node& node, const char* target, const std::vector<Term>& numbers);
  bool writeListChange(const Node& node);
  void writeIf(const Node& node);
  void writeAssertion(const Node& node, const Value* condition);
  void writeLoop(const Node& node);
  OrderedJson part(const std::string& name, const std::vector<const Value*>& inputs,
                   const Block& block, const std::vector<const Value*>& outputs,
                   std::vector<Term>& made);
  std::vector<const Value*> freeTensors(const Node& node);
  bool hasFactorOne(const Node& node);
  Term numberOf(const Value* tensor, const Node* user);

  OrderedJson argument(const Node& node, const Argument& declared, const Value* value);
  OrderedJson listArgument(const Node& node, const Type& element, const Value* value);
  void addNode(const std::string& target, OrderedJson inputs, OrderedJson outputs,
               const std::string& name, const Node& at);
  // Sizes that those of a tensor may follow from: by a rule, or because it is made of such tensors.
  struct SizeSource {
    std::optional<SizeVector> by_rule{};
    std::vector<SizeVector> near{};
    std::vector<SizeVector> strides{};
    void add(const Term& term);
  };
  KnownArgument knownArgument(const Value* value);
  std::vector<KnownArgument> knownArguments(const Node& node);
  std::optional<Term> knownTerm(const Value* value);
  SizeSource sourceOf(const Node& node);
  Term defineTensor(const Value* value, const std::string& name, const SizeSource& from);
  Term defineNumber(const Value* value, const std::string& name,
                    const std::optional<SizeExpression>& exact);
  OrderedJson describeTensor(const TensorsInRuns& in_runs, const Value* at, const SizeSource& from,
                             Term& term);
  SizeExpression strideOf(const TensorsInRuns& in_runs, size_t dim, const Value* at,
                          const SizeSource& from, const Term& term);
  const RecordedTensor& exampleOf(const Value* value) const {
    return *runs_[0].find(value)->tensor;
  }
  OrderedJson sizeJson(const SizeExpression& size, int64_t example) const;
  [[noreturn]] void failAtSize(const Value* at, const char* what) const;

  using ValuesInRuns = std::vector<const RecordedValue*>;
  void addArgument(const ValuesInRuns& in_runs, const std::string& name, Term& term,
                   OrderedJson& tree);
  OrderedJson treeOf(const Value* value, const RecordedValue& example);

  const Graph& source_;
  std::vector<RecordedRun> runs_;
  FixedValues fixed_;
  const SizeFit& fit_;
  std::vector<NamedTensor> tensors_;
  KeyedMap<std::string, size_t> tensor_index_;  // by identityOf()
  std::unordered_set<size_t> used_;
  std::unordered_map<size_t, std::string> input_names_;  // of tensors, by index
  std::unordered_map<const Value*, Term> terms_;
  std::unordered_set<const Node*> needed_;
  KeyedSet<std::string> names_;
  KeyedMap<std::string, size_t> suffixes_;  // the last one that a name got
  OrderedJson graph_inputs_ = OrderedJson::array();
  GraphParts* parts_ = nullptr;  // of the graph or the part that is being written
  GraphParts outer_;
  size_t unknown_numbers_ = 0;
};

}  // namespace wick::exported
