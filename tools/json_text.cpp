#include "tools/json_text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/dtype_dispatch.h"
#include "core/error.h"
#include "core/text_limit.h"

namespace wick::cli {
namespace {

constexpr int kJsonTextMaxDepth = 200;

class JsonWriter {
 public:
  std::string take() { return std::move(out_); }

  void value(const IValue& v, int depth) {
    WICK_CHECK(depth < kJsonTextMaxDepth, "--json: values nest deeper than {}", kJsonTextMaxDepth);
    checkLength();
    switch (v.tag()) {
      case IValue::Tag::None:
        out_ += "null";
        return;
      case IValue::Tag::Int:
        out_ += std::to_string(v.toInt());
        return;
      case IValue::Tag::Double:
        number(v.toDouble());
        return;
      case IValue::Tag::Bool:
        out_ += v.toBool() ? "true" : "false";
        return;
      case IValue::Tag::Complex:
        number(v.toComplex());
        return;
      case IValue::Tag::Tensor:
        tensor(v.toTensor());
        return;
      case IValue::Tag::List:
      case IValue::Tag::Tuple:
        sequence(v, depth);
        return;
      case IValue::Tag::Dict:
        dict(v, depth);
        return;
      case IValue::Tag::Object:
        object(v.toObject(), depth);
        return;
      case IValue::Tag::String:
        out_ += jsonQuoted(v.toString());
        return;
      default:
        out_ += jsonQuoted(v.repr());
    }
  }

 private:
  void checkLength() {
    WICK_CHECK(out_.size() <= kMaxTextBytes, "--json: the text is longer than {} bytes",
               kMaxTextBytes);
  }

  void number(double v) {
    if (std::isfinite(v)) {
      out_ += formatDouble(v);
    } else {
      out_ += std::isnan(v) ? "\"nan\"" : v > 0 ? "\"inf\"" : "\"-inf\"";
    }
  }
  // The shortest digits that read back as this float.
  void number(float v) {
    if (std::isfinite(v)) {
      fmt::format_to(std::back_inserter(out_), "{}", v);
    } else {
      number(static_cast<double>(v));
    }
  }
  template <class T>
  void number(std::complex<T> v) {
    out_ += '[';
    number(v.real());
    out_ += ", ";
    number(v.imag());
    out_ += ']';
  }
  void number(Half v) { number(static_cast<float>(v)); }
  void number(BFloat16 v) { number(static_cast<float>(v)); }
  void number(bool v) { out_ += v ? "true" : "false"; }
  template <std::integral T>
  void number(T v) {
    out_ += std::to_string(v);
  }

  void tensor(const Tensor& t) {
    out_ += fmt::format("{{\"dtype\": \"{}\", \"size\": {}, \"data\": [", toString(t.dtype()),
                        formatInts(t.sizes()));
    const Tensor row = t.contiguous();
    dispatchAll(t.dtype(), [&]<class T>() {
      const T* data = row.data<T>();
      for (int64_t i = 0; i < row.numel(); ++i) {
        if (i) out_ += ", ";
        if ((i & 0xffff) == 0) checkLength();
        number(data[i]);
      }
    });
    out_ += "]}";
  }

  void sequence(const IValue& v, int depth) {
    out_ += '[';
    bool first = true;
    for (const IValue& element : v.elements()) {
      if (!std::exchange(first, false)) out_ += ", ";
      value(element, depth + 1);
    }
    out_ += ']';
  }

  void dict(const IValue& v, int depth) {
    out_ += '{';
    bool first = true;
    for (const auto& [key, element] : v.items()) {
      if (!std::exchange(first, false)) out_ += ", ";
      out_ += jsonQuoted(key.str()) + ": ";
      value(element, depth + 1);
    }
    out_ += '}';
  }

  void object(const Object& v, int depth) {
    out_ += '{';
    for (size_t i = 0; i < v.type()->attributes().size(); ++i) {
      if (i) out_ += ", ";
      out_ += jsonQuoted(v.type()->attributes()[i].name) + ": ";
      value(v.slot(i), depth + 1);
    }
    out_ += '}';
  }

  std::string out_;
};

}  // namespace

std::string jsonText(const IValue& value) {
  JsonWriter writer;
  writer.value(value, 0);
  return writer.take();
}

std::string jsonQuoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace wick::cli
