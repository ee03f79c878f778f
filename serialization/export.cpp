// What is printed names further classes and functions, and objects of any class may hide behind
// attributes of the type Any: printing and pickling take turns until nothing is new. Constants are
// values too.
#include "serialization/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "serialization/archive_writer.h"
#include "serialization/format_version.h"
#include "serialization/pickler.h"
#include "serialization/python_printer.h"
#include "serialization/source_origins.h"
#include "serialization/torch_save.h"

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
      : options_(options), data_(picklerOptions()), constants_(picklerOptions()) {
    checkExtraFiles();
    data_.push(IValue(module.object()));
    data_pickle_ = data_.finish();
    printAll();
    // The types of constants may need more code, which may have more constants.
    for (size_t before = SIZE_MAX; before != printer_.constants().size();) {
      before = printer_.constants().size();
      Pickler pickler(picklerOptions());
      pickler.push(makeTuple(printer_.constants()));
      constants_pickle_ = pickler.finish();
      constants_ = std::move(pickler);
      printAll();
    }
    if (options_.for_pytorch && !printer_.ownOperators().empty()) {
      throwRuntimeError("save: PyTorch has no operator {}; only Wick could read the file",
                        fmt::join(printer_.ownOperators(), ", "));
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
    const int64_t version = printer_.formatVersion();
    writer.write(version < kHiddenVersionRecord ? "version" : ".data/version",
                 fmt::format("{}\n", version));
    writer.write("byteorder", "little");
    writer.write(".data/serialization_id", writer.contentId());
    writer.finish();
  }

  int64_t formatVersion() const { return printer_.formatVersion(); }

  std::vector<std::pair<std::string, std::string>> code;

 private:
  PicklerOptions picklerOptions() {
    PicklerOptions options;
    options.for_python = false;
    options.keep_requires_grad = true;
    options.get_state = [this](const Object& object) { return stateOf(object); };
    options.type_name = [this](const Type& type) { return printer_.typeName(type); };
    return options;
  }

  std::optional<IValue> stateOf(const Object& object) const {
    const ClassType& type = *object.type();
    auto* get_state = dynamic_cast<GraphFunction*>(type.findMethod("__getstate__"));
    if (get_state == nullptr || type.findMethod("__setstate__") == nullptr) return std::nullopt;
    return callMethod(ObjectRef(const_cast<Object*>(&object)), *get_state, {}, {}, options_.run);
  }

  void checkExtraFiles() const {
    std::unordered_set<std::string> names;
    for (const auto& [name, text] : options_.extra_files) {
      WICK_CHECK(!name.empty() && names.insert(name).second, "save: the extra file '{}' {}", name,
                 name.empty() ? "needs a name" : "is given twice");
    }
  }

  void printAll() {
    for (;;) {
      if (types_done_ < printer_.usedTypes().size()) {
        const TypePtr type = printer_.usedTypes()[types_done_++];
        // The engine's own classes, which every reader has.
        if (printer_.nameOf(*type).starts_with("__torch__.torch.classes.")) continue;
        printer_.printType(*type);
        take(moduleOf(printer_.nameOf(*type)));
      } else if (functions_done_ < printer_.usedFunctions().size()) {
        Function* function = printer_.usedFunctions()[functions_done_++];
        auto* graph_function = dynamic_cast<GraphFunction*>(function);
        WICK_CHECK(graph_function != nullptr, "save: the function {} has no source",
                   function->qualifiedName());
        printer_.printFunction(*graph_function);
        take(moduleOf(printer_.nameOf(*function)));
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
    const std::vector<SourceMark>& all = printer_.marks();
    const auto add = [&](uint64_t offset, const SourceRange& range) {
      if (!marks.empty() && marks.back().offset == offset) marks.pop_back();
      marks.push_back({offset, range});
    };
    // The text begins within what the last mark is about.
    if (marks_taken_ > 0) add(text.size(), all[marks_taken_ - 1].range);
    for (; marks_taken_ < all.size(); ++marks_taken_) {
      add(all[marks_taken_].offset - taken_ + text.size(), all[marks_taken_].range);
    }
    text += printer_.text().substr(taken_);
    taken_ = printer_.text().size();
  }

  SaveOptions options_;
  PythonPrinter printer_;
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
