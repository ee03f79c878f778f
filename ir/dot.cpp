// A walk over the blocks writes boxes into frames, and edges behind them. What is not drawn:
// constants and lists of them, which stand in the boxes of their users; submodules, which are
// frames; attributes that are no tensors, which are read like constants.
#include "ir/dot.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/error.h"
#include "core/stack.h"
#include "ir/depth.h"
#include "ir/operator.h"

namespace wick {

std::string dotText(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\l";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += ' ';
    } else {
      out += c;
    }
  }
  return out;
}
namespace {

// Deeper blocks nobody can read; the text of each is copied into the one around it.
constexpr size_t kMaxDepth = 200;
constexpr size_t kStackPerFrame = size_t{16} << 10;

constexpr size_t kLongText = 40;
// Text of one value; lists of lists may repeat each other.
constexpr size_t kMaxText = 200;

std::string shortened(std::string text, size_t most) {
  if (text.size() <= most) return text;
  size_t end = most;
  // Not within a character.
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

// "float32[1, 3, *]"; "" when nothing is known.
std::string tensorText(const TensorType& type) {
  const TensorType::Facts& facts = type.facts();
  std::string text(facts.dtype ? toString(*facts.dtype) : "");
  if (facts.sizes) {
    text += "[";
    for (size_t i = 0; i < facts.sizes->size(); ++i) {
      const std::optional<int64_t>& size = (*facts.sizes)[i];
      text += i ? ", " : "";
      text += size && *size >= 0 ? std::to_string(*size) : "*";
    }
    text += "]";
  } else if (facts.dim) {
    text += fmt::format("[{} dimensions]", *facts.dim);
  }
  return text;
}

std::string edgeText(const Value& value) {
  return wick::edgeText(*value.type());
}

class DotPrinter {
 public:
  DotPrinter(const Graph& graph, const DotOptions& options) : options_(options) {
    if (graph.inputs().empty()) return;
    const auto* type = graph.inputs()[0]->type()->as<ClassType>();
    if (type && type->isModule()) paths_[graph.inputs()[0]] = "";
  }

  std::string print(const Graph& graph) {
    out_ =
        "digraph {\n"
        "  node [shape=box, fontname=\"Helvetica\", fontsize=11];\n"
        "  edge [fontname=\"Helvetica\", fontsize=9];\n"
        "  graph [fontname=\"Helvetica\", fontsize=11, style=rounded, color=gray];\n";
    block(*graph.block(), "", 2);
    return out_ + edges_ + "}\n";
  }

 private:
  // What a frame holds: lines of boxes, and frames by name.
  struct Frame {
    std::string boxes;
    std::map<std::string, Frame> inner;
  };

  void block(const Block& b, const std::string& name, int indent) {
    Frame frame;
    const std::string prefix = name.empty() ? "" : name + " ";
    for (const Value* input : b.inputs()) {
      if (paths_.contains(input)) continue;
      box(frame, idOf(input), input->debugName() + tail(*input), "ellipse");
    }
    for (const Node* node : b.nodes()) place(*node, frame, indent);
    if (!b.outputs().empty()) {
      box(frame, idOf(b.returnNode()), prefix + "result", "ellipse");
      for (const Value* output : b.outputs()) edge(*output, idOf(b.returnNode()));
    }
    write(frame, "", indent);
  }

  void place(const Node& node, Frame& frame, int indent) {
    if (node.kind() == prim::GetAttr && placeAttribute(node, frame)) return;
    if (node.outputs().size() == 1 && folded(*node.output())) return;
    Frame& inside = frameOf(node, frame);
    box(inside, idOf(&node), labelOf(node), "box");
    for (const Value* input : node.inputs()) {
      if (!folded(*input)) edge(*input, idOf(&node));
    }
    for (size_t i = 0; i < node.blocks().size(); ++i) subBlock(node, i, inside, indent);
  }

  // The block of an If or Loop, as a frame of its own.
  void subBlock(const Node& node, size_t i, Frame& frame, int indent) {
    const bool is_if = node.kind() == prim::If;
    const std::string name = is_if ? (i == 0 ? "then" : "else") : "body";
    std::string outside;
    std::swap(outside, out_);
    block(*node.blocks()[i], name, indent + 2);
    std::swap(outside, out_);
    frame.boxes += fmt::format("subgraph cluster_{} {{\n  label=\"{}\";\n{}}}\n", clusters_++,
                               is_if ? name : "loop " + name, outside);
    const Block& b = *node.blocks()[i];
    if (!b.outputs().empty()) {
      edges_ +=
          fmt::format("  {} -> {} [style=dotted, dir=back];\n", idOf(&node), idOf(b.returnNode()));
    }
  }

  // Attributes of the module: submodules are frames, tensors boxes, others texts. False for those
  // of other objects.
  bool placeAttribute(const Node& node, Frame& frame) {
    const auto path = paths_.find(node.input(0));
    if (path == paths_.end()) return false;
    const std::string name = node.ivalue(attr::name).toString();
    const std::string full = path->second.empty() ? name : path->second + "." + name;
    const Value* output = node.output();
    const IValue* value = attributeOf(node);
    if (value) values_[output] = *value;
    const auto* type = output->type()->as<ClassType>();
    if (type && type->isModule()) {
      paths_[output] = full;
      return true;
    }
    if (output->type()->kind() != TypeKind::Tensor) {
      texts_[output] = value && !value->isTensor() ? value->shortRepr(kLongText) : "self." + full;
      return true;
    }
    std::string shape = value && value->isTensor() ? value->toTensor().describe() : tail(*output);
    weights_[output] = path->second;
    // Read twice it is one box.
    if (drawn_.insert(full).second) {
      box(inner(frame, path->second), idOf(output), full + "\n" + shape, "note");
      first_read_[full] = output;
    } else {
      same_[output] = first_read_[full];
    }
    return true;
  }

  const IValue* attributeOf(const Node& node) {
    const Object* object = options_.self;
    if (const auto known = values_.find(node.input(0)); known != values_.end()) {
      if (!known->second.isObject()) return nullptr;
      object = &known->second.toObject();
    } else if (paths_[node.input(0)] != "") {
      return nullptr;
    }
    if (!object) return nullptr;
    const std::string& name = node.ivalue(attr::name).toString();
    const auto slot = object->type()->findAttribute(name);
    return slot ? &object->slot(*slot) : object->type()->findConstant(name);
  }

  // Whether the value is no box but text in the boxes of its users.
  bool folded(const Value& value) {
    if (paths_.contains(&value) || texts_.contains(&value)) return true;
    const Node& node = *value.node();
    if (node.kind() == prim::Constant) {
      texts_[&value] = constantText(node);
      return true;
    }
    if (node.kind() != prim::ListConstruct && node.kind() != prim::TupleConstruct) return false;
    std::string text = node.kind() == prim::ListConstruct ? "[" : "(";
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      if (!folded(*node.inputs()[i]) || paths_.contains(node.inputs()[i])) return false;
      text += (i ? ", " : "") + texts_[node.inputs()[i]];
      text = shortened(std::move(text), kMaxText);
    }
    texts_[&value] = text + (node.kind() == prim::ListConstruct ? "]" : ")");
    return true;
  }

  static std::string constantText(const Node& node) {
    if (!node.hasAttribute(attr::value)) return "None";
    const AttributeValue* held = node.findAttribute(attr::value);
    const IValue* value = held ? std::get_if<IValue>(held) : nullptr;
    if (!value) return node.output()->type()->annotation();
    if (value->isTensor() && value->toTensor().defined() && value->toTensor().numel() > 1) {
      return value->toTensor().describe();
    }
    return shortened(value->shortRepr(kLongText), kLongText);
  }

  // The operator, the constant arguments by name, and for calls of methods the module.
  std::string labelOf(const Node& node) {
    std::string label(node.kind().ns() == "aten" ? node.kind().name() : node.kind().qualString());
    const AttributeValue* named = node.findAttribute(attr::name);
    const IValue* name = named ? std::get_if<IValue>(named) : nullptr;
    if (name && name->isString()) {
      label = name->toString();
      if (node.kind() == prim::CallMethod && !node.inputs().empty()) {
        if (auto path = paths_.find(node.input(0)); path != paths_.end() && !path->second.empty()) {
          label = path->second + "." + label;
        }
      } else if (node.kind() != prim::CallFunction) {
        label = std::string(node.kind().name()) + " ." + label;
      }
    }
    const Operator* op = node.maybeOperator();
    for (size_t i = 0; i < node.inputs().size(); ++i) {
      const auto text = texts_.find(node.inputs()[i]);
      if (text == texts_.end() && !folded(*node.inputs()[i])) continue;
      if (paths_.contains(node.inputs()[i])) continue;
      const bool known = op && i < op->schema().arguments().size();
      const Argument* argument = known ? &op->schema().arguments()[i] : nullptr;
      // What is as the schema has it says nothing.
      if (argument && argument->default_value && isDefault(*node.inputs()[i], *argument)) continue;
      label += "\n" + (argument ? argument->name + "=" : "") + texts_[node.inputs()[i]];
    }
    return label;
  }

  static bool isDefault(const Value& value, const Argument& argument) {
    const Node& node = *value.node();
    if (node.kind() != prim::Constant) return false;
    if (!node.hasAttribute(attr::value)) return argument.default_value->isNone();
    const AttributeValue* held = node.findAttribute(attr::value);
    const IValue* constant = held ? std::get_if<IValue>(held) : nullptr;
    return constant && !constant->isTensor() && !argument.default_value->isTensor() &&
           constant->tag() == argument.default_value->tag() &&
           constant->equals(*argument.default_value);
  }

  // The frame of the module whose weights the node reads, or of the call that it was inlined from
  // when a node with weights was.
  Frame& frameOf(const Node& node, Frame& frame) {
    std::optional<std::string> path;
    for (const Value* input : node.inputs()) {
      const auto weight = weights_.find(input);
      if (weight == weights_.end()) continue;
      path = path ? commonPath(*path, weight->second) : weight->second;
    }
    const InlinedCall* call = node.inlinedFrom().get();
    if (path && call) call_paths_.emplace(call, *path);
    if (!path && call) {
      if (auto known = call_paths_.find(call); known != call_paths_.end()) path = known->second;
    }
    return inner(frame, path.value_or(""));
  }

  static std::string commonPath(const std::string& a, const std::string& b) {
    size_t same = 0;
    size_t end = 0;  // of the last whole name that both begin with
    while (same < a.size() && same < b.size() && a[same] == b[same]) {
      if (a[same] == '.') end = same;
      ++same;
    }
    const bool whole_a = same == a.size() && (same == b.size() || b[same] == '.');
    const bool whole_b = same == b.size() && same < a.size() && a[same] == '.';
    return a.substr(0, whole_a || whole_b ? same : end);
  }

  static Frame& inner(Frame& frame, const std::string& path) {
    Frame* at = &frame;
    for (size_t begin = 0; begin < path.size();) {
      const size_t end = std::min(path.find('.', begin), path.size());
      at = &at->inner[path.substr(begin, end - begin)];
      begin = end + 1;
    }
    return *at;
  }

  void write(const Frame& frame, const std::string& path, int indent) {
    const std::string pad(static_cast<size_t>(indent), ' ');
    for (size_t begin = 0; begin < frame.boxes.size();) {
      const size_t end = frame.boxes.find('\n', begin);
      out_ += pad + frame.boxes.substr(begin, end - begin + 1);
      begin = end + 1;
    }
    for (const auto& [name, below] : frame.inner) {
      const std::string full = path.empty() ? name : path + "." + name;
      out_ += fmt::format("{}subgraph cluster_{} {{\n{}  label=\"{}\";\n", pad, clusters_++, pad,
                          dotText(full));
      write(below, full, indent + 2);
      out_ += pad + "}\n";
    }
  }

  void box(Frame& frame, const std::string& id, const std::string& label, const char* shape) {
    const bool lines = label.find('\n') != std::string::npos;
    frame.boxes += fmt::format("{} [label=\"{}{}\"", id, dotText(label), lines ? "\\l" : "");
    if (std::string_view(shape) != "box") frame.boxes += fmt::format(", shape={}", shape);
    frame.boxes += "];\n";
  }

  void edge(const Value& from, const std::string& to) {
    if (paths_.contains(&from)) return;
    if (folded(from)) {  // a constant that is returned
      const std::string id = fmt::format("c{}", constants_++);
      edges_ += fmt::format("  {} [label=\"{}\", shape=plaintext];\n  {} -> {};\n", id,
                            dotText(texts_[&from]), id, to);
      return;
    }
    const std::string text = weights_.contains(&from) ? "" : edgeText(from);
    edges_ += fmt::format("  {} -> {}", sourceOf(from), to);
    if (!text.empty()) edges_ += fmt::format(" [label=\"{}\"]", dotText(text));
    edges_ += ";\n";
  }

  std::string sourceOf(const Value& value) {
    if (auto same = same_.find(&value); same != same_.end()) return idOf(same->second);
    if (weights_.contains(&value)) return idOf(&value);
    if (value.node()->kind() == prim::Param) return idOf(&value);
    return idOf(value.node());
  }

  static std::string tail(const Value& value) {
    const std::string text = edgeText(value);
    return text.empty() ? "" : "\n" + text;
  }

  std::string idOf(const void* object) {
    return fmt::format("n{}", ids_.emplace(object, ids_.size()).first->second);
  }

  const DotOptions& options_;
  std::string out_;
  std::string edges_;
  std::unordered_map<const void*, size_t> ids_;
  std::unordered_map<const Value*, std::string> paths_;    // of the module and its submodules
  std::unordered_map<const Value*, std::string> texts_;    // of what is not drawn
  std::unordered_map<const Value*, std::string> weights_;  // tensors of modules: the module's path
  std::unordered_map<const Value*, IValue> values_;        // of attributes
  std::unordered_map<const Value*, const Value*> same_;    // read before
  std::unordered_map<std::string, const Value*> first_read_;
  std::set<std::string> drawn_;
  std::unordered_map<const InlinedCall*, std::string> call_paths_;
  size_t clusters_ = 0;
  size_t constants_ = 0;
};

}  // namespace

std::string edgeText(const Type& type) {
  if (const auto* tensor = type.as<TensorType>()) return tensorText(*tensor);
  return shortened(type.annotation(), kLongText);
}

std::string printDot(const Graph& graph, const DotOptions& options) {
  const size_t depth = blockDepth(graph);
  WICK_CHECK(depth <= kMaxDepth,
             "a picture may show {} blocks within each other, this graph has {}", kMaxDepth, depth);
  std::string out;
  withStack(kStackForWalk + kStackPerFrame * depth,
            [&] { out = DotPrinter(graph, options).print(graph); });
  return out;
}

}  // namespace wick
