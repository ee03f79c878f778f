// Versions of the archive format: what readers know, and which one a program needs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/function_schema.h"

namespace wick {

inline constexpr int64_t kOldestVersion = 1;
inline constexpr int64_t kNewestVersion = 10;
// What PyTorch writes for programs that need nothing newer.
inline constexpr int64_t kOldestWrittenVersion = 3;
// From this version on, the version stands in the record ".data/version".
inline constexpr int64_t kHiddenVersionRecord = 6;

// The version that gave the operators of this name the meaning that they have now; nullopt when they
// had it all along.
std::optional<int64_t> changedInVersion(std::string_view name);

// The oldest version in which a call of the operator means what it means now.
int64_t formatVersionOf(const FunctionSchema& schema);

}  // namespace wick
