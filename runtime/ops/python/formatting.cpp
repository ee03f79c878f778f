// Text from values: str(), repr(), format(), "…".format(…) and "…" % …, as in Python.
#include <cmath>
#include <span>

#include "core/text_limit.h"
#include "runtime/ops/python/format_spec.h"
#include "runtime/ops/typed.h"
#include "runtime/ops/values/text.h"

namespace wick::ops {

namespace {

using I = int64_t;
using Str = const std::string&;

[[noreturn]] void fail(const char* class_name, const std::string& message) {
  throw RuntimeError(message, class_name);
}

std::string converted(const IValue& value, char conversion) {
  switch (conversion) {
    case 'r':
      return value.repr();
    case 'a':
      return asciiRepr(value);
    default:
      return value.str();
  }
}

// ---- "{} {0} {name:>{width}}".format(…) ----

class BraceFormatter {
 public:
  // The last names.size() arguments are the named ones.
  BraceFormatter(std::span<const IValue> arguments, std::span<const IValue> names)
      : positional_(arguments.first(arguments.size() - names.size())),
        named_(arguments.last(names.size())),
        names_(names) {}

  std::string format(std::string_view text, int level = 0) {
    std::string out;
    for (size_t at = 0; at < text.size();) {
      char c = text[at];
      bool doubled = at + 1 < text.size() && text[at + 1] == c;
      if ((c == '{' || c == '}') && doubled && level == 0) {
        out += c;
        at += 2;
      } else if (c == '}') {
        fail("ValueError", "Single '}' encountered in format string");
      } else if (c == '{') {
        const std::string added = field(text, ++at, level);
        makeTextRoom("format", out, added.size());
        out += added;
      } else {
        out += c;
        ++at;
      }
    }
    return out;
  }

 private:
  // The field whose '{' stands before text[at]; moves behind its '}'.
  std::string field(std::string_view text, size_t& at, int level) {
    // A field may stand in the specification of another one, not deeper.
    if (level > 1) fail("ValueError", "Max string recursion exceeded");
    size_t start = at;
    size_t depth = 0;
    size_t colon = std::string_view::npos;
    bool in_index = false;
    for (; at < text.size(); ++at) {
      char c = text[at];
      if (colon == std::string_view::npos) {
        if (c == '[') in_index = true;
        if (c == ']') in_index = false;
        if (in_index) continue;
        if (c == ':') colon = at;
      }
      if (c == '{') ++depth;
      if (c == '}' && depth-- == 0) break;
    }
    if (at == text.size()) {
      if (at == start) fail("ValueError", "Single '{' encountered in format string");
      fail("ValueError", "expected '}' before end of string");
    }
    std::string_view name = text.substr(start, std::min(colon, at) - start);
    std::string_view spec;
    if (colon != std::string_view::npos) spec = text.substr(colon + 1, at - colon - 1);
    ++at;
    char conversion = '\0';
    if (size_t mark = name.rfind('!'); mark != std::string_view::npos) {
      std::string_view letter = name.substr(mark + 1);
      if (letter != "s" && letter != "r" && letter != "a") {
        fail("ValueError", fmt::format("Unknown conversion specifier '{}'", letter));
      }
      conversion = letter[0];
      name = name.substr(0, mark);
    }
    IValue value = lookup(name);
    std::string inner = format(spec, level + 1);
    if (conversion) value = IValue(converted(value, conversion));
    return formatWith(value, inner);
  }

  // "", "0", "name", each with .attribute and [index] behind it.
  IValue lookup(std::string_view path) {
    size_t end = std::min(path.find_first_of(".["), path.size());
    IValue value = argument(path.substr(0, end));
    while (end < path.size()) {
      bool is_index = path[end] == '[';
      size_t start = end + 1;
      end = is_index ? path.find(']', start) : path.find_first_of(".[", start);
      if (is_index && end == std::string_view::npos) {
        fail("ValueError", "Missing ']' in format string");
      }
      end = std::min(end, path.size());
      std::string_view key = path.substr(start, end - start);
      if (key.empty()) fail("ValueError", "Empty attribute in format string");
      value = is_index ? element(value, key) : attribute(value, std::string(key));
      if (is_index) ++end;
    }
    return value;
  }

  static std::optional<I> number(std::string_view text) {
    if (text.empty() || text.size() > 18) return std::nullopt;
    I value = 0;
    for (char c : text) {
      if (!isDigit(c)) return std::nullopt;
      value = value * 10 + (c - '0');
    }
    return value;
  }

  IValue argument(std::string_view name) {
    std::optional<I> index = number(name);
    if (!name.empty() && !index) {
      for (size_t i = 0; i < names_.size(); ++i) {
        if (names_[i].toString() == name) return named_[i];
      }
      fail("KeyError", IValue(name).shortRepr());
    }
    Numbering wanted = index ? Numbering::kManual : Numbering::kAutomatic;
    if (numbering_ != Numbering::kNone && numbering_ != wanted) {
      fail("ValueError", index ? "cannot switch from automatic field numbering to manual field "
                                 "specification"
                               : "cannot switch from manual field specification to automatic "
                                 "field numbering");
    }
    numbering_ = wanted;
    size_t at = index ? static_cast<size_t>(*index) : next_++;
    if (at >= positional_.size()) {
      fail("IndexError",
           fmt::format("Too few arguments for format string: replacement index {} is out of range "
                       "of {} positional arguments",
                       at, positional_.size()));
    }
    return positional_[at];
  }

  static IValue element(const IValue& container, std::string_view key) {
    std::optional<I> index = number(key);
    if (container.isDict()) {
      IValue wanted = index ? IValue(*index) : IValue(std::string(key));
      if (const IValue* found = container.toDict().find(wanted)) return *found;
      fail("KeyError", wanted.shortRepr());
    }
    if (!container.isList() && !container.isTuple()) {
      fail("TypeError", fmt::format("'{}' object is not subscriptable", container.tagName()));
    }
    if (!index) fail("TypeError", "list indices must be integers or slices, not str");
    const std::vector<IValue>& elements = container.elements();
    if (static_cast<size_t>(*index) >= elements.size()) {
      fail("IndexError", "list index out of range");
    }
    return elements[static_cast<size_t>(*index)];
  }

  static IValue attribute(const IValue& object, const std::string& name) {
    if (object.isTuple() && object.toTuple().named) {
      if (auto i = object.toTuple().named->fieldIndex(name)) return object.elements()[*i];
    }
    if (object.isObject() && object.toObject().type()->findAttribute(name)) {
      return object.toObject().attr(name);
    }
    if (object.isComplex() && name == "real") return IValue(object.toComplex().real());
    if (object.isComplex() && name == "imag") return IValue(object.toComplex().imag());
    fail("AttributeError",
         fmt::format("'{}' object has no attribute '{}'", object.tagName(), name));
  }

  enum class Numbering { kNone, kAutomatic, kManual };
  std::span<const IValue> positional_;
  std::span<const IValue> named_;
  std::span<const IValue> names_;
  Numbering numbering_ = Numbering::kNone;
  size_t next_ = 0;
};

void format(CallFrame& frame) {
  std::span<const IValue> arguments(frame.args + 1, frame.num_args - 1);
  frame.results[0] = IValue(BraceFormatter(arguments, {}).format(frame.args[0].toString()));
}

void formatNamed(CallFrame& frame) {
  std::span<const IValue> arguments(frame.args + 2, frame.num_args - 2);
  const std::vector<IValue>& names = frame.args[1].elements();
  WICK_CHECK(names.size() <= arguments.size(), "format: {} names for {} arguments", names.size(),
             arguments.size());
  frame.results[0] = IValue(BraceFormatter(arguments, names).format(frame.args[0].toString()));
}

// ---- "%d of %-5s" % … ----

class PercentFormatter {
 public:
  explicit PercentFormatter(const IValue& right) : right_(right) {
    if (right.isTuple()) {
      arguments_ = right.elements();
    } else {
      arguments_ = std::span<const IValue>(&right_, 1);
    }
  }

  std::string format(std::string_view text) {
    std::string out;
    for (at_ = 0; at_ < text.size(); ++at_) {
      if (text[at_] != '%') {
        out += text[at_];
        continue;
      }
      ++at_;
      const std::string added = field(text);
      makeTextRoom("%", out, added.size());
      out += added;
    }
    // A dict is no argument to be used up: its keys may be.
    if (next_ != arguments_.size() && !right_.isDict()) {
      fail("TypeError",
           "Too many arguments for format string: not all arguments converted during string "
           "formatting");
    }
    return out;
  }

 private:
  std::string field(std::string_view text) {
    auto peek = [&] {
      if (at_ >= text.size()) fail("ValueError", "Incomplete format specifier");
      return text[at_];
    };
    std::optional<IValue> keyed;
    if (peek() == '(') keyed = key(text);
    FormatSpec spec;
    bool zeros = false;
    for (;; ++at_) {
      char c = peek();
      if (c == '-') {
        spec.align = '<';
      } else if (c == '+') {
        spec.sign = '+';
      } else if (c == ' ') {
        if (spec.sign != '+') spec.sign = ' ';
      } else if (c == '#') {
        spec.alternate = true;
      } else if (c == '0') {
        zeros = true;
      } else {
        break;
      }
    }
    spec.width = count(text);
    if (spec.width < 0) {
      spec.width = -spec.width;
      spec.align = '<';
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<I>(count(text), 0);
    }
    while (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    char type = peek();
    if (type == '%') return "%";
    if (zeros && spec.align != '<') {
      spec.align = '=';
      spec.fill.assign(1, '0');
    }
    if (!spec.align) spec.align = '>';
    return conversion(type, spec, keyed ? *keyed : argument());
  }

  // %(name)s
  IValue key(std::string_view text) {
    size_t start = ++at_;
    size_t depth = 1;
    for (; at_ < text.size(); ++at_) {
      if (text[at_] == '(') ++depth;
      if (text[at_] == ')' && --depth == 0) break;
    }
    if (at_ >= text.size()) fail("ValueError", "incomplete format key");
    std::string name(text.substr(start, at_++ - start));
    if (!right_.isDict()) fail("TypeError", "format requires a mapping");
    if (const IValue* found = right_.toDict().find(IValue(name))) return *found;
    fail("KeyError", IValue(name).shortRepr());
  }

  I count(std::string_view text) {
    constexpr I kMost = kMaxTextBytes;
    if (at_ < text.size() && text[at_] == '*') {
      ++at_;
      IValue value = argument();
      if (!value.isInt()) fail("TypeError", "* wants int");
      WICK_CHECK(value.rawInt() <= kMost && value.rawInt() >= -kMost,
                 "%: the width {} is too large", value.rawInt());
      return value.rawInt();
    }
    I value = 0;
    for (; at_ < text.size() && isDigit(text[at_]); ++at_) {
      value = value * 10 + (text[at_] - '0');
      WICK_CHECK(value <= kMost, "%: a width or precision is too large");
    }
    return value;
  }

  IValue argument() {
    if (next_ >= arguments_.size() || (right_.isDict() && next_ > 0)) {
      fail("TypeError", "Too few arguments for format string");
    }
    return arguments_[next_++];
  }

  static std::string conversion(char type, FormatSpec spec, IValue value) {
    if (value.isTensor() && type != 's' && type != 'r') {
      value = elementOf(value.toTensor());
    }
    switch (type) {
      case 's':
      case 'r':
        return text(IValue(converted(value, type)), spec);
      case 'c':
        return character(spec, value);
      case 'd':
      case 'i':
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return integer(type, spec, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!isReal(value)) fail("TypeError", needsNumber(type, value));
        spec.type = type;
        return formatWith(IValue(value.numberToDouble()), spec);
      default:
        fail("ValueError",
             fmt::format("The specifier %{} is not supported in format strings", type));
    }
  }

  static bool isReal(const IValue& value) {
    return value.isInt() || value.isBool() || value.isDouble();
  }
  static std::string needsNumber(char type, const IValue& value) {
    return fmt::format("%{} requires a number for formatting, but got {}", type, value.tagName());
  }

  // Text has no sign and no zeros in front.
  static std::string text(const IValue& value, const FormatSpec& spec) {
    FormatSpec plain;
    plain.width = spec.width;
    plain.precision = spec.precision;
    plain.align = spec.align == '<' ? '<' : '>';
    return formatWith(value, plain);
  }

  static std::string character(const FormatSpec& spec, const IValue& value) {
    if (value.isString() && characterCount(value.toString()) == 1) return text(value, spec);
    if (!value.isInt()) {
      fail("TypeError",
           fmt::format("%c requires an int or char for formatting, but got {}", value.tagName()));
    }
    FormatSpec plain;
    plain.type = 'c';
    IValue shown(formatWith(value, plain));
    FormatSpec whole = spec;
    whole.precision = -1;
    return text(shown, whole);
  }

  static std::string integer(char type, FormatSpec spec, const IValue& value) {
    bool decimal = type == 'd' || type == 'i' || type == 'u';
    if (!isReal(value)) fail("TypeError", needsNumber(type, value));
    if (!decimal && value.isDouble()) {
      fail("TypeError", fmt::format("%{} format: an integer is required, not float", type));
    }
    I number = 0;
    if (value.isDouble()) {
      double v = value.rawDouble();
      if (std::isnan(v)) fail("ValueError", "cannot convert float NaN to integer");
      if (!(v >= -0x1p63 && v < 0x1p63)) {
        fail("OverflowError",
             fmt::format("%{}: cannot convert float {} to a 64-bit int", type, formatDouble(v)));
      }
      number = static_cast<I>(v);
    } else {
      number = value.numberToInt();
    }
    spec.type = decimal ? 'd' : type;
    // A precision is the least number of digits.
    I digits = spec.precision;
    spec.precision = -1;
    if (digits <= 0) return formatWith(IValue(number), spec);
    FormatSpec inner = spec;
    inner.align = '=';
    inner.fill.assign(1, '0');
    inner.width =
        digits + (number < 0 || spec.sign != '-' ? 1 : 0) + (spec.alternate && !decimal ? 2 : 0);
    if (spec.align == '=') inner.width = std::max(inner.width, spec.width);
    IValue shown(formatWith(IValue(number), inner));
    FormatSpec outer;
    outer.width = spec.width;
    outer.align = spec.align == '<' ? '<' : '>';
    return formatWith(shown, outer);
  }

  const IValue& right_;
  std::span<const IValue> arguments_;
  size_t next_ = 0;
  size_t at_ = 0;
};

void percentFormat(CallFrame& frame) {
  WICK_CHECK(frame.num_args >= 2, "%: expected a value to format");
  const std::string& text = frame.args[0].toString();
  if (frame.num_args == 2) {
    frame.results[0] = IValue(PercentFormatter(frame.args[1]).format(text));
    return;
  }
  // Printed programs may pass the elements of a tuple one by one.
  std::vector<IValue> elements(frame.args + 1, frame.args + frame.num_args);
  frame.results[0] = IValue(PercentFormatter(IValue(makeTuple(elements))).format(text));
}

const OperatorRecord kFormattingRecords[] = {
    {"aten::str(t elem) -> str", WICK_LAMBDA([](const IValue& v) { return v.str(); })},
    {"prim::repr(t elem) -> str", WICK_LAMBDA([](const IValue& v) { return v.repr(); })},
    {"prim::ascii(t elem) -> str", WICK_KERNEL(asciiRepr)},
    {"prim::formatValue(t elem, str spec=\"\") -> str",
     WICK_LAMBDA([](const IValue& v, Str spec) { return formatWith(v, spec); })},
    {"aten::format(str self, ...) -> str", format},
    {"prim::formatNamed(str self, str[] names, ...) -> str", formatNamed},
    {"aten::percentFormat(str self, ...) -> str", percentFormat},
};
const RegisterOperators kFormattingRegistered(kFormattingRecords);

}  // namespace

}  // namespace wick::ops
