// The source text of the builtins that are written in script.
#pragma once

#include <span>

namespace wick {

struct ScriptLibraryPart {
  // "torch.nn.functional"; "aten" holds overloads of operators.
  const char* module;
  const char* source;
};
std::span<const ScriptLibraryPart> scriptLibrary();

}  // namespace wick
