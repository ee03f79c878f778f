#include "serialization/file_kind.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/ivalue.h"
#include "serialization/stored_values.h"
#include "serialization/torch_save.h"

namespace wick {
namespace {

// Recognizing looks at no more bytes from the beginning of a file than these.
constexpr size_t kLooked = 4096;
// Names of a ZIP archive that a message lists.
constexpr size_t kListed = 3;
// Files of torch.save are counted when reading them costs no more than this.
constexpr uint64_t kMaxCountedPickle = uint64_t{1} << 20;
constexpr uint64_t kMaxCountedLegacy = uint64_t{256} << 20;

constexpr const char* kHowToSave =
    "in Python make the module, load the weights into it, and write torch.jit.script(module)"
    ".save(\"model.pt\")";
constexpr const char* kDownload = "download the file again, from its own address";

// ---- what files are ----

struct Magic {
  size_t offset;
  std::string_view bytes;
  FileKind kind;
};
using namespace std::string_view_literals;
constexpr Magic kMagics[] = {
    {0, "\x93NUMPY"sv, FileKind::Npy},
    // The protocol, and a long int of ten bytes: the magic number of torch.save's older form.
    {0, "\x80\x02\x8a\x0a"sv, FileKind::SavedValue},
    {0, "\x80\x02"sv, FileKind::Pickle},
    {0, "\x80\x03"sv, FileKind::Pickle},
    {0, "\x80\x04"sv, FileKind::Pickle},
    {0, "\x80\x05"sv, FileKind::Pickle},
    {0, "GGUF"sv, FileKind::Gguf},
    {0, "\x89HDF\r\n\x1a\n"sv, FileKind::Hdf5},
    {0, "\x1f\x8b"sv, FileKind::Gzip},
    {0,
     "\xfd"
     "7zXZ\0"sv,
     FileKind::Xz},
    {0, "BZh"sv, FileKind::Bzip2},
    {0, "\x28\xb5\x2f\xfd"sv, FileKind::Zstd},
    {0, "7z\xbc\xaf\x27\x1c"sv, FileKind::SevenZip},
    {0,
     "\x7f"
     "ELF"sv,
     FileKind::Library},
    {257, "ustar"sv, FileKind::Tar},
    // Identifiers of flatbuffers.
    {4, "PTMF"sv, FileKind::Mobile},
    {4, "ET12"sv, FileKind::ExecuTorch},
    {4, "TFL3"sv, FileKind::TfLite},
};

// Kinds whose remedy depends on who asks.
enum class Group {
  None,
  Program,
  Values,
  Tensor,
  Array,
  Arrays,
  Script,
  Library,
  Torch,
  Objects,
  Foreign
};

struct KindText {
  FileKind kind;
  const char* is;
  const char* remedy;  // the same for everybody; nullptr: that of the group
  Group group = Group::None;
};
constexpr KindText kTexts[] = {
    {FileKind::Empty, "is empty", "its download or copy did not finish: fetch it again"},
    {FileKind::Module, "is a program that torch.jit.save wrote", nullptr, Group::Program},
    {FileKind::SavedValue,
     "holds Python objects that torch.save wrote, without the program of any module", nullptr,
     Group::Values},
    {FileKind::SavedTensor, "holds a tensor, no program", nullptr, Group::Tensor},
    {FileKind::SavedObjects,
     "holds Python objects that torch.save wrote, without the program of any module", nullptr,
     Group::Objects},
    {FileKind::ExportedProgram, "is a program that torch.export wrote", nullptr, Group::Program},
    {FileKind::AotInductor,
     "is a package of AOTInductor, machine code for libtorch, which Wick does not run", nullptr,
     Group::Torch},
    {FileKind::Mobile,
     "is a module for PyTorch's mobile interpreter, without the program that it was made of",
     nullptr, Group::Torch},
    {FileKind::ExecuTorch, "is a program of ExecuTorch (.pte), which Wick does not run", nullptr,
     Group::Torch},
    {FileKind::Npy, "is a NumPy array, no program", nullptr, Group::Array},
    {FileKind::Npz, "is an archive of NumPy arrays, no program", nullptr, Group::Arrays},
    {FileKind::Safetensors, "is a safetensors file: tensors by name, no program", nullptr,
     Group::Arrays},
    {FileKind::Gguf, "is a GGUF file: weights for llama.cpp, no program", nullptr, Group::Foreign},
    {FileKind::Onnx, "is an ONNX model, which Wick does not run", nullptr, Group::Foreign},
    {FileKind::SavedModel, "is a SavedModel of TensorFlow, which Wick does not run", nullptr,
     Group::Foreign},
    {FileKind::TfLite, "is a model of TensorFlow Lite, which Wick does not run", nullptr,
     Group::Foreign},
    {FileKind::Keras, "is a model of Keras, which Wick does not run", nullptr, Group::Foreign},
    {FileKind::Hdf5, "is an HDF5 file, as Keras writes models and weights", nullptr,
     Group::Foreign},
    {FileKind::Pickle, "is a Python pickle, which may run anything and is never loaded", nullptr,
     Group::Foreign},
    {FileKind::Text, "is text", nullptr, Group::Script},
    {FileKind::GitLfs, "is a pointer of Git LFS, which stands for the file until it is fetched",
     "\"git lfs pull\" in its repository fetches the file"},
    {FileKind::WebPage, "is a web page", kDownload},
    {FileKind::Xml, "is XML text, for example the answer of a server", kDownload},
    {FileKind::Json, "is JSON text, for example the answer of a server or the index of a model",
     "give the file that holds the model itself"},
    {FileKind::Gzip, "is compressed by gzip", "unpack it first: gunzip"},
    {FileKind::Xz, "is compressed by xz", "unpack it first: unxz"},
    {FileKind::Bzip2, "is compressed by bzip2", "unpack it first: bunzip2"},
    {FileKind::Zstd, "is compressed by zstd", "unpack it first: unzstd"},
    {FileKind::Tar, "is a tar archive", "unpack it first: tar -xf"},
    {FileKind::SevenZip, "is a 7-Zip archive", "unpack it first: 7z x"},
    {FileKind::OtherZip, "is a ZIP archive of other files", "unpack it first: unzip"},
    {FileKind::Library, "is a library or program of the processor (ELF)", nullptr, Group::Library},
    {FileKind::Unknown, "is of no kind that is known here", nullptr},
};

const KindText& textOf(FileKind kind) {
  const auto* found = std::ranges::find(kTexts, kind, &KindText::kind);
  WICK_ASSERT(found != std::end(kTexts), "no text for file kind {}", static_cast<int>(kind));
  return *found;
}

FileContents plain(FileKind kind) {
  return {kind, textOf(kind).is};
}

// ---- what to do about them ----

// The remedies of a group for C++, C, Python and the command line; nullptr: that for C++.
struct Remedy {
  Group group;
  bool module;  // for those who wanted a module; or anything else
  const char* texts[4];
};
constexpr const char* kModulesAlone = "the C interface reads modules alone";
constexpr const char* kConvert = "\"torchscript-cli convert {} OUT.pt\" writes its tensors";
constexpr Remedy kRemedies[] = {
    {Group::Program,
     false,
     {"wick::load loads it, and stateDict() has its tensors", "wick_module_load loads it",
      "wick.jit.load loads it, and state_dict() has its tensors", kConvert}},
    {Group::Values,
     true,
     {"wick::loadValue reads it; {how}", "{how}",
      "wick.load reads it, and a module's load_state_dict takes a state dict; {how}", "{how}"}},
    {Group::Tensor,
     true,
     {"wick::loadValue reads it", kModulesAlone, "wick.load reads it",
      "it may be an input: --input @{}"}},
    {Group::Array,
     true,
     {"wick::loadTensors reads it", kModulesAlone, "wick.files.load_tensors reads it",
      "it may be an input: --input @{}"}},
    {Group::Array,
     false,
     {"wick::loadTensors reads it", kModulesAlone, "wick.files.load_tensors reads it", kConvert}},
    {Group::Arrays,
     true,
     {"wick::loadTensors reads it; {how}", "{how}",
      "wick.files.load_tensors reads it, and a module's load_state_dict takes the tensors; {how}",
      "its tensors may be weights or inputs of one: {how}"}},
    {Group::Arrays,
     false,
     {"wick::loadTensors reads it", kModulesAlone, "wick.files.load_tensors reads it", kConvert}},
    {Group::Script,
     true,
     {"if it is a script, wick::compile compiles its text",
      "if it is a script, wick_compile compiles its text",
      "if it is a script, wick.jit.CompilationUnit compiles its text",
      "the name of a script ends in .py"}},
    {Group::Library,
     true,
     {"the header beside it tells how to call a library of torchscript-cli build", nullptr,
      "wick.aot.load loads a library of torchscript-cli build",
      "give the model that it was made of"}},
    {Group::Torch,
     true,
     {"in Python write torch.jit.script(module).save(\"model.pt\") for the module that it was made "
      "of"}},
    {Group::Objects, true, {kHowToSave}},
    {Group::Objects,
     false,
     {"in Python load it and save its tensors alone: torch.save(module.state_dict(), "
      "\"weights.pt\")"}},
    {Group::Foreign, true, {kHowToSave}},
};

// The remedy of last resort.
const char* generalRemedy(Wanted wanted) {
  switch (wanted) {
    case Wanted::Module:
      return "a program is a file that torch.jit.save wrote";
    case Wanted::Value:
      return "values are read from files of torch.save";
    case Wanted::Tensors:
      break;
  }
  return "tensors are read from files of torch.save, safetensors, .npz and .npy";
}

void replaceIn(std::string& text, std::string_view mark, const std::string& by) {
  if (const size_t at = text.find(mark); at != std::string::npos) text.replace(at, mark.size(), by);
}

std::string remedyFor(FileKind kind, Wanted wanted, Interface interface, const std::string& name) {
  const KindText& entry = textOf(kind);
  const bool module = wanted == Wanted::Module;
  const char* found = entry.remedy;
  for (const Remedy& row : kRemedies) {
    if (row.group != entry.group || row.module != module) continue;
    const char* own = row.texts[static_cast<size_t>(interface)];
    found = own ? own : row.texts[0];
  }
  std::string text = found ? found : generalRemedy(wanted);
  replaceIn(text, "{how}", kHowToSave);
  replaceIn(text, "{}", name);
  return text;
}

// ---- recognizing ----

std::string_view withoutSpace(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // the byte order mark
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  return text;
}

bool beginsWithoutCase(std::string_view text, std::string_view begin) {
  return text.size() >= begin.size() &&
         std::ranges::equal(text.substr(0, begin.size()), begin, [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         });
}

bool isText(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= 0x20 ? byte != 0x7f : std::isspace(byte) != 0;
  });
}

FileKind kindOfText(std::string_view begin) {
  const std::string_view text = withoutSpace(begin);
  if (text.starts_with("version https://git-lfs.github.com/")) return FileKind::GitLfs;
  for (const char* tag : {"<!doctype html", "<html", "<head", "<body"}) {
    if (beginsWithoutCase(text, tag)) return FileKind::WebPage;
  }
  if (text.starts_with("<?xml")) {
    return text.find("<html") == std::string_view::npos ? FileKind::Xml : FileKind::WebPage;
  }
  // A list may begin a script as well as JSON, an object of JSON has a text or nothing in it.
  if (text.starts_with('{')) {
    const std::string_view inner = withoutSpace(text.substr(1));
    if (inner.starts_with('"') || inner.starts_with('}')) return FileKind::Json;
  }
  return FileKind::Text;
}

// A header of JSON follows its length; what other formats begin with would be an enormous one.
bool looksLikeSafetensors(const Bytes& file) {
  uint64_t length = 0;
  if (file.size() <= sizeof(length)) return false;
  std::memcpy(&length, file.data.data(), sizeof(length));
  return length <= file.size() - sizeof(length) && file.text()[sizeof(length)] == '{';
}

// Steps through the fields of a message of Protocol Buffers.
class ProtoFields {
 public:
  explicit ProtoFields(std::string_view bytes) : rest_(bytes) {}
  uint64_t number = 0;
  uint64_t wire = 0;
  uint64_t value = 0;         // of a varint; the length of bytes
  std::string_view contents;  // the first of the bytes, as far as they are there

  // Whether there is another field, of the kinds that models have at their top: numbers and bytes.
  bool next() {
    uint64_t key = 0;
    if (!varint(key)) return false;
    number = key >> 3;
    wire = key & 7;
    if ((wire != 0 && wire != 2) || !varint(value)) return false;
    if (wire == 2) {
      const size_t n = std::min<uint64_t>(value, rest_.size());
      contents = rest_.substr(0, n);
      rest_.remove_prefix(n);
    }
    return true;
  }

 private:
  bool varint(uint64_t& out) {
    out = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      out |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return true;
    }
    return false;
  }
  std::string_view rest_;
};

// ModelProto of ONNX begins with a version, and has a graph (7) or the operators' versions (8)
// behind its own names (2, 3, 4, 6) and version (5). SavedModel of TensorFlow has version 1 and
// graphs (2) that begin with a message.
FileKind kindOfProto(std::string_view begin) {
  constexpr uint64_t kNewestIr = 64;
  ProtoFields fields(begin);
  if (!fields.next() || fields.number != 1 || fields.wire != 0) return FileKind::Unknown;
  const uint64_t version = fields.value;
  if (version == 0 || version > kNewestIr) return FileKind::Unknown;
  bool first = true;
  while (fields.next()) {
    if (first && version == 1 && fields.number == 2 && fields.contents.starts_with('\x0a')) {
      return FileKind::SavedModel;
    }
    first = false;
    const bool is_number = fields.number == 5;
    if (fields.number < 2 || fields.number > 8 || (fields.wire == 0) != is_number) break;
    if (fields.number >= 7) return FileKind::Onnx;
  }
  return FileKind::Unknown;
}

// The name of a ZIP file's first entry.
std::string_view firstEntry(std::string_view file) {
  constexpr size_t kHeader = 30;
  if (file.size() < kHeader) return "";
  const size_t length = static_cast<unsigned char>(file[26]) |
                        static_cast<size_t>(static_cast<unsigned char>(file[27])) << 8;
  return file.substr(kHeader, length);
}

// Whether the path is that record, in the archive's folder or in none.
bool isRecord(std::string_view path, std::string_view record) {
  const size_t slash = path.find('/');
  return path == record || (slash != std::string_view::npos && path.substr(slash + 1) == record);
}

// Names of a file, which may be long, and hold anything.
std::string shortened(const std::string& name) {
  constexpr size_t kLongest = 60;
  std::string shown = name.size() <= kLongest ? name : name.substr(0, kLongest) + "…";
  std::ranges::replace(shown, '\0', '?');
  return shown;
}

FileContents contentsOfZip(const Bytes& file, const ArchiveLimits& limits) {
  if (firstEntry(file.text()).ends_with(".npy")) return plain(FileKind::Npz);
  std::vector<std::string> records;
  try {
    records = ArchiveReader(file, "", limits, ArchiveReader::Layout::Flat).records();
  } catch (const LoadError&) {
    return plain(FileKind::Unknown);  // its reader tells why
  }
  const auto has = [&](std::string_view record) {
    return std::ranges::any_of(records, [&](const auto& path) { return isRecord(path, record); });
  };
  const auto hasPart = [&](std::string_view part) {
    return std::ranges::any_of(
        records, [&](const auto& path) { return path.find(part) != std::string::npos; });
  };
  if (has("constants.pkl") && has("data.pkl")) return plain(FileKind::Module);
  if (has("bytecode.pkl")) return plain(FileKind::Mobile);
  if (hasPart("data/aotinductor/") && !hasPart("models/")) return plain(FileKind::AotInductor);
  if (has("archive_format") || has("serialized_exported_program.json")) {
    return plain(FileKind::ExportedProgram);
  }
  // A program that lacks a record: its reader names the one.
  if (has("constants.pkl") || hasPart("code/__torch__")) return plain(FileKind::Unknown);
  if (has("data.pkl")) return plain(FileKind::SavedValue);
  if (has("model.weights.h5") && has("config.json")) return plain(FileKind::Keras);
  FileContents contents = plain(FileKind::OtherZip);
  contents.is += " (";
  for (size_t i = 0; i < std::min(kListed, records.size()); ++i) {
    contents.is += (i > 0 ? ", " : "") + shortened(records[i]);
  }
  contents.is += records.size() > kListed ? ", …)" : ")";
  return contents;
}

// Looks into a file of torch.save, as far as values without classes go, and describes the tensors
// in it, unless that costs much.
void describeSaved(const Bytes& file, const std::string& name, ArchiveLimits limits,
                   FileContents& contents) {
  if (!ArchiveReader::looksLikeZip(file.data) && file.size() > kMaxCountedLegacy) return;
  limits.max_pickle = std::min(limits.max_pickle, kMaxCountedPickle);
  try {
    const IValue value = loadValue(file, name, limits, Device());
    if (value.isTensor()) {
      contents = plain(FileKind::SavedTensor);
    }
    if (!value.isDict()) return;
    size_t tensors = 0;
    std::string first;
    for (const auto& [key, element] : value.items()) {
      if (!element.isTensor() || !key.isString()) continue;
      if (tensors++ == 0) first = shortened(key.toString());
    }
    if (tensors == 0) return;
    contents.is = fmt::format("holds a state dict, {} {} ({}{}) without the program that uses {}",
                              tensors, tensors == 1 ? "tensor" : "tensors", first,
                              tensors == 1 ? "" : ", …", tensors == 1 ? "it" : "them");
  } catch (const LoadError&) {  // objects of classes, or a pickle that is too long to look into
    contents = plain(FileKind::SavedObjects);
  }
}

}  // namespace

FileContents contentsOf(const Bytes& file, const ArchiveLimits& limits) {
  if (file.size() == 0) return plain(FileKind::Empty);
  if (ArchiveReader::looksLikeZip(file.data)) return contentsOfZip(file, limits);
  if (looksLikeSafetensors(file)) return plain(FileKind::Safetensors);
  const std::string_view begin = file.text().substr(0, kLooked);
  if (isText(begin)) return plain(kindOfText(begin));
  for (const Magic& magic : kMagics) {
    if (begin.size() > magic.offset && begin.substr(magic.offset).starts_with(magic.bytes)) {
      return plain(magic.kind);
    }
  }
  if (const FileKind kind = kindOfProto(begin); kind != FileKind::Unknown) return plain(kind);
  FileContents contents = plain(FileKind::Unknown);
  contents.is += " (it begins with the bytes";
  for (const char c : begin.substr(0, 4)) {
    contents.is += fmt::format(" {:02x}", static_cast<unsigned char>(c));
  }
  contents.is += ")";
  return contents;
}

WrongFile::WrongFile(const std::string& name, FileContents contents, Wanted wanted)
    : LoadError(fmt::format("{} {}; {}", name, contents.is,
                            remedyFor(contents.kind, wanted, Interface::Cpp, name))),
      name_(name),
      contents_(std::move(contents)),
      wanted_(wanted) {}

WrongFile::~WrongFile() = default;

std::string WrongFile::messageFor(Interface interface) const {
  return fmt::format("{} {}; {}", name_, contents_.is,
                     remedyFor(contents_.kind, wanted_, interface, name_));
}

std::string messageFor(const std::exception& error, Interface interface) {
  const auto* wrong = dynamic_cast<const WrongFile*>(&error);
  return wrong ? wrong->messageFor(interface) : error.what();
}

void throwWrongFile(const Bytes& file, const std::string& name, Wanted wanted,
                    const ArchiveLimits& limits) {
  FileContents contents = contentsOf(file, limits);
  if (contents.kind == FileKind::SavedValue && wanted == Wanted::Module) {
    describeSaved(file, name, limits, contents);
  }
  throw WrongFile(name, std::move(contents), wanted);
}

void throwSavedObjects(const std::string& name, const std::string& global, Wanted wanted) {
  FileContents contents = plain(FileKind::SavedObjects);
  replaceIn(contents.is, "torch.save wrote",
            fmt::format("torch.save wrote ({})", shortened(global)));
  throw WrongFile(name, std::move(contents), wanted);
}

void throwWrongZip(const Bytes& file, const std::string& name, Wanted wanted,
                   const ArchiveLimits& limits) {
  const FileKind kind = contentsOf(file, limits).kind;
  const FileKind right = wanted == Wanted::Module ? FileKind::Module : FileKind::SavedValue;
  if (kind != FileKind::Unknown && kind != right) throwWrongFile(file, name, wanted, limits);
}

}  // namespace wick
