#include "serialization/exported/package.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "core/error.h"
#include "runtime/device_moves.h"
#include "serialization/exported/read_schema.h"
#include "serialization/stored_values.h"

namespace wick::exported {
namespace {

constexpr const char* kFormat = "archive_format";
constexpr const char* kVersion = "archive_version";
constexpr std::string_view kModels = "models/";
constexpr std::string_view kExtra = "extra/";
constexpr const char* kOldProgram = "serialized_exported_program.json";
constexpr const char* kOldExtra = "extra_files/";
// A file may hold so many programs, and a program so much text.
constexpr size_t kMaxPrograms = 256;
constexpr uint64_t kMaxJson = uint64_t{512} << 20;
constexpr uint64_t kTensorObjectMemory = 512;

class PackageReader {
 public:
  PackageReader(std::shared_ptr<ArchiveReader> archive, const LoadOptions& options)
      : archive_(std::move(archive)),
        options_(options),
        weights_(archive_, "data/weights"),
        constants_(archive_, "data/constants") {}

  std::vector<StoredProgram> read() {
    options_.devices.check();
    checkByteOrder(*archive_);
    std::vector<StoredProgram> programs;
    if (archive_->has(kOldProgram)) {
      programs.push_back(readOld());
    } else {
      checkFormat();
      for (const std::string& record : archive_->records()) {
        if (!record.starts_with(kModels) || !record.ends_with(".json")) continue;
        if (programs.size() == kMaxPrograms) {
          throwLoadError("{}: the package holds more than {} programs", archive_->name(),
                         kMaxPrograms);
        }
        const std::string name = record.substr(kModels.size(), record.size() - kModels.size() - 5);
        programs.push_back(readModel(name, record));
      }
    }
    if (programs.empty()) throwLoadError("{}: the package holds no program", archive_->name());
    moveToDevices();
    if (options_.extra_files) readExtraFiles();
    return programs;
  }

 private:
  std::string place(std::string_view record) const {
    return fmt::format("{}: record '{}'", archive_->name(), record);
  }

  std::string_view text(const std::string& record, Bytes& bytes) const {
    if (archive_->sizeOf(record) > kMaxJson) throwLoadError("{}: too long", place(record));
    bytes = archive_->read(record);
    return bytes.text();
  }

  void checkFormat() const {
    Bytes bytes;
    if (archive_->has(kFormat) && text(kFormat, bytes) != "pt2") {
      throwLoadError("{}: expected 'pt2'", place(kFormat));
    }
    if (!archive_->has(kVersion)) return;
    const std::string_view version = text(kVersion, bytes);
    int64_t number = 0;
    const auto [end, error] =
        std::from_chars(version.data(), version.data() + version.size(), number);
    if (error != std::errc() || number != 0) {
      throwLoadError("{}: version {} is not supported, only 0 is", place(kVersion),
                     version.substr(0, 20));
    }
  }

  StoredProgram readModel(const std::string& name, const std::string& record) {
    StoredProgram out;
    out.name = name;
    Bytes bytes;
    out.program = readProgram(text(record, bytes), place(record), *archive_->budget());
    const std::string legacy = fmt::format("data/weights/{}.pt", name);
    if (archive_->has(legacy)) {
      addSaved(legacy, out);
    } else {
      addPayloads(fmt::format("data/weights/{}_weights_config.json", name), weights_,
                  "data/weights/", out);
    }
    const std::string legacy_constants = fmt::format("data/constants/{}.pt", name);
    if (archive_->has(legacy_constants)) {
      addSaved(legacy_constants, out);
    } else {
      addPayloads(fmt::format("data/constants/{}_constants_config.json", name), constants_,
                  "data/constants/", out);
    }
    return out;
  }

  // The layout before PyTorch 2.8: files of torch.save side by side.
  StoredProgram readOld() {
    StoredProgram out;
    out.name = "model";
    Bytes bytes;
    out.program = readProgram(text(kOldProgram, bytes), place(kOldProgram), *archive_->budget());
    for (const char* record : {"serialized_state_dict.pt", "serialized_constants.pt"}) {
      if (archive_->has(record)) addSaved(record, out);
    }
    return out;
  }

  // A dict of tensors by name that torch.save wrote.
  void addSaved(const std::string& record, StoredProgram& out) const {
    const Bytes bytes = archive_->read(record);
    if (bytes.size() == 0) return;
    const IValue state = loadValue(bytes, place(record), options_.limits, options_.devices);
    if (!state.isDict()) throwLoadError("{}: expected a dict", place(record));
    for (const auto& [key, value] : state.items()) {
      if (!key.isString()) throwLoadError("{}: a key is no string", place(record));
      out.values[key.toString()] = value;
    }
  }

  void addPayloads(const std::string& record, ArchiveStorages& storages, const std::string& folder,
                   StoredProgram& out) {
    if (!archive_->has(record)) {
      if (folder == "data/weights/") throwLoadError("{}: there is no such record", place(record));
      return;
    }
    Bytes bytes;
    const PayloadConfig config =
        readPayloadConfig(text(record, bytes), place(record), *archive_->budget());
    // Paths that tensors of other dtypes than bool use.
    KeyedSet<std::string> no_bools;
    KeyedMap<std::string, IValue> known;
    for (const auto& [name, payload] : config) {
      if (payload.tensor && dtypeOf(payload.tensor->dtype) != DType::Bool)
        no_bools.insert(payload.path);
    }
    for (const auto& [name, payload] : config) {
      try {
        // Names of one tensor share it, as the layers of the module did.
        auto [found, fresh] = known.try_emplace(identityOf(payload));
        if (fresh)
          found->second = valueOf(payload, storages, folder, no_bools.contains(payload.path));
        out.values[name] = found->second;
      } catch (const LoadError& error) {
        throwLoadError("{}: '{}': {}", place(record), name, error.what());
      }
    }
  }

  static std::string identityOf(const Payload& payload) {
    std::string out = payload.path;
    // A pickle tells all of its value.
    if (!payload.tensor || payload.is_pickle) return out;
    const TensorMeta& meta = *payload.tensor;
    out += fmt::format("|{}|{}", meta.dtype, meta.requires_grad);
    for (const auto* sizes : {&meta.sizes, &meta.strides}) {
      for (const Size& size : *sizes) out += fmt::format(",{}", size.number.value_or(-1));
      out += "|";
    }
    return out + fmt::format("{}", meta.storage_offset.number.value_or(-1));
  }

  IValue valueOf(const Payload& payload, ArchiveStorages& storages, const std::string& folder,
                 bool shared_with_others) {
    if (payload.is_pickle) {
      const std::string record = folder + payload.path;
      if (!payload.tensor) {
        throwLoadError("objects of classes (record '{}') are not loaded", record);
      }
      return loadValue(archive_->read(record), place(record), options_.limits, options_.devices);
    }
    if (!payload.tensor) throwLoadError("there is no tensor_meta");
    const TensorMeta& meta = *payload.tensor;
    const std::optional<DType> dtype = dtypeOf(meta.dtype);
    if (!dtype) throwLoadError("tensors of the dtype {} are not supported", dtypeName(meta.dtype));
    if (layoutOf(meta.layout) != 0)
      throwLoadError("only dense tensors can lie in a file as they are");
    if (!archive_->budget()->take(kTensorObjectMemory)) throwLoadError("too many tensors");
    const DimVector sizes = numbers(meta.sizes);
    const DimVector strides = numbers(meta.strides);
    int64_t offset = number(meta.storage_offset);
    const Ref<Storage> storage = storages.get(payload.path);
    if (const std::string problem = problemOfView(*storage, *dtype, sizes, strides, offset);
        !problem.empty()) {
      throwLoadError("{}", problem);
    }
    Tensor tensor = viewOf(storage, *dtype, sizes, strides, offset);
    if (*dtype == DType::Bool && (shared_with_others || !holdsBools(storage))) {
      if (!archive_->budget()->take(static_cast<uint64_t>(tensor.numel()))) {
        throwLoadError("copies of booleans take more memory than a file of this size may");
      }
      tensor = withBools(tensor);
    }
    tensor.setRequiresGrad(meta.requires_grad && (isFloating(*dtype) || isComplex(*dtype)));
    const std::optional<Device> device = options_.devices.find(meta.device);
    if (!device) throwLoadError("'{}' is no device that is known", meta.device);
    if (!device->isCpu()) moves_[{device->type, device->index}].emplace_back(tensor);
    return tensor;
  }

  static Tensor viewOf(const Ref<Storage>& storage, DType dtype, const DimVector& sizes,
                       const DimVector& strides, int64_t offset) {
    try {
      return Tensor::fromStorage(storage, dtype, sizes, strides, offset);
    } catch (const RuntimeError& error) {
      throwLoadError("{}", error.brief());
    }
  }

  // Looks through each storage once, however many tensors lie in it.
  bool holdsBools(const Ref<Storage>& storage) {
    const auto [found, fresh] = holds_bools_.try_emplace(storage.get());
    if (fresh) {
      const auto* bytes = static_cast<const uint8_t*>(storage->data());
      found->second =
          std::all_of(bytes, bytes + storage->bytes(), [](uint8_t b) { return b <= 1; });
    }
    return found->second;
  }

  // Compiled code takes it that bools are the bytes 0 and 1, and another tensor over the same bytes could write others.
  static Tensor withBools(const Tensor& tensor) {
    return Tensor::fromStorage(tensor.storage(), DType::Byte, tensor.sizes(), tensor.strides(),
                               tensor.offset())
        .to(DType::Bool);
  }

  static int64_t number(const Size& size) {
    if (!size.number) throwLoadError("the size of a stored tensor is an expression");
    return *size.number;
  }

  static DimVector numbers(const std::vector<Size>& sizes) {
    if (sizes.size() > kMaxDims) throwLoadError("a tensor has {} dimensions", sizes.size());
    DimVector out;
    for (const Size& size : sizes) out.push_back(number(size));
    return out;
  }

  void moveToDevices() {
    for (const auto& [device, tensors] : moves_) {
      moveTensors(tensors, Device{device.first, device.second});
    }
  }

  void readExtraFiles() const {
    for (const std::string& record : archive_->records()) {
      std::string_view name = record;
      for (const std::string_view folder : {kExtra, std::string_view(kOldExtra)}) {
        if (!record.starts_with(folder)) continue;
        name.remove_prefix(folder.size());
        if (!archive_->budget()->take(archive_->sizeOf(record))) {
          throwLoadError("{}: too large", place(record));
        }
        (*options_.extra_files)[std::string(name)] = std::string(archive_->read(record).text());
      }
    }
  }

  std::shared_ptr<ArchiveReader> archive_;
  const LoadOptions& options_;
  ArchiveStorages weights_;
  ArchiveStorages constants_;
  KeyedMap<const Storage*, bool> holds_bools_;  // constants_ and weights_ keep them
  std::map<std::pair<DeviceType, int8_t>, std::vector<IValue>> moves_;
};

}  // namespace

bool isExportedProgram(const ArchiveReader& archive) {
  if (archive.has(kOldProgram)) return true;
  return std::ranges::any_of(archive.records(), [](const std::string& record) {
    return record.starts_with(kModels) && record.ends_with(".json");
  });
}

std::vector<StoredProgram> readPackage(const std::shared_ptr<ArchiveReader>& archive,
                                       const LoadOptions& options) {
  return PackageReader(archive, options).read();
}

}  // namespace wick::exported
