// Values as text: Python's repr and str, and TorchScript's own printing.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/error.h"
#include "core/ivalue.h"

namespace wick {

namespace {

// Values may contain themselves.
constexpr int kMaxDepth = 100;

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

// Appends the text to out: nested values are written once, not once a level.
void formatValue(const IValue& v, Style style, int depth, std::string& out);

void joinValues(const std::vector<IValue>& values, Style style, int depth, std::string& out) {
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ", ";
    formatValue(values[i], style, depth, out);
  }
}

void formatTuple(const TupleObject& t, Style style, int depth, std::string& out) {
  if (style == Style::Repr && t.named) {
    out += shortName(t.named->name());
    out += '(';
    for (size_t i = 0; i < t.elements.size(); ++i) {
      if (i) out += ", ";
      out += t.named->fields()[i];
      out += '=';
      formatValue(t.elements[i], style, depth, out);
    }
  } else {
    out += '(';
    joinValues(t.elements, style, depth, out);
    if (t.elements.size() == 1) out += ',';
  }
  out += ')';
}

void formatDict(const DictObject& dict, Style style, int depth, std::string& out) {
  out += '{';
  bool first = true;
  for (const auto& [key, value] : dict.items()) {
    if (!first) out += ", ";
    first = false;
    formatValue(key, style, depth, out);
    out += ": ";
    formatValue(value, style, depth, out);
  }
  out += '}';
}

void formatEnum(const EnumObject& e, Style style, int depth, std::string& out) {
  const bool printed = style == Style::Printed;
  out += printed ? "Enum<" : "<";
  out += shortName(e.type->name());
  out += '.';
  out += e.name;
  if (!printed) {
    out += ": ";
    formatValue(e.value, style, depth, out);
  }
  out += '>';
}

// Kept out of formatValue: the frames of nested values stand on each other and shall be small.
[[gnu::noinline]] std::string formatLeaf(const IValue& v, Style style) {
  using Tag = IValue::Tag;
  switch (v.tag()) {
    case Tag::None:
      return "None";
    case Tag::Int:
      return fmt::format("{}", v.rawInt());
    case Tag::Double:
      return style == Style::Repr ? formatDouble(v.rawDouble()) : printedDouble(v.rawDouble());
    case Tag::Bool:
      return v.rawBool() ? "True" : "False";
    case Tag::Device: {
      Device d = v.toDevice();
      if (style == Style::Printed) return d.str();
      std::string_view type = d.isCpu() ? "cpu" : d.isCuda() ? "cuda" : "meta";
      if (d.index < 0) return fmt::format("device(type='{}')", type);
      return fmt::format("device(type='{}', index={})", type, d.index);
    }
    case Tag::Tensor:
      return formatTensor(v.toTensor());
    case Tag::String:
      return style == Style::Repr ? quoteString(v.toString()) : v.toString();
    case Tag::Complex: {
      auto c = v.toComplex();
      if (style == Style::Repr) return formatComplex(c);
      bool sign = !std::signbit(c.imag()) || std::isnan(c.imag());
      return printedDouble(c.real()) + (sign ? "+" : "") + printedDouble(c.imag()) + "j";
    }
    case Tag::Object:
      return fmt::format("<{} object at {}>", v.toObject().type()->name(),
                         static_cast<const void*>(v.rawObject()));
    case Tag::Future:
      return v.toFuture().done() ? "<Future: done>" : "<Future: pending>";
    case Tag::Generator:
      return fmt::format("<Generator seed={}>", v.toGenerator().currentSeed());
    case Tag::Capsule:
      return fmt::format("<Capsule at {}>", static_cast<const void*>(v.rawObject()));
    case Tag::List:
    case Tag::Tuple:
    case Tag::Dict:
    case Tag::Enum:
      break;
  }
  throw InternalError(__FILE__, __LINE__, "value with an unknown tag");
}

void formatValue(const IValue& v, Style style, int depth, std::string& out) {
  using Tag = IValue::Tag;
  if (depth > kMaxDepth) {
    out += "...";
    return;
  }
  switch (v.tag()) {
    case Tag::List:
      out += '[';
      joinValues(v.elements(), style, depth + 1, out);
      out += ']';
      break;
    case Tag::Tuple:
      formatTuple(v.toTuple(), style, depth + 1, out);
      break;
    case Tag::Dict:
      formatDict(v.toDict(), style, depth + 1, out);
      break;
    case Tag::Enum:
      formatEnum(v.toEnum(), style, depth + 1, out);
      break;
    default:
      out += formatLeaf(v, style);
  }
}

std::string formatValue(const IValue& v, Style style) {
  std::string out;
  formatValue(v, style, 0, out);
  return out;
}

}  // namespace

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
  char quote = text.find('\'') != std::string_view::npos && text.find('"') == std::string_view::npos
                   ? '"'
                   : '\'';
  std::string out(1, quote);
  for (size_t i = 0; i < text.size();) {
    size_t start = i;
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
  return out + quote;
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

std::string IValue::printed() const {
  return formatValue(*this, Style::Printed);
}

}  // namespace wick
