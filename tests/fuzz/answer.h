// Whether a fuzz target answers an input properly.
#pragma once

#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>

#include "core/error.h"

namespace wick {

// Gives one input to `target`. An Error other than InternalError is a proper answer to bad input;
// anything else comes back as a message. With WICK_FUZZ_LAST in the environment the input is in the
// file of that name if the process dies.
inline std::string failureOf(const std::string& input,
                             const std::function<void(const std::string&)>& target) {
  if (const char* path = std::getenv("WICK_FUZZ_LAST")) std::ofstream(path) << input;
  try {
    target(input);
  } catch (const InternalError& error) {
    return error.what();
  } catch (const Error&) {
  } catch (const std::exception& error) {
    return std::string("unexpected exception: ") + error.what();
  }
  return "";
}

}  // namespace wick
