// Saving modules as the archives that torch.jit.load reads.
//
// Code is printed as source (python_printer.h), attributes are pickled, tensors are written from
// where they lie, each memory once. Saving a module twice gives the same bytes, and so does saving
// what was read from the first file. Beside the code stand the positions in the program that it was
// compiled from (source_origins.h).
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/module.h"

#pragma GCC visibility push(default)

namespace wick {

struct SaveOptions {
  // Further records extra/NAME with their contents; LoadOptions::extra_files receives them.
  std::vector<std::pair<std::string, std::string>> extra_files{};
  // Operators that Wick has and PyTorch lacks are written as PyTorch's where optimizations made
  // them of these, and refused where the program names them, unless only Wick is to read the file.
  bool for_pytorch = true;
  // For the __getstate__ methods that run while saving.
  RunOptions run{};
};

// All of a module but the bytes of its tensors, ready to be written. Making one finds everything
// that cannot be saved: an attribute without a pickled form (a future, a generator, a tensor on
// another device), code without a form in source. Throws RuntimeError that names it, CompileError
// for functions that do not compile.
class ModuleArchive {
 public:
  explicit ModuleArchive(const Module& module, const SaveOptions& options = {});
  ~ModuleArchive();
  ModuleArchive(const ModuleArchive&) = delete;

  // The source of a program module: its name ("__torch__.a.b") and text, in the order of printing.
  const std::vector<std::pair<std::string, std::string>>& code() const;
  int64_t formatVersion() const;

  // Replaces the file when all is written (core/output_file.h).
  void write(const std::string& path) const;
  // Hands over the file in order.
  void write(const std::function<void(std::span<const std::byte>)>& sink) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

void saveModule(const Module& module, const std::string& path, const SaveOptions& options = {});
std::string saveModuleToString(const Module& module, const SaveOptions& options = {});

}  // namespace wick

#pragma GCC visibility pop
