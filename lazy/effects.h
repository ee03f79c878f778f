// Operators that do something beside their results and are recorded all the same. Their records are never
// dropped, run in the order of the calls, and run once: when a run fails they are not tried again.
#pragma once

#include <span>

#include "ir/operator.h"

namespace wick::lazy {

// A static object that names operators: "wick::all_reduce".
struct RecordEffects {
  explicit RecordEffects(std::span<const char* const> given);
};
bool hasRecordedEffects(const Operator& op);

}  // namespace wick::lazy
