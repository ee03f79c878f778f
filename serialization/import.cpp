#include "serialization/import.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/conform.h"
#include "core/error.h"
#include "core/native_class.h"
#include "runtime/call.h"
#include "serialization/exported/import.h"
#include "serialization/exported/package.h"
#include "serialization/file_kind.h"
#include "serialization/format_version.h"
#include "serialization/source_import.h"
#include "serialization/source_origins.h"
#include "serialization/stored_values.h"
#include "serialization/unpickler.h"

namespace wick {
namespace {

constexpr const char* kDataPickle = "data.pkl";
constexpr const char* kConstantsPickle = "constants.pkl";
constexpr std::string_view kExtraFolder = "extra/";

[[noreturn]] void failRecord(const ArchiveReader& archive, std::string_view record,
                             const std::string& what) {
  throwLoadError("{}: record '{}': {}", archive.name(), record, what);
}

void takeMemory(const ArchiveReader& archive, const std::string& record, uint64_t bytes) {
  if (archive.budget()->take(bytes)) return;
  failRecord(archive, record, "the archive takes more memory than a file of this size may");
}

// The source text of an archive. Functions that did not compile keep it: who asks for one of them
// later compiles it again, and may come upon a module that nothing has named before.
class ArchiveSources {
 public:
  explicit ArchiveSources(std::shared_ptr<ArchiveReader> archive) : archive_(std::move(archive)) {}

  // Null when there is no such module.
  std::shared_ptr<const Source> get(const std::string& module) {
    std::string record = "code/" + module;
    std::replace(record.begin(), record.end(), '.', '/');
    record += ".py";
    if (!archive_->has(record)) return nullptr;
    const uint64_t size = archive_->sizeOf(record);
    if (size > archive_->limits().max_code - code_) {
      failRecord(*archive_, record,
                 fmt::format("the archive has more than {} bytes of source text",
                             archive_->limits().max_code));
    }
    code_ += size;
    takeMemory(*archive_, record, size);
    auto source = std::make_shared<Source>(std::string(archive_->read(record).text()),
                                           archive_->name() + "/" + record);
    // Read when somebody asks: who saves the module again.
    if (const std::string marks = record + ".debug_pkl"; archive_->has(marks)) {
      setOrigins(source, [archive = archive_, marks] {
        return readMarks(readPickle(*archive, marks),
                         fmt::format("{}: record '{}'", archive->name(), marks), archive->limits());
      });
    }
    return source;
  }

 private:
  const std::shared_ptr<ArchiveReader> archive_;
  uint64_t code_ = 0;  // bytes of source text so far
};

class ArchiveImporter {
 public:
  ArchiveImporter(std::shared_ptr<ArchiveReader> archive, const LoadOptions& options)
      : archive_(std::move(archive)),
        options_(options),
        unit_(std::make_shared<CompilationUnit>()) {}

  Module load() {
    options_.devices.check();
    const int64_t version = readVersion();
    if (options_.format_version != nullptr) *options_.format_version = version;
    checkByteOrder(*archive_);
    importer_ = SourceImporter::create(
        *unit_,
        [sources = std::make_shared<ArchiveSources>(archive_)](const std::string& module) {
          return sources->get(module);
        },
        version);
    importer_->setMaxClasses(archive_->limits().max_classes);
    importer_->setDevices(options_.devices);
    importer_->setConstants(readConstants());
    IValue root = unpickle(kDataPickle, "data", objectHooks());
    if (!root.isObject() || !root.toObject().type()->isModule()) {
      throwLoadError("{}: record '{}': expected a module, got {}", archive_->name(), kDataPickle,
                     root.tagName());
    }
    importer_->compileAll(options_.compile_errors);
    if (options_.extra_files != nullptr) readExtraFiles();
    return Module(ObjectRef(&root.toObject()));
  }

 private:
  [[noreturn]] void failRecord(std::string_view record, const std::string& what) const {
    wick::failRecord(*archive_, record, what);
  }

  int64_t readVersion() {
    const char* record = archive_->has(".data/version") ? ".data/version" : "version";
    const Bytes bytes = archive_->read(record);
    const std::string_view text = bytes.text();
    int64_t version = 0;
    auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), version);
    if (error != std::errc()) failRecord(record, "no number");
    if (version < kOldestVersion || version > kNewestVersion) {
      failRecord(record, fmt::format("version {} is not among {} to {}, which are supported",
                                     version, kOldestVersion, kNewestVersion));
    }
    return version;
  }

  IValue unpickle(const char* record, const char* folder, UnpicklerHooks hooks) {
    ArchiveStorages storages(archive_, folder);
    hooks.storage = [&](const StorageRequest& r) { return storages.get(r.key); };
    hooks.budget = archive_->budget();
    const Bytes pickle = readPickle(*archive_, record);
    return Unpickler(pickle.data, fmt::format("{}: record '{}'", archive_->name(), record),
                     std::move(hooks))
        .load();
  }

  std::vector<IValue> readConstants() {
    UnpicklerHooks hooks = objectHooks();
    hooks.numbers_stay = true;
    IValue constants = unpickle(kConstantsPickle, "constants", std::move(hooks));
    if (!constants.isTuple()) failRecord(kConstantsPickle, "expected a tuple");
    try {
      return claims_.conform(std::move(constants), types::Any()).elements();
    } catch (const RuntimeError& error) {
      failRecord(kConstantsPickle, error.brief());
    }
  }

  UnpicklerHooks objectHooks() {
    UnpicklerHooks hooks;
    hooks.device = [this](const std::string& name) { return options_.devices.find(name); };
    hooks.device_value = hooks.device;
    hooks.resolve_type = [this](const std::string& name) { return importer_->findType(name); };
    hooks.parse_type = [this](const std::string& text) { return importer_->parseType(text); };
    hooks.new_object = [this](const ClassTypePtr& type) { return makeRef<Object>(type, unit_); };
    hooks.set_state = [this](Object& object, IValue state) { setState(object, std::move(state)); };
    return hooks;
  }

  void setState(Object& object, IValue state) {
    const ClassType& type = *object.type();
    if (const NativeClass* native = nativeClassOf(type)) {
      setNativeState(object, *native, state);
    } else if (Function* set_state = type.findMethod("__setstate__")) {
      callSetState(object, static_cast<GraphFunction&>(*set_state), std::move(state));
    } else {
      if (!state.isDict()) {
        failRecord(kDataPickle, fmt::format("the state of {} is {}, expected a dict", type.name(),
                                            state.tagName()));
      }
      for (size_t i = 0; i < type.attributes().size(); ++i) {
        const IValue* value = state.toDict().find(IValue(type.attributes()[i].name));
        object.setSlot(i, value != nullptr ? *value : IValue());
      }
    }
    for (size_t i = 0; i < type.attributes().size(); ++i) checkAttribute(object, i);
  }

  // The containers of the state stay as the pickle made them: only the class reads them.
  void setNativeState(Object& object, const NativeClass& native, const IValue& state) {
    if (!native.set_state) {
      failRecord(kDataPickle, fmt::format("objects of {} cannot be loaded", native.name));
    }
    try {
      object.setSlot(0, IValue::capsule(native.set_state(state)));
    } catch (const RuntimeError& error) {
      failRecord(kDataPickle, error.brief());
    }
  }

  // Typed code relies on the declared types, so nothing else may stand in a slot.
  void checkAttribute(Object& object, size_t slot) {
    const ClassType::Attribute& attribute = object.type()->attributes()[slot];
    try {
      object.setSlot(slot, claims_.conform(object.slot(slot), attribute.type));
    } catch (const RuntimeError& error) {
      failRecord(kDataPickle, fmt::format("attribute '{}' of {}: {}", attribute.name,
                                          object.type()->name(), error.brief()));
    }
  }

  void callSetState(Object& object, GraphFunction& function, IValue state) {
    const std::vector<Argument>& arguments = function.schema().arguments();
    if (arguments.size() != 2) {
      failRecord(kDataPickle, fmt::format("{} takes {} arguments, expected self and a state",
                                          function.qualifiedName(), arguments.size()));
    }
    try {
      state = claims_.conform(std::move(state), arguments[1].type);
    } catch (const RuntimeError& error) {
      failRecord(kDataPickle,
                 fmt::format("the state of {}: {}", object.type()->name(), error.brief()));
    }
    RunOptions run = options_.run;
    run.owner = unit_;
    callFunction(function, {IValue(ObjectRef(&object)), std::move(state)}, {}, run);
  }

  void readExtraFiles() {
    for (const std::string& record : archive_->records()) {
      if (!record.starts_with(kExtraFolder)) continue;
      takeMemory(*archive_, record, archive_->sizeOf(record));
      (*options_.extra_files)[record.substr(kExtraFolder.size())] =
          std::string(archive_->read(record).text());
    }
  }

  std::shared_ptr<ArchiveReader> archive_;
  const LoadOptions& options_;
  std::shared_ptr<CompilationUnit> unit_;
  std::shared_ptr<SourceImporter> importer_;
  TypeClaims claims_;
};

// The archive, if it is one of torch.jit.save or torch.export; WrongFile when it holds something else.
std::shared_ptr<ArchiveReader> openModule(const Bytes& file, const std::string& name,
                                          const ArchiveLimits& limits) {
  if (!ArchiveReader::looksLikeZip(file.data)) {
    throwWrongFile(file, name, Wanted::Module, limits);
  }
  std::shared_ptr<ArchiveReader> archive;
  try {
    archive = std::make_shared<ArchiveReader>(file, name, limits);
  } catch (const LoadError&) {
    if (contentsOf(file, limits).kind == FileKind::ExportedProgram) {
      return std::make_shared<ArchiveReader>(file, name, limits, ArchiveReader::Layout::Flat);
    }
    throwWrongZip(file, name, Wanted::Module, limits);
    throw;
  }
  if (exported::isExportedProgram(*archive)) return archive;
  for (const char* record : {kDataPickle, kConstantsPickle}) {
    if (archive->has(record)) continue;
    throwWrongZip(file, name, Wanted::Module, limits);
    throwLoadError("{}: not a TorchScript archive: there is no record '{}'", name, record);
  }
  return archive;
}

constexpr const char* kMobileAdvice =
    "optimize_for_mobile has put operators for Vulkan or Metal into the module, which Wick lacks; "
    "save it as it was before: torch.jit.script(module).save(\"model.pt\")";

bool namesMobileOperators(std::string_view message) {
  for (const std::string_view name :
       {"vulkan_prepack::", "metal_prepack::", "classes.vulkan", "classes.metal"}) {
    if (message.find(name) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Module loadModule(const std::string& path, const LoadOptions& options) {
  return loadModule(mapFile(path), path, options);
}

Module loadModule(Bytes file, const std::string& name, const LoadOptions& options) {
  const std::shared_ptr<ArchiveReader> archive = openModule(file, name, options.limits);
  if (exported::isExportedProgram(*archive)) return exported::importProgram(archive, options);
  ArchiveImporter importer(archive, options);
  try {
    return importer.load();
  } catch (const LoadError& error) {
    if (!namesMobileOperators(error.message())) throw;
    throw LoadError(error.message() + "\n" + kMobileAdvice);
  } catch (CompileError& error) {
    if (namesMobileOperators(error.message())) error.append(CompileError({}, kMobileAdvice));
    throw;
  }
}

std::shared_ptr<CompilationUnit> compilationUnitOf(const Module& module) {
  return std::static_pointer_cast<CompilationUnit>(module.object()->owner());
}

}  // namespace wick
