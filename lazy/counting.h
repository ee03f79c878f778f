// What happened, for counters().
#pragma once

#include <string_view>

namespace wick::lazy {

void countRecorded();
void countEvaluation(const char* cause, bool compiled);
void countFollowed(const char* cause);
void countImmediate(std::string_view op);

}  // namespace wick::lazy
