#include "runtime/ops/python/format_spec.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "core/error.h"
#include "core/tensor.h"
#include "core/text_limit.h"
#include "runtime/ops/values/text.h"

namespace wick::ops {

void failValue(const std::string& message) {
  throw RuntimeError(message, "ValueError");
}

namespace {

// What one field may take: beyond this a program has gone wrong.
constexpr int64_t kMaxWidth = kMaxTextBytes;
constexpr int64_t kMaxPrecision = int64_t{1} << 20;

// The character with this code, at most 0x10ffff, in UTF-8.
std::string utf8(uint32_t code) {
  auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return std::string(1, static_cast<char>(code));
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

[[noreturn]] void failCode(char code, const char* type) {
  failValue(fmt::format("Unknown format code '{}' for object of type '{}'", code, type));
}

bool isAlign(char c) {
  return c == '<' || c == '>' || c == '^' || c == '=';
}

// A count at text[at], which moves past it; -1 without digits.
int64_t readCount(std::string_view text, size_t& at, int64_t most) {
  int64_t value = -1;
  for (; at < text.size() && isDigit(text[at]); ++at) {
    value = std::max<int64_t>(value, 0) * 10 + (text[at] - '0');
    if (value > most) failValue("Too many decimal digits in format string");
  }
  return value;
}

// A number on its way to text: sign and prefix stay in front of the zeros of a padding, the suffix
// (fraction, exponent, percent sign) behind the groups.
struct Number {
  std::string sign;
  std::string prefix;
  std::string digits;
  std::string suffix;
};

std::string signFor(bool negative, char wanted) {
  if (negative) return "-";
  return wanted == '-' ? "" : std::string(1, wanted);
}

// 1234567 -> 1,234,567, with zeros in front until it takes `width` characters.
std::string grouped(const std::string& digits, char separator, size_t size, int64_t width) {
  checkTextLength("format", static_cast<size_t>(std::max<int64_t>(width, 0)));
  std::string reversed;
  size_t count = 0;
  auto push = [&](char c) {
    if (count > 0 && count % size == 0) reversed += separator;
    reversed += c;
    ++count;
  };
  for (size_t i = digits.size(); i > 0; --i) push(digits[i - 1]);
  while (static_cast<int64_t>(reversed.size()) < width) push('0');
  return {reversed.rbegin(), reversed.rend()};
}

std::string padded(std::string text, const FormatSpec& spec, char default_align) {
  int64_t missing = spec.width - characterCount(text);
  if (missing <= 0) return text;
  checkTextLength("format", text.size() + static_cast<size_t>(missing) * spec.fill.size());
  auto blanks = [&](int64_t n) {
    if (spec.fill.size() == 1) return std::string(static_cast<size_t>(n), spec.fill[0]);
    std::string out;
    out.reserve(static_cast<size_t>(n) * spec.fill.size());
    for (int64_t i = 0; i < n; ++i) out += spec.fill;
    return out;
  };
  char align = spec.align ? spec.align : default_align;
  if (align == '<') return text + blanks(missing);
  int64_t left = align == '^' ? missing / 2 : missing;
  return blanks(left) + text + blanks(missing - left);
}

std::string finish(const Number& n, const FormatSpec& spec, size_t group) {
  bool inside = spec.align == '=';
  bool zeros = inside && spec.fill == "0";
  std::string digits = n.digits;
  int64_t around = static_cast<int64_t>(n.sign.size() + n.prefix.size() + n.suffix.size());
  // Letters, as in inf, have no groups.
  bool groups = spec.grouping && !digits.empty() &&
                std::isxdigit(static_cast<unsigned char>(digits[0])) != 0 && digits != "inf";
  if (groups) digits = grouped(digits, spec.grouping, group, zeros ? spec.width - around : 0);
  if (!inside) return padded(n.sign + n.prefix + digits + n.suffix, spec, '>');
  FormatSpec rest = spec;
  rest.width = spec.width - static_cast<int64_t>(n.sign.size() + n.prefix.size());
  rest.align = '>';
  return n.sign + n.prefix + padded(digits + n.suffix, rest, '>');
}

std::string formatFloat(double value, const FormatSpec& spec);

std::string formatInt(int64_t value, const FormatSpec& spec) {
  char type = spec.type ? spec.type : 'd';
  switch (type) {
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case '%':
      return formatFloat(static_cast<double>(value), spec);
    case 'b':
    case 'c':
    case 'd':
    case 'n':
    case 'o':
    case 'x':
    case 'X':
      break;
    default:
      failCode(type, "int");
  }
  if (spec.precision >= 0) failValue("Precision not allowed in integer format specifier");
  uint64_t magnitude = value < 0 ? -static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
  Number n{signFor(value < 0, spec.sign), "", "", ""};
  if (type == 'c') {
    if (spec.sign != '-') failValue("Sign not allowed with integer format specifier 'c'");
    if (spec.grouping) failValue(fmt::format("Cannot specify '{}' with 'c'.", spec.grouping));
    if (spec.alternate) {
      failValue("Alternate form (#) not allowed with integer format specifier 'c'");
    }
    if (value < 0 || value > 0x10ffff) {
      throw RuntimeError("%c arg not in range(0x110000)", "OverflowError");
    }
    return padded(utf8(static_cast<uint32_t>(value)), spec, '>');
  }
  if (spec.grouping == ',' && type != 'd')
    failValue(fmt::format("Cannot specify ',' with '{}'.", type));
  if (spec.grouping && type == 'n') {
    failValue(fmt::format("Cannot specify '{}' with 'n'.", spec.grouping));
  }
  size_t group = type == 'd' || type == 'n' ? 3 : 4;
  switch (type) {
    case 'b':
      n.digits = fmt::format("{:b}", magnitude);
      break;
    case 'o':
      n.digits = fmt::format("{:o}", magnitude);
      break;
    case 'x':
      n.digits = fmt::format("{:x}", magnitude);
      break;
    case 'X':
      n.digits = fmt::format("{:X}", magnitude);
      break;
    default:
      n.digits = fmt::format("{}", magnitude);
      break;
  }
  if (spec.alternate && group == 4) n.prefix = std::string("0") + type;
  return finish(n, spec, group);
}

std::string printedAs(double value, char type, int64_t precision, bool alternate) {
  char pattern[] = {'%', '#', '.', '*', type, '\0'};
  if (!alternate) {
    pattern[1] = '.';
    pattern[2] = '*';
    pattern[3] = type;
    pattern[4] = '\0';
  }
  // Of a double nothing but zeros follows so many digits.
  constexpr int64_t kMostDigits = 1100;
  checkTextLength("format", static_cast<size_t>(precision));
  const int digits = static_cast<int>(std::min(precision, kMostDigits));
  int size = std::snprintf(nullptr, 0, pattern, digits, value);
  std::string out(static_cast<size_t>(size) + 1, '\0');
  std::snprintf(out.data(), out.size(), pattern, digits, value);
  out.pop_back();
  const bool keeps_zeros = alternate || (type != 'g' && type != 'G');
  if (precision > digits && keeps_zeros && std::isfinite(value)) {
    const size_t end = std::min(out.find_first_of("eE"), out.size());
    out.insert(end, static_cast<size_t>(precision - digits), '0');
  }
  return out;
}

// Without a type, digits as many as given, but always one behind the point: 5.0, 1e+16, 1.2e+02.
std::string printedPlain(double value, int64_t precision) {
  if (precision < 0) return formatDouble(value);
  precision = std::max<int64_t>(precision, 1);
  // The exponent after rounding decides, as for %g, but ".0" takes a digit of its own.
  std::string scientific = printedAs(value, 'e', precision - 1, false);
  int exponent = std::atoi(scientific.c_str() + scientific.find('e') + 1);
  if (exponent < -4 || exponent >= precision - 1) {
    std::string text = printedAs(value, 'e', precision - 1, false);
    size_t e = text.find('e');
    std::string mantissa = text.substr(0, e);
    if (mantissa.find('.') != std::string::npos) {
      mantissa.resize(mantissa.find_last_not_of('0') + 1);
      if (mantissa.back() == '.') mantissa.pop_back();
    }
    return mantissa + text.substr(e);
  }
  std::string text = printedAs(value, 'g', precision, false);
  return text.find('.') == std::string::npos ? text + ".0" : text;
}

// The digits of |value|, in lower or upper case, without groups.
std::string floatDigits(double value, const FormatSpec& spec) {
  char type = spec.type;
  value = std::fabs(value);
  bool upper = type == 'E' || type == 'F' || type == 'G';
  if (std::isnan(value)) return upper ? "NAN" : "nan";
  if (std::isinf(value)) return upper ? "INF" : "inf";
  int64_t precision = spec.precision < 0 ? 6 : spec.precision;
  switch (type) {
    case '\0': {
      std::string text = printedPlain(value, spec.precision);
      size_t e = text.find('e');
      if (spec.alternate && text.find('.') == std::string::npos) {
        size_t at = std::min(e, text.size());
        return text.substr(0, at) + '.' + text.substr(at);
      }
      return text;
    }
    case 'n':
      return printedAs(value, 'g', precision, spec.alternate);
    case '%':
      return printedAs(value * 100, 'f', precision, spec.alternate);
    default:
      return printedAs(value, type, precision, spec.alternate);
  }
}

Number floatNumber(double value, const FormatSpec& spec) {
  Number n{signFor(std::signbit(value) && !std::isnan(value), spec.sign), "", "", ""};
  std::string text = floatDigits(value, spec);
  size_t whole = 0;
  while (whole < text.size() && isDigit(text[whole])) ++whole;
  if (whole == 0) whole = text.size();  // inf, nan
  n.digits = text.substr(0, whole);
  n.suffix = text.substr(whole);
  if (spec.type == '%') n.suffix += '%';
  return n;
}

void checkFloatType(const FormatSpec& spec, const char* type) {
  if (spec.type && std::string_view("eEfFgGn%").find(spec.type) == std::string_view::npos) {
    failCode(spec.type, type);
  }
  if (spec.grouping && spec.type == 'n') {
    failValue(fmt::format("Cannot specify '{}' with 'n'.", spec.grouping));
  }
}

std::string formatFloat(double value, const FormatSpec& spec) {
  checkFloatType(spec, "float");
  return finish(floatNumber(value, spec), spec, 3);
}

std::string formatComplexWith(std::complex<double> value, const FormatSpec& spec) {
  checkFloatType(spec, "complex");
  if (spec.type == '%') failCode('%', "complex");
  if (spec.align == '=') {
    failValue("'=' alignment flag is not allowed in complex format specifier");
  }
  if (spec.fill == "0") failValue("Zero padding is not allowed in complex format specifier");
  FormatSpec part = spec;
  part.width = 0;
  bool parentheses = !spec.type;
  auto text = [&](double v, char sign) {
    part.sign = sign;
    Number n = floatNumber(v, part);
    std::string out = finish(n, part, 3);
    // Parts of a complex number show no ".0".
    if (!spec.type && out.ends_with(".0")) out.resize(out.size() - 2);
    return out;
  };
  bool only_imaginary = !spec.type && value.real() == 0 && !std::signbit(value.real());
  std::string out;
  if (!only_imaginary) out = text(value.real(), spec.sign);
  out += text(value.imag(), only_imaginary ? spec.sign : '+') + "j";
  if (parentheses && !only_imaginary) out = "(" + out + ")";
  return padded(out, spec, '>');
}

std::string formatString(const std::string& value, const FormatSpec& spec) {
  if (spec.type && spec.type != 's') failCode(spec.type, "str");
  if (spec.sign != '-') failValue("Sign not allowed in string format specifier");
  if (spec.alternate) failValue("Alternate form (#) not allowed in string format specifier");
  if (spec.grouping) failValue(fmt::format("Cannot specify '{}' with 's'.", spec.grouping));
  if (spec.align == '=') {
    failValue("'=' alignment not allowed in string format specifier");
  }
  std::string_view shown = value;
  if (spec.precision >= 0) shown = firstCharacters(shown, spec.precision);
  return padded(std::string(shown), spec, '<');
}

}  // namespace

IValue elementOf(const Tensor& t) {
  if (!t.defined() || t.numel() != 1) {
    throw RuntimeError("only tensors of one element can be converted to numbers", "TypeError");
  }
  if (isComplex(t.dtype())) return IValue(t.item<std::complex<double>>());
  if (t.dtype() == DType::Bool) return IValue(t.item<bool>());
  if (isFloating(t.dtype())) return IValue(t.item<double>());
  return IValue(t.item<int64_t>());
}

int64_t characterCount(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
}

std::string_view firstCharacters(std::string_view text, int64_t count) {
  size_t at = 0;
  for (; at < text.size(); ++at) {
    bool begins = (static_cast<unsigned char>(text[at]) & 0xc0) != 0x80;
    if (begins && count-- == 0) break;
  }
  return text.substr(0, at);
}

FormatSpec FormatSpec::parse(std::string_view text) {
  FormatSpec spec;
  size_t at = 0;
  auto peek = [&](size_t i) { return i < text.size() ? text[i] : '\0'; };
  size_t first = firstCharacters(text, 1).size();
  bool explicit_fill = false;
  if (first > 0 && isAlign(peek(first))) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
    explicit_fill = true;
  } else if (isAlign(peek(0))) {
    spec.align = text[at++];
  }
  if (peek(at) == '+' || peek(at) == '-' || peek(at) == ' ') spec.sign = text[at++];
  if (peek(at) == '#') {
    spec.alternate = true;
    ++at;
  }
  if (peek(at) == '0') {
    ++at;
    if (!explicit_fill) spec.fill.assign(1, '0');
    if (!spec.align) spec.align = '0';
  }
  spec.width = std::max<int64_t>(readCount(text, at, kMaxWidth), 0);
  if (peek(at) == ',' || peek(at) == '_') spec.grouping = text[at++];
  if (peek(at) == ',' || peek(at) == '_') {
    failValue(peek(at) == spec.grouping
                  ? fmt::format("Cannot specify '{0}' with '{0}'.", spec.grouping)
                  : "Cannot specify both ',' and '_'.");
  }
  if (peek(at) == '.') {
    ++at;
    spec.precision = readCount(text, at, kMaxPrecision);
    if (spec.precision < 0) failValue("Format specifier missing precision");
  }
  if (at + 1 < text.size()) failValue("Invalid format specifier");
  if (at < text.size()) spec.type = text[at];
  return spec;
}

std::string formatWith(const IValue& value, const FormatSpec& given) {
  FormatSpec spec = given;
  // A width that begins with 0 fills numbers behind their sign; strings it fills as ever.
  bool is_number = value.isInt() || value.isBool() || value.isDouble();
  if (spec.align == '0') spec.align = is_number ? '=' : '\0';
  if (value.isBool()) return formatInt(value.rawBool() ? 1 : 0, spec);
  if (value.isInt()) return formatInt(value.rawInt(), spec);
  if (value.isDouble()) return formatFloat(value.rawDouble(), spec);
  if (value.isComplex()) return formatComplexWith(value.toComplex(), spec);
  if (value.isString()) return formatString(value.toString(), spec);
  throw RuntimeError(fmt::format("unsupported format string passed to {}.__format__",
                                 value.isNone() ? "NoneType" : value.tagName()),
                     "TypeError");
}

std::string formatWith(const IValue& value, std::string_view spec) {
  if (value.isTensor() && value.toTensor().defined() && value.toTensor().dim() == 0) {
    return formatWith(elementOf(value.toTensor()), spec);
  }
  if (spec.empty()) return value.str();
  return formatWith(value, FormatSpec::parse(spec));
}

std::string asciiRepr(const IValue& value) {
  // What repr() leaves unescaped is valid UTF-8.
  std::string text = value.repr();
  std::string out;
  for (size_t i = 0; i < text.size();) {
    unsigned char lead = static_cast<unsigned char>(text[i]);
    size_t length = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
    uint32_t code = length == 1 ? lead : lead & (0xffu >> (length + 1));
    for (size_t k = 1; k < length && i + k < text.size(); ++k) {
      code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3f);
    }
    i += length;
    if (code < 0x80) {
      out += static_cast<char>(code);
    } else if (code <= 0xff) {
      out += fmt::format("\\x{:02x}", code);
    } else if (code <= 0xffff) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += fmt::format("\\U{:08x}", code);
    }
  }
  return out;
}

}  // namespace wick::ops
