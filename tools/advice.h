// What to do about files and programs that cannot work, for those who come from Python.
#pragma once

#include <string>

#include "core/error_types.h"
#include "serialization/archive_reader.h"

namespace wick::cli {

// What the file is instead of a saved module, and how one is made of it; "" when that is not known.
// Names the file.
std::string adviceForFile(const Bytes& file, const std::string& name);

// How a module is made of a class in the script that derives from nn.Module; "" without such a
// class.
std::string adviceForModuleClass(const std::string& source);

// What a program with this error should do otherwise: where the name that it lacks was imported,
// and that modules are made by Python. "" when there is nothing to say.
std::string adviceForProgram(const CompileError& error, const std::string& source);

}  // namespace wick::cli
