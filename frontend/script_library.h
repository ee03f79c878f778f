// The source text of the builtins that are written in script.
#pragma once

#include <span>

namespace wick {

struct ScriptLibraryPart {
  // "torch.nn.functional"; "aten" holds overloads of operators, "generic"
  // functions that are compiled into their callers. Several parts may be of one module.
  const char* module;
  const char* source;
};
std::span<const ScriptLibraryPart> scriptLibrary();

// The parts, by file.
extern const char* const kScriptGeneric;
extern const char* const kScriptActivations;
extern const char* const kScriptExported;
extern const char* const kScriptPooling;
extern const char* const kScriptNorms;
extern const char* const kScriptLosses;
extern const char* const kScriptResampling;
extern const char* const kScriptAttention;

}  // namespace wick
