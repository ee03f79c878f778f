#include "serialization/exported/read_schema.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "core/error.h"
#include "serialization/exported/json_text.h"

namespace wick::exported {
namespace {

constexpr int64_t kMajorVersion = 8;
constexpr size_t kMaxName = 4096;
// The memory of a node, an operand and the meta of a tensor, their texts apart.
constexpr uint64_t kNodeMemory = 256;
constexpr uint64_t kOperandMemory = 320;
constexpr uint64_t kTensorMemory = 256;

bool isUnread(std::string_view key) {
  // Reasons and origins of nodes, which may be larger than all else; "metadata" of nodes is looked at for one text.
  return key == "nn_module_stack" || key == "source_fn_stack" || key == "torch_fn" ||
         key == "from_node" || key == "custom";
}

// Scalars and lists of one kind by the name of the union's member.
struct SimpleKind {
  std::string_view member;
  OperandKind kind;
  bool is_list;
};
constexpr SimpleKind kSimpleKinds[] = {
    {"as_int", OperandKind::Int, false},
    {"as_float", OperandKind::Float, false},
    {"as_bool", OperandKind::Bool, false},
    {"as_string", OperandKind::String, false},
    {"as_complex", OperandKind::Complex, false},
    {"as_scalar_type", OperandKind::ScalarType, false},
    {"as_memory_format", OperandKind::MemoryFormat, false},
    {"as_layout", OperandKind::Layout, false},
    {"as_device", OperandKind::Device, false},
    {"as_operator", OperandKind::Operator, false},
    {"as_tensor", OperandKind::Tensor, false},
    {"as_sym_int", OperandKind::SymInt, false},
    {"as_sym_float", OperandKind::SymFloat, false},
    {"as_sym_bool", OperandKind::SymBool, false},
    {"as_custom_obj", OperandKind::Object, false},
    {"as_ints", OperandKind::Int, true},
    {"as_floats", OperandKind::Float, true},
    {"as_bools", OperandKind::Bool, true},
    {"as_strings", OperandKind::String, true},
    {"as_tensors", OperandKind::Tensor, true},
    {"as_sym_ints", OperandKind::SymInt, true},
    {"as_sym_floats", OperandKind::SymFloat, true},
    {"as_sym_bools", OperandKind::SymBool, true},
};

class SchemaReader {
 public:
  SchemaReader(std::string name, LoadBudget& budget)
      : name_(std::move(name)), place_(name_), budget_(budget) {}

  ProgramRecord program(std::string_view text) {
    ProgramRecord out;
    const Json json =
        parseJson(text, name_, budget_, isUnread,
                  [&](size_t depth, std::span<const std::string> keys, const Json& object) {
                    return takePart(depth, keys, object, out.graph);
                  });
    const JsonView root(json, name_);
    checkVersion(root, out);
    const JsonView module = root.at("graph_module");
    readGraph(module.at("graph"), out.graph);
    place_ = name_ + ": signature";
    const JsonView signature = placed(module.at("signature"));
    readSpecs(signature.at("input_specs"), out.inputs, [&](auto v) { return inputSpec(v); });
    readSpecs(signature.at("output_specs"), out.outputs, [&](auto v) { return outputSpec(v); });
    place_ = name_;
    readCalls(placed(module), out);
    readRanges(root, out);
    if (root.has("guards_code")) {
      const JsonView guards = root.at("guards_code").expectArray();
      for (size_t i = 0; i < guards.size(); ++i) out.guards.push_back(guards.at(i).text());
    }
    return out;
  }

  PayloadConfig payloads(std::string_view text) {
    const Json json = parseJson(text, name_, budget_);
    const JsonView config = JsonView(json, name_).at("config");
    PayloadConfig out;
    for (auto it = config.expectObject().json().begin(); it != config.json().end(); ++it) {
      place_ = name_ + ": '" + it.key() + "'";
      const JsonView entry(it.value(), place_);
      Payload payload;
      payload.path = entry.at("path_name").text();
      payload.is_parameter = entry.at("is_param").boolean();
      payload.is_pickle = entry.at("use_pickle").boolean();
      if (entry.has("tensor_meta")) payload.tensor = tensorMeta(entry.at("tensor_meta"));
      charge(kTensorMemory + it.key().size() + payload.path.size());
      out.emplace_back(it.key(), std::move(payload));
    }
    return out;
  }

 private:
  JsonView placed(const JsonView& view) const { return {view.json(), place_}; }

  void charge(uint64_t bytes) const {
    if (budget_.take(bytes)) return;
    throwLoadError("{}: the program takes more memory than a file of this size may", name_);
  }

  // The nodes and tensors of the outermost graph are read as soon as they are there, so that never the whole text is kept.
  bool takePart(size_t depth, std::span<const std::string> keys, const Json& object,
                GraphRecord& graph) {
    if (depth != 4 || keys.size() < 4 || keys[1] != "graph_module" || keys[2] != "graph") {
      return false;
    }
    if (keys[3] == "nodes") {
      graph.nodes.push_back(node(object, graph.nodes.size()));
      return true;
    }
    if (keys[3] == "tensor_values") {
      place_ = name_ + ": tensor '" + keys[4] + "'";
      charge(kTensorMemory + keys[4].size());
      graph.tensors[keys[4]] = tensorMeta(JsonView(object, place_));
      return true;
    }
    return false;
  }

  void checkVersion(const JsonView& root, ProgramRecord& out) const {
    const JsonView version = root.at("schema_version");
    const int64_t major = version.at("major").integer();
    out.minor_version = version.at("minor").integer();
    out.torch_version = root.has("torch_version") ? root.at("torch_version").text() : "<=2.4";
    if (major == kMajorVersion) return;
    throwLoadError(
        "{}: the schema of torch.export has the version {}.{}, written by PyTorch {}; versions "
        "{}.x are supported: export the "
        "module again with PyTorch 2.5 or later",
        name_, major, out.minor_version, out.torch_version, kMajorVersion);
  }

  void readGraph(const JsonView& view, GraphRecord& out) {
    place_ = name_ + ": graph";
    const JsonView graph = placed(view);
    readOperands(graph.at("inputs"), out.inputs);
    readOperands(graph.at("outputs"), out.outputs);
    if (graph.has("is_single_tensor_return")) {
      out.is_single_tensor_return = graph.at("is_single_tensor_return").boolean();
    }
    if (graph.has("sym_int_values")) {
      const Json& values = graph.at("sym_int_values").expectObject().json();
      for (auto it = values.begin(); it != values.end(); ++it) {
        charge(kTensorMemory);
        out.integers[it.key()] = size(JsonView(it.value(), place_, "sym_int_values"));
      }
    }
    // Empty for the outermost graph, whose parts were taken before.
    const JsonView nodes = graph.at("nodes").expectArray();
    for (size_t i = 0; i < nodes.size(); ++i) {
      out.nodes.push_back(node(nodes.at(i).json(), out.nodes.size()));
    }
    const Json& tensors = graph.at("tensor_values").expectObject().json();
    for (auto it = tensors.begin(); it != tensors.end(); ++it) {
      charge(kTensorMemory + it.key().size());
      out.tensors[it.key()] = tensorMeta(JsonView(it.value(), place_, "tensor_values"));
    }
  }

  NodeRecord node(const Json& json, size_t index) {
    // Parts of a node set the place for themselves.
    const std::string outer = std::exchange(place_, fmt::format("{}: node {}", name_, index));
    NodeRecord out;
    JsonView view(json, place_);
    out.target = nameIn(view.at("target"));
    place_ += fmt::format(" ({})", out.target.substr(0, 200));
    if (view.has("name")) out.name = view.at("name").text();
    charge(kNodeMemory + out.target.size() + out.name.size());
    const JsonView inputs = view.at("inputs").expectArray();
    for (size_t i = 0; i < inputs.size(); ++i) {
      const JsonView input = inputs.at(i);
      NamedOperand named;
      named.name = nameIn(input.at("name"));
      // 2 means by keyword; files of older versions do not say.
      named.by_position = !input.has("kind") || input.at("kind").integer() != 2;
      named.operand = operand(input.at("arg"));
      charge(named.name.size());
      out.inputs.push_back(std::move(named));
    }
    readOperands(view.at("outputs"), out.outputs);
    if (view.has("metadata") && view.at("metadata").has("stack_trace")) {
      out.stack_trace = innermostLine(view.at("metadata").at("stack_trace").text());
      charge(out.stack_trace.size());
    }
    place_ = outer;
    return out;
  }

  // Returns the last entry of a stack trace as Python prints them: one line with the place, one with the text.
  static std::string innermostLine(const std::string& trace) {
    const size_t start = trace.rfind("  File \"");
    if (start == std::string::npos) return "";
    return trace.substr(start + 2, 600);
  }

  void readOperands(const JsonView& view, std::vector<Operand>& out) {
    view.expectArray();
    out.reserve(view.size());
    for (size_t i = 0; i < view.size(); ++i) out.push_back(operand(view.at(i)));
  }

  Operand operand(const JsonView& view) {
    charge(kOperandMemory);
    const auto [member, value] = view.onlyMember();
    Operand out;
    if (*member == "as_none") return out;
    for (const SimpleKind& simple : kSimpleKinds) {
      if (*member != simple.member) continue;
      if (simple.is_list) return listOf(simple.kind, value);
      return scalar(simple.kind, value);
    }
    if (*member == "as_optional_tensor") return optionalTensor(value);
    if (*member == "as_optional_tensors") {
      out = emptyList(OperandKind::Tensor, value);
      out.optional = true;
      for (size_t i = 0; i < value.size(); ++i) out.elements.push_back(optionalTensor(value.at(i)));
      return out;
    }
    if (*member == "as_nested_tensors" || *member == "as_int_lists") {
      out = emptyList(OperandKind::List, value);
      const OperandKind inner = *member == "as_int_lists" ? OperandKind::Int : OperandKind::Tensor;
      for (size_t i = 0; i < value.size(); ++i) out.elements.push_back(listOf(inner, value.at(i)));
      return out;
    }
    if (*member == "as_string_to_argument") {
      out.kind = OperandKind::Dict;
      const Json& members = value.expectObject().json();
      for (auto it = members.begin(); it != members.end(); ++it) {
        out.keys.push_back(it.key());
        out.elements.push_back(operand(JsonView(it.value(), place_, "as_string_to_argument")));
      }
      return out;
    }
    if (*member == "as_graph") {
      out.kind = OperandKind::Graph;
      out.graph = std::make_shared<GraphRecord>();
      const std::string outer = place_;
      out.graph->name = nameIn(value.at("name"));
      readGraph(value.at("graph"), *out.graph);
      place_ = outer;
      return out;
    }
    view.fail("'{}' is no kind of argument that is known", member->substr(0, 100));
  }

  Operand emptyList(OperandKind element, const JsonView& value) const {
    value.expectArray();
    charge(kOperandMemory * value.size());
    Operand out;
    out.kind = OperandKind::List;
    out.element = element;
    out.elements.reserve(value.size());
    return out;
  }

  Operand listOf(OperandKind element, const JsonView& value) const {
    Operand out = emptyList(element, value);
    for (size_t i = 0; i < value.size(); ++i) out.elements.push_back(scalar(element, value.at(i)));
    return out;
  }

  Operand optionalTensor(const JsonView& view) const {
    const auto [member, value] = view.onlyMember();
    if (*member == "as_none") return {};
    if (*member != "as_tensor") view.fail("expected as_tensor or as_none");
    return scalar(OperandKind::Tensor, value);
  }

  // Names stand in messages and in listings of graphs, where a control character would break lines or end the text.
  static std::string nameIn(const JsonView& view) {
    const std::string& name = view.text();
    if (name.size() > kMaxName) view.fail("a name has {} characters", name.size());
    for (const char c : name) {
      if (static_cast<unsigned char>(c) >= ' ') continue;
      view.fail("a name has the control character {}", static_cast<int>(c));
    }
    return name;
  }

  Operand scalar(OperandKind kind, const JsonView& value) const {
    Operand out;
    out.kind = kind;
    switch (kind) {
      case OperandKind::Int:
      case OperandKind::ScalarType:
      case OperandKind::MemoryFormat:
      case OperandKind::Layout:
        out.integer = value.integer();
        break;
      case OperandKind::Float:
        out.real = value.number();
        break;
      case OperandKind::Bool:
        out.integer = value.boolean() ? 1 : 0;
        break;
      case OperandKind::String:
        out.text = value.text();
        break;
      case OperandKind::Operator:
        out.text = nameIn(value);
        break;
      case OperandKind::Complex:
        out.real = value.at("real").number();
        out.imaginary = value.at("imag").number();
        break;
      case OperandKind::Device:
        out.text = device(value);
        break;
      case OperandKind::Tensor:
      case OperandKind::Object:
      case OperandKind::Token:
        out.text = nameIn(value.at("name"));
        break;
      case OperandKind::SymInt:
      case OperandKind::SymFloat:
      case OperandKind::SymBool:
        return symbol(kind, value);
      default:
        value.fail("no scalar");
    }
    charge(out.text.size());
    return out;
  }

  // A name, or a constant in its place.
  Operand symbol(OperandKind kind, const JsonView& view) const {
    const auto [member, value] = view.onlyMember();
    if (*member == "as_name") {
      Operand out;
      out.kind = kind;
      out.text = nameIn(value);
      charge(out.text.size());
      return out;
    }
    if (kind == OperandKind::SymInt && *member == "as_int") return scalar(OperandKind::Int, value);
    if (kind == OperandKind::SymFloat && *member == "as_float")
      return scalar(OperandKind::Float, value);
    if (kind == OperandKind::SymBool && *member == "as_bool")
      return scalar(OperandKind::Bool, value);
    view.fail("'{}' is no kind of number that is known", member->substr(0, 100));
  }

  static std::string device(const JsonView& view) {
    std::string name = nameIn(view.at("type"));
    if (view.has("index")) name += fmt::format(":{}", view.at("index").integer());
    return name;
  }

  Size size(const JsonView& view) const {
    const auto [member, value] = view.onlyMember();
    Size out;
    if (*member == "as_int") {
      out.number = value.integer();
    } else if (*member == "as_expr") {
      out.expression = value.at("expr_str").text();
      if (value.has("hint") && value.at("hint").has("as_int")) {
        out.hint = value.at("hint").at("as_int").integer();
      }
      charge(out.expression.size());
    } else {
      view.fail("'{}' is no kind of size that is known", member->substr(0, 100));
    }
    return out;
  }

  void readSizes(const JsonView& view, std::vector<Size>& out) const {
    view.expectArray();
    charge(view.size() * sizeof(Size));
    for (size_t i = 0; i < view.size(); ++i) out.push_back(size(view.at(i)));
  }

  TensorMeta tensorMeta(const JsonView& view) const {
    TensorMeta out;
    out.dtype = view.at("dtype").integer();
    out.layout = view.at("layout").integer();
    readSizes(view.at("sizes"), out.sizes);
    readSizes(view.at("strides"), out.strides);
    out.storage_offset = size(view.at("storage_offset"));
    out.device = device(view.at("device"));
    out.requires_grad = view.at("requires_grad").boolean();
    return out;
  }

  template <class T, class Read>
  void readSpecs(const JsonView& view, std::vector<T>& out, const Read& read) {
    view.expectArray();
    for (size_t i = 0; i < view.size(); ++i) {
      charge(sizeof(T));
      out.push_back(read(view.at(i)));
    }
  }

  InputSpec inputSpec(const JsonView& view) {
    struct Row {
      std::string_view member;
      InputSpec::Kind kind;
      OperandKind value;
      const char* target;
    };
    static constexpr Row kRows[] = {
        {"parameter", InputSpec::Kind::Parameter, OperandKind::Tensor, "parameter_name"},
        {"buffer", InputSpec::Kind::Buffer, OperandKind::Tensor, "buffer_name"},
        {"tensor_constant", InputSpec::Kind::TensorConstant, OperandKind::Tensor,
         "tensor_constant_name"},
        {"custom_obj", InputSpec::Kind::Object, OperandKind::Object, "custom_obj_name"},
        {"token", InputSpec::Kind::Token, OperandKind::Token, nullptr},
    };
    const auto [member, value] = view.onlyMember();
    InputSpec out;
    if (*member == "user_input") {
      out.value = operand(value.at("arg"));
      return out;
    }
    if (*member == "constant_input") {
      out.kind = InputSpec::Kind::Constant;
      out.target = value.at("name").text();
      out.value = operand(value.at("value"));
      return out;
    }
    for (const Row& row : kRows) {
      if (*member != row.member) continue;
      out.kind = row.kind;
      out.value = scalar(row.value, value.at("arg"));
      if (row.target) out.target = nameIn(value.at(row.target));
      if (value.has("persistent")) out.persistent = value.at("persistent").boolean();
      return out;
    }
    view.fail("'{}' is no kind of input that is known", member->substr(0, 100));
  }

  OutputSpec outputSpec(const JsonView& view) {
    struct Row {
      std::string_view member;
      OutputSpec::Kind kind;
      const char* target;
    };
    static constexpr Row kRows[] = {
        {"loss_output", OutputSpec::Kind::Loss, nullptr},
        {"buffer_mutation", OutputSpec::Kind::BufferMutation, "buffer_name"},
        {"parameter_mutation", OutputSpec::Kind::ParameterMutation, "parameter_name"},
        {"user_input_mutation", OutputSpec::Kind::InputMutation, "user_input_name"},
        {"gradient_to_parameter", OutputSpec::Kind::ParameterGradient, "parameter_name"},
        {"gradient_to_user_input", OutputSpec::Kind::InputGradient, "user_input_name"},
        {"token", OutputSpec::Kind::Token, nullptr},
    };
    const auto [member, value] = view.onlyMember();
    OutputSpec out;
    if (*member == "user_output") {
      out.value = operand(value.at("arg"));
      return out;
    }
    for (const Row& row : kRows) {
      if (*member != row.member) continue;
      out.kind = row.kind;
      out.value =
          scalar(row.kind == OutputSpec::Kind::Token ? OperandKind::Token : OperandKind::Tensor,
                 value.at("arg"));
      if (row.target) out.target = nameIn(value.at(row.target));
      return out;
    }
    view.fail("'{}' is no kind of output that is known", member->substr(0, 100));
  }

  void readCalls(const JsonView& module, ProgramRecord& out) const {
    const JsonView calls = module.at("module_call_graph").expectArray();
    for (size_t i = 0; i < calls.size(); ++i) {
      const JsonView call = calls.at(i);
      if (!call.at("fqn").text().empty() || !call.has("signature")) continue;
      const JsonView signature = call.at("signature");
      out.argument_tree = signature.at("in_spec").text();
      out.result_tree = signature.at("out_spec").text();
      if (signature.has("forward_arg_names")) {
        const JsonView names = signature.at("forward_arg_names").expectArray();
        for (size_t j = 0; j < names.size(); ++j) out.argument_names.push_back(names.at(j).text());
      }
      break;
    }
    if (!module.has("treespec_namedtuple_fields")) return;
    const Json& tuples = module.at("treespec_namedtuple_fields").expectObject().json();
    for (auto it = tuples.begin(); it != tuples.end(); ++it) {
      const JsonView entry(it.value(), place_, "treespec_namedtuple_fields");
      const JsonView fields = entry.at("field_names").expectArray();
      std::vector<std::string>& names = out.named_tuple_fields[it.key()];
      for (size_t j = 0; j < fields.size(); ++j) names.push_back(fields.at(j).text());
    }
  }

  void readRanges(const JsonView& root, ProgramRecord& out) const {
    if (!root.has("range_constraints")) return;
    const JsonView ranges = root.at("range_constraints").expectObject();
    for (auto it = ranges.json().begin(); it != ranges.json().end(); ++it) {
      const JsonView entry(it.value(), place_, "range_constraints");
      SizeRange range;
      if (entry.has("min_val")) range.least = entry.at("min_val").integer();
      if (entry.has("max_val")) range.most = entry.at("max_val").integer();
      charge(kTensorMemory + it.key().size());
      out.ranges.emplace_back(it.key(), range);
    }
  }

  const std::string name_;
  std::string place_;  // the part that is being read, for messages
  LoadBudget& budget_;
};

struct NumberedDType {
  int64_t number;
  std::optional<DType> dtype;
  const char* name;
};
constexpr NumberedDType kDTypes[] = {
    {1, DType::Byte, "uint8"},
    {2, DType::Char, "int8"},
    {3, DType::Short, "int16"},
    {4, DType::Int, "int32"},
    {5, DType::Long, "int64"},
    {6, DType::Half, "float16"},
    {7, DType::Float, "float32"},
    {8, DType::Double, "float64"},
    {9, std::nullopt, "complex32"},
    {10, DType::ComplexFloat, "complex64"},
    {11, DType::ComplexDouble, "complex128"},
    {12, DType::Bool, "bool"},
    {13, DType::BFloat16, "bfloat16"},
    {28, std::nullopt, "uint16"},
    {29, std::nullopt, "float8_e4m3fn"},
    {30, std::nullopt, "float8_e5m2"},
    {31, std::nullopt, "float8_e4m3fnuz"},
    {32, std::nullopt, "float8_e5m2fnuz"},
};

}  // namespace

ProgramRecord readProgram(std::string_view text, const std::string& name, LoadBudget& budget) {
  return SchemaReader(name, budget).program(text);
}

PayloadConfig readPayloadConfig(std::string_view text, const std::string& name,
                                LoadBudget& budget) {
  return SchemaReader(name, budget).payloads(text);
}

std::optional<DType> dtypeOf(int64_t number) {
  const auto* found = std::ranges::find(kDTypes, number, &NumberedDType::number);
  return found == std::end(kDTypes) ? std::nullopt : found->dtype;
}

std::string dtypeName(int64_t number) {
  const auto* found = std::ranges::find(kDTypes, number, &NumberedDType::number);
  return found == std::end(kDTypes) ? fmt::format("number {}", number) : found->name;
}

std::optional<int64_t> memoryFormatOf(int64_t number) {
  // Contiguous, channels last in two and three dimensions, preserve; TorchScript's numbers are 0, 2, 3 and 1.
  constexpr std::array<int64_t, 5> kNumbers = {-1, 0, 2, 3, 1};
  if (number < 1 || number >= static_cast<int64_t>(kNumbers.size())) return std::nullopt;
  return kNumbers[static_cast<size_t>(number)];
}

std::optional<int64_t> layoutOf(int64_t number) {
  // Sparse COO, CSR, CSC, BSR, BSC, oneDNN's own, strided.
  constexpr std::array<int64_t, 8> kNumbers = {-1, 1, 2, 4, 5, 6, 3, 0};
  if (number < 1 || number >= static_cast<int64_t>(kNumbers.size())) return std::nullopt;
  return kNumbers[static_cast<size_t>(number)];
}

}  // namespace wick::exported
