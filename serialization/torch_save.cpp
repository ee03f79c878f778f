#include "serialization/torch_save.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "core/conform.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/function_schema.h"
#include "serialization/archive_writer.h"
#include "serialization/file_kind.h"
#include "serialization/pickler.h"
#include "serialization/stored_values.h"
#include "serialization/unpickler.h"

namespace wick {
namespace {

constexpr size_t kStorageAlignment = 64;
// PROTO 2, the magic number as a LONG1 of ten bytes, STOP.
constexpr std::string_view kLegacyMagic("\x80\x02\x8a\x0al\xfc\x9c\x46\xf9\x20j\xa8P\x19.", 15);
constexpr int64_t kLegacyProtocol = 1001;

// Null when there is no memory left to copy bytes that are not aligned.
Ref<Storage> storageOf(const Bytes& bytes, LoadBudget& budget) {
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data.data()) % kStorageAlignment == 0;
  if (aligned) return Storage::borrow(bytes.data.data(), bytes.size(), bytes.owner);
  if (!budget.take(bytes.size())) return {};
  Ref<Storage> storage = Storage::allocate(bytes.size());
  if (bytes.size() != 0) std::memcpy(storage->data(), bytes.data.data(), bytes.size());
  return storage;
}

// The devices in values of torch.save. Devices that are values stay what they are, as far as the engine knows them.
void setDevices(UnpicklerHooks& hooks, const DeviceMap& devices) {
  hooks.device = [&](const std::string& name) { return devices.find(name); };
  hooks.device_value = [&](const std::string& name) {
    const std::optional<Device> device = deviceNamed(name);
    return device ? device : devices.find(name);
  };
}

// torch.save before the archive: pickles of a magic number, a protocol, the machine, the value and
// the keys of its storages, then each storage's element count and bytes.
class LegacyFile {
 public:
  LegacyFile(Bytes file, std::string name, const ArchiveLimits& limits, const DeviceMap& devices)
      : file_(std::move(file)),
        name_(std::move(name)),
        limits_(limits),
        devices_(devices),
        budget_(std::make_shared<LoadBudget>(limits.memoryFor(file_.size()))) {}

  static bool matches(const Bytes& file) { return file.text().starts_with(kLegacyMagic); }

  IValue load() {
    at_ = kLegacyMagic.size();
    IValue protocol = next({});
    if (!protocol.isInt() || protocol.toInt() != kLegacyProtocol) {
      throwLoadError("{}: protocol {} is not supported", name_, protocol.repr());
    }
    IValue machine = next({});
    static const IValue little("little_endian");
    const IValue* order = machine.isDict() ? machine.toDict().find(little) : nullptr;
    if (order == nullptr || !order->isBool() || !order->toBool()) {
      throwLoadError("{}: the tensors are big-endian, which is not supported", name_);
    }
    // The bytes of tensors come after the value, whose length is known when it has been read. Some
    // tensors are computed from their bytes and some are moved, so the value is read once more when
    // these are there.
    const size_t value_at = at_;
    next(valueHooks(), std::make_shared<LoadBudget>(limits_.memoryFor(file_.size())));
    fillStorages(next({}));
    at_ = value_at;
    UnpicklerHooks hooks = valueHooks();
    setDevices(hooks, devices_);
    return next(std::move(hooks));
  }

 private:
  struct Reserved {
    Ref<Storage> storage;
    bool filled = false;
  };

  UnpicklerHooks valueHooks() {
    UnpicklerHooks hooks;
    hooks.storage = [this](const StorageRequest& request) { return reserve(request); };
    hooks.parse_type = parseSchemaType;
    return hooks;
  }

  IValue next(UnpicklerHooks hooks, std::shared_ptr<LoadBudget> budget = nullptr) {
    hooks.budget = budget ? std::move(budget) : budget_;
    const auto rest = file_.data.subspan(at_);
    Unpickler unpickler(rest.first(std::min<uint64_t>(rest.size(), limits_.max_pickle)), name_,
                        std::move(hooks));
    IValue value = unpickler.load();
    at_ += unpickler.position();
    return value;
  }

  // The bytes come after the pickle; all storages together cannot exceed the file.
  Ref<Storage> reserve(const StorageRequest& request) {
    auto it = storages_.find(request.key);
    if (it != storages_.end()) return it->second.storage;
    if (request.bytes > file_.size() - reserved_ || !budget_->take(request.bytes)) {
      throwLoadError("{}: storage '{}' claims {} bytes, more than the file has", name_, request.key,
                     request.bytes);
    }
    reserved_ += request.bytes;
    Ref<Storage> storage = Storage::allocate(request.bytes);
    storages_.emplace(request.key, Reserved{storage});
    return storage;
  }

  void fillStorages(const IValue& keys) {
    if (!keys.isList()) throwLoadError("{}: the list of storages is missing", name_);
    for (const IValue& key : keys.toList().elements) {
      auto it = key.isString() ? storages_.find(key.toString()) : storages_.end();
      if (it == storages_.end()) throwLoadError("{}: storage {} is unknown", name_, key.repr());
      Storage& storage = *it->second.storage;
      // The count is of elements whose size the pickle knew; the bytes are what was reserved.
      constexpr size_t kCount = sizeof(int64_t);
      if (file_.size() - at_ < kCount || file_.size() - at_ - kCount < storage.bytes()) {
        throwLoadError("{}: storage '{}' is truncated", name_, key.toString());
      }
      at_ += kCount;
      if (storage.bytes() != 0) {
        std::memcpy(storage.data(), file_.data.data() + at_, storage.bytes());
      }
      at_ += storage.bytes();
      it->second.filled = true;
    }
    for (const auto& [key, reserved] : storages_) {
      if (!reserved.filled) throwLoadError("{}: storage '{}' is missing", name_, key);
    }
  }

  Bytes file_;
  std::string name_;
  size_t at_ = 0;
  uint64_t reserved_ = 0;
  const ArchiveLimits limits_;
  const DeviceMap& devices_;
  std::shared_ptr<LoadBudget> budget_;
  std::map<std::string, Reserved> storages_;
};

// The archive, if it is one of torch.save; WrongFile when it holds something else.
std::shared_ptr<ArchiveReader> openSaved(const Bytes& file, const std::string& name,
                                         const ArchiveLimits& limits) {
  std::shared_ptr<ArchiveReader> archive;
  try {
    archive = std::make_shared<ArchiveReader>(file, name, limits);
  } catch (const LoadError&) {
    throwWrongZip(file, name, Wanted::Value, limits);
    throw;
  }
  const bool has_values = archive->has("data.pkl");
  if (!has_values || archive->has("constants.pkl") || archive->has("bytecode.pkl")) {
    throwWrongZip(file, name, Wanted::Value, limits);
  }
  return archive;
}

IValue loadArchive(const Bytes& file, const std::string& name, const ArchiveLimits& limits,
                   const DeviceMap& devices) {
  const auto archive = openSaved(file, name, limits);
  checkByteOrder(*archive);
  Bytes pickle = readPickle(*archive, "data.pkl");
  ArchiveStorages storages(archive, "data");
  UnpicklerHooks hooks;
  hooks.storage = [&](const StorageRequest& r) { return storages.get(r.key); };
  setDevices(hooks, devices);
  hooks.budget = archive->budget();
  hooks.parse_type = parseSchemaType;
  return Unpickler(pickle.data, fmt::format("{}: record 'data.pkl'", name), std::move(hooks))
      .load();
}

}  // namespace

std::string problemOfView(const Storage& storage, DType dtype, IntSpan sizes, IntSpan strides,
                          int64_t& offset) {
  if (sizes.size() != strides.size()) {
    return fmt::format("a tensor has {} sizes and {} strides", sizes.size(), strides.size());
  }
  const auto item = static_cast<int64_t>(itemSize(dtype));
  const int64_t capacity = static_cast<int64_t>(storage.bytes()) / item;
  // A tensor without elements may begin anywhere.
  if (std::ranges::find(sizes, 0) != sizes.end()) offset = std::min(offset, capacity);
  if (offset < 0 || offset > capacity) return "a tensor begins beyond its storage";
  // fromStorage checks the extent of tensors with elements. Views of others, and of dimensions
  // of size one, multiply and add the other numbers all the same.
  __int128 extent = offset;
  __int128 numel = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 0 || strides[i] < 0) return "a tensor has a negative size or stride";
    const int64_t size = std::max<int64_t>(sizes[i], 1);
    numel *= size;
    extent += static_cast<__int128>(size) * strides[i];
    if (std::max(numel, extent) > INT64_MAX / item) {
      return fmt::format("the extent of sizes {} with strides {} overflows", formatInts(sizes),
                         formatInts(strides));
    }
  }
  // Strides of zero show a few bytes as any number of elements, which no operator would come to the
  // end of.
  constexpr int64_t kMaxRepeated = int64_t{1} << 30;
  const int64_t count = checkedNumel(sizes);
  if (count > kMaxRepeated && count > capacity) {
    return fmt::format("a tensor of sizes {} repeats the elements of its storage too often",
                       formatInts(sizes));
  }
  return "";
}

Ref<Storage> ArchiveStorages::get(const std::string& key) {
  auto it = storages_.find(key);
  if (it == storages_.end()) {
    const std::string record = prefix_ + "/" + key;
    Ref<Storage> storage = storageOf(archive_->map(record), *archive_->budget());
    if (!storage) {
      throwLoadError("{}: record '{}': the values take more memory than a file of this size may",
                     archive_->name(), record);
    }
    it = storages_.emplace(key, std::move(storage)).first;
  }
  return it->second;
}

Bytes readPickle(ArchiveReader& archive, const std::string& record) {
  const uint64_t size = archive.sizeOf(record);
  if (size > archive.limits().max_pickle) {
    throwLoadError("{}: record '{}': a pickle of {} bytes is longer than the limit of {}",
                   archive.name(), record, size, archive.limits().max_pickle);
  }
  return archive.read(record);
}

void checkByteOrder(ArchiveReader& archive) {
  constexpr std::string_view kRecord = "byteorder";
  if (!archive.has(kRecord)) return;
  Bytes order = archive.read(kRecord);
  if (order.text() != "little") {
    throwLoadError("{}: record '{}': the tensors are {}-endian, which is not supported",
                   archive.name(), kRecord, order.text().substr(0, 16));
  }
}

IValue loadValue(const std::string& path, const ArchiveLimits& limits, const DeviceMap& devices) {
  return loadValue(mapFile(path), path, limits, devices);
}

IValue loadValue(Bytes file, const std::string& name, const ArchiveLimits& limits,
                 const DeviceMap& devices) {
  devices.check();
  IValue value;
  if (LegacyFile::matches(file)) {
    value = LegacyFile(std::move(file), name, limits, devices).load();
  } else if (ArchiveReader::looksLikeZip(file.data)) {
    value = loadArchive(file, name, limits, devices);
  } else {
    throwWrongFile(file, name, Wanted::Value, limits);
  }
  try {
    return TypeClaims().conform(std::move(value), types::Any());
  } catch (const RuntimeError& error) {
    throwLoadError("{}: {}", name, error.brief());
  }
}

namespace {

// The pickle comes first: a value that cannot be saved is found before anything is written.
struct PickledValue {
  PickledValue(const IValue& value, bool keep_requires_grad) {
    PicklerOptions options;
    options.keep_requires_grad = keep_requires_grad;
    Pickler pickler(std::move(options));
    pickler.push(value);
    pickle = pickler.finish();
    storages = pickler.storages();
  }
  std::string pickle;
  std::vector<Ref<Storage>> storages;

  void write(ArchiveWriter& writer) const {
    writer.write("data.pkl", pickle);
    writer.write("byteorder", "little");
    writeStorages("data", storages, writer);
    writer.write("version", "3\n");
    writer.finish();
  }
};

}  // namespace

// The bytes of a storage; of one on the device "meta" there are none.
static Ref<Storage> onCpu(const Ref<Storage>& storage) {
  if (storage->device().isCpu()) return storage;
  if (!deviceBackend(storage->device().type).holdsData()) return Storage::allocate(0);
  const auto bytes = static_cast<int64_t>(storage->bytes());
  return moveTo(Tensor::fromStorage(storage, DType::Byte, {bytes}, {1}, 0), Device()).storage();
}

void writeStorages(const std::string& folder, const std::vector<Ref<Storage>>& storages,
                   ArchiveWriter& writer) {
  for (size_t i = 0; i < storages.size(); ++i) {
    const Ref<Storage> here = onCpu(storages[i]);
    writer.write(fmt::format("{}/{}", folder, i),
                 std::span(static_cast<const std::byte*>(here->data()), here->bytes()));
  }
}

void saveValue(const IValue& value, const std::string& path, bool keep_requires_grad) {
  const PickledValue pickled(value, keep_requires_grad);
  ArchiveWriter writer = ArchiveWriter::toFile(path, "archive");
  pickled.write(writer);
}

std::string saveValueToString(const IValue& value, bool keep_requires_grad) {
  const PickledValue pickled(value, keep_requires_grad);
  std::string out;
  ArchiveWriter writer(
      [&](std::span<const std::byte> data) {
        out.append(reinterpret_cast<const char*>(data.data()), data.size());
      },
      "archive");
  pickled.write(writer);
  return out;
}

}  // namespace wick
