// The contents of the JSON of an exported program, as typed values (torch.export's schema, major version 8).
//
// Reading (read_schema.h) has checked kinds, numbers and names of fields, and nothing else: names of values may be
// unknown, and targets may be operators that nobody has.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/keyed_hash.h"

namespace wick::exported {

struct GraphRecord;

// An integer, or an expression over symbols in SymPy's notation: "Symbol('s0', positive=True, integer=True)".
struct Size {
  std::optional<int64_t> number;
  std::string expression;
  std::optional<int64_t> hint;  // the value of the expression in the example
};

struct TensorMeta {
  int64_t dtype = 0;   // the schema's own number: dtypeOf()
  int64_t layout = 0;  // the schema's own number
  std::vector<Size> sizes;
  std::vector<Size> strides;
  Size storage_offset;
  std::string device;  // "cpu", "cuda:0"
  bool requires_grad = false;
};

// An argument or a result: a constant, or the name of a value of the graph.
struct Operand {
  enum class Kind : uint8_t {
    None,
    Int,
    Float,
    Bool,
    String,
    Complex,
    ScalarType,  // the schema's own numbers, in `integer`
    MemoryFormat,
    Layout,
    Device,    // its name, in `text`
    Operator,  // a target, in `text`
    Tensor,    // a name, in `text`, as in the next four
    SymInt,
    SymFloat,
    SymBool,
    Object,
    Token,
    Graph,
    List,  // of `element`, in `elements`
    Dict,  // of strings; values in `elements`, keys in `keys`
  };
  Kind kind = Kind::None;
  Kind element = Kind::None;
  bool optional = false;  // elements may be None
  int64_t integer = 0;    // and 0 or 1 for Bool
  double real = 0;
  double imaginary = 0;
  std::string text;
  std::vector<Operand> elements;
  std::vector<std::string> keys;
  std::shared_ptr<GraphRecord> graph;

  bool isName() const { return kind >= Kind::Tensor && kind <= Kind::Token; }
};
using OperandKind = Operand::Kind;

struct NamedOperand {
  std::string name;  // of the operator's argument; may be empty for higher-order operators
  Operand operand;
  bool by_position = true;
};

struct NodeRecord {
  std::string target;  // "torch.ops.aten.add.Tensor"
  std::string name;
  std::vector<NamedOperand> inputs;
  std::vector<Operand> outputs;
  std::string
      stack_trace;  // the innermost line of the user's program: FILE, NUMBER, FUNCTION and text; or ""
};

struct GraphRecord {
  std::string name;  // of a part that a higher-order operator takes
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  std::vector<NodeRecord> nodes;
  KeyedMap<std::string, TensorMeta> tensors;
  KeyedMap<std::string, Size> integers;
  bool is_single_tensor_return = false;
};

struct InputSpec {
  enum class Kind : uint8_t { User, Parameter, Buffer, TensorConstant, Object, Token, Constant };
  Kind kind = Kind::User;
  Operand value;       // the graph's input; for Constant, the constant itself
  std::string target;  // dotted name in the module; the argument's name for Constant
  bool persistent = true;
};

struct OutputSpec {
  enum class Kind : uint8_t {
    User,
    Loss,
    BufferMutation,
    ParameterMutation,
    InputMutation,
    ParameterGradient,
    InputGradient,
    Token,
  };
  Kind kind = Kind::User;
  Operand value;
  std::string target;  // dotted name in the module, or the name of a graph's input
};

struct SizeRange {
  std::optional<int64_t> least;
  std::optional<int64_t> most;
};

struct ProgramRecord {
  GraphRecord graph;
  std::vector<InputSpec> inputs;    // in the order of graph.inputs
  std::vector<OutputSpec> outputs;  // in the order of graph.outputs
  // Trees of arguments and results as pytree writes them; "" where the file has none.
  std::string argument_tree;
  std::string result_tree;
  std::vector<std::string> argument_names;
  KeyedMap<std::string, std::vector<std::string>> named_tuple_fields;
  std::vector<std::pair<std::string, SizeRange>> ranges;  // by symbol
  std::vector<std::string> guards;                        // conditions on sizes in Python
  std::string torch_version;
  int64_t minor_version = 0;
};

// The place of a tensor's bytes, and its description.
struct Payload {
  std::string path;
  bool is_parameter = false;
  bool is_pickle = false;
  std::optional<TensorMeta> tensor;
};
using PayloadConfig = std::vector<std::pair<std::string, Payload>>;

}  // namespace wick::exported
