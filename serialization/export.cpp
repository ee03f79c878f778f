// What is printed names further classes and functions, and objects of any class may hide behind
// attributes of the type Any: printing and pickling alternate until nothing is new. Constants are
// values too.
//
// The source of a graph that passes made is compiled and printed once more, so that what is written
// is what saving the file again would write.
#include "serialization/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/error.h"
#include "core/native_class.h"
#include "runtime/call.h"
#include "serialization/archive_writer.h"
#include "serialization/format_version.h"
#include "serialization/pickler.h"
#include "serialization/python_printer.h"
#include "serialization/source_import.h"
#include "serialization/source_origins.h"
#include "serialization/stored_values.h"

namespace wick {
namespace {

std::string moduleOf(const std::string& qualified_name) {
  const size_t dot = qualified_name.rfind('.');
  WICK_CHECK(dot != std::string::npos, "save: '{}' is in no module", qualified_name);
  return qualified_name.substr(0, dot);
}

std::string recordOf(const std::string& module) {
  std::string record = "code/" + module + ".py";
  std::replace(record.begin(), record.end() - 3, '.', '/');
  return record;
}

}  // namespace

class ModuleArchive::Impl {
 public:
  Impl(const Module& module, const SaveOptions& options)
      : options_(options),
        printer_(newPrinter()),
        data_(picklerOptions()),
        constants_(picklerOptions()) {
    checkExtraFiles();
    data_.push(IValue(module.object()));
    data_pickle_ = data_.finish();
    roots_ = printer_->usedTypes().size();
    printWithConstants();
    if (printer_->isRewritten() && !holdsObjects(printer_->constants())) printUntilSettled();
    if (options_.for_pytorch && !printer_->ownOperators().empty()) {
      throwRuntimeError("save: PyTorch has no operator {}; only Wick could read the file",
                        fmt::join(printer_->ownOperators(), ", "));
    }
  }

  void write(ArchiveWriter& writer) const {
    writer.write("data.pkl", data_pickle_);
    writeStorages("data", data_.storages(), writer);
    for (size_t i = 0; i < code.size(); ++i) {
      const std::string record = recordOf(code[i].first);
      writer.write(record, code[i].second);
      if (!marks_[i].empty()) writer.write(record + ".debug_pkl", writeMarks(marks_[i]));
    }
    writer.write("constants.pkl", constants_pickle_);
    writeStorages("constants", constants_.storages(), writer);
    for (const auto& [name, text] : options_.extra_files) writer.write("extra/" + name, text);
    const int64_t version = printer_->formatVersion();
    writer.write(version < kHiddenVersionRecord ? "version" : ".data/version",
                 fmt::format("{}\n", version));
    writer.write("byteorder", "little");
    writer.write(".data/serialization_id", writer.contentId());
    writer.finish();
  }

  int64_t formatVersion() const { return printer_->formatVersion(); }

  std::vector<std::pair<std::string, std::string>> code;

 private:
  PicklerOptions picklerOptions() {
    PicklerOptions options;
    options.for_python = false;
    options.keep_requires_grad = true;
    options.get_state = [this](const Object& object) { return stateOf(object); };
    options.type_name = [this](const Type& type) { return printer_->typeName(type); };
    return options;
  }

  std::optional<IValue> stateOf(const Object& object) const {
    const ClassType& type = *object.type();
    if (const NativeClass* native = nativeClassOf(type)) return nativeState(object, *native);
    auto* get_state = dynamic_cast<GraphFunction*>(type.findMethod("__getstate__"));
    if (get_state == nullptr || type.findMethod("__setstate__") == nullptr) return std::nullopt;
    return callMethod(ObjectRef(const_cast<Object*>(&object)), *get_state, {}, {}, options_.run);
  }

  static IValue nativeState(const Object& object, const NativeClass& native) {
    WICK_CHECK(native.get_state, "save: objects of {} cannot be saved", native.name);
    const IValue self{ObjectRef(const_cast<Object*>(&object))};
    return native.get_state(heldBy("save", self));
  }

  void checkExtraFiles() const {
    std::unordered_set<std::string> names;
    for (const auto& [name, text] : options_.extra_files) {
      WICK_CHECK(!name.empty() && names.insert(name).second, "save: the extra file '{}' {}", name,
                 name.empty() ? "needs a name" : "is given twice");
    }
  }

  std::unique_ptr<PythonPrinter> newPrinter() const {
    return std::make_unique<PythonPrinter>(SourceOptions{.own_operators = !options_.for_pytorch});
  }

  void printWithConstants() {
    printAll();
    // The types of constants may need more code, which may have more constants.
    for (size_t before = SIZE_MAX; before != printer_->constants().size();) {
      before = printer_->constants().size();
      Pickler pickler(picklerOptions());
      pickler.push(makeTuple(printer_->constants()));
      constants_pickle_ = pickler.finish();
      constants_ = std::move(pickler);
      printAll();
    }
  }

  // Whether the values know classes, which are others when they are compiled again.
  static bool holdsObjects(const std::vector<IValue>& values) {
    const auto holds = [](const IValue& v) {
      if (v.isObject()) return true;
      if (v.isDict()) {
        for (const auto& [key, element] : v.toDict().items()) {
          if (holdsObjects({key, element})) return true;
        }
        return false;
      }
      return (v.isList() || v.isTuple()) &&
             holdsObjects({v.elements().begin(), v.elements().end()});
    };
    return std::ranges::any_of(values, holds);
  }

  // One more time is enough but where types of branches come together.
  void printUntilSettled() {
    constexpr int kMostTimes = 5;
    for (int i = 0; i < kMostTimes; ++i) {
      const auto before = code;
      printAgain();
      if (code == before) return;
    }
  }

  void printAgain() {
    const std::unique_ptr<PythonPrinter> first = std::exchange(printer_, newPrinter());
    const auto texts = std::exchange(code, {});
    const auto marks = std::exchange(marks_, {});
    const auto index = std::exchange(module_index_, {});
    types_done_ = functions_done_ = taken_ = marks_taken_ = 0;
    // What the first printer names lives until the end of this.
    const auto unit = std::exchange(unit_, std::make_shared<CompilationUnit>());
    const auto importer = std::exchange(importer_, nullptr);
    const auto sourceOf = [&](const std::string& module) -> std::shared_ptr<const Source> {
      const auto it = index.find(module);
      if (it == index.end()) return nullptr;
      auto source = std::make_shared<Source>(texts[it->second].second, recordOf(module));
      setOrigins(source, [own = marks[it->second]] { return own; });
      return source;
    };
    importer_ = SourceImporter::create(*unit_, sourceOf, first->formatVersion());
    importer_->setConstants(first->constants());
    for (size_t i = 0; i < roots_; ++i) {
      const TypePtr& type = first->usedTypes()[i];
      const std::string name = first->nameOf(*type);
      const TypePtr compiled = importer_->findType(name);
      printer_->typeName(compiled ? *compiled : *type);
    }
    importer_->compileAll();
    printWithConstants();
  }

  void printAll() {
    for (;;) {
      if (types_done_ < printer_->usedTypes().size()) {
        const TypePtr type = printer_->usedTypes()[types_done_++];
        // The engine's own classes, which every reader has.
        if (printer_->nameOf(*type).starts_with("__torch__.torch.classes.")) continue;
        printer_->printType(*type);
        take(moduleOf(printer_->nameOf(*type)));
      } else if (functions_done_ < printer_->usedFunctions().size()) {
        Function* function = printer_->usedFunctions()[functions_done_++];
        auto* graph_function = dynamic_cast<GraphFunction*>(function);
        WICK_CHECK(graph_function != nullptr, "save: the function {} has no source",
                   function->qualifiedName());
        printer_->printFunction(*graph_function);
        take(moduleOf(printer_->nameOf(*function)));
      } else {
        return;
      }
    }
  }

  // What was printed since the last time belongs to a module.
  void take(const std::string& module) {
    auto [it, fresh] = module_index_.emplace(module, code.size());
    if (fresh) {
      code.emplace_back(module, "");
      marks_.emplace_back();
    }
    std::string& text = code[it->second].second;
    std::vector<SourceMark>& marks = marks_[it->second];
    const std::vector<SourceMark>& all = printer_->marks();
    const auto add = [&](uint64_t offset, const SourceRange& range) {
      if (!marks.empty() && marks.back().offset == offset) marks.pop_back();
      marks.push_back({offset, range});
    };
    // The text begins within what the last mark is about.
    if (marks_taken_ > 0) add(text.size(), all[marks_taken_ - 1].range);
    for (; marks_taken_ < all.size(); ++marks_taken_) {
      add(all[marks_taken_].offset - taken_ + text.size(), all[marks_taken_].range);
    }
    text += printer_->text().substr(taken_);
    taken_ = printer_->text().size();
  }

  SaveOptions options_;
  std::unique_ptr<PythonPrinter> printer_;
  size_t roots_ = 0;  // how many types the pickled module names
  // What is printed the second time.
  std::shared_ptr<CompilationUnit> unit_;
  std::shared_ptr<SourceImporter> importer_;
  size_t types_done_ = 0;
  size_t functions_done_ = 0;
  size_t taken_ = 0;
  size_t marks_taken_ = 0;
  std::vector<std::vector<SourceMark>> marks_;  // of each element of `code`
  std::unordered_map<std::string, size_t> module_index_;
  Pickler data_;
  Pickler constants_;
  std::string data_pickle_;
  std::string constants_pickle_;
};

ModuleArchive::ModuleArchive(const Module& module, const SaveOptions& options)
    : impl_(std::make_unique<Impl>(module, options)) {}
ModuleArchive::~ModuleArchive() = default;

const std::vector<std::pair<std::string, std::string>>& ModuleArchive::code() const {
  return impl_->code;
}

int64_t ModuleArchive::formatVersion() const {
  return impl_->formatVersion();
}

void ModuleArchive::write(const std::string& path) const {
  ArchiveWriter writer = ArchiveWriter::toFile(path, "archive");
  impl_->write(writer);
}

void ModuleArchive::write(const std::function<void(std::span<const std::byte>)>& sink) const {
  ArchiveWriter writer(sink, "archive");
  impl_->write(writer);
}

void saveModule(const Module& module, const std::string& path, const SaveOptions& options) {
  ModuleArchive(module, options).write(path);
}

std::string saveModuleToString(const Module& module, const SaveOptions& options) {
  std::string out;
  ModuleArchive(module, options).write([&](std::span<const std::byte> data) {
    out.append(reinterpret_cast<const char*>(data.data()), data.size());
  });
  return out;
}

void Module::save(const std::string& path) const {
  saveModule(*this, path);
}

void Module::save(std::ostream& stream) const {
  ModuleArchive(*this).write([&](std::span<const std::byte> data) {
    stream.write(reinterpret_cast<const char*>(data.data()),
                 static_cast<std::streamsize>(data.size()));
    WICK_CHECK(stream.good(), "save: the stream cannot be written");
  });
  stream.flush();
  WICK_CHECK(stream.good(), "save: the stream cannot be written");
}

std::string Module::saveToString() const {
  return saveModuleToString(*this);
}

}  // namespace wick
