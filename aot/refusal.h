// What is said of a program that cannot be compiled ahead of time.
#pragma once

#include <string>

#include "aot/recording.h"

namespace wick::aot {

// The error as a NotAhead, at the same place of the program, with more behind its message.
inline NotAhead refusalOf(const RuntimeError& e, const std::string& more = "") {
  NotAhead refusal(e.brief() + more);
  for (const RuntimeError::Frame& frame : e.frames()) refusal.addFrame(frame);
  return refusal;
}

}  // namespace wick::aot
