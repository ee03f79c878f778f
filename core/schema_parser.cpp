// A recursive-descent parser of operator declarations. It reads the text once, without a separate
// lexer: thousands of schemas are parsed when the registry is filled, before the first program can
// run.
#include <fmt/format.h>

#include <charconv>
#include <limits>
#include <unordered_map>

#include "core/error.h"
#include "core/function_schema.h"
#include "core/native_class.h"

namespace wick {

namespace {

constexpr int kMaxDepth = 64;

bool isIdentStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}
bool isIdent(char c) {
  return isIdentStart(c) || isDigit(c);
}

using TypeTable = std::unordered_map<std::string_view, TypePtr>;

const TypeTable& baseTypes() {
  static const TypeTable* table = new TypeTable{
      {"Tensor", types::Tensor()},
      {"int", types::Int()},
      {"SymInt", types::Int()},
      {"float", types::Float()},
      {"complex", types::Complex()},
      {"bool", types::Bool()},
      {"str", types::String()},
      {"Scalar", types::Number()},
      {"number", types::Number()},
      {"Any", types::Any()},
      {"None", types::None()},
      {"NoneType", types::None()},
      {"Device", types::Device()},
      {"Generator", types::Generator()},
      {"Storage", types::Storage()},
      {"Stream", types::Stream()},
      {"Capsule", types::Capsule()},
      {"AnyListType", types::AnyList()},
      {"list", types::AnyList()},
      {"AnyTupleType", types::AnyTuple()},
      {"tuple", types::AnyTuple()},
      {"AnyClassType", types::AnyClass()},
      {"AnyEnumType", types::AnyEnum()},
      // Programs carry these as their numbers, dimension names as text.
      {"ScalarType", types::Int()},
      {"Layout", types::Int()},
      {"MemoryFormat", types::Int()},
      {"QScheme", types::Int()},
      {"Dimname", types::String()},
  };
  return *table;
}

// Names that declarations use for numbers.
std::optional<int64_t> namedNumber(std::string_view name) {
  static const std::unordered_map<std::string_view, int64_t> names = {
      {"Mean", 1},
      {"Sum", 2},
      {"contiguous_format", 0},
      {"preserve_format", 1},
      {"channels_last", 2},
      {"channels_last_3d", 3},
      {"strided", 0},
      {"float", static_cast<int64_t>(DType::Float)},
      {"double", static_cast<int64_t>(DType::Double)},
      {"long", static_cast<int64_t>(DType::Long)},
      {"complex", static_cast<int64_t>(DType::ComplexFloat)},
  };
  auto it = names.find(name);
  if (it == names.end()) return std::nullopt;
  return it->second;
}

// "t", "t1", "tVal".
bool isTypeVariable(std::string_view name) {
  return name[0] >= 'a' && name[0] <= 'z' &&
         (name.size() == 1 || (name[1] >= 'A' && name[1] <= 'Z') ||
          (name.size() == 2 && name[1] >= '0' && name[1] <= '9'));
}

struct ParsedType {
  TypePtr type;
  std::optional<AliasInfo> alias;
  std::optional<int32_t> fixed_size;
};

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  FunctionSchema schema() {
    auto [name, overload] = qualifiedName();
    expect('(');
    std::vector<Argument> arguments;
    bool kwarg_only = false;
    bool vararg = false;
    if (!accept(')')) {
      do {
        if (vararg) fail("'...' must be the last argument");
        if (accept('*')) {
          if (kwarg_only) fail("'*' occurs twice");
          kwarg_only = true;
        } else if (acceptDots()) {
          vararg = true;
        } else {
          arguments.push_back(argument(kwarg_only));
        }
      } while (accept(','));
      expect(')');
    }
    skipSpace();
    if (!startsWith("->")) fail("expected '->'");
    at_ += 2;
    std::vector<Argument> returns;
    bool varret = false;
    if (accept('(')) {
      if (!accept(')')) {
        do {
          if (varret) fail("'...' must be the last return");
          if (acceptDots()) {
            varret = true;
          } else {
            returns.push_back(returned());
          }
        } while (accept(','));
        expect(')');
      }
    } else if (acceptDots()) {
      varret = true;
    } else {
      returns.push_back(returned());
    }
    finish();
    return FunctionSchema(std::move(name), std::move(overload), std::move(arguments),
                          std::move(returns), vararg, varret);
  }

  TypePtr onlyType() {
    TypePtr t = type().type;
    finish();
    return t;
  }

 private:
  // ---- text ----

  [[noreturn]] void fail(std::string_view message) {
    std::string shown(text_.substr(0, 2000));
    throwRuntimeError("schema: {}\n  {}\n  {}^", message, shown,
                      std::string(std::min<size_t>(at_, 2000), ' '));
  }
  void skipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  char peek() {
    skipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool accept(char c) {
    if (at_ >= text_.size() || peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}'", c));
  }
  bool startsWith(std::string_view s) { return text_.substr(at_).starts_with(s); }
  bool acceptDots() {
    skipSpace();
    if (!startsWith("...")) return false;
    at_ += 3;
    return true;
  }
  void finish() {
    skipSpace();
    if (at_ != text_.size()) fail("unexpected text at the end");
  }
  std::string_view identifier(const char* what) {
    if (!isIdentStart(peek())) fail(fmt::format("expected {}", what));
    size_t start = at_;
    while (at_ < text_.size() && isIdent(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
  }

  // ---- names and arguments ----

  // An operator "ns::name.overload", or a function whose name may itself have dots.
  std::pair<std::string, std::string> qualifiedName() {
    skipSpace();
    size_t start = at_;
    identifier("a name");
    bool is_operator = false;
    size_t dot = std::string_view::npos;
    for (;;) {
      if (startsWith("::")) {
        if (is_operator || dot != std::string_view::npos) fail("unexpected '::'");
        is_operator = true;
        at_ += 2;
      } else if (startsWith(".")) {
        if (dot == std::string_view::npos) dot = at_;
        ++at_;
      } else {
        break;
      }
      // An overload may begin with a digit.
      if (at_ >= text_.size() || !isIdent(text_[at_])) fail("expected a name");
      while (at_ < text_.size() && isIdent(text_[at_])) ++at_;
    }
    std::string_view all = text_.substr(start, at_ - start);
    if (!is_operator || dot == std::string_view::npos) return {std::string(all), ""};
    size_t split = dot - start;
    return {std::string(all.substr(0, split)), std::string(all.substr(split + 1))};
  }

  Argument argument(bool kwarg_only) {
    Argument a;
    take(type(), a);
    a.name = std::string(identifier("the argument's name"));
    a.kwarg_only = kwarg_only;
    if (accept('=')) a.default_value = defaultValue(*a.type, a.fixed_size);
    return a;
  }

  Argument returned() {
    Argument a;
    take(type(), a);
    if (isIdentStart(peek())) a.name = std::string(identifier("a name"));
    return a;
  }

  static void take(ParsedType parsed, Argument& a) {
    a.type = std::move(parsed.type);
    a.fixed_size = parsed.fixed_size;
    if (parsed.alias) a.alias = std::make_shared<const AliasInfo>(std::move(*parsed.alias));
  }

  // ---- types ----

  ParsedType type() {
    if (++depth_ > kMaxDepth) fail("types are nested too deeply");
    ParsedType t = baseType();
    if (peek() == '(') writeAlias(t);
    for (int suffixes = 0;; ++suffixes) {
      if (suffixes > kMaxDepth) fail("types are nested too deeply");
      if (accept('[')) {
        std::optional<int32_t> size;
        if (isDigit(peek())) size = static_cast<int32_t>(smallNumber());
        expect(']');
        std::optional<AliasInfo> outer;
        if (t.alias) {
          outer.emplace();
          outer->contained.push_back(std::move(*t.alias));
        }
        t = {types::List(std::move(t.type)), std::move(outer), size};
        if (peek() == '(') writeAlias(t);
      } else if (accept('?')) {
        t.type = types::Optional(std::move(t.type));
      } else {
        break;
      }
    }
    --depth_;
    return t;
  }

  int64_t smallNumber() {
    int64_t value = 0;
    while (at_ < text_.size() && isDigit(text_[at_])) {
      value = value * 10 + (text_[at_++] - '0');
      if (value > 1'000'000) fail("the size of a list is too large");
    }
    return value;
  }

  ParsedType baseType() {
    if (accept('(')) {
      ParsedType t;
      std::vector<TypePtr> elements = typeList(')', t.alias);
      t.type = types::Tuple(std::move(elements));
      return t;
    }
    size_t start = (skipSpace(), at_);
    std::string_view name = identifier("a type");
    if (startsWith(".")) {
      while (startsWith(".")) {
        ++at_;
        identifier("a name");
      }
      std::string full(text_.substr(start, at_ - start));
      if (TypePtr type = findNativeClass(full)) return {type, {}, {}};
      at_ = start;
      fail(fmt::format("class type '{}' cannot be used in an operator's schema", full));
    }
    const TypeTable& table = baseTypes();
    if (auto it = table.find(name); it != table.end()) return {it->second, {}, {}};
    if (isTypeVariable(name)) return {types::Var(std::string(name)), {}, {}};
    return genericType(name, start);
  }

  // Both spellings: "Dict(str, t)" and "Dict[str, t]".
  ParsedType genericType(std::string_view name, size_t start) {
    char close = peek() == '(' ? ')' : peek() == '[' ? ']' : '\0';
    bool known = name == "Dict" || name == "Future" || name == "RRef" || name == "Await" ||
                 name == "List" || name == "Optional" || name == "Tuple" || name == "Union";
    if (!known || close == '\0') {
      at_ = start;
      fail(fmt::format("unknown type '{}'", name));
    }
    ++at_;
    ParsedType t;
    if (name == "Tuple" && close == ']' && peek() == '(') {
      ++at_;
      expect(')');
      expect(']');
      t.type = types::Tuple({});
      return t;
    }
    std::vector<TypePtr> inner = typeList(close, t.alias);
    if (name == "Tuple") {
      t.type = types::Tuple(std::move(inner));
      return t;
    }
    if (name == "Union") {
      if (inner.empty()) fail("Union: expected at least one type");
      t.type = unionOf(inner);
      return t;
    }
    size_t want = name == "Dict" ? 2 : 1;
    if (inner.size() != want) fail(fmt::format("{}: expected {} types", name, want));
    if (name == "Dict") {
      t.type = types::Dict(std::move(inner[0]), std::move(inner[1]));
    } else if (name == "Future") {
      t.type = types::Future(std::move(inner[0]));
    } else if (name == "RRef") {
      t.type = std::make_shared<const RRefType>(std::move(inner[0]));
    } else if (name == "Await") {
      t.type = std::make_shared<const AwaitType>(std::move(inner[0]));
    } else if (name == "List") {
      t.type = types::List(std::move(inner[0]));
    } else {
      t.type = types::Optional(std::move(inner[0]));
      // What an Optional aliases is what its element aliases.
      if (t.alias) {
        AliasInfo element = std::move(t.alias->contained[0]);
        t.alias = std::move(element);
      }
    }
    return t;
  }

  // The types up to `close`; `alias` gets the annotations of the elements when there are any.
  std::vector<TypePtr> typeList(char close, std::optional<AliasInfo>& alias) {
    std::vector<TypePtr> out;
    std::vector<AliasInfo> aliases;
    bool any = false;
    if (!accept(close)) {
      do {
        ParsedType t = type();
        // Elements of a tuple may be named, as in NamedTuple returns.
        if (isIdentStart(peek())) identifier("a name");
        out.push_back(std::move(t.type));
        any |= t.alias.has_value();
        aliases.push_back(t.alias ? std::move(*t.alias) : AliasInfo{});
      } while (accept(','));
      expect(close);
    }
    if (any) {
      alias.emplace();
      alias->contained = std::move(aliases);
    }
    return out;
  }

  std::vector<std::string> aliasSets() {
    std::vector<std::string> sets;
    do {
      if (accept('*')) {
        sets.push_back("*");
      } else {
        sets.emplace_back(identifier("an alias set"));
      }
    } while (accept('|'));
    return sets;
  }

  void writeAlias(ParsedType& t) {
    expect('(');
    if (!t.alias) t.alias.emplace();
    AliasInfo& alias = *t.alias;
    if (!alias.before.empty()) fail("a second alias annotation");
    alias.before = aliasSets();
    alias.is_write = accept('!');
    skipSpace();
    if (startsWith("->")) {
      at_ += 2;
      alias.after = aliasSets();
    } else {
      alias.after = alias.before;
    }
    expect(')');
  }

  // ---- defaults ----

  IValue defaultValue(const Type& type, std::optional<int32_t> fixed_size) {
    if (++depth_ > kMaxDepth) fail("default value is nested too deeply");
    IValue value = defaultOf(type, fixed_size);
    --depth_;
    return value;
  }

  IValue defaultOf(const Type& type, std::optional<int32_t> fixed_size) {
    if (type.acceptsNone() && acceptWord("None")) return {};
    switch (type.kind()) {
      case TypeKind::Optional:
        return defaultValue(*type.contained()[0], fixed_size);
      case TypeKind::List:
        return listDefault(type.contained()[0], fixed_size);
      case TypeKind::Bool:
        if (acceptWord("True")) return true;
        if (acceptWord("False")) return false;
        fail("expected True or False");
      case TypeKind::String:
        return stringLiteral();
      case TypeKind::Device:
        return Device::parse(stringLiteral());
      case TypeKind::Int:
      case TypeKind::Float:
      case TypeKind::Complex:
      case TypeKind::Number:
        return number(type.kind());
      case TypeKind::Any:
        return anyDefault();
      default:
        fail(fmt::format("a default value of type '{}' cannot be written", type.str()));
    }
  }

  IValue anyDefault() {
    if (acceptWord("True")) return true;
    if (acceptWord("False")) return false;
    char c = peek();
    if (c == '"' || c == '\'') return stringLiteral();
    return number(TypeKind::Number);
  }

  IValue listDefault(const TypePtr& element, std::optional<int32_t> fixed_size) {
    std::vector<IValue> values;
    if (peek() != '[') {
      if (!fixed_size) fail("expected '['");
      values.assign(static_cast<size_t>(*fixed_size), defaultValue(*element, std::nullopt));
      return makeList(element, std::move(values));
    }
    expect('[');
    if (!accept(']')) {
      do {
        values.push_back(defaultValue(*element, std::nullopt));
      } while (accept(','));
      expect(']');
    }
    return makeList(element, std::move(values));
  }

  bool acceptWord(std::string_view word) {
    skipSpace();
    if (!startsWith(word)) return false;
    if (at_ + word.size() < text_.size() && isIdent(text_[at_ + word.size()])) return false;
    at_ += word.size();
    return true;
  }

  IValue number(TypeKind kind) {
    bool negative = accept('-');
    if (isIdentStart(peek())) {
      size_t start = at_;
      std::string_view name = identifier("a number");
      if (kind != TypeKind::Int && (name == "inf" || name == "nan")) {
        double v = name == "inf" ? std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::quiet_NaN();
        return real(negative ? -v : v, kind);
      }
      auto value = negative ? std::nullopt : namedNumber(name);
      if (value && (kind == TypeKind::Int || kind == TypeKind::Number)) return *value;
      at_ = start;
      fail(fmt::format("'{}' is not a number", name));
    }
    size_t start = at_;
    bool integral = true;
    while (at_ < text_.size()) {
      char c = text_[at_];
      bool exponent_sign =
          (c == '+' || c == '-') && at_ > start && (text_[at_ - 1] == 'e' || text_[at_ - 1] == 'E');
      if (!isDigit(c)) {
        if (c != '.' && c != 'e' && c != 'E' && !exponent_sign) break;
        integral = false;
      }
      ++at_;
    }
    // The minus belongs to the digits: the smallest int has no positive counterpart.
    std::string digits((negative ? "-" : "") + std::string(text_.substr(start, at_ - start)));
    const char* end = digits.data() + digits.size();
    if (integral && kind != TypeKind::Float && kind != TypeKind::Complex && !startsWith("j")) {
      int64_t value = 0;
      auto [p, error] = std::from_chars(digits.data(), end, value);
      if (error != std::errc() || p != end) at_ = start, fail("expected an int");
      return value;
    }
    double value = 0;
    auto [p, error] = std::from_chars(digits.data(), end, value);
    if (error != std::errc() || p != end) at_ = start, fail("expected a number");
    if (startsWith("j") && (kind == TypeKind::Complex || kind == TypeKind::Number)) {
      ++at_;
      return std::complex<double>(0, value);
    }
    if (kind == TypeKind::Int) at_ = start, fail("expected an int");
    return real(value, kind);
  }

  static IValue real(double value, TypeKind kind) {
    if (kind == TypeKind::Complex) return std::complex<double>(value, 0);
    return value;
  }

  std::string stringLiteral() {
    char quote = peek();
    if (quote != '"' && quote != '\'') fail("expected a string");
    ++at_;
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) fail("unterminated string");
      char c = text_[at_++];
      if (c == quote) return out;
      out += c == '\\' ? escape() : c;
    }
  }

  char escape() {
    if (at_ >= text_.size()) fail("unterminated string");
    char c = text_[at_++];
    switch (c) {
      case 'n':
        return '\n';
      case 't':
        return '\t';
      case 'r':
        return '\r';
      case 'f':
        return '\f';
      case 'v':
        return '\v';
      case '\\':
      case '"':
      case '\'':
        return c;
      case 'x': {
        unsigned value = 0;
        if (at_ + 2 > text_.size()) fail("expected two hexadecimal digits");
        const char* first = text_.data() + at_;
        auto [p, error] = std::from_chars(first, first + 2, value, 16);
        if (error != std::errc() || p != first + 2) fail("expected two hexadecimal digits");
        at_ += 2;
        return static_cast<char>(value);
      }
      default:
        fail(fmt::format("unknown escape '\\{}'", c));
    }
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

FunctionSchema parseSchema(std::string_view text) {
  return Parser(text).schema();
}

TypePtr parseSchemaType(std::string_view text) {
  return Parser(text).onlyType();
}

}  // namespace wick
