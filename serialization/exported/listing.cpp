#include "serialization/exported/listing.h"

#include <fmt/format.h>

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "serialization/source_origins.h"

namespace wick::exported {
namespace {

// Longer lists are cut.
constexpr size_t kShownElements = 16;
constexpr size_t kShownText = 80;

std::string shown(const Operand& operand) {
  switch (operand.kind) {
    case OperandKind::None:
      return "None";
    case OperandKind::Int:
    case OperandKind::ScalarType:
    case OperandKind::MemoryFormat:
    case OperandKind::Layout:
      return fmt::format("{}", operand.integer);
    case OperandKind::Float:
      return fmt::format("{}", operand.real);
    case OperandKind::Bool:
      return operand.integer != 0 ? "True" : "False";
    case OperandKind::Complex:
      return fmt::format("({}+{}j)", operand.real, operand.imaginary);
    case OperandKind::String:
    case OperandKind::Device:
      return "'" + operand.text.substr(0, kShownText) + "'";
    case OperandKind::Graph:
      return operand.graph->name.substr(0, kShownText);
    case OperandKind::List:
    case OperandKind::Dict: {
      std::string out = "[";
      for (size_t i = 0; i < operand.elements.size(); ++i) {
        if (i > 0) out += ", ";
        if (i == kShownElements) return out + "…]";
        out += shown(operand.elements[i]);
      }
      return out + "]";
    }
    default:
      return operand.text.substr(0, kShownText);
  }
}

// The place that a stack trace's entry names: 'File "net.py", line 12, in forward' and the text of that line below.
SourceRange userPlace(const std::string& entry) {
  constexpr std::string_view kFile = "File \"";
  constexpr std::string_view kLine = "\", line ";
  const size_t end_of_name = entry.find(kLine);
  if (!entry.starts_with(kFile) || end_of_name == std::string::npos) return {};
  const size_t number_at = end_of_name + kLine.size();
  size_t number = 0;
  const char* end = entry.data() + entry.size();
  if (std::from_chars(entry.data() + number_at, end, number).ec != std::errc()) return {};
  const size_t line = entry.find('\n', number_at);
  std::string text = line == std::string::npos ? "" : entry.substr(line + 1);
  text = text.substr(0, text.find('\n'));
  const size_t first = text.find_first_not_of(' ');
  text = first == std::string::npos ? "" : text.substr(first);
  const size_t length = text.size();
  auto source = std::make_shared<Source>(
      std::move(text), entry.substr(kFile.size(), end_of_name - kFile.size()), number);
  return SourceRange(std::move(source), 0, length);
}

class ListingWriter {
 public:
  struct Line {
    const NodeRecord* node;
    size_t start;
    size_t end;
  };

  void write(const GraphRecord& graph, size_t depth) {
    for (const NodeRecord& node : graph.nodes) {
      for (const NamedOperand& input : node.inputs) {
        if (input.operand.kind != OperandKind::Graph) continue;
        text += fmt::format("{:{}}{}:\n", "", 2 * depth, shown(input.operand));
        write(*input.operand.graph, depth + 1);
      }
      text.append(2 * depth, ' ');
      const size_t start = text.size();
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        text += (i > 0 ? ", " : "") + shown(node.outputs[i]);
      }
      if (!node.outputs.empty()) text += " = ";
      text += node.target.substr(0, kShownText) + "(";
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (i > 0) text += ", ";
        if (!node.inputs[i].by_position) text += node.inputs[i].name + "=";
        text += shown(node.inputs[i].operand);
      }
      text += ")";
      lines.push_back({&node, start, text.size()});
      text += "\n";
    }
  }

  std::string text;
  std::vector<Line> lines;
};

}  // namespace

Listing::Listing(const GraphRecord& graph, const std::string& name) {
  ListingWriter writer;
  writer.write(graph, 0);
  source_ = std::make_shared<Source>(std::move(writer.text), name);
  std::vector<std::pair<uint64_t, std::string>> traces;
  for (const ListingWriter::Line& line : writer.lines) {
    lines_[line.node] = {line.start, line.end};
    traces.emplace_back(line.start, line.node->stack_trace);
  }
  setOrigins(source_, [traces = std::move(traces)] {
    std::vector<SourceMark> marks;
    for (const auto& [offset, trace] : traces) marks.push_back({offset, userPlace(trace)});
    return marks;
  });
}

SourceRange Listing::rangeOf(const NodeRecord& node) const {
  const auto found = lines_.find(&node);
  if (found == lines_.end()) return {};
  return SourceRange(source_, found->second.first, found->second.second);
}

}  // namespace wick::exported
