// Versions of the archive format: what readers know, and which one a program needs.
#pragma once

#include <cstdint>

#include "core/function_schema.h"

namespace wick {

inline constexpr int64_t kOldestVersion = 1;
inline constexpr int64_t kNewestVersion = 10;
// What PyTorch writes for programs that need nothing newer.
inline constexpr int64_t kOldestWrittenVersion = 3;
// From this version on, the version stands in the record ".data/version".
inline constexpr int64_t kHiddenVersionRecord = 6;

// The oldest version in which a call of the operator means what it means now: serialization/
// operator_upgrades.h tells what older ones took it for.
int64_t formatVersionOf(const FunctionSchema& schema);

}  // namespace wick
