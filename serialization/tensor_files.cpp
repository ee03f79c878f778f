#include "serialization/tensor_files.h"

#include <fmt/format.h>

#include <cstring>

#include "core/error.h"
#include "serialization/npy.h"
#include "serialization/npz.h"
#include "serialization/safetensors.h"
#include "serialization/stored_values.h"
#include "serialization/torch_save.h"

namespace wick {
namespace {

constexpr const char* kSingle = "tensor";
constexpr size_t kMaxDepth = 100;

void collect(const IValue& value, const std::string& name, size_t depth, NamedTensors& found) {
  if (value.isTensor()) {
    found.emplace_back(name.empty() ? kSingle : name, value.toTensor());
    return;
  }
  WICK_CHECK(value.isDict(), "expected a tensor or a dict of tensors{}, got {}",
             name.empty() ? "" : fmt::format(" as '{}'", name), value.tagName());
  WICK_CHECK(depth < kMaxDepth, "dicts nest deeper than {}", kMaxDepth);
  for (const auto& [key, element] : value.toDict().items()) {
    const std::string part = key.isString() ? key.toString() : key.repr();
    collect(element, name.empty() ? part : name + "." + part, depth + 1, found);
  }
}

// The entries of an .npz lie in no folder, those of torch.save do.
bool looksLikeNpz(const Bytes& file) {
  constexpr size_t kHeader = 30;
  constexpr std::string_view kSuffix = ".npy";
  const std::string_view text = file.text();
  if (!ArchiveReader::looksLikeZip(file.data) || text.size() < kHeader) return false;
  const size_t length =
      static_cast<uint8_t>(text[26]) | static_cast<size_t>(static_cast<uint8_t>(text[27])) << 8;
  return text.substr(kHeader, length).ends_with(kSuffix);
}

// A header of JSON follows its length; what other formats begin with would be an enormous one.
bool looksLikeSafetensors(const Bytes& file) {
  uint64_t length = 0;
  if (file.size() <= sizeof(length)) return false;
  std::memcpy(&length, file.data.data(), sizeof(length));
  return length <= file.size() - sizeof(length) && file.text()[sizeof(length)] == '{';
}

}  // namespace

NamedTensors namedTensors(const IValue& value) {
  NamedTensors found;
  collect(value, "", 0, found);
  return found;
}

NamedTensors loadTensors(const std::string& path, const ArchiveLimits& limits) {
  Bytes file = mapFile(path);
  const std::string_view text = file.text();
  if (text.starts_with("\x93NUMPY")) return {{kSingle, loadNpy(std::move(file), path)}};
  if (looksLikeNpz(file)) return loadNpz(std::move(file), path, limits);
  if (looksLikeSafetensors(file)) return loadSafetensors(std::move(file), path, limits);
  const IValue value = loadValue(std::move(file), path, limits);
  try {
    return namedTensors(value);
  } catch (const RuntimeError& error) {
    throwLoadError("{}: {}", path, error.brief());
  }
}

bool isTensorFileName(const std::string& path) {
  for (const char* end : {".pt", ".pth", ".safetensors", ".npz", ".npy"}) {
    if (path.ends_with(end)) return true;
  }
  return false;
}

void saveTensors(const NamedTensors& tensors, const std::string& path) {
  if (path.ends_with(".safetensors")) return saveSafetensors(tensors, path);
  if (path.ends_with(".npz")) return saveNpz(tensors, path);
  if (path.ends_with(".npy")) {
    WICK_CHECK(tensors.size() == 1, "save: {}: a .npy file holds one tensor, not {}", path,
               tensors.size());
    return saveNpy(tensors[0].second, path);
  }
  WICK_CHECK(isTensorFileName(path),
             "save: {}: expected a name that ends in .pt, .safetensors, .npz or .npy", path);
  auto dict = makeRef<DictObject>(types::String(), types::Tensor());
  for (const auto& [name, tensor] : tensors) {
    WICK_CHECK(dict->find(IValue(name)) == nullptr, "save: the name '{}' occurs twice", name);
    dict->set(IValue(name), IValue(tensor));
  }
  saveValue(IValue(std::move(dict)), path);
}

}  // namespace wick
