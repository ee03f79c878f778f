#include "serialization/npy.h"

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <string_view>

#include "core/error.h"
#include "core/output_file.h"

namespace wick {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
constexpr size_t kMaxStoredDims = 64;

struct Format {
  DType dtype;
  const char* text;
};
constexpr Format kFormats[] = {
    {DType::Byte, "|u1"},         {DType::Char, "|i1"},
    {DType::Short, "<i2"},        {DType::Int, "<i4"},
    {DType::Long, "<i8"},         {DType::Half, "<f2"},
    {DType::Float, "<f4"},        {DType::Double, "<f8"},
    {DType::ComplexFloat, "<c8"}, {DType::ComplexDouble, "<c16"},
    {DType::Bool, "|b1"},
};

// The header is the text of a Python dict with three keys.
class Header {
 public:
  Header(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::string descr;
  bool fortran = false;
  DimVector shape;

  void parse() {
    bool has_descr = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = string();
      expect(':');
      if (key == "descr") {
        descr = string();
        has_descr = true;
      } else if (key == "fortran_order") {
        fortran = boolean();
        has_order = true;
      } else if (key == "shape") {
        parseShape();
        has_shape = true;
      } else {
        fail(fmt::format("unknown key '{}'", key));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape) fail("a key is missing");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throwLoadError("{}: npy header: {}", name_, what);
  }
  void skipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skipSpace();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("expected '{}' at {}", c, at_));
  }
  std::string string() {
    skipSpace();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("structured and object arrays are not supported");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string does not end");
    std::string result(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return result;
  }
  bool boolean() {
    skipSpace();
    for (bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("expected True or False");
  }
  void parseShape() {
    expect('(');
    while (!accept(')')) {
      skipSpace();
      int64_t size = 0;
      auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), size);
      if (error != std::errc() || size < 0) fail("the shape holds no size");
      if (shape.size() == kMaxStoredDims) fail("too many dimensions");
      at_ = static_cast<size_t>(end - text_.data());
      shape.push_back(size);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
  }

  std::string_view text_;
  const std::string& name_;
  size_t at_ = 0;
};

}  // namespace

DimVector fortranStrides(IntSpan sizes) {
  DimVector strides(sizes.size());
  int64_t stride = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    strides[i] = stride;
    stride *= std::max<int64_t>(sizes[i], 1);
  }
  return strides;
}

Tensor loadNpy(const std::string& path) {
  return loadNpy(mapFile(path), path);
}

Tensor loadNpy(Bytes file, const std::string& name) {
  const std::string_view text = file.text();
  if (!text.starts_with(kMagic) || text.size() < 12) throwLoadError("{}: not an npy file", name);
  const int version = static_cast<uint8_t>(text[6]);
  uint32_t header_size = 0;
  size_t start = 12;
  if (version == 1) {
    uint16_t size;
    std::memcpy(&size, text.data() + 8, sizeof(size));
    header_size = size;
    start = 10;
  } else if (version == 2 || version == 3) {
    std::memcpy(&header_size, text.data() + 8, sizeof(header_size));
  } else {
    throwLoadError("{}: npy version {} is not supported", name, version);
  }
  if (header_size > text.size() - start) throwLoadError("{}: the npy file is truncated", name);
  Header header(text.substr(start, header_size), name);
  header.parse();
  const Format* format = nullptr;
  for (const Format& f : kFormats) {
    if (header.descr == f.text) format = &f;
  }
  if (format == nullptr) throwLoadError("{}: npy type '{}' is not supported", name, header.descr);
  int64_t numel = 0;
  try {
    numel = checkedNumel(header.shape);
    // Strides of an empty array multiply its other sizes, which must not overflow either.
    DimVector filled = header.shape;
    for (int64_t& size : filled) size = std::max<int64_t>(size, 1);
    checkedNumel(filled);
  } catch (const RuntimeError& error) {
    throwLoadError("{}: npy header: {}", name, error.brief());
  }
  std::span<std::byte> data = file.data.subspan(start + header_size);
  if (static_cast<uint64_t>(numel) > data.size() / itemSize(format->dtype)) {
    throwLoadError("{}: the npy file is truncated", name);
  }
  const size_t bytes = static_cast<size_t>(numel) * itemSize(format->dtype);
  if (format->dtype == DType::Bool) {
    // NumPy may have written other bytes, which count as true there.
    for (std::byte& b : data.first(bytes)) {
      if (b > std::byte{1}) b = std::byte{1};
    }
  }
  Ref<Storage> storage;
  if (reinterpret_cast<uintptr_t>(data.data()) % kAlignment == 0) {
    storage = Storage::borrow(data.data(), bytes, file.owner);
  } else {
    storage = Storage::allocate(bytes);
    if (bytes != 0) std::memcpy(storage->data(), data.data(), bytes);
  }
  return Tensor::fromStorage(
      std::move(storage), format->dtype, header.shape,
      header.fortran ? fortranStrides(header.shape) : contiguousStrides(header.shape), 0);
}

std::string npyHeader(const Tensor& tensor) {
  WICK_CHECK(tensor.defined() && tensor.device().isCpu(), "saveNpy: expected a tensor on the CPU");
  const Format* format = nullptr;
  for (const Format& f : kFormats) {
    if (tensor.dtype() == f.dtype) format = &f;
  }
  WICK_CHECK(format != nullptr, "saveNpy: NumPy has no dtype {}", toString(tensor.dtype()));
  std::string shape;
  for (int64_t size : tensor.sizes()) shape += fmt::format("{}, ", size);
  if (tensor.dim() > 1) shape.resize(shape.size() - 2);
  if (tensor.dim() == 1) shape.resize(shape.size() - 1);
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                                   format->text, shape);
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  WICK_CHECK(header.size() <= UINT16_MAX, "saveNpy: too many dimensions");
  std::string out(kMagic);
  out += '\x01';
  out += '\0';
  const auto header_size = static_cast<uint16_t>(header.size());
  out += static_cast<char>(header_size & 0xff);
  out += static_cast<char>(header_size >> 8);
  out += header;
  return out;
}

void saveNpy(const Tensor& tensor, const std::string& path) {
  const std::string header = npyHeader(tensor);
  OutputFile file(path);
  file.write(header);
  const Tensor dense = tensor.contiguous();
  file.write(std::span(static_cast<const std::byte*>(dense.rawData()),
                       static_cast<size_t>(dense.numel()) * dense.itemSize()));
  file.commit();
}

}  // namespace wick
