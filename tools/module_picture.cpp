// The nodes are walked in the order of the program. Calls were inlined where they stood, so that the nodes of a module are
// neighbours: a box is a run of nodes with one owner, and edges between boxes lead forward. A module that is called
// twice is two boxes.
//
//   conv1 … layer1.0.conv1 … layer1.0.relu … layer1.1.conv1 … aten::flatten … fc
//   │      └─ layer1.0 ─────────────────────┘└─ layer1.1 ─┘  └ operators     │     with depth 2
#include "tools/module_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/budget.h"
#include "core/error.h"
#include "core/stack.h"
#include "ir/depth.h"
#include "ir/dot.h"
#include "ir/operator.h"
#include "passes/dead_code_elimination.h"
#include "runtime/module_paths.h"

namespace wick::cli {
namespace {

constexpr size_t kMaxDepth = 200;  // of blocks
constexpr size_t kStackPerBlock = size_t{16} << 10;
// Names of operators in a box.
constexpr size_t kFewNames = 6;

bool raises(const Block& block) {
  return std::ranges::any_of(block.nodes(),
                             [](const Node* n) { return n->kind() == prim::RaiseException; });
}

void leaveOutIn(Block* block) {
  for (auto it = block->nodes().begin(), end = block->nodes().end(); it != end;) {
    Node* node = *it;
    ++it;
    for (Block* inner : node->blocks()) leaveOutIn(inner);
    if (node->kind() != prim::If) continue;
    const bool first = raises(*node->blocks()[0]), second = raises(*node->blocks()[1]);
    if (first == second) continue;
    Block* kept = node->blocks()[first ? 1 : 0];
    while (!kept->empty()) kept->returnNode()->next()->moveBefore(node);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      node->output(i)->replaceAllUsesWith(kept->outputs()[i]);
    }
    node->destroy();
  }
}

// Whether a value of the type holds tensors.
bool holdsTensors(const Type& type) {
  return type.kind() == TypeKind::Tensor ||
         (type.kind() != TypeKind::Class &&
          std::ranges::any_of(type.contained(), [](const TypePtr& t) { return holdsTensors(*t); }));
}

// Nodes that only pass tensors on.
bool passesOn(const Node& node) {
  static const std::set<Symbol> kinds = {prim::ListConstruct,
                                         prim::TupleConstruct,
                                         prim::DictConstruct,
                                         prim::TupleUnpack,
                                         prim::TupleIndex,
                                         prim::ListUnpack,
                                         prim::unchecked_cast,
                                         Symbol::prim("unchecked_unwrap_optional"),
                                         Symbol::prim("Uninitialized"),
                                         Symbol::aten("append"),
                                         Symbol::aten("_unwrap_optional"),
                                         Symbol::aten("__getitem__")};
  return kinds.contains(node.kind());
}

size_t partsOf(const std::string& path) {
  return path.empty() ? 0 : static_cast<size_t>(std::ranges::count(path, '.')) + 1;
}

// The first parts of a path.
std::string beginOf(const std::string& path, size_t parts) {
  size_t end = 0;
  for (size_t i = 0; i < parts && end != std::string::npos; ++i)
    end = path.find('.', end + (i > 0));
  return path.substr(0, end);
}

std::string parentOf(const std::string& path) {
  const size_t dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// "Conv2d" of "__torch__.torch.nn.modules.conv.___torch_mangle_3.Conv2d".
std::string shortName(const std::string& qualified) {
  return qualified.substr(qualified.rfind('.') + 1);
}

// "11,689,512".
std::string withCommas(int64_t number) {
  std::string text = std::to_string(number);
  for (size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

// Paths of the modules that nodes belong to, found once for each call.
class Paths {
 public:
  explicit Paths(GraphFunction& method) : method_(method) {}
  const std::string& of(const Node& node) {
    const InlinedCall* call = node.inlinedFrom().get();
    const auto [at, is_new] = known_.try_emplace(call);
    if (is_new) at->second = modulePathOf(method_, call);
    return at->second;
  }

 private:
  GraphFunction& method_;
  std::unordered_map<const InlinedCall*, std::string> known_;
};

class Painter {
 public:
  // `modules` are those of the outermost one by their paths.
  Painter(const Graph& graph, Paths& paths, size_t depth,
          const std::map<std::string, Module>& modules)
      : graph_(graph), paths_(paths), depth_(depth), modules_(modules) {
    collectPaths(*graph.block());
  }

  // How deep the deepest module lies; 0: no node belongs to a module.
  size_t deepest() const {
    size_t deepest = 0;
    for (const std::string& path : used_) deepest = std::max(deepest, partsOf(path));
    return deepest;
  }

  void walk() {
    for (const Value* input : graph_.inputs()) {
      if (!holdsTensors(*input->type())) continue;
      boxes_.push_back({"",
                        fmt::format("{}\n{}", input->debugName(), edgeText(*input->type())),
                        "ellipse",
                        {},
                        {}});
      sources_[input] = {boxes_.size() - 1};
    }
    open_ = SIZE_MAX;
    walkBlock(*graph_.block());
    boxes_.push_back({"", "result", "ellipse", {}, {}});
    for (const Value* output : graph_.outputs()) connect(*output, boxes_.size() - 1);
  }

  // Without inputs and the result.
  size_t countBoxes() const {
    return static_cast<size_t>(std::ranges::count(boxes_, std::string("box"), &Box::shape));
  }

  std::string text() const {
    std::string out =
        "digraph {\n"
        "  ranksep=0.3; nodesep=0.25;\n"
        "  node [shape=box, fontname=\"Helvetica\", fontsize=10, height=0.3, "
        "margin=\"0.12,0.04\"];\n"
        "  edge [fontname=\"Helvetica\", fontsize=8, arrowsize=0.6];\n"
        "  graph [fontname=\"Helvetica\", fontsize=10, style=rounded, color=gray];\n";
    Frame outermost;
    for (size_t i = 0; i < boxes_.size(); ++i)
      frameOf(outermost, boxes_[i].frame).boxes.push_back(i);
    size_t clusters = 0;
    write(outermost, 2, clusters, out);
    for (const auto& [ends, label] : edges_) {
      out += fmt::format("  b{} -> b{}", ends.first, ends.second);
      if (!label.empty()) out += fmt::format(" [label=\"{}\"]", dotText(label));
      out += ";\n";
    }
    return out + "}\n";
  }

 private:
  struct Box {
    std::string frame;  // the path of the opened module around it
    std::string label;
    std::string shape;
    std::string owner;               // what nodes in a row have in common
    std::vector<std::string> names;  // of operators
  };
  struct Frame {
    std::vector<size_t> boxes;
    std::map<std::string, Frame> inner;
  };

  void collectPaths(const Block& block) {
    for (const Node* node : block.nodes()) {
      used_.insert(paths_.of(*node));
      for (const Block* inner : node->blocks()) collectPaths(*inner);
    }
  }

  // Whether modules within this one have nodes of their own.
  bool hasInner(const std::string& path) const {
    const auto next = used_.upper_bound(path + ".");
    return next != used_.end() && next->starts_with(path + ".");
  }

  void walkBlock(const Block& block) {
    for (const Node* node : block.nodes()) {
      checkBudget();
      if (node->kind() == prim::Constant || node->kind() == prim::GetAttr) continue;
      if (!node->blocks().empty() && opens(*node)) {
        walkInto(*node);
      } else if (passesOn(*node)) {
        std::set<size_t> from;
        for (const Value* input : node->inputs()) addSources(*input, from);
        for (const Value* output : node->outputs()) sources_[output] = from;
        // A list that gets one more element.
        if (node->kind() == Symbol::aten("append")) sources_[node->input(0)] = from;
      } else {
        place(*node);
      }
    }
  }

  // Whether there is more within a branch or loop than one box can show.
  bool opens(const Node& node) const {
    const std::string owner = ownerOf(paths_.of(node));
    const auto differs = [&](const auto& self, const Block& block) -> bool {
      return std::ranges::any_of(block.nodes(), [&](const Node* inner) {
        if (inner->kind() == prim::Constant || inner->kind() == prim::GetAttr) return false;
        return ownerOf(paths_.of(*inner)) != owner ||
               std::ranges::any_of(inner->blocks(), [&](const Block* b) { return self(self, *b); });
      });
    };
    return std::ranges::any_of(node.blocks(), [&](const Block* b) { return differs(differs, *b); });
  }

  // Branches lie one behind the other; a value comes from all that may give it.
  void walkInto(const Node& node) {
    const bool loop = node.kind() == prim::Loop;
    for (const Block* block : node.blocks()) {
      // A loop's first input of the block counts rounds; values come from in front of the loop.
      for (size_t i = 1; loop && i < block->inputs().size() && i + 1 < node.inputs().size(); ++i) {
        sources_[block->inputs()[i]] = sourcesOf(*node.inputs()[i + 1]);
      }
      open_ = SIZE_MAX;
      walkBlock(*block);
    }
    open_ = SIZE_MAX;
    for (size_t i = 0; i < node.outputs().size(); ++i) {
      std::set<size_t> from;
      for (const Block* block : node.blocks()) {
        const size_t at = loop ? i + 1 : i;  // behind the condition
        if (at < block->outputs().size()) addSources(*block->outputs()[at], from);
      }
      sources_[node.output(i)] = std::move(from);
    }
  }

  // The module whose box it is, or "path:" for operators of an opened one.
  std::string ownerOf(const std::string& path) const {
    if (partsOf(path) >= depth_) return beginOf(path, depth_);
    return path.empty() || hasInner(path) ? path + ":" : path;
  }

  // Whether people want to see it among the operators of a box: it makes tensors, or branches and loops hold what does.
  static bool isSeen(const Node& node) {
    const auto holds = [](const Value* v) { return holdsTensors(*v->type()); };
    if (std::ranges::any_of(node.outputs(), holds)) return true;
    if (node.blocks().empty()) return node.outputs().empty();
    return std::ranges::any_of(node.blocks(), [](const Block* block) {
      return std::ranges::any_of(block->nodes(), [](const Node* inner) { return isSeen(*inner); });
    });
  }

  void place(const Node& node) {
    const std::string owner = ownerOf(paths_.of(node));
    const bool operators = owner.ends_with(':');
    const bool seen = isSeen(node);
    // Numbers that an opened module computes are neither boxes nor edges.
    if (operators && !seen) return;
    if (open_ == SIZE_MAX || boxes_[open_].owner != owner) {
      const std::string path = operators ? owner.substr(0, owner.size() - 1) : owner;
      boxes_.push_back(
          {operators ? path : parentOf(path), operators ? "" : labelOf(path), "box", owner, {}});
      open_ = boxes_.size() - 1;
    }
    Box& box = boxes_[open_];
    if (operators) box.names.push_back(nameOf(node));
    connectAll(node, open_);
    if (!seen) return;
    for (const Value* output : node.outputs()) {
      if (holdsTensors(*output->type())) sources_[output] = {open_};
    }
    // Later readers of this value get it from here.
    const Operator* op = node.maybeOperator();
    for (size_t i = 0; op && i < node.inputs().size() && i < 64; ++i) {
      if ((op->writtenArguments(node) >> i & 1) != 0) sources_[node.input(i)] = {open_};
    }
  }

  void connectAll(const Node& node, size_t box) {
    for (const Value* input : node.inputs()) connect(*input, box);
    for (const Block* block : node.blocks()) {
      for (const Node* inner : block->nodes()) connectAll(*inner, box);
      for (const Value* output : block->outputs()) connect(*output, box);
    }
  }

  static std::string nameOf(const Node& node) {
    if (node.kind() == prim::If) return "if";
    if (node.kind() == prim::Loop) return "loop";
    return std::string(node.kind().name());
  }

  std::string labelOf(const std::string& path) const {
    const auto module = modules_.find(path);
    if (module == modules_.end()) return path;
    std::string label = path + "\n" + shortName(module->second.type()->name());
    int64_t parameters = 0;
    for (const auto& [name, tensor] : module->second.parameters()) {
      if (tensor.defined()) parameters += tensor.numel();
    }
    if (parameters > 0) label += fmt::format("\n{} parameters", withCommas(parameters));
    return label;
  }

  const std::set<size_t>& sourcesOf(const Value& value) const {
    static const std::set<size_t> kNone;
    const auto found = sources_.find(&value);
    return found == sources_.end() ? kNone : found->second;
  }

  void addSources(const Value& value, std::set<size_t>& to) const {
    const std::set<size_t>& from = sourcesOf(value);
    to.insert(from.begin(), from.end());
  }

  void connect(const Value& value, size_t to) {
    for (const size_t from : sourcesOf(value)) {
      if (from == to) continue;
      std::string& label = edges_[{from, to}];
      // Inputs tell their types themselves, and what may be a tensor says no more than its edge.
      const bool tells = boxes_[from].shape == "box" && value.type()->kind() == TypeKind::Tensor;
      const std::string text = tells ? edgeText(*value.type()) : "";
      if (label.find(text) != std::string::npos) continue;
      label += (label.empty() ? "" : "\n") + text;
    }
  }

  static std::string operatorsText(const Box& box) {
    std::string text;
    const size_t shown = std::min(box.names.size(), kFewNames);
    for (size_t i = 0; i < shown; ++i) text += (i ? i % 3 ? ", " : ",\n" : "") + box.names[i];
    if (shown < box.names.size()) text += fmt::format("\nand {} more", box.names.size() - shown);
    return text;
  }

  static Frame& frameOf(Frame& outermost, const std::string& path) {
    Frame* at = &outermost;
    for (size_t parts = 1; parts <= partsOf(path); ++parts) at = &at->inner[beginOf(path, parts)];
    return *at;
  }

  void write(const Frame& frame, size_t indent, size_t& clusters, std::string& out) const {
    const std::string pad(indent, ' ');
    for (const size_t i : frame.boxes) {
      const Box& box = boxes_[i];
      const bool operators = box.owner.ends_with(':');
      out += fmt::format("{}b{} [label=\"{}\"", pad, i,
                         centered(operators ? operatorsText(box) : box.label));
      if (box.shape != "box") out += fmt::format(", shape={}", box.shape);
      // Modules stand out from operators.
      if (box.shape == "box" && !operators) out += ", style=filled, fillcolor=\"#e8eef7\"";
      out += "];\n";
    }
    for (const auto& [name, inner] : frame.inner) {
      out += fmt::format("{}subgraph cluster_{} {{\n{}  label=\"{}\";\n", pad, clusters++, pad,
                         dotText(name));
      write(inner, indent + 2, clusters, out);
      out += pad + "}\n";
    }
  }

  // dotText() sets lines left.
  static std::string centered(const std::string& label) {
    std::string text = dotText(label);
    for (size_t at = 0; (at = text.find("\\l", at)) != std::string::npos; at += 2)
      text[at + 1] = 'n';
    return text;
  }

  const Graph& graph_;
  Paths& paths_;
  const size_t depth_;
  const std::map<std::string, Module>& modules_;
  std::set<std::string> used_;  // paths that have nodes
  std::vector<Box> boxes_;
  size_t open_ = SIZE_MAX;  // the box that the next node may join
  std::unordered_map<const Value*, std::set<size_t>> sources_;  // the boxes that a value comes from
  std::map<std::pair<size_t, size_t>, std::string> edges_;
};

}  // namespace

void leaveOutChecks(Graph& graph) {
  withStackFor(graph, [&] { leaveOutIn(graph.block()); });
  eliminateDeadCode(graph);
}

std::string modulePicture(const Graph& graph, GraphFunction& method, const ModulePicture& options) {
  const size_t depth = blockDepth(graph);
  WICK_CHECK(depth <= kMaxDepth,
             "a picture may show {} blocks within each other, this graph has {}", kMaxDepth, depth);
  std::string text;
  withStack(kStackForWalk + kStackPerBlock * depth, [&] {
    Paths paths(method);
    std::map<std::string, Module> modules;
    if (options.self.valid()) {
      for (const auto& [name, module] : options.self.modules()) modules.emplace(name, module);
    }
    const size_t deepest = Painter(graph, paths, 1, modules).deepest();
    if (deepest == 0) return;
    const size_t last = options.depth ? std::min(*options.depth, deepest) : deepest;
    for (size_t at = options.depth ? last : 1; at <= last; ++at) {
      Painter painter(graph, paths, at, modules);
      painter.walk();
      if (!text.empty() && painter.countBoxes() > ModulePicture::kFewBoxes) break;
      text = painter.text();
    }
  });
  return text;
}

}  // namespace wick::cli
