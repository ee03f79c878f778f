// What is said of a program that cannot be compiled ahead of time.
#pragma once

#include <string>

#include "aot/recording.h"

namespace wick::aot {

// The message of an error that the engine raised on the device of a recording, which programs know nothing of: with other
// words in place of the device.
std::string withoutDevice(std::string message);

// The error as a NotAhead, at the same place of the program, with more behind its message.
inline NotAhead refusalOf(const RuntimeError& e, const std::string& more = "") {
  NotAhead refusal(withoutDevice(e.brief()) + more);
  for (const RuntimeError::Frame& frame : e.frames()) refusal.addFrame(frame);
  return refusal;
}

}  // namespace wick::aot
