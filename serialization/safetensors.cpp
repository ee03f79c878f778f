// The header is read as a stream of events, so that nothing is built but what is kept:
//
//   {"weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, "__metadata__": {…}}
#include "serialization/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/keyed_hash.h"
#include "core/output_file.h"

namespace wick {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMaxDims = 64;
constexpr const char* kMetadata = "__metadata__";
// What an entry takes here, its name and shape apart.
constexpr uint64_t kEntryMemory = 512;

struct Format {
  DType dtype;
  const char* text;
};
constexpr Format kFormats[] = {
    {DType::Byte, "U8"},   {DType::Char, "I8"},          {DType::Short, "I16"},
    {DType::Int, "I32"},   {DType::Long, "I64"},         {DType::Half, "F16"},
    {DType::Float, "F32"}, {DType::Double, "F64"},       {DType::BFloat16, "BF16"},
    {DType::Bool, "BOOL"}, {DType::ComplexFloat, "C64"},
};

struct Entry {
  std::string name;
  std::string dtype;
  std::vector<uint64_t> shape;
  std::vector<uint64_t> offsets;
  bool has_shape = false;
};

// Events of the parser; false from one ends it.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(LoadBudget& budget) : budget_(budget) {}
  std::vector<Entry> entries;
  std::string problem;

  bool start_object(size_t) override {
    if (++depth_ == 1) return true;
    if (metadata_) return depth_ == 2 || stop("__metadata__ holds more than strings");
    if (depth_ > 2) return stop("an entry holds an object");
    return true;
  }
  bool end_object() override {
    if (depth_-- == 2 && !metadata_) {
      const Entry& e = entries.back();
      if (e.dtype.empty() || !e.has_shape || e.offsets.size() != 2) {
        return stop(fmt::format("the entry '{}' lacks dtype, shape or data_offsets", e.name));
      }
    }
    return true;
  }
  bool key(string_t& name) override {
    if (depth_ == 1) {
      metadata_ = name == kMetadata;
      if (metadata_) return true;
      if (!names_.insert(name).second) return stop(fmt::format("'{}' appears twice", name));
      if (!budget_.take(kEntryMemory + 3 * name.size())) return stop("it takes too much memory");
      entries.push_back({name, {}, {}, {}, false});
      return true;
    }
    key_ = name;
    return true;
  }
  bool start_array(size_t) override {
    if (metadata_ || depth_ != 2 || list_ != nullptr) return stop("a list where none belongs");
    if (key_ == "shape") {
      entries.back().has_shape = true;
      list_ = &entries.back().shape;
    } else if (key_ == "data_offsets") {
      list_ = &entries.back().offsets;
    } else {
      return stop(fmt::format("unknown key '{}'", key_));
    }
    return list_->empty() || stop(fmt::format("'{}' appears twice", key_));
  }
  bool end_array() override {
    list_ = nullptr;
    return true;
  }
  bool string(string_t& text) override {
    if (metadata_ && depth_ == 2) return true;
    if (depth_ != 2 || key_ != "dtype" || list_ != nullptr) return stop("unexpected text");
    entries.back().dtype = text;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (list_ == nullptr) return stop("unexpected number");
    if (list_->size() == kMaxDims) return stop("too many dimensions");
    list_->push_back(value);
    return true;
  }
  bool number_integer(number_integer_t) override { return stop("a number below zero"); }
  bool number_float(number_float_t, const string_t&) override {
    return stop("a number that is not an integer");
  }
  bool null() override { return stop("unexpected null"); }
  bool boolean(bool) override { return stop("unexpected boolean"); }
  bool binary(binary_t&) override { return stop("unexpected bytes"); }
  bool parse_error(size_t at, const std::string&, const nlohmann::json::exception&) override {
    return stop(fmt::format("not JSON at byte {}", at));
  }

 private:
  bool stop(std::string why) {
    if (problem.empty()) problem = std::move(why);
    return false;
  }

  LoadBudget& budget_;
  KeyedSet<std::string> names_;
  std::string key_;
  std::vector<uint64_t>* list_ = nullptr;
  int depth_ = 0;
  bool metadata_ = false;
};

class Reader {
 public:
  Reader(Bytes file, std::string name, const ArchiveLimits& limits)
      : file_(std::move(file)),
        name_(std::move(name)),
        limits_(limits),
        budget_(limits.memoryFor(file_.size())) {}

  NamedTensors read() {
    uint64_t header = 0;
    if (file_.size() < sizeof(header)) fail("not a safetensors file");
    std::memcpy(&header, file_.data.data(), sizeof(header));
    if (header > file_.size() - sizeof(header)) fail("the header is longer than the file");
    if (header > limits_.max_pickle) {
      fail(fmt::format("a header of {} bytes is longer than the limit of {}", header,
                       limits_.max_pickle));
    }
    const std::string_view text = file_.text().substr(sizeof(header), header);
    if (!text.starts_with('{')) fail("not a safetensors file");
    HeaderReader reader(budget_);
    const bool fine = nlohmann::json::sax_parse(text.begin(), text.end(), &reader);
    if (!fine || !reader.problem.empty()) fail("header: " + reader.problem);
    data_ = file_.data.subspan(sizeof(header) + header);
    checkRanges(reader.entries);
    NamedTensors tensors;
    for (Entry& entry : reader.entries) {
      Tensor tensor = tensorOf(entry);
      tensors.emplace_back(std::move(entry.name), std::move(tensor));
    }
    return tensors;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { throwLoadError("{}: {}", name_, what); }

  void checkRanges(const std::vector<Entry>& entries) const {
    std::vector<const Entry*> sorted;
    for (const Entry& entry : entries) sorted.push_back(&entry);
    std::ranges::sort(sorted,
                      [](const Entry* a, const Entry* b) { return a->offsets < b->offsets; });
    uint64_t at = 0;
    for (const Entry* entry : sorted) {
      if (entry->offsets[0] != at || entry->offsets[1] < at || entry->offsets[1] > data_.size()) {
        fail(
            fmt::format("tensor '{}': its bytes {} to {} overlap others, leave a gap or lie "
                        "outside of the file",
                        entry->name, entry->offsets[0], entry->offsets[1]));
      }
      at = entry->offsets[1];
    }
    if (at != data_.size()) fail(fmt::format("{} bytes belong to no tensor", data_.size() - at));
  }

  Tensor tensorOf(const Entry& entry) {
    const auto* format =
        std::ranges::find_if(kFormats, [&](const Format& f) { return entry.dtype == f.text; });
    if (format == std::end(kFormats)) {
      fail(fmt::format("tensor '{}': the dtype '{}' is not supported", entry.name, entry.dtype));
    }
    DimVector sizes;
    uint64_t bytes = itemSize(format->dtype), filled = bytes;
    for (uint64_t size : entry.shape) {
      const uint64_t extent = std::max<uint64_t>(size, 1);
      if (size > INT64_MAX || __builtin_mul_overflow(bytes, size, &bytes) ||
          __builtin_mul_overflow(filled, extent, &filled) || filled > INT64_MAX) {
        fail(fmt::format("tensor '{}': its shape is too large", entry.name));
      }
      sizes.push_back(static_cast<int64_t>(size));
    }
    const std::span<std::byte> data =
        data_.subspan(entry.offsets[0], entry.offsets[1] - entry.offsets[0]);
    if (bytes != data.size()) {
      fail(fmt::format("tensor '{}': {} bytes for a shape that needs {}", entry.name, data.size(),
                       bytes));
    }
    if (format->dtype == DType::Bool) {
      for (std::byte& b : data) {
        if (b > std::byte{1}) b = std::byte{1};
      }
    }
    return Tensor::fromStorage(storageOf(entry.name, data), format->dtype, sizes,
                               contiguousStrides(sizes), 0);
  }

  Ref<Storage> storageOf(const std::string& name, std::span<std::byte> data) {
    if (reinterpret_cast<uintptr_t>(data.data()) % kAlignment == 0) {
      return Storage::borrow(data.data(), data.size(), file_.owner);
    }
    if (!budget_.take(data.size())) {
      fail(fmt::format("tensor '{}': the file takes more memory than one of its size may", name));
    }
    Ref<Storage> storage = Storage::allocate(data.size());
    if (!data.empty()) std::memcpy(storage->data(), data.data(), data.size());
    return storage;
  }

  Bytes file_;
  std::string name_;
  ArchiveLimits limits_;
  LoadBudget budget_;
  std::span<std::byte> data_;
};

}  // namespace

NamedTensors loadSafetensors(const std::string& path, const ArchiveLimits& limits) {
  return loadSafetensors(mapFile(path), path, limits);
}

NamedTensors loadSafetensors(Bytes file, const std::string& name, const ArchiveLimits& limits) {
  return Reader(std::move(file), name, limits).read();
}

void saveSafetensors(const NamedTensors& tensors, const std::string& path) {
  std::string header = "{";
  KeyedSet<std::string> names;
  uint64_t at = 0;
  for (const auto& [name, tensor] : tensors) {
    WICK_CHECK(tensor.defined() && tensor.device().isCpu(), "save: '{}' is not a tensor on the CPU",
               name);
    WICK_CHECK(name != kMetadata && names.insert(name).second, "save: the name '{}' {}", name,
               name == kMetadata ? "has another meaning in safetensors" : "occurs twice");
    const auto* format =
        std::ranges::find_if(kFormats, [&](const Format& f) { return tensor.dtype() == f.dtype; });
    WICK_CHECK(format != std::end(kFormats), "save: '{}': safetensors has no dtype {}", name,
               toString(tensor.dtype()));
    const uint64_t end = at + static_cast<uint64_t>(tensor.numel()) * tensor.itemSize();
    const std::vector<int64_t> shape(tensor.sizes().begin(), tensor.sizes().end());
    using nlohmann::json;
    header += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                          header.size() > 1 ? "," : "",
                          json(name).dump(-1, ' ', false, json::error_handler_t::replace),
                          format->text, fmt::join(shape, ","), at, end);
    at = end;
  }
  header += '}';
  // The first tensor is aligned, and the others as far as their sizes allow.
  header.append((kAlignment - (sizeof(uint64_t) + header.size()) % kAlignment) % kAlignment, ' ');
  const uint64_t size = header.size();
  OutputFile file(path);
  file.write(std::as_bytes(std::span(&size, 1)));
  file.write(header);
  for (const auto& [name, tensor] : tensors) {
    const Tensor dense = tensor.contiguous();
    file.write(std::span(static_cast<const std::byte*>(dense.rawData()),
                         static_cast<size_t>(dense.numel()) * dense.itemSize()));
  }
  file.commit();
}

}  // namespace wick
