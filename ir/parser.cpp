// A recursive-descent reader of the IR's text form (ir/printer.h). Lines carry no meaning: the
// grammar needs none, because every construct ends with a bracket or begins with a keyword.
#include "ir/parser.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "core/conform.h"
#include "core/error.h"
#include "core/keyed_hash.h"
#include "ir/depth.h"

namespace wick {

namespace {

// Types, literals and subgraphs nest by recursion; text from outside must not overflow the stack.
// Blocks have a limit of their own, kMaxBlockDepth.
constexpr int kMaxDepth = 400;
constexpr size_t kParserStack = size_t{1} << 20;

class Parser {
 public:
  Parser(std::string_view text, const std::function<TypePtr(const std::string&)>& resolve)
      : source_(std::make_shared<Source>(std::string(text), "<ir>")),
        text_(source_->text()),
        resolve_(resolve) {}

  std::shared_ptr<Graph> parse() {
    auto graph = std::make_shared<Graph>();
    graph_ = graph.get();
    keyword("graph");
    definitions(')', [&](const std::string& name, TypePtr type) {
      bind(name, graph_->block()->addInput(std::move(type)));
    });
    expect(':');
    nodes(graph->block());
    keyword("return");
    for (Value* v : uses()) graph->registerOutput(v);
    skip();
    if (at_ != text_.size()) fail("expected the end of the text");
    graph->setInsertPoint(graph->block());
    return graph;
  }

 private:
  // ---- characters ----
  void skip() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '#') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        break;
      }
    }
  }
  char peek() {
    skip();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  bool acceptWord(std::string_view word) {
    skip();
    if (text_.substr(at_, word.size()) != word) return false;
    size_t end = at_ + word.size();
    if (end < text_.size() && isNameChar(text_[end]) && isNameChar(word.back())) return false;
    at_ = end;
    return true;
  }
  void keyword(std::string_view word) {
    if (!acceptWord(word)) fail(fmt::format("expected '{}'", word));
  }
  static bool isNameChar(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.';
  }
  std::string name() {
    skip();
    size_t start = at_;
    while (at_ < text_.size() && isNameChar(text_[at_])) ++at_;
    if (at_ == start) fail("expected a name");
    return std::string(text_.substr(start, at_ - start));
  }
  [[noreturn]] void fail(const std::string& message) {
    size_t start = std::min(at_, text_.size());
    throw CompileError(SourceRange(source_, start, start + 1), "IR: " + message);
  }

  // ---- types ----
  // The text of a type ends at a ',', ')', ']', '=' or line end outside of brackets.
  TypePtr type() {
    skip();
    size_t start = at_;
    int depth = 0;
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      if (c == '(' || c == '[') {
        ++depth;
      } else if (c == ')' || c == ']') {
        if (depth == 0) break;
        --depth;
      } else if (depth == 0 && (c == ',' || c == '=' || c == '\n' || c == '#')) {
        break;
      }
    }
    std::string_view spelled = text_.substr(start, at_ - start);
    while (!spelled.empty() && spelled.back() == ' ') spelled.remove_suffix(1);
    if (spelled.empty()) fail("expected a type");
    try {
      return typeOf(spelled);
    } catch (const CompileError&) {
      throw;
    } catch (const Error& e) {
      at_ = start;
      fail(e.message());
    }
  }

  TypePtr typeOf(std::string_view s) {
    if (++depth_ > kMaxDepth) fail("types nest too deeply");
    TypePtr result = typeOfInner(s);
    --depth_;
    return result;
  }

  TypePtr typeOfInner(std::string_view s) {
    while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
    while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
    if (s.empty()) fail("expected a type");
    if (s.back() == '?') return types::Optional(typeOf(s.substr(0, s.size() - 1)));
    if (s.size() > 2 && s.substr(s.size() - 2) == "[]")
      return types::List(typeOf(s.substr(0, s.size() - 2)));
    if (s.front() == '(' && s.back() == ')')
      return types::Tuple(typesOf(s.substr(1, s.size() - 2)));
    size_t paren = s.find('(');
    std::string_view head = s.substr(0, paren);
    if (paren != std::string_view::npos && s.back() == ')') {
      std::string_view inside = s.substr(paren + 1, s.size() - paren - 2);
      if (head == "Dict") {
        std::vector<TypePtr> kv = typesOf(inside);
        if (kv.size() != 2) fail("Dict has a key and a value type");
        return types::Dict(kv[0], kv[1]);
      }
      if (head == "Future") return types::Future(typeOf(inside));
      if (head == "Union") return unionOf(typesOf(inside));
      if (head == "Optional") return types::Optional(typeOf(inside));
      if (dtypeFromName(head) || head == "Tensor") return refinedTensor(head, inside);
    }
    if (head.front() >= 'A' && head.front() <= 'Z' && dtypeFromName(head)) {
      TensorType::Facts facts;
      facts.dtype = dtypeFromName(head);
      return TensorType::create(facts);
    }
    if (resolve_) {
      if (TypePtr found = resolve_(std::string(s))) return found;
    }
    return parseSchemaType(s);
  }

  // Splits at top-level commas.
  std::vector<std::string_view> split(std::string_view s) {
    std::vector<std::string_view> parts;
    int depth = 0;
    size_t start = 0;
    for (size_t i = 0; i <= s.size(); ++i) {
      if (i == s.size() || (depth == 0 && s[i] == ',')) {
        std::string_view part = s.substr(start, i - start);
        while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
        while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
        if (!part.empty()) parts.push_back(part);
        start = i + 1;
      } else if (s[i] == '(' || s[i] == '[') {
        ++depth;
      } else if (s[i] == ')' || s[i] == ']') {
        --depth;
      }
    }
    return parts;
  }

  std::vector<TypePtr> typesOf(std::string_view s) {
    std::vector<TypePtr> out;
    for (std::string_view part : split(s)) out.push_back(typeOf(part));
    return out;
  }

  int64_t intOf(std::string_view s) {
    int64_t v = 0;
    auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
    if (error != std::errc() || end != s.data() + s.size())
      fail(fmt::format("expected an int, found '{}'", s));
    return v;
  }

  // Float(2, *, strides=[3, 1], requires_grad=0, device=cpu)
  TypePtr refinedTensor(std::string_view head, std::string_view inside) {
    TensorType::Facts facts;
    if (head != "Tensor") facts.dtype = dtypeFromName(head);
    std::vector<std::optional<int64_t>> sizes;
    bool any_size = inside.empty();
    for (std::string_view part : split(inside)) {
      size_t eq = part.find('=');
      if (eq == std::string_view::npos) {
        any_size = true;
        if (part == "*") {
          sizes.push_back(std::nullopt);
        } else if (part.starts_with("SS(") && part.ends_with(")")) {
          sizes.push_back(intOf(part.substr(3, part.size() - 4)));
        } else {
          sizes.push_back(intOf(part));
        }
        continue;
      }
      std::string_view key = part.substr(0, eq);
      std::string_view value = part.substr(eq + 1);
      if (key == "requires_grad") {
        facts.requires_grad = value == "1";
      } else if (key == "device") {
        facts.device = Device::parse(value);
      } else if (key == "strides" && value.size() >= 2) {
        std::vector<int64_t> strides;
        for (std::string_view s : split(value.substr(1, value.size() - 2)))
          strides.push_back(intOf(s));
        facts.strides = std::move(strides);
      } else {
        fail(fmt::format("unknown tensor property '{}'", key));
      }
    }
    if (any_size) {
      facts.dim = sizes.size();
      facts.sizes = std::move(sizes);
    }
    return TensorType::create(std::move(facts));
  }

  // ---- values and nodes ----
  std::string valueName() {
    expect('%');
    return name();
  }

  void bind(const std::string& name, Value* v) {
    bool number =
        std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!number) v->setDebugName(name);
    if (!values_.emplace(name, v).second) fail(fmt::format("%{} is defined twice", name));
  }

  // "%a : T, %b : T" up to `close`, which is consumed together with the '(' before.
  template <class F>
  void definitions(char close, F&& define) {
    expect('(');
    while (!accept(close)) {
      std::string n = valueName();
      expect(':');
      TypePtr t = type();
      define(n, std::move(t));
      if (peek() != close) expect(',');
    }
  }

  std::vector<Value*> uses() {
    std::vector<Value*> out;
    expect('(');
    while (!accept(')')) {
      std::string n = valueName();
      auto it = values_.find(n);
      if (it == values_.end()) fail(fmt::format("%{} is not defined", n));
      out.push_back(it->second);
      if (peek() != ')') expect(',');
    }
    return out;
  }

  // A node begins with a value, or with its kind "ns::name" when it has no outputs.
  bool startsNode() {
    if (peek() == '%' || peek() == '=') return true;
    size_t end = at_;
    while (end < text_.size() && isNameChar(text_[end])) ++end;
    return end > at_ && text_.substr(end, 2) == "::";
  }

  void nodes(Block* block) {
    if (++block_depth_ > kMaxBlockDepth) {
      fail(fmt::format("blocks nest deeper than {} levels", kMaxBlockDepth));
    }
    while (startsNode()) node(block);
    --block_depth_;
  }

  void node(Block* block) {
    size_t start = at_;
    std::vector<std::pair<std::string, TypePtr>> results;
    if (peek() == '%') {
      do {
        std::string n = valueName();
        expect(':');
        results.emplace_back(n, type());
      } while (accept(','));
      expect('=');
    } else {
      accept('=');
    }
    std::string ns = name();
    expect(':');
    expect(':');
    Node* n = graph_->create(Symbol::fromQualString(ns + "::" + name()), 0);
    n->setRange(SourceRange(source_, start, at_));
    block->appendNode(n);
    if (accept('[')) attributes(n, results.empty() ? nullptr : results[0].second);
    // The nodes within have attributes of their own.
    const auto references = std::exchange(pending_subgraphs_, {});
    for (Value* v : uses()) n->addInput(v);
    for (size_t i = 0; acceptWord(fmt::format("block{}", i)); ++i) subBlock(n);
    while (acceptWord("with")) subgraph();
    for (const auto& [attribute, label] : references) {
      auto found = subgraphs_->find(label);
      if (found == subgraphs_->end()) fail(fmt::format("the subgraph {} is not defined", label));
      n->setAttribute(attribute, found->second);
    }
    for (auto& [result, type] : results) bind(result, n->addOutput(std::move(type)));
  }

  void subBlock(Node* n) {
    Block* b = n->addBlock();
    definitions(')', [&](const std::string& name, TypePtr type) {
      bind(name, b->addInput(std::move(type)));
    });
    expect(':');
    nodes(b);
    keyword("->");
    for (Value* v : uses()) b->registerOutput(v);
  }

  void subgraph() {
    std::string label = name();
    expect('=');
    skip();
    // The subgraph is a text of its own that ends with its return.
    Parser inner(text_.substr(at_), resolve_);
    inner.depth_ = depth_ + 1;
    if (inner.depth_ > kMaxDepth) fail("subgraphs nest too deeply");
    inner.block_depth_ = block_depth_;
    inner.subgraphs_ = subgraphs_;
    auto graph = std::make_shared<Graph>();
    inner.graph_ = graph.get();
    inner.keyword("graph");
    inner.definitions(')', [&](const std::string& name, TypePtr type) {
      inner.bind(name, graph->block()->addInput(std::move(type)));
    });
    inner.expect(':');
    inner.nodes(graph->block());
    inner.keyword("return");
    for (Value* v : inner.uses()) graph->registerOutput(v);
    graph->setInsertPoint(graph->block());
    at_ += inner.at_;
    (*subgraphs_)[label] = std::move(graph);
  }

  void attributes(Node* n, const TypePtr& result_type) {
    do {
      Symbol key = Symbol::attr(name());
      expect('=');
      if (acceptWord("types")) {
        expect('[');
        std::vector<TypePtr> list;
        while (!accept(']')) {
          list.push_back(type());
          if (peek() != ']') expect(',');
        }
        n->setAttribute(key, std::move(list));
      } else if (acceptWord("type")) {
        n->setAttribute(key, type());
      } else if (startsLiteral()) {
        const TypePtr type = n->kind() == prim::Constant ? result_type : nullptr;
        IValue value = literal(type);
        try {
          if (type) value = conform(std::move(value), type);
        } catch (const RuntimeError& error) {
          fail(error.brief());
        }
        n->setAttribute(key, std::move(value));
      } else {
        pending_subgraphs_.emplace_back(key, name());
      }
    } while (accept(','));
    expect(']');
  }

  // ---- literals ----
  bool startsLiteral() {
    char c = peek();
    if (c == '"' || c == '[' || c == '(' || c == '{' || c == '-' || (c >= '0' && c <= '9'))
      return true;
    for (std::string_view word : {"True", "False", "None", "tensor<", "complex(", "inf", "nan"}) {
      if (text_.substr(at_, word.size()) == word) return true;
    }
    if (c == '<') fail("this constant was printed without its value");
    return false;
  }

  IValue literal(const TypePtr& expected) {
    if (++depth_ > kMaxDepth) fail("literals nest too deeply");
    IValue v = literalInner(expected);
    --depth_;
    return v;
  }

  std::vector<IValue> literals(char close, const std::function<TypePtr(size_t)>& element_type) {
    std::vector<IValue> out;
    while (!accept(close)) {
      out.push_back(literal(element_type(out.size())));
      if (peek() != close) expect(',');
    }
    return out;
  }

  IValue literalInner(const TypePtr& expected) {
    char c = peek();
    if (c == '"') {
      std::string s = quoted();
      if (expected && expected->kind() == TypeKind::Device) return IValue(Device::parse(s));
      return IValue(std::move(s));
    }
    if (accept('[')) {
      const ListType* list = expected ? expected->as<ListType>() : nullptr;
      TypePtr element = list ? list->element() : nullptr;
      std::vector<IValue> elements = literals(']', [&](size_t) { return element; });
      if (!element) element = elementTypeOf(elements, types::Tensor());
      return IValue(makeList(element, std::move(elements)));
    }
    if (accept('(')) {
      const TupleType* tuple = expected ? expected->as<TupleType>() : nullptr;
      return IValue(makeTuple(literals(')', [&](size_t i) {
        return tuple && i < tuple->contained().size() ? tuple->contained()[i] : nullptr;
      })));
    }
    if (accept('{')) return dict(expected);
    if (acceptWord("True")) return IValue(true);
    if (acceptWord("False")) return IValue(false);
    if (acceptWord("None")) return IValue();
    if (acceptWord("tensor<")) return tensor();
    if (acceptWord("complex")) {
      expect('(');
      double re = number().numberToDouble();
      expect(',');
      double im = number().numberToDouble();
      expect(')');
      return IValue(std::complex<double>(re, im));
    }
    IValue v = number();
    // PyTorch prints booleans as numbers.
    const bool is_bool = expected && expected->kind() == TypeKind::Bool && v.isInt();
    return is_bool && (v.toInt() == 0 || v.toInt() == 1) ? IValue(v.toInt() == 1) : v;
  }

  IValue dict(const TypePtr& expected) {
    const DictType* type = expected ? expected->as<DictType>() : nullptr;
    std::vector<IValue> keys, values;
    while (!accept('}')) {
      keys.push_back(literal(type ? type->key() : nullptr));
      expect(':');
      values.push_back(literal(type ? type->value() : nullptr));
      if (peek() != '}') expect(',');
    }
    auto out = makeRef<DictObject>(type ? type->key() : elementTypeOf(keys, types::String()),
                                   type ? type->value() : elementTypeOf(values, types::Tensor()));
    for (size_t i = 0; i < keys.size(); ++i) out->set(std::move(keys[i]), std::move(values[i]));
    return IValue(out);
  }

  // tensor<float32>[2, 2]{1.0, 2.0, 3.0, 4.0}, after "tensor<".
  IValue tensor() {
    std::string dtype_name = name();
    std::optional<DType> dtype = dtypeFromName(dtype_name);
    if (!dtype) fail(fmt::format("'{}' is no dtype", dtype_name));
    expect('>');
    expect('[');
    DimVector sizes;
    while (!accept(']')) {
      sizes.push_back(number().numberToInt());
      if (peek() != ']') expect(',');
    }
    expect('{');
    std::vector<std::complex<double>> numbers;
    std::vector<int64_t> ints;
    while (!accept('}')) {
      IValue e = literal(nullptr);
      if (!e.isNumber()) fail("expected a number");
      numbers.push_back(e.numberToComplex());
      ints.push_back(e.isInt() ? e.rawInt() : 0);
      if (peek() != '}') expect(',');
    }
    if (checkedNumel(sizes) != static_cast<int64_t>(numbers.size())) {
      fail(fmt::format("{} numbers for the shape {}", numbers.size(), formatInts(sizes)));
    }
    if (isIntegral(*dtype, true)) return IValue(Tensor::fromData(ints.data(), sizes).to(*dtype));
    Tensor wide = Tensor::fromData(numbers.data(), sizes);
    if (wick::isComplex(*dtype)) return IValue(wide.to(*dtype));
    std::vector<double> reals;
    for (auto& z : numbers) reals.push_back(z.real());
    return IValue(Tensor::fromData(reals.data(), sizes).to(*dtype));
  }

  IValue number() {
    skip();
    size_t start = at_;
    bool negative = at_ < text_.size() && text_[at_] == '-';
    if (negative) ++at_;
    if (acceptWord("inf")) return IValue(negative ? -INFINITY : INFINITY);
    if (acceptWord("nan")) return IValue(std::numeric_limits<double>::quiet_NaN());
    bool floating = false;
    while (at_ < text_.size()) {
      char c = text_[at_];
      bool sign_of_exponent =
          (c == '-' || c == '+') && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (c == '.' || c == 'e' || c == 'E') {
        floating = true;
      } else if (!(c >= '0' && c <= '9') && !sign_of_exponent) {
        break;
      }
      ++at_;
    }
    std::string_view digits = text_.substr(start, at_ - start);
    if (!floating) return IValue(intOf(digits));
    double v = 0;
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), v);
    if (error != std::errc() || end != digits.data() + digits.size()) fail("malformed number");
    return IValue(v);
  }

  std::string quoted() {
    expect('"');
    std::string out;
    while (at_ < text_.size() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c != '\\') {
        out += c;
        continue;
      }
      if (at_ >= text_.size()) break;
      char escaped = text_[at_++];
      if (escaped == 'n') {
        out += '\n';
      } else if (escaped == 'x' && at_ + 2 <= text_.size()) {
        int code = 0;
        auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + at_ + 2, code, 16);
        if (error != std::errc() || end != text_.data() + at_ + 2) fail("malformed escape");
        out += static_cast<char>(code);
        at_ += 2;
      } else {
        out += escaped;
      }
    }
    if (at_ >= text_.size()) fail("unterminated string");
    ++at_;
    return out;
  }

  std::shared_ptr<const Source> source_;
  std::string_view text_;
  const std::function<TypePtr(const std::string&)>& resolve_;
  size_t at_ = 0;
  int depth_ = 0;
  size_t block_depth_ = 0;
  Graph* graph_ = nullptr;
  KeyedMap<std::string, Value*> values_;
  std::vector<std::pair<Symbol, std::string>> pending_subgraphs_;
  // By label, in all of the text so far: later nodes may hold them, too.
  using Subgraphs = std::map<std::string, std::shared_ptr<Graph>>;
  std::shared_ptr<Subgraphs> subgraphs_ = std::make_shared<Subgraphs>();
};

}  // namespace

std::shared_ptr<Graph> parseGraph(std::string_view text,
                                  const std::function<TypePtr(const std::string&)>& resolve) {
  // As deep as the blocks can nest, in text that has this many of them.
  size_t blocks = 1;
  for (size_t at = text.find("block"); at != text.npos && blocks < kMaxBlockDepth; ++blocks) {
    at = text.find("block", at + 1);
  }
  std::shared_ptr<Graph> graph;
  withStack(kParserStack + blocks * kStackPerBlock, [&] { graph = Parser(text, resolve).parse(); });
  return graph;
}

}  // namespace wick
