// Reading the JSON of exported programs.
#pragma once

#include <optional>
#include <string>

#include "core/dtype.h"
#include "serialization/archive_reader.h"
#include "serialization/exported/schema.h"

namespace wick::exported {

// `name` begins messages about the record. Memory is taken from `budget` in proportion to the values that are kept; metadata is
// read over. Throws LoadError for text that is no JSON, for fields that lack or are of another kind, and for a major
// version other than 8.
ProgramRecord readProgram(std::string_view text, const std::string& name, LoadBudget& budget);
PayloadConfig readPayloadConfig(std::string_view text, const std::string& name, LoadBudget& budget);

// The dtype that the schema's number means; nullopt for those that the engine lacks.
std::optional<DType> dtypeOf(int64_t number);
// The name of the schema's dtype for messages: "float8_e4m3fn".
std::string dtypeName(int64_t number);
// The memory format that the schema's number means, as the number of torch.memory_format in TorchScript.
std::optional<int64_t> memoryFormatOf(int64_t number);
// The layout that the schema's number means, as the number of torch.layout in TorchScript.
std::optional<int64_t> layoutOf(int64_t number);

}  // namespace wick::exported
