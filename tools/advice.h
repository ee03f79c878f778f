// Advice about programs that cannot work, for those who come from Python. About files see
// serialization/file_kind.h.
#pragma once

#include <string>

#include "core/error_types.h"

namespace wick::cli {

// How a module is made of a class in the script that derives from nn.Module; "" without such a
// class.
std::string adviceForModuleClass(const std::string& source);

// What a program with this error should do otherwise: where the name that it lacks was imported,
// and that modules are made by Python. "" when there is nothing to say.
std::string adviceForProgram(const CompileError& error, const std::string& source);

}  // namespace wick::cli
