// What happened, for counters() and report().
#pragma once

#include <string_view>

#include "core/source_range.h"

namespace wick::lazy {

void countRecorded();
// `place`: what asked for a value; invalid where that is a step's end.
void countEvaluation(const char* cause, bool compiled, const SourceRange& place);
void countFollowed(const char* cause, const SourceRange& place);
// Repetitions of a graph that runs became this many loops.
void countRolled(size_t loops);
void countImmediate(std::string_view op, const SourceRange& place);

}  // namespace wick::lazy
