#include "ir/printer.h"

#include <fmt/format.h>

#include <cstdlib>
#include <unordered_map>

#include "core/error.h"
#include "ir/depth.h"

namespace wick {

namespace {

// Deeper lines stay at this indentation, which means nothing to the reader: otherwise a graph of
// many nested blocks would print to a text of quadratic size.
constexpr int kMaxIndent = 400;

std::string spaces(int indent) {
  return std::string(static_cast<size_t>(std::min(indent, kMaxIndent)), ' ');
}

// What the environment variable WICK_TYPE_VERBOSITY limits PrintOptions::type_detail to.
int typeVerbosity() {
  static const int limit = [] {
    const char* text = std::getenv("WICK_TYPE_VERBOSITY");
    std::string_view level = text ? text : "3";
    if (level.size() != 1 || level[0] < '0' || level[0] > '3') {
      throw UsageError(fmt::format("WICK_TYPE_VERBOSITY: expected 0 to 3, got '{}'", level));
    }
    return level[0] - '0';
  }();
  return limit;
}

class Printer {
 public:
  Printer(std::string& out, const PrintOptions& options) : out_(out), options_(options) {
    options_.type_detail = std::min(options_.type_detail, typeVerbosity());
  }

  void graph(const Graph& g, int indent) {
    out_ += "graph(";
    std::string pad = spaces(indent + 6);
    for (size_t i = 0; i < g.inputs().size(); ++i) {
      if (i) out_ += ",\n" + pad;
      definition(g.inputs()[i]);
    }
    out_ += "):\n";
    for (const Node* n : g.nodes()) node(*n, indent + 2);
    out_ += fmt::format("{}return (", spaces(indent + 2));
    names(g.outputs());
    out_ += ")\n";
  }

  void node(const Node& n, int indent) {
    out_ += spaces(indent);
    for (size_t i = 0; i < n.outputs().size(); ++i) {
      if (i) out_ += ", ";
      definition(n.outputs()[i]);
    }
    if (!n.outputs().empty()) out_ += " = ";
    out_ += n.kind().qualString();
    std::vector<const Graph*> subgraphs;
    attributes(n, subgraphs);
    out_ += "(";
    names(n.inputs());
    out_ += ")";
    if (options_.source_locations && n.range().valid()) {
      const std::string location = options_.location ? options_.location(n) : n.range().location();
      if (!location.empty()) out_ += " # " + location;
    }
    out_ += "\n";
    for (size_t i = 0; i < n.blocks().size(); ++i) block(*n.blocks()[i], i, indent + 2);
    for (const Graph* sub : subgraphs) {
      out_ += fmt::format("{}with {} = ", spaces(indent + 2), labels_.at(sub));
      graph(*sub, indent + 2);
    }
  }

 private:
  void block(const Block& b, size_t index, int indent) {
    std::string pad = spaces(indent);
    out_ += fmt::format("{}block{}(", pad, index);
    for (size_t i = 0; i < b.inputs().size(); ++i) {
      if (i) out_ += ", ";
      definition(b.inputs()[i]);
    }
    out_ += "):\n";
    for (const Node* n : b.nodes()) node(*n, indent + 2);
    out_ += pad + "  -> (";
    names(b.outputs());
    out_ += ")\n";
  }

  void names(const std::vector<Value*>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      out_ += fmt::format("{}%{}", i ? ", " : "", values[i]->debugName());
    }
  }

  void definition(const Value* v) {
    out_ += fmt::format("%{} : {}", v->debugName(), type(v->type()));
  }

  std::string type(const TypePtr& t) const {
    const TensorType* tensor = t->as<TensorType>();
    if (!tensor || options_.type_detail >= 3) return t->str();
    if (options_.type_detail == 0) return "Tensor";
    TensorType::Facts facts = tensor->facts();
    facts.device.reset();
    facts.requires_grad.reset();
    if (options_.type_detail < 2) facts.strides.reset();
    return TensorType::create(facts)->str();
  }

  // `subgraphs`: those that were not printed yet. A graph that several nodes hold, as forks within
  // forks may, is printed where it is first met: with each node the text could double.
  void attributes(const Node& n, std::vector<const Graph*>& subgraphs) {
    if (n.attributes().empty()) return;
    out_ += "[";
    bool first = true;
    for (const auto& [name, value] : n.attributes()) {
      if (!first) out_ += ", ";
      first = false;
      out_ += fmt::format("{}=", name.name());
      if (const IValue* v = std::get_if<IValue>(&value)) {
        constant(*v);
      } else if (const TypePtr* t = std::get_if<TypePtr>(&value)) {
        out_ += "type " + (*t)->str();
      } else if (const auto* ts = std::get_if<std::vector<TypePtr>>(&value)) {
        out_ += "types [";
        for (size_t i = 0; i < ts->size(); ++i) out_ += (i ? ", " : "") + (*ts)[i]->str();
        out_ += "]";
      } else {
        const Graph* sub = std::get<std::shared_ptr<Graph>>(value).get();
        auto [label, is_new] = labels_.try_emplace(sub);
        if (is_new) {
          label->second =
              fmt::format("{}_{}", n.kind().name(), counts_[std::string(n.kind().name())]++);
          subgraphs.push_back(sub);
        }
        out_ += label->second;
      }
    }
    out_ += "]";
  }

  void elements(const std::vector<IValue>& values) {
    for (size_t i = 0; i < values.size(); ++i) {
      if (i) out_ += ", ";
      constant(values[i]);
    }
  }

  void constant(const IValue& v) {
    switch (v.tag()) {
      case IValue::Tag::Tensor:
        tensor(v.toTensor());
        break;
      case IValue::Tag::String:
        quoted(v.toString());
        break;
      case IValue::Tag::List:
        out_ += "[";
        elements(v.elements());
        out_ += "]";
        break;
      case IValue::Tag::Tuple:
        out_ += "(";
        elements(v.elements());
        out_ += v.elements().size() == 1 ? ",)" : ")";
        break;
      case IValue::Tag::Dict: {
        out_ += "{";
        bool first = true;
        for (const auto& [key, value] : v.toDict().items()) {
          if (!first) out_ += ", ";
          first = false;
          constant(key);
          out_ += ": ";
          constant(value);
        }
        out_ += "}";
        break;
      }
      case IValue::Tag::Device:
        quoted(v.toDevice().str());
        break;
      case IValue::Tag::None:
        out_ += "None";
        break;
      case IValue::Tag::Bool:
        out_ += v.rawBool() ? "True" : "False";
        break;
      case IValue::Tag::Int:
        out_ += std::to_string(v.rawInt());
        break;
      case IValue::Tag::Double:
        out_ += formatDouble(v.rawDouble());
        break;
      case IValue::Tag::Complex:
        out_ += fmt::format("complex({}, {})", formatDouble(v.toComplex().real()),
                            formatDouble(v.toComplex().imag()));
        break;
      default:
        out_ += fmt::format("<{}>", v.tagName());
    }
  }

  void tensor(const Tensor& t) {
    if (t.kind() != TensorKind::Dense || t.numel() > options_.max_tensor_elements ||
        !t.device().isCpu()) {
      out_ += "<Tensor>";
      return;
    }
    out_ += fmt::format("tensor<{}>{}", toString(t.dtype()), formatInts(t.sizes()));
    out_ += "{";
    Tensor flat = t.flatten();
    for (int64_t i = 0; i < flat.numel(); ++i) {
      if (i) out_ += ", ";
      Tensor e = flat.select(0, i);
      if (isComplex(t.dtype())) {
        constant(IValue(e.item<std::complex<double>>()));
      } else if (isFloating(t.dtype())) {
        constant(IValue(e.item<double>()));
      } else {
        constant(IValue(e.item<int64_t>()));
      }
    }
    out_ += "}";
  }

  void quoted(const std::string& text) {
    out_ += '"';
    for (char c : text) {
      unsigned char u = static_cast<unsigned char>(c);
      if (c == '"' || c == '\\') {
        out_ += '\\';
        out_ += c;
      } else if (c == '\n') {
        out_ += "\\n";
      } else if (u < 0x20 || u == 0x7f) {
        out_ += fmt::format("\\x{:02x}", u);
      } else {
        out_ += c;
      }
    }
    out_ += '"';
  }

  std::string& out_;
  PrintOptions options_;
  std::unordered_map<const Graph*, std::string> labels_;  // of the graphs that nodes hold
  std::unordered_map<std::string, size_t> counts_;        // of labels, by what they begin with
};

}  // namespace

std::string printGraph(const Graph& graph, const PrintOptions& options) {
  std::string out;
  withStackFor(graph, [&] { Printer(out, options).graph(graph, 0); });
  return out;
}

std::string printNode(const Node& node, const PrintOptions& options) {
  std::string out;
  withStackFor(*node.graph(), [&] { Printer(out, options).node(node, 0); });
  return out;
}

}  // namespace wick
