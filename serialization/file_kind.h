// Tells files of many programs apart by their contents, and says what to do about those that hold
// something else than a caller wanted. Names and their ends never decide.
#pragma once

#include <string>

#include "core/error_types.h"
#include "serialization/archive_limits.h"
#include "serialization/archive_reader.h"

namespace wick {

enum class FileKind {
  Unknown,
  Empty,
  // PyTorch's programs and values.
  Module,      // torch.jit.save
  SavedValue,  // torch.save, either form
  SavedTensor,
  SavedObjects,  // of classes, which are not loaded
  ExportedProgram,
  AotInductor,
  Mobile,
  ExecuTorch,
  // Files of tensors.
  Npy,
  Npz,
  Safetensors,
  Gguf,
  // Other frameworks.
  Onnx,
  SavedModel,
  TfLite,
  Keras,
  Hdf5,
  // Python's, and text.
  Pickle,
  Text,
  // Found in place of a file that was asked for.
  GitLfs,
  WebPage,
  Xml,
  Json,
  Gzip,
  Xz,
  Bzip2,
  Zstd,
  Tar,
  SevenZip,
  OtherZip,
  Library,
};

// The part of a file that its reader asked for.
enum class Wanted { Module, Value, Tensors };
// The language that a reader of messages writes.
enum class Interface { Cpp, C, Python, CommandLine };

struct FileContents {
  FileKind kind = FileKind::Unknown;
  std::string is;  // the predicate of a sentence about the file: "is an ONNX model"
};

// Recognizes a file by its first kilobytes and, of a ZIP archive, by its directory. Throws nothing
// for contents of any kind; a damaged ZIP archive is Unknown.
FileContents contentsOf(const Bytes& file, const ArchiveLimits& limits = {});

// A file of another kind than its reader wanted. what() is for programs in C++.
class WrongFile : public LoadError {
 public:
  // `name` is the file's in the message.
  WrongFile(const std::string& name, FileContents contents, Wanted wanted);
  ~WrongFile() override;
  FileKind kind() const { return contents_.kind; }
  // The whole message, with the remedy of that interface.
  std::string messageFor(Interface interface) const;

 private:
  std::string name_;
  FileContents contents_;
  Wanted wanted_;
};

// The message of an error for a user of that interface: that of a WrongFile has its own remedies.
std::string messageFor(const std::exception& error, Interface interface);

// Throws WrongFile. The description of a file of torch.save counts its tensors, if it is cheap.
[[noreturn]] void throwWrongFile(const Bytes& file, const std::string& name, Wanted wanted,
                                 const ArchiveLimits& limits = {});
// Throws it for a file of torch.save that holds objects of a class of Python, whose name is `global`.
[[noreturn]] void throwSavedObjects(const std::string& name, const std::string& global,
                                    Wanted wanted);
// The same for a ZIP archive that its reader refused. Returns when the archive is damaged, or is of
// the wanted kind after all: then the reader's own error tells more.
void throwWrongZip(const Bytes& file, const std::string& name, Wanted wanted,
                   const ArchiveLimits& limits = {});

}  // namespace wick
