#include "tools/inputs.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/suggestions.h"
#include "serialization/file_kind.h"
#include "serialization/npy.h"
#include "serialization/stored_values.h"
#include "serialization/torch_save.h"
#include "tools/options.h"

namespace wick::cli {
namespace {

// Literals nest no deeper.
constexpr int kMaxDepth = 100;

bool isNameStart(char c) {
  return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

std::optional<DType> dtypeFromShortName(std::string_view name) {
  static constexpr std::pair<std::string_view, DType> kShort[] = {
      {"f16", DType::Half},    {"f32", DType::Float},
      {"f64", DType::Double},  {"bf16", DType::BFloat16},
      {"i8", DType::Char},     {"i16", DType::Short},
      {"i32", DType::Int},     {"i64", DType::Long},
      {"u8", DType::Byte},     {"c64", DType::ComplexFloat},
      {"fp16", DType::Half},   {"fp32", DType::Float},
      {"fp64", DType::Double}, {"c128", DType::ComplexDouble},
  };
  for (const auto& [text, dtype] : kShort) {
    if (text == name) return dtype;
  }
  return dtypeFromName(name);
}

// Recursive descent over one --input.
class SpecReader {
 public:
  SpecReader(std::string_view text, InputParser& maker) : text_(text), maker_(maker) {}

  Input read() {
    Input input;
    skipSpace();
    if (accept('=')) {
      if (peek() == '@') {
        input.value = file();
      } else {
        input.filling = filling();
      }
    } else {
      input.name = argumentName();
      value_at_ = at_;
      if (!input.name.empty() && isFillingWord()) {
        input.filling = filling();
      } else {
        input.value = value(0);
      }
    }
    skipSpace();
    if (at_ != text_.size()) fail("the end");
    return input;
  }

 private:
  [[noreturn]] void fail(const std::string& expected) const {
    throw CommandLineError(fmt::format("--input: expected {} at column {} of\n  {}\n  {}^{}",
                                       expected, at_ + 1, text_, std::string(at_, ' '), advice()));
  }
  std::string advice() const {
    const std::string file = fileAdvice();
    return file.empty() ? shapeAdvice() : file;
  }
  // Returns advice for a value that is the name of a file.
  std::string fileAdvice() const {
    const std::string path(text_.substr(value_at_));
    std::error_code error;
    if (path.empty() || !std::filesystem::is_regular_file(path, error)) return "";
    return fmt::format("\n{} is a file; its tensor is written @{}", path, path);
  }
  // Returns how a shape is written that stands there as other programs take it: "1,3,224,224", "x:1x3xf32".
  std::string shapeAdvice() const {
    const auto isOfName = [](char c) { return isNameStart(c) || isDigit(c); };
    const auto endOf = [&](size_t at, auto belongs) {
      while (at < text_.size() && belongs(text_[at])) ++at;
      return at;
    };
    size_t at = isNameStart(text_.empty() ? '\0' : text_[0]) ? endOf(0, isOfName) : 0;
    std::string spec(text_.substr(0, at));
    if (at > 0) {
      if (at == text_.size() || (text_[at] != ':' && text_[at] != '=')) return "";
      spec += '=';
      ++at;
    }
    for (;;) {
      const size_t end = endOf(at, isDigit);
      if (end == at) return "";
      spec += fmt::format("{}x", text_.substr(at, end - at));
      if (end == text_.size()) return at == 0 ? "" : shapeAdvice(spec + "f32");
      if (std::string_view("xX*,").find(text_[end]) == std::string_view::npos) return "";
      at = endOf(end + 1, [](char c) { return c == ' '; });
      if (at == text_.size()) return "";
      if (isNameStart(text_[at])) break;
    }
    const std::string_view last = text_.substr(at);
    return dtypeFromShortName(last) ? shapeAdvice(fmt::format("{}{}", spec, last)) : "";
  }
  static std::string shapeAdvice(const std::string& spec) {
    return "\nA tensor of this shape is written " + spec;
  }
  char peek(size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void skipSpace() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\n') ++at_;
  }
  bool accept(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  std::string_view word() const {
    size_t end = at_;
    while (end < text_.size() && (isNameStart(text_[end]) || isDigit(text_[end]))) ++end;
    return text_.substr(at_, end - at_);
  }

  // NAME before "=", unless NAME is a dtype (f32=zeros is a tensor without dimensions).
  std::string argumentName() {
    if (!isNameStart(peek())) return "";
    const std::string_view name = word();
    if (peek(name.size()) != '=' || dtypeFromShortName(name)) return "";
    at_ += name.size() + 1;
    return std::string(name);
  }

  bool isFillingWord() const {
    const std::string_view w = word();
    return w == "random" || w == "zeros" || w == "ones";
  }
  Filling filling() {
    const std::string_view w = word();
    Filling result = w == "random"  ? Filling::Random
                     : w == "zeros" ? Filling::Zeros
                     : w == "ones"  ? Filling::Ones
                                    : Filling::None;
    if (result == Filling::None) fail("random, zeros, ones or @file.npy");
    at_ += w.size();
    return result;
  }

  // The name extends to the next "," or bracket only within a list; alone it may hold anything.
  IValue file() {
    ++at_;
    const size_t end = nested_ ? text_.find_first_of(",)]}", at_) : std::string_view::npos;
    std::string path(text_.substr(at_, end == std::string_view::npos ? end : end - at_));
    if (path.empty()) fail("the name of a .npy or .pt file");
    IValue result = valueIn(path);
    at_ = end == std::string_view::npos ? text_.size() : end;
    return result;
  }

  IValue value(int depth) {
    if (depth > kMaxDepth) fail("less nesting");
    skipSpace();
    const char c = peek();
    switch (c) {
      case '@':
        return file();
      case '[':
        return list(depth);
      case '(':
        return tuple(depth);
      case '{':
        return dict(depth);
      case '"':
      case '\'':
        return string();
      default:
        break;
    }
    if (isNameStart(c)) return named();
    if (isDigit(c) || c == '-' || c == '+' || c == '.') return numberOrTensor();
    fail("a shape such as 1x3xf32, @file.npy, @file.pt or a literal");
  }

  IValue named() {
    const std::string_view w = word();
    if (auto dtype = dtypeFromShortName(w)) {
      at_ += w.size();
      return tensor({}, *dtype);
    }
    IValue result;
    if (w == "True" || w == "False") {
      result = w == "True";
    } else if (w == "inf" || w == "nan") {
      result = std::strtod(std::string(w).c_str(), nullptr);
    } else if (w != "None") {
      fail("a literal (text must stand in quotes)");
    }
    at_ += w.size();
    return result;
  }

  // Sizes: digits and x, then a dtype.
  std::optional<IValue> sizedTensor() {
    const std::string_view w = word();
    DimVector sizes;
    size_t begin = 0;
    for (size_t x = w.find('x'); x != std::string_view::npos; x = w.find('x', begin)) {
      // "complex64" holds an x of its own.
      if (dtypeFromShortName(w.substr(begin))) break;
      int64_t size = 0;
      const auto [end, error] = std::from_chars(w.data() + begin, w.data() + x, size);
      if (error != std::errc() || end != w.data() + x) {
        if (begin == 0) return std::nullopt;
        at_ += begin;
        fail("a size or a dtype");
      }
      sizes.push_back(size);
      begin = x + 1;
    }
    if (sizes.empty()) return std::nullopt;
    // Without a dtype the last part is one more size, of float32.
    int64_t last = 0;
    const char* const end = w.data() + w.size();
    if (const auto [stop, error] = std::from_chars(w.data() + begin, end, last);
        error == std::errc() && stop == end) {
      sizes.push_back(last);
      at_ += w.size();
      return tensor(sizes, DType::Float);
    }
    const auto dtype = dtypeFromShortName(w.substr(begin));
    if (!dtype) {
      at_ += begin;
      fail("a dtype (f32, i64, bool, ...) or a size");
    }
    at_ += w.size();
    return tensor(sizes, *dtype);
  }

  IValue tensor(IntSpan sizes, DType dtype) {
    if (!accept('=')) return maker_.tensor(sizes, dtype, Filling::Random);
    if (peek() != '@') return maker_.tensor(sizes, dtype, filling());
    const size_t start = at_;
    const IValue read = file();
    if (!read.isTensor()) {
      at_ = start;
      fail(fmt::format("a file with a Tensor (this one holds {})", read.tagName()));
    }
    Tensor loaded = read.toTensor();
    if (loaded.dtype() != dtype || !std::ranges::equal(loaded.sizes(), sizes)) {
      at_ = start;
      fail(fmt::format("a file of {}{} (this one holds {})", toString(dtype), formatInts(sizes),
                       loaded.describe()));
    }
    return loaded;
  }

  IValue numberOrTensor() {
    if (isDigit(peek())) {
      if (auto tensor = sizedTensor()) return *tensor;
    }
    size_t end = at_;
    while (end < text_.size() &&
           (isNameStart(text_[end]) || isDigit(text_[end]) || text_[end] == '.' ||
            ((text_[end] == '-' || text_[end] == '+') &&
             (end == at_ || text_[end - 1] == 'e' || text_[end - 1] == 'E')))) {
      ++end;
    }
    const std::string number(text_.substr(at_, end - at_));
    const char* first = number.c_str() + (number[0] == '+' ? 1 : 0);
    const char* last = number.c_str() + number.size();
    int64_t integer = 0;
    if (auto [stop, error] = std::from_chars(first, last, integer);
        stop == last && error == std::errc()) {
      at_ = end;
      return integer;
    } else if (stop == last) {
      fail("an int of 64 bits");
    }
    double real = 0;
    const auto [stop, error] = std::from_chars(first, last, real);
    if (error == std::errc() && (stop == last || (stop + 1 == last && *stop == 'j'))) {
      at_ = end;
      if (stop != last) return std::complex<double>(0, real);
      return real;
    }
    fail("a number that fits");
  }

  IValue string() {
    const char quote = peek();
    const size_t start = at_++;
    std::string result;
    while (!accept(quote)) {
      if (at_ >= text_.size()) {
        at_ = start;
        fail("a string that ends");
      }
      if (!accept('\\')) {
        result += text_[at_++];
        continue;
      }
      const char c = peek();
      ++at_;
      switch (c) {
        case 'n':
          result += '\n';
          break;
        case 't':
          result += '\t';
          break;
        case '\\':
        case '\'':
        case '"':
          result += c;
          break;
        default:
          --at_;
          fail("one of n t \\ ' \" after the backslash");
      }
    }
    return result;
  }

  // Elements up to `close`; sets whether a comma stood behind the last.
  std::vector<IValue> elements(char close, int depth, bool& comma) {
    ++at_;
    ++nested_;
    std::vector<IValue> result;
    comma = false;
    for (skipSpace(); !accept(close); skipSpace()) {
      if (!result.empty() && !comma) fail(fmt::format("\",\" or \"{}\"", close));
      result.push_back(value(depth + 1));
      skipSpace();
      comma = accept(',');
    }
    --nested_;
    return result;
  }

  IValue list(int depth) {
    bool comma;
    std::vector<IValue> values = elements(']', depth, comma);
    // The declared type corrects this guess when the function is called.
    TypePtr type = values.empty() ? types::Tensor() : values[0].type();
    for (const IValue& v : values) {
      if (!sameType(v.type(), type)) type = types::Any();
    }
    return makeList(type, std::move(values));
  }

  IValue tuple(int depth) {
    bool comma;
    std::vector<IValue> values = elements(')', depth, comma);
    if (values.size() == 1 && !comma) return values[0];
    return makeTuple(std::move(values));
  }

  IValue dict(int depth) {
    ++at_;
    ++nested_;
    std::vector<std::pair<IValue, IValue>> items;
    bool comma = true;
    for (skipSpace(); !accept('}'); skipSpace()) {
      if (!comma) fail("\",\" or \"}\"");
      IValue key = value(depth + 1);
      if (!key.isNumber() && !key.isString()) fail("a number or text as key, before this");
      skipSpace();
      if (!accept(':')) fail("\":\"");
      items.emplace_back(std::move(key), value(depth + 1));
      skipSpace();
      comma = accept(',');
    }
    --nested_;
    TypePtr key_type = items.empty() ? types::String() : items[0].first.type();
    TypePtr value_type = items.empty() ? types::Tensor() : items[0].second.type();
    for (const auto& [key, value] : items) {
      if (!sameType(key.type(), key_type)) key_type = types::Any();
      if (!sameType(value.type(), value_type)) value_type = types::Any();
    }
    auto dict = makeRef<DictObject>(std::move(key_type), std::move(value_type));
    for (auto& [key, value] : items) dict->set(key, value);
    return dict;
  }

  std::string_view text_;
  InputParser& maker_;
  size_t at_ = 0;
  size_t value_at_ = 0;  // behind the argument's name
  int nested_ = 0;
};

template <class T>
void fillRandom(Tensor& tensor, GeneratorObject& generator) {
  T* data = tensor.data<T>();
  for (int64_t i = 0; i < tensor.numel(); ++i) data[i] = static_cast<T>(generator.next32() % 10);
}

const Argument* findArgument(const FunctionSchema& schema, size_t skip, const std::string& name) {
  const auto index = schema.argumentIndex(name);
  return index && *index >= skip ? &schema.arguments()[*index] : nullptr;
}

}  // namespace

Input InputParser::parse(std::string_view text) {
  return SpecReader(text, *this).read();
}

Tensor InputParser::tensor(IntSpan sizes, DType dtype, Filling filling) {
  if (filling == Filling::Zeros) return Tensor::zeros(sizes, dtype);
  if (filling == Filling::Ones) return Tensor::full(sizes, 1, dtype);
  Tensor result = Tensor::empty(sizes, isFloating(dtype) || isComplex(dtype)
                                           ? (isComplex(dtype) ? dtype : DType::Float)
                                           : DType::Long);
  switch (result.dtype()) {
    case DType::Long:
      fillRandom<int64_t>(result, *generator_);
      if (dtype == DType::Bool) {
        int64_t* data = result.data<int64_t>();
        for (int64_t i = 0; i < result.numel(); ++i) data[i] %= 2;
      }
      break;
    case DType::Float: {
      float* data = result.data<float>();
      for (int64_t i = 0; i < result.numel(); ++i) data[i] = generator_->uniformFloat();
      break;
    }
    default: {
      Tensor parts = tensor({checkedNumel(sizes), 2}, DType::Float, Filling::Random);
      const float* part = parts.data<float>();
      for (int64_t i = 0; i < result.numel(); ++i, part += 2) {
        if (dtype == DType::ComplexFloat) {
          result.data<std::complex<float>>()[i] = {part[0], part[1]};
        } else {
          result.data<std::complex<double>>()[i] = {part[0], part[1]};
        }
      }
    }
  }
  return result.to(dtype);
}

IValue InputParser::fill(const Type& type, Filling filling, const std::string& argument) {
  const bool random = filling == Filling::Random;
  const int64_t constant = filling == Filling::Ones ? 1 : 0;
  switch (type.kind()) {
    case TypeKind::Int:
      return random ? static_cast<int64_t>(generator_->next32() % 10) : constant;
    case TypeKind::Float:
    case TypeKind::Number:
      return random ? generator_->uniformDouble() : static_cast<double>(constant);
    case TypeKind::Bool:
      return random ? generator_->next32() % 2 == 1 : constant == 1;
    case TypeKind::Complex:
      return std::complex<double>(random ? generator_->uniformDouble() : double(constant), 0);
    case TypeKind::Optional:
      return fill(*type.contained()[0], filling, argument);
    case TypeKind::Tuple: {
      std::vector<IValue> elements;
      for (const TypePtr& element : type.contained()) {
        elements.push_back(fill(*element, filling, argument));
      }
      return makeTuple(std::move(elements));
    }
    case TypeKind::Tensor:
      throw CommandLineError(fmt::format(
          "--input: {} is a Tensor; tell its shape, as in {}=1x3x224x224xf32", argument, argument));
    default:
      throw CommandLineError(fmt::format("--input: {} of type {} cannot be made up; write it out",
                                         argument, type.annotation()));
  }
}

std::string describeArguments(const FunctionSchema& schema, size_t first) {
  std::string result;
  for (size_t i = first; i < schema.arguments().size(); ++i) {
    const Argument& argument = schema.arguments()[i];
    if (!result.empty()) result += ", ";
    result += argument.name + ": " + argument.type->annotation();
    if (argument.default_value) result += " = " + argument.default_value->repr();
  }
  return result;
}

IValue valueIn(const std::string& path) {
  Bytes file = mapFile(path);
  if (contentsOf(file).kind == FileKind::Npy) return loadNpy(std::move(file), path);
  return loadValue(std::move(file), path, {}, Device());
}

Arguments argumentsFromInputs(const std::vector<std::string>& inputs, const FunctionSchema& schema,
                              size_t skip, uint64_t seed) {
  InputParser parser(seed);
  Arguments result;
  size_t next = skip;
  std::vector<bool> given(schema.arguments().size(), false);
  const auto all = [&] { return "the arguments are: " + describeArguments(schema, skip); };
  for (const std::string& text : inputs) {
    Input input = parser.parse(text);
    const Argument* argument = nullptr;
    if (!input.name.empty()) {
      argument = findArgument(schema, skip, input.name);
      if (!argument) {
        std::set<std::string> names;
        for (size_t i = skip; i < given.size(); ++i) names.insert(schema.arguments()[i].name);
        throw CommandLineError(fmt::format("--input: there is no argument {}{}; {}", input.name,
                                           didYouMean(input.name, names), all()));
      }
    } else {
      if (!result.named.empty()) {
        throw CommandLineError("--input: arguments by position come before those by name");
      }
      if (next >= schema.arguments().size()) {
        throw CommandLineError(
            fmt::format("--input: {} is one too many; {}", text,
                        schema.arguments().size() == skip ? "there are no arguments" : all()));
      }
      argument = &schema.arguments()[next++];
    }
    const size_t index = static_cast<size_t>(argument - schema.arguments().data());
    if (given[index]) {
      throw CommandLineError(fmt::format("--input: {} is given twice", argument->name));
    }
    given[index] = true;
    if (input.filling != Filling::None) {
      input.value = parser.fill(*argument->type, input.filling, argument->name);
    }
    input.value = withTensors(std::move(input.value), *argument->type, argument->name);
    if (input.name.empty()) {
      result.positional.push_back(std::move(input.value));
    } else {
      result.named.emplace_back(input.name, std::move(input.value));
    }
  }
  std::string missing;
  for (size_t i = skip; i < given.size(); ++i) {
    const Argument& argument = schema.arguments()[i];
    if (given[i] || argument.default_value) continue;
    missing += fmt::format("\n  --input {}={}", argument.name,
                           argument.type->kind() == TypeKind::Tensor
                               ? "SHAPE    e.g. 1x3x224x224xf32"
                               : "VALUE    of type " + argument.type->annotation());
  }
  if (!missing.empty()) {
    throw CommandLineError(fmt::format("{} still needs{}", schema.name(), missing));
  }
  return result;
}

Arguments argumentsFromFile(const std::string& path) {
  const IValue file = loadValue(path, {}, Device());
  const auto fail = [&](std::string_view what) {
    throw LoadError(
        fmt::format("{}: expected a dict with \"args\" and \"kwargs\", {}", path, what));
  };
  if (!file.isDict()) fail(fmt::format("got {}", file.tagName()));
  Arguments result;
  if (const IValue* args = file.toDict().find("args")) {
    if (!args->isTuple() && !args->isList()) {
      fail(fmt::format("but \"args\" is {}", args->tagName()));
    }
    result.positional = args->elements();
  }
  if (const IValue* kwargs = file.toDict().find("kwargs")) {
    if (!kwargs->isDict()) fail(fmt::format("but \"kwargs\" is {}", kwargs->tagName()));
    for (auto& [name, value] : kwargs->toDict().items()) {
      if (!name.isString()) fail("but a key of \"kwargs\" is not a text");
      result.named.emplace_back(name.toString(), value);
    }
  }
  return result;
}

}  // namespace wick::cli
