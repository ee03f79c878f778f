// What the free names of printed source stand for: torch, ops, CONSTANTS, __torch__ and the forms
// that only printed source uses. Private to the importer.
#pragma once

#include <string>

#include "frontend/sugared_value.h"

namespace wick {

class SourceImporter;

// Null for other names, which are Python's builtins.
SugaredValuePtr archiveName(const std::string& name, GraphFunction& fn, const SourceRange& range,
                            SourceImporter& importer);

}  // namespace wick
