#include "serialization/format_version.h"

#include <unordered_map>

namespace wick {

std::optional<int64_t> changedInVersion(std::string_view name) {
  // Up to version 3 div truncated integers; up to 4 full made floats of integers; up to 7 and 8
  // linspace and logspace had a default number of steps; up to 9 gelu had one form.
  static const std::unordered_map<std::string_view, int64_t> versions = {
      {"aten::div", 4},      {"aten::div_", 4},     {"aten::full", 5},  {"aten::full_out", 5},
      {"aten::linspace", 8}, {"aten::logspace", 9}, {"aten::gelu", 10}, {"aten::gelu_", 10},
  };
  auto it = versions.find(name);
  return it == versions.end() ? std::nullopt : std::optional(it->second);
}

int64_t formatVersionOf(const FunctionSchema& schema) {
  const std::optional<int64_t> version = changedInVersion(schema.name());
  if (!version) return kOldestWrittenVersion;
  // Division of numbers never changed.
  const bool is_division = *version == 4;
  const bool of_tensor =
      !schema.arguments().empty() && schema.arguments()[0].type->kind() == TypeKind::Tensor;
  return is_division && !of_tensor ? kOldestWrittenVersion : *version;
}

}  // namespace wick
