// Loading the programs of torch.export as modules.
//
// The module has the parameters, buffers and constants under the names that they had, and a method forward with the arguments
// and results of the program, in their tuples, lists and dicts. forward checks sizes and calls `computation`, which is the
// graph. Writes to buffers, parameters and arguments happen there, too.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "runtime/module.h"
#include "serialization/archive_reader.h"
#include "serialization/load_options.h"

namespace wick::exported {

// Returns the module of a package with one program; for several, a module whose part `models` has one under each name, and methods
// of these names that call them. Throws LoadError for what the archive holds wrongly, CompileError for operators that are not
// known and calls that do not fit.
Module importProgram(const std::shared_ptr<ArchiveReader>& archive, const LoadOptions& options);

// The operators and functions in the programs of an archive that are not known ("mylib::op"). Throws LoadError.
std::set<std::string> unknownOperators(const std::shared_ptr<ArchiveReader>& archive);

}  // namespace wick::exported
