// The file that a verb works on, loaded: an archive with its module, or a script.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "frontend/compile_errors.h"
#include "ir/function.h"
#include "runtime/module.h"
#include "serialization/device_map.h"
#include "tools/options.h"

namespace wick::cli {

class LoadedFile {
 public:
  // A script by its name (.py), otherwise an archive; "-" is either, from standard input. Anything
  // else is a LoadError that says what it is and what to do.
  // Of a script all functions and classes are compiled: CompileError. The tensors of an archive, and
  // devices that its code names, go where `devices` says: to the CPU unless told otherwise.
  static LoadedFile load(const std::string& path, const DeviceMap& devices = Device());
  // The same; before, the contents of each record of an archive are compared with its CRC.
  static LoadedFile loadVerified(const std::string& path);
  // For verbs that show what there is: functions that do not compile are left, and the errors kept.
  static LoadedFile loadAsFarAsPossible(const std::string& path);
  // Whether a function could be compiled.
  bool compiles(GraphFunction& function) const;
  // Writes what did not compile to standard error, if anything.
  void tellErrors() const;

  // The same program with a copy of its module, if it has one; code is shared.
  LoadedFile withModuleOfItsOwn() const;

  bool isArchive() const { return module_.valid(); }
  const Module& module() const { return module_; }  // of an archive only
  const CompilationUnit& unit() const { return *unit_; }
  int64_t version() const { return version_; }
  // The names of the devices that the archive's tensors were saved on and that its code names, but "meta".
  const std::set<std::string>& deviceNames() const { return *device_names_; }

  // The method or function that the options name, or the one that runs when they name none: forward
  // of an archive, main or the only function of a script. UsageError, with the names that there
  // are, when there is no such one; CommandLineError when the options do not suit the kind of file.
  GraphFunction& function(const Options& options) const;
  // The same, or all of them when the options name none.
  std::vector<GraphFunction*> functions(const Options& options) const;
  // How many leading arguments are bound: 1 for the methods of an archive.
  size_t numBound() const { return isArchive() ? 1 : 0; }
  // Whether a call means the module itself, with its hooks: the options name no method of it.
  bool callsModule(const Options& options) const {
    return isArchive() && options.method.empty() && module_.hasHooks();
  }
  // Why the method that the options name cannot be prepared for inference; null when it can.
  const char* unpreparable(const Options& options) const;
  // Returns the method, or the module with its hooks where callsModule(), optimized for inference
  // (runtime/inference.h).
  std::shared_ptr<GraphFunction> prepared(const Options& options, GraphFunction& method,
                                          bool for_any_rank = true) const;
  // Runs function(options).
  IValue call(const Options& options, GraphFunction& function, std::vector<IValue> arguments,
              Kwargs kwargs, RunOptions run_options = {}) const;

 private:
  // With `errors` hands errors of compiling over instead of throwing them.
  static LoadedFile load(const std::string& path, const DeviceMap& devices, CompileErrors* errors,
                         bool verified);
  Module module_;
  std::shared_ptr<CompilationUnit> unit_;
  int64_t version_ = 0;
  std::shared_ptr<std::set<std::string>> device_names_ = std::make_shared<std::set<std::string>>();
  std::string path_;
  std::string advice_;               // for a script without functions; or ""
  std::vector<std::string> errors_;  // of functions that do not compile
};

// The place of a node for people: the module that it belongs to ("layer1.0.conv1"), and the
// position in the user's own program, or in the archive's source. `outermost` is the function whose
// graph or code holds the node.
std::string placeOf(GraphFunction& outermost, const Node& node);

// The whole file; LoadError when it cannot be read.
std::string readTextFile(const std::string& path);

}  // namespace wick::cli
