#include "streams/picture.h"

#include <fmt/format.h>

#include <unordered_map>

#include "ir/dot.h"

namespace wick::streams {

namespace {

class DotPrinter {
 public:
  explicit DotPrinter(const StreamGraph& graph) : graph_(graph) {}

  std::string print() {
    out_ =
        "digraph {\n"
        "  node [shape=box, fontname=\"Helvetica\", fontsize=11];\n"
        "  edge [fontname=\"Helvetica\", fontsize=9];\n"
        "  graph [fontname=\"Helvetica\", fontsize=11, style=rounded, color=gray];\n";
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const Port& port = graph_.inputs[i];
      out_ += fmt::format("  in{} [label=\"{} : {}\", shape=ellipse];\n", i, dotText(port.value),
                          dotText(port.type));
      source_[port.value] = {fmt::format("in{}", i), &port};
    }
    for (size_t i = 0; i < graph_.filters.size(); ++i) {
      for (const Port& port : graph_.filters[i].outputs) {
        source_[port.value] = {fmt::format("f{}", i), &port};
      }
    }
    for (const Part& part : graph_.root.parts) write(part, 1);
    out_ += "  result [shape=ellipse];\n";
    for (const Port& port : graph_.outputs) {
      const auto& [from, made] = source_[port.value];
      out_ += fmt::format("  {} -> result [label=\"{}\"];\n", from, dotText(made->type));
    }
    return out_ + edges_ + "}\n";
  }

 private:
  void line(size_t depth, const std::string& text) {
    out_ += std::string(2 * depth, ' ') + text + "\n";
  }

  void write(const Part& part, size_t depth) {
    if (part.kind == Part::Kind::Filter) return filter(part.filter, depth);
    if (part.kind == Part::Kind::Identity) return;  // an edge
    std::string label;
    if (part.kind == Part::Kind::SplitJoin) {
      label = part.split.empty() ? "duplicate"
                                 : fmt::format("roundrobin({})", fmt::join(part.split, ", "));
    } else if (part.kind == Part::Kind::Feedback) {
      label = fmt::format("feedback {}", fmt::join(part.carried, ", "));
    } else if (part.kind == Part::Kind::Network) {
      label = "network";
    }
    line(depth, fmt::format("subgraph cluster_{} {{", clusters_++));
    line(depth + 1, fmt::format("label=\"{}\";", dotText(label)));
    for (const Part& inner : part.parts) write(inner, depth + 1);
    line(depth, "}");
  }

  void filter(size_t index, size_t depth) {
    const Filter& f = graph_.filters[index];
    std::string label = f.kind == f.name ? f.kind : f.kind + " " + f.name;
    for (const auto& [name, value] : f.options) label += fmt::format("\n{}={}", name, value);
    for (const auto& [name, value] : f.state) label += fmt::format("\n{}: {}", name, value);
    if (label.find('\n') != std::string::npos) label += "\n";
    line(depth, fmt::format("f{} [label=\"{}\"{}];", index, dotText(label),
                            f.stateful ? ", peripheries=2" : ""));
    for (const Port& port : f.inputs) {
      const auto producer = source_.find(port.value);
      if (producer == source_.end()) continue;
      const auto& [from, made] = producer->second;
      std::string text = made->type;
      if (made->rate != 1) text += fmt::format(" push {}", made->rate);
      if (port.rate != 1) text += fmt::format(" pop {}", port.rate);
      if (port.peek != port.rate) text += fmt::format(" peek {}", port.peek);
      if (port.delay != 0) text += fmt::format(" delay {}", port.delay);
      edges_ += fmt::format("  {} -> f{} [label=\"{}\"];\n", from, index, dotText(text));
    }
  }

  const StreamGraph& graph_;
  std::string out_;
  std::string edges_;
  std::unordered_map<std::string, std::pair<std::string, const Port*>> source_;
  size_t clusters_ = 0;
};

}  // namespace

std::string streamDot(const StreamGraph& graph) {
  return DotPrinter(graph).print();
}

}  // namespace wick::streams
