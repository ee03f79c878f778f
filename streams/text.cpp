#include "streams/text.h"

#include <fmt/format.h>

#include <charconv>

#include "core/error_types.h"

namespace wick::streams {

namespace {

// Parts within each other in a text.
constexpr size_t kTextMaxDepth = 200;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// In one line: without quotes, to the line's end.
std::string onOneLine(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\\') {
      out += "\\\\";
    } else {
      out += c;
    }
  }
  return out;
}

class Printer {
 public:
  explicit Printer(const StreamGraph& graph) : graph_(graph) {}

  std::string print() {
    out_ = fmt::format("stream {} ({}) -> ({}) {{\n", quoted(graph_.name), declared(graph_.inputs),
                       declared(graph_.outputs));
    for (const Part& part : graph_.root.parts) write(part, 1);
    return out_ + "}\n";
  }

 private:
  static std::string declared(const std::vector<Port>& ports) {
    std::string text;
    for (const Port& port : ports) {
      text += fmt::format("{}{} : {}", text.empty() ? "" : ", ", port.value, port.type);
      if (port.rate != 1) text += fmt::format(" push {}", port.rate);
    }
    return text;
  }
  static std::string read(const std::vector<Port>& ports) {
    std::string text;
    for (const Port& port : ports) {
      text += (text.empty() ? "" : ", ") + port.value;
      if (port.rate != 1) text += fmt::format(" pop {}", port.rate);
      if (port.peek != port.rate) text += fmt::format(" peek {}", port.peek);
      if (port.delay != 0) text += fmt::format(" delay {}", port.delay);
    }
    return text;
  }
  static std::string weights(const std::vector<int64_t>& counts) {
    return fmt::format("roundrobin({})", fmt::join(counts, ", "));
  }

  void line(size_t depth, const std::string& text) {
    out_ += std::string(2 * depth, ' ') + text + "\n";
  }

  void filter(const Filter& f, size_t depth) {
    std::string head = f.stateful ? "stateful " : "";
    if (f.most_replicas != 0) head += fmt::format("replicas {} ", f.most_replicas);
    head += fmt::format("filter {} {} ({}) -> ({})", f.kind, quoted(f.name), read(f.inputs),
                        declared(f.outputs));
    if (f.options.empty() && f.state.empty()) return line(depth, head);
    line(depth, head + " {");
    for (const auto& [name, value] : f.options) {
      line(depth + 1, fmt::format("{} = {}", name, onOneLine(value)));
    }
    for (const auto& [name, value] : f.state) {
      line(depth + 1, fmt::format("state {} = {}", name, onOneLine(value)));
    }
    line(depth, "}");
  }

  void inner(const std::string& head, const Part& part, size_t depth) {
    line(depth, head + " {");
    for (const Part& p : part.parts) write(p, depth + 1);
    line(depth, "}");
  }

  void write(const Part& part, size_t depth) {
    switch (part.kind) {
      case Part::Kind::Filter:
        return filter(graph_.filters[part.filter], depth);
      case Part::Kind::Identity:
        return line(depth, "identity " + part.value);
      case Part::Kind::Pipeline:
        return inner("pipeline", part, depth);
      case Part::Kind::Network:
        return inner("network", part, depth);
      case Part::Kind::Feedback:
        return inner(fmt::format("feedback ({})", fmt::join(part.carried, ", ")), part, depth);
      case Part::Kind::SplitJoin:
        line(depth, "splitjoin {");
        line(depth + 1, "split " + (part.split.empty() ? "duplicate" : weights(part.split)));
        for (const Part& p : part.parts) write(p, depth + 1);
        line(depth + 1, "join " + weights(part.join));
        return line(depth, "}");
    }
  }

  const StreamGraph& graph_;
  std::string out_;
};

bool isNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == ':' || c == '$';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  StreamGraph parse() {
    expectWord("stream");
    graph_.name = string();
    graph_.inputs = declared();
    arrow();
    graph_.outputs = declared();
    expect('{');
    graph_.root.parts = parts(0);
    expect('}');
    skip();
    if (at_ != text_.size()) fail("the end of the text");
    validate(graph_);
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n' ? 1 : 0;
    }
    const std::string found(text_.substr(at_, std::min<size_t>(text_.size() - at_, 20)));
    throw UsageError(fmt::format("stream graph, line {}, column {}: expected {}, found {}", line,
                                 column, expected,
                                 found.empty() ? "the end of the text" : quoted(found)));
  }

  void skip() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r')) {
      ++at_;
    }
  }
  bool accept(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}'", c));
  }
  void arrow() {
    skip();
    if (!text_.substr(at_).starts_with("->")) fail("'->'");
    at_ += 2;
  }
  // The word at hand without taking it.
  std::string_view peekWord() {
    skip();
    size_t end = at_;
    while (end < text_.size() && isNameChar(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  bool acceptWord(std::string_view word) {
    if (peekWord() != word) return false;
    at_ += word.size();
    return true;
  }
  void expectWord(std::string_view word) {
    if (!acceptWord(word)) fail(fmt::format("'{}'", word));
  }
  std::string name(const char* what) {
    const std::string_view word = peekWord();
    if (word.empty()) fail(what);
    at_ += word.size();
    return std::string(word);
  }
  int64_t number() {
    const std::string_view word = peekWord();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (word.empty() || error != std::errc() || end != word.data() + word.size()) fail("a number");
    at_ += word.size();
    return value;
  }
  std::string string() {
    skip();
    if (at_ == text_.size() || text_[at_] != '"') fail("a name in quotes");
    std::string value;
    size_t i = at_ + 1;
    for (; i < text_.size() && text_[i] != '"'; ++i) {
      if (text_[i] == '\\' && i + 1 < text_.size()) {
        ++i;
        value += text_[i] == 'n' ? '\n' : text_[i];
      } else {
        value += text_[i];
      }
    }
    if (i == text_.size()) fail("a name in quotes");
    at_ = i + 1;
    return value;
  }
  // Up to the comma or parenthesis that does not belong to it, or to " push".
  std::string type() {
    skip();
    const size_t begin = at_;
    size_t depth = 0;
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      const char c = text_[at_];
      if (depth == 0 && (c == ',' || c == ')' || text_.substr(at_).starts_with(" push "))) break;
      if (c == '[' || c == '(') ++depth;
      if ((c == ']' || c == ')') && depth > 0) --depth;
    }
    if (at_ == begin) fail("a type");
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string restOfLine() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    std::string value;
    for (; at_ < text_.size() && text_[at_] != '\n'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) {
        ++at_;
        value += text_[at_] == 'n' ? '\n' : text_[at_];
      } else {
        value += text_[at_];
      }
    }
    return value;
  }

  // Ports in brackets; f reads what stands behind a name.
  template <class F>
  std::vector<Port> ports(F&& f) {
    std::vector<Port> ports;
    expect('(');
    if (accept(')')) return ports;
    do {
      Port port;
      port.value = name("the name of a value");
      f(port);
      ports.push_back(std::move(port));
    } while (accept(','));
    expect(')');
    return ports;
  }
  std::vector<Port> declared() {
    return ports([&](Port& port) {
      expect(':');
      port.type = type();
      if (acceptWord("push")) port.rate = port.peek = number();
    });
  }
  std::vector<Port> readPorts() {
    return ports([&](Port& port) {
      if (acceptWord("pop")) port.rate = number();
      port.peek = acceptWord("peek") ? number() : port.rate;
      if (acceptWord("delay")) port.delay = number();
    });
  }
  std::vector<int64_t> weights() {
    expectWord("roundrobin");
    std::vector<int64_t> counts;
    expect('(');
    do {
      counts.push_back(number());
      if (counts.back() < 0) fail("a number that is not negative");
    } while (accept(','));
    expect(')');
    return counts;
  }

  std::vector<Part> parts(size_t depth) {
    std::vector<Part> list;
    for (;;) {
      const std::string_view word = peekWord();
      if (word.empty() || word == "join") return list;
      list.push_back(part(depth));
    }
  }

  Part part(size_t depth) {
    if (depth > kTextMaxDepth)
      fail(fmt::format("at most {} parts within each other", kTextMaxDepth));
    Part made;
    if (acceptWord("identity")) {
      made.kind = Part::Kind::Identity;
      made.value = name("the name of a value");
      return made;
    }
    if (peekWord() == "stateful" || peekWord() == "replicas" || peekWord() == "filter") {
      made.kind = Part::Kind::Filter;
      made.filter = filter();
      return made;
    }
    if (acceptWord("pipeline")) {
      made.kind = Part::Kind::Pipeline;
    } else if (acceptWord("network")) {
      made.kind = Part::Kind::Network;
    } else if (acceptWord("splitjoin")) {
      made.kind = Part::Kind::SplitJoin;
    } else if (acceptWord("feedback")) {
      made.kind = Part::Kind::Feedback;
      expect('(');
      do {
        made.carried.push_back(name("the name of a value"));
      } while (accept(','));
      expect(')');
    } else {
      fail("filter, pipeline, splitjoin, feedback, network or identity");
    }
    expect('{');
    if (made.kind == Part::Kind::SplitJoin) {
      expectWord("split");
      if (!acceptWord("duplicate")) made.split = weights();
    }
    made.parts = parts(depth + 1);
    if (made.kind == Part::Kind::SplitJoin) {
      const size_t count = made.parts.size();
      if (!made.split.empty() && made.split.size() != count) {
        fail(fmt::format("a weight in 'split' for each of the {} branches", count));
      }
      expectWord("join");
      made.join = weights();
      if (made.join.size() != count) {
        fail(fmt::format("a weight in 'join' for each of the {} branches", count));
      }
    }
    expect('}');
    return made;
  }

  size_t filter() {
    Filter f;
    f.stateful = acceptWord("stateful");
    if (acceptWord("replicas")) f.most_replicas = number();
    if (f.most_replicas < 0) fail("a number that is not negative");
    expectWord("filter");
    f.kind = name("the kind of the filter");
    f.name = string();
    f.inputs = readPorts();
    arrow();
    f.outputs = declared();
    if (accept('{')) {
      while (!accept('}')) {
        const bool is_state = acceptWord("state") && peekWord() != "";
        std::string key = is_state || peekWord() != "" ? name("the name of an option") : "state";
        expect('=');
        (is_state ? f.state : f.options).emplace_back(std::move(key), restOfLine());
      }
    }
    graph_.filters.push_back(std::move(f));
    return graph_.filters.size() - 1;
  }

  std::string_view text_;
  size_t at_ = 0;
  StreamGraph graph_;
};

}  // namespace

std::string printStream(const StreamGraph& graph) {
  return Printer(graph).print();
}

StreamGraph parseStream(std::string_view text) {
  return Parser(text).parse();
}

}  // namespace wick::streams
