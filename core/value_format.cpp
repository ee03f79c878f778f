// Values as text: Python's repr and str, and TorchScript's own printing.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <ostream>

#include "core/budget.h"
#include "core/error.h"
#include "core/ivalue.h"
#include "core/keyed_hash.h"
#include "core/memory_limit.h"
#include "core/text_limit.h"

namespace wick {

namespace {

// Values may contain themselves.
constexpr int kValueFormatMaxDepth = 100;

enum class Style { Repr, Printed };

// Decodes the code point at `i` and moves past it; invalid bytes give nothing and move by one.
std::optional<uint32_t> decodeUtf8(std::string_view s, size_t& i) {
  auto byte = [&](size_t k) { return static_cast<unsigned char>(s[k]); };
  unsigned char lead = byte(i);
  size_t extra = lead < 0x80 ? 0 : lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : 1;
  if ((lead >= 0x80 && lead < 0xc2) || lead > 0xf4 || i + extra >= s.size()) {
    ++i;
    return std::nullopt;
  }
  uint32_t code = extra == 0 ? lead : lead & (0x3f >> extra);
  for (size_t k = 1; k <= extra; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) {
      ++i;
      return std::nullopt;
    }
    code = code << 6 | (byte(i + k) & 0x3f);
  }
  static constexpr uint32_t kSmallest[] = {0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[extra] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
    ++i;
    return std::nullopt;
  }
  i += extra + 1;
  return code;
}

// The ranges of format, separator, private and unassigned characters that occur in practice.
bool isPrintable(uint32_t c) {
  if (c < 0x20 || (c >= 0x7f && c <= 0xa0) || c == 0xad) return false;
  if (c == 0x1680 || c == 0x180e || c == 0x3000 || c == 0xfeff) return false;
  if ((c >= 0x2000 && c <= 0x200f) || (c >= 0x2028 && c <= 0x202f)) return false;
  if (c >= 0x205f && c <= 0x206f) return false;
  if ((c >= 0xe000 && c <= 0xf8ff) || (c >= 0xfff0 && c <= 0xfffb) || c >= 0xe0000) return false;
  return (c & 0xfffe) != 0xfffe;
}

std::string realPart(double v, Style style) {
  if (style == Style::Printed) return printedDouble(v);
  std::string s = formatDouble(v);
  if (s.ends_with(".0")) s.resize(s.size() - 2);
  return s;
}

// The last part of a qualified name.
std::string_view shortName(std::string_view qualified) {
  return qualified.substr(qualified.rfind('.') + 1);
}

constexpr const char* kText = "the text of a value";

void appendQuoted(std::string_view text, size_t limit, std::string& out);

// Appends to one text: nested values are written once, not once a level. A text that is longer than
// `limit` ends early, or is an error: values that share their parts print to any length.
class Formatter {
 public:
  Formatter(Style style, size_t limit, bool may_cut)
      : style_(style), limit_(limit), may_cut_(may_cut) {}

  std::string format(const IValue& v) {
    value(v, 0);
    if (isFull()) out_ += "...";
    return std::move(out_);
  }

 private:
  // The most bytes between two parts of a value; strings and other long leaves make their own room.
  static constexpr size_t kPart = 256;

  // Asked between the parts of values.
  bool isFull() {
    // Short texts stay without an allocation, and texts that are cut are short.
    if (!may_cut_ && out_.size() >= kPart) makeTextRoom(kText, out_, kPart);
    if (out_.size() <= limit_) return false;
    if (!may_cut_) checkTextLength(kText, out_.size());
    return may_cut_;
  }

  void value(const IValue& v, int depth) {
    using Tag = IValue::Tag;
    if (depth > kValueFormatMaxDepth) {
      out_ += "...";
      return;
    }
    if (isFull()) return;
    pace_.step(4);
    switch (v.tag()) {
      case Tag::List:
        out_ += '[';
        join(v.elements(), depth + 1);
        out_ += ']';
        break;
      case Tag::Tuple:
        tuple(v.toTuple(), depth + 1);
        break;
      case Tag::Dict:
        dict(v.toDict(), depth + 1);
        break;
      case Tag::Enum:
        enumMember(v.toEnum(), depth + 1);
        break;
      default:
        leaf(v);
    }
  }

  void join(const std::vector<IValue>& values, int depth) {
    for (size_t i = 0; i < values.size() && !isFull(); ++i) {
      if (i) out_ += ", ";
      value(values[i], depth);
    }
  }

  void tuple(const TupleObject& t, int depth) {
    if (style_ == Style::Repr && t.named) {
      out_ += shortName(t.named->name());
      out_ += '(';
      for (size_t i = 0; i < t.elements.size() && !isFull(); ++i) {
        if (i) out_ += ", ";
        out_ += t.named->fields()[i];
        out_ += '=';
        value(t.elements[i], depth);
      }
    } else {
      out_ += '(';
      join(t.elements, depth);
      if (t.elements.size() == 1) out_ += ',';
    }
    out_ += ')';
  }

  void dict(const DictObject& d, int depth) {
    out_ += '{';
    bool first = true;
    d.all([&](const IValue& key, const IValue& element) {
      if (!first) out_ += ", ";
      first = false;
      value(key, depth);
      out_ += ": ";
      value(element, depth);
      return !isFull();
    });
    out_ += '}';
  }

  void enumMember(const EnumObject& e, int depth) {
    const bool printed = style_ == Style::Printed;
    out_ += printed ? "Enum<" : "<";
    out_ += shortName(e.type->name());
    out_ += '.';
    out_ += e.name;
    if (!printed) {
      out_ += ": ";
      value(e.value, depth);
    }
    out_ += '>';
  }

  // Kept out of value(): the frames of nested values stand on each other and shall be small.
  [[gnu::noinline]] void leaf(const IValue& v) {
    if (v.isInt()) {
      char digits[24];
      out_.append(digits, std::to_chars(digits, digits + sizeof(digits), v.rawInt()).ptr);
    } else if (v.isString()) {
      string(v.toString());
    } else {
      const std::string text = otherLeaf(v);
      if (!may_cut_) makeTextRoom(kText, out_, text.size());
      out_ += text;
    }
  }

  void string(const std::string& text) {
    const size_t room = limit_ - std::min(limit_, out_.size());
    if (style_ == Style::Repr) {
      appendQuoted(text, room, out_);
    } else {
      const std::string_view part =
          std::string_view(text).substr(0, room + 1);  // one more tells that it is cut
      makeTextRoom(kText, out_, part.size());
      out_ += part;
    }
  }

  std::string otherLeaf(const IValue& v) const {
    using Tag = IValue::Tag;
    switch (v.tag()) {
      case Tag::None:
        return "None";
      case Tag::Double:
        return style_ == Style::Repr ? formatDouble(v.rawDouble()) : printedDouble(v.rawDouble());
      case Tag::Bool:
        return v.rawBool() ? "True" : "False";
      case Tag::Device: {
        Device d = v.toDevice();
        if (style_ == Style::Printed) return d.str();
        std::string_view type = d.isCpu() ? "cpu" : d.isCuda() ? "cuda" : "meta";
        if (d.index < 0) return fmt::format("device(type='{}')", type);
        return fmt::format("device(type='{}', index={})", type, d.index);
      }
      case Tag::Tensor:
        return formatTensor(v.toTensor());
      case Tag::Complex: {
        auto c = v.toComplex();
        if (style_ == Style::Repr) return formatComplex(c);
        bool sign = !std::signbit(c.imag()) || std::isnan(c.imag());
        return printedDouble(c.real()) + (sign ? "+" : "") + printedDouble(c.imag()) + "j";
      }
      case Tag::Object:
        return fmt::format("<{} object at {:#x}>", v.toObject().type()->name(),
                           maskedAddress(v.rawObject()));
      case Tag::Future:
        return v.toFuture().done() ? "<Future: done>" : "<Future: pending>";
      case Tag::Generator:
        return fmt::format("<Generator seed={}>", v.toGenerator().currentSeed());
      case Tag::Capsule:
        return fmt::format("<Capsule at {:#x}>", maskedAddress(v.rawObject()));
      case Tag::Int:
      case Tag::String:
      case Tag::List:
      case Tag::Tuple:
      case Tag::Dict:
      case Tag::Enum:
        break;
    }
    throw InternalError(__FILE__, __LINE__, "value with an unknown tag");
  }

  const Style style_;
  const size_t limit_;
  Pace pace_;  // values that share their parts take time before their text is too long
  const bool may_cut_;
  std::string out_;
};

std::string formatValue(const IValue& v, Style style) {
  std::string text = Formatter(style, kMaxTextBytes, false).format(v);
  checkTextLength(kText, text.size());
  return text;
}

// Stops early when more than `limit` bytes were appended.
void appendQuoted(std::string_view text, size_t limit, std::string& out) {
  constexpr size_t kMostEscaped = 16, kRun = size_t{64} << 10;
  Pace pace;
  char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos
                   ? '"'
                   : '\'';
  const size_t begin = out.size();
  out += quote;
  for (size_t i = 0; i < text.size() && out.size() - begin <= limit;) {
    size_t start = i;
    auto isPlain = [&](unsigned char c) {
      return c >= 0x20 && c < 0x7f && c != '\\' && c != static_cast<unsigned char>(quote);
    };
    const size_t most = std::min(limit, kRun);
    while (i < text.size() && i - start <= most && isPlain(static_cast<unsigned char>(text[i]))) {
      ++i;
    }
    makeTextRoom(kText, out, i - start + kMostEscaped);
    pace.step(static_cast<int64_t>(i - start + 1));
    if (i > start) {
      out += text.substr(start, i - start);
      continue;
    }
    auto code = decodeUtf8(text, i);
    if (!code) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[start]));
    } else if (*code == static_cast<uint32_t>(quote) || *code == '\\') {
      out += '\\';
      out += static_cast<char>(*code);
    } else if (*code == '\n') {
      out += "\\n";
    } else if (*code == '\r') {
      out += "\\r";
    } else if (*code == '\t') {
      out += "\\t";
    } else if (isPrintable(*code)) {
      out += text.substr(start, i - start);
    } else if (*code <= 0xff) {
      out += fmt::format("\\x{:02x}", *code);
    } else if (*code <= 0xffff) {
      out += fmt::format("\\u{:04x}", *code);
    } else {
      out += fmt::format("\\U{:08x}", *code);
    }
  }
  out += quote;
}

}  // namespace

void checkTextLength(const char* op, size_t bytes) {
  WICK_CHECK(bytes <= kMaxTextBytes, "{}: a text of {} bytes is too long; {} are allowed", op,
             bytes, kMaxTextBytes);
  checkAllocation(op, bytes);
}

void detail::growText(const char* op, std::string& text, size_t needed) {
  checkTextLength(op, needed);
  const size_t room =
      std::min(std::max(needed, text.capacity() + text.capacity() / 2), kMaxTextBytes);
  checkAllocation(op, room);
  text.reserve(room);
}

std::string formatDouble(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific);
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  size_t e = text.find('e');
  int exponent = 0;
  const char* digits = text.data() + e + (text[e + 1] == '+' ? 2 : 1);
  std::from_chars(digits, end, exponent);
  // Python changes to scientific notation outside of 1e-4 .. 1e16.
  if (exponent < -4 || exponent >= 16) return std::string(text);
  auto [fixed_end, fixed_error] =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::fixed);
  std::string out(buffer, fixed_end);
  if (out.find('.') == std::string::npos) out += ".0";
  return out;
}

std::string formatComplex(std::complex<double> value) {
  std::string imag = realPart(value.imag(), Style::Repr) + "j";
  if (value.real() == 0 && !std::signbit(value.real())) return imag;
  bool sign = !std::signbit(value.imag()) || std::isnan(value.imag());
  return "(" + realPart(value.real(), Style::Repr) + (sign ? "+" : "") + imag + ")";
}

std::string printedDouble(double value) {
  if (std::isfinite(value) && std::abs(value) < 1e10 && value == std::trunc(value)) {
    return fmt::format("{:.0f}.", value);
  }
  if (std::isnan(value)) return "nan";
  return fmt::format("{:.17g}", value);
}

std::string quoteString(std::string_view text) {
  std::string out;
  appendQuoted(text, kMaxTextBytes, out);
  checkTextLength(kText, out.size());
  return out;
}

// A friend: the pragma of the header does not reach it.
__attribute__((visibility("default"))) std::ostream& operator<<(std::ostream& out,
                                                                const IValue& value) {
  return out << value.repr();
}

std::string IValue::repr() const {
  return formatValue(*this, Style::Repr);
}

std::string IValue::str() const {
  if (isString()) return toString();
  if (isDevice()) return toDevice().str();
  if (isEnum()) {
    const std::string& name = toEnum().type->name();
    return name.substr(name.rfind('.') + 1) + "." + toEnum().name;
  }
  return repr();
}

std::string IValue::shortRepr(size_t bytes) const {
  return Formatter(Style::Repr, bytes, true).format(*this);
}

std::string IValue::printed() const {
  return formatValue(*this, Style::Printed);
}

}  // namespace wick
