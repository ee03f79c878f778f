#include "serialization/format_version.h"

#include <string_view>
#include <unordered_map>

namespace wick {

int64_t formatVersionOf(const FunctionSchema& schema) {
  static const std::unordered_map<std::string_view, int64_t> versions = {
      {"aten::div", 4},      {"aten::div_", 4},     {"aten::full", 5},  {"aten::full_out", 5},
      {"aten::linspace", 8}, {"aten::logspace", 9}, {"aten::gelu", 10}, {"aten::gelu_", 10},
  };
  auto it = versions.find(schema.name());
  if (it == versions.end()) return kOldestWrittenVersion;
  // Division of numbers never changed.
  const bool is_division = it->second == 4;
  const bool of_tensor =
      !schema.arguments().empty() && schema.arguments()[0].type->kind() == TypeKind::Tensor;
  return is_division && !of_tensor ? kOldestWrittenVersion : it->second;
}

}  // namespace wick
