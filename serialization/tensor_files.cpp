#include "serialization/tensor_files.h"

#include <fmt/format.h>

#include "core/error.h"
#include "runtime/device_moves.h"
#include "serialization/file_kind.h"
#include "serialization/npy.h"
#include "serialization/npz.h"
#include "serialization/safetensors.h"
#include "serialization/stored_values.h"
#include "serialization/torch_save.h"
#include "serialization/unpickler.h"

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

// Tensors of a format that says nothing of devices.
NamedTensors moved(NamedTensors tensors, const DeviceMap& devices) {
  const Device device = devices.find("cpu").value_or(Device());
  if (device.isCpu()) return tensors;
  std::vector<IValue> values;
  for (const auto& [name, tensor] : tensors) values.emplace_back(tensor);
  moveTensors(values, device);
  return tensors;
}

}  // namespace

NamedTensors namedTensors(const IValue& value) {
  NamedTensors found;
  collect(value, "", 0, found);
  return found;
}

NamedTensors loadTensors(const std::string& path, const ArchiveLimits& limits,
                         const DeviceMap& devices) {
  devices.check();
  Bytes file = mapFile(path);
  switch (contentsOf(file, limits).kind) {
    case FileKind::Npy:
      return moved({{kSingle, loadNpy(std::move(file), path)}}, devices);
    case FileKind::Npz:
      return moved(loadNpz(std::move(file), path, limits), devices);
    case FileKind::Safetensors:
      return moved(loadSafetensors(std::move(file), path, limits), devices);
    case FileKind::SavedValue:
      break;
    default:
      // A damaged archive has an error of its own.
      if (!ArchiveReader::looksLikeZip(file.data)) {
        throwWrongFile(file, path, Wanted::Tensors, limits);
      }
      throwWrongZip(file, path, Wanted::Tensors, limits);
  }
  IValue value;
  try {
    value = loadValue(std::move(file), path, limits, devices);
  } catch (const CodeOfPython& error) {
    throwSavedObjects(path, error.global, Wanted::Tensors);
  }
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
